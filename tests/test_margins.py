"""Non-inferiority against the binomial, the score test's formula, and simulated true losses."""

from __future__ import annotations

import math
import warnings
from dataclasses import FrozenInstanceError, astuple

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import packtools as pt
from packtools.margins import non_inferiority, non_inferiority_tests

Z = scipy_stats.norm.ppf(0.95)
SIZES, MARGINS = (30, 72, 500), (0.02, 0.05, 0.1)


def judged(difference, margin, **given):
    """Judge 0-to-1 values with these differences."""
    d = np.atleast_2d(np.asarray(difference, np.float64).T).T
    return non_inferiority_tests(np.maximum(-d, 0), np.maximum(d, 0), margin, **given)


def flips(lost, gained, n):
    return [-1.0] * lost + [1.0] * gained + [0.0] * (n - lost - gained)


# -- the formula


@pytest.mark.parametrize("n", [30, 72, 500, 7000])
@pytest.mark.parametrize("margin", MARGINS)
def test_losses_alone_against_the_score_test_of_a_share(n, margin):
    losses = range(0, n // 10, 1 + n // 500)
    columns = np.column_stack([flips(lost, 0, n) for lost in losses])
    for lost, found in zip(losses, judged(columns, margin), strict=True):
        z = (margin - lost / n) / math.sqrt(margin * (1 - margin) / (n - 1))
        p = max(scipy_stats.norm.sf(z), (1 - max(0.0, margin - lost / n)) ** n)
        assert found.p_value == pytest.approx(p, rel=1e-9)
        assert found.passes == (p <= 0.05)


@pytest.mark.parametrize("n", [4, 30, 72, 500, 7000])
def test_no_loss_seen_against_the_rule_of_three(n):
    # No query of n lost: a share m of total losses is ruled out if (1 - m)^n is at most 0.05.
    found = non_inferiority(np.arange(n) % 2, np.arange(n) % 2, 0.01)
    assert found.smallest_margin == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-9)
    assert found.bound == -found.smallest_margin
    assert found.passes == (n == 500 or n == 7000)


def test_few_equal_queries_prove_nothing():
    found = non_inferiority([1, 1, 1, 1], [1, 1, 1, 1], 0.01)
    assert not found.passes
    assert found.p_value == pytest.approx(0.99**4)
    assert found.smallest_margin > 0.5
    assert not non_inferiority([1, 0, 1, 0], [0, 1, 0, 1], 0.05).passes
    assert not non_inferiority([0, 0, 0, 1], [1, 1, 1, 1], 0).passes  # 3 flips: sign test 0.125


def test_gains_and_losses_against_the_variance_by_hand():
    # 4 lost and 6 gained of 100; if 5 % were truly lost, 0.06 gained and 0.11 lost: 0.17 - 0.0025.
    found = judged(flips(4, 6, 100), 0.05)[0]
    assert found.p_value == pytest.approx(scipy_stats.norm.sf(0.07 / math.sqrt(0.1675 / 99)), rel=1e-12)


def test_sized_losses_against_the_variance_by_hand():
    # Losses of 0.5 and 0.1, and the worst, 1: their mean size, weighted by size, is 1.26 / 1.6.
    found = judged([-0.5, -0.1] + [0.0] * 98, 0.05)[0]
    z = (0.05 - 0.006) / math.sqrt((0.05 * 1.26 / 1.6 - 0.0025) / 99)
    assert found.p_value == pytest.approx(scipy_stats.norm.sf(z), rel=1e-9)


def test_values_without_a_worst_take_the_largest_change_seen():
    # Tokens, fewer are better: one query of 50 grew by 300, all others shrank by 100.
    before = np.full(50, 1000.0)
    after = np.where(np.arange(50) == 0, 1300.0, 900.0)
    found = non_inferiority(before, after, 10, higher_is_better=False)
    d, gain = (49 * 100 - 300) / 50, 98
    z = (d + 10) / math.sqrt((9800 + (gain + 10) * 300 - 100) / 49)  # losses of 300 alone
    share = (d + 10) / 300
    assert found.p_value == pytest.approx(max(scipy_stats.norm.sf(z), (1 - share) ** 50), rel=1e-9)
    assert found.delta == -d
    assert found.passes
    assert found.bound < 0  # even a saving can be claimed
    assert found.smallest_margin == 0
    same = non_inferiority(before, before, 0, higher_is_better=False)
    assert (same.passes, same.p_value, same.bound, same.smallest_margin) == (True, 0, 0, 0)
    assert math.copysign(1, same.bound) == 1


def test_many_queries_against_theory():
    # The supposed variance tends to that of the differences: the bound to the usual one.
    difference = np.random.default_rng(5).normal(-0.02, 0.3, 40_000)
    found = non_inferiority(np.zeros(40_000), difference, 0.05)
    expected = difference.mean() - Z * difference.std() / 200
    assert found.bound == pytest.approx(expected, abs=0.0001)
    assert found.smallest_margin == -found.bound
    assert (found.passes, found.confidence, found.margin) == (True, 0.95, 0.05)


# -- how the answers hang together


def samples():
    """Columns of differences of every kind, of 40 queries."""
    generator = np.random.default_rng(3)
    u = generator.random((40, 60))
    return np.hstack(
        [
            np.where(u < 0.1, -1.0, np.where(u < 0.15, 1.0, 0.0)),
            np.where(u < 0.3, -(u**2), 0.2 * (u > 0.8)),
            np.clip(generator.normal(0.02, 0.05, (40, 60)), -1, 1),
            np.zeros((40, 1)),
            np.full((40, 1), -0.1),
            np.full((40, 1), 0.1),
        ]
    )


@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_the_smallest_margin_is_where_p_is_what_is_allowed(higher, confidence):
    given = {"higher_is_better": higher, "confidence": confidence}
    difference = samples()
    for i, found in enumerate(judged(difference, 0.03, **given)):
        least = found.smallest_margin
        at = judged(difference[:, i], least, **given)[0]
        assert at.passes
        assert found.passes == (least <= 0.03)
        if least > 0:
            assert at.p_value == pytest.approx(1 - confidence, rel=1e-6)
            assert not judged(difference[:, i], least * (1 - 1e-9), **given)[0].passes
            assert found.bound == (-least if higher else least)
        else:
            assert at.p_value <= (1 - confidence) * (1 + 1e-9)


def test_a_larger_margin_never_has_a_larger_p():
    p = np.array([[f.p_value for f in judged(samples(), m)] for m in np.linspace(0, 1, 101)])
    assert (np.diff(p, axis=0) <= 1e-15).all()


def test_more_confidence_asks_for_a_larger_margin():
    least = [[f.smallest_margin for f in judged(samples(), 0, confidence=c)] for c in (0.8, 0.9, 0.99)]
    assert (np.diff(least, axis=0) >= 0).all()


def test_direction_is_a_matter_of_sign():
    a, b = np.random.default_rng(10).random((2, 40))
    up, down = non_inferiority(a, b, 0.1), non_inferiority(b, a, 0.1, higher_is_better=False)
    assert (up.p_value, up.smallest_margin, up.passes) == (down.p_value, down.smallest_margin, down.passes)
    assert up.bound == -down.bound
    assert up.delta == -down.delta
    assert not down.higher_is_better


def test_many_equal_one_by_one_to_the_last_bit():
    generator = np.random.default_rng(8)
    a, b = generator.random((90, 6)), generator.random((90, 6))
    a[:, 1], b[:, 1] = generator.integers(0, 2, (2, 90))
    a[3, 2] = b[70, 2] = a[9, 3] = np.nan
    a[:, 4] = np.nan
    a[:, 5] *= 1000
    many = non_inferiority_tests(a, b, 0.1)
    one = [non_inferiority(a[:, i], b[:, i], 0.1) for i in range(6)]
    assert all(np.array_equal(astuple(x), astuple(y), equal_nan=True) for x, y in zip(many, one, strict=True))
    assert [found.n for found in many] == [90, 90, 88, 89, 0, 90]


def test_rounding_is_no_loss():
    exact = non_inferiority([0.3] * 100, [0.3] * 100, 0.05)
    rounded = non_inferiority([0.1 + 0.2] * 100, [0.3] * 100, 0.05)
    assert rounded.p_value == exact.p_value
    # A cosine of 1.0000000000000002 is still a value of 0 to 1.
    cosine = non_inferiority([1.0] * 99 + [1 + 2**-52], [1.0] * 100, 0.05)
    assert cosine.p_value == exact.p_value


# -- how often a loss as large as the margin passes


@pytest.mark.parametrize("margin", MARGINS)
def test_false_passes_of_flips_against_the_binomial(margin):
    # The chance of all numbers of losses that pass, summed without simulation: 5 % up to the steps
    # between whole losses.
    chances = []
    for n in range(20, 300, 7):
        differences = np.where(np.arange(n)[:, None] < np.arange(n // 4 + 1), -1.0, 0.0)
        passing = [found.passes for found in judged(differences, margin)]
        chances.append(scipy_stats.binom.pmf(np.flatnonzero(passing), n, margin).sum())
    assert max(chances) <= 0.065
    assert np.mean(chances) <= 0.05


def lost(kind, n, margin, generator, columns=1500):
    """Samples whose mean is -margin in truth."""
    u, size = generator.random((2, n, columns))
    small = generator.normal(0, 0.1, (n, columns))
    if kind == "losses alone":
        return np.where(u < margin, -1.0, 0.0)
    if kind == "gains and losses":
        return np.where(u < margin + 0.1, -1.0, np.where(u < margin + 0.2, 1.0, 0.0))
    if kind == "shares":  # uniform sizes, of mean 1/2
        return np.where(u < 2 * margin, -size, 0.0)
    if kind == "mostly small shares":  # sizes of mean 0.2
        return np.where(u < 5 * margin, -(size**4), 0.0)
    if kind == "rare total losses":  # beside gains and losses of some hundredths
        return np.where(u < margin, -1.0, small / 10)
    return np.where(u < margin, -1.0, small)  # beside gains and losses of some tenths


KINDS = ["losses alone", "gains and losses", "shares", "mostly small shares", "rare total losses", "noise"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_of_the_margin_hardly_ever_passes(kind):
    generator = np.random.default_rng(19)
    for n in SIZES:
        for margin in MARGINS:
            found = judged(lost(kind, n, margin, generator), margin)
            # 5 %, or 6.5 % where steps between whole losses decide, and 3 Monte Carlo errors.
            assert np.mean([f.passes for f in found]) <= 0.065 + 3 * math.sqrt(0.065 * 0.935 / 1500)


def test_corrected_by_holm_no_lossy_setting_passes_in_95_of_100_sweeps():
    # 40 settings that each lose as much as the margin: far out in the tail.
    generator = np.random.default_rng(23)
    sweeps = [judged(lost(kind, 300, 0.05, generator, 40), 0.05) for kind in KINDS * 40]
    wrong = [(pt.holm([f.p_value for f in found]) <= 0.05).any() for found in sweeps]
    assert np.mean(wrong) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 240)


def test_a_margin_that_is_kept_is_found_to_be_kept():
    # No true loss, 3 % of the answers flip either way, 500 queries.
    u = np.random.default_rng(2).random((500, 1000))
    found = judged(np.where(u < 0.015, -1.0, np.where(u < 0.03, 1.0, 0.0)), 0.05)
    assert np.mean([f.passes for f in found]) > 0.95
    # Shares that move by a tenth either way: 500 queries do for two points, 72 often for five.
    noise = np.random.default_rng(3).normal(0, 0.1, (500, 1000))
    assert np.mean([f.passes for f in judged(noise, 0.02)]) > 0.95
    assert np.mean([f.passes for f in judged(noise[:72], 0.05)]) > 0.7


# -- what is refused, and what is silent


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"margin": -0.1}, "non_inferiority: 'margin' must be a number from 0 on; got -0.1."),
        ({"margin": np.inf}, "non_inferiority: 'margin' must be a number from 0 on; got inf."),
        ({"confidence": 0.5}, "non_inferiority: 'confidence' must be above 0.5 and below 1; got 0.5."),
        ({"higher_is_better": 1}, "non_inferiority: 'higher_is_better' must be True or False; got 1."),
    ],
)
def test_settings_have_one_clear_error(setting, message):
    with pytest.raises(pt.SettingError) as caught:
        non_inferiority([1, 2], [1, 2], **{"margin": 0.1, **setting})
    assert str(caught.value) == message


def test_values_are_checked():
    with pytest.raises(pt.SettingError, match=r"^non_inferiority: 'candidate' must be of shape \(2,\)"):
        non_inferiority([1, 0], [1], 0.1)
    with pytest.raises(pt.SettingError, match="align them by id first"):
        non_inferiority(pd.Series({"a": 1.0, "b": 0.0}), pd.Series({"b": 0.0, "a": 1.0}), 0.1)
    with pytest.raises(pt.SettingError, match="^non_inferiority_tests: 'candidates' must be of shape"):
        non_inferiority_tests(np.ones((2, 2)), np.ones((2, 3)), 0.1)
    assert non_inferiority_tests(np.empty((3, 0)), np.empty((3, 0)), 0.1) == ()


@pytest.mark.parametrize(
    "pair",
    [
        ([], []),
        ([1], [0]),
        ([np.nan, np.nan], [1, 0]),
        ([1, 1, 1], [1, 1, 1]),
        ([0] * 50, [1] * 50),
        ([1] * 50, [0] * 50),
        ([None, 1, 0], [1, None, 1]),
        ([True, False], [False, True]),
        ([0, 0], [0, 5e-324]),
        ([700, 700], [700, 700]),
        ([1e30, -1e30, 0], [-1e30, 1e30, 1e30]),
    ],
)
@pytest.mark.parametrize("margin", [0, 0.1, 1, 5])
def test_degenerate_samples_never_warn(pair, margin):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = non_inferiority(*pair, margin)
    if found.n < 2:
        assert not found.passes
        assert np.isnan([found.p_value, found.bound, found.smallest_margin]).all()
    else:
        assert 0 <= found.p_value <= 1
        assert found.smallest_margin == max(0, -found.bound)


def test_results_are_frozen():
    with pytest.raises(FrozenInstanceError):
        non_inferiority([1], [1], 0).n = 5
