"""Write a large synthetic run for the benchmarks: recurring passages, 8 % near-duplicates.

Usage: python benchmarks/make_run.py FOLDER [--queries 6980] [--depth 100] [--passages 60000]

Words come from the sample collection, drawn by their frequency, so that token counts are like those
of prose. A passage belongs to a topic; a query draws its passages from two topics, so that each
passage is retrieved about a dozen times. Of every topic 8 % of the passages are copies of another
one with a word changed, a number changed, or a sentence added.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np

TOPIC = 100
NEAR_DUPLICATES = 0.08
WORDS = (30, 90)


def vocabulary() -> tuple[np.ndarray, np.ndarray]:
    """Take the words of the sample collection and their shares."""
    path = Path(__file__).resolve().parent.parent / "data" / "sample" / "corpus.jsonl"
    texts = [json.loads(line)["text"] for line in path.read_text("utf-8").split("\n") if line]
    counts = Counter(re.findall(r"[A-Za-z]+|\d+", " ".join(texts)))
    words = np.array(list(counts), dtype=object)
    share = np.array(list(counts.values()), dtype=float)
    return words, share / share.sum()


def sentence(words: list[str]) -> str:
    """Make a sentence of words."""
    return " ".join(words).capitalize() + "."


def edited(text: str, rng: np.random.Generator, words: np.ndarray) -> str:
    """Change a text as a republished copy is changed."""
    parts = text.split(" ")
    at = int(rng.integers(1, len(parts) - 1))
    kind = int(rng.integers(3))
    if kind == 0:
        parts[at] = str(rng.choice(words))
    elif kind == 1:
        parts[at] = str(int(rng.integers(1000, 3000)))
    else:
        parts.append(sentence([str(w) for w in rng.choice(words, 6)]))
    return " ".join(parts)


def passages(n: int, rng: np.random.Generator) -> list[str]:
    """Write n passages, topic by topic."""
    words, share = vocabulary()
    out: list[str] = []
    for start in range(0, n, TOPIC):
        size = min(TOPIC, n - start)
        fresh = size - int(size * NEAR_DUPLICATES)
        for _ in range(fresh):
            drawn = [str(w) for w in rng.choice(words, int(rng.integers(*WORDS)), p=share)]
            cuts = [*range(0, len(drawn), 14), len(drawn)]
            out.append(" ".join(sentence(drawn[a:b]) for a, b in pairwise(cuts) if a < b))
        out += [edited(out[start + int(rng.integers(fresh))], rng, words) for _ in range(size - fresh)]
    return out


def write(folder: Path, n_queries: int, depth: int, n_passages: int) -> None:
    """Write collection.tsv, queries.tsv, qrels.txt, answers.tsv and bench.run."""
    rng = np.random.default_rng(7)
    folder.mkdir(parents=True, exist_ok=True)
    texts = passages(n_passages, rng)
    (folder / "collection.tsv").write_text("".join(f"p{i}\t{t}\n" for i, t in enumerate(texts)), "utf-8")
    n_topics = max(n_passages // TOPIC, 1)
    with (
        (folder / "bench.run").open("w") as run,
        (folder / "queries.tsv").open("w") as queries,
        (folder / "qrels.txt").open("w") as qrels,
        (folder / "answers.tsv").open("w") as answers,
    ):
        for query in range(n_queries):
            topics = rng.choice(n_topics, min(2, n_topics), replace=False)
            pool = np.concatenate([np.arange(t * TOPIC, min((t + 1) * TOPIC, n_passages)) for t in topics])
            drawn = rng.permutation(pool)[:depth]
            score = np.sort(rng.gamma(4, 3, len(drawn)))[::-1]
            for rank, (place, value) in enumerate(zip(drawn, score, strict=True), 1):
                run.write(f"q{query} Q0 p{place} {rank} {value:.6f} bench\n")
            relevant = drawn[np.unique((rng.random(3) ** 3 * len(drawn)).astype(int))]
            for place in relevant:
                qrels.write(f"q{query} 0 p{place} 1\n")
            parts = texts[relevant[0]].split(" ")
            at = int(rng.integers(0, len(parts) - 3))
            queries.write(f"q{query}\t{' '.join(parts[:5])}\n")
            answers.write(f"q{query}\t{' '.join(parts[at : at + 3])}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--passages", type=int, default=60_000)
    given = parser.parse_args()
    write(given.folder, given.queries, given.depth, given.passages)
