"""The numbers and names in texts, and where they stand: what a cut passage may lose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from packtools.arrays import Ints, Longs
from packtools.progress import progress
from packtools.text import find_numbers

NUMBER, NAME = 0, 1
KINDS = ("number", "name")
_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
_OPENS = re.compile(r"(?:^|[.!?:;\n|*•\"“”(\[])[\s\"“”'(\[]*$")
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
    2. A name is a run of capitalised words with one space between them. A run that opens a sentence
       loses its first word if that is a function word ("The Rhine"), and counts if two words or an
       acronym are left; a single capitalised word that opens a sentence is taken for none.

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
    run: list[tuple[int, int]] = []
    for found in _WORD.finditer(text):
        a, b = found.span()
        if run and (not text[a].isupper() or text[run[-1][1] : a] != " "):
            yield from _name(text, run)
            run = []
        if text[a].isupper():
            run.append((a, b))
    yield from _name(text, run)


def _name(text: str, run: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give the name that a run of capitalised words is, if it is one."""
    if not run:
        return
    words = [text[a:b] for a, b in run]
    if _OPENS.search(text, 0, run[0][0]):
        if words[0].lower() in _FUNCTION_WORDS:
            run, words = run[1:], words[1:]
            if not run or (len(run) == 1 and words[0] == "I"):
                return
        elif len(run) == 1 and not (len(words[0]) > 1 and words[0].isupper()):
            return
    elif len(run) == 1 and words[0].lower() in _FUNCTION_WORDS:
        return
    yield run[0][0], run[-1][1]
