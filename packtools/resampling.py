"""Draws of queries and of signs, and sums over them that are exact.

Values are rounded once to whole multiples of a power of two, so small that no sum of them reaches
2**53. Every product and partial sum is then a whole number that a float holds exactly: a sum does not
depend on the order of its terms, on the columns beside it, on threads or on the linear algebra library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from packtools.arrays import Floats

__all__ = ["resampled_sums"]

Powers = npt.NDArray[np.int32]
Draws = npt.NDArray[np.uint8]
"""How often each query is drawn (or whether its sign is flipped), shape (some resamples, n)."""

BLOCK = 1 << 20
"""Draws made, and multiplied, at a time: 8 MiB as floats."""
CACHED = 1 << 15
"""Draws counted at a time: what a processor's cache holds."""
REMEMBERED = 1 << 24
"""Draws (16 MiB) up to which they are kept for the next call."""
GROUP = 1 << 21
"""Numbers (16 MiB) of the columns that are worked on at a time."""
EXACT = 53
"""Bits of a whole number that a float holds exactly."""


def resampled_sums(values: npt.ArrayLike, n_resamples: int, rng: int) -> Floats:
    """Sum each column over the same resamples of its rows.

    Use it for whatever is a sum or a ratio of sums: a mean over the queries that are scored is the sum
    of the values, NaN where not scored, over the sum of `~np.isnan(values)`, with the same `n_resamples`
    and `rng`.

    1. Each resample draws n rows with replacement; all columns see the same draws.
    2. Values are rounded to whole multiples of a power of two: at most 2 n / 2**53 of the largest value of
       the column (1e-12 for 7,000 rows). 0, 1, counts and other short numbers stay as they are.
    3. The sums of the rounded values are exact.

    Parameters
    ----------
    values : array-like of float or bool, shape (n, n_columns)
        Finite; NaN counts as 0.
    n_resamples : int
    rng : int
        Seed; the same seed and n give the same draws, whatever the values.

    Returns
    -------
    ndarray of float, shape (n_columns, n_resamples)
        A column gives the same bits alone as among others.

    Notes
    -----
    Cost: one product of the draws (n_resamples x n) with the columns. Beside the result it holds about
    100 MiB at most. Columns that are 0 everywhere cost nothing, few rows that are not 0 cost little.
    Up to 16.8 million draws are kept for the next call.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([[1.0, 0.1], [np.nan, 0.1], [3.0, 0.1]])
    >>> sums = resampled_sums(values, 1000, 0)
    >>> bool((sums[1] == sums[1, 0]).all()), float(sums[0].max())
    (True, 9.0)
    """
    array = np.asarray(values)
    n = len(array)
    sums = np.zeros((array.shape[1], n_resamples))
    live = np.flatnonzero(array.any(axis=0))
    width = max(GROUP // max(n, 1), 1)
    for begin in range(0, len(live), width):
        columns = live[begin : begin + width]
        whole, power = whole_numbers(array[:, columns].T)
        done = 0
        for found in products(whole, counts(n, n_resamples, rng)):
            sums[columns, done : done + found.shape[1]] = np.ldexp(found, power[:, None])
            done += found.shape[1]
    return sums


def whole_numbers(values: npt.ArrayLike) -> tuple[Floats, Powers]:
    """Give each row as whole numbers and the power of two that they count; NaN as 0.

    n of them, or one n times, sum to at most 2**53 in size.
    """
    whole = np.array(values, np.float64, order="C")
    whole[np.isnan(whole)] = 0
    _, above = np.frexp(np.abs(whole).max(axis=1, initial=0))
    power = above - EXACT + max(whole.shape[1] - 1, 0).bit_length()
    np.rint(np.ldexp(whole, -power[:, None], out=whole), out=whole)
    return whole, power


def products(whole: Floats, blocks: Iterable[Draws]) -> Iterator[Floats]:
    """Sum each row of whole numbers over each draw: shape (rows, some draws), exact, never -0."""
    n = whole.shape[1]
    used = np.flatnonzero(whole.any(axis=0))
    sparse = 4 * len(used) < n
    if sparse:
        whole = whole[:, used]
    size = max(BLOCK // max(n, 1), 1)
    floats = np.empty((size, whole.shape[1]))
    for block in blocks:
        for begin in range(0, len(block), size):
            part = block[begin : begin + size]
            chosen = floats[: len(part)]
            chosen[:] = part[:, used] if sparse else part
            yield whole @ chosen.T + 0.0


@contextmanager
def one_thread() -> Iterator[None]:
    """Let matrix products use one thread; not for several threads at a time.

    For answers within a second: where a browser or another program keeps the cores busy, the threads of
    a product wait for each other, up to twenty times as long as it takes alone.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


def counts(n: int, n_resamples: int, rng: int) -> Iterable[Draws]:
    """Give how often each of n queries is drawn, some resamples at a time; few draws are remembered."""
    if n * n_resamples <= REMEMBERED:
        return _remembered(n, n_resamples, rng)
    return _counts(n, n_resamples, rng)


@lru_cache(maxsize=8)
def _remembered(n: int, n_resamples: int, rng: int) -> list[Draws]:
    return list(_counts(n, n_resamples, rng))


def _counts(n: int, n_resamples: int, rng: int) -> Iterator[Draws]:
    """Draw; a byte is enough: no query is drawn 256 times of n (chance below 1e-500)."""
    generator = np.random.default_rng(rng)
    rows, few = max(BLOCK // n, 1), max(CACHED // n, 1)
    for begin in range(0, n_resamples, rows):
        block = np.empty((min(rows, n_resamples - begin), n), np.uint8)
        for i in range(0, len(block), few):
            part = block[i : i + few]
            drawn = generator.integers(0, n, part.shape) + np.arange(len(part))[:, None] * n
            part[:] = np.bincount(drawn.ravel(), minlength=part.size).reshape(part.shape)
        yield block


def flips(n: int, n_resamples: int, rng: int) -> Iterator[Draws]:
    """Give random flips (1) of the signs of n differences, some resamples at a time."""
    generator = np.random.default_rng(rng)
    rows = max(BLOCK // n, 1)
    for begin in range(0, n_resamples, rows):
        size = (min(rows, n_resamples - begin), -(-n // 32))
        words = generator.integers(0, 1 << 32, size, dtype=np.uint32)
        yield np.unpackbits(words.view(np.uint8), axis=1, count=n)


@lru_cache(maxsize=16)
def all_flips(n: int) -> Draws:
    """Give every pattern of the flips of n differences: shape (2**n, n)."""
    return ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(np.uint8)
