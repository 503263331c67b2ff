"""What is left of each cell ``[rank, query]`` after the select step: its text, its size, what it repeats."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from packtools import kernels
from packtools.arrays import Bools, Ints, Longs
from packtools.config import PackerConfig
from packtools.corpus import Corpus
from packtools.counters import separator_cost, starts_loosely
from packtools.cutting import cut_length
from packtools.dedup import exact_groups
from packtools.picking import group_hash, spread
from packtools.plan import Sizes
from packtools.text import bag_hashes, text_key

Slices = list[tuple[int, int]]
REMEMBERED = 50_000
"""Texts put together from slices that are kept."""


@dataclass(frozen=True)
class Selected:
    """Hold what is left of each cell: the whole text, some sentences of it, a cut start, or nothing.

    Parameters
    ----------
    corpus : Corpus
    config : PackerConfig
        Of which only what the select step looks at matters.
    passage : ndarray of int32, shape (ranks, queries)
        Place of each cell's text in `corpus`; -1 is padding.
    slot : ndarray of int32, same shape
        Place in what follows; -1 is a text that is left whole.
    start : ndarray of int64, shape (n_slots + 1,)
    sentence : ndarray of int64
        ``sentence[start[i]:start[i + 1]]`` are those taken in slot i, in text order.
    cut : ndarray of int64, shape (n_slots, 2)
        For a slot without sentences the one slice that is left; -1, -1 is nothing.
    size : ndarray of int64, shape (n_slots,)
        In the unit of `config`.
    """

    corpus: Corpus
    config: PackerConfig
    passage: Ints
    slot: Ints
    start: Longs
    sentence: Longs
    cut: Longs
    size: Longs
    _behind: dict[str, dict[tuple[int, bool], int]] = field(default_factory=dict)
    _texts: dict[tuple[int, int], str] = field(default_factory=dict)

    @property
    def n_slots(self) -> int:
        """How many cells are not left whole."""
        return len(self.size)

    @cached_property
    def cells(self) -> tuple[Longs, Longs]:
        """Rank and query of each slot."""
        rank, query = np.nonzero(self.slot >= 0)
        return rank, query

    @cached_property
    def nothing(self) -> Bools:
        """Cells of which no text is left."""
        out = np.zeros(self.slot.shape, dtype=bool)
        out[self.cells] = (np.diff(self.start) == 0) & (self.cut[:, 1] <= self.cut[:, 0])
        return out

    def slice_table(self, rank: Ints, query: Ints, most: Longs | None = None) -> tuple[Longs, Longs, Longs]:
        """Give what is left of some cells as slices of their texts.

        Put together, the slices of a cell are what is packed of it: each keeps the white space that
        stands before it in the text, but for the first.

        Parameters
        ----------
        rank, query : ndarray of int, shape (n_cells,)
        most : ndarray of int64, shape (n_cells,), or None
            How many characters of each are wanted; None is all.

        Returns
        -------
        cell, begin, end : ndarray of int64
            Place of the cell in `rank`, ascending, and the offsets of each slice.
        """
        slot = self.slot[rank, query].astype(np.int64)
        whole, cut = np.flatnonzero(slot < 0), np.flatnonzero(slot >= 0)
        length = self.corpus.n_chars[self.passage[rank[whole], query[whole]]]
        taken, cell = self._runs(slot[cut])
        pieces = [
            (whole, np.zeros(len(whole), dtype=np.int64), length),
            (cut, self.cut[slot[cut], 0], self.cut[slot[cut], 1]),
            (cut[cell], *taken),
        ]
        cells, begin, end = (np.concatenate(values) for values in zip(*pieces, strict=True))
        some = np.flatnonzero(end > begin)
        some = some[np.argsort(cells[some], kind="stable")]
        cells, begin, end = cells[some], begin[some], end[some]
        if most is None:
            return cells, begin, end
        before = np.concatenate([[0], np.cumsum(end - begin)])[:-1]
        before -= before[np.searchsorted(cells, cells)]  # characters of the cell before each slice
        end = np.minimum(end, begin + most[cells] - before)
        some = np.flatnonzero(end > begin)
        return cells[some], begin[some], end[some]

    def _runs(self, slots: Longs) -> tuple[tuple[Longs, Longs], Longs]:
        """Join neighbouring sentences of each slot: begin and end of every run, and whose it is."""
        member, start = spread(self.start, slots)
        if not len(member):
            return (member, member), member
        table = self.corpus.table(self.config.splitter)
        sentence = self.sentence[member]
        cell = np.repeat(np.arange(len(slots)), np.diff(start))
        first = np.zeros(len(member), dtype=bool)
        first[start[:-1][np.diff(start) > 0]] = True
        opens = first.copy()
        opens[1:] |= sentence[1:] != sentence[:-1] + 1
        begin = np.where(first, table.begin[sentence], table.gap[sentence])[opens]
        closes = np.append(opens[1:], True)
        return (begin, table.end[sentence][closes]), cell[opens]

    def slices(self, rank: int, query: int, most: int | None = None) -> Slices:
        """Give what is left of one cell: see `slice_table`."""
        wanted = None if most is None else np.array([most])
        _, begin, end = self.slice_table(np.array([rank]), np.array([query]), wanted)
        return list(zip(begin.tolist(), end.tolist(), strict=True))

    def texts(self, rank: Ints, query: Ints, most: Longs | None = None) -> list[str]:
        """Give what is left of some cells: see `slice_table`."""
        out = [""] * len(rank)
        number = self.passage[rank, query].tolist()
        for cell, begin, end in zip(*(v.tolist() for v in self.slice_table(rank, query, most)), strict=True):
            piece = self.corpus.texts[number[cell]][begin:end]
            out[cell] = out[cell] + piece if out[cell] else piece
        return out

    def text(self, rank: int, query: int) -> str:
        """Give what is left of one cell; remembered."""
        if self.slot[rank, query] < 0:
            return self.corpus.texts[int(self.passage[rank, query])]
        if (rank, query) not in self._texts:
            if len(self._texts) >= REMEMBERED:
                self._texts.clear()
            self._texts[rank, query] = self.texts(np.array([rank]), np.array([query]))[0]
        return self._texts[rank, query]

    def n_sentences(self, rank: int, query: int) -> int:
        """Say how many sentences are left of a cell; a whole text has all that are long enough."""
        slot = int(self.slot[rank, query])
        if slot >= 0:
            return max(int(self.start[slot + 1] - self.start[slot]), 1)
        table, text = self.corpus.table(self.config.splitter), self.passage[rank, query]
        mine = slice(table.start[text], table.start[text + 1])
        return max(int(((table.end - table.begin)[mine] >= self.config.min_sentence_chars).sum()), 1)

    def unsure(self, separator: str) -> Bools:
        """Mark cells before whose text counts may not add up across a separator."""
        loose = self.corpus.unsure(separator)
        out = (self.passage >= 0) & (loose[self.passage] if len(loose) else False)
        for slot in np.flatnonzero(out[self.cells]).tolist() if self.n_slots else []:
            if self.corpus.additive(separator):
                rank, query = int(self.cells[0][slot]), int(self.cells[1][slot])
                out[rank, query] = starts_loosely(self.text(rank, query))
        return out

    def trimmed(self, text: str, room: int, tail: str) -> tuple[int, int]:
        """Cut what is left of a cell to `room` with `tail` behind it.

        Returns
        -------
        n_chars, size : int
            Of the start that stays; 0, 0 if nothing fits.
        """
        length = cut_to(self.corpus, self.config, text, room, tail)
        most = self.config.passage_budget
        if most is not None:
            length = cut_to(self.corpus, self.config, text[:length], most)
        return length, self.corpus.measure(text[:length], self.config.unit) if length else 0

    # --- sizes --------------------------------------------------------------------------------

    @cached_property
    def n_chars(self) -> Longs:
        """Characters of each slot."""
        if self.config.unit == "chars":
            return self.size
        out: Longs = np.maximum(self.cut[:, 1] - self.cut[:, 0], 0)
        if not len(self.sentence):
            return out
        table = self.corpus.table(self.config.splitter)
        total = kernels.group_sum((table.end - table.gap)[self.sentence], self.start)
        some = np.flatnonzero(np.diff(self.start))
        first = self.sentence[self.start[some]]
        total[some] -= table.begin[first] - table.gap[first]
        out += total
        return out

    def tokens(self, slots: Longs) -> Longs:
        """Count the tokens of some slots; sentences are counted once, and added up where that is exact."""
        if self.config.unit == "tokens":
            return self.size[slots]
        out = np.zeros(len(slots), dtype=np.int64)
        sure = np.zeros(len(slots), dtype=bool)
        if len(self.sentence):
            members, begin = spread(self.start, slots)
            costs = self.corpus.costs(self.config.splitter, "tokens")
            out, sure = costs.added(self.sentence[members], begin)
        rank, query = self.cells
        rest = np.flatnonzero(~sure)
        texts = self.texts(rank[slots[rest]], query[slots[rest]])
        out[rest] = [self.corpus.count(text) for text in texts]
        return out

    def behind(self, separator: str, slots: Longs) -> Longs:
        """Give the tokens that a separator adds behind some slots; told by the last sentence."""
        known = self._behind.setdefault(separator, {})
        keys = self._endings(slots)
        missing = {key: slot for key, slot in zip(keys, slots.tolist(), strict=True) if key not in known}
        rank, query = self.cells
        fresh = np.array(list(missing.values()), dtype=np.int64)
        for key, text in zip(missing, self.texts(rank[fresh], query[fresh]), strict=True):
            known[key] = separator_cost(self.corpus.counter, text, separator)
        return np.array([known[key] for key in keys], dtype=np.int64)

    def _endings(self, slots: Longs) -> list[tuple[int, bool]]:
        """Tell slots apart by how they end: the last sentence, and whether it is the only one.

        A slot that was cut, or whose end depends on what stands before the last sentence, is alone.
        """
        size = self.start[slots + 1] - self.start[slots]
        last = np.full(len(slots), -1, dtype=np.int64)
        last[size > 0] = self.sentence[self.start[slots + 1][size > 0] - 1]
        alone = last < 0
        if len(self.sentence):
            exact = self.corpus.costs(self.config.splitter, "tokens").exact
            alone |= (size > 1) & ~exact[np.maximum(last, 0)]
        ending = np.where(alone, -1 - slots, last)
        return list(zip(ending.tolist(), ((size == 1) | alone).tolist(), strict=True))

    def sizes(self, separator: str | None) -> Sizes:
        """Give the cost of every cell, alone and with the separator that follows it."""
        alone = self.corpus.size(self.config.unit)
        size = self._fill(alone, self.size)
        if separator is None:
            return Sizes(size, size)
        if self.config.unit == "chars":
            gap = len(separator)
            return Sizes(size, self._fill(alone + gap, self.size + gap))
        slots = np.arange(self.n_slots)
        joined = self._fill(alone + self.corpus.behind(separator), self.size + self.behind(separator, slots))
        return Sizes(size, joined)

    def _fill(self, whole: Longs, left: Longs) -> Ints:
        """Put a value of each text into its cells, then that of the slots; 0 in padding.

        32 bits, where sums stay within.
        """
        if not len(whole):
            return np.zeros(self.passage.shape, dtype=np.int32)
        small = int(whole.max()) * len(self.passage) < kernels.no_budget(np.int32)
        values = whole.astype(np.int32 if small else np.int64)
        out = np.where(self.passage >= 0, values[self.passage], values.dtype.type(0))
        out[self.cells] = left
        return out


def untouched(corpus: Corpus, passage: Ints, config: PackerConfig) -> Selected:
    """Leave every text whole."""
    none = np.zeros(0, dtype=np.int64)
    slot = np.full(passage.shape, -1, dtype=np.int32)
    start, cut = np.zeros(1, dtype=np.int64), none.reshape(0, 2)
    return Selected(corpus, config, passage, slot, start, none, cut, none)


def cut_to(corpus: Corpus, config: PackerConfig, text: str, limit: int, tail: str = "") -> int:
    """Give how many characters of a text fit under a limit with something behind: see `cut_length`.

    The published character packer, which collapses white space, cuts scripts without spaces at the
    last space too.
    """
    if config.unit == "chars":
        spaceless = config.white_space == "keep"
        return cut_length(text, limit - len(tail), len, spaceless=spaceless)
    head = None if tail else getattr(corpus.counter, "head", None)
    return cut_length(text, limit, lambda start: corpus.count(start + tail), head)


# --- what repeats ---------------------------------------------------------------------------------


def repeats(left: Selected, some: Bools, same_text: str) -> tuple[Ints, Ints]:
    """Find for each cell the first cell of its query with the same text, as it is left.

    Parameters
    ----------
    left : Selected
    some : ndarray of bool, shape (ranks, queries)
        Cells that hold text.
    same_text : str
        See `PackerConfig`.

    Returns
    -------
    plain, guarded : ndarray of int32, shape (ranks, queries)
        Rank of the first equal cell, -1 if none; without and with `protect_differences`.
    """
    rank, query = np.nonzero(some)
    key = _bags(left)[rank, query]
    order = np.lexsort((key, query))
    same = np.zeros(len(order), dtype=bool)
    if len(order):
        a, b = order[:-1], order[1:]
        twin = (key[a] == key[b]) & (query[a] == query[b])
        same[a] = twin
        same[b] |= twin
    rank, query = rank[same], query[same]
    texts = left.texts(rank, query)
    if same_text == "lowercase":
        number: dict[str, int] = {}
        by_text = np.array([number.setdefault(t.lower(), len(number)) for t in texts], dtype=np.int64)
        by_both = by_text
    else:
        by_text, by_both = exact_groups(texts, [text_key(t) for t in texts])
    present = np.zeros(some.shape, dtype=bool)
    present[rank, query] = True
    plain = _first_equal(by_text, rank, query, present)
    alike = np.array_equal(by_both, by_text)
    return plain, plain if alike else _first_equal(by_both, rank, query, present)


def _first_equal(group: Longs, rank: Longs, query: Longs, present: Bools) -> Ints:
    full = np.zeros(present.shape, dtype=np.int64)
    full[rank, query] = group
    return kernels.keep_first(full, present)


def _bags(left: Selected) -> Longs:
    """Give for each cell a number that cells with equal text share."""
    whole = left.corpus.whole_bags
    out = np.where(left.passage >= 0, whole[left.passage], 0) if len(whole) else left.passage.astype(np.int64)
    if left.n_slots:
        value = np.zeros(left.n_slots, dtype=np.int64)
        if len(left.sentence):
            value = group_hash(
                left.corpus.bags(left.config.splitter)[left.sentence].view(np.uint64), left.start
            )
        cut = np.flatnonzero(left.cut[:, 1] > left.cut[:, 0])
        rank, query = left.cells
        value[cut] = bag_hashes(left.texts(rank[cut], query[cut]))
        out[rank, query] = value
    return out
