"""Where packed text comes from: slices of the source, and the check that they are exact."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packtools.errors import PackerError, shown
from packtools.schema import Chunk, PackedContext, Piece, Span
from packtools.text import collapse

__all__ = ["verify_spans"]

READING_SEPARATOR = "\n\n"
"""Joins `PackedContext.text` for reading when the config has no separator."""
_RUN = re.compile(r"[^\s\ufffd]+(?: [^\s\ufffd]+)*")


def pieces(
    source: str, slices: Iterable[tuple[int, int]], start: int, *, collapsed: bool
) -> tuple[Piece, ...]:
    """Map slices of a text, put together from `start` on, to exact slices of its source.

    Parameters
    ----------
    source : str
    slices : iterable of (start, end)
        Of the source, or with `collapsed` of the source with its white space collapsed.
    start : int
        Where the first of them stands in the packed text.
    collapsed : bool
    """
    out: list[Piece] = []
    for begin, end in slices:
        for a, b, shift in _runs(source, begin, end) if collapsed else [(begin, end, 0)]:
            at = start + a - begin
            out.append(Piece(at, at + b - a, a + shift, b + shift))
        start += end - begin
    return tuple(out)


def collapsed_slice(source: str, begin: int, end: int) -> tuple[int, int]:
    """Give where a slice of a text stands once its white space is collapsed."""
    a = len(collapse(source[:begin] + "x")) - 1
    return a, max(len(collapse(source[:end])), a)


def _runs(source: str, begin: int, end: int) -> Iterable[tuple[int, int, int]]:
    """Give the parts of a collapsed text that stand in its source as they are, and how far apart."""
    at = 0
    for found in _RUN.finditer(source):
        a, b = max(begin, at), min(end, at + found.end() - found.start())
        if a < b:
            yield a, b, found.start() - at
        at += found.end() - found.start() + 1
        if at >= end:
            return


def verify_spans(packed: PackedContext) -> None:
    """Check that every span of a packed context is what it claims.

    1. Spans stand one behind the other in prompt order, with the separator between them, and are all
       of the text.
    2. Each piece is an exact slice of the packed text and of the untouched source; the pieces of a
       span rise in both and fill it, with nothing but single spaces between them.
    3. Ranks, ids, `also` and `truncated` agree with the chunks and the decisions.

    Parameters
    ----------
    packed : PackedContext

    Raises
    ------
    PackerError
        At the first span that is not exact.

    Examples
    --------
    >>> from packtools import Chunk, ContextPacker, PackerConfig
    >>> config = PackerConfig(unit="chars", passage_budget=12, sentence_selection="head")
    >>> packed = ContextPacker(config).pack_sync(None, [Chunk("a", "One.  Two. Three four.")])
    >>> verify_spans(packed)
    >>> packed.passages
    ('One.  Two.',)
    """
    if len(packed.spans) != len(packed.chunks):
        raise PackerError(
            f"verify_spans: {len(packed.spans)} spans for {len(packed.chunks)} chunks; each kept "
            "chunk has one."
        )
    separator = READING_SEPARATOR if packed.config.separator is None else packed.config.separator
    at = 0
    for nth, (span, chunk) in enumerate(zip(packed.spans, packed.chunks, strict=True)):
        where = f"verify_spans: span of chunk {span.docid!r} at {span.start}:{span.end}"
        if nth:
            if packed.text[at : at + len(separator)] != separator:
                raise PackerError(f"{where}: no separator stands before it.")
            at += len(separator)
        if span.docid != chunk.id or not at == span.start <= span.end <= len(packed.text):
            raise PackerError(f"{where} is not in its place.")
        _verify_pieces(packed, span, chunk, where)
        _verify_ledger(packed, span, chunk, where)
        at = span.end
    if at != len(packed.text):
        raise PackerError(f"verify_spans: {shown(packed.text[at:])} at {at} is in no span.")


def _verify_pieces(packed: PackedContext, span: Span, chunk: Chunk, where: str) -> None:
    within = span.start
    before = 0
    for nth, piece in enumerate(span.pieces):
        ours = packed.text[piece.start : piece.end]
        theirs = chunk.text[piece.source_start : piece.source_end]
        if not before <= piece.source_start <= piece.source_end <= len(chunk.text) or ours != theirs:
            raise PackerError(f"{where}: packed {shown(ours)}, but the source has {shown(theirs)}.")
        between = packed.text[within : piece.start]
        if piece.start < within or between not in ("", " ") or (between and not nth):
            raise PackerError(f"{where}: {shown(between)} stands between its pieces.")
        within, before = piece.end, piece.source_end
    if within != span.end:
        raise PackerError(f"{where}: its pieces end at {within}.")
    if (span.source_start, span.source_end) != (span.pieces[0].source_start, span.pieces[-1].source_end):
        raise PackerError(f"{where}: its source is not that of its pieces.")


def _verify_ledger(packed: PackedContext, span: Span, chunk: Chunk, where: str) -> None:
    decisions = packed.decisions
    mine = decisions[span.rank - 1] if 0 < span.rank <= len(decisions) else None
    if mine is None or mine.docid != span.docid or not mine.kept:
        raise PackerError(f"{where}: rank {span.rank} is not that of a kept chunk of this id.")
    whole = collapse(chunk.text) if packed.config.white_space == "collapse" else chunk.text
    if span.truncated != (span.end - span.start < len(whole)):
        raise PackerError(f"{where}: 'truncated' must be {not span.truncated}.")
    repeats = {d.docid for d in decisions if d.reason in ("duplicate_of", "near_duplicate_of")}
    for docid in span.also:
        if docid not in repeats:
            raise PackerError(f"{where}: chunk {docid!r} in 'also' was not dropped as a duplicate.")
