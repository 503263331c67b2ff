"""Make the three retrieval runs of the sample from its hand-written collection.

Usage: python data/build_sample.py [FOLDER]      (FOLDER defaults to data/sample)

BM25 comes from bm25s, TF-IDF from scikit-learn, and the third is their reciprocal rank fusion
(Cormack, Clarke, Büttcher 2009, k = 60). Each keeps the 20 best passages of every query.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import bm25s
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

DEPTH = 20
FUSION_K = 60


def records(path: Path) -> list[dict]:
    """Read a JSONL file."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def bm25_scores(texts: list[str], queries: list[str]) -> np.ndarray:
    """Score every passage for every query with BM25 (Lucene variant, English stop words)."""
    index = bm25s.BM25(k1=1.2, b=0.75)
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    asked = bm25s.tokenize(queries, stopwords="en", show_progress=False, return_ids=False)
    return np.array([index.get_scores(words) for words in asked])


def tfidf_scores(texts: list[str], queries: list[str]) -> np.ndarray:
    """Score by the cosine of sublinear TF-IDF vectors of words."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    passages = vectorizer.fit_transform(texts)
    return (vectorizer.transform(queries) @ passages.T).toarray()


def best(scores: np.ndarray) -> np.ndarray:
    """Rank the passages of each query; ties keep the order of the collection."""
    return np.argsort(-scores, axis=1, kind="stable")


def fused_scores(rankings: list[np.ndarray]) -> np.ndarray:
    """Add 1 / (k + rank) over the rankings, over the 100 best of each."""
    total = np.zeros(rankings[0].shape)
    for ranking in rankings:
        for row, order in zip(total, ranking, strict=True):
            row[order[:100]] += 1.0 / (FUSION_K + 1 + np.arange(len(order[:100])))
    return total


def write_run(path: Path, qids: list[str], docids: list[str], scores: np.ndarray) -> None:
    """Write a TREC run file; passages that share no word with the query are left out."""
    lines = []
    for qid, row, order in zip(qids, scores, best(scores), strict=True):
        for rank, place in enumerate(order[:DEPTH], 1):
            if row[place] > 0:
                lines.append(f"{qid} Q0 {docids[place]} {rank} {row[place]:.6f} {path.stem}\n")
    path.write_text("".join(lines), "utf-8")
    print(f"{path.name}: {len(lines)} lines, {len(qids)} queries")


def main(folder: Path) -> None:
    """Build the runs beside the collection they are made from."""
    corpus, queries = records(folder / "corpus.jsonl"), records(folder / "queries.jsonl")
    docids, qids = [d["_id"] for d in corpus], [q["_id"] for q in queries]
    texts = [f"{d['title']}\n{d['text']}" for d in corpus]
    asked = [q["text"] for q in queries]
    bm25, tfidf = bm25_scores(texts, asked), tfidf_scores(texts, asked)
    write_run(folder / "bm25.run", qids, docids, bm25)
    write_run(folder / "tfidf.run", qids, docids, tfidf)
    write_run(folder / "fusion.run", qids, docids, fused_scores([best(bm25), best(tfidf)]))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "sample")
