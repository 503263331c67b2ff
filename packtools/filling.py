"""Fill on the rendered text, query by query, where sums don't decide; and cut what crosses the budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from packtools.arrays import Bools, Longs
from packtools.config import PackerConfig
from packtools.ordering import arrangement
from packtools.plan import Course, Sizes, lay_out, rendered

Trim = tuple[int, int]
"""How many characters of a chunk stay, and their size: what `overflow="truncate"` leaves."""
Cutter = Callable[[int, int, bool], Trim]
"""``cutter(rank, room, is_last)`` cuts a chunk of one query to what is left of the budget."""
Measure = Callable[[list[int], dict[int, int]], int]
"""Gives the cost of the rendered text of ranks in prompt order, some cut to so many characters."""


def trim(
    keep: Bools, crossing: Longs, sizes: Sizes, config: PackerConfig, way: Course,
    cutter: Callable[[int, int, bool], Trim],
) -> dict[tuple[int, int], Trim]:  # fmt: skip
    """Cut the crossing cell of each query to what is left, and put it into `keep`.

    Parameters
    ----------
    keep : ndarray of bool, shape (ranks, queries)
        Changed in place.
    crossing : ndarray of int64, shape (queries,)
    cutter : callable
        ``cutter(query, room, is_last)`` cuts the crossing cell of a query.
    """
    some = np.flatnonzero(crossing >= 0)
    if not len(some) or config.limit is None:
        return {}
    keep[crossing[some], some] = True
    layout = lay_out(keep, config, way)
    at = layout.rank, layout.query
    total = rendered(sizes.size[at], sizes.joined[at], layout)
    out: dict[tuple[int, int], Trim] = {}
    crossed = crossing[some], some
    last = layout.rank[layout.start[some + 1] - 1] == crossed[0]
    own = np.where(last, sizes.size[crossed], sizes.joined[crossed])
    room = config.limit - (total[some] - own)
    for rank, query, space, ends in zip(*(v.tolist() for v in (*crossed, room, last)), strict=True):
        cut = cutter(query, space, ends)
        if cut[0]:
            out[rank, query] = cut
        else:
            keep[rank, query] = False
    return out


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
    trims : dict of int to Trim
        The rank that was cut to what was left, if any.
    """

    ranks: list[int]
    used: int
    over: dict[int, int]
    trims: dict[int, Trim]


@dataclass(frozen=True)
class One:
    """Hold what it takes to fill one query on its rendered text.

    Parameters
    ----------
    sizes : Sizes
    query : int
        Column of `sizes`.
    config : PackerConfig
    way : Course
    measure : callable
        See `Measure`.
    cutter : callable
        See `Cutter`.
    """

    sizes: Sizes
    query: int
    config: PackerConfig
    way: Course
    measure: Measure
    cutter: Cutter

    def placed(self, ranks: Sequence[int]) -> list[int]:
        """Put ranks into prompt order."""
        return _placed(ranks, self.query, self.config, self.way)

    def total(self, placed: Sequence[int]) -> int:
        """Sum the parts of a prompt."""
        size, joined = self.sizes.size[:, self.query], self.sizes.joined[:, self.query]
        return int(sum(int(joined[r]) for r in placed[:-1]) + int(size[placed[-1]]))


def fill(one: One, ranks: Sequence[int], *, slack: int) -> Filled:
    """Fill one query by the count of what would be sent.

    For separators across which counts don't add up, and orderings whose last chunk is not known
    beforehand. The sum of the parts decides where it is far from the limit; near it the rendered
    text is counted.

    Parameters
    ----------
    one : One
    ranks : sequence of int
        What dedup left, in the order of filling.
    slack : int
        Units by which one join may change the sum of the parts; 0 if it is exact.

    Notes
    -----
    `over` of a chunk far over the limit is the sum of the parts, within `slack` a join.
    """
    limit = one.config.limit
    if limit is None:
        return settle(one, ranks)
    kept: list[int] = []
    over: dict[int, int] = {}
    for rank in ranks:
        trial = [*kept, rank]
        placed = one.placed(trial)
        total = one.total(placed)
        doubt = slack * (len(trial) - 1)
        if doubt and total - doubt <= limit < total + doubt:
            total, doubt = one.measure(placed, {}), 0
        if total - doubt <= limit:
            kept = trial
        elif one.config.overflow == "truncate":
            return settle(one, kept, rank)
        else:
            over[rank] = total - limit
    settled = settle(one, kept)
    return Filled(settled.ranks, settled.used, over | settled.over, {})


def settle(one: One, kept: Sequence[int], crossing: int = -1) -> Filled:
    """Count what would be sent and, while it is over, give up the chunk that was taken last.

    A crossing chunk is cut to what is left first, and again while the text is over.
    """
    limit, left = one.config.limit, list(kept)
    if crossing >= 0 and limit is not None:
        placed = one.placed([*left, crossing])
        last = placed[-1] == crossing
        own = (one.sizes.size if last else one.sizes.joined)[crossing, one.query]
        room = limit - (one.total(placed) - int(own))
        cut = one.cutter(crossing, room, last)
        while cut[0]:
            used = one.measure(placed, {crossing: cut[0]})
            if used <= limit:
                return Filled(placed, used, {}, {crossing: cut})
            room -= used - limit
            cut = one.cutter(crossing, room, last)
    over: dict[int, int] = {}
    while True:
        ranks = one.placed(left)
        used = one.measure(ranks, {})
        if limit is None or used <= limit or not left:
            return Filled(ranks, used, over, {})
        over[left.pop()] = used - limit
