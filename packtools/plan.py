"""The pipeline over arrays that one query and a whole run share: dedup, fit, order, ledger.

`packer` builds these arrays for one query and `prepared` for all of them, so that a pack, a slider
move and a sweep can't disagree. No text is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from packtools import kernels
from packtools.budget import get_fill
from packtools.kernels import Bools, Floats, Ints, Layout, NearPairs
from packtools.ordering import ANY_END, arrangement, get_ordering
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
    score : ndarray of float64
        Relevance, falling with the rank; NaN is padding.
    document : callable
        Gives, when it is asked for, the place of each cell's id in natural order.
    """

    there: Bools
    empty: Bools
    plain: Ints
    guarded: Ints
    pairs: NearPairs
    score: Floats
    document: Callable[[], kernels.Longs]


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


@dataclass(frozen=True)
class Course:
    """Hold in which order cells are filled, and what sorts the kept ones for the prompt.

    Parameters
    ----------
    step : ndarray of int64, shape (ranks, queries), or None
        ``step[k, q]`` is the rank that is tried k-th; None is rank order.
    key : ndarray of int64, shape (ranks, queries), or None
        Sorts kept cells before they are arranged; None is the rank.
    """

    step: kernels.Longs | None
    key: kernels.Longs | None

    def steps(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Put values by rank into the order of filling."""
        return values if self.step is None else np.take_along_axis(values, self.step, axis=0)

    def ranks(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Put values in the order of filling back by rank."""
        if self.step is None:
            return values
        out = np.empty_like(values)
        np.put_along_axis(out, self.step, values, axis=0)
        return out

    def filled(self, kept: Bools, query: int) -> list[int]:
        """Give the ranks that a mask of one query holds, in the order of filling."""
        ranks = np.arange(len(kept)) if self.step is None else self.step[:, query]
        return [int(r) for r in ranks[kept[ranks]]]

    def sort(self, ranks: Sequence[int], query: int) -> list[int]:
        """Sort the kept ranks of one query by the key."""
        if self.key is None:
            return sorted(ranks)
        key = self.key[:, query]
        return sorted(ranks, key=lambda r: (key[r], r))


def course(cells: Candidates, sizes: Sizes, config: PackerConfig) -> Course:
    """Give the course of a setting; the plain one, rank by rank, where nothing asks for another."""
    fill, by = get_fill(config.fill), get_ordering(config.order).by
    step = None
    if fill is not None:
        wish = np.where(cells.there, fill(cells.score, sizes.size), -np.inf)
        step = np.argsort(-wish, axis=0, kind="stable")
    if by == "document":
        return Course(step, cells.document())
    if by == "fill" and step is not None:
        return Course(step, np.argsort(step, axis=0, kind="stable"))
    return Course(step, None)


def _bill_key(way: Course, config: PackerConfig) -> kernels.Longs | None:
    """Give the key of each step, where the order of filling is not that of the key."""
    by = get_ordering(config.order).by
    if by == "document" and way.key is not None:
        return np.asarray(way.steps(way.key))
    return way.step if by == "rank" else None


def fit(
    left: Survivors, sizes: Sizes, config: PackerConfig, limits: Sequence[int | None], way: Course
) -> tuple[Bools, Ints]:
    """Fill every limit at once; shapes ``(ranks, limits, queries)`` and ``(limits, queries)``.

    Exact where counts add up across the separator; see `fill` for where they don't.
    """
    most = kernels.no_budget(sizes.size.dtype)
    bounds = [most if n is None else min(n, most - 1) for n in limits]
    size = way.steps(sizes.size)
    joined = size if sizes.joined is sizes.size else way.steps(sizes.joined)
    keep, used = kernels.greedy_fit(
        size, joined, way.steps(left.kept), bounds, _ends_with(config), _bill_key(way, config)
    )
    if way.step is not None:
        keep = np.stack([way.ranks(keep[:, b]) for b in range(len(bounds))], axis=1)
    return keep, used


def _ends_with(config: PackerConfig) -> str:
    ends_with = get_ordering(config.order).ends_with
    return "new" if ends_with == ANY_END else ends_with  # those queries go through `fill`


def lay_out(keep: Bools, config: PackerConfig, way: Course) -> Layout:
    """Put kept cells ``[rank, query]`` into prompt order."""
    return kernels.lay_out(keep, partial(arrangement, config.order), way.key)


def _placed(ranks: Sequence[int], query: int, config: PackerConfig, way: Course) -> list[int]:
    """Put the kept ranks of one query into prompt order."""
    ordered = way.sort(ranks, query)
    return [ordered[i] for i in arrangement(config.order, len(ordered))]


@dataclass(frozen=True)
class Filled:
    """Hold one query that was filled or checked on its rendered text.

    Parameters
    ----------
    ranks : list of int
        Kept, in prompt order.
    used : int
    over : dict of int to int
        Ranks given up, and by how much the text was over with each.
    """

    ranks: list[int]
    used: int
    over: dict[int, int]


def fill(
    ranks: Sequence[int], sizes: Sizes, query: int, config: PackerConfig, way: Course,
    measure: Callable[[list[int]], int], *, slack: int,
) -> Filled:  # fmt: skip
    """Fill one query by the count of what would be sent.

    For separators across which counts don't add up, and orderings whose last chunk is not known
    beforehand. The sum of the parts decides where it is far from the limit; near it the rendered
    text is counted.

    Parameters
    ----------
    ranks : sequence of int
        What dedup left, in the order of filling.
    sizes : Sizes
    query : int
        Column of `sizes`.
    config : PackerConfig
    way : Course
    measure : callable
        Gives the cost of the rendered text of ranks in prompt order.
    slack : int
        Units by which one join may change the sum of the parts; 0 if it is exact.

    Notes
    -----
    `over` of a chunk far over the limit is the sum of the parts, within `slack` a join.
    """
    limit = config.limit
    if limit is None:
        return settle(ranks, query, config, way, None, measure)
    size, joined = sizes.size[:, query].tolist(), sizes.joined[:, query].tolist()
    kept: list[int] = []
    over: dict[int, int] = {}
    for rank in ranks:
        trial = [*kept, rank]
        placed = _placed(trial, query, config, way)
        total = sum(joined[r] for r in placed[:-1]) + size[placed[-1]]
        doubt = slack * (len(trial) - 1)
        if doubt and total - doubt <= limit < total + doubt:
            total, doubt = measure(placed), 0
        if total - doubt <= limit:
            kept = trial
        else:
            over[rank] = total - limit
    settled = settle(kept, query, config, way, limit, measure)
    return Filled(settled.ranks, settled.used, over | settled.over)


def settle(
    kept: Sequence[int], query: int, config: PackerConfig, way: Course, limit: int | None,
    measure: Callable[[list[int]], int],
) -> Filled:  # fmt: skip
    """Count what would be sent and, while it is over, give up the chunk that was taken last."""
    left = list(kept)
    over: dict[int, int] = {}
    while True:
        ranks = _placed(left, query, config, way)
        used = measure(ranks)
        if limit is None or used <= limit or not left:
            return Filled(ranks, used, over)
        over[left.pop()] = used - limit


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
    way: Course,
    given_up: dict[tuple[int, int], int],
) -> Ledger:
    """Say of each cell what became of it.

    Parameters
    ----------
    keep : ndarray of bool, shape (ranks, queries)
        Final.
    given_up : dict of (rank, query) to int
        Cells that were decided on the rendered text, and by how much it was over.
    """
    shape = keep.shape
    reason = np.full(shape, ABSENT, dtype=np.int32)
    of = np.full(shape, -1, dtype=np.int32)
    similarity = np.full(shape, np.nan)
    over_by = np.zeros(shape, dtype=sizes.size.dtype)
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
        limit = min(config.limit, kernels.no_budget(sizes.size.dtype) - 1)
        size = way.steps(sizes.size)
        joined = size if sizes.joined is sizes.size else way.steps(sizes.joined)
        key = _bill_key(way, config)
        over = way.ranks(kernels.overshoot(size, joined, way.steps(keep), limit, _ends_with(config), key))
        over_by[late] = over[late]
        for cell, excess in given_up.items():
            over_by[cell] = excess
    return Ledger(reason, of, similarity, over_by)


def keeper(book: Ledger, rank: int, query: int) -> int:
    """Follow "duplicate of" to the end: the rank of the cell that stands for this one."""
    while book.of[rank, query] >= 0:
        rank = int(book.of[rank, query])
    return rank
