"""The pipeline over arrays that one query and a whole run share: dedup, fit, order.

`packer` builds these arrays for one query and `prepared` for all of them, so that a pack, a slider
move and a sweep can't disagree. No text is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from packtools import kernels
from packtools.arrays import Bools, Floats, Ints, Longs
from packtools.budget import get_fill
from packtools.config import PackerConfig
from packtools.kernels import Layout, NearPairs
from packtools.ordering import ANY_END, arrangement, get_ordering


@dataclass(frozen=True)
class Candidates:
    """Hold what dedup needs to know of each cell ``[rank, query]``.

    Parameters
    ----------
    there : ndarray of bool
        Whether the cell is a candidate at all (False is padding).
    empty : ndarray of bool
        A candidate without anything to pack.
    unselected : ndarray of bool
        A candidate of which the select step leaves nothing.
    plain, guarded : ndarray of int32
        Rank of the first cell with equal text, -1 if none; without and with the guard.
    pairs : NearPairs
    score : ndarray of float64
        Relevance, falling with the rank; NaN is padding.
    first : ndarray of bool or None
        Cells that are filled before all others.
    document : callable
        Gives, when it is asked for, the place of each cell's id in natural order.
    """

    there: Bools
    empty: Bools
    unselected: Bools
    plain: Ints
    guarded: Ints
    pairs: NearPairs
    score: Floats
    document: Callable[[], Longs]
    first: Bools | None = None

    def top(self, depth: int) -> Candidates:
        """Give the first ranks of every query."""
        near = self.pairs.lower < depth
        pairs = NearPairs(*(getattr(self.pairs, name)[near] for name in self.pairs.__dataclass_fields__))
        names = ("there", "empty", "unselected", "plain", "guarded")
        arrays = {name: getattr(self, name)[:depth] for name in (*names, "score")}
        return replace(self, **arrays, pairs=pairs, document=partial(_first_ranks, self.document, depth))


def _first_ranks(document: Callable[[], Longs], depth: int) -> Longs:
    return document()[:depth]


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
    near_used: Longs


def dedup(cells: Candidates, config: PackerConfig) -> Survivors:
    """Drop empty cells, exact duplicates, then near-duplicates of what stays."""
    kept = cells.there & ~cells.empty & ~cells.unselected
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

    step: Longs | None
    key: Longs | None

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
    if fill is not None or cells.first is not None:
        wish = np.zeros(sizes.size.shape) if fill is None else fill(cells.score, sizes.size)
        wish = np.where(cells.there, wish, -np.inf)
        if cells.first is not None:
            wish[cells.first] = np.inf
        step = np.argsort(-wish, axis=0, kind="stable")
    if by == "document":
        return Course(step, cells.document())
    if by == "fill" and step is not None:
        return Course(step, np.argsort(step, axis=0, kind="stable"))
    return Course(step, None)


def bill_key(way: Course, config: PackerConfig) -> Longs | None:
    """Give the key of each step, where the order of filling is not that of the key."""
    by = get_ordering(config.order).by
    if by == "document" and way.key is not None:
        return np.asarray(way.steps(way.key))
    return way.step if by == "rank" else None


def fit(
    left: Survivors, sizes: Sizes, config: PackerConfig, limits: Sequence[int | None], way: Course
) -> tuple[Bools, Longs]:
    """Fill every limit at once.

    Exact where counts add up across the separator; see `fill` for where they don't.

    Returns
    -------
    keep : ndarray of bool, shape (ranks, limits, queries)
    crossing : ndarray of int64, shape (limits, queries)
        With ``overflow="truncate"`` the rank that does not fit whole and ends the filling; it is not
        in `keep`. -1 is none.
    """
    most = kernels.no_budget(sizes.size.dtype)
    bounds = [most if n is None else min(n, most - 1) for n in limits]
    size = way.steps(sizes.size)
    joined = size if sizes.joined is sizes.size else way.steps(sizes.joined)
    given = size, joined, way.steps(left.kept), bounds, ends_with(config), bill_key(way, config)
    if config.overflow == "truncate":
        keep, crossing = kernels.fit_until_full(*given)
        if way.step is not None and len(way.step):
            ranks = np.take_along_axis(way.step, np.maximum(crossing, 0), axis=0)
            crossing = np.where(crossing >= 0, ranks, -1)
    else:
        keep, _ = kernels.greedy_fit(*given)
        crossing = np.full((len(bounds), size.shape[1]), -1, dtype=np.int64)
    if way.step is not None:
        keep = np.stack([way.ranks(keep[:, b]) for b in range(len(bounds))], axis=1)
    return keep, crossing


def ends_with(config: PackerConfig) -> str:
    end = get_ordering(config.order).ends_with
    return "new" if end == ANY_END else end  # those queries go through `fill`


def lay_out(keep: Bools, config: PackerConfig, way: Course) -> Layout:
    """Put kept cells ``[rank, query]`` into prompt order."""
    return kernels.lay_out(keep, partial(arrangement, config.order), way.key)


def rendered(size: Ints, joined: Ints, layout: Layout) -> Longs:
    """Sum what kept cells cost as rendered: all but the last of a query with their separator.

    Parameters
    ----------
    size, joined : ndarray of int, shape (n_kept,)
        In the order of `layout`.
    """
    total = kernels.group_sum(joined, layout.start)
    last = layout.start[np.flatnonzero(np.diff(layout.start)) + 1] - 1
    total[layout.query[last]] -= (joined - size)[last]
    return total
