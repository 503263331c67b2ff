"""Which sentences of a passage are taken under its own budget; numpy only, all passages at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from packtools.arrays import Bools, Floats, Ints, Longs

NEVER = -np.inf
"""The score of a sentence that may not be taken."""


@dataclass(frozen=True)
class Pairs:
    """Hold each sentence of each cell, cell by cell, and in which order it is tried.

    Parameters
    ----------
    start : ndarray of int64, shape (n_cells + 1,)
        ``sentence[start[c]:start[c + 1]]`` are the sentences of cell c, in text order.
    sentence : ndarray of int64, shape (n_pairs,)
    ranked : ndarray of int64, shape (n_pairs,)
        The pairs of each cell again, best first, those that may not be taken last.
    count : ndarray of int64, shape (n_cells,)
        How many of a cell may be taken.
    """

    start: Longs
    sentence: Longs
    ranked: Longs
    count: Longs


def spread(start: Longs, rows: Longs) -> tuple[Longs, Longs]:
    """Give the members of some rows of a ragged table, and where each row then starts.

    Examples
    --------
    >>> members, begin = spread(np.array([0, 2, 5]), np.array([1, 0]))
    >>> members.tolist(), begin.tolist()
    ([2, 3, 4, 0, 1], [0, 3, 5])
    """
    size = start[rows + 1] - start[rows]
    begin = np.concatenate([[0], np.cumsum(size)])
    return np.arange(begin[-1]) + np.repeat(start[rows] - begin[:-1], size), begin


def rank_pairs(start: Longs, sentence: Longs, score: Floats, first: Bools) -> Pairs:
    """Sort the pairs of each cell: those marked `first`, then by score, highest first.

    Ties keep text order. A score of `NEVER` bars a pair that is not marked.
    """
    cell = np.repeat(np.arange(len(start) - 1), np.diff(start))
    barred = (score == NEVER) & ~first
    ranked = np.lexsort((-score, ~first, cell))
    allowed = np.concatenate([[0], np.cumsum(~barred)])
    return Pairs(start, sentence, ranked, allowed[start[1:]] - allowed[start[:-1]])


@dataclass(frozen=True)
class Costs:
    """Hold what each sentence costs: as the first of its passage, and behind another one.

    Parameters
    ----------
    alone : ndarray of int64, shape (n_sentences,)
    joined : ndarray of int64, same shape
        With the white space before it.
    header : ndarray of int64, same shape
        The sentence that must come along, the header of a table row; -1 if none.
    atomic : ndarray of bool, same shape
        Sentences that are never cut: the rows of a table and its header.
    """

    alone: Longs
    joined: Longs
    header: Longs
    atomic: Bools


@dataclass(frozen=True)
class Choice:
    """Hold the sentences taken.

    Parameters
    ----------
    taken : ndarray of bool, shape (n_pairs,)
    size : ndarray of int64, shape (n_chosen_cells,)
    too_long : ndarray of int64, shape (n_chosen_cells,)
        The pair that does not fit and has to be cut, nothing else being taken; -1 is none.
    """

    taken: Bools
    size: Longs
    too_long: Longs


class _Bill:
    """Add up the taken sentences of each cell: each pays the white space before it but the first."""

    def __init__(self, costs: Costs, n_cells: int) -> None:
        self.costs = costs
        self.used = np.zeros(n_cells, dtype=np.int64)
        self.earliest = np.full(n_cells, np.iinfo(np.int64).max)
        self.unpaid = np.zeros(n_cells, dtype=np.int64)

    def untouched(self, cell: Longs) -> Bools:
        """Whether nothing of a cell is taken yet."""
        return np.asarray(self.earliest[cell] == np.iinfo(np.int64).max)

    def trial(self, cell: Longs, sentence: Longs, header: Longs) -> tuple[Longs, Longs, Longs, Longs]:
        """Give with one sentence more (and its header, -1 is none) all that `take` needs."""
        costs = self.costs
        first = np.where(header >= 0, header, sentence)
        used = self.used[cell] + costs.joined[sentence] + np.where(header >= 0, costs.joined[header], 0)
        early = first < self.earliest[cell]
        unpaid = np.where(early, costs.joined[first] - costs.alone[first], self.unpaid[cell])
        return used - unpaid, used, np.where(early, first, self.earliest[cell]), unpaid

    def take(self, cell: Longs, used: Longs, earliest: Longs, unpaid: Longs) -> None:
        self.used[cell], self.earliest[cell], self.unpaid[cell] = used, earliest, unpaid


def choose(pairs: Pairs, cells: Longs, costs: Costs, budget: int) -> Choice:
    """Take sentences, best first, while they fit; skip one that is too long and try the next.

    If already the first does not fit, it is to be cut, and nothing else is taken. A row of a table
    takes the header along, and is never cut: where both don't fit, the next sentence is tried.

    Parameters
    ----------
    pairs : Pairs
    cells : ndarray of int64
        Those to choose from.
    costs : Costs
    budget : int
        Of each cell.

    Notes
    -----
    Cost: one step for each sentence of the longest cell, over arrays of the cells that have as many.
    """
    n = len(cells)
    taken = np.zeros(len(pairs.sentence), dtype=bool)
    bill = _Bill(costs, n)
    too_long = np.full(n, -1, dtype=np.int64)
    begin, count = pairs.start[cells], pairs.count[cells]
    by_count = np.argsort(-count, kind="stable")
    reach = np.searchsorted(-count[by_count], -np.arange(int(count.max(initial=0))), side="left")
    for nth, active in enumerate(reach):
        cell = by_count[:active]
        cell = cell[too_long[cell] < 0]
        pair = pairs.ranked[begin[cell] + nth]
        fresh = ~taken[pair]
        cell, pair = cell[fresh], pair[fresh]
        sentence = pairs.sentence[pair]
        header = costs.header[sentence]
        at_header = pair - (sentence - header)
        header = np.where((header >= 0) & ~taken[np.where(header >= 0, at_header, 0)], header, -1)
        total, *after = bill.trial(cell, sentence, header)
        fits = total <= budget
        first = ~fits & bill.untouched(cell) & ~costs.atomic[sentence]
        too_long[cell[first]] = pair[first]
        bill.take(cell[fits], *(values[fits] for values in after))
        taken[pair[fits]] = True
        taken[at_header[fits & (header >= 0)]] = True
    return Choice(taken, bill.used - bill.unpaid, too_long)


def group_hash(values: Ints, start: Longs) -> Longs:
    """Sum 64-bit numbers of each group, modulo 2^64."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    sums: Longs = (total[start[1:]] - total[start[:-1]]).view(np.int64)
    return sums
