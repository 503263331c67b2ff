"""Tests of a difference against scipy, enumeration and theory."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import warnings
from dataclasses import FrozenInstanceError, astuple
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import packtools as pt
from packtools import resampling, significance, stats
from packtools.significance import holm, mcnemar, permutation_test, permutation_tests


def mean(x, axis=-1):
    return np.mean(x, axis=axis)


# -- permutation test


@pytest.mark.parametrize(
    "difference",
    [
        [0.3, -0.1, 0.7, 0.2, 0.9, -0.4, 0.5, 0.6],
        [1, 1, 1, -1, 1, 1, 1, 1],  # ties at the observed mean
        [0, 0, 1, 1, -1, 1, 0, 1, 1],  # zeros can't tell
        [1, 2, 3, -1, -2, -3],  # a mean of 0
        [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
        [5.0, 1.0],
    ],
)
def test_permutation_against_scipy_exact(difference):
    found = permutation_test(np.zeros(len(difference)), difference)
    theirs = scipy_stats.permutation_test(
        (np.array(difference),), mean, permutation_type="samples", n_resamples=math.inf, vectorized=True
    )
    assert found.exact
    assert found.p_value == pytest.approx(theirs.pvalue, abs=1e-12)
    assert found.delta == pytest.approx(np.mean(difference))


@pytest.mark.parametrize(
    "tenths",
    [
        [3, -1, 2, 2, 5, -4, 1],
        [1, 2, 3, -1, -2, -3],  # the mean of the floats is not quite 0, of the fractions it is: p = 1
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -3],
    ],
)
def test_permutation_against_enumeration_in_whole_numbers(tenths):
    # Whole tenths, so that no rounding decides a tie.
    signs = itertools.product((1, -1), repeat=len(tenths))
    sums = [abs(sum(s * d for s, d in zip(chosen, tenths, strict=True))) for chosen in signs]
    expected = Fraction(sum(s >= abs(sum(tenths)) for s in sums), len(sums))
    found = permutation_test([0.0] * len(tenths), [d / 10 for d in tenths])
    assert found.p_value == float(expected)
    assert found.n_resamples == len(sums)


def test_drawn_signs_agree_with_all_signs(monkeypatch):
    difference = np.array([0.3, -0.1, 0.7, 0.2, 0.9, -0.4, 0.5, 0.6, 0.0, -0.2])
    all_signs = permutation_test(np.zeros(10), difference)
    monkeypatch.setattr(significance, "ENUMERATED", 0)
    drawn = permutation_test(np.zeros(10), difference, n_resamples=50_000)
    assert (drawn.exact, drawn.n_resamples) == (False, 50_000)
    assert drawn.p_value == pytest.approx(all_signs.p_value, abs=0.007)


def test_drawn_p_against_theory():
    # With many queries the sign-flip distribution is normal with variance sum(d^2).
    difference = np.random.default_rng(2).normal(0.1, 1, 500)
    z = difference.sum() / np.sqrt((difference**2).sum())
    found = permutation_test(np.zeros(500), difference)
    assert found.p_value == pytest.approx(2 * scipy_stats.norm.sf(abs(z)), abs=0.01)


def test_drawn_p_is_never_zero():
    found = permutation_test(np.zeros(100), np.ones(100), n_resamples=999)
    assert found.p_value == 1 / 1000


def test_permutation_does_not_depend_on_the_size_of_its_blocks(monkeypatch):
    difference = np.random.default_rng(0).normal(0.2, 1, 45)
    found = permutation_test(np.zeros(45), difference, rng=4)
    monkeypatch.setattr(resampling, "BLOCK", 1000)
    assert permutation_test(np.zeros(45), difference, rng=4) == found
    assert permutation_test(np.zeros(45), difference, rng=5) != found


def test_permutation_is_two_sided_and_blind_to_order_and_scale():
    generator = np.random.default_rng(1)
    a, b = generator.random(12), generator.random(12)
    p = permutation_test(a, b).p_value
    assert permutation_test(b, a).p_value == p
    assert permutation_test(a[::-1], b[::-1]).p_value == p
    assert permutation_test(a * 1e-20, b * 1e-20).p_value == p
    assert permutation_test(a * 1e20, b * 1e20).p_value == p


def test_permutation_p_is_uniform_under_no_difference():
    generator = np.random.default_rng(7)
    p = [
        permutation_test(np.zeros(20), generator.normal(size=20), n_resamples=199).p_value for _ in range(400)
    ]
    assert scipy_stats.kstest(p, "uniform").pvalue > 0.01


# -- many permutation tests


def sides(generator):
    """Seven columns: noise, flips, few flips, missing values, not scored, no difference, awkward floats."""
    a, b = generator.normal(5, 2, (90, 7)), generator.normal(5, 2, (90, 7))
    a[:, 1:3], b[:, 1] = generator.integers(0, 2, (90, 2)), generator.integers(0, 2, 90)
    b[:, 2] = a[:, 2]
    b[:5, 2] = 1 - a[:5, 2]
    a[3, 3] = b[70, 3] = np.nan
    a[:, 4] = np.nan
    b[:, 5] = a[:, 5]
    a[:, 6], b[:, 6] = 0.3, generator.choice([0.1 + 0.2, 0.2, 0.4, 0.6], 90)
    return a, b


def same(x, y):
    return np.array_equal(astuple(x), astuple(y), equal_nan=True)


def test_many_tests_equal_one_by_one_to_the_last_bit(monkeypatch):
    a, b = sides(np.random.default_rng(8))
    one = [permutation_test(a[:, i], b[:, i], n_resamples=500, rng=3) for i in range(7)]
    many = permutation_tests(a, b, n_resamples=500, rng=3)
    assert all(map(same, many, one))
    assert [found.exact for found in many] == [False, False, True, False, False, True, False]
    assert [found.n for found in many] == [90, 90, 90, 88, 0, 90, 90]
    backwards = permutation_tests(a[:, ::-1], b[:, ::-1], n_resamples=500, rng=3)
    assert all(map(same, backwards[::-1], one))
    monkeypatch.setattr(resampling, "GROUP", 200)  # two columns at a time
    monkeypatch.setattr(resampling, "BLOCK", 1000)
    assert all(map(same, permutation_tests(a, b, n_resamples=500, rng=3), one))


def test_a_p_does_not_depend_on_the_values_of_other_columns():
    generator = np.random.default_rng(4)
    a, b = sides(generator)
    alone = permutation_test(a[:, 0], b[:, 0])
    loud = np.column_stack([1e28 * a[:, 5], a[:, 0]]), np.column_stack([-1e28 * b[:, 5], b[:, 0]])
    assert permutation_tests(*loud)[1] == alone


def test_drawn_p_against_whole_number_sums():
    # The signs as documented (the bits of the generator's words), the sums in Python's whole numbers.
    cents = np.random.default_rng(6).integers(-9, 12, 40)
    words = np.random.default_rng(2).integers(0, 1 << 32, (300, 2), dtype=np.uint32)
    flips = np.unpackbits(words.view(np.uint8), axis=1, count=40)
    observed = abs(sum(cents.tolist()))
    far = sum(
        abs(sum(-d if f else d for d, f in zip(cents.tolist(), row, strict=True))) >= observed
        for row in flips.tolist()
    )
    # Hundredths are no exact floats: ties of their sums must still count.
    found = permutation_test(np.zeros(40), cents / 100, n_resamples=300, rng=2)
    assert found.p_value == (far + 1) / 301
    assert (
        permutation_test(np.full(40, 0.3), 0.3 + cents / 100, n_resamples=300, rng=2).p_value == found.p_value
    )


def test_columns_are_tested_over_the_same_signs():
    # A column and twice the column give the same p, so does one with the sides swapped.
    d = np.random.default_rng(3).normal(0.2, 1, (60, 1))
    found = permutation_tests(np.zeros((60, 3)), np.hstack([d, 2 * d, -d]), n_resamples=200)
    assert len({f.p_value for f in found}) == 1


def test_many_tests_take_frames_and_no_columns():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [0.0, 1.0]}, index=["q1", "q2"])
    assert [found.p_value for found in permutation_tests(frame, frame + 1)] == [0.5, 0.5]
    assert permutation_tests(np.empty((5, 0)), np.empty((5, 0))) == ()
    assert [found.n for found in permutation_tests(np.empty((0, 2)), np.empty((0, 2)))] == [0, 0]
    with pytest.raises(pt.SettingError, match="permutation_tests: 'candidates' must be of shape"):
        permutation_tests(frame, frame[["x"]].to_numpy())
    with pytest.raises(pt.SettingError, match="permutation_tests: 'rng' must be"):
        permutation_tests(frame, frame, rng=-1)


# -- McNemar


@pytest.mark.parametrize(("b", "c"), [(0, 0), (0, 1), (1, 5), (5, 1), (4, 4), (7, 19), (60, 95), (0, 40)])
def test_mcnemar_against_scipy_binomial(b, c):
    found = mcnemar([1] * b + [0] * c + [1, 0], [0] * b + [1] * c + [1, 0])
    assert (found.b, found.c, found.n) == (b, c, b + c + 2)
    assert found.delta == pytest.approx((c - b) / (b + c + 2))
    theirs = scipy_stats.binomtest(b, b + c, 0.5).pvalue if b + c else 1.0
    assert found.p_value == pytest.approx(theirs, rel=1e-12)


def test_mcnemar_is_the_permutation_test_of_a_0_1_metric():
    # 30 queries of exact match, 9 of which flip.
    a, b = np.array([1] * 15 + [0] * 15), np.array([1] * 13 + [0] * 2 + [1] * 7 + [0] * 8)
    assert mcnemar(a, b).p_value == pytest.approx(permutation_test(a, b).p_value, rel=1e-12)
    assert permutation_test(a, b).exact


def test_mcnemar_of_many_flips_is_neither_zero_nor_slow():
    found = mcnemar(np.zeros(20_000), np.ones(20_000))
    assert 0 < found.p_value < 1e-300
    even = mcnemar([0, 1] * 10_000, [1, 0] * 10_000)
    assert even.p_value == 1


def test_mcnemar_leaves_missing_out_and_refuses_other_values():
    found = mcnemar([True, None, False], [False, 1, True])
    assert (found.b, found.c, found.n) == (1, 1, 2)
    with pytest.raises(pt.SettingError) as caught:
        mcnemar([0, 1], [0, 0.5])
    assert str(caught.value) == "mcnemar: 'candidate' must be 0 or 1 (or NaN: not scored); got 0.5."


# -- Holm


def test_holm_against_a_worked_example():
    # 0.005 x 4, 0.01 x 3, 0.03 x 2, then 0.04 x 1, lifted to the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_against_closed_testing():
    # Holm is the closed test with Bonferroni: the worst of all sets of tests that hold this one.
    generator = np.random.default_rng(3)
    for _ in range(20):
        p = generator.random(6) ** 3
        p[1] = p[4]
        worst = [
            max(
                min(1.0, len(chosen) * min(p[list(chosen)]))
                for size in range(1, 7)
                for chosen in itertools.combinations(range(6), size)
                if i in chosen
            )
            for i in range(6)
        ]
        assert holm(p) == pytest.approx(worst, rel=1e-12)


def test_holm_leaves_the_baseline_out():
    # Three systems, one of them the baseline: corrected over two p-values.
    assert holm([None, 0.01, 0.04]) == pytest.approx([np.nan, 0.02, 0.04], nan_ok=True)
    assert holm(pd.Series([0.01, np.nan, 0.04])) == pytest.approx([0.02, np.nan, 0.04], nan_ok=True)
    assert np.isnan(holm([None, np.nan])).all()
    assert holm([]).tolist() == []


def test_holm_is_capped_keeps_order_and_never_lowers():
    p = np.random.default_rng(5).random(50)
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()
    assert (holm(p[::-1])[::-1] == adjusted).all()


@pytest.mark.parametrize("p_values", [[0.5, 1.5], [-0.1], [[0.1]], ["low"], [np.inf], 0.3])
def test_holm_checks_its_values(p_values):
    with pytest.raises(pt.SettingError, match="^holm: 'p_values' must be"):
        holm(p_values)


def test_twenty_settings_of_noise_have_no_winner_in_95_of_100_sweeps():
    generator = np.random.default_rng(17)
    clean = naive = 0
    for _ in range(200):
        p = [
            permutation_test(np.zeros(16), d, n_resamples=999).p_value
            for d in generator.normal(size=(20, 16))
        ]
        clean += (holm(p) > 0.05).all()
        naive += (np.array(p) > 0.05).all()
    assert 0.91 <= clean / 200 <= 0.99
    assert naive / 200 < 0.5  # without a correction: 0.95 ** 20 = 0.36


# -- every test


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_queries_are_not_testable(n):
    for found in (permutation_test([1] * n, [0] * n), mcnemar([1] * n, [0] * n)):
        assert not found.testable
        assert math.isnan(found.p_value)
        assert found.n == n
    assert np.isnan(holm([permutation_test([1], [0]).p_value]))


@pytest.mark.parametrize("n", [2, 5, 40])
def test_identical_runs_have_p_1(n):
    same = np.arange(n) % 2
    assert permutation_test(same, same).p_value == 1
    assert mcnemar(same, same).p_value == 1


def test_rounding_is_no_difference():
    found = permutation_test([0.3] * 20, [0.1 + 0.2] * 20)
    assert (found.p_value, found.exact) == (1, True)


@pytest.mark.parametrize("shift", [1.0, 0.1, 1e-6])
def test_a_constant_shift_has_the_smallest_p(shift):
    values = np.random.default_rng(0).random(10)
    assert permutation_test(values, values + shift).p_value == 2 / 2**10
    assert permutation_test(np.zeros(60), np.full(60, shift)).p_value == 1 / 10_000


@pytest.mark.parametrize("test", [permutation_test, mcnemar])
def test_values_are_checked(test):
    with pytest.raises(pt.SettingError, match=r"'candidate' must be of shape \(2,\); got \(1,\)"):
        test([1, 0], [1])
    with pytest.raises(pt.SettingError, match="'baseline' must be numbers"):
        test(["yes", "no"], [1, 0])
    with pytest.raises(pt.SettingError, match="align them by id first"):
        test(pd.Series({"q1": 1.0, "q2": 0.0}), pd.Series({"q2": 0.0, "q1": 1.0}))


@pytest.mark.parametrize("setting", [{"n_resamples": 0}, {"n_resamples": "9"}, {"rng": -1}, {"rng": 1.5}])
def test_permutation_checks_its_settings(setting):
    with pytest.raises(pt.SettingError, match="^permutation_test: '(n_resamples|rng)' must be"):
        permutation_test([1, 2], [3, 4], **setting)


@pytest.mark.parametrize(
    "pair",
    [
        ([], []),
        ([1], [0]),
        ([np.nan, np.nan], [1, 0]),
        ([1, 1, 1], [1, 1, 1]),
        ([0] * 50, [1] * 50),
        ([None, 1, 0], [1, None, 1]),
        ([True, False], [False, True]),
    ],
)
def test_degenerate_samples_never_warn_and_p_is_in_its_range(pair):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [permutation_test(*pair), mcnemar(*pair)]
        holm([r.p_value for r in found])
    for result in found:
        assert 0 < result.p_value <= 1 if result.testable else math.isnan(result.p_value)


def test_results_are_frozen():
    for result in (permutation_test([1], [1]), mcnemar([1], [1]), stats.win_tie_loss([1], [1])):
        assert not result.testable
        with pytest.raises(FrozenInstanceError):
            result.n = 5


def test_pandas_and_scipy_are_not_needed_to_test():
    code = (
        "import sys\nsys.modules['pandas'] = sys.modules['scipy'] = None\n"
        "from packtools import margins, significance as s, stats\n"
        "print(s.permutation_test([0, 0], [1, 1]).p_value, s.mcnemar([0, 0], [1, 1]).p_value)\n"
        "stats.paired_bootstrap([0, 0, 0], [1, 1, 4], method='bca'), margins.non_inferiority([0, 0], [1, 1], 0)"
    )
    out = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert out.stdout.strip() == "0.5 0.5", out.stderr
