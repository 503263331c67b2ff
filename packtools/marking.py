"""A text in marked segments: where answers stand, and what two near-duplicates differ in."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from packtools.matching import find_folded, fold, has_hyphen_break, source_offset
from packtools.text import NO_SPACES, differences, find_numbers

__all__ = ["Segment", "difference_words", "find_all", "segments", "telling", "unlike"]

Slice = tuple[int, int]
Layer = list[tuple[int, int, str]]
"""Slices of a text, each with a word; of two that overlap the first goes on to its end."""
Key = tuple[str, ...]
Telling = tuple[Slice, Key]
_SPACELESS = NO_SPACES.pattern
_RUN = rf"(?:(?!{_SPACELESS})\S)+"
_TOKEN = re.compile(rf"{_SPACELESS}|{_RUN}(?:(?<=[-\u2010])[ \t]*\n[ \t]*{_RUN})*")
"""A word, with the rest of it behind a line break, or a character of a script without spaces."""
_NO_DIGITS = re.compile(rf"{_SPACELESS}|(?:(?!{_SPACELESS})[^\s\d])+")
REMEMBERED = 20_000
"""Words whose fold and differences are kept."""
MOST_WORDS = 6
"""Differences told of one side; more are an ellipsis."""


# --- segments -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Segment:
    """Hold a stretch of a text that is marked in one way.

    Parameters
    ----------
    text : str
    state : {"kept", "cut", "dropped", "separator"}
    answer : bool, default False
        Whether it is part of a reference answer.
    differs : str, default ""
        Which other chunk says something else here, in words.
    """

    text: str
    state: str
    answer: bool = False
    differs: str = ""


def segments(
    text: str, states: Layer, other: str, answers: Iterable[Slice], marks: Layer
) -> tuple[Segment, ...]:
    """Cut a text into segments that are marked in one way; joined they are the text.

    Parameters
    ----------
    text : str
    states : list of (start, end, state)
    other : str
        The state everywhere else.
    answers : iterable of (start, end)
    marks : list of (start, end, words)
        What differs there from another text.
    """
    layers = [states, [(a, b, "answer") for a, b in answers], marks]
    edges = {0, len(text)} | {edge for layer in layers for a, b, _ in layer for edge in (a, b)}
    state, answer, differs = map(_word_at, layers)
    return tuple(
        Segment(text[a:b], state(a) or other, bool(answer(a)), differs(a)) for a, b in pairwise(sorted(edges))
    )


def _word_at(layer: Layer) -> Callable[[int], str]:
    """Give the function from an offset to the word of the slice there; empty where there is none."""
    apart: Layer = []
    for begin, end, word in sorted(layer):
        begin = max(begin, apart[-1][1]) if apart else begin
        if begin < end:
            apart.append((begin, end, word))
    starts = [begin for begin, _, _ in apart]

    def word_at(place: int) -> str:
        nth = bisect_right(starts, place) - 1
        return apart[nth][2] if nth >= 0 and place < apart[nth][1] else ""

    return word_at


# --- answers --------------------------------------------------------------------------------------


def find_all(text: str, folded: Sequence[str]) -> list[Slice]:
    """Find every place in a text where one of the answers stands, by the rule of `find_answer`.

    Parameters
    ----------
    text : str
    folded : sequence of str
        The answers, folded.

    Returns
    -------
    list of (start, end)
        Ascending; those that overlap are one.

    Examples
    --------
    >>> find_all("No, nobody. NO!", ["no"])
    [(0, 2), (12, 14)]
    """
    found: list[Slice] = []
    for keep in (False, True) if has_hyphen_break(text) else (False,):
        form = fold(text, keep)
        places = [(at, at + len(a)) for a in folded if a in form for at in _each(a, form)]
        if places:
            back = _back(text, form, keep)
            found += [(back(begin), _end(text, back(end - 1))) for begin, end in places]
    return merged(found)


def _each(needle: str, haystack: str) -> Iterator[int]:
    """Give every place of a folded answer: each is blotted out once it is found."""
    while (at := find_folded(needle, haystack)) >= 0:
        yield at
        haystack = f"{haystack[:at]} {haystack[at + 1 :]}"


def _back(text: str, form: str, keep: bool) -> Callable[[int], int]:
    """Give the function from offsets in the fold to those in the text: word by word if that is exact."""
    if text.isascii() and len(text) == len(form):
        return lambda at: at
    starts: list[int] = []
    words: list[tuple[int, str, str]] = []
    length = end = 0
    for found in _TOKEN.finditer(text):
        if piece := _folded(found.group(), keep):
            length += bool(words) and any(c.isspace() for c in text[end : found.start()])
            starts.append(length)
            words.append((found.start(), found.group(), piece))
            length, end = length + len(piece), found.end()
    if _joined(starts, words, length) != form:
        return lambda at: source_offset(text, at, keep)

    def place(at: int) -> int:
        nth = bisect_right(starts, at) - 1
        begin, word, piece = words[nth]
        within = at - starts[nth]
        return begin + (
            within if word.isascii() and len(word) == len(piece) else source_offset(word, within, keep)
        )

    return place


_folded = lru_cache(maxsize=REMEMBERED)(fold)


def _joined(starts: list[int], words: list[tuple[int, str, str]], length: int) -> str:
    """Put folded words at their places, with spaces between."""
    out, at = [], 0
    for start, (_, _, piece) in zip(starts, words, strict=True):
        out.append(" " * (start - at) + piece)
        at = start + len(piece)
    return "".join(out)


def _end(text: str, last: int) -> int:
    """Give the end of a slice by its last character: marks that belong to it are inside."""
    end = last + 1
    while end < len(text) and unicodedata.category(text[end])[0] == "M":
        end += 1
    return end


def merged(slices: Iterable[Slice]) -> list[Slice]:
    """Sort slices and join those that overlap."""
    out: list[Slice] = []
    for begin, end in sorted(slices):
        if out and begin < out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((begin, end))
    return out


# --- differences ----------------------------------------------------------------------------------


def unlike(a: Sequence[Telling], b: Sequence[Telling]) -> tuple[list[Slice], list[Slice]]:
    """Find in what two texts differ, to mark it in both.

    Parameters
    ----------
    a, b : sequence of (slice, key)
        What `telling` gives of each.

    Returns
    -------
    list of (start, end), list of (start, end)
        In each of the texts.

    Examples
    --------
    >>> unlike(telling("It is 3.14, not more."), telling("It is 314, not more."))
    ([(6, 10)], [(6, 9)])
    """
    ours, theirs = [key for _, key in a], [key for _, key in b]
    first = _alike(ours, theirs)
    last = _alike(ours[first:][::-1], theirs[first:][::-1])
    a, b = a[first : len(a) - last], b[first : len(b) - last]
    matcher = SequenceMatcher(None, ours[first : len(ours) - last], theirs[first : len(theirs) - last])
    out: tuple[list[Slice], list[Slice]] = [], []
    for same, a0, a1, b0, b1 in matcher.get_opcodes():
        if same != "equal":
            out[0].extend(place for place, _ in a[a0:a1])
            out[1].extend(place for place, _ in b[b0:b1])
    return out


def _alike(a: list[Key], b: list[Key]) -> int:
    """Count how many keys are the same from the start."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def telling(text: str) -> list[Telling]:
    """Give where the numbers, dates and negations of a text stand, and how each is compared.

    The guard's own rule (`differences`) says what counts. A negation of several characters in a
    script without spaces has no place of its own: `difference_words` tells it.
    """
    numbers = find_numbers(text)
    taken = [(a, b) for a, b, _ in numbers]
    out: list[Telling] = [((a, b), (plain,)) for a, b, plain in numbers]
    for found in _NO_DIGITS.finditer(text):
        nth = bisect_right(taken, (found.end() - 1, len(text))) - 1
        inside = nth >= 0 and taken[nth][1] > found.start()
        if not inside and (key := _differences(found.group())):
            out.append((_trimmed(text, found.start(), found.end(), key), key))
    return sorted(out)


_differences = lru_cache(maxsize=REMEMBERED)(differences)


def _trimmed(text: str, begin: int, end: int, key: Key) -> Slice:
    """Leave out of a word the punctuation around it."""
    while _differences(text[begin : end - 1]) == key:
        end -= 1
    while _differences(text[begin + 1 : end]) == key:
        begin += 1
    return begin, end


def difference_words(ours: Key, theirs: Key) -> str:
    """Say what only one of two texts has: "3.14 here; 314 there"; empty if they don't differ.

    Parameters
    ----------
    ours, theirs : tuple of str
        The `differences` of each.

    Examples
    --------
    >>> difference_words(("3.14", "march"), ("march", "314"))
    '3.14 here; 314 there'
    >>> difference_words(("2", "3"), ("3", "2"))
    'the same numbers in another order'
    """
    if ours == theirs:
        return ""
    sides = [
        (list((Counter(a) - Counter(b)).elements()), where)
        for a, b, where in ((ours, theirs, "here"), (theirs, ours, "there"))
    ]
    told = [f"{_listed(words)} {where}" for words, where in sides if words]
    if len(told) == 1:
        return f"{told[0]} only"
    return "; ".join(told) or "the same numbers in another order"


def _listed(words: list[str]) -> str:
    return ", ".join(words[:MOST_WORDS]) + (", …" if len(words) > MOST_WORDS else "")
