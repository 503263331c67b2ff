"""Every packing decision as a small function over arrays; numpy only.

Arrays are rank-major and padded: ``[rank, query]``, rank 0 best. A loop over ranks, with queries
(and budgets) as the vector axes, is what makes a slider move cheap. One query is a run of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from packtools.arrays import Bools, Floats, Ints, Longs
from packtools.bills import Bill, KeyedBill, bill_for


def no_budget(dtype: npt.DTypeLike) -> int:
    """Give what stands for 'no budget': no pack reaches it, and one chunk more does not overflow."""
    return int(np.iinfo(dtype).max // 2)


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give the distinct values, ascending: a sort, which beats a hash table on large arrays."""
    if not len(values):
        return values
    ordered = np.sort(values)
    fresh = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]


def keep_first(key: Longs, present: Bools) -> Ints:
    """Find for each cell the first cell of its query with the same key.

    Parameters
    ----------
    key : ndarray of int64, shape (ranks, queries)
        Non-negative; equal keys are duplicates.
    present : ndarray of bool, same shape

    Returns
    -------
    ndarray of int32, same shape
        Rank of the first equal cell; -1 where there is none before or the cell is absent.
    """
    first = np.full(key.shape, -1, dtype=np.int32)
    if not present.any():
        return first
    rank, query = np.nonzero(present)
    group = query * (int(key.max()) + 1) + key[rank, query]
    order = np.argsort(group, kind="stable")  # stable: ranks stay ascending within a group
    sorted_group = group[order]
    opens = np.ones(len(order), dtype=bool)
    opens[1:] = sorted_group[1:] != sorted_group[:-1]
    leader = rank[order][np.maximum.accumulate(np.where(opens, np.arange(len(order)), 0))]
    repeats = order[~opens]
    first[rank[repeats], query[repeats]] = leader[~opens]
    return first


@dataclass(frozen=True)
class NearPairs:
    """Hold the near-duplicate candidates of every query, by the rank of the lower one.

    Parameters
    ----------
    query, upper, lower : ndarray of int32, shape (n_pairs,)
        Ranks ``upper < lower`` of one query; sorted by lower, then similarity (high first), upper.
    jaccard : ndarray of float64, shape (n_pairs,)
    differs : ndarray of bool, shape (n_pairs,)
        Whether the two differ in a number, a date or a negation.
    """

    query: Ints
    upper: Ints
    lower: Ints
    jaccard: Floats
    differs: Bools

    @classmethod
    def build(
        cls,
        query: npt.ArrayLike,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        jaccard: npt.ArrayLike,
        differs: npt.ArrayLike,
    ) -> NearPairs:
        """Sort pairs into the order that `drop_near` needs."""
        a, b = np.asarray(first, np.int32), np.asarray(second, np.int32)
        upper, lower = np.minimum(a, b), np.maximum(a, b)
        q, j = np.asarray(query, np.int32), np.asarray(jaccard, np.float64)
        order = np.lexsort((q, upper, -j, lower))
        return cls(q[order], upper[order], lower[order], j[order], np.asarray(differs, bool)[order])

    def at(self, threshold: float) -> NearPairs:
        """Give the pairs at or above a threshold."""
        chosen = self.jaccard >= threshold
        return NearPairs(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def drop_near(available: Bools, pairs: NearPairs, protect: bool) -> tuple[Bools, Longs]:
    """Drop, best rank first, each cell that repeats a cell still kept.

    Parameters
    ----------
    available : ndarray of bool, shape (ranks, queries)
    pairs : NearPairs
        Already cut at the threshold.
    protect : bool
        Whether pairs that differ are left alone.

    Returns
    -------
    kept : ndarray of bool, same shape
    used : ndarray of int64
        Places in `pairs` that made a drop: the most similar kept cell for each dropped one.
    """
    kept = available.copy()
    usable = np.flatnonzero(~pairs.differs) if protect else np.arange(len(pairs.query))
    lower = pairs.lower[usable]
    used: list[Longs] = []
    edges = np.searchsorted(lower, np.arange(available.shape[0] + 1))
    for rank in distinct(lower):
        here = usable[edges[rank] : edges[rank + 1]]
        query = pairs.query[here]
        live = here[kept[pairs.upper[here], query] & kept[rank, query]]
        kept[rank, pairs.query[live]] = False
        _, opens = np.unique(pairs.query[live], return_index=True)
        used.append(live[opens])
    return kept, np.concatenate(used) if used else np.zeros(0, np.int64)


def greedy_fit(
    size: Ints,
    joined: Ints,
    available: Bools,
    budgets: Sequence[int],
    ends_with: str,
    key: Ints | None = None,
) -> tuple[Bools, Ints]:
    """Fill budgets row by row, skipping what is too big and trying the next.

    Parameters
    ----------
    size : ndarray of int, shape (ranks, queries)
        Cost of each chunk when it is the last of the prompt. Its dtype is that of the sums.
    joined : ndarray of int, same shape
        Cost of each chunk with the separator that follows it; `size` itself without one.
    available : ndarray of bool, same shape
    budgets : sequence of int, length n_budgets
        `no_budget` for none.
    ends_with : {"new", "first", "second"}
        Which kept chunk ends the prompt: the one with the largest key, the smallest, or the second
        smallest. Decides whose separator is not paid.
    key : ndarray of int, shape (ranks, queries), or None
        Place of each chunk in the prompt before it is arranged; None is the row.

    Returns
    -------
    keep : ndarray of bool, shape (ranks, n_budgets, queries)
    used : ndarray of int, shape (n_budgets, queries)
        Cost of the kept chunks as rendered.

    Notes
    -----
    Cost: ranks steps over arrays of n_budgets x queries.
    """
    keep, limit, bill = _empty_prompts(size, joined, budgets, ends_with, key)
    for rank in range(size.shape[0]):
        fits = keep[rank]
        np.less_equal(bill.with_chunk(rank), limit, out=fits)
        fits &= available[rank]
        bill.add(rank, fits)
    return keep, bill.total()


def _empty_prompts(
    size: Ints, joined: Ints, budgets: Sequence[int], ends_with: str, key: Ints | None
) -> tuple[Bools, Ints, Bill | KeyedBill]:
    """Start a fit: nothing kept, the budgets as a column, the bill of each prompt."""
    shape = (len(budgets), size.shape[1])
    limit = np.asarray(budgets, dtype=size.dtype)[:, None]
    keep = np.zeros((size.shape[0], *shape), dtype=bool)
    return keep, limit, bill_for(size, joined, shape, ends_with, key)


def fit_until_full(
    size: Ints,
    joined: Ints,
    available: Bools,
    budgets: Sequence[int],
    ends_with: str,
    key: Ints | None = None,
) -> tuple[Bools, Ints]:
    """Fill budgets row by row and stop at the first chunk that does not fit.

    Parameters
    ----------
    size, joined, available, budgets, ends_with, key
        As in `greedy_fit`.

    Returns
    -------
    keep : ndarray of bool, shape (ranks, n_budgets, queries)
        The chunks that fit whole.
    crossing : ndarray of int64, shape (n_budgets, queries)
        The row that did not fit; -1 if all did.
    """
    keep, limit, bill = _empty_prompts(size, joined, budgets, ends_with, key)
    crossing = np.full(keep.shape[1:], -1, dtype=np.int64)
    for rank in range(size.shape[0]):
        fits = keep[rank]
        np.less_equal(bill.with_chunk(rank), limit, out=fits)
        here = available[rank] & (crossing < 0)
        crossing[here & ~fits] = rank
        fits &= here
        bill.add(rank, fits)
        if (crossing >= 0).all():
            break
    return keep, crossing


def overshoot(
    size: Ints, joined: Ints, keep: Bools, limit: int, ends_with: str, key: Ints | None = None
) -> Ints:
    """Say by how much each cell would exceed the budget when its turn comes.

    Parameters
    ----------
    size, joined : ndarray of int, shape (ranks, queries)
    keep : ndarray of bool, shape (ranks, queries)
        What `greedy_fit` kept under `limit`.
    limit : int
    ends_with : str
    key : ndarray of int, same shape, or None

    Returns
    -------
    ndarray of int, same shape
        Positive where the cell did not fit.
    """
    bill = bill_for(size, joined, (1, size.shape[1]), ends_with, key)
    over = np.empty_like(size)
    for rank in range(size.shape[0]):
        over[rank] = bill.with_chunk(rank)[0] - limit
        bill.add(rank, keep[rank][None, :])
    return over


@dataclass(frozen=True)
class Layout:
    """Hold the kept cells of a run, query by query, in prompt order.

    Parameters
    ----------
    query, rank : ndarray of int64, shape (n_kept,)
    start : ndarray of int64, shape (queries + 1,)
        ``rank[start[q]:start[q + 1]]`` are the ranks of query q, first in the prompt first.
    """

    query: Longs
    rank: Longs
    start: Longs


def lay_out(keep: Bools, arrange: Callable[[int], Longs], key: Ints | None = None) -> Layout:
    """Put the kept cells of each query into prompt order.

    Parameters
    ----------
    keep : ndarray of bool, shape (ranks, queries)
    key : ndarray of int, same shape, or None
        Sorts the cells of a query before they are arranged; None is the rank.
    arrange : callable
        ``arrange(n)[i]`` is the sorted place of the chunk that stands i-th, for n chunks.
    """
    query, rank = np.nonzero(keep.T)
    if key is not None:
        rank = rank[np.lexsort((key[rank, query], query))]
    count = np.bincount(query, minlength=keep.shape[1])
    start = np.concatenate([[0], np.cumsum(count)])
    moves = np.zeros((int(count.max(initial=0)) + 1,) * 2, dtype=np.int64)
    for n in np.unique(count):
        moves[n, :n] = arrange(int(n))
    nth = np.arange(len(query)) - start[query]
    return Layout(query, rank[start[query] + moves[count[query], nth]], start)


def running_starts(layout: Layout, size: Longs, gap: int) -> Longs:
    """Give the offset at which each laid-out piece starts, with `gap` units between pieces."""
    ends = np.cumsum(size + gap)
    before = ends - (size + gap)
    base = np.concatenate([before, [0]])[layout.start[:-1]] if len(size) else np.zeros(0, np.int64)
    return before - base[layout.query] if len(size) else before


def group_sum(values: npt.NDArray[np.generic], start: Longs) -> Longs:
    """Sum the values of each query."""
    total = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    sums: Longs = total[start[1:]] - total[start[:-1]]
    return sums
