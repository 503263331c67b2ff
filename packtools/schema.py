"""The plain records that every layer passes around: chunks, settings, spans, decisions, results.

Nothing here computes: the stages live in `dedup`, `budget`, `ordering` and `conflicts`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from packtools.config import PackerConfig
from packtools.errors import PackerError, check_count, fail, is_number

__all__ = [
    "Chunk",
    "ConflictAnnotation",
    "Decision",
    "PackedContext",
    "Piece",
    "RequestContext",
    "Span",
    "mark_html",
]

MOST = 1 << 40
"""The largest count of one chunk; sums stay within 64 bits."""
CANDIDATE_COLUMNS = ("qid", "docid", "rank", "score")
QREL_COLUMNS = ("qid", "docid", "label")


@dataclass(frozen=True)
class RequestContext:
    """Say on whose behalf a pack is made.

    Parameters
    ----------
    tenant_id : str
        Every chunk that names a tenant must name this one.
    """

    tenant_id: str


@dataclass(frozen=True)
class Chunk:
    """Hold one retrieved piece of text, the unit that is packed.

    Parameters
    ----------
    id : str
        Document or passage id; always text.
    text : str, default ""
        The text as stored; never changed by packing.
    score : float or None, default None
        Relevance; higher is better. None counts as 0.0.
    token_count : int or None, default None
        A cached count in tokens. It is trusted: the text is not counted again.
    trust : str, default "trusted"
        A label such as "trusted" or "untrusted"; conflicts compare it.
    tenant_id : str or None, default None
        None means the tenant of the request.
    content_ref : str or None, default None
        Where the text is kept, for a chunk that carries none; it needs `token_count`.
    must_keep : tuple of (start, end), default ()
        Slices of the text that must be packed verbatim: they come first in every step, and a pack
        that can't hold them is an error.
    metadata : dict, default {}
        Carried through every step untouched.

    Examples
    --------
    >>> Chunk("7", "Steel is an alloy.", 0.9).token_count is None
    True
    """

    id: str
    text: str = ""
    score: float | None = None
    # The design ends the positional arguments here; the rest is by keyword.
    token_count: int | None = field(default=None, kw_only=True)
    trust: str = field(default="trusted", kw_only=True)
    tenant_id: str | None = field(default=None, kw_only=True)
    content_ref: str | None = field(default=None, kw_only=True)
    must_keep: tuple[tuple[int, int], ...] = field(default=(), kw_only=True)
    metadata: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str):
            fail(PackerError, "Chunk", "id", "a string", self.id, f"Write {str(self.id)!r}.")
        if not isinstance(self.text, str):
            fail(PackerError, "Chunk", "text", "a string", self.text, 'Use "" with content_ref.')
        if self.score is not None and not is_number(self.score):
            fail(PackerError, "Chunk", "score", "a number or None", self.score, f"Chunk {self.id!r}.")
        object.__setattr__(self, "must_keep", self._checked_slices())
        if self.token_count is not None:
            count = check_count(PackerError, "Chunk", "token_count", self.token_count, "token", least=0)
            if count > MOST:
                fail(PackerError, "Chunk", "token_count", f"at most {MOST:,}", count, f"Chunk {self.id!r}.")
            object.__setattr__(self, "token_count", count)

    def _checked_slices(self) -> tuple[tuple[int, int], ...]:
        rule = f"a list of slices (start, end) of its {len(self.text):,} characters"
        hint = f"Chunk {self.id!r}."
        if not isinstance(self.must_keep, list | tuple):
            fail(PackerError, "Chunk", "must_keep", rule, self.must_keep, hint)
        out = []
        for part in self.must_keep:
            pair = part if isinstance(part, list | tuple) and len(part) == 2 else (None, None)
            if not all(is_number(n) and hasattr(n, "__index__") for n in pair):
                fail(PackerError, "Chunk", "must_keep", rule, self.must_keep, hint)
            begin, end = (n.__index__() for n in pair)
            if not 0 <= begin < end <= len(self.text):
                fail(PackerError, "Chunk", "must_keep", rule, part, hint)
            out.append((begin, end))
        return tuple(out)


@dataclass(frozen=True)
class Piece:
    """Say where one exact slice stands: ``packed.text[start:end] == chunk.text[source_start:source_end]``.

    Parameters
    ----------
    start, end : int
    source_start, source_end : int
    """

    start: int
    end: int
    source_start: int
    source_end: int


@dataclass(frozen=True)
class Span:
    """Say where a kept chunk stands, in the packed text and in its untouched source.

    All offsets are half-open and count characters (code points), never bytes. `verify_spans` checks
    them.

    Parameters
    ----------
    docid : str
        The chunk it was cut from.
    rank : int
        1-based place of the chunk in retrieval order.
    start, end : int
        ``packed.text[start:end]`` is what was packed of the chunk.
    source_start, source_end : int
        Where in ``chunk.text`` it begins and ends.
    also : tuple of str, default ()
        Ids of chunks that were dropped as (near-)duplicates of this one.
    pieces : tuple of Piece, default ()
        The exact slices it is made of, in order; between two of them the packed text has nothing, or
        one space where white space was collapsed. Left out, it is one piece.
    truncated : bool, default False
        Whether less than the whole chunk was packed.
    n_sentences : int or None, default None
        Sentences taken, before the last was cut to fit; None if the chunk was not taken apart.
    """

    docid: str
    rank: int
    start: int
    end: int
    source_start: int
    source_end: int
    also: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()
    truncated: bool = False
    n_sentences: int | None = None

    def __post_init__(self) -> None:
        if not self.pieces:
            whole = Piece(self.start, self.end, self.source_start, self.source_end)
            object.__setattr__(self, "pieces", (whole,))

    @property
    def edited(self) -> bool:
        """Whether the source from `source_start` to `source_end` is not what was packed: see `pieces`."""
        return len(self.pieces) > 1


@dataclass(frozen=True)
class Decision:
    """Say what became of one candidate, and why.

    Parameters
    ----------
    docid : str
    rank : int
        1-based place in retrieval order.
    score : float or None
    size : int
        In the unit of the budget, without separators; what was left of the chunk, if it was cut.
    kept : bool
    reason : str or None
        None if kept, else "duplicate_of", "near_duplicate_of", "over_budget", "not_selected",
        "empty" or "no_text".
    of : str or None
        The better chunk that this one repeats.
    similarity : float or None
        Jaccard with `of`.
    over_by : int or None
        Units by which the budget would have been exceeded; 0 if the chunk was not tried, because
        packing had ended at one that did not fit (``overflow="truncate"``).
    unit : str
    full_size : int or None
        Size of the whole chunk, if it was cut.
    """

    docid: str
    rank: int
    score: float | None
    size: int
    kept: bool
    reason: str | None = None
    of: str | None = None
    similarity: float | None = None
    over_by: int | None = None
    unit: str = "tokens"
    full_size: int | None = None

    def __str__(self) -> str:
        if self.kept:
            cut = f": {self.size:,} of {self.full_size:,} {self.unit}" if self.full_size is not None else ""
            return f"kept{cut}"
        if self.reason == "duplicate_of":
            return f"dropped: duplicate of {self.of}"
        if self.reason == "near_duplicate_of":
            return f"dropped: near-duplicate of {self.of} at {self.similarity:.2f}"
        if self.reason == "over_budget" and not self.over_by:
            return "dropped: not tried, packing had ended at one that did not fit"
        if self.reason == "over_budget":
            unit = self.unit if self.over_by != 1 else self.unit[:-1]
            return f"dropped: over budget by {self.over_by:,} {unit}"
        return _DROPPED[str(self.reason)]


_DROPPED = {
    "empty": "dropped: empty",
    "no_text": "dropped: its text is not in the collection",
    "not_selected": "dropped: nothing of it was selected",
}


@dataclass(frozen=True)
class ConflictAnnotation:
    """Point at two chunks that contradict each other, with both quotes and both values.

    Parameters
    ----------
    kind : {"numeric_disagreement", "trust_mismatch"}
    docid_a, docid_b : str
    quote_a, quote_b : str
        Exact slices of the two texts, as they are packed.
    value_a, value_b : str
        What differs: the two numbers, or the two trust labels.
    """

    kind: str
    docid_a: str
    docid_b: str
    quote_a: str
    quote_b: str
    value_a: str
    value_b: str

    def __str__(self) -> str:
        return (
            f"{self.kind}: {self.docid_a} says {self.value_a} ({self.quote_a!r}), "
            f"{self.docid_b} says {self.value_b} ({self.quote_b!r})"
        )


def mark_html(text: str, slices: Iterable[tuple[int, int]]) -> str:
    """Write a text as HTML with slices of it marked; everything is escaped, overlaps count once.

    Examples
    --------
    >>> mark_html("a <b>x</b>", [(5, 6)])
    'a &lt;b&gt;<mark>x</mark>&lt;/b&gt;'
    """
    out, at = [], 0
    for begin, end in sorted(slices):
        begin = max(begin, at)
        if end <= begin:
            continue
        out.append(f"{html.escape(text[at:begin])}<mark>{html.escape(text[begin:end])}</mark>")
        at = end
    return "".join(out) + html.escape(text[at:])


@dataclass(frozen=True)
class PackedContext:
    """Hold what one query's pack came to: text, kept chunks, spans, ledger, conflicts.

    Parameters
    ----------
    text : str
        The kept chunks joined by the separator, as sent. With ``separator=None`` the caller
        renders; `text` then joins by a blank line, for reading only, and is not charged.
    chunks : tuple of Chunk
        Kept chunks in prompt order, untouched; `passages` has what was packed of them.
    spans : tuple of Span
        One for each kept chunk, in prompt order.
    decisions : tuple of Decision
        One for each candidate, in retrieval order: nothing vanishes.
    conflicts : tuple of ConflictAnnotation
    n_used : int
        Units of `config.unit` used: the count of `text` if a separator is set, else the sum of
        the chunk sizes.
    config : PackerConfig
    counter : str
        Name of the token counter.
    """

    text: str
    chunks: tuple[Chunk, ...]
    spans: tuple[Span, ...]
    decisions: tuple[Decision, ...]
    conflicts: tuple[ConflictAnnotation, ...]
    n_used: int
    config: PackerConfig
    counter: str

    @property
    def passages(self) -> tuple[str, ...]:
        """What was packed of each chunk, in prompt order."""
        return tuple(self.text[s.start : s.end] for s in self.spans)

    @property
    def tokens_used(self) -> int:
        """Units used; the published name of `n_used`."""
        return self.n_used

    @property
    def dropped_dedup(self) -> tuple[str, ...]:
        """Ids dropped as duplicates or near-duplicates, best first."""
        wanted = ("duplicate_of", "near_duplicate_of")
        return tuple(d.docid for d in self.decisions if d.reason in wanted)

    @property
    def dropped_budget(self) -> tuple[str, ...]:
        """Ids dropped because they did not fit, best first."""
        return tuple(d.docid for d in self.decisions if d.reason == "over_budget")

    def _repr_html_(self) -> str:
        esc = html.escape
        unit = self.config.unit
        limit = "no budget" if self.config.budget is None else f"of {self.config.budget:,}"
        rows = "".join(
            f"<tr><td>{d.rank}</td><td>{esc(d.docid)}</td><td>{d.size:,}</td><td>{esc(str(d))}</td></tr>"
            for d in self.decisions
        )
        cuts = "".join(
            f"<details><summary>{esc(s.docid)}: what was packed of it</summary>"
            f"<pre style='white-space:pre-wrap'>"
            f"{mark_html(c.text, [(p.source_start, p.source_end) for p in s.pieces])}</pre></details>"
            for s, c in zip(self.spans, self.chunks, strict=True)
            if s.truncated
        )
        flags = "".join(f"<li>{esc(str(c))}</li>" for c in self.conflicts)
        return (
            f"<p><b>{self.n_used:,} {unit}</b> {limit}: {len(self.chunks)} of "
            f"{len(self.decisions)} chunks kept ({esc(self.config.order)}, {esc(self.counter)})</p>"
            f"<pre style='white-space:pre-wrap'>{esc(self.text)}</pre>"
            f"<table><thead><tr><th>rank</th><th>id</th><th>{unit}</th><th>decision</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>{cuts}" + (f"<ul>{flags}</ul>" if flags else "")
        )
