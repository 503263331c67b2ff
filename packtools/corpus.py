"""Distinct texts and all that is counted about them, each once: the base of a pack and of a run."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from packtools.arrays import Bools, Longs
from packtools.counters import (
    CharCounter,
    TokenCounter,
    additive,
    parts_at_spaces,
    separator_cost,
    starts_loosely,
)
from packtools.facts import Facts, find_facts
from packtools.kernels import group_sum
from packtools.picking import Costs
from packtools.progress import progress
from packtools.selection import SentenceTable, Weights
from packtools.sentences import get_splitter
from packtools.text import bag_hashes, collapse

REMEMBERED = 200_000
"""Counts of rendered or cut texts that are kept; a long text by its hash."""
SHORT = 64
_FIRST = re.compile(r"\S+(?= \S)")


class Corpus:
    """Hold texts with their sizes and sentences; whatever is asked for twice is worked out once.

    Parameters
    ----------
    texts : sequence of str
    counter : TokenCounter
    n_tokens : sequence of (int or None), or None
        Counts that are known already; they are trusted.
    """

    def __init__(
        self, texts: Sequence[str], counter: TokenCounter, n_tokens: Sequence[int | None] | None = None
    ) -> None:
        self.texts, self.counter = list(texts), counter
        self._given = n_tokens
        self._source: Corpus | None = None  # of which this is the form with white space collapsed
        self._tables: dict[object, SentenceTable] = {}
        self._bags: dict[object, Longs] = {}
        self._forget_counts()

    def _forget_counts(self) -> None:
        self._behind: dict[str, Longs] = {}
        self._loose: dict[str, Bools] = {}
        self._costs: dict[tuple[object, str], SentenceCosts] = {}
        self._spaced: dict[str, int] = {}
        self._counted: dict[str | bytes, int] = {}

    def __len__(self) -> int:
        return len(self.texts)

    def count(self, text: str) -> int:
        """Count a text that was put together; remembered."""
        if isinstance(self.counter, CharCounter) or not text:
            return len(text)  # nothing costs nothing, whatever a counter adds for each text
        key = text if len(text) < SHORT else hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest()
        found = self._counted.get(key)
        if found is None:
            if len(self._counted) >= REMEMBERED:
                self._counted.clear()
            found = self._counted[key] = self.counter.count(text)
        return found

    def measure(self, text: str, unit: str) -> int:
        """Give the size of a text in a unit."""
        return len(text) if unit == "chars" else self.count(text)

    @cached_property
    def n_chars(self) -> Longs:
        """Characters of each text."""
        return np.array([len(t) for t in self.texts], dtype=np.int64)

    @cached_property
    def n_tokens(self) -> Longs:
        """Tokens of each text; equal texts are counted once."""
        given = self._given if self._given is not None else [None] * len(self.texts)
        unknown = [t for t, n in zip(self.texts, given, strict=True) if n is None]
        known: dict[str, int] = dict.fromkeys(unknown, 0)
        count = self.counter.count
        for text in progress(known, f"count tokens ({self.counter.name})", len(known)):
            known[text] = count(text)
        sizes = [known[t] if n is None else n for t, n in zip(self.texts, given, strict=True)]
        return np.array(sizes, dtype=np.int64)

    def size(self, unit: str) -> Longs:
        """Give the size of each text."""
        return self.n_chars if unit == "chars" else self.n_tokens

    @property
    def separators(self) -> list[str]:
        """Separators whose cost is known."""
        return list(self._behind)

    def behind(self, separator: str) -> Longs:
        """Give the tokens that a separator adds behind each text."""
        if separator not in self._behind:
            given = self._given if self._given is not None else [None] * len(self.texts)
            gap = self.counter.count(separator) if any(n is not None for n in given) else 0
            cost = [
                separator_cost(self.counter, text, separator, n) if cached is None else gap
                for text, n, cached in zip(self.texts, self.n_tokens.tolist(), given, strict=True)
            ]
            self._behind[separator] = np.array(cost, dtype=np.int64)
        return self._behind[separator]

    def before(self, text: str) -> int:
        """Give the tokens that a single space adds before a text, where the counter parts at spaces.

        Only the first word decides; remembered for each.
        """
        found = _FIRST.match(text)
        word = found.group() if found else text
        if word not in self._spaced:
            self._spaced[word] = self.counter.count(" " + word) - self.counter.count(word)
        return self._spaced[word]

    @property
    def trusted(self) -> bool:
        """Whether some counts were given, which may not be what the counter would say."""
        return self._given is not None and any(n is not None for n in self._given)

    def additive(self, separator: str) -> bool:
        """Whether the counter promises that counts add up across a separator."""
        return isinstance(self.counter, CharCounter) or additive(self.counter, separator)

    def unsure(self, separator: str) -> Bools:
        """Mark the texts before which token counts may not add up across a separator.

        All of them where the counter promises nothing; else those that start with white space or
        "/", where tokens may merge across the line break.
        """
        if separator not in self._loose:
            n = len(self.texts)
            if isinstance(self.counter, CharCounter):
                found = np.zeros(n, dtype=bool)
            elif not self.additive(separator):
                found = np.ones(n, dtype=bool)
            else:
                found = np.array([starts_loosely(t) for t in self.texts], dtype=bool)
            self._loose[separator] = found
        return self._loose[separator]

    def table(self, splitter: str) -> SentenceTable:
        """Give the sentences of all texts; split once."""
        key = get_splitter(splitter)
        if key not in self._tables:
            known = None if self._source is None else self._source.table(splitter)
            self._tables[key] = SentenceTable(self.texts, splitter, known)
        return self._tables[key]

    def costs(self, splitter: str, unit: str) -> SentenceCosts:
        """Give what sentences cost in a unit."""
        key = (get_splitter(splitter), unit)
        if key not in self._costs:
            self._costs[key] = SentenceCosts(self, self.table(splitter), unit)
        return self._costs[key]

    @cached_property
    def whole_bags(self) -> Longs:
        """Give a number for the characters of each text: see `bags`."""
        return bag_hashes(self.texts)

    def bags(self, splitter: str) -> Longs:
        """Give a number for the characters of each sentence; equal texts have equal sums."""
        key = get_splitter(splitter)
        if key not in self._bags:
            self._bags[key] = bag_hashes(self.table(splitter).sentences)
        return self._bags[key]

    @cached_property
    def collapsed(self) -> Corpus:
        """The same texts with white space collapsed; this very corpus if that changes nothing."""
        texts = [collapse(t) for t in self.texts]
        changed = [i for i, (a, b) in enumerate(zip(self.texts, texts, strict=True)) if a != b]
        if not changed:
            return self
        made = Corpus(texts, self.counter, self._given)
        made._source, made.collapsed = self, made
        if self._given is None:
            made.n_tokens = self.n_tokens.copy()
            made.n_tokens[changed] = Corpus([texts[i] for i in changed], self.counter).n_tokens
        return made

    @cached_property
    def facts(self) -> Facts:
        """The numbers and names of every text."""
        source = self._source
        return find_facts(self.texts, None if source is None else (source.texts, source.facts))

    @cached_property
    def weights(self) -> Weights:
        """TF-IDF weights fitted on the texts."""
        return Weights(self.texts)

    def with_counter(self, counter: TokenCounter) -> Corpus:
        """Give the same texts counted by another counter; nothing is split again."""
        other = copy.copy(self)
        other.counter = counter
        other.__dict__.pop("n_tokens", None)
        other._forget_counts()
        twin = other.__dict__.pop("collapsed", None)
        if twin is not None:
            other.collapsed = other if twin is self else twin.with_counter(counter)
        return other


class SentenceCosts:
    """Hold what each sentence of a table costs; tokens are counted when a sentence is first asked for.

    Parameters
    ----------
    corpus : Corpus
    table : SentenceTable
    unit : str

    Attributes
    ----------
    exact : ndarray of bool, shape (n_sentences,)
        Whether the cost behind another sentence is sure: characters always; tokens where the counter
        promises that a single space parts them.
    """

    def __init__(self, corpus: Corpus, table: SentenceTable, unit: str) -> None:
        self.corpus, self.table, self.unit = corpus, table, unit
        self.alone = table.end - table.begin
        self.joined = table.end - table.gap
        self._known: Bools | None = None
        self.exact = np.ones(len(table.begin), dtype=bool)
        if unit == "tokens" and not isinstance(corpus.counter, CharCounter):
            self._known = np.zeros(len(table.begin), dtype=bool)
            spaced = self.joined - self.alone == 1
            spaced[spaced] = [self._gap(i) == " " for i in np.flatnonzero(spaced).tolist()]
            self.exact = spaced & parts_at_spaces(corpus.counter)

    def _gap(self, sentence: int) -> str:
        table = self.table
        text = table.texts[int(table.owner[sentence])]
        return text[int(table.gap[sentence]) : int(table.begin[sentence])]

    def of(self, sentences: Longs) -> Costs:
        """Give the costs, those of some sentences filled in."""
        if self._known is not None:
            fresh = np.unique(sentences[~self._known[sentences]])
            count = self.corpus.counter.count
            for i in progress(fresh.tolist(), "count sentences", len(fresh)):
                text, gap = self.table.text(i), self._gap(i)
                self.alone[i] = count(text)
                self.joined[i] = count(gap + text) if gap else self.alone[i]
            self._known[fresh] = True
        return Costs(self.alone, self.joined, self.table.header, self.table.atomic)

    def added(self, sentence: Longs, start: Longs) -> tuple[Longs, Bools]:
        """Add up the sentences of each group, and say where the sum is sure to be exact.

        Parameters
        ----------
        sentence : ndarray of int64
        start : ndarray of int64, shape (n_groups + 1,)
            ``sentence[start[i]:start[i + 1]]`` are those of group i, in text order.
        """
        known = self.of(sentence)
        total = group_sum(known.joined[sentence], start)
        some = np.flatnonzero(np.diff(start))
        first = start[some]
        total[some] -= (known.joined - known.alone)[sentence[first]]
        unsure = ~self.exact[sentence]
        unsure[first] = False
        return total, (group_sum(unsure, start) == 0) & (np.diff(start) > 0)
