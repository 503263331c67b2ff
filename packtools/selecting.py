"""The select step over arrays: which sentences of which cells stay; shared by one pack and a whole run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from packtools import kernels
from packtools.arrays import Ints, Longs
from packtools.budget import get_fill
from packtools.config import PackerConfig
from packtools.corpus import Corpus, SentenceCosts
from packtools.errors import PackerError
from packtools.ordering import get_ordering
from packtools.picking import NEVER, Choice, Pairs, choose, rank_pairs, spread
from packtools.selected import Selected, Slices, cut_to, untouched
from packtools.selection import Scoring, Weights, get_selector
from packtools.sentences import get_splitter


def check_names(config: PackerConfig) -> None:
    """Refuse a selection, splitter, fill or ordering that is unknown."""
    if config.sentence_selection is not None:
        get_selector(config.sentence_selection)
    get_splitter(config.splitter)
    get_fill(config.fill)
    get_ordering(config.order)


def check_queries(config: PackerConfig, told: bool) -> None:
    """Refuse a selection that needs the text of the query, where there is none."""
    name = config.sentence_selection
    if config.passage_budget is not None and name is not None and get_selector(name).needs_query and not told:
        raise PackerError(
            f"PackerConfig: sentence_selection {name!r} needs the text of the query, and there is none. "
            "Give the query (a run: its query file), or use 'head'."
        )


def scored_pairs(
    corpus: Corpus, passage: Ints, queries: Sequence[str], config: PackerConfig, weights: Weights,
    must: Mapping[int, Slices] | None = None,
) -> Pairs:  # fmt: skip
    """Score every sentence of every cell; depends on no budget.

    Sentences that touch a slice in `must`, by the number of the text, come before all others.
    """
    selector = get_selector(str(config.sentence_selection))
    table = corpus.table(config.splitter)
    cells = passage.ravel().astype(np.int64)
    there = np.flatnonzero(cells >= 0)
    sentence, begin = spread(table.start, cells[there])
    query = there % passage.shape[1]
    score = selector.score(Scoring(queries, table, query, begin, sentence, weights), len(sentence))
    short = (table.end - table.begin)[sentence] < config.min_sentence_chars
    start = np.zeros(len(cells) + 1, dtype=np.int64)
    start[there + 1] = np.diff(begin)
    heads = (table.atomic & (table.header < 0))[sentence]  # the header of a table comes with its rows
    score = np.where(short | heads, NEVER, score)
    first = np.zeros(len(table.begin), dtype=bool)
    for number, slices in (must or {}).items():
        for a, b in slices:
            first |= (table.owner == number) & (table.begin < b) & (table.end > a)
    return rank_pairs(np.cumsum(start), sentence, score, first[sentence])


def select(corpus: Corpus, passage: Ints, config: PackerConfig, pairs: Callable[[], Pairs]) -> Selected:
    """Cut every text that is over the passage budget down to it.

    Parameters
    ----------
    corpus : Corpus
    passage : ndarray of int32, shape (ranks, queries)
    config : PackerConfig
    pairs : callable
        Gives `scored_pairs` when they are needed.
    """
    budget = config.passage_budget
    if budget is None:
        return untouched(corpus, passage, config)
    flat = passage.ravel()
    long = np.zeros(len(flat), dtype=bool)
    if len(corpus):
        long = (flat >= 0) & (corpus.size(config.unit)[flat] > budget)
    cells = np.flatnonzero(long)
    slot = np.full(passage.shape, -1, dtype=np.int32)
    slot.ravel()[cells] = np.arange(len(cells))
    if config.sentence_selection is None:
        return _cut_starts(corpus, passage, config, slot, flat[cells])
    scored = pairs()
    costs = corpus.costs(config.splitter, config.unit)
    members, _ = spread(scored.start, cells)
    known = costs.of(scored.sentence[members])
    choice = choose(scored, cells, known, budget)
    size = choice.size
    again = _Again(corpus, config, scored, cells, flat[cells].astype(np.int64), costs, choice)
    again.recount(size)
    pair = np.flatnonzero(choice.taken)
    bounds = np.searchsorted(pair, scored.start[cells])
    start = np.concatenate([bounds, [len(pair)]]).astype(np.int64)
    cut = again.cut_starts(size)
    return Selected(corpus, config, passage, slot, start, scored.sentence[pair], cut, size)


def _cut_starts(corpus: Corpus, passage: Ints, config: PackerConfig, slot: Ints, texts: Ints) -> Selected:
    """Cut each long text at a word boundary, without a look at its sentences."""
    known: dict[int, tuple[int, int, int]] = {}
    for number in np.unique(texts).tolist():
        known[number] = cut_start(corpus, number, None, config)
    rows = np.array([known[n] for n in texts.tolist()], dtype=np.int64).reshape(len(texts), 3)
    start = np.zeros(len(texts) + 1, dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    return Selected(corpus, config, passage, slot, start, none, rows[:, :2], rows[:, 2])


def cut_start(
    corpus: Corpus, number: int, within: tuple[int, int] | None, config: PackerConfig
) -> tuple[int, int, int]:
    """Cut a text, or a slice of it, to the passage budget: give the slice left, and its size."""
    text = corpus.texts[number]
    begin, end = (len(text) - len(text.lstrip()), len(text)) if within is None else within
    piece = text[begin:end]
    length = cut_to(corpus, config, piece, int(config.passage_budget or 0))
    return begin, begin + length, corpus.measure(piece[:length], config.unit) if length else 0


@dataclass(frozen=True)
class _Again:
    """Look again at the cells that sums could not settle."""

    corpus: Corpus
    config: PackerConfig
    pairs: Pairs
    cells: Longs
    texts: Longs
    costs: SentenceCosts
    choice: Choice

    def recount(self, size: Longs) -> None:
        """Count what was taken where sums are unsure, and give up sentences while it is over."""
        taken = self.choice.taken
        pair = np.flatnonzero(taken)
        begin = np.append(np.searchsorted(pair, self.pairs.start[self.cells]), len(pair)).astype(np.int64)
        _, sure = self.costs.added(self.pairs.sentence[pair], begin)
        for slot in np.flatnonzero(~sure & (np.diff(begin) > 1)).tolist():
            size[slot] = self._settle(slot)

    def _settle(self, slot: int) -> int:
        pairs, taken, budget = self.pairs, self.choice.taken, int(self.config.passage_budget or 0)
        cell = self.cells[slot]
        tried = pairs.ranked[pairs.start[cell] : pairs.start[cell] + pairs.count[cell]]
        mine = slice(pairs.start[cell], pairs.start[cell + 1])
        while True:
            used = self.corpus.measure(self._text(slot, np.flatnonzero(taken[mine])), self.config.unit)
            chosen = tried[taken[tried]]
            if used <= budget or len(chosen) < 2:
                return used
            headers = set(self.costs.table.header[pairs.sentence[chosen]].tolist())
            last = next((p for p in chosen[::-1] if pairs.sentence[p] not in headers), chosen[-1])
            taken[last] = False

    def _text(self, slot: int, local: Longs) -> str:
        table, cell = self.costs.table, self.cells[slot]
        text = self.corpus.texts[int(self.texts[slot])]
        sentence = self.pairs.sentence[self.pairs.start[cell] + local]
        first = int(sentence[0])
        rest = "".join(text[table.gap[s] : table.end[s]] for s in sentence[1:].tolist())
        return text[int(table.begin[first]) : int(table.end[first])] + rest

    def cut_starts(self, size: Longs) -> Longs:
        """Cut the best sentence where it is too long, and the whole text where no sentence is eligible."""
        table, pairs = self.costs.table, self.pairs
        cut = np.full((len(self.cells), 2), -1, dtype=np.int64)
        count = pairs.count[self.cells]

        def cut_to_fit(slot: int, within: tuple[int, int] | None) -> None:
            *bounds, size[slot] = cut_start(self.corpus, int(self.texts[slot]), within, self.config)
            cut[slot] = bounds

        long_enough = (table.end - table.begin) >= self.config.min_sentence_chars
        bare = (count == 0) & (kernels.group_sum(long_enough, table.start)[self.texts] == 0)
        for slot in np.flatnonzero(self.choice.too_long >= 0).tolist():
            best = pairs.sentence[self.choice.too_long[slot]]
            cut_to_fit(slot, (int(table.begin[best]), int(table.end[best])))
        for slot in np.flatnonzero(bare).tolist():
            cut_to_fit(slot, None)
        return cut
