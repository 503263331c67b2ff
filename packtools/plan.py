"""The pipeline over arrays that one query and a whole run share: dedup, fit, order, ledger.

`packer` builds these arrays for one query and `prepared` for all of them, so that a pack, a slider
move and a sweep can't disagree. No text is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from packtools import kernels
from packtools.kernels import Bools, Floats, Ints, Layout, NearPairs
from packtools.ordering import arrangement, get_ordering
from packtools.schema import PackerConfig

KEPT, DUPLICATE, NEAR_DUPLICATE, OVER_BUDGET, EMPTY, ABSENT = range(6)
REASONS = (None, "duplicate_of", "near_duplicate_of", "over_budget", "empty", None)


@dataclass(frozen=True)
class Candidates:
    """Hold what dedup needs to know of each cell ``[rank, query]``.

    Parameters
    ----------
    there : ndarray of bool
        Whether the cell is a candidate at all (False is padding).
    empty : ndarray of bool
        A candidate without anything to pack.
    plain, guarded : ndarray of int32
        Rank of the first cell with equal text, -1 if none; without and with the guard.
    pairs : NearPairs
    """

    there: Bools
    empty: Bools
    plain: Ints
    guarded: Ints
    pairs: NearPairs


@dataclass(frozen=True)
class Sizes:
    """Hold the cost of each cell, alone and with the separator that follows it."""

    size: Ints
    joined: Ints


@dataclass(frozen=True)
class Survivors:
    """Hold what is left after dedup, and who was dropped for whom."""

    kept: Bools
    equal_to: Ints
    near: NearPairs
    near_used: kernels.Longs


def dedup(cells: Candidates, config: PackerConfig) -> Survivors:
    """Drop empty cells, exact duplicates, then near-duplicates of what stays."""
    kept = cells.there & ~cells.empty
    equal_to = np.full(kept.shape, -1, dtype=np.int32)
    if config.deduplicates:
        equal_to = cells.guarded if config.protect_differences else cells.plain
        kept = kept & (equal_to < 0)
    if config.jaccard_threshold is None:
        near, used = cells.pairs.at(np.inf), np.zeros(0, np.int64)
    else:
        near = cells.pairs.at(config.jaccard_threshold)
        kept, used = kernels.drop_near(kept, near, config.protect_differences)
    return Survivors(kept, equal_to, near, used)


def held_back(left: Survivors, config: PackerConfig) -> int:
    """Count the chunks that only `protect_differences` keeps, near-duplicates of a kept one."""
    if not config.protect_differences:
        return 0
    near = left.near
    both = near.differs & left.kept[near.upper, near.query] & left.kept[near.lower, near.query]
    cells = near.lower[both].astype(np.int64) * left.kept.shape[1] + near.query[both]
    return len(kernels.distinct(cells))


def fit(
    left: Survivors, sizes: Sizes, config: PackerConfig, limits: Sequence[int | None]
) -> tuple[Bools, Ints]:
    """Fill every limit at once; shapes ``(ranks, limits, queries)`` and ``(limits, queries)``."""
    bounds = [kernels.NO_BUDGET if n is None else min(n, kernels.NO_BUDGET - 1) for n in limits]
    ends_with = get_ordering(config.order).ends_with
    return kernels.greedy_fit(sizes.size, sizes.joined, left.kept, bounds, ends_with)


def lay_out(keep: Bools, config: PackerConfig) -> Layout:
    """Put kept cells ``[rank, query]`` into prompt order."""
    return kernels.lay_out(keep, partial(arrangement, config.order))


@dataclass(frozen=True)
class Settled:
    """Hold one query after its rendered text was counted.

    Parameters
    ----------
    ranks : list of int
        Kept, in prompt order.
    used : int
    backed_off : dict of int to int
        Ranks given up, and by how much the text was over with each.
    """

    ranks: list[int]
    used: int
    backed_off: dict[int, int]


def settle(
    kept: Sequence[int], config: PackerConfig, limit: int | None, measure: Callable[[list[int]], int]
) -> Settled:
    """Count what would be sent and, while it is over, give up the chunk that was taken last.

    Parameters
    ----------
    kept : sequence of int
        Ranks, best first.
    config : PackerConfig
    limit : int or None
    measure : callable
        Gives the cost of the rendered text of ranks in prompt order.
    """
    left = list(kept)
    backed_off: dict[int, int] = {}
    while True:
        ranks = [left[i] for i in arrangement(config.order, len(left))]
        used = measure(ranks)
        if limit is None or used <= limit or not left:
            return Settled(ranks, used, backed_off)
        backed_off[left.pop()] = used - limit


@dataclass(frozen=True)
class Ledger:
    """Hold the decision on every cell: reason code, rank of the keeper, similarity, overshoot."""

    reason: Ints
    of: Ints
    similarity: Floats
    over_by: Ints


def ledger(
    cells: Candidates,
    sizes: Sizes,
    left: Survivors,
    keep: Bools,
    config: PackerConfig,
    backed_off: dict[tuple[int, int], int],
) -> Ledger:
    """Say of each cell what became of it.

    Parameters
    ----------
    keep : ndarray of bool, shape (ranks, queries)
        Final, after any backing off.
    backed_off : dict of (rank, query) to int
    """
    shape = keep.shape
    reason = np.full(shape, ABSENT, dtype=np.int32)
    of = np.full(shape, -1, dtype=np.int32)
    similarity = np.full(shape, np.nan)
    over_by = np.zeros(shape, dtype=np.int32)
    reason[cells.there] = OVER_BUDGET
    reason[keep] = KEPT
    reason[cells.there & cells.empty] = EMPTY
    repeats = cells.there & ~cells.empty & (left.equal_to >= 0)
    reason[repeats], of[repeats], similarity[repeats] = DUPLICATE, left.equal_to[repeats], 1.0
    pairs, used = left.near, left.near_used
    at = (pairs.lower[used], pairs.query[used])
    reason[at], of[at], similarity[at] = NEAR_DUPLICATE, pairs.upper[used], pairs.jaccard[used]
    late = reason == OVER_BUDGET
    if late.any() and config.limit is not None:
        limit = min(config.limit, kernels.NO_BUDGET - 1)
        fitted = keep.copy()
        for cell in backed_off:
            fitted[cell] = True
        ends_with = get_ordering(config.order).ends_with
        over = kernels.overshoot(sizes.size, sizes.joined, fitted, limit, ends_with)
        over_by[late] = over[late]
        for cell, excess in backed_off.items():
            over_by[cell] = excess
    return Ledger(reason, of, similarity, over_by)


def keeper(book: Ledger, rank: int, query: int) -> int:
    """Follow "duplicate of" to the end: the rank of the cell that stands for this one."""
    while book.of[rank, query] >= 0:
        rank = int(book.of[rank, query])
    return rank
