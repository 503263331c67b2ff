"""The paired bootstrap against scipy, enumeration, theory and degenerate samples."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import packtools as pt
from packtools import resampling
from packtools.stats import WinTieLoss, paired_bootstrap, paired_bootstrap_many, win_tie_loss

METHODS = ("percentile", "bca")


def scipy_interval(difference, method, **given):
    found = scipy_stats.bootstrap(
        (difference,),
        np.mean,
        method=method,
        rng=np.random.default_rng(1),
        **{"n_resamples": 20_000, **given},
    ).confidence_interval
    return found.low, found.high


def same(x, y):
    """Whether two results are equal to the last bit; NaN equals NaN."""
    return np.array_equal(astuple(x), astuple(y), equal_nan=True)


def test_interval_against_scipy():
    generator = np.random.default_rng(3)
    base = generator.normal(10, 3, 200)
    here = base + generator.normal(0.4, 2, 200)
    ours = pt.paired_bootstrap(base, here, n_resamples=20_000)
    theirs = scipy_stats.bootstrap(
        (here - base,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.02)
    assert ours.high == pytest.approx(theirs.high, abs=0.02)
    assert ours.delta == pytest.approx((here - base).mean())


def test_interval_against_theory():
    # For a large sample the interval is the mean and 1.96 standard errors.
    difference = np.random.default_rng(5).normal(1, 2, 4000)
    found = pt.paired_bootstrap(np.zeros(4000), difference)
    half = 1.96 * difference.std() / np.sqrt(4000)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.06)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    generator = np.random.default_rng(11)
    covered = 0
    for _ in range(300):
        found = pt.paired_bootstrap(np.zeros(80), generator.normal(0.3, 1, 80), n_resamples=500)
        covered += found.low <= 0.3 <= found.high
    assert 0.90 <= covered / 300 <= 0.98


def test_identical_runs_give_zero_and_no_warning():
    found = pt.paired_bootstrap([1.0, 0.0, 1.0], [1.0, 0.0, 1.0])
    assert (found.delta, found.low, found.high) == (0, 0, 0)
    assert not found.measurable


def test_a_constant_shift_has_an_interval_of_one_point():
    found = pt.paired_bootstrap([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert (found.delta, found.low, found.high) == (1, 1, 1)
    assert found.measurable


def test_one_query_is_not_testable_and_none_is_nothing():
    one = pt.paired_bootstrap([1.0], [0.0])
    assert (one.delta, one.n, one.testable) == (-1, 1, False)
    none = pt.paired_bootstrap([np.nan], [1.0])
    assert (none.n, none.testable, none.measurable) == (0, False, False)


def test_pairs_with_a_missing_side_are_left_out():
    found = pt.paired_bootstrap([1, np.nan, 0, 1], [1, 1, np.nan, 0])
    assert (found.n, found.delta, found.baseline) == (2, -0.5, 1.0)


def test_the_same_seed_gives_the_same_interval_however_it_is_computed(monkeypatch):
    a, b = np.zeros(50), np.random.default_rng(0).normal(size=50)
    first = pt.paired_bootstrap(a, b)
    monkeypatch.setattr(resampling, "REMEMBERED", 0)
    assert pt.paired_bootstrap(a, b) == first
    assert pt.paired_bootstrap(a, b, rng=1) != first


def test_interval_against_explicit_resamples_of_the_same_draws():
    # The published stream: all queries of all resamples, drawn at once.
    a, b = np.random.default_rng(4).normal(0.5, 0.2, (2, 60))
    rows = np.random.default_rng(7).integers(0, 60, (500, 60))
    low, high = np.quantile((b - a)[rows].mean(axis=1), [0.025, 0.975])
    found = pt.paired_bootstrap(a, b, n_resamples=500, rng=7)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)


def test_lengths_and_settings_are_checked():
    with pytest.raises(pt.SettingError, match=r"'candidate' must be of shape \(2,\); got \(1,\)"):
        pt.paired_bootstrap([1, 2], [1])
    with pytest.raises(pt.SettingError, match="'confidence' must be between 0 and 1; got 95"):
        pt.paired_bootstrap([1], [1], confidence=95)


def test_infinite_values_are_refused():
    with pytest.raises(pt.SettingError, match="must be finite or NaN"):
        pt.paired_bootstrap([1, np.inf], [1, 2])


# -- the interval, by both methods


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize(
    "difference",
    [
        np.random.default_rng(0).exponential(1, 25) - 0.4,  # skewed: the two methods differ
        np.random.default_rng(1).integers(-1, 2, 40) * 1.0,  # 0/1 metrics: resampled means tie
        np.random.default_rng(2).normal(-3000, 50, 60),  # tokens saved: a mean far from 0
        np.array([0.1, 0.2, 0.3, 0.4, 5.0]),  # one query decides
    ],
    ids=["skewed", "flips", "tokens", "outlier"],
)
def test_both_methods_against_scipy(method, confidence, difference):
    found = paired_bootstrap(
        np.zeros(len(difference)), difference, n_resamples=20_000, confidence=confidence, method=method
    )
    low, high = scipy_interval(difference, method, confidence_level=confidence)
    error = 0.05 * (high - low)
    assert found.low == pytest.approx(low, abs=error)
    assert found.high == pytest.approx(high, abs=error)


@pytest.mark.parametrize("method", METHODS)
def test_both_methods_against_enumeration(method):
    # All 5^5 equally likely resamples of five differences, instead of random ones.
    difference = np.array([0.0, 1.0, 1.5, 4.0, 7.0])
    means = np.array([np.mean(d) for d in itertools.product(difference, repeat=5)])
    cuts = np.array([0.1, 0.9])
    if method == "bca":
        normal, centre = scipy_stats.norm, difference.mean()
        close = np.isclose(means, centre)
        bias = normal.ppf(((means < centre) & ~close).mean() + close.mean() / 2)
        left_out = np.array([np.delete(difference, i).mean() for i in range(5)])
        u = left_out.mean() - left_out
        skew = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
        z = bias + normal.ppf(cuts)
        cuts = normal.cdf(bias + z / (1 - skew * z))
    low, high = np.quantile(means, cuts)
    found = paired_bootstrap(np.zeros(5), difference, n_resamples=50_000, confidence=0.8, method=method)
    # The means of five lie 0.1 to 0.3 apart: Monte Carlo error may reach the next one.
    assert found.low == pytest.approx(low, abs=0.11)
    assert found.high == pytest.approx(high, abs=0.11)


def test_bca_corrects_bias_and_skew_as_scipy_does():
    # Few and skewed: leaving out either correction moves an end by more than 2 % of the width.
    difference = np.random.default_rng(9).exponential(1, 12) ** 2
    found = paired_bootstrap(np.zeros(12), difference, n_resamples=100_000, method="bca")
    low, high = scipy_interval(difference, "bca", n_resamples=100_000)
    assert found.low == pytest.approx(low, abs=0.008 * (high - low))
    assert found.high == pytest.approx(high, abs=0.008 * (high - low))


def test_bca_moves_the_interval_towards_the_long_tail():
    difference = np.random.default_rng(4).exponential(1, 30)
    plain = paired_bootstrap(np.zeros(30), difference)
    moved = paired_bootstrap(np.zeros(30), difference, method="bca")
    assert moved.low > plain.low
    assert moved.high > plain.high
    assert (moved.delta, moved.baseline, moved.n) == (plain.delta, plain.baseline, plain.n)


def test_bca_of_a_symmetric_sample_is_the_percentile_interval():
    half = np.random.default_rng(6).normal(0, 1, 100)
    difference = np.concatenate([half, -half])  # no skew; the bias is Monte Carlo error alone
    plain = paired_bootstrap(np.zeros(200), difference, n_resamples=20_000)
    moved = paired_bootstrap(np.zeros(200), difference, n_resamples=20_000, method="bca")
    assert moved.low == pytest.approx(plain.low, abs=0.01)
    assert moved.high == pytest.approx(plain.high, abs=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_a_thousand_intervals_cover_the_truth_about_as_often_as_they_say(method):
    # 1,000 samples of 150 queries with a true difference of 0.3, as columns.
    samples = np.random.default_rng(12).normal(0.3, 1, (150, 1000))
    found = paired_bootstrap_many(np.zeros_like(samples), samples, method=method)
    assert 0.93 <= np.mean([d.low <= 0.3 <= d.high for d in found]) <= 0.97


def test_bca_covers_a_skewed_truth_more_often():
    samples = np.random.default_rng(13).lognormal(0, 1, (30, 1000))
    covered = {}
    for method in METHODS:
        found = paired_bootstrap_many(np.zeros_like(samples), samples, method=method)
        covered[method] = np.mean([d.low <= np.exp(0.5) <= d.high for d in found])
    assert covered["bca"] > covered["percentile"] + 0.005


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shift", [0.0, 1.0, -0.1, 1e-9])
def test_a_constant_difference_is_one_point(shift, method):
    values = np.random.default_rng(0).random(40)
    found = paired_bootstrap(values, values + shift, method=method)
    assert found.low == found.high == found.delta
    assert found.delta == pytest.approx(shift, abs=1e-15)


def test_bca_ends_at_exactly_zero_where_nothing_was_gained():
    # A loss on one query of ten: 0 is the upper end, so no loss is measured.
    found = paired_bootstrap([1] * 10, [0] + [1] * 9, method="bca")
    assert found.high == 0
    assert not found.measurable


@pytest.mark.parametrize("n_resamples", [1, 2, 3])
def test_bca_with_hardly_any_draws_is_finite(n_resamples):
    found = paired_bootstrap([0, 0, 0], [0, 0, 9], n_resamples=n_resamples, method="bca")
    assert 0 <= found.low <= found.high <= 9


# -- many metrics


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("remembered", [0, resampling.REMEMBERED])
def test_many_equals_one_by_one_to_the_last_bit(method, remembered, monkeypatch):
    monkeypatch.setattr(resampling, "REMEMBERED", remembered)
    monkeypatch.setattr(resampling, "BLOCK", 10_000)  # several blocks
    generator = np.random.default_rng(8)
    a, b = generator.normal(5, 2, (120, 6)), generator.normal(5, 2, (120, 6))
    a[:, 1] = generator.integers(0, 2, 120)
    b[:, 1] = generator.integers(0, 2, 120)
    a[3, 2] = b[70, 2] = a[9, 3] = b[9, 3] = np.nan  # two pairs missing, then one
    a[:, 4] = np.nan  # not scored at all
    b[:, 5] = a[:, 5]
    given = {"n_resamples": 400, "confidence": 0.9, "rng": 3, "method": method}
    many = paired_bootstrap_many(a, b, **given)
    assert len(many) == 6
    assert all(same(many[i], paired_bootstrap(a[:, i], b[:, i], **given)) for i in range(6))
    assert [d.n for d in many] == [120, 120, 118, 119, 0, 120]
    assert (many[5].low, many[5].high) == (0, 0)
    monkeypatch.setattr(resampling, "GROUP", 500)  # one column at a time
    assert all(map(same, paired_bootstrap_many(a, b, **given), many))
    backwards = paired_bootstrap_many(a[:, ::-1], b[:, ::-1], **given)
    assert all(map(same, backwards[::-1], many))


def test_many_takes_frames_and_no_metrics():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [0.0, 1.0]}, index=["q1", "q2"])
    assert [d.delta for d in paired_bootstrap_many(frame, frame + 1)] == [1, 1]
    assert paired_bootstrap_many(np.empty((5, 0)), np.empty((5, 0))) == ()
    assert [d.n for d in paired_bootstrap_many(np.empty((0, 2)), np.empty((0, 2)))] == [0, 0]


def test_many_refuses_frames_that_do_not_match():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [0.0, 1.0]}, index=["q1", "q2"])
    with pytest.raises(pt.SettingError, match="must be of the baseline's columns; got"):
        paired_bootstrap_many(frame, frame[["y", "x"]])
    with pytest.raises(pt.SettingError, match="align them by id first"):
        paired_bootstrap_many(frame, frame[::-1])
    with pytest.raises(pt.SettingError, match=r"must be of shape \(n_queries, n_metrics\); got \(2,\)"):
        paired_bootstrap_many([1, 2], [1, 2])


# -- wins, ties and losses


def test_wins_ties_and_losses():
    a, b = [1.0, 1.0, 1.0, np.nan, 0.5], [2.0, 1.0, 0.0, 1.0, 0.6]
    assert win_tie_loss(a, b) == WinTieLoss(2, 1, 1, 4)
    assert win_tie_loss(a, b, higher_is_better=False) == WinTieLoss(1, 1, 2, 4)
    assert win_tie_loss(a, b, tolerance=0.1) == WinTieLoss(1, 2, 1, 4)
    assert win_tie_loss(a, b, tolerance=1) == WinTieLoss(0, 4, 0, 4)
    assert win_tie_loss(b, a) == WinTieLoss(1, 1, 2, 4)
    assert win_tie_loss([], []) == WinTieLoss(0, 0, 0, 0)
    assert not win_tie_loss([1], [2]).testable


def test_rounding_is_a_tie():
    assert win_tie_loss([0.3, 0.7], [0.1 + 0.2, 0.1 * 7]) == WinTieLoss(0, 2, 0, 2)
    assert win_tie_loss([0.3, 0.2], [0.4, 0.1], tolerance=0.1) == WinTieLoss(0, 2, 0, 2)


# -- what is refused, and what is silent


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_resamples": 0}, "paired_bootstrap: 'n_resamples' must be at least 1 draw; got 0."),
        ({"n_resamples": 1.5}, "paired_bootstrap: 'n_resamples' must be a whole number of draws; got 1.5."),
        ({"confidence": "0.9"}, "paired_bootstrap: 'confidence' must be between 0 and 1; got '0.9'."),
        ({"confidence": np.nan}, "paired_bootstrap: 'confidence' must be between 0 and 1; got nan."),
        ({"rng": -1}, "paired_bootstrap: 'rng' must be a whole number from 0 on; got -1."),
        ({"rng": None}, "paired_bootstrap: 'rng' must be a whole number from 0 on; got None."),
        (
            {"method": "BCa"},
            "paired_bootstrap: method 'BCa' is unknown; known: 'percentile', 'bca'.",
        ),
    ],
)
def test_settings_have_one_clear_error(setting, message):
    with pytest.raises(pt.SettingError) as caught:
        paired_bootstrap([1, 2], [1, 3], **setting)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (["a", "b"], r"'baseline' must be numbers \(NaN or None: not scored\); got \['a', 'b'\]"),
        ([[1], [2, 3]], "'baseline' must be numbers"),
        (np.array([1j, 2]), "'baseline' must be numbers"),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), "'baseline' must be numbers"),
        (None, r"'baseline' must be of shape \(n_queries,\); got \(\)"),
        ([[1, 2]], r"'baseline' must be of shape \(n_queries,\); got \(1, 2\)"),
        ([1, -np.inf], r"'baseline' must be finite or NaN \(not scored\); got inf"),
        ([1, 1e200], r"'baseline' must be at most 1e\+30 in size; got 1e\+200"),
    ],
)
def test_values_have_one_clear_error(values, rule):
    for call in (paired_bootstrap, win_tie_loss):
        with pytest.raises(pt.SettingError, match=f"^{call.__name__}: {rule}"):
            call(values, [1, 2])


def test_series_in_another_order_are_refused():
    a = pd.Series([1.0, 0.0], index=["q1", "q2"])
    with pytest.raises(pt.SettingError, match=r"must be of the baseline's index; got \['q2', 'q1'\]. Values"):
        paired_bootstrap(a, a[::-1])
    assert paired_bootstrap(a, a).delta == 0
    assert paired_bootstrap(a, a.to_numpy()).delta == 0


def test_wins_check_their_settings():
    with pytest.raises(pt.SettingError, match="'tolerance' must be a number from 0 on; got -1"):
        win_tie_loss([1], [1], tolerance=-1)
    with pytest.raises(pt.SettingError, match="'higher_is_better' must be True or False; got 'no'"):
        win_tie_loss([1], [1], higher_is_better="no")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "pair",
    [
        ([], []),
        ([1.0], [2.0]),
        ([np.nan] * 3, [1.0] * 3),
        ([None, None], [None, 1]),
        ([1, 1, 1], [1, 1, 1]),
        ([0.1] * 50, [0.3] * 50),
        ([0, 0], [0, 5e-324]),
        ([1e30, -1e30, 0], [-1e30, 1e30, 1e30]),
        ([True, False, True], [False, False, True]),
        (pd.Series([1, None, 3], dtype="Int64"), pd.Series([2, 2, 2], dtype="Int64")),
    ],
)
def test_degenerate_samples_never_warn(pair, method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = paired_bootstrap(*pair, method=method)
        wide = [np.asarray(side, np.float64)[:, None] for side in pair]
        assert same(one, paired_bootstrap_many(*wide, method=method)[0])
        win_tie_loss(*pair)
    assert one.testable == (one.low <= one.high)
