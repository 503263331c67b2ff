"""What a packed run costs and keeps: its per-query metrics, from what was kept of each cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from packtools import kernels, metrics, plan
from packtools.arrays import Bools, Floats, Ints, Longs
from packtools.config import PackerConfig
from packtools.counters import CharCounter, join_slack, parts_at_spaces
from packtools.facts import KINDS
from packtools.filling import Filled, One, Trim, fill, trim
from packtools.kernels import Layout
from packtools.matching import find_folded
from packtools.ordering import ANY_END, get_ordering
from packtools.picking import spread
from packtools.selected import Selected

if TYPE_CHECKING:
    from packtools.prepared import PreparedRun

Trims = dict[tuple[int, int], Trim]
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Kept:
    """Hold what was kept of a run.

    Parameters
    ----------
    layout : Layout
    trims : dict of (rank, query) to Trim
    used : dict of int to int
        Queries whose rendered text was counted, and what it came to.
    """

    layout: Layout
    trims: Trims
    used: dict[int, int]

    @cached_property
    def cell(self) -> Longs:
        """Number of each place in the layout, row by row."""
        return self.layout.rank * (len(self.layout.start) - 1) + self.layout.query

    def of(self, values: npt.NDArray[T]) -> npt.NDArray[T]:
        """Give the value of each place in the layout; `values` has shape (ranks, queries)."""
        return values.ravel().take(self.cell)

    def slots(self, left: Selected) -> tuple[Longs, Longs]:
        """Give the places in the layout that the select step cut, and their slots."""
        if not left.n_slots:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        slot = self.of(left.slot).astype(np.int64)
        places = np.flatnonzero(slot >= 0)
        return places, slot[places]

    @cached_property
    def trimmed(self) -> Longs:
        """Places in the layout that were cut to fit."""
        if not self.trims:
            return np.zeros(0, dtype=np.int64)
        rank = np.full(len(self.layout.start) - 1, -1, dtype=np.int64)
        for r, q in self.trims:
            rank[q] = r
        return np.flatnonzero(self.layout.rank == rank[self.layout.query])

    def cut(self, left: Selected) -> Bools:
        """Mark the places in the layout that are not whole passages."""
        out = np.zeros(len(self.layout.rank), dtype=bool)
        out[self.slots(left)[0]] = True
        out[self.trimmed] = True
        return out

    @cached_property
    def most(self) -> Longs:
        """Give how many characters of each place in the layout were packed at most."""
        out = np.full(len(self.layout.rank), np.iinfo(np.int64).max // 2)
        for place in self.trimmed.tolist():
            out[place] = self.trims[int(self.layout.rank[place]), int(self.layout.query[place])][0]
        return out

    def texts(self, left: Selected, places: Longs) -> list[str]:
        """Give what was packed of some places in the layout."""
        return left.texts(self.layout.rank[places], self.layout.query[places], self.most[places])

    def joined(self, left: Selected, queries: Longs, separator: str) -> dict[int, str]:
        """Give the packed text of some queries, ascending."""
        start = self.layout.start
        places, begin = spread(start, queries)
        texts = self.texts(left, places)
        bounds = zip(queries.tolist(), begin[:-1].tolist(), begin[1:].tolist(), strict=True)
        return {query: separator.join(texts[a:b]) for query, a, b in bounds}


# --- fill and trim --------------------------------------------------------------------------------


def fill_unsure(prepared: PreparedRun, config: PackerConfig) -> dict[int, Filled]:
    """Fill on their rendered text the queries for which sums of counts don't decide."""
    separator = config.separator
    if separator is None:
        return {}
    any_end = get_ordering(config.order).ends_with == ANY_END
    unsure = prepared.unsure(config) if config.unit == "tokens" else None
    if not any_end and unsure is None:
        return {}
    survivors, sizes, way = prepared.survivors(config), prepared.sizes(config), prepared.course(config)
    left = prepared.left(config)
    marked = np.zeros(len(prepared.qids), dtype=bool)
    if unsure is not None:
        marked = np.asarray((survivors.kept & unsure).any(axis=0))
    out = {}
    for query in range(len(prepared.qids)) if any_end else np.flatnonzero(marked).tolist():
        measure = partial(_measure, left, config, query)
        cutter = partial(_cut_of, left, separator, query)
        one = One(sizes, query, config, way, measure, cutter)
        slack = join_slack(prepared.counter) if marked[query] else 0
        out[query] = fill(one, way.filled(survivors.kept[:, query], query), slack=slack)
    return out


def _measure(left: Selected, config: PackerConfig, query: int, ranks: list[int], cut: dict[int, int]) -> int:
    """Count a rendered text; remembered."""
    text = str(config.separator).join(left.text(r, query)[: cut.get(r)] for r in ranks)
    return left.corpus.measure(text, config.unit)


def _cut_of(left: Selected, separator: str, query: int, rank: int, room: int, last: bool) -> Trim:
    return left.trimmed(left.text(rank, query), room, "" if last else separator)


def trim_run(prepared: PreparedRun, config: PackerConfig, keep: Bools, crossing: Longs) -> Trims:
    """Cut the crossing chunk of each query to what is left of its budget."""
    some = np.flatnonzero(crossing >= 0)
    if not len(some):
        return {}
    left, separator = prepared.left(config), config.separator or ""
    texts = dict(zip(some.tolist(), left.texts(crossing[some], some), strict=True))

    def cutter(query: int, room: int, last: bool) -> Trim:
        return left.trimmed(texts[query], room, "" if last else separator)

    return trim(keep, crossing, prepared.sizes(config), config, prepared.course(config), cutter)


# --- metrics --------------------------------------------------------------------------------------


def measure_run(prepared: PreparedRun, config: PackerConfig, kept: Kept) -> pd.DataFrame:
    """Compute every metric that the run can give."""
    layout, separator = kept.layout, config.separator
    gap = len(separator or "")
    chars = _chars(prepared, config, kept)
    n_chars = kernels.group_sum(chars, layout.start)
    n_chars += gap * np.maximum(np.diff(layout.start) - 1, 0)
    n_tokens = _tokens(prepared, config, kept, n_chars)
    values: dict[str, Any] = {"n_tokens": n_tokens, "n_chars": n_chars, "n_chunks": np.diff(layout.start)}
    used = n_tokens if config.unit == "tokens" else n_chars
    everything = config.budget is None and not config.deduplicates and config.jaccard_threshold is None
    everything = everything and config.passage_budget is None
    values["compression_ratio"] = metrics.share(
        used, used if everything else prepared.full(config.unit, separator)
    )
    if prepared.relevant is not None and prepared.n_relevant is not None:
        gold = prepared.relevant
        held = kernels.group_sum(kept.of(gold), layout.start)
        values["gold_retention"] = metrics.share(held, prepared.n_relevant)
    if prepared.answered is not None:
        here = _answers(prepared, config, kept)
        found = kernels.group_sum(here >= 0, layout.start) > 0
        values["answer_retention"] = metrics.answer_retention(found, prepared.answered)
        values["answer_position"] = _position(layout, chars, here, found, n_chars, gap)
        values["answer_chunk"] = _chunk_place(layout, here, found)
    values |= facts_kept(prepared, config, kept)
    return pd.DataFrame(values, index=prepared.run.queries.index)


def _chars(prepared: PreparedRun, config: PackerConfig, kept: Kept) -> Longs:
    """Give the characters of each kept piece."""
    left = prepared.left(config)
    if config.unit == "chars":
        out = kept.of(prepared.sizes(config).size).astype(np.int64)
    else:
        out = kept.of(prepared.whole_sizes("chars")).astype(np.int64)
        places, slot = kept.slots(left)
        out[places] = left.n_chars[slot]
    out[kept.trimmed] = kept.most[kept.trimmed]
    return out


def _tokens(prepared: PreparedRun, config: PackerConfig, kept: Kept, n_chars: Longs) -> Longs:
    """Give the tokens of each query's packed text."""
    layout, left, separator = kept.layout, prepared.left(config), config.separator
    if isinstance(prepared.counter, CharCounter):
        return n_chars
    if config.unit == "tokens":
        sizes = prepared.sizes(config)
        size, joined = (kept.of(values).astype(np.int64) for values in (sizes.size, sizes.joined))
    else:
        size = kept.of(prepared.whole_sizes("tokens")).astype(np.int64)
        places, slot = kept.slots(left)
        size[places] = left.tokens(slot)
        joined = size.copy()
    corpus = prepared.corpus
    for place, text in zip(kept.trimmed.tolist(), kept.texts(left, kept.trimmed), strict=True):
        size[place] = corpus.count(text)
        joined[place] = corpus.count(text + separator) if separator is not None else size[place]
    if config.unit == "chars" and separator is not None:
        return _tokens_of_chars(prepared, config, kept, size)
    total = plan.rendered(size, joined, layout)
    for query, count in kept.used.items():
        total[query] = count
    return total


def _tokens_of_chars(prepared: PreparedRun, config: PackerConfig, kept: Kept, size: Longs) -> Longs:
    """Give the tokens of packs that were made by characters: added up where that is exact."""
    layout, left, separator = kept.layout, prepared.left(config), str(config.separator)
    corpus = prepared.corpus
    spaced = separator == " " and config.white_space == "collapse" and parts_at_spaces(corpus.counter)
    doubtful = np.zeros(len(prepared.qids), dtype=bool)
    if spaced:
        texts = kept.texts(left, np.arange(len(size)))
        before = np.array([corpus.before(t) for t in texts], dtype=np.int64)
        before[layout.start[:-1][np.diff(layout.start) > 0]] = 0
        total = kernels.group_sum(size + before, layout.start)
    else:
        doubtful[layout.query[kept.of(prepared.unsure(config))]] = True
        total = plan.rendered(size, size + _behind(left, separator, kept), layout)
    for query, text in kept.joined(left, np.flatnonzero(doubtful), separator).items():
        total[query] = corpus.count(text)
    return total


def _behind(left: Selected, separator: str, kept: Kept) -> Longs:
    """Give the tokens that a separator adds behind each kept piece."""
    corpus = left.corpus
    out = corpus.behind(separator)[kept.of(left.passage)] if len(corpus) else np.zeros(0, dtype=np.int64)
    places, slot = kept.slots(left)
    out[places] = left.behind(separator, slot)
    for place, text in zip(kept.trimmed.tolist(), kept.texts(left, kept.trimmed), strict=True):
        out[place] = corpus.count(text + separator) - corpus.count(text)
    return out


def _answers(prepared: PreparedRun, config: PackerConfig, kept: Kept) -> Ints:
    """Find the first answer in each kept piece, again where it was cut."""
    assert prepared.answer_at is not None
    layout, left = kept.layout, prepared.left(config)
    here = kept.of(prepared.answer_at)
    places = np.flatnonzero(kept.cut(left) & (here >= 0))
    for place, text in zip(places.tolist(), kept.texts(left, places), strict=True):
        here[place] = prepared.answer_in(int(layout.query[place]), text)
    return here


def _position(layout: Layout, chars: Longs, here: Ints, found: Bools, n_chars: Longs, gap: int) -> Floats:
    """Give the share of the packed text that stands before the first answer."""
    offset = kernels.running_starts(layout, chars, gap) + here
    return np.where(found, metrics.share(_of_first(layout, here, offset), n_chars), np.nan)


def _chunk_place(layout: Layout, here: Ints, found: Bools) -> Floats:
    """Give the place among the packed chunks of the first that holds an answer: 0 first, 1 last."""
    nth = _of_first(layout, here, np.arange(len(here)) - layout.start[layout.query])
    return np.where(found, nth / np.maximum(np.diff(layout.start) - 1, 1), np.nan)


def _of_first(layout: Layout, here: Ints, values: Longs) -> Longs:
    """Give for each query the value at the first place in the prompt that holds an answer."""
    out = np.zeros(len(layout.start) - 1, dtype=np.int64)
    places = np.flatnonzero(here >= 0)[::-1]  # the first in the prompt is written last and stays
    out[layout.query[places]] = values[places]
    return out


# --- numbers and names ----------------------------------------------------------------------------


def facts_kept(prepared: PreparedRun, config: PackerConfig, kept: Kept) -> dict[str, Floats]:
    """Give the share of distinct numbers and names of the kept passages that are still there."""
    if not config.cuts:
        return {f"{kind}s_kept": np.ones(len(prepared.qids)) for kind in KINDS}
    query, number, stays, _ = _facts(prepared, config, kept)
    kind = prepared.corpus.facts.kind[number]
    out = {}
    for code, name in enumerate(KINDS):
        n_all = np.bincount(query[kind == code], minlength=len(prepared.qids))
        n_lost = np.bincount(query[(kind == code) & ~stays], minlength=len(prepared.qids))
        out[f"{name}s_kept"] = 1.0 - n_lost / np.maximum(n_all, 1)
    return out


def lost_facts(prepared: PreparedRun, config: PackerConfig, kept: Kept) -> list[tuple[str, str, str]]:
    """List the query, the kind and the words of what was lost."""
    if not config.cuts:
        return []
    query, number, stays, written = _facts(prepared, config, kept)
    kind = prepared.corpus.facts.kind
    gone = np.flatnonzero(~stays).tolist()
    return [(prepared.qids[query[i]], KINDS[kind[number[i]]], written[i]) for i in gone]


def _facts(
    prepared: PreparedRun, config: PackerConfig, kept: Kept
) -> tuple[Longs, Longs, Bools, dict[int, str]]:
    """Give the distinct facts of each query's kept passages, and whether each is still there.

    A mention that was cut away is looked for once more in the packed text, as it is written there,
    where it may stand as part of another one. The dict says how those that are gone are written first.
    """
    facts, left = prepared.corpus.facts, prepared.left(config)
    passage = kept.of(prepared.passage).astype(np.int64)
    query = kept.layout.query
    member, begin = spread(facts.start, passage)
    piece = np.repeat(np.arange(len(query)), np.diff(begin))
    stays = _inside(left, kept, piece, facts.begin[member], facts.end[member])
    width = max(len(facts.words), 1)
    key = query[piece].astype(np.int64) * width + facts.number[member]
    distinct = kernels.distinct(key)
    still = np.zeros(len(distinct), dtype=bool)
    still[np.searchsorted(distinct, key[stays])] = True
    place = np.searchsorted(distinct, key)
    lost = np.flatnonzero(~still[place])
    texts = kept.joined(left, kernels.distinct(query[piece[lost]]), "\n")
    written: dict[int, str] = {}
    tried: set[tuple[int, str]] = set()
    for at in lost.tolist():
        one, mention, text = int(place[at]), int(member[at]), left.corpus.texts[passage[piece[at]]]
        words = text[facts.begin[mention] : facts.end[mention]]
        written.setdefault(one, words)
        if (one, words) not in tried:
            tried.add((one, words))
            still[one] |= find_folded(words, texts[int(query[piece[at]])]) >= 0
    return distinct // width, distinct % width, still, written


def _inside(left: Selected, kept: Kept, piece: Longs, begin: Longs, end: Longs) -> Bools:
    """Whether a stretch of a kept passage lies within one of the slices that are left of it."""
    layout = kept.layout
    cut = np.flatnonzero(kept.cut(left))
    inside = np.ones(len(layout.rank), dtype=bool)
    inside[cut] = False
    inside = inside[piece]
    cell, a, b = left.slice_table(layout.rank[cut], layout.query[cut], kept.most[cut])
    if len(cell):
        width = int(max(end.max(initial=0), b.max())) + 1
        at = np.searchsorted(cut[cell] * width + a, piece * width + begin, side="right") - 1
        held = np.maximum(at, 0)
        inside |= (at >= 0) & (cut[cell][held] == piece) & (end <= b[held])
    return inside
