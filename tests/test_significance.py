"""Tests of a difference against scipy, enumeration and theory; pairing by id."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import warnings
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import packtools as pt
from packtools import significance, stats
from packtools.significance import (
    average_repetitions,
    holm,
    mcnemar,
    non_inferiority,
    pair_by_id,
    permutation_test,
)


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
    monkeypatch.setattr(stats, "BLOCK", 1000)
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


# -- non-inferiority


def test_bound_against_theory():
    difference = np.random.default_rng(5).normal(-0.02, 0.3, 4000)
    found = non_inferiority(np.zeros(4000), difference, 0.05)
    expected = difference.mean() - 1.645 * difference.std() / np.sqrt(4000)
    assert found.bound == pytest.approx(expected, abs=0.001)
    assert found.smallest_margin == -found.bound
    assert (found.passes, found.confidence, found.margin) == (True, 0.95, 0.05)


def test_bound_is_an_end_of_the_two_sided_interval():
    a, b = np.random.default_rng(9).random((2, 60))
    interval = stats.paired_bootstrap(a, b, confidence=0.9, rng=2)
    assert non_inferiority(a, b, 0.1, rng=2).bound == pytest.approx(interval.low, abs=1e-9)
    worse = non_inferiority(a, b, 0.1, rng=2, higher_is_better=False)
    assert worse.bound == pytest.approx(interval.high, abs=1e-9)


def test_the_smallest_margin_just_passes():
    a, b = np.random.default_rng(10).random((2, 40))
    for higher in (True, False):
        least = non_inferiority(a, b, 0, higher_is_better=higher).smallest_margin
        assert least > 0
        assert non_inferiority(a, b, least, higher_is_better=higher).passes
        assert not non_inferiority(a, b, least * (1 - 1e-9), higher_is_better=higher).passes


def test_the_bound_holds_about_as_often_as_it_says():
    # A true loss of exactly the margin may pass in 5 of 100 samples.
    generator = np.random.default_rng(19)
    passed = sum(
        non_inferiority(np.zeros(100), generator.normal(-0.2, 1, 100), 0.2, n_resamples=999).passes
        for _ in range(600)
    )
    assert 0.03 <= passed / 600 <= 0.08


def test_few_queries_prove_nothing_however_equal_they_look():
    assert not non_inferiority([1, 0, 1, 0], [0, 1, 0, 1], 0.05).passes
    one = non_inferiority([1], [1], 1)
    assert (one.passes, one.testable, math.isnan(one.bound), math.isnan(one.smallest_margin)) == (
        False,
        False,
        True,
        True,
    )


def test_a_clear_gain_passes_at_margin_zero():
    found = non_inferiority([0, 0, 0, 1], [1, 1, 1, 1], 0)
    assert (found.passes, found.smallest_margin) == (True, 0)
    # A constant loss of a tenth, which 32-bit sums would round past the margin.
    assert non_inferiority([1.0] * 50, [0.9] * 50, 0.1).passes


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"margin": -0.1}, "non_inferiority: 'margin' must be a number from 0 on; got -0.1."),
        ({"margin": np.inf}, "non_inferiority: 'margin' must be a number from 0 on; got inf."),
        ({"confidence": 0.5}, "non_inferiority: 'confidence' must be above 0.5 and below 1; got 0.5."),
        ({"higher_is_better": 1}, "non_inferiority: 'higher_is_better' must be True or False; got 1."),
    ],
)
def test_non_inferiority_checks_its_settings(setting, message):
    with pytest.raises(pt.SettingError) as caught:
        non_inferiority([1, 2], [1, 2], **{"margin": 0.1, **setting})
    assert str(caught.value) == message


# -- repetitions and pairing


def test_repetitions_are_averaged_inside_a_query_first():
    # q1 was run three times, q2 once: each counts once.
    found = average_repetitions(["q2", "q1", "q1", "q1"], [1.0, 0.0, 0.0, 0.3])
    assert found.index.tolist() == ["q2", "q1"]
    assert found.tolist() == pytest.approx([1.0, 0.1])
    assert found.mean() == pytest.approx(0.55)
    assert found.index.name == "qid"


def test_repetitions_that_are_not_scored_do_not_count():
    found = average_repetitions(["a", "a", "b"], [1.0, None, np.nan])
    assert found["a"] == 1
    assert math.isnan(found["b"])
    assert average_repetitions([], []).empty


def test_repetitions_are_checked():
    with pytest.raises(pt.SettingError) as caught:
        average_repetitions([7, 8], [1, 2])
    assert str(caught.value) == (
        "average_repetitions: 'qids' must be query ids, each a string; got 7. Read ids as text: \"007\" is not 7."
    )
    with pytest.raises(pt.SettingError, match=r"'values' must be of shape \(1,\); got \(2,\)"):
        average_repetitions(["q"], [1, 2])


def test_shuffled_rows_change_nothing():
    a = pd.Series(np.random.default_rng(0).random(30), index=[f"q{i}" for i in range(30)])
    pairs = pair_by_id(a, a[::-1])
    delta = stats.paired_bootstrap(pairs.a, pairs.b)
    assert (delta.delta, delta.low, delta.high) == (0, 0, 0)
    assert permutation_test(pairs.a, pairs.b).p_value == 1
    assert pairs.ids == tuple(a.index)


def test_queries_of_one_side_are_counted_and_both_rules_are_there():
    a = pd.Series({"q1": 1.0, "q3": 1.0, "q2": 0.0})
    b = pd.Series({"q2": 1.0, "q9": 1.0, "q1": 1.0, "q8": 0.5})
    inner = pair_by_id(a, b)
    assert (inner.ids, inner.a.tolist(), inner.b.tolist()) == (("q1", "q2"), [1, 0], [1, 1])
    assert (inner.only_a, inner.only_b, inner.rule, inner.n) == (1, 2, "intersection", 2)
    union = pair_by_id(a, b, fill=0)
    assert union.ids == ("q1", "q3", "q2", "q9", "q8")
    assert (union.a.tolist(), union.b.tolist()) == ([1, 1, 0, 0, 0], [1, 0, 1, 1, 0.5])
    assert (union.only_a, union.only_b, union.rule, union.n) == (1, 2, "union, 0.0 where missing", 5)


def test_pairs_keep_missing_values_and_ids_as_they_are():
    pairs = pair_by_id(
        pd.Series({"007": np.nan, "NA": 1.0, "7": 2.0}), pd.Series({"7": 3.0, "007": 1.0, "NA": 4.0})
    )
    assert pairs.ids == ("007", "NA", "7")
    assert pairs.b.tolist() == [1, 4, 3]
    assert math.isnan(pairs.a[0])
    assert (pairs.n, pairs.testable) == (2, True)
    empty = pair_by_id(pd.Series({"x": 1.0}), pd.Series({"y": 1.0}))
    assert (empty.ids, len(empty.a), empty.n, empty.testable) == ((), 0, 0, False)
    assert pair_by_id(average_repetitions([], []), average_repetitions([], [])).ids == ()


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (
            pd.Series([1.0, 2.0, 3.0], index=["q1", "q2", "q1"]),
            "pair_by_id: 'b' must be indexed by ids that occur once; got 'q1'. "
            "Average its repetitions first: average_repetitions.",
        ),
        (
            pd.Series([1.0]),  # the default index is a position
            "pair_by_id: 'b' must be query ids, each a string; got 0. Read ids as text: \"007\" is not 7.",
        ),
        ([1.0, 2.0], "pair_by_id: 'b' must be a Series with query ids as index; got [1.0, 2.0]."),
        (pd.Series({"q1": np.inf}), "pair_by_id: 'b' must be finite or NaN (not scored); got inf."),
    ],
)
def test_pairing_is_checked(series, message):
    with pytest.raises(pt.SettingError) as caught:
        pair_by_id(pd.Series({"q1": 1.0}), series)
    assert str(caught.value) == message


# -- every test


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_queries_are_not_testable(n):
    for found in (permutation_test([1] * n, [0] * n), mcnemar([1] * n, [0] * n)):
        assert not found.testable
        assert math.isnan(found.p_value)
        assert found.n == n
    assert np.isnan(holm([permutation_test([1], [0]).p_value]))


@pytest.mark.parametrize("n", [2, 5, 40])
def test_identical_runs_have_p_1_and_pass(n):
    same = np.arange(n) % 2
    assert permutation_test(same, same).p_value == 1
    assert mcnemar(same, same).p_value == 1
    found = non_inferiority(same, same, 0)
    assert (found.passes, found.bound, found.smallest_margin) == (True, 0, 0)
    assert math.copysign(1, found.smallest_margin) == 1


def test_rounding_is_no_difference():
    found = permutation_test([0.3] * 20, [0.1 + 0.2] * 20)
    assert (found.p_value, found.exact) == (1, True)


@pytest.mark.parametrize("shift", [1.0, 0.1, 1e-6])
def test_a_constant_shift_has_the_smallest_p(shift):
    values = np.random.default_rng(0).random(10)
    assert permutation_test(values, values + shift).p_value == 2 / 2**10
    assert permutation_test(np.zeros(60), np.full(60, shift)).p_value == 1 / 10_000


@pytest.mark.parametrize("test", [permutation_test, mcnemar, lambda a, b: non_inferiority(a, b, 0.1)])
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
        passed = non_inferiority(*pair, 0.1)
        holm([r.p_value for r in found])
    for result in found:
        assert 0 < result.p_value <= 1 if result.testable else math.isnan(result.p_value)
    assert passed.testable == (not math.isnan(passed.bound))


def test_results_are_frozen():
    results = [
        permutation_test([1], [1]),
        mcnemar([1], [1]),
        non_inferiority([1], [1], 0),
        stats.win_tie_loss([1], [1]),
    ]
    results.append(pair_by_id(pd.Series({"q": 1.0}), pd.Series({"q": 1.0})))
    for result in results:
        assert not result.testable
        with pytest.raises(FrozenInstanceError):
            result.n = 5


def test_pandas_and_scipy_are_not_needed_to_test():
    code = (
        "import sys\nsys.modules['pandas'] = sys.modules['scipy'] = None\n"
        "from packtools import significance as s, stats\n"
        "print(s.permutation_test([0, 0], [1, 1]).p_value, s.mcnemar([0, 0], [1, 1]).p_value)\n"
        "stats.paired_bootstrap([0, 0, 0], [1, 1, 4], method='bca'), s.non_inferiority([0, 0], [1, 1], 0)"
    )
    out = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert out.stdout.strip() == "0.5 0.5", out.stderr
