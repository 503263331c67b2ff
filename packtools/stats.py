"""Is the difference real? Paired resampling over queries; judges any two runs.

`significance` has the tests with a p-value, non-inferiority, and the pairing by query id.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from packtools.arrays import Floats
from packtools.errors import SettingError, check_count, fail, is_number, unknown

__all__ = ["PairedDelta", "WinTieLoss", "paired_bootstrap", "paired_bootstrap_many", "win_tie_loss"]

RESAMPLES = 2000
METHODS = ("percentile", "bca")
BLOCK = 1 << 20
"""Draws multiplied at a time."""
CACHED = 1 << 15
"""Draws made at a time: what a processor's cache holds."""
REMEMBERED = 1 << 24
"""Draws (64 MiB) up to which they are kept for the next metric."""
LARGEST = 1e30
"""Size up to which sums of values fit 32-bit floats."""
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
    for each n. The interval of a sample that never differs is [0, 0]; "bca" gives [delta, delta] for
    differences that are all equal, "percentile" the same within 32-bit rounding.

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
    return _compare([scored("paired_bootstrap", baseline, candidate)], settings)[0]


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

    Each metric gives what `paired_bootstrap` gives for its column, missing values included; draws are
    made once for each number of pairs, whatever the number of metrics.

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
    a, b = numbers(where, baseline, candidate, axes=2)
    return tuple(_compare([_both(x, y) for x, y in zip(a.T, b.T, strict=True)], settings))


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


def numbers(where: str, baseline: Any, candidate: Any, *, axes: int = 1) -> Pair:
    """Give both sides as arrays of one shape, with NaN for what is not scored."""
    for axis in ("index", "columns"):
        left: Any = getattr(baseline, axis, None)
        right: Any = getattr(candidate, axis, None)
        if hasattr(left, "equals") and hasattr(right, "equals") and not left.equals(right):
            rule, hint = f"of the baseline's {axis}", "Values are paired in order: align them by id first."
            fail(SettingError, where, "candidate", rule, list(right), hint)
    a, b = as_floats(where, "baseline", baseline), as_floats(where, "candidate", candidate)
    if a.ndim != axes:
        wanted = ("", "of shape (n_queries,)", "of shape (n_queries, n_metrics)")[axes]
        fail(SettingError, where, "baseline", wanted, a.shape)
    if a.shape != b.shape:
        fail(SettingError, where, "candidate", f"of shape {a.shape}", b.shape)
    return a, b


def as_floats(where: str, parameter: str, values: object) -> Floats:
    """Give values as floats; None is NaN, text and what is not finite are refused."""
    found = None
    try:
        raw = np.asarray(values)
        if raw.dtype.kind in "biufO":
            found = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    if found is None:
        fail(SettingError, where, parameter, "numbers (NaN or None: not scored)", values)
    largest = float(np.abs(found[~np.isnan(found)]).max(initial=0.0))
    if largest == math.inf:
        fail(SettingError, where, parameter, "finite or NaN (not scored)", largest)
    if largest > LARGEST:
        fail(SettingError, where, parameter, f"at most {LARGEST:g} in size", largest)
    return found


def scored(where: str, baseline: object, candidate: object) -> Pair:
    """Give the values of the queries that are scored on both sides."""
    return _both(*numbers(where, baseline, candidate))


def _both(a: Floats, b: Floats) -> Pair:
    both = ~(np.isnan(a) | np.isnan(b))
    return a[both], b[both]


def rounding(a: Floats, b: Floats) -> Floats:
    """Give how much of each difference may be rounding of its two sides."""
    return 8 * np.finfo(np.float64).eps * np.maximum(np.abs(a), np.abs(b))


def constant(a: Floats, b: Floats) -> bool:
    """Whether all differences are equal, up to rounding."""
    return bool(np.ptp(b - a) <= rounding(a, b).max())


def _compare(pairs: Sequence[Pair], settings: _Bootstrap) -> list[PairedDelta]:
    """Compare each pair of sides; those of the same length share their draws."""
    members: dict[int, list[int]] = defaultdict(list)
    for i, (a, _) in enumerate(pairs):
        members[len(a)].append(i)
    ends = [(math.nan, math.nan)] * len(pairs)
    exact = np.dtype(np.float32 if settings.method == "percentile" else np.float64)
    for n in members.keys() - {0, 1}:
        values = [(pairs[i][1] - pairs[i][0]).astype(exact) for i in members[n]]
        sums = _resampled_sums(values, settings.n_resamples, settings.rng)
        for i, found in zip(members[n], sums, strict=True):
            ends[i] = _ends(*pairs[i], found, settings)
    return [_delta(*pair, *end, settings.confidence) for pair, end in zip(pairs, ends, strict=True)]


def _delta(a: Floats, b: Floats, low: float, high: float, confidence: float) -> PairedDelta:
    if len(a) == 0:
        return PairedDelta(*(math.nan,) * 5, 0, confidence)
    means = float(a.mean()), float(b.mean()), float((b - a).mean())
    return PairedDelta(*means, low, high, len(a), confidence)


def _ends(a: Floats, b: Floats, sums: Floats, settings: _Bootstrap) -> tuple[float, float]:
    """Cut the resampled sums of one metric at the two ends of its interval."""
    cuts = [(1 - settings.confidence) / 2, (1 + settings.confidence) / 2]
    if settings.method == "bca":
        if constant(a, b):
            return (float((b - a).mean()),) * 2
        cuts = [_bca_cut(cut, b - a, sums) for cut in cuts]
    low, high = np.quantile(sums / len(a), cuts)
    return float(low), float(high)


def _bca_cut(cut: float, difference: Floats, sums: Floats) -> float:
    """Move a cut by the bias of the resampled sums and by the jackknife's skew.

    The jackknife needs no loop: leaving a query out moves the mean by its own deviation / (n - 1).
    """
    normal = NormalDist()
    tie = 1e-12 * np.abs(difference).sum()
    excess = sums - difference.sum()
    below = (np.count_nonzero(excess < -tie) + np.count_nonzero(excess <= tie)) / (2 * len(sums))
    bias = normal.inv_cdf(min(max(below, 0.5 / len(sums)), 1 - 0.5 / len(sums)))
    deviation = difference - difference.mean()
    deviation /= np.abs(deviation).max()
    skew = float((deviation**3).sum() / (6 * (deviation**2).sum() ** 1.5))
    moved = bias + normal.inv_cdf(cut)
    room = 1 - skew * moved
    return normal.cdf(bias + moved / room) if room > 0 else float(moved > 0)


def _resampled_sums(values: Sequence[npt.NDArray[Any]], n_resamples: int, rng: int) -> Floats:
    """Sum each metric over each resample: shape (metrics, resamples); few draws are remembered."""
    n = len(values[0])
    blocks = _drawn(n, n_resamples, rng) if n * n_resamples <= REMEMBERED else _blocks(n, n_resamples, rng)
    sums = []
    for counts in blocks:
        block = counts.astype(values[0].dtype, copy=False)
        # Metric by metric: one product with all would round a metric by its neighbours.
        sums.append([(block @ metric).astype(np.float64) for metric in values])
    return np.concatenate(sums, axis=1)


@lru_cache(maxsize=8)
def _drawn(n: int, n_resamples: int, rng: int) -> list[npt.NDArray[np.float32]]:
    return list(_blocks(n, n_resamples, rng))


def _blocks(n: int, n_resamples: int, rng: int) -> Iterator[npt.NDArray[np.float32]]:
    """Give how often each of n queries is drawn, some resamples at a time: shape (rows, n)."""
    generator = np.random.default_rng(rng)
    rows, few = max(BLOCK // n, 1), max(CACHED // n, 1)
    for begin in range(0, n_resamples, rows):
        block = np.empty((min(rows, n_resamples - begin), n), np.float32)
        for i in range(0, len(block), few):
            part = block[i : i + few]
            drawn = generator.integers(0, n, part.shape) + np.arange(len(part))[:, None] * n
            part[:] = np.bincount(drawn.ravel(), minlength=part.size).reshape(part.shape)
        yield block
