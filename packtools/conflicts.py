"""Chunks that contradict each other: a first, cautious reading. Advisory, never a reason to drop.

Two detectors: numeric disagreement and trust mismatch. Both want a pair of sentences that say the
same apart from their numbers; everything less certain is left alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from packtools.schema import Chunk, ConflictAnnotation
from packtools.sentences import split_sentences
from packtools.text import normalise

__all__ = ["detect_conflicts"]

SAME_CLAIM = 0.8
"""Jaccard of the words of two sentences, numbers left out, from which they make the same claim."""
_NUMBER = re.compile(r"(?<![\w.,])[-\u2212]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])\s?%?")
_HEDGE = re.compile(r"\b(?:about|around|nearly|roughly|approximately|almost|over|some|circa|up to)\s+$", re.I)
LONGEST_NUMBER = 15
"""Digits beyond which a number is a code, not a quantity."""
_HEDGED_SHARE = 0.05
_ROUNDED_SHARE = 0.02


@dataclass(frozen=True)
class _Number:
    shown: str
    value: float
    decimals: int
    unit: str
    hedged: bool

    @property
    def year_like(self) -> bool:
        return self.decimals == 0 and 1000 <= self.value <= 2100 and "," not in self.shown and not self.unit

    def agrees(self, other: _Number) -> bool:
        """Whether one is the other, rounded."""
        if self.value == other.value:
            return True
        apart = abs(self.value - other.value) / max(abs(self.value), abs(other.value))
        for rough, fine in ((self, other), (other, self)):
            digits = rough.decimals if rough.decimals else -_trailing_zeros(rough.value)
            if round(fine.value, digits) == rough.value and (digits >= 0 or apart <= _ROUNDED_SHARE):
                return True
        return (self.hedged or other.hedged) and apart <= _HEDGED_SHARE


def _trailing_zeros(value: float) -> int:
    digits = str(int(abs(value)))
    return len(digits) - len(digits.rstrip("0")) if value else 0


@dataclass(frozen=True)
class _Statement:
    chunk: int
    quote: str
    words: frozenset[str]
    numbers: tuple[_Number, ...]


def _numbers(sentence: str) -> Iterator[_Number]:
    for match in _NUMBER.finditer(sentence):
        shown = match.group().strip()
        plain = shown.rstrip("% ").replace(",", "").replace("\u2212", "-")
        if len(plain) > LONGEST_NUMBER:
            continue
        after = re.match(r"\s*([^\W\d_]+)", sentence[match.end() :])
        unit = "%" if shown.endswith("%") else (after.group(1).lower() if after else "")
        before = sentence[match.start() - 1 : match.start()]
        currency = before if before in "$€£¥₹" else ""
        decimals = len(plain.partition(".")[2])
        hedged = _HEDGE.search(sentence[: match.start()]) is not None
        yield _Number(
            shown,
            float(plain),
            decimals,
            currency + unit if decimals or not _bare_year(plain) else _unit_of_year(currency, unit),
            hedged,
        )


def _bare_year(plain: str) -> bool:
    return plain.isdigit() and 1000 <= int(plain) <= 2100


def _unit_of_year(currency: str, unit: str) -> str:
    """A word after a bare four-digit number is a unit only if it is one people measure in."""
    measures = "m km cm mm kg g t tonnes tons metres meters feet ft miles people years days hours litres"
    return currency + unit if currency or unit == "%" or unit in measures.split() else ""


def _statements(chunks: Sequence[Chunk]) -> Iterator[_Statement]:
    for place, chunk in enumerate(chunks):
        for start, end in split_sentences(chunk.text):
            quote = chunk.text[start:end]
            words = frozenset(w for w in normalise(_NUMBER.sub(" ", quote)).split() if not w.isdigit())
            if len(words) >= 4:
                yield _Statement(place, quote, words, tuple(_numbers(quote)))


def detect_conflicts(chunks: Sequence[Chunk]) -> list[ConflictAnnotation]:
    """Find chunks that make the same claim with another number or another trust label.

    1. Sentences of different chunks are compared if they share a pair of words in a row; they make
       the same claim if, numbers left out, the Jaccard of their words is at least 0.8.
    2. Numeric disagreement: as many numbers in both, all equal but one, which has the same unit
       and is not a year, not a rounding of the other (zeros at its end within 2 %), and not within
       5 % after "about".
    3. Trust mismatch: the same claim in chunks with different trust labels.
    4. One flag a kind for a pair of chunks, the most alike sentences first.

    Parameters
    ----------
    chunks : sequence of Chunk

    Returns
    -------
    list of ConflictAnnotation
        In order of the chunks.

    Notes
    -----
    Cautious on purpose: different years, other units and paraphrases give no flag.

    Examples
    --------
    >>> a = Chunk("a", "The tunnel under the strait is 50.5 km long.")
    >>> b = Chunk("b", "The tunnel under the strait is 52 km long.")
    >>> [(c.value_a, c.value_b) for c in detect_conflicts([a, b])]
    [('50.5', '52')]
    """
    found: dict[tuple[int, int, str], ConflictAnnotation] = {}
    for likeness, a, b in _same_claims(list(_statements(chunks))):
        del likeness
        one, two = chunks[a.chunk], chunks[b.chunk]
        values = _disagreement(a, b)
        if values is not None:
            key = (a.chunk, b.chunk, "numeric_disagreement")
            found.setdefault(key, ConflictAnnotation(key[2], one.id, two.id, a.quote, b.quote, *values))
        if one.trust != two.trust:
            key = (a.chunk, b.chunk, "trust_mismatch")
            note = ConflictAnnotation(key[2], one.id, two.id, a.quote, b.quote, one.trust, two.trust)
            found.setdefault(key, note)
    return [found[key] for key in sorted(found)]


def _same_claims(statements: list[_Statement]) -> list[tuple[float, _Statement, _Statement]]:
    index: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for i, statement in enumerate(statements):
        ordered = [w for w in normalise(statement.quote).split() if w in statement.words]
        for pair in set(pairwise(ordered)):
            index[pair].append(i)
    pairs = {pair for places in index.values() for pair in combinations(places, 2)}
    alike = []
    for i, j in sorted(pairs):
        a, b = statements[i], statements[j]
        if a.chunk == b.chunk:
            continue
        likeness = len(a.words & b.words) / len(a.words | b.words)
        if likeness >= SAME_CLAIM:
            alike.append((likeness, a, b))
    return sorted(alike, key=lambda item: -item[0])


def _disagreement(a: _Statement, b: _Statement) -> tuple[str, str] | None:
    if len(a.numbers) != len(b.numbers):
        return None
    unlike = [
        (m, n) for m, n in zip(a.numbers, b.numbers, strict=True) if m.value != n.value or m.unit != n.unit
    ]
    if len(unlike) != 1:
        return None
    m, n = unlike[0]
    if m.unit != n.unit or m.year_like or n.year_like or m.agrees(n):
        return None
    return m.shown, n.shown
