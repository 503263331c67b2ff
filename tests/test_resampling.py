"""Resampled sums against whole-number arithmetic, one column at a time, and explicit resamples."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from packtools import resampling
from packtools.resampling import resampled_sums


def drawn(n, n_resamples, rng):
    """The queries of each resample, all drawn at once."""
    return np.random.default_rng(rng).integers(0, n, (n_resamples, n))


def unit_of(column):
    """The smallest power of two of which 2**53 / n hold the largest value, n rounded up likewise."""
    largest, room = max(abs(Fraction(v)) for v in column), Fraction(2) ** 53
    for _ in range(math.ceil(math.log2(len(column)))):
        room /= 2
    unit = Fraction(2) ** -1200
    while largest >= room * unit:
        unit *= 2
    return unit


AWKWARD = {
    "thirds": [1 / 3, -2 / 3, 0.1, 0.2, 0.3, 1e-9, 7.0],
    "wide": [1e30, 1.0, -1e-30, 3e29, 12345.678, -1e30, 0.1],
    "tiny": [5e-324, 1e-310, -3e-320, 0.0, 2e-308, 1e-308, -1e-315],
    "powers": [1.0, 0.5, -0.25, 1.0, 1.0, 1 - 2**-53, -1.0],
    "cancelling": [1e16, -1e16, 1.0, 0.1, -0.1, 1e16, -1e16],
}


@pytest.mark.parametrize("column", AWKWARD.values(), ids=AWKWARD)
def test_sums_against_whole_numbers(column):
    unit = unit_of(column)
    whole = [round(Fraction(v) / unit) for v in column]  # half to even, as rint
    expected = [float(sum(whole[i] for i in row) * unit) for row in drawn(7, 50, 3).tolist()]
    found = resampled_sums(np.array(column)[:, None], 50, 3)
    assert found.tolist() == [expected]
    # What was rounded is little: n units of 2**-53 of the largest value, n times.
    exact = [float(sum(Fraction(column[i]) for i in row)) for row in drawn(7, 50, 3).tolist()]
    assert found[0] == pytest.approx(exact, abs=7 * float(unit) + 1e-300)


def test_sums_of_short_numbers_are_those_of_fractions():
    # Multiples of 1/1024 with 16 bits, 3,000 rows: nothing is rounded.
    values = np.random.default_rng(1).integers(-(1 << 16), 1 << 16, (3000, 3))
    found = resampled_sums(values / 1024, 20, 5)
    expected = [[Fraction(int(values[row, c].sum()), 1024) for row in drawn(3000, 20, 5)] for c in range(3)]
    assert [[Fraction(s) for s in column] for column in found.tolist()] == expected


@pytest.mark.parametrize("n", [2, 64, 65, 1000])
def test_the_largest_sum_is_exact(n):
    # All values just below a power of two: every sum is n times the same whole number.
    column = np.full((n, 1), 1 - 2.0**-53)
    bits = 53 - math.ceil(math.log2(n))
    assert set(resampled_sums(column, 5, 0).ravel().tolist()) == {
        float(n * round((1 - 2.0**-53) * 2**bits)) / 2**bits
    }


def columns():
    generator = np.random.default_rng(8)
    values = generator.normal(0, 1, (120, 9)) * 10.0 ** np.arange(-20, 16, 4)
    values[:, 3] = generator.integers(-1, 2, 120)
    values[:, 4] = 0
    values[3:, 5] = 0  # few rows that are not 0
    values[generator.random(120) < 0.2, 6] = np.nan
    return values


def test_a_column_has_the_same_bits_alone_and_among_others():
    values = columns()
    found = resampled_sums(values, 300, 1)
    for i in range(values.shape[1]):
        assert resampled_sums(values[:, [i]], 300, 1).tobytes() == found[i].tobytes()
    assert resampled_sums(values[:, ::-1], 300, 1)[::-1].tobytes() == found.tobytes()
    wide = np.hstack([values, np.random.default_rng(0).normal(size=(120, 400)) * 1e25])
    assert resampled_sums(wide, 300, 1)[:9].tobytes() == found.tobytes()
    assert resampled_sums(np.asfortranarray(values), 300, 1).tobytes() == found.tobytes()


@pytest.mark.parametrize(
    "sizes",
    [{"BLOCK": 1000, "CACHED": 130}, {"BLOCK": 240}, {"GROUP": 250}, {"REMEMBERED": 0}, {"BLOCK": 1}],
)
def test_sizes_of_work_change_no_bit(sizes, monkeypatch):
    whole = resampled_sums(columns(), 200, 2)
    resampling._remembered.cache_clear()
    for name, size in sizes.items():
        monkeypatch.setattr(resampling, name, size)
    assert resampled_sums(columns(), 200, 2).tobytes() == whole.tobytes()
    resampling._remembered.cache_clear()


def test_means_over_what_is_scored_against_explicit_resamples():
    # A share of two columns of sums, drawn together: the resampled mean with missing values.
    values = np.array([[1.0, 5.0], [np.nan, 2.0], [0.25, np.nan], [3.0, np.nan], [np.nan, 7.5]])
    total = resampled_sums(values, 400, 9)
    count = resampled_sums(~np.isnan(values), 400, 9)
    for k, rows in enumerate(drawn(5, 400, 9)):
        chosen = values[rows]
        assert total[:, k].tolist() == np.nansum(chosen, axis=0).tolist()
        assert count[:, k].tolist() == (~np.isnan(chosen)).sum(axis=0).tolist()


def test_draws_do_not_depend_on_how_many_are_made_at_a_time(monkeypatch):
    whole = np.concatenate(list(resampling._counts(30, 700, 2)))
    monkeypatch.setattr(resampling, "BLOCK", 3000)
    monkeypatch.setattr(resampling, "CACHED", 170)
    assert (np.concatenate(list(resampling._counts(30, 700, 2))) == whole).all()
    assert (whole == [np.bincount(row, minlength=30) for row in drawn(30, 700, 2)]).all()


def test_draws_are_uniform_and_complete():
    counts = np.concatenate(list(resampling._counts(7, 4000, 0))).astype(int)
    assert counts.shape == (4000, 7)
    assert (counts.sum(axis=1) == 7).all()
    # A query is left out of a resample with probability (1 - 1/7)^7.
    assert (counts == 0).mean() == pytest.approx((6 / 7) ** 7, abs=0.01)


def test_flips_are_fair_and_all_patterns_are_there_once():
    flips = np.concatenate(list(resampling.flips(33, 3000, 0)))
    assert flips.shape == (3000, 33)
    assert flips.mean(axis=0) == pytest.approx(0.5, abs=0.04)
    assert len(set(map(bytes, resampling.all_flips(6)))) == 64
    assert resampling.all_flips(0).shape == (1, 0)


def test_a_sum_of_nothing_is_a_plain_zero():
    found = resampled_sums([[-0.0, 1.0], [0.0, -1.0], [-0.0, 0.0]], 200, 0)
    assert found[0].tolist() == [0.0] * 200
    assert not np.signbit(found[found == 0]).any()
    assert resampled_sums(np.empty((0, 2)), 3, 0).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert resampled_sums(np.empty((4, 0)), 3, 0).shape == (0, 3)


def test_scaling_by_a_power_of_two_scales_the_sums():
    values = columns()
    assert (resampled_sums(values * 2.0**-30, 100, 4) == resampled_sums(values, 100, 4) * 2.0**-30).all()
