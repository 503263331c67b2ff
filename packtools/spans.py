"""Where packed text comes from: slices of the source, and the check that they are exact."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packtools.errors import PackerError, shown
from packtools.schema import PackedContext, Piece
from packtools.text import collapse

__all__ = ["verify_spans"]

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

    1. Spans stand one behind the other, in prompt order, within the text.
    2. Each piece is an exact slice of the packed text and of the untouched source.
    3. The pieces of a span fill it; only single spaces may stand between them.

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
    at = 0
    if len(packed.spans) != len(packed.chunks):
        raise PackerError(
            f"verify_spans: {len(packed.spans)} spans for {len(packed.chunks)} chunks; each kept "
            "chunk has one."
        )
    for span, chunk in zip(packed.spans, packed.chunks, strict=True):
        where = f"verify_spans: span of chunk {span.docid!r} at {span.start}:{span.end}"
        if span.docid != chunk.id or not at <= span.start <= span.end <= len(packed.text):
            raise PackerError(f"{where} is not in its place.")
        within = span.start
        for nth, piece in enumerate(span.pieces):
            ours = packed.text[piece.start : piece.end]
            theirs = chunk.text[piece.source_start : piece.source_end]
            if ours != theirs:
                raise PackerError(f"{where}: packed {shown(ours)}, but the source has {shown(theirs)}.")
            between = packed.text[within : piece.start]
            if piece.start < within or between not in ("", " ") or (between and not nth):
                raise PackerError(f"{where}: {shown(between)} stands between its pieces.")
            within = piece.end
        if within != span.end:
            raise PackerError(f"{where}: its pieces end at {within}.")
        at = span.end
