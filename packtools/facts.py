"""The numbers and names in texts, and where they stand: what a cut passage may lose."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from packtools.arrays import Ints, Longs
from packtools.progress import progress
from packtools.text import NO_SPACES, find_numbers

NUMBER, NAME = 0, 1
KINDS = ("number", "name")
LONGEST_NAME = 6
"""Words; a longer run of capitalised words is a heading or a menu."""
_LETTER = f"(?:(?!{NO_SPACES.pattern})[^\\W\\d_][\u0300-\u036f]*)"
_WORD = rf"(?![a-z]){_LETTER}+(?:['’\-&]{_LETTER}+)*"
_TITLES = "Dr|Mr|Mrs|Ms|Prof|St|Ste|Mt|Gen|Sen|Rev|Hon|Col|Capt|Lt|Sgt|Jr|Sr|Fr|Sra"
_DOTTED = rf"(?:(?:[A-Z]\.)+|(?:{_TITLES})\.)"
_CAPITALISED = re.compile(rf"(?<![\w&])(?:{_DOTTED}|{_WORD}(?!\w))(?: (?:{_DOTTED}|{_WORD}(?!\w)))*")
_PART = re.compile(r"\S+")
_BEFORE_DOT = re.compile(rf"(?:^|[^\w])(?:[A-Z]|{_TITLES})$")
_ACRONYM = re.compile(r"(?:[A-Z]\.){2,}$")
_POSSESSIVE = re.compile("['’]s$")
_FUNCTION = (
    "a an the this that these those it its he she they we you i his her their our my your there here in "
    "on at by for from of to with as and but or nor so if when while where what which who whose why how "
    "after before since until during although though because however also not no yes all both each "
    "every some many most several one two three is are was were do does did has have had can may will "
    "would should then again once now today yet still thus hence later"
)
_FUNCTION_WORDS = frozenset(_FUNCTION.split())
_NO_NAME = frozenset(_TITLES.lower().split("|")) | {"ph"}
_Mention = tuple[int, int, int, str]


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
        How each is written where it is found first.
    keys : list of str
        How each is compared: "1,000" as "1000".
    """

    start: Longs
    begin: Longs
    end: Longs
    number: Longs
    kind: Ints
    words: list[str]
    keys: list[str]

    def of(self, text: int) -> Iterator[_Mention]:
        """Give the mentions in one text: kind, begin, end, key."""
        for at in range(int(self.start[text]), int(self.start[text + 1])):
            number = int(self.number[at])
            yield int(self.kind[number]), int(self.begin[at]), int(self.end[at]), self.keys[number]


def find_facts(texts: Sequence[str], known: tuple[Sequence[str], Facts] | None = None) -> Facts:
    """Find the numbers and capitalised names of many texts.

    1. Numbers are those of `differences`: "1,000" and "1000" are the same.
    2. A name is a run of up to six capitalised words with one space between them; initials, titles
       and acronyms count ("John F. Kennedy", "Dr. Snow", "AT&T"), a final "'s" does not. Function
       words that it starts with are left out ("The Rhine" is "Rhine"). A single letter is none, and
       no single capitalised word that opens a sentence, unless it is all capitals; three words that
       are all capitals are shouted.

    Scripts without capitals have no names.

    Parameters
    ----------
    texts : sequence of str
    known : (sequence of str, Facts) or None, default None
        As many texts and what was found in them; those that are the same are not searched again.
    """
    numbers: dict[tuple[int, str], int] = {}
    words: list[str] = []
    begin: list[int] = []
    end: list[int] = []
    number: list[int] = []
    size = np.zeros(len(texts), dtype=np.int64)
    for i, text in enumerate(progress(texts, "find numbers and names", len(texts))):
        before = len(begin)
        same = known is not None and known[0][i] == text
        found = known[1].of(i) if known is not None and same else _mentions(text)
        for kind, a, b, key in found:
            place = numbers.setdefault((kind, key), len(numbers))
            if place == len(words):
                words.append(text[a:b])
            begin.append(a)
            end.append(b)
            number.append(place)
        size[i] = len(begin) - before
    return Facts(
        np.concatenate([[0], np.cumsum(size)]),
        np.array(begin, dtype=np.int64),
        np.array(end, dtype=np.int64),
        np.array(number, dtype=np.int64),
        np.array([kind for kind, _ in numbers], dtype=np.int8),
        words,
        [key for _, key in numbers],
    )


def _mentions(text: str) -> Iterable[_Mention]:
    for a, b, plain in find_numbers(text):
        yield NUMBER, a, b, plain
    for a, b in _names(text):
        yield NAME, a, b, unicodedata.normalize("NFC", text[a:b])


def _names(text: str) -> Iterator[tuple[int, int]]:
    for found in _CAPITALISED.finditer(text):
        begin, end = found.span()
        words = [(m.start(), m.end()) for m in _PART.finditer(text, begin, end)]
        for capital, run in itertools.groupby(words, lambda word: text[word[0]].isupper()):
            if capital:  # a letter beyond ASCII may be none
                yield from _name(text, list(run))


def _name(text: str, run: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give the names that a run of capitalised words is."""
    for at in range(1, len(run)):  # "Vitamin C. The": a function word behind a full stop
        if text[run[at - 1][1] - 1] == "." and _function_word(text, run[at]):
            yield from _name(text, run[:at])
            yield from _name(text, run[at:])
            return
    while run and (_function_word(text, run[0]) or (len(run) == 1 and text[run[0][1] - 1] == ".")):
        if len(run) == 1 and _ACRONYM.search(text, *run[0]):
            break  # "U.S."
        run = run[1:]
    if not run or len(run) > LONGEST_NAME or (len(run) > 2 and text[run[0][0] : run[-1][1]].isupper()):
        return
    begin, end = run[0][0], run[-1][1]
    end -= 2 if _POSSESSIVE.search(text, begin, end) else 0
    end -= 1 if text[end - 1] == "." and not _ACRONYM.search(text, begin, end) else 0
    if len(run) == 1:
        word = text[begin:end]
        if len(word) < 2 or word.lower() in _NO_NAME or (not word.isupper() and _opens(text, begin)):
            return
    yield begin, end


def _function_word(text: str, word: tuple[int, int]) -> bool:
    return text[word[0] : word[1]].lower() in _FUNCTION_WORDS


def _opens(text: str, at: int) -> bool:
    """Whether a sentence starts at a place: what stands before it ends one, quotes and brackets aside."""
    while at and (text[at - 1].isspace() or text[at - 1] in "\"'“”‘’(["):
        if text[at - 1] == "\n":
            return True
        at -= 1
    if at and text[at - 1] == "." and _BEFORE_DOT.search(text, max(at - 6, 0), at - 1):
        return False
    return not at or text[at - 1] in ".!?:;|*•…"
