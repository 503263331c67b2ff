"""One query under a setting, as an analyst looks at it: every candidate, the packed text, and why.

Plain data; `query_markup` writes it as HTML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packtools.config import PackerConfig
from packtools.counters import counted
from packtools.errors import SettingError, fail
from packtools.marking import Segment, Slice, find_all, segments
from packtools.metrics import folded_answers
from packtools.packed import PackedRun
from packtools.query_notes import QueryNotes, moved, some
from packtools.schema import Decision, Span
from packtools.spans import READING_SEPARATOR

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Card", "Part", "QueryLook", "look"]

DROPPED = {
    "over_budget": "not tried: packing had ended at one that did not fit",
    "not_selected": "nothing of it was selected",
    "empty": "empty",
    "no_text": "no text in the collection",
}


@dataclass(frozen=True)
class Card:
    """Hold one candidate: what became of it, why, and its source text in marked segments.

    Parameters
    ----------
    rank : int
        1-based place in retrieval order.
    docid, title : str
    score : float or None
    n_whole, n_packed : int
        Size of the source and of what was packed of it, in the noun of the look.
    state : {"kept", "cut", "dropped"}
    reason : str
        In words: "over budget by 37 tokens"; empty for a chunk that was kept whole.
    segments : tuple of Segment
        Joined they are the source text. White space that was packed as one space counts as kept.
    label : int or None
        Judgement of the qrels; None is not judged.
    place : int or None
        1-based place in the prompt.
    notes : tuple of str
        Near-duplicates, conflicts and what the baseline did, in words.
    """

    rank: int
    docid: str
    title: str
    score: float | None
    n_whole: int
    n_packed: int
    state: str
    reason: str
    segments: tuple[Segment, ...]
    label: int | None = None
    place: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def has_answer(self) -> bool:
        """Whether the source holds a reference answer."""
        return any(s.answer for s in self.segments)


@dataclass(frozen=True)
class Part:
    """Hold one piece of the packed text: what was packed of a chunk, or a separator.

    Parameters
    ----------
    segments : tuple of Segment
    rank : int or None
        Of the chunk it was cut from; None is a separator.
    docid : str
    """

    segments: tuple[Segment, ...]
    rank: int | None = None
    docid: str = ""


@dataclass(frozen=True)
class QueryLook:
    """Hold everything about one query under a setting.

    Parameters
    ----------
    qid, query : str
    cards : tuple of Card
        Every candidate, in retrieval order.
    parts : tuple of Part
        In prompt order, with the separators between; joined they are `PackedContext.text`.
    noun : {"tokens", "characters"}
        What the sizes count.
    n_used : int
    config : PackerConfig
    n_baseline : int or None
        Size of the baseline's packed text; None without a baseline.
    references : tuple of str
    prediction : str or None
        What a reader answered.
    """

    qid: str
    query: str
    cards: tuple[Card, ...]
    parts: tuple[Part, ...]
    noun: str
    n_used: int
    config: PackerConfig
    n_baseline: int | None = None
    references: tuple[str, ...] = ()
    prediction: str | None = None

    @property
    def text(self) -> str:
        """The packed text."""
        return "".join(s.text for part in self.parts for s in part.segments)

    @property
    def n_places(self) -> int:
        """How many chunks are packed."""
        return sum(part.rank is not None for part in self.parts)

    @property
    def has_answer(self) -> bool:
        """Whether the packed text holds a reference answer."""
        return any(s.answer for part in self.parts for s in part.segments)

    @property
    def sentences(self) -> list[str]:
        """Say what the pack came to: size, chunks, answer."""
        limit, reserve = self.config.limit, self.config.reserve
        out = f"{_count(self.n_used, self.noun)} used, no budget"
        if limit is not None:
            out = f"{self.n_used:,} of {_count(limit, self.noun)} used"
            out += f" ({reserve:,} more reserved)" if reserve else ""
        if self.n_baseline is not None:
            out += f"; {self.n_baseline:,} in the baseline"
        n_cut = sum(card.state == "cut" for card in self.cards)
        kept = f"{self.n_places:,} of {len(self.cards):,} chunks packed" + (
            f", {n_cut:,} cut" if n_cut else ""
        )
        return [out, kept, self._answer_words()]

    def _answer_words(self) -> str:
        if not self.references:
            return "no reference answers"
        if self.has_answer:
            return "the answer is in the packed text"
        if any(card.has_answer for card in self.cards):
            return "the answer is lost: it is in a candidate, but not in the packed text"
        return "no candidate holds the answer"


def look(packed: PackedRun, qid: str, baseline: PackedRun | None = None) -> QueryLook:
    """Show one query of a packed run: its candidates, the packed text, and why.

    1. Decisions, spans and conflicts are those of ``packed.context(qid)``.
    2. An answer is marked where the rule of "answer kept" finds it: in the source as a whole, and in
       what was packed of each chunk by itself.
    3. Of two near-duplicates of which one was dropped for the other, or would have been without
       `protect_differences`, the numbers, dates and negations that differ are marked in both.

    Parameters
    ----------
    packed : PackedRun
    qid : str
    baseline : PackedRun or None, default None
        Of the same run.

    Returns
    -------
    QueryLook

    Raises
    ------
    SettingError
        If the run has no such query, or `packed` or `baseline` is no `PackedRun`.

    Notes
    -----
    Cost: one pack of one query, and one search for the answers in each of its texts.

    Examples
    --------
    >>> import packtools as pt
    >>> packed = pt.prepare(pt.load_sample()).evaluate(pt.PackerConfig(budget=200, separator="\\n\\n"))
    >>> seen = look(packed, "river-q1")
    >>> len(seen.cards), seen.cards[-1].state, seen.text == packed.context("river-q1").text
    (20, 'dropped', True)
    """
    for name, given in (("packed", packed), ("baseline", baseline)):
        if not isinstance(given, PackedRun) and (name == "packed" or given is not None):
            fail(SettingError, "look", name, "a PackedRun", given, "See PreparedRun.evaluate.")
    seen = QueryNotes(packed, qid)
    seen.conflicts()
    if baseline is not None:
        seen.changes(baseline)
    seen.repeats()
    run, config = packed.prepared.run, packed.config
    noun = "characters" if config.unit == "chars" else counted(packed.prepared.counter)
    references = () if run.answers is None else tuple(run.answers.iloc[seen.number])
    answers = folded_answers(references)
    labels, place = _labels(run.qrels, qid), {s.rank: nth for nth, s in enumerate(seen.context.spans, 1)}
    prediction = None if run.predictions is None else run.predictions.iloc[seen.number]
    return QueryLook(
        qid,
        str(run.queries["text"].iloc[seen.number]),
        tuple(_card(seen, rank, noun, answers, labels, place.get(rank)) for rank in seen.sources),
        _parts(seen, answers),
        noun,
        seen.context.n_used,
        config,
        None if baseline is None else int(baseline.per_query[f"n_{config.unit}"].iloc[seen.number]),
        references,
        prediction if isinstance(prediction, str) else None,
    )


def _labels(qrels: pd.DataFrame | None, qid: str) -> dict[str, int]:
    """Give the judgements of a query by document."""
    if qrels is None:
        return {}
    mine = qrels[(qrels["qid"] == qid).to_numpy()]
    return dict(zip(mine["docid"].tolist(), mine["label"].tolist(), strict=True))


def _card(
    seen: QueryNotes, rank: int, noun: str, answers: list[str], labels: dict[str, int], place: int | None
) -> Card:
    source = seen.sources[rank]
    d, span, text = source.decision, source.span, source.text
    collapsed = seen.packed.config.white_space == "collapse"
    kept = [] if span is None else [(a, b, "kept") for a, b in _packed_slices(span, text, collapsed)]
    other = "dropped" if span is None else "cut"
    return Card(
        rank,
        d.docid,
        source.title,
        d.score,
        d.size if d.full_size is None else d.full_size,
        d.size if d.kept else 0,
        "kept" if span is not None and not span.truncated else other,
        _reason(d, span, noun),
        segments(text, kept, other, find_all(text, answers), seen.marks[rank]),
        labels.get(d.docid),
        place,
        tuple(some(seen.notes[rank])),
    )


def _reason(d: Decision, span: Span | None, noun: str) -> str:
    """Say why a candidate is dropped, or what is left of it."""
    if span is not None:
        whole = _count(d.size if d.full_size is None else d.full_size, noun)
        return f"cut to {d.size:,} of {whole}" if span.truncated else ""
    if d.reason == "near_duplicate_of":
        return f"near-duplicate of {d.of} ({d.similarity:.2f})"
    if d.reason == "duplicate_of":
        cut = d.full_size is not None
        return f"what is left of it is the same as {d.of}" if cut else f"same text as {d.of}"
    if d.reason == "over_budget" and d.over_by:
        return f"over budget by {_count(d.over_by, noun)}"
    return DROPPED[str(d.reason)]


def _parts(seen: QueryNotes, answers: list[str]) -> tuple[Part, ...]:
    """Give the packed text piece by piece."""
    context, out = seen.context, []
    separator = READING_SEPARATOR if context.config.separator is None else context.config.separator
    for nth, span in enumerate(context.spans):
        if nth and separator:
            out.append(Part((Segment(separator, "separator"),)))
        text = context.text[span.start : span.end]
        shift = [(p.source_start, p.source_end, p.start - p.source_start - span.start) for p in span.pieces]
        marks = [(*place, word) for a, b, word in seen.marks[span.rank] for place in moved(a, b, shift)]
        out.append(Part(segments(text, [], "kept", find_all(text, answers), marks), span.rank, span.docid))
    return tuple(out)


def _packed_slices(span: Span, text: str, collapsed: bool) -> list[Slice]:
    """Give the slices of a source that were packed; with `collapsed` the white space beside them too."""
    out: list[Slice] = []
    for piece in span.pieces:
        begin, end = piece.source_start, piece.source_end
        before = out[-1][1] if out else 0
        if collapsed and _blank(text[before:begin]):
            begin = out.pop()[0] if out else 0
        out.append((begin, end))
    if out and collapsed and _blank(text[out[-1][1] :]):
        out[-1] = out[-1][0], len(text)
    return out


def _blank(text: str) -> bool:
    return not text.replace("\ufffd", " ").strip()


def _count(n: int, nouns: str) -> str:
    return f"{n:,} {nouns[:-1] if n == 1 else nouns}"
