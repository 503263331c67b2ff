"""What the candidates of one query have to do with each other, in words: repeats, conflicts, the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from packtools.marking import Key, Layer, Slice, Telling, difference_words, find_all, telling, unlike
from packtools.metrics import folded_answers
from packtools.packed import PackedRun
from packtools.schema import Decision, PackedContext, Span
from packtools.text import differences

__all__ = ["QueryNotes", "moved", "some"]

MOST = 5
"""Notes on one card, and ids in one note; more are only counted."""
CONFLICTS = {"numeric_disagreement": "numbers disagree", "trust_mismatch": "trust differs"}
GONE = ("duplicate_of", "near_duplicate_of", "empty", "no_text", "not_selected")


@dataclass(frozen=True)
class Source:
    """Hold a candidate and what is known of its text."""

    decision: Decision
    text: str
    title: str
    span: Span | None


class QueryNotes:
    """Gather the candidates of one query, and what is to be said and marked of each; all by rank.

    Attributes
    ----------
    context : PackedContext
    sources : dict of int to Source
        In retrieval order.
    marks : dict of int to Layer
        What differs from another candidate, as slices of the source.
    notes : dict of int to list of str
    """

    def __init__(self, packed: PackedRun, qid: str) -> None:
        run = packed.prepared.run
        self.packed, self.qid, self.number = packed, qid, run.number(qid)
        self.context: PackedContext = packed.context(qid)
        self.rank = {d.docid: d.rank for d in self.context.decisions}
        spans = {span.docid: span for span in self.context.spans}
        known = {chunk.id: chunk for chunk in run.chunks(qid)}
        self.sources: dict[int, Source] = {}
        for d in self.context.decisions:
            chunk = known.get(d.docid)
            text, title = ("", "") if chunk is None else (chunk.text, chunk.metadata.get("title", ""))
            self.sources[d.rank] = Source(d, text, str(title), spans.get(d.docid))
        self._known: dict[int, tuple[Key, list[Telling]]] = {}
        self.marks: dict[int, Layer] = {rank: [] for rank in self.sources}
        self.notes: dict[int, list[str]] = {rank: [] for rank in self.sources}

    def conflicts(self) -> None:
        """Note the conflicts, and mark the values where they stand."""
        for c in self.context.conflicts:
            words = CONFLICTS.get(c.kind, c.kind.replace("_", " "))
            sides = ((c.docid_a, c.quote_a, c.value_a), (c.docid_b, c.quote_b, c.value_b))
            for (mine, quote, here), (other, _, there) in (sides, sides[::-1]):
                said = f"conflict with {other}, {words}: {here} here; {there} there"
                self.notes[self.rank[mine]].append(said)
                if c.kind == "numeric_disagreement":
                    self._mark_value(self.rank[mine], quote, here, said)

    def _mark_value(self, rank: int, quote: str, value: str, said: str) -> None:
        """Mark a value of a quote from the packed text where it stands in the source."""
        span = self.sources[rank].span
        at = -1 if span is None else self.context.text.find(quote, span.start, span.end)
        if span is None or at < 0:
            return
        back = [(p.start, p.end, p.source_start - p.start) for p in span.pieces]
        for a, b in find_all(quote, folded_answers([value])):
            self.marks[rank] += [(*place, said) for place in moved(at + a, at + b, back)]

    def changes(self, baseline: PackedRun) -> None:
        """Note what the baseline kept and this drops, and the reverse; nothing if it keeps everything."""
        kept = set(baseline.kept(self.qid))
        if len(kept) == sum(bool(source.text) for source in self.sources.values()):
            return
        words = {True: "dropped in the baseline", False: "kept in the baseline"}
        for d in self.context.decisions:
            if d.kept != (d.docid in kept):
                self.notes[d.rank].append(words[d.kept])

    def repeats(self) -> None:
        """Note duplicates and near-duplicates, and mark what differs in those that do."""
        stands_for: dict[int, list[str]] = {}
        for d in self.context.decisions:
            if d.of is not None:
                stands_for.setdefault(self.rank[d.of], []).append(d.docid)
                self._differ(self.rank[d.of], d.rank, "differs from {}")
        for rank, ids in stands_for.items():
            self.notes[rank].append(f"stands for {', '.join(some(ids))}")
        for upper, lower, jaccard in self._held_back():
            self._differ(upper, lower, f"near-duplicate of {{}} ({jaccard:.2f}), held back")

    def _differ(self, upper: int, lower: int, what: str) -> None:
        """Say on both sides what differs in a pair, if anything, and mark it."""
        marked = unlike(self._telling(upper)[1], self._telling(lower)[1])
        for mine, other, places in ((upper, lower, marked[0]), (lower, upper, marked[1])):
            if words := difference_words(self._telling(mine)[0], self._telling(other)[0]):
                docid = self.sources[other].decision.docid
                self.notes[mine].append(f"{what.format(docid)}: {words}")
                self.marks[mine] += [(*place, f"differs from {docid}") for place in places]

    def _telling(self, rank: int) -> tuple[Key, list[Telling]]:
        """Give what a reader must not lose of a source: by the guard's rule, and where it stands."""
        if rank not in self._known:
            text = self.sources[rank].text
            self._known[rank] = differences(text), telling(text)
        return self._known[rank]

    def _held_back(self) -> list[tuple[int, int, float]]:
        """Give the pairs of which only the guard keeps the lower one: the most similar for each."""
        config, cells, query = self.packed.config, self.packed.prepared.cells, self.number
        pairs: list[tuple[int, int, float]] = []
        if config.protect_differences and config.jaccard_threshold is not None:
            near, here = cells.pairs, cells.pairs.query == query
            here &= near.differs & (near.jaccard >= config.jaccard_threshold)
            pairs += zip(
                near.upper[here].tolist(), near.lower[here].tolist(), near.jaccard[here], strict=True
            )
        if config.protect_differences and config.deduplicates and config.same_text == "normalised":
            plain, guarded = cells.plain[:, query], cells.guarded[:, query]
            alike = np.flatnonzero((plain >= 0) & (guarded < 0)).tolist()
            pairs += [(int(plain[lower]), lower, 1.0) for lower in alike]
        stays = {d.rank for d in self.context.decisions if d.reason not in GONE}
        found: dict[int, tuple[int, int, float]] = {}
        for upper, lower, jaccard in pairs:
            if {upper + 1, lower + 1} <= stays:
                found.setdefault(lower, (upper + 1, lower + 1, jaccard))
        return [found[lower] for lower in sorted(found)]


def moved(begin: int, end: int, stretches: Iterable[tuple[int, int, int]]) -> list[Slice]:
    """Move a slice to where the stretches ``(start, end, shift)`` that it overlaps stand."""
    cut = [(max(begin, a), min(end, b), shift) for a, b, shift in stretches]
    return [(a + shift, b + shift) for a, b, shift in cut if a < b]


def some(words: Sequence[str]) -> list[str]:
    """Give the first of some words, and say how many more there are."""
    more = len(words) - MOST
    return [*words[:MOST], *([f"and {more:,} more"] if more > 0 else [])]
