"""What became of every candidate, and why: the same arrays for one query and for a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from packtools import kernels
from packtools.arrays import Bools, Floats, Ints
from packtools.config import PackerConfig
from packtools.filling import Trim
from packtools.plan import Candidates, Course, Sizes, Survivors, bill_key, ends_with

KEPT, DUPLICATE, NEAR_DUPLICATE, OVER_BUDGET, EMPTY, NOT_SELECTED, ABSENT = range(7)
REASONS = (None, "duplicate_of", "near_duplicate_of", "over_budget", "empty", "not_selected", None)


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
    trims: dict[tuple[int, int], Trim],
) -> Ledger:
    """Say of each cell what became of it.

    Parameters
    ----------
    keep : ndarray of bool, shape (ranks, queries)
        Final.
    given_up : dict of (rank, query) to int
        Cells that were decided on the rendered text, and by how much it was over.
    trims : dict of (rank, query) to Trim
        Cells that were cut to what was left.

    Notes
    -----
    `over_by` is 0 for a cell that was not tried, because packing had ended at one that did not fit.
    """
    shape = keep.shape
    reason = np.full(shape, ABSENT, dtype=np.int32)
    of = np.full(shape, -1, dtype=np.int32)
    similarity = np.full(shape, np.nan)
    over_by = np.zeros(shape, dtype=sizes.size.dtype)
    reason[cells.there] = OVER_BUDGET
    reason[keep] = KEPT
    reason[cells.there & cells.unselected] = NOT_SELECTED
    reason[cells.there & cells.empty] = EMPTY
    repeats = cells.there & ~cells.empty & (left.equal_to >= 0)
    reason[repeats], of[repeats], similarity[repeats] = DUPLICATE, left.equal_to[repeats], 1.0
    pairs, used = left.near, left.near_used
    at = (pairs.lower[used], pairs.query[used])
    reason[at], of[at], similarity[at] = NEAR_DUPLICATE, pairs.upper[used], pairs.jaccard[used]
    late = reason == OVER_BUDGET
    if late.any() and config.limit is not None:
        limit = min(config.limit, kernels.no_budget(sizes.size.dtype) - 1)
        sizes = _trimmed(sizes, trims)
        size = way.steps(sizes.size)
        joined = size if sizes.joined is sizes.size else way.steps(sizes.joined)
        key = bill_key(way, config)
        over = way.ranks(kernels.overshoot(size, joined, way.steps(keep), limit, ends_with(config), key))
        over_by[late] = over[late]
        if config.overflow == "truncate":
            over_by[late & _after_the_end(late, trims, way)] = 0
        for cell, excess in given_up.items():
            over_by[cell] = excess
    return Ledger(reason, of, similarity, over_by)


def _after_the_end(late: Bools, trims: dict[tuple[int, int], Trim], way: Course) -> Bools:
    """Mark what comes, in the order of filling, after the first cell that did not fit whole."""
    ends = late.copy()
    for cell in trims:
        ends[cell] = True
    steps = way.steps(ends)
    after = np.zeros_like(steps)
    after[1:] = np.logical_or.accumulate(steps, axis=0)[:-1]
    return np.asarray(way.ranks(after))


def _trimmed(sizes: Sizes, trims: dict[tuple[int, int], Trim]) -> Sizes:
    """Give the sizes with those of cut cells in place."""
    if not trims:
        return sizes
    size = sizes.size.copy()
    for cell, (_, n) in trims.items():
        size[cell] = n
    return Sizes(size, size if sizes.joined is sizes.size else size + (sizes.joined - sizes.size))


def keeper(book: Ledger, rank: int, query: int) -> int:
    """Follow "duplicate of" to the end: the rank of the cell that stands for this one."""
    while book.of[rank, query] >= 0:
        rank = int(book.of[rank, query])
    return rank
