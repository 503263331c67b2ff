"""What a run is as arrays ``[rank, query]``: passages, what repeats what, what is relevant; made once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from packtools import kernels
from packtools.arrays import Bools, Floats, Ints, Longs
from packtools.dedup import exact_groups, retrieved_together, similar_pairs
from packtools.ordering import document_order
from packtools.plan import Candidates
from packtools.runs.model import Run
from packtools.text import Shingles, compare, differences


def lay_out(run: Run) -> tuple[Ints, list[str], list[str]]:
    """Number the distinct passages and put them where they were retrieved.

    Returns
    -------
    passage : ndarray of int32, shape (ranks, queries)
        Number of the passage in each cell; -1 is none, or one without text.
    docids, texts : list of str
        Of each passage.
    """
    frame = run.candidates
    query, docid = frame["qid"].cat.codes.to_numpy(), frame["docid"].cat.codes.to_numpy()
    rank = frame["rank"].to_numpy() - 1
    docids = frame["docid"].cat.categories
    row = run.passages.index.get_indexer(docids)
    number = np.full(len(docids), -1, dtype=np.int32)
    number[row >= 0] = np.arange((row >= 0).sum())
    passage = np.full((int(rank.max(initial=-1)) + 1, len(run.queries)), -1, dtype=np.int32)
    passage[rank, query] = number[docid]
    texts: list[str] = run.passages["text"].to_numpy()[row[row >= 0]].tolist()
    return passage, list(docids[row >= 0]), texts


def find_candidates(
    run: Run, passage: Ints, docids: Sequence[str], texts: Sequence[str], min_jaccard: float
) -> Candidates:
    """Find exact and near-duplicates among passages retrieved together."""
    there = passage >= 0
    empty = find_empty(texts, passage)
    found = compare(texts)
    by_text, by_both = exact_groups(texts, found.keys)
    some = there & ~empty
    plain = _first_equal(by_text, passage, some)
    guarded = plain if np.array_equal(by_text, by_both) else _first_equal(by_both, passage, some)
    pairs = find_pairs(texts, passage, found.shingles, min_jaccard)

    none = np.zeros(there.shape, dtype=bool)
    return Candidates(
        there, empty, none, plain, guarded, pairs, _scores(run, there), partial(_document, docids, passage)
    )


def _document(docids: Sequence[str], passage: Ints) -> Longs:
    """Give the place of each cell's id in natural order."""
    return np.where(passage >= 0, document_order(docids)[passage], -1)


def find_empty(texts: Sequence[str], passage: Ints) -> Bools:
    """Mark the candidates without text."""
    there = passage >= 0
    empty = np.array([not t.strip() for t in texts], dtype=bool)
    return there & empty[passage] if len(texts) else there


def _scores(run: Run, there: Bools) -> Floats:
    """Give the score of every cell as `Run.chunks` does; NaN is padding."""
    frame = run.candidates
    score = np.full(there.shape, np.inf)
    at = frame["rank"].to_numpy() - 1, frame["qid"].cat.codes.to_numpy()
    given = frame["score"].to_numpy(np.float64)
    score[at] = np.where(np.isfinite(given), given, np.inf)
    score = np.minimum.accumulate(score, axis=0)
    score[np.isinf(score)] = 0.0
    return np.where(there, score, np.nan)


def _first_equal(group: Longs, passage: Ints, some: Bools) -> Ints:
    """Find the first cell of each query whose passage is in the same group."""
    if not len(group):
        return passage
    shared = np.bincount(group)[group] > 1
    return kernels.keep_first(group[passage], some & shared[passage])


def find_pairs(texts: Sequence[str], passage: Ints, cut: Shingles, min_jaccard: float) -> kernels.NearPairs:
    """Find the near-duplicate pairs of every query, from the shingles of the passages."""
    rank, query = np.nonzero(passage >= 0)
    found = passage[rank, query].astype(np.int64)
    pairs = similar_pairs(cut, min_jaccard, (query, found))
    involved = kernels.distinct(np.concatenate([pairs.first, pairs.second]))
    marks = {int(i): differences(texts[i]) for i in involved}
    unlike = [marks[int(a)] != marks[int(b)] for a, b in zip(pairs.first, pairs.second, strict=True)]
    return retrieved_together(rank, query, found, len(texts), pairs, np.array(unlike, dtype=bool))


def find_relevant(run: Run, passage: Ints, docids: Sequence[str]) -> Bools | None:
    """Mark the judged-relevant candidates; None without qrels."""
    qrels = run.qrels
    if qrels is None:
        return None
    good = qrels[qrels["label"] > 0]
    place = {docid: i for i, docid in enumerate(docids)}
    number = {qid: i for i, qid in enumerate(run.queries.index)}
    q = good["qid"].map(number)
    d = good["docid"].map(place)
    known = (q.notna() & d.notna()).to_numpy()
    width = len(docids)
    pair = q[known].to_numpy(np.int64) * width + d[known].to_numpy(np.int64)
    cell = np.arange(len(number)) * width + passage.astype(np.int64)
    return np.asarray(np.isin(cell, pair) & (passage >= 0), dtype=bool)
