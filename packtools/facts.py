"""The numbers and names in texts, and where they stand: what a cut passage may lose."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from packtools.arrays import Ints, Longs
from packtools.progress import progress
from packtools.text import find_numbers

NUMBER, NAME = 0, 1
KINDS = ("number", "name")
_LETTERS = "[^\\W\\d_]"
_WORD = f"[^\\W\\d_a-z]{_LETTERS}*(?:['’\\-]{_LETTERS}+)*"
_CAPITALISED = re.compile(f"(?<!{_LETTERS}){_WORD}(?: {_WORD})*")
_PART = re.compile(r"\S+")
_FUNCTION = (
    "a an the this that these those it its he she they we you i his her their our my your there here in "
    "on at by for from of to with as and but or nor so if when while where what which who whose why how "
    "after before since until during although though because however also not no yes all both each "
    "every some many most several one two three is are was were do does did has have had can may will "
    "would should"
)
_FUNCTION_WORDS = frozenset(_FUNCTION.split())


@dataclass(frozen=True)
class Facts:
    """Hold the numbers and names of many texts.

    Parameters
    ----------
    start : ndarray of int64, shape (n_texts + 1,)
        ``begin[start[i]:start[i + 1]]`` are those of text i.
    begin, end : ndarray of int64
        Half-open character offsets.
    number : ndarray of int64
        Place in `words`; equal facts share it.
    kind : ndarray of int8
        `NUMBER` or `NAME`, for each of `words`.
    words : list of str
    """

    start: Longs
    begin: Longs
    end: Longs
    number: Longs
    kind: Ints
    words: list[str]


def find_facts(texts: Sequence[str]) -> Facts:
    """Find the numbers and capitalised names of many texts.

    1. Numbers are those of `differences`: "1,000" and "1000" are the same.
    2. A name is a run of capitalised words with one space between them, without the function words
       that it starts with ("The Rhine" is "Rhine"). A single capitalised word that opens a sentence
       is none, unless it is all capitals.

    Scripts without capitals have no names.
    """
    known: dict[tuple[int, str], int] = {}
    begin: list[int] = []
    end: list[int] = []
    number: list[int] = []
    size = np.zeros(len(texts), dtype=np.int64)
    for i, text in enumerate(progress(texts, "find numbers and names", len(texts))):
        before = len(begin)
        for kind, a, b, word in _facts(text):
            begin.append(a)
            end.append(b)
            number.append(known.setdefault((kind, word), len(known)))
        size[i] = len(begin) - before
    return Facts(
        np.concatenate([[0], np.cumsum(size)]),
        np.array(begin, dtype=np.int64),
        np.array(end, dtype=np.int64),
        np.array(number, dtype=np.int64),
        np.array([kind for kind, _ in known], dtype=np.int8),
        [word for _, word in known],
    )


def _facts(text: str) -> Iterator[tuple[int, int, int, str]]:
    for a, b, plain in find_numbers(text):
        yield NUMBER, a, b, plain
    for a, b in _names(text):
        yield NAME, a, b, text[a:b]


def _names(text: str) -> Iterator[tuple[int, int]]:
    for found in _CAPITALISED.finditer(text):
        begin, end = found.span()
        words = [(m.start(), m.end()) for m in _PART.finditer(text, begin, end)]
        if not text.isascii():
            yield from _runs_of_capitals(text, words)
        else:
            yield from _name(text, words)


def _runs_of_capitals(text: str, words: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Leave out words that start with a letter beyond ASCII that is no capital."""
    for capital, run in itertools.groupby(words, lambda word: text[word[0]].isupper()):
        if capital:
            yield from _name(text, list(run))


def _name(text: str, run: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give the name that a run of capitalised words is, if it is one."""
    first = text[run[0][0] : run[0][1]]
    if len(run) > 1:
        if first.lower() in _FUNCTION_WORDS:
            yield from _name(text, run[1:]) if len(run) > 2 or first != "I" else ()
            return
    elif first.lower() in _FUNCTION_WORDS or (
        _opens(text, run[0][0]) and not (first[1:] and first.isupper())
    ):
        return
    yield run[0][0], run[-1][1]


def _opens(text: str, at: int) -> bool:
    """Whether a sentence starts at a place: what stands before it ends one, quotes and brackets aside."""
    while at and (text[at - 1].isspace() or text[at - 1] in "\"'“”‘’(["):
        if text[at - 1] == "\n":
            return True
        at -= 1
    return not at or text[at - 1] in ".!?:;|*•…"
