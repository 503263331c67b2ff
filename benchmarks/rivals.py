"""What packtools is measured against: plain loops, tiktoken by the row, scikit-learn by the query.

Each rival gets its input ready-made; only the work itself is timed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import scipy.stats

from packtools.packed import PackedRun
from packtools.plan import Sizes, Survivors
from packtools.prepared import PreparedRun
from packtools.text import normalise

Encode = Callable[[str], list[int]]
Pair = tuple[str, str, str]


# --- the plain greedy fit -----------------------------------------------------------------------


def plain_fit(queries: Sequence[Sequence[int]], budget: int) -> list[list[int]]:
    """Fill one budget for every query, as one would write it without numpy."""
    out = []
    for sizes in queries:
        used = 0
        kept = []
        for i, n in enumerate(sizes):
            if used + n <= budget:
                used += n
                kept.append(i)
        out.append(kept)
    return out


def plain_fits(queries: Sequence[Sequence[int]], budgets: Sequence[int]) -> list[list[list[int]]]:
    """Fill each budget in turn."""
    return [plain_fit(queries, budget) for budget in budgets]


def size_lists(left: Survivors, sizes: Sizes) -> list[list[int]]:
    """List for each query the sizes of its survivors, with separator, best first."""
    return [size[kept].tolist() for size, kept in zip(sizes.joined.T, left.kept.T, strict=True)]


def check_same_kept(left: Survivors, keep: npt.NDArray[np.bool_], plain: list[list[list[int]]]) -> None:
    """Assert that ``keep[rank, budget, query]`` is what the plain loop kept."""
    for place, fitted in enumerate(plain):
        for query, kept in enumerate(fitted):
            ranks = np.flatnonzero(left.kept[:, query])[kept]
            assert np.array_equal(np.flatnonzero(keep[:, place, query]), ranks), (place, query)


# --- counting by the row ------------------------------------------------------------------------


def count_rows(encode: Encode, texts: Sequence[str]) -> list[int]:
    """Count the tokens of each text in turn."""
    return [len(encode(text)) for text in texts]


def row_texts(prepared: PreparedRun, share: int) -> tuple[list[str], float]:
    """Give the text of every `share`-th row of the run, and how many rows stand for one."""
    passages = prepared.passage.T[prepared.passage.T >= 0]
    texts = [prepared.corpus.texts[p] for p in passages[::share]]
    return texts, len(passages) / len(texts)


# --- near-duplicates by the query ---------------------------------------------------------------


def sample_queries(prepared: PreparedRun, n: int) -> list[int]:
    """Choose n evenly spaced queries."""
    last = len(prepared.qids) - 1
    return [int(q) for q in np.unique(np.linspace(0, last, min(n, last + 1)).astype(int))]


def query_texts(prepared: PreparedRun, queries: Sequence[int]) -> list[list[str]]:
    """Normalise the passages of some queries."""
    columns = [prepared.passage[:, q] for q in queries]
    return [[normalise(prepared.corpus.texts[p]) for p in column[column >= 0]] for column in columns]


def sklearn_pairs(queries: Sequence[Sequence[str]], floor: float) -> list[npt.NDArray[np.int64]]:
    """Find for each query the places ``[first, second]`` of similar texts, with CountVectorizer."""
    from sklearn.feature_extraction.text import CountVectorizer

    out = []
    for texts in queries:
        vectorizer = CountVectorizer(
            ngram_range=(5, 5), binary=True, token_pattern=r"\S+", lowercase=False, dtype=np.int32
        )
        found = vectorizer.fit_transform(texts)
        shared = (found @ found.T).toarray()
        size = shared.diagonal()
        jaccard = shared / np.maximum(size[:, None] + size[None, :] - shared, 1)
        out.append(np.argwhere(np.triu(jaccard >= floor, 1)))
    return out


def check_same_pairs(
    prepared: PreparedRun, queries: Sequence[int], found: Sequence[npt.NDArray[np.int64]]
) -> int:
    """Assert that the prepared run holds the same near-duplicates for some queries; count them.

    Passages of less than 5 words are left out: scikit-learn gives them no shingle.
    """
    docids, passage = prepared.docids, prepared.passage
    theirs: set[Pair] = set()
    for query, places in zip(queries, found, strict=True):
        here = passage[:, query][passage[:, query] >= 0]
        theirs |= {_pair(prepared.qids[query], docids[here[a]], docids[here[b]]) for a, b in places}
    pairs = prepared.cells.pairs
    ours: set[Pair] = set()
    for i in np.flatnonzero(np.isin(pairs.query, queries)):
        query, two = pairs.query[i], passage[[pairs.upper[i], pairs.lower[i]], pairs.query[i]]
        if all(len(normalise(prepared.corpus.texts[p]).split()) >= 5 for p in two):
            ours.add(_pair(prepared.qids[query], docids[two[0]], docids[two[1]]))
    assert ours == theirs, f"{len(ours - theirs)} pairs only here, {len(theirs - ours)} only scikit-learn's"
    return len(ours)


def _pair(qid: str, one: str, other: str) -> Pair:
    return (qid, min(one, other), max(one, other))


# --- packing by characters ----------------------------------------------------------------------


def asked(prepared: PreparedRun, queries: Sequence[int]) -> list[tuple[str, list[str]]]:
    """List for each chosen query its text and its passages, best first."""
    words = prepared.run.queries["text"].tolist()
    columns = [prepared.passage[:, q] for q in queries]
    texts = [[prepared.corpus.texts[p] for p in column[column >= 0]] for column in columns]
    return list(zip([words[q] for q in queries], texts, strict=True))


def check_same_text(packed: PackedRun, queries: Sequence[int], plain: list[list[str]]) -> None:
    """Assert that the plain packer packed the same text."""
    for query, passages in zip(queries[::5], plain[::5], strict=True):
        assert packed.context(packed.prepared.qids[query]).passages == tuple(passages), query
    sizes = packed.per_query["n_chars"].to_numpy()[list(queries)]
    assert sizes.tolist() == [len(" ".join(passages)) for passages in plain]


# --- resampling ---------------------------------------------------------------------------------


def plain_bootstrap(rows: Sequence[tuple[float, ...]], n_resamples: int, rng: int) -> list[list[float]]:
    """Give the mean of each metric in each resample of the queries."""
    draw, n = random.Random(rng), len(rows)
    out = []
    for _ in range(n_resamples):
        drawn = draw.choices(rows, k=n)
        out.append([sum(values) / n for values in zip(*drawn, strict=True)])
    return out


def scipy_bootstrap(difference: npt.NDArray[np.float64], n_resamples: int, rng: int) -> object:
    """Give scipy's percentile intervals of the means."""
    return scipy.stats.bootstrap(
        (difference,), np.mean, n_resamples=n_resamples, axis=0, method="percentile", batch=100, rng=rng
    )
