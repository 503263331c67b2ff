"""Is the difference real? Paired resampling over queries; judges any two runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from packtools.arrays import Floats
from packtools.errors import SettingError, check_count, fail

__all__ = ["PairedDelta", "paired_bootstrap"]

RESAMPLES = 2000
BLOCK = 1 << 20
"""Draws made at a time."""
REMEMBERED = 1 << 24
"""Draws (64 MiB) up to which they are kept for the next metric."""


@dataclass(frozen=True)
class PairedDelta:
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
    def testable(self) -> bool:
        """Whether there are enough pairs for an interval."""
        return self.n >= 2

    @property
    def measurable(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.testable and (self.low > 0 or self.high < 0)


def paired_bootstrap(
    baseline: npt.ArrayLike,
    candidate: npt.ArrayLike,
    *,
    n_resamples: int = RESAMPLES,
    confidence: float = 0.95,
    rng: int = 0,
) -> PairedDelta:
    """Give the mean difference over queries and its percentile bootstrap interval.

    1. Pairs with a value missing on either side are left out; `n` says how many are left.
    2. Queries are drawn with replacement, both sides of a query together.

    Parameters
    ----------
    baseline, candidate : array-like of float, shape (n_queries,)
        Values of the same queries in the same order.
    n_resamples : int, default 2000
    confidence : float, default 0.95
    rng : int, default 0
        Seed; the same seed gives the same interval.

    Returns
    -------
    PairedDelta

    Raises
    ------
    SettingError
        If the lengths differ or a setting breaks its rule.

    Notes
    -----
    Cost: one product of the draws (n_resamples x n) with the differences; the draws are made once
    for each n. The interval of a sample that never differs is [0, 0].

    References
    ----------
    Efron, Tibshirani (1993), An Introduction to the Bootstrap, ch. 13.

    Examples
    --------
    >>> d = paired_bootstrap([1, 1, 1, 1], [1, 1, 0, 1])
    >>> d.delta, d.high, d.n
    (-0.25, 0.0, 4)
    """
    check_count(SettingError, "paired_bootstrap", "n_resamples", n_resamples, "draw")
    if not 0 < confidence < 1:
        fail(SettingError, "paired_bootstrap", "confidence", "between 0 and 1", confidence)
    a, b = np.asarray(baseline, np.float64), np.asarray(candidate, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        fail(SettingError, "paired_bootstrap", "candidate", f"of shape {a.shape}", b.shape)
    if np.isinf(a).any() or np.isinf(b).any():
        fail(SettingError, "paired_bootstrap", "candidate", "finite or NaN (not scored)", np.inf)
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    n = len(a)
    if n == 0:
        return PairedDelta(*(np.nan,) * 5, 0, confidence)
    difference = b - a
    low = high = np.nan
    if n > 1:
        means = _resampled_sums(difference.astype(np.float32), n_resamples, rng) / n
        low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return PairedDelta(
        float(a.mean()), float(b.mean()), float(difference.mean()), float(low), float(high), n, confidence
    )


def _resampled_sums(values: npt.NDArray[np.float32], n_resamples: int, rng: int) -> Floats:
    """Sum the values of each resample; draws that are small enough are remembered."""
    n = len(values)
    blocks = _drawn(n, n_resamples, rng) if n * n_resamples <= REMEMBERED else _blocks(n, n_resamples, rng)
    return np.concatenate([(block @ values).astype(np.float64) for block in blocks])


@lru_cache(maxsize=8)
def _drawn(n: int, n_resamples: int, rng: int) -> list[npt.NDArray[np.float32]]:
    return list(_blocks(n, n_resamples, rng))


def _blocks(n: int, n_resamples: int, rng: int) -> Iterator[npt.NDArray[np.float32]]:
    """Give how often each of n queries is drawn, some resamples at a time: shape (rows, n)."""
    generator = np.random.default_rng(rng)
    rows = max(BLOCK // n, 1)
    for begin in range(0, n_resamples, rows):
        size = min(rows, n_resamples - begin)
        drawn = generator.integers(0, n, (size, n)) + np.arange(size)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float32)
