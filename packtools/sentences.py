"""Cut a text into sentences that are exact slices of it, offline.

Prose is cut by sentencex; what it does not know is cut by line first: code fences, pipe tables,
list items, headings. The recorded simple rule of the character packer stays available by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from packtools.errors import PackerError, SettingError, unknown

__all__ = ["SPLITTERS", "split_sentences"]

Spans = list[tuple[int, int]]

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+•‣▪]|\(?\d{1,3}[.)]|\(?[a-zA-Z][)])\s+\S")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}\s")
_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_ROW = re.compile(r"\s*\|.*\||[^|\n]*\S\s*\|\s*\S[^|\n]*\|\s*\S")
# A sentence never ends here, whatever follows …
_TITLE = re.compile(
    r"(?:^|[\s(\[“\"'])(?:Dr|Mr|Mrs|Ms|Prof|Rev|Hon|Gen|Col|Capt|Lt|Sgt|Mme|Mlle|M|Hr|Fr|Sr|Sra)\.$"
)
# … or here, if a number, a bracket or a lower-case word follows.
_LABEL = re.compile(
    r"(?:^|[\s(\[])(?:Eqs?|Figs?|Nos?|Nr|Secs?|Sect|Vol|Vols|pp?|cf|vs|Ref|Refs|Tab|Ch|Chap|Art|approx|ca|c|al|"
    r"e\.g|i\.e|etc|St|Inc|Ltd|Co|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.$"
)
_CONTINUES = re.compile(r"[(\[0-9]|[a-zà-öø-ÿ]|[,;:)\]]")
_SHORT = re.compile(r"(?:^|[\s(\[])[^\W\d_]{1,4}\.$")
_NUMBERED = re.compile(r"\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SIMPLE = re.compile(r"(?<=[.!?])\s+")


def split_sentences(text: str, splitter: str = "prose") -> Spans:
    """Give where each sentence of a text starts and ends.

    1. "prose": a fenced code block is one piece, a row of a pipe table is one piece (the header
       row together with the rule below it), a list item or a heading starts a piece; all other
       text is cut by sentencex, which knows abbreviations, initials, decimals, quotes, ellipses
       and the stops of Chinese, Japanese, Arabic and Devanagari. A title ("Dr.") never ends a
       sentence, a label ("Eq.", "No.") does not before a number or a bracket, nor any short word
       before a lower-case one.
    2. "simple": the recorded rule of the character packer: at white space after ``.``, ``!`` or
       ``?``.

    Parameters
    ----------
    text : str
    splitter : str, default "prose"
        A name in `SPLITTERS`.

    Returns
    -------
    list of (start, end)
        Half-open character offsets, ascending, without white space at either end. What lies
        between them is white space only, so that sentences and gaps together are the text.

    Raises
    ------
    SettingError
        If the splitter is unknown.

    References
    ----------
    sentencex, https://github.com/wikimedia/sentencex

    Examples
    --------
    >>> text = "  Dr. No paid 3.14 francs. Did he?"
    >>> [text[a:b] for a, b in split_sentences(text)]
    ['Dr. No paid 3.14 francs.', 'Did he?']
    """
    return get_splitter(splitter, "split_sentences")(text)


def get_splitter(name: str, where: str = "PackerConfig") -> Callable[[str], Spans]:
    """Give the splitter of that name, or one error that lists them all."""
    if name not in SPLITTERS:
        unknown(PackerError if where == "PackerConfig" else SettingError, where, "splitter", name, SPLITTERS)
    return SPLITTERS[name]


def _prose(text: str) -> Spans:
    out: Spans = []
    for start, end, whole in _blocks(text):
        pieces = [(start, end)] if whole else _cut(text, start, end)
        out += [span for span in (_trim(text, a, b) for a, b in pieces) if span is not None]
    return out


def _simple(text: str) -> Spans:
    cuts = [0, *(m.end() for m in _SIMPLE.finditer(text)), len(text)]
    spans = (_trim(text, a, b) for a, b in pairwise(cuts))
    return [span for span in spans if span is not None]


SPLITTERS: dict[str, Callable[[str], Spans]] = {"prose": _prose, "simple": _simple}


def table_headers(text: str, spans: Spans) -> dict[int, int]:
    """Say which sentences are rows of a pipe table, and which sentence is the header of each.

    The header is the piece that ends in the rule ("|---|---|"); its rows follow line by line.
    """
    if "|" not in text or "\n" not in text:
        return {}
    found: dict[int, int] = {}
    header: int | None = None
    for number, (start, end) in enumerate(spans):
        lines = text[start:end].split("\n")
        if len(lines) == 2 and "-" in lines[1] and _RULE.match(lines[1]) and _ROW.match(lines[0]):
            header = number
        elif header is not None:
            below = text[spans[number - 1][1] : start].count("\n") == 1 and _ROW.match(lines[0])
            if below and len(lines) == 1:
                found[number] = header
            else:
                header = None
    return found


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    if left == len(piece):
        return None
    return start + left, start + len(piece.rstrip())


def _lines(text: str) -> list[tuple[int, int]]:
    ends = [m.end() for m in re.finditer("\n", text)]
    starts = [0, *ends]
    return [(a, b) for a, b in zip(starts, [*ends, len(text)], strict=True) if a < b]


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Give the parts of a text in order, and whether each is one piece."""
    if "\n" not in text and "|" not in text:
        yield 0, len(text), False
        return
    lines = _lines(text)
    begin: int | None = None  # of the prose that is being gathered
    number = 0
    while number < len(lines):
        start, end = lines[number]
        line = text[start:end]
        taken = _whole(text, lines, number)
        breaks = taken or not line.strip() or _ITEM.match(line) or _HEADING.match(line)
        if breaks and begin is not None:
            yield begin, start, False
            begin = None
        if taken:
            yield start, lines[number + taken - 1][1], True
        elif _HEADING.match(line):
            yield start, end, True
        elif line.strip() and begin is None:
            begin = start
        number += taken or 1
    if begin is not None:
        yield begin, len(text), False


def _whole(text: str, lines: list[tuple[int, int]], number: int) -> int:
    """Say how many lines from here on are one piece: a fence, a table row; 0 if none."""
    start, end = lines[number]
    line = text[start:end]
    fence = _FENCE.match(line)
    if fence:
        for later in range(number + 1, len(lines)):
            mark = text[slice(*lines[later])].strip()
            if mark.startswith(fence.group(1)) and not mark.strip(fence.group(1)[0]):
                return later - number + 1
        return len(lines) - number
    if "|" not in line or not _ROW.match(line):
        return 0
    below = number + 1 < len(lines) and _RULE.match(text[slice(*lines[number + 1])])
    return 2 if below and "-" in text[slice(*lines[number + 1])] else 1


def _cut(text: str, start: int, end: int) -> Spans:
    """Cut prose with sentencex, and join what it cut behind a title or a label."""
    import sentencex

    out: Spans = []
    part = _SURROGATE.sub("\ufffd", text[start:end])  # which no UTF-8 holds
    for found in sentencex.get_sentence_boundaries("en", part):
        a, b = start + found["start_index"], start + found["end_index"]
        if out and _goes_on(text[out[-1][0] : out[-1][1]].rstrip(), text[a:b].lstrip()):
            out[-1] = (out[-1][0], b)
        else:
            out.append((a, b))
    return out


def _goes_on(before: str, after: str) -> bool:
    """Whether a full stop belongs to an abbreviation and the sentence goes on."""
    tail = before[-24:]
    if not tail.endswith("."):
        return False
    if _TITLE.search(tail) or _NUMBERED.fullmatch(before):
        return True
    short = _LABEL.search(tail) and _CONTINUES.match(after)
    return bool(short or (_SHORT.search(tail) and after[:1].islower()))
