"""Is the difference real? Paired resampling over queries; judges any two runs.

`significance` has the tests with a p-value, `margins` non-inferiority, `pairing` the pairing by id.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from packtools import resampling
from packtools.arrays import Floats, Longs
from packtools.errors import SettingError, check_count, fail, is_number, unknown

__all__ = ["PairedDelta", "WinTieLoss", "paired_bootstrap", "paired_bootstrap_many", "win_tie_loss"]

RESAMPLES = 2000
METHODS = ("percentile", "bca")
LARGEST = 1e30
"""Size of a value up to which sums of its powers fit a float."""
Pair = tuple[Floats, Floats]


class OverPairs:
    """What every result over pairs of values of the same query has in common."""

    n: int

    @property
    def testable(self) -> bool:
        """Whether at least two queries are scored on both sides."""
        return self.n >= 2


@dataclass(frozen=True)
class PairedDelta(OverPairs):
    """Hold a paired difference of means and its interval.

    Parameters
    ----------
    baseline, candidate, delta : float
        Means over the pairs; delta is candidate - baseline. NaN without pairs.
    low, high : float
        Ends of the interval; NaN with fewer than two pairs.
    n : int
        Queries scored on both sides.
    confidence : float
    """

    baseline: float
    candidate: float
    delta: float
    low: float
    high: float
    n: int
    confidence: float

    @property
    def measurable(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.testable and (self.low > 0 or self.high < 0)


@dataclass(frozen=True)
class WinTieLoss(OverPairs):
    """Count the queries that the candidate wins, ties and loses; `n` is their sum."""

    wins: int
    ties: int
    losses: int
    n: int


def paired_bootstrap(
    baseline: npt.ArrayLike,
    candidate: npt.ArrayLike,
    *,
    n_resamples: int = RESAMPLES,
    confidence: float = 0.95,
    rng: int = 0,
    method: str = "percentile",
) -> PairedDelta:
    """Give the mean difference over queries and its bootstrap interval.

    1. Pairs with a value missing on either side are left out; `n` says how many are left.
    2. Queries are drawn with replacement, both sides of a query together.
    3. "percentile" cuts the same share off each end of the resampled means; "bca" moves the two cuts
       by the bias and the skew of the sample: better for few queries with a skewed difference.

    Parameters
    ----------
    baseline, candidate : array-like of float, shape (n_queries,)
        Values of the same queries in the same order; `pair_by_id` gives them. Two Series must have
        equal indexes.
    n_resamples : int, default 2000
    confidence : float, default 0.95
    rng : int, default 0
        Seed; the same seed gives the same interval.
    method : {"percentile", "bca"}, default "percentile"

    Returns
    -------
    PairedDelta

    Raises
    ------
    SettingError
        If the lengths differ, a value is not a finite number, or a setting breaks its rule.

    Notes
    -----
    Cost: one product of the draws (n_resamples x n) with the differences; the draws are made once
    for each n. Sums over the draws are exact, up to one rounding of each difference (1e-12 of the
    largest, for 7,000 queries). Differences that are all equal give [delta, delta].

    References
    ----------
    Efron, Tibshirani (1993), An Introduction to the Bootstrap, ch. 13; 14.3 for "bca".

    Examples
    --------
    >>> d = paired_bootstrap([1, 1, 1, 1], [1, 1, 0, 1])
    >>> d.delta, d.high, d.n
    (-0.25, 0.0, 4)
    """
    settings = _Bootstrap("paired_bootstrap", n_resamples, confidence, rng, method)
    a, b = numbers("paired_bootstrap", baseline, candidate)
    return _compare(a[:, None], b[:, None], settings)[0]


def paired_bootstrap_many(
    baseline: npt.ArrayLike,
    candidate: npt.ArrayLike,
    *,
    n_resamples: int = RESAMPLES,
    confidence: float = 0.95,
    rng: int = 0,
    method: str = "percentile",
) -> tuple[PairedDelta, ...]:
    """Compare many metrics at once, over the same draws of queries.

    Each metric gives what `paired_bootstrap` gives for its column, missing values included, to the last
    bit. Metrics with the same number of pairs share their draws and one product, so that thousands of
    columns (every setting of a sweep) are a matter of seconds.

    Parameters
    ----------
    baseline, candidate : array-like of float, shape (n_queries, n_metrics)
        NaN where a metric does not score a query. Two DataFrames must have equal indexes and columns.
    n_resamples, confidence, rng, method
        As in `paired_bootstrap`.

    Returns
    -------
    tuple of PairedDelta
        One for each column.

    Raises
    ------
    SettingError
        If the shapes differ, a value is not a finite number, or a setting breaks its rule.

    Examples
    --------
    >>> recall, tokens = paired_bootstrap_many([[1, 900], [1, 700]], [[1, 400], [1, 400]])
    >>> recall.delta, tokens.delta
    (0.0, -400.0)
    """
    where = "paired_bootstrap_many"
    settings = _Bootstrap(where, n_resamples, confidence, rng, method)
    return tuple(_compare(*numbers(where, baseline, candidate, axes=2), settings))


def win_tie_loss(
    baseline: npt.ArrayLike,
    candidate: npt.ArrayLike,
    *,
    higher_is_better: bool = True,
    tolerance: float = 0.0,
) -> WinTieLoss:
    """Count the queries on which the candidate wins, ties and loses.

    Parameters
    ----------
    baseline, candidate
        As in `paired_bootstrap`; pairs with a missing value are left out.
    higher_is_better : bool, default True
    tolerance : float, default 0.0
        Difference that is still a tie, in the metric's unit; rounding of the values is added.

    Returns
    -------
    WinTieLoss

    Raises
    ------
    SettingError
        As in `paired_bootstrap`.

    Examples
    --------
    >>> win_tie_loss([0.3, 0.2, 0.9], [0.1 + 0.2, 0.4, 0.1])
    WinTieLoss(wins=1, ties=1, losses=1, n=3)
    """
    check_flag("win_tie_loss", higher_is_better)
    check_size("win_tie_loss", "tolerance", tolerance)
    a, b = scored("win_tie_loss", baseline, candidate)
    if not higher_is_better:
        a, b = b, a
    limit = tolerance + rounding(a, b)
    wins, losses = int((b - a > limit).sum()), int((a - b > limit).sum())
    return WinTieLoss(wins, len(a) - wins - losses, losses, len(a))


@dataclass(frozen=True)
class _Bootstrap:
    """Hold the checked settings of a bootstrap."""

    where: str
    n_resamples: int
    confidence: float
    rng: int
    method: str

    def __post_init__(self) -> None:
        check_count(SettingError, self.where, "n_resamples", self.n_resamples, "draw")
        if not is_number(self.confidence) or not 0 < self.confidence < 1:
            fail(SettingError, self.where, "confidence", "between 0 and 1", self.confidence)
        check_rng(self.where, self.rng)
        if self.method not in METHODS:
            unknown(SettingError, self.where, "method", self.method, METHODS)


def check_rng(where: str, rng: object) -> None:
    """Refuse what is no seed."""
    if not is_number(rng) or not hasattr(rng, "__index__") or rng.__index__() < 0:
        fail(SettingError, where, "rng", "a whole number from 0 on", rng)


def check_flag(where: str, value: object) -> None:
    if not isinstance(value, bool | np.bool_):
        fail(SettingError, where, "higher_is_better", "True or False", value)


def check_size(where: str, parameter: str, value: Any) -> None:
    if not is_number(value) or not 0 <= value < math.inf:
        fail(SettingError, where, parameter, "a number from 0 on", value)


def numbers(where: str, baseline: Any, candidate: Any, *, axes: int = 1, other: str = "candidate") -> Pair:
    """Give both sides as arrays of one shape, with NaN for what is not scored."""
    for axis in ("index", "columns"):
        left: Any = getattr(baseline, axis, None)
        right: Any = getattr(candidate, axis, None)
        if hasattr(left, "equals") and hasattr(right, "equals") and not left.equals(right):
            rule, hint = f"of the baseline's {axis}", "Values are paired in order: align them by id first."
            fail(SettingError, where, other, rule, list(right), hint)
    a, b = as_floats(where, "baseline", baseline), as_floats(where, other, candidate)
    if a.ndim != axes:
        wanted = ("", "of shape (n_queries,)", "of shape (n_queries, n_metrics)")[axes]
        fail(SettingError, where, "baseline", wanted, a.shape)
    if a.shape != b.shape:
        fail(SettingError, where, other, f"of shape {a.shape}", b.shape)
    return a, b


def as_floats(where: str, parameter: str, values: object) -> Floats:
    """Give values as floats; None is NaN, text and what is not finite are refused."""
    found = None
    try:
        raw = np.asarray(values)
        said = raw.dtype.kind == "O" and any(isinstance(v, str | bytes) for v in raw.ravel())
        if raw.dtype.kind in "biufO" and not said:
            found = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    if found is None:
        fail(SettingError, where, parameter, "numbers (NaN or None: not scored)", values)
    largest = max(
        float(np.fmax.reduce(found, axis=None, initial=0)),
        -float(np.fmin.reduce(found, axis=None, initial=0)),
    )
    if largest == math.inf:
        fail(SettingError, where, parameter, "finite or NaN (not scored)", largest)
    if largest > LARGEST:
        fail(SettingError, where, parameter, f"at most {LARGEST:g} in size", largest)
    return found


def scored(where: str, baseline: object, candidate: object) -> Pair:
    """Give the values of the queries that are scored on both sides."""
    a, b = numbers(where, baseline, candidate)
    both = ~(np.isnan(a) | np.isnan(b))
    return a[both], b[both]


def in_groups(a: Floats, b: Floats, wide: int = 1) -> Iterator[tuple[Longs, Floats, Floats]]:
    """Give the columns with the same number of scored pairs, a row each: columns, both sides (rows, n).

    Only so many at a time that (rows, n) and (rows, `wide`) stay small.
    """
    both = ~(np.isnan(a) | np.isnan(b))
    pairs = np.count_nonzero(both, axis=0)
    for n in np.unique(pairs):
        alike = np.flatnonzero(pairs == n)
        size = max(resampling.GROUP // max(int(n), wide), 1)
        for begin in range(0, len(alike), size):
            columns = alike[begin : begin + size]
            mask, shape = both[:, columns].T, (len(columns), int(n))
            yield columns, a[:, columns].T[mask].reshape(shape), b[:, columns].T[mask].reshape(shape)


def rounding(a: Floats, b: Floats) -> Floats:
    """Give how much of each difference may be rounding of its two sides."""
    return 8 * np.finfo(np.float64).eps * np.maximum(np.abs(a), np.abs(b))


def moved(a: Floats, b: Floats) -> Floats:
    """Give the differences b - a, with 0 for those within rounding of their sides."""
    difference = b - a
    difference[np.abs(difference) <= rounding(a, b)] = 0
    return difference


def _compare(a: Floats, b: Floats, settings: _Bootstrap) -> list[PairedDelta]:
    """Compare the columns of both sides; those with the same number of pairs share one product."""
    found: dict[int, PairedDelta] = {}
    for columns, x, y in in_groups(a, b, settings.n_resamples):
        n = x.shape[1]
        parts = np.full((5, len(columns)), np.nan)
        if n:
            parts[:3] = x.mean(axis=1), y.mean(axis=1), (y - x).mean(axis=1)
        if n >= 2:
            parts[3:] = _ends(x, y, settings)
        for column, (base, here, delta, low, high) in zip(columns.tolist(), parts.T.tolist(), strict=True):
            found[column] = PairedDelta(base, here, delta, low, high, n, settings.confidence)
    return [found[column] for column in range(a.shape[1])]


def _ends(a: Floats, b: Floats, settings: _Bootstrap) -> Floats:
    """Cut the resampled means of each row at the two ends of its interval: shape (2, rows)."""
    difference = b - a
    sums = resampling.resampled_sums(difference.T, settings.n_resamples, settings.rng)
    cuts = [(1 - settings.confidence) / 2, (1 + settings.confidence) / 2]
    constant = np.ptp(difference, axis=1) <= rounding(a, b).max(axis=1)
    if settings.method == "bca":
        ends = np.zeros((2, len(sums)))
        for i in np.flatnonzero(~constant):
            ends[:, i] = np.quantile(sums[i], [_bca_cut(cut, difference[i], sums[i]) for cut in cuts])
    else:
        ends = np.quantile(sums, cuts, axis=1)
    ends /= a.shape[1]
    ends[:, constant] = difference.mean(axis=1)[constant]
    return ends


def _bca_cut(cut: float, difference: Floats, sums: Floats) -> float:
    """Move a cut by the bias of the resampled sums and by the jackknife's skew.

    The jackknife needs no loop: leaving a query out moves the mean by its own deviation / (n - 1).
    """
    normal = NormalDist()
    n, size = len(difference), np.abs(difference)
    tie = 1e-12 * size.sum() + n * n * 2.0**-resampling.EXACT * size.max()
    excess = sums - difference.sum()
    below = (np.count_nonzero(excess < -tie) + np.count_nonzero(excess <= tie)) / (2 * len(sums))
    bias = normal.inv_cdf(min(max(below, 0.5 / len(sums)), 1 - 0.5 / len(sums)))
    deviation = difference - difference.mean()
    deviation /= np.abs(deviation).max()
    skew = float((deviation**3).sum() / (6 * (deviation**2).sum() ** 1.5))
    moved = bias + normal.inv_cdf(cut)
    room = 1 - skew * moved
    return normal.cdf(bias + moved / room) if room > 0 else float(moved > 0)
