"""Which sentences of a passage matter for a query: the table of sentences, and the selectors.

A selector only gives each sentence a score; `picking` then takes sentences while they fit.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from packtools import kernels
from packtools.arrays import Floats, Ints, Longs
from packtools.errors import PackerError, fail, unknown
from packtools.picking import spread
from packtools.progress import progress
from packtools.sentences import split_sentences, table_headers
from packtools.terms import fit_vectoriser, stored_vectoriser

__all__ = ["SELECTORS", "Selector", "register_selector"]

_TOKEN = re.compile("[A-Za-z0-9]+")
_MARK = "\0"
_TOKEN_OR_MARK = re.compile("[a-z0-9]+|\0")
BLOCK = 16_384
"""Sentences whose tokens are numbered at a time."""
MMR_WEIGHT = 0.7
"""Share of relevance in "mmr"; the rest is novelty."""
MMR_RANKS = 100
"""Sentences of a passage that "mmr" ranks by novelty; those after them follow by relevance."""
STEP = 200_000
"""Pairs scored at a time."""
CELLS = 16_000_000
"""Cells of a query-by-word table held at a time."""


class SentenceTable:
    """Hold where every sentence of many texts stands.

    Parameters
    ----------
    texts : sequence of str
    splitter : str
        A name in `SPLITTERS`.
    known : SentenceTable or None, default None
        Of as many texts; those that are the same are not split again.

    Attributes
    ----------
    start : ndarray of int64, shape (n_texts + 1,)
        ``begin[start[i]:start[i + 1]]`` are the sentences of text i.
    begin, end : ndarray of int64, shape (n_sentences,)
        Half-open character offsets.
    gap : ndarray of int64, shape (n_sentences,)
        Where the white space before the sentence begins: the end of the one before, or its own begin.
    header : ndarray of int64, shape (n_sentences,)
        For a row of a pipe table, the sentence that is its header; else -1.
    atomic : ndarray of bool, shape (n_sentences,)
        Rows of a pipe table and their header, which are never cut.
    """

    def __init__(self, texts: Sequence[str], splitter: str, known: SentenceTable | None = None) -> None:
        self.texts: Sequence[str] = texts
        self.splitter = splitter
        size = np.zeros(len(texts), dtype=np.int64)
        begin: list[int] = []
        end: list[int] = []
        headers: dict[int, int] = {}
        for number, text in enumerate(progress(texts, f"split sentences ({splitter})", len(texts))):
            if known is not None and known.texts[number] == text:
                spans = known.spans(number)
            else:
                spans = split_sentences(text, splitter)
            for row, header in table_headers(text, spans).items():
                headers[len(begin) + row] = len(begin) + header
            size[number] = len(spans)
            begin += [a for a, _ in spans]
            end += [b for _, b in spans]
        self.start: Longs = np.concatenate([[0], np.cumsum(size)])
        self.begin, self.end = np.array(begin, dtype=np.int64), np.array(end, dtype=np.int64)
        first = np.zeros(len(begin), dtype=bool)
        first[self.start[:-1][size > 0]] = True
        self.gap: Longs = np.where(first, self.begin, np.concatenate([[0], self.end])[:-1])
        self.header: Longs = np.full(len(begin), -1, dtype=np.int64)
        self.header[list(headers)] = list(headers.values())
        self.atomic = self.header >= 0
        self.atomic[self.header[self.header >= 0]] = True
        self.owner: Longs = np.repeat(np.arange(len(texts)), size)

    def spans(self, number: int) -> list[tuple[int, int]]:
        """Give where the sentences of one text stand."""
        mine = slice(int(self.start[number]), int(self.start[number + 1]))
        return list(zip(self.begin[mine].tolist(), self.end[mine].tolist(), strict=True))

    def text(self, sentence: int) -> str:
        """Give one sentence."""
        text = self.texts[int(self.owner[sentence])]
        return text[int(self.begin[sentence]) : int(self.end[sentence])]

    @cached_property
    def sentences(self) -> list[str]:
        """All sentences, each an exact slice."""
        where = zip(self.owner.tolist(), self.begin.tolist(), self.end.tolist(), strict=True)
        return [self.texts[i][a:b] for i, a, b in where]

    @cached_property
    def words(self) -> Words:
        """The distinct tokens ``[A-Za-z0-9]+`` of each lower-cased sentence."""
        return _words(self.sentences)


@dataclass(frozen=True)
class Words:
    """Hold the distinct tokens of each sentence.

    Parameters
    ----------
    start : ndarray of int64, shape (n_sentences + 1,)
        ``token[start[i]:start[i + 1]]`` are those of sentence i.
    token : ndarray of int32
    number : dict of str to int
        The number of each token.
    """

    start: Longs
    token: Ints
    number: dict[str, int]


def _words(sentences: Sequence[str]) -> Words:
    numbers: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    numbers[_MARK]  # is 0
    size = [np.zeros(1, dtype=np.int64)]
    token = [np.zeros(0, dtype=np.int32)]
    for begin in range(0, len(sentences), BLOCK):
        block = sentences[begin : begin + BLOCK]
        joined = _MARK.join(s.replace(_MARK, " ") for s in block).lower()
        found = _TOKEN_OR_MARK.findall(joined)
        number = np.fromiter(map(numbers.__getitem__, found), np.int64, len(found))
        owner = np.cumsum(number == 0)
        key = kernels.distinct(((owner << 32) + number)[number > 0])
        token.append((key & 0xFFFFFFFF).astype(np.int32))
        size.append(np.bincount(key >> 32, minlength=len(block)))
    return Words(np.cumsum(np.concatenate(size)), np.concatenate(token), dict(numbers))


class Weights:
    """Hold TF-IDF weights fitted on some passages; fitted, or read, when first used.

    Parameters
    ----------
    passages : sequence of str
    read : callable or None, default None
        Gives terms and their weights (idf) that were fitted before; then `passages` don't count.
    """

    def __init__(
        self, passages: Sequence[str], read: Callable[[], tuple[Sequence[str], Floats]] | None = None
    ) -> None:
        self.passages, self._read = passages, read
        self._vectors: WeakKeyDictionary[SentenceTable, Any] = WeakKeyDictionary()

    @cached_property
    def vectoriser(self) -> Any:
        """A scikit-learn TfidfVectorizer, or None where the passages hold no word."""
        if self._read is not None:
            return stored_vectoriser(*self._read())
        return fit_vectoriser(self.passages)

    def of(self, table: SentenceTable) -> Any:
        """Give the vectors of all sentences of a table: a sparse matrix, or None."""
        if table not in self._vectors:
            found = self.vectoriser
            nothing = found is None or not len(table.begin)
            self._vectors[table] = None if nothing else found.transform(table.sentences)
        return self._vectors[table]

    def __reduce__(self) -> tuple[type[Weights], tuple[Any, ...]]:
        """Travel without what can be worked out again."""
        return Weights, (self.passages, self._read)


@dataclass(frozen=True)
class Scoring:
    """Hold what a selector sees: queries, and the sentences of each cell.

    Parameters
    ----------
    queries : sequence of str
    table : SentenceTable
    query : ndarray of int64, shape (n_cells,)
        Place in `queries`.
    start : ndarray of int64, shape (n_cells + 1,)
    sentence : ndarray of int64, shape (n_pairs,)
        ``sentence[start[c]:start[c + 1]]`` are those of cell c, in text order.
    weights : Weights
    """

    queries: Sequence[str]
    table: SentenceTable
    query: Longs
    start: Longs
    sentence: Longs
    weights: Weights

    @property
    def asker(self) -> Longs:
        """The query of each pair."""
        return np.repeat(self.query, np.diff(self.start))


def _head(_: Scoring, n: int) -> Floats:
    return np.zeros(n)


def _query_overlap(given: Scoring, n: int) -> Floats:
    """Count the distinct query tokens in each sentence."""
    words = given.table.words
    number = words.number
    asked = [[number[w] for w in set(_TOKEN.findall(q.lower())) if w in number] for q in given.queries]
    asked_for = np.unique(np.array([t for tokens in asked for t in tokens], dtype=np.int64))
    place = np.full(len(number), -1, dtype=np.int64)  # of the tokens that some query has
    place[asked_for] = np.arange(len(asked_for))
    here = place[words.token] >= 0
    word = place[words.token[here]]
    first = np.concatenate([[0], np.cumsum(here)])[words.start]
    score = np.zeros(n)
    asker = given.asker
    height = max(CELLS // max(len(asked_for), 1), 1)
    for low in range(0, len(asked), height):
        block = asked[low : low + height]
        mask = np.zeros((len(block), len(asked_for)), dtype=bool)
        for row, tokens in enumerate(block):
            mask[row, place[tokens]] = True
        mine = np.flatnonzero((asker >= low) & (asker < low + height))
        for at in range(0, len(mine), STEP):
            pairs = mine[at : at + STEP]
            members, begin = spread(first, given.sentence[pairs])
            hits = mask[np.repeat(asker[pairs] - low, np.diff(begin)), word[members]]
            total = np.concatenate([[0], np.cumsum(hits)])
            score[pairs] = total[begin[1:]] - total[begin[:-1]]
    return score


def _tfidf(given: Scoring, n: int) -> Floats:
    """Give the cosine of each sentence with the query."""
    vectors = given.weights.of(given.table)
    score = np.zeros(n)
    if vectors is None:
        return score
    asked = given.weights.vectoriser.transform(given.queries)
    asker = given.asker
    for at in range(0, n, STEP):
        sentence, query = given.sentence[at : at + STEP], asker[at : at + STEP]
        score[at : at + STEP] = np.asarray(vectors[sentence].multiply(asked[query]).sum(axis=1)).ravel()
    return score


def _mmr(given: Scoring, n: int) -> Floats:
    """Rank by maximal marginal relevance: relevant to the query, unlike what is ranked before."""
    relevance = _tfidf(given, n)
    vectors = given.weights.of(given.table)
    score = np.zeros(n)
    size = np.diff(given.start)
    for width in np.unique(size[size > 1]).tolist():
        cells = np.flatnonzero(size == width)
        block = max(STEP // width, 1)
        for at in range(0, len(cells), block):
            places = given.start[cells[at : at + block]][:, None] + np.arange(width)
            score[places] = _mmr_ranks(relevance[places], vectors, given.sentence[places])
    return score


def _mmr_ranks(relevance: Floats, vectors: Any, sentence: Longs) -> Floats:
    """Give minus the rank of each sentence, shape (cells, width).

    Beyond the first `MMR_RANKS` only relevance counts.
    """
    n, width = relevance.shape
    rank = np.zeros((n, width))
    worst = np.zeros((n, width))  # the likeness to what is ranked already
    open_ = np.ones((n, width), dtype=bool)
    rows = np.arange(n)
    for nth in range(min(width, MMR_RANKS)):
        value = MMR_WEIGHT * relevance - (1 - MMR_WEIGHT) * worst
        best = np.where(open_, value, -np.inf).argmax(axis=1)
        rank[rows, best], open_[rows, best] = -nth, False
        if vectors is not None:
            chosen = vectors[np.repeat(sentence[rows, best], width)]
            likeness = np.asarray(vectors[sentence.ravel()].multiply(chosen).sum(axis=1))
            worst = np.maximum(worst, likeness.reshape(n, width))
    later = np.argsort(np.argsort(np.where(open_, -relevance, np.inf), axis=1, kind="stable"), axis=1)
    return np.where(open_, -min(width, MMR_RANKS) - later, rank)


@dataclass(frozen=True)
class Selector:
    """Hold one selector: its function, and whether it needs the text of the query."""

    score: Callable[[Scoring, int], Floats]
    needs_query: bool


SELECTORS: dict[str, Selector] = {
    "head": Selector(_head, False),
    "query_overlap": Selector(_query_overlap, True),
    "tfidf": Selector(_tfidf, True),
    "mmr": Selector(_mmr, True),
}
"""Which sentences are tried first: "head" from the start on; "query_overlap" by the number of distinct
query tokens ``[A-Za-z0-9]+`` in the lower-cased sentence, the published rule; "tfidf" by the cosine with
the query, scikit-learn's TfidfVectorizer fitted on the run's passages; "mmr" by maximal marginal
relevance on the same vectors, 0.7 relevance and 0.3 novelty (Carbonell & Goldstein 1998, SIGIR, sec. 2).
Ties keep text order, and what is taken returns to text order."""


def register_selector(name: str, function: Callable[[str, list[str]], Sequence[float]]) -> None:
    """Add a selector under a name that ``PackerConfig(sentence_selection=name)`` then takes.

    Parameters
    ----------
    name : str
    function : callable
        Takes the query and the sentences of one passage, in text order; gives a score for each,
        highest first. ``-inf`` is never taken.

    Examples
    --------
    >>> register_selector("longest", lambda query, sentences: [len(s) for s in sentences])
    >>> SELECTORS.pop("longest").needs_query
    False
    """
    if not isinstance(name, str) or not name:
        fail(PackerError, "register_selector", "name", "a string", name)
    if not callable(function):
        fail(PackerError, "register_selector", name, "a function of a query and sentences", function)

    def score(given: Scoring, n: int) -> Floats:
        out = np.zeros(n)
        cells = zip(given.query.tolist(), given.start[:-1].tolist(), given.start[1:].tolist(), strict=True)
        for query, begin, end in progress(cells, f"score sentences ({name})", len(given.query)):
            sentences = [given.table.text(int(s)) for s in given.sentence[begin:end]]
            out[begin:end] = _asked(name, function, given.queries[query], sentences)
        return out

    SELECTORS[name] = Selector(score, False)


def _asked(
    name: str, function: Callable[[str, list[str]], Sequence[float]], query: str, sentences: list[str]
) -> Floats:
    """Ask a selector of one's own, and check what it gives."""
    n = len(sentences)
    try:
        given = function(query, sentences)
    except Exception as error:
        raise PackerError(f"register_selector: {name!r} failed on {n} sentences: {error!r}.") from error
    try:
        values = np.array([float(v) for v in given])
    except (TypeError, ValueError, OverflowError):
        values = np.full(n, np.nan)
    if len(values) != n or np.isnan(values).any() or isinstance(given, str):
        fail(PackerError, "register_selector", name, f"one number for each of {n} sentences", given)
    return values


def get_selector(name: str) -> Selector:
    """Give the selector of that name, or one error that lists them all."""
    if name not in SELECTORS:
        unknown(PackerError, "PackerConfig", "sentence_selection", name, SELECTORS)
    return SELECTORS[name]
