"""Rows of the benchmark table for sweeps: against a plain loop, by size, and by parts."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import make_run
import numpy as np
from timing import Row, child, seconds

from packtools import METRICS, PackerConfig, PreparedRun, load_run, partition, prepare, sweep
from packtools.ordering import ORDERINGS
from packtools.text import differences, normalise

BUDGETS = [int(b) for b in np.geomspace(200, 6000, 20).round()]
ORDERS = ["descending", "lost_in_middle", "ascending"]
THRESHOLDS: list[float | None] = [None, 0.7, 0.8, 0.85, 0.9]
BASE = PackerConfig(detect_conflicts=False)
SAMPLED = 40
MADE = "import sys, pathlib, sweeps; sweeps.make_parts(pathlib.Path(sys.argv[1]))"
HERE = Path(__file__).resolve().parent
WIDE, WIDE_DEPTH, WIDE_PASSAGES, PARTS = 1745, 100, 150_000, 4
WORKER = (
    "import resource, sys, packtools; "
    "packtools.sweep(sys.argv[1], budget=[500, 1000, 2000], jaccard_threshold=[None, 0.85]); "
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
)


# --- the plain loop -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Passage:
    """Hold what is known of a candidate beforehand: nothing of it is worked out in the timing."""

    text: str
    marks: object
    shingles: frozenset[object]
    n_tokens: int
    n_chars: int
    gold: bool
    answer_at: int


def candidates(prepared: PreparedRun, queries: Sequence[int]) -> list[list[Passage]]:
    """List the candidates of some queries, best first."""
    corpus, out = prepared.corpus, []
    for query in queries:
        ranks = np.flatnonzero(prepared.passage[:, query] >= 0)
        places = prepared.passage[ranks, query].tolist()
        out.append(
            [
                Passage(
                    normalise(corpus.texts[p]),
                    differences(corpus.texts[p]),
                    frozenset(shingles(corpus.texts[p])),
                    int(corpus.n_tokens[p]),
                    len(corpus.texts[p]),
                    bool(prepared.relevant[rank, query]),
                    int(prepared.answer_at[rank, query]),
                )
                for rank, p in zip(ranks.tolist(), places, strict=True)
            ]
        )
    return out


def shingles(text: str) -> set[object]:
    """Cut the normal form of a text into shingles of 5 words."""
    words = normalise(text).split()
    return {tuple(words[i : i + 5]) for i in range(max(len(words) - 4, 1))}


def deduplicated(found: Sequence[Passage], threshold: float | None) -> list[Passage]:
    """Drop what repeats a better passage, as one would write it with sets."""
    first: list[Passage] = []
    seen = set()
    for passage in found:
        key = (passage.text, passage.marks)
        if key not in seen:
            seen.add(key)
            first.append(passage)
    if threshold is None:
        return first
    kept: list[Passage] = []
    for passage in first:
        for other in kept:
            shared = len(passage.shingles & other.shingles)
            alike = shared / (len(passage.shingles) + len(other.shingles) - shared) >= threshold
            if alike and passage.marks == other.marks:
                break
        else:
            kept.append(passage)
    return kept


def plain_sweep(queries: Sequence[Sequence[Passage]]) -> list[list[float]]:
    """Evaluate every setting in nested loops: duplicates once a threshold, then each order and budget."""
    out = []
    for threshold in THRESHOLDS:
        left = [deduplicated(found, threshold) for found in queries]
        for order, budget in itertools.product(ORDERS, BUDGETS):
            arrange = ORDERINGS[order].function
            for found, some in zip(queries, left, strict=True):
                used, kept = 0, []
                for passage in some:
                    if used + passage.n_tokens <= budget:
                        used += passage.n_tokens
                        kept.append(passage)
                out.append(measured(found, arrange(kept), used))
    return out


def measured(found: Sequence[Passage], packed: Sequence[Passage], used: int) -> list[float]:
    """Give the metrics of one packed context, in the order of `METRICS`."""
    n_chars = sum(p.n_chars for p in packed)
    gold, nan = sum(p.gold for p in found), float("nan")
    before, position, chunk = 0, nan, nan
    for i, passage in enumerate(packed):
        if passage.answer_at >= 0:
            position, chunk = (before + passage.answer_at) / n_chars, i / max(len(packed) - 1, 1)
            break
        before += passage.n_chars
    held = any(p.answer_at >= 0 for p in found)
    return [
        used,
        n_chars,
        len(packed),
        used / sum(p.n_tokens for p in found),
        sum(p.gold for p in packed) / gold if gold else nan,
        float(position == position) if held else nan,
        position,
        chunk,
        1.0,
        1.0,
    ]


def check_same(prepared: PreparedRun, queries: Sequence[int], plain: list[list[float]]) -> None:
    """Assert that the sweep gives what the plain loop gave, setting by setting and query by query."""
    found = sweep(prepared, base=BASE, budget=BUDGETS, order=ORDERS, jaccard_threshold=THRESHOLDS)
    loop = itertools.product(THRESHOLDS, ORDERS, BUDGETS, queries)
    place = {
        (config.jaccard_threshold, config.order, config.budget): row + 1
        for row, config in enumerate(found.configs)
    }
    for (threshold, order, budget, query), row in zip(loop, plain, strict=True):
        ours = [found.values[name][place[threshold, order, budget], query] for name in METRICS]
        assert np.allclose(ours, row, equal_nan=True), (threshold, order, budget, query, ours, row)


# --- rows -----------------------------------------------------------------------------------------


def sweep_rows(prepared: PreparedRun, repeat: int) -> list[Row]:
    """Sweep 300 settings against the plain loop; then a quarter and a half of queries and settings."""
    n = len(prepared.qids)
    sampled = sorted({int(q) for q in np.linspace(0, n - 1, min(SAMPLED, n))})
    given = candidates(prepared, sampled)
    check_same(prepared, sampled, plain_sweep(given))

    def ours(i: int, run: PreparedRun = prepared, share: int = 1) -> float:
        budgets = [b + i for b in BUDGETS[share // 2 :: share]]  # new ones every turn
        grid = {"budget": budgets, "order": ORDERS, "jaccard_threshold": THRESHOLDS}
        return seconds(lambda: sweep(run, base=BASE, **grid))

    scale = n / len(sampled)
    pairs = [(ours(i), scale * seconds(lambda: plain_sweep(given))) for i in range(repeat)]
    count = len(BUDGETS) * len(ORDERS) * len(THRESHOLDS)
    rival = f"plain Python loops, shingles and counts given ({len(sampled)} queries timed, scaled)"
    rows = [Row(f"sweep {count} settings, all metrics", rival, pairs, 30, faster=True)]
    for share, word in ((4, "a quarter"), (2, "half")):
        run = prepare(prepared.run.only(prepared.qids[: n // share]), min_jaccard=prepared.min_jaccard)
        ours(0, run)
        fewer = [(ours(i), share * ours(i, run)) for i in range(repeat)]
        rows.append(Row("the same sweep", f"{share} × {word} of the queries", fewer, 1.3))
        less = [(ours(i), share * ours(i, share=share)) for i in range(repeat)]
        rows.append(Row("the same sweep", f"{share} × {word} of the settings", less, 1.3))
    return rows


def parts_rows() -> list[Row]:
    """Compare what workers need: one part in four with all in one, and with a run of a quarter.

    All of it is done in processes of their own, which on Linux start from the peak of their parent.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-c", MADE, name], check=True, capture_output=True, cwd=HERE)
        kinds = ("least", "four", "one", "short")
        least, *peaks = (worker(folder / kind / "part-00000") for kind in kinds)
    here, whole, short = (peak - least for peak in peaks)
    what = f"peak memory of a worker, {PARTS} parts, above the libraries"
    return [
        Row(what, "the same run in 1 part", [(here, whole)], 0.7, unit="MB"),
        Row(what, "a run of a quarter of the queries, in 1 part", [(here, short)], 1.2, unit="MB"),
    ]


def make_parts(folder: Path) -> None:
    """Write a run whose passages seldom recur: in parts, in one, a quarter of it, and one query of it."""
    make_run.write(folder / "run", WIDE, WIDE_DEPTH, WIDE_PASSAGES)
    run = load_run(folder / "run")
    qids = list(run.queries.index)
    partition(run, folder / "four", parts=PARTS)
    partition(run, folder / "one", parts=1)
    partition(run.only(qids[: len(qids) // PARTS]), folder / "short", parts=1)
    partition(run.only(qids[:1]), folder / "least", parts=1)


def worker(part: Path) -> float:
    """Give the peak memory of a process that sweeps a part, in bytes."""
    return int(child(sys.executable, "-c", WORKER, str(part))) * (1 if sys.platform == "darwin" else 1024)
