"""The paired bootstrap against scipy, theory and degenerate samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

import packtools as pt
from packtools import stats


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
    monkeypatch.setattr(stats, "REMEMBERED", 0)
    assert pt.paired_bootstrap(a, b) == first
    assert pt.paired_bootstrap(a, b, rng=1) != first


def test_draws_are_uniform_and_complete():
    counts = np.concatenate(list(stats._blocks(7, 4000, 0)))
    assert counts.shape == (4000, 7)
    assert (counts.sum(axis=1) == 7).all()
    # A query is left out of a resample with probability (1 - 1/7)^7.
    assert (counts == 0).mean() == pytest.approx((6 / 7) ** 7, abs=0.01)


def test_lengths_and_settings_are_checked():
    with pytest.raises(pt.SettingError, match=r"'candidate' must be of shape \(2,\); got \(1,\)"):
        pt.paired_bootstrap([1, 2], [1])
    with pytest.raises(pt.SettingError, match="'confidence' must be between 0 and 1; got 95"):
        pt.paired_bootstrap([1], [1], confidence=95)


def test_infinite_values_are_refused():
    with pytest.raises(pt.SettingError, match="must be finite or NaN"):
        pt.paired_bootstrap([1, np.inf], [1, 2])
