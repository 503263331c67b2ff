"""What two texts have in common: the normal form, shingles, and the guard.

Works on strings and gives strings or flat numpy arrays; knows nothing of chunks or runs.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import string
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from packtools.progress import progress

__all__ = ["differences", "normalise", "shingle_rule", "text_key"]

BLOCK = 4096
"""Texts hashed at a time; bounds the memory of `compare`."""
WORD_SHINGLE = 5
CHAR_SHINGLE = 3

# ASCII in one table: letters lowered, the white space of str.split() to a space.
_ASCII_SPACE = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f "
_ASCII_TABLE = bytes(
    ord(" ") if chr(b) in _ASCII_SPACE else ord(chr(b).lower()) if b < 128 else b for b in range(256)
)
_ASCII_PUNCTUATION = string.punctuation.encode()


class _Punctuation(dict[int, str | None]):
    """Delete characters of the Unicode categories P and S; filled as characters turn up."""

    def __missing__(self, code: int) -> str | None:
        kept = None if unicodedata.category(chr(code))[0] in "PS" else chr(code)
        self[code] = kept
        return kept


_PUNCTUATION = _Punctuation()


def _words(text: str) -> list[str]:
    if text.isascii():
        return text.encode().translate(_ASCII_TABLE, _ASCII_PUNCTUATION).decode().split()
    return unicodedata.normalize("NFC", text).lower().translate(_PUNCTUATION).split()


def normalise(text: str) -> str:
    """Reduce a text to the form in which exact duplicates are equal.

    1. NFC, then `str.lower`.
    2. Characters of Unicode categories P and S are deleted, not replaced.
    3. White space collapses to one space; none at the ends.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> normalise("State-of-the-art,  3.14!")
    'stateoftheart 314'
    """
    return " ".join(_words(text))


def text_key(text: str) -> bytes:
    """Give the SHA-256 of the normal form: equal for exact duplicates.

    A text without letters or digits (its normal form is empty) is equal only to itself.
    """
    return _key(text, _words(text))


def _key(text: str, words: list[str]) -> bytes:
    normal = " ".join(words) or "\0" + text
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).digest()


def collapse(text: str) -> str:
    """Turn runs of white space, and U+FFFD, into one space; none at the ends.

    Examples
    --------
    >>> collapse("  a\\tb\ufffdc ")
    'a b c'
    """
    return " ".join(text.replace("\ufffd", " ").split())


def bag_hashes(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """Give for each text the sum of a 64-bit number for each letter of its normal form.

    White space adds nothing, so the sum of a text is that of its sentences, however it is cut:
    texts with equal normal or lower-cased forms have equal sums, and few others have.
    """
    out = np.zeros(len(texts), dtype=np.uint64)
    for begin in range(0, len(texts), BLOCK):
        block = ["".join(_words(t)) for t in texts[begin : begin + BLOCK]]
        block = [b if b.isascii() else unicodedata.normalize("NFD", b) for b in block]
        codes = np.frombuffer("".join(block).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        end = np.cumsum([len(b) for b in block], dtype=np.int64)
        total = np.concatenate(
            [np.zeros(1, np.uint64), np.cumsum(_mix(np.zeros(len(codes), np.uint64), codes + 1))]
        )
        out[begin : begin + len(block)] = total[end] - total[end - [len(b) for b in block]]
    return out.view(np.int64)


# --- shingles -----------------------------------------------------------------------------------

NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]"
)


def _spaceless(normal: str) -> bool:
    """Whether most of a normalised text is in scripts written without spaces."""
    return not normal.isascii() and 2 * len(NO_SPACES.findall(normal)) > len(normal) - normal.count(" ")


def shingle_rule(text: str) -> str:
    """Say which shingles a text is compared by.

    Texts that are mostly in scripts without spaces (Han, kana, Thai, Lao, Khmer, Burmese) use
    character 3-shingles, all others word 5-shingles, both over the normal form.

    Examples
    --------
    >>> shingle_rule("東京は日本の首都です"), shingle_rule("Tokyo is the capital")
    ('3 characters', '5 words')
    """
    return f"{CHAR_SHINGLE} characters" if _spaceless(normalise(text)) else f"{WORD_SHINGLE} words"


@dataclass(frozen=True)
class Shingles:
    """Hold the distinct shingles of many texts, rarest first within each text.

    Parameters
    ----------
    start : ndarray of int64, shape (n_texts + 1,)
        ``ids[start[i]:start[i + 1]]`` are those of text i.
    ids : ndarray of int32
        Shingle numbers, ascending; a lower number is a rarer shingle.
    n_occurs : ndarray of int32, shape (n_shingles,)
        How often each shingle occurs, repeats within a text included; ascending.
    """

    start: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]
    n_occurs: npt.NDArray[np.int32]

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """Number of distinct shingles of each text."""
        return np.diff(self.start)


def _mix(hashed: npt.NDArray[np.uint64], units: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    """Fold one more unit into running 64-bit hashes (the splitmix64 finaliser)."""
    h = (hashed ^ units) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(30)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    return h


@dataclass(frozen=True)
class Compared:
    """Hold what is needed to compare texts: the key of each, and its shingles."""

    keys: list[bytes]
    shingles: Shingles


def shingles(texts: Sequence[str]) -> Shingles:
    """Cut many texts into shingles: see `compare`."""
    return compare(texts).shingles


def compare(texts: Sequence[str]) -> Compared:
    """Take the normal form of many texts once, for exact and for near-duplicates.

    Each text gives its key (see `text_key`) and its distinct runs of 5 words (3 characters: see
    `shingle_rule`) of the normal form; a shorter text is one shingle; a text with an empty normal
    form has none. Shingles are told apart by a 64-bit hash of exact word numbers.
    """
    numbers: defaultdict[str, int] = defaultdict(itertools.count(1).__next__)
    keys: list[bytes] = []
    hashed: list[npt.NDArray[np.uint64]] = []
    owner: list[npt.NDArray[np.int32]] = []
    for begin in progress(range(0, len(texts), BLOCK), "compare passages", -(-len(texts) // BLOCK)):
        block = texts[begin : begin + BLOCK]
        units: list[npt.NDArray[np.uint32]] = []
        length = np.zeros(len(block), dtype=np.int64)
        width = np.full(len(block), WORD_SHINGLE, dtype=np.int64)
        for i, text in enumerate(block):
            words = _words(text)
            keys.append(_key(text, words))
            if not text.isascii() and _spaceless(" ".join(words)):
                words, width[i] = list("".join(words)), CHAR_SHINGLE
            length[i] = len(words)
            units.append(np.fromiter(map(numbers.__getitem__, words), np.uint32, len(words)))
        found, of = _hash_shingles(np.concatenate(units), length, width)
        hashed.append(found)
        owner.append((of + begin).astype(np.int32))
    if not hashed:
        none = np.zeros(0, np.int32)
        return Compared(keys, Shingles(np.zeros(1, np.int64), none, none))
    del numbers
    return Compared(keys, _rarest_first(hashed, owner, len(texts)))


def _hash_shingles(
    units: npt.NDArray[np.uint32], length: npt.NDArray[np.int64], width: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Hash each run of `width` units within its text; give the hashes and their text numbers."""
    begin = np.cumsum(length) - length
    count = np.where(length >= width, length - width + 1, (length > 0).astype(np.int64))
    owner = np.repeat(np.arange(len(length)), count)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    place = begin[owner] + offset
    reach = np.minimum(width, length)[owner]
    # Width and reach go in first: a whole short text is no shingle of a longer one.
    hashed = np.full(len(owner), 0x243F6A8885A308D3, dtype=np.uint64)
    hashed = _mix(_mix(hashed, width[owner].astype(np.uint32)), reach.astype(np.uint32))
    for step in range(int(width.max(initial=0))):
        inside = step < reach
        if inside.all():
            hashed = _mix(hashed, units[place + step])
        else:
            hashed[inside] = _mix(hashed[inside], units[place[inside] + step])
    return hashed, owner


def _rarest_first(
    hashes: list[npt.NDArray[np.uint64]], owners: list[npt.NDArray[np.int32]], n_texts: int
) -> Shingles:
    """Number the shingles by how seldom they occur, and sort each text's by that number.

    The lists are emptied: the largest arrays of `prepare` live here, each no longer than needed.
    """
    number, n = _numbered(hashes)
    owner = np.concatenate(owners)
    owners.clear()
    n_occurs = np.bincount(number, minlength=n if len(number) else 0).astype(np.int32)
    by_rarity = np.argsort(n_occurs, kind="stable").astype(np.int32)
    rank = np.empty(len(by_rarity), dtype=np.int32)
    rank[by_rarity] = np.arange(len(by_rarity), dtype=np.int32)
    n_occurs = n_occurs[by_rarity]
    del by_rarity
    number = rank[number]
    del rank
    size = np.zeros(n_texts, dtype=np.int64)
    ids = [np.zeros(0, dtype=np.int32)]
    edges = np.searchsorted(owner, np.arange(0, n_texts + BLOCK, BLOCK))
    for begin, (start, end) in zip(range(0, n_texts, BLOCK), pairwise(edges), strict=True):
        key = (owner[start:end] - begin).astype(np.int64) * n + number[start:end]
        key.sort()
        once = np.ones(len(key), dtype=bool)  # a shingle that a text repeats counts once
        np.not_equal(key[1:], key[:-1], out=once[1:])
        key = key[once]
        ids.append((key % n).astype(np.int32))
        size[begin : begin + BLOCK] = np.bincount(key // n, minlength=min(BLOCK, n_texts - begin))
    return Shingles(np.concatenate([[0], np.cumsum(size)]), np.concatenate(ids), n_occurs)


def _numbered(hashes: list[npt.NDArray[np.uint64]]) -> tuple[npt.NDArray[np.int32], int]:
    """Replace hashes by dense numbers; give how many there are (at least 1)."""
    hashed = np.concatenate(hashes)
    hashes.clear()
    order = np.argsort(hashed)
    hashed = hashed[order]
    fresh = np.ones(len(order), dtype=bool)
    np.not_equal(hashed[1:], hashed[:-1], out=fresh[1:])
    del hashed
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.cumsum(fresh, dtype=np.int32) - 1
    return number, max(int(fresh.sum()), 1)


# --- what two near-duplicates must not differ in ----------------------------------------------

_MONTHS = (
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec "
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri"
)
_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand million billion trillion dozen half quarter first second third fourth fifth "
    "sixth seventh eighth ninth tenth once twice double triple"
)
_NEGATIONS = (
    "not no never none nor neither without cannot nobody nothing nowhere non "
    "ne pas jamais aucun sans nicht kein keine keinen ohne nie nunca sin não nem sem не нет без "
    "لا ليس لم لن غير बिना नहीं न"
)
_MINUS = "\u2212\u2013-"
_NUMBERS = re.compile(
    rf"(?:(?<![\w.])[{_MINUS}])?(?:(?<!\d)\.)?\d+(?:[.,:/\u066b\u066c{_MINUS}]\d+)*(?:e[+{_MINUS}]?\d+)?(?:\s?[%‰°])?"
)
_DIGIT = re.compile(r"\d")
_PLAIN = re.compile("[0-9]+")
_LOOSE_SIGN = re.compile(r"(?<=\d)\s(?=[%‰°])")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TELLING = frozenset((_MONTHS + " " + _NUMBER_WORDS + " " + _NEGATIONS).split())
_MARKS = "\u0300-\u036f\u064b-\u0652\u0900-\u0903\u093a-\u094f"
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_MARKS}])*(?:['’]t\b)?")
_TELLING_SIGN = re.compile("[$€£¥₹₩<>≤≥≠±]")
# Superscripts, subscripts, fractions, Roman numerals; Han numerals; Chinese and Japanese negations.
OTHER_NUMBER = "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2080-\u2089\u2150-\u218b\u2460-\u249b"
_TELLING_CHARACTER = re.compile(
    f"[{OTHER_NUMBER}]|[一二三四五六七八九十百千万萬億亿零〇]|[不没沒無无非未]|ない|なかった|ません"
)


def differences(text: str) -> tuple[str, ...]:
    """List what a reader must not lose: numbers, dates and negations, in the order of the text.

    Two near-duplicates with unlike lists are not collapsed under `protect_differences`. Numbers
    keep their sign, decimals, exponent and percent mark; thousands separators are dropped, so
    "1,000" and "1000" agree; currency and comparison signs count too. Number words, month and
    weekday names and negations count for English, and common negations for French, German,
    Spanish, Portuguese, Russian, Arabic, Hindi, Chinese and Japanese.

    Examples
    --------
    >>> differences("Not 3.14 but 1,000 in March") == differences("not 3.14, but 1000 in march!")
    True
    >>> differences("3.14") == differences("314")
    False
    """
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFC", text).lower()
    found = [w for w in _WORD.findall(folded) if w in _TELLING or w[-2:] in ("'t", "’t")]
    words = _LOOSE_SIGN.sub("", folded).split()
    for number in _NUMBERS.findall(" ".join(w for w in words if _DIGIT.search(w))):
        plain = _THOUSANDS.sub("", number) if "," in number else number
        found.append(plain if plain.isdecimal() and plain.isascii() else _plain_number(plain))
    found += _TELLING_SIGN.findall(folded)
    if not text.isascii():
        found += _TELLING_CHARACTER.findall(folded)
    return tuple(found)


def find_numbers(text: str) -> list[tuple[int, int, str]]:
    """Give where each number of a text stands, and how it is written plainly: see `differences`.

    Examples
    --------
    >>> find_numbers("1,000 km in 3.5 h")
    [(0, 5, '1000'), (12, 15, '3.5')]
    """
    out: list[tuple[int, int, str]] = []
    end = 0
    while digit := _DIGIT.search(text, end):
        at = digit.start()
        tries = (_NUMBERS.match(text, start) for start in range(max(at - 2, end), at + 1))
        found = next(m for m in tries if m and m.end() > at)  # a sign and a point may stand before
        plain = _THOUSANDS.sub("", found.group())
        out.append((found.start(), found.end(), plain if _PLAIN.fullmatch(plain) else _plain_number(plain)))
        end = found.end()
    return out


def _plain_number(number: str) -> str:
    """Write a number with ASCII digits and signs and without inner white space."""
    digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in number if not c.isspace())
    return "".join(digits).replace("\u2212", "-").replace("\u2013", "-")
