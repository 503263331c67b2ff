"""Measure packtools against named rivals and print ratios as a Markdown table.

Usage: python benchmarks/run.py [--folder DIR] [--queries 6980] [--repeat 5] [--write]

Both sides of a row take turns within one process, so that a busy machine slows both. A missed ratio
is printed, never an error.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

import loading
import make_run
import numpy as np
import plain_packer
import rivals
import sweeps
from timing import Row, alternate, child, seconds, start

from packtools import PackerConfig, PreparedRun, load_run, plan, prepare
from packtools.cells import find_pairs
from packtools.corpus import Corpus
from packtools.counters import CharCounter
from packtools.dedup import similar_pairs
from packtools.stats import paired_bootstrap_many
from packtools.text import compare

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "benchmarks" / "README.md"
MARKS = ("<!-- table -->", "<!-- /table -->")
DEPTH, PASSAGES, QUERIES = 100, 60_000, 6980
THRESHOLD, FLOOR, SEPARATOR = 0.85, 0.5, "\n\n"
STARTS, QUICK = 15, 4
ROW_SHARE, SAMPLED = 10, 150
RESAMPLES, METRICS, LOOP_SHARE = 10_000, 4, 100
LIBRARIES = ("numpy", "pandas", "tiktoken", "scikit-learn", "scipy")
BUDGETS = [int(b) for b in np.geomspace(200, 6000, 20).round()]
PEAK = (
    "import resource, sys; from packtools import load_run, prepare; "
    "prepared = prepare(load_run(sys.argv[1])); "
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
)
ABOUT = """# Benchmarks

How long packtools takes beside the plain way of doing the same, on a synthetic run of the size of MS
MARCO's dev queries: 6,980 queries with 100 passages each, from 60,000 passages that recur.

    make bench                            # some minutes; makes build/bench the first time
    python benchmarks/run.py --write      # the same, and puts the table below

Read the ratios, not the times: both sides take turns in one process, so a ratio carries over to another
machine and a time does not. "(min–max)" is the spread over the turns; the ratio itself is the median of
the turns' ratios, or for the starts the ratio of the medians. A missed ratio is printed, not an error.

{}

- **evaluate**: `PreparedRun.evaluate` with a new budget each turn, a separator and near-duplicates
  dropped, all metrics. Dedup, which does not depend on the budget, is done before. The rival only fits:
  the plain loop over lists of the sizes of the chunks that dedup leaves.
- **fit 20 budgets**: `plan.fit` from 200 to 6,000 tokens against the plain loop for each budget. Without
  a separator the two must keep the same chunks, or the benchmark stops.
- **count tokens**: each distinct passage once, as `prepare` does, against tiktoken on every row.
- **prepare**: everything that `prepare` does, against the two parts of it that can't be left out.
- **near-duplicates**: from the texts to the pairs that each query retrieves, over the whole run, against
  scikit-learn on each query's passages, whose normal form it is given. Both must find the same pairs in
  the queries that are compared, or the benchmark stops.
- **pack by characters**: `PreparedRun.evaluate` of `PackerConfig.characters` with a new passage budget each
  turn, after `prepare(run, counter="chars", splitters=["simple"])`, against selecting, deduplicating and
  filling in plain Python without metrics. Both must pack the same text in the sampled queries, or the
  benchmark stops.
- **another passage budget**: the setting after the first one, against that first one, which after a plain
  `prepare(run)` also splits the passages, scores the sentences and finds the numbers and names.
- **paired resamples**: `paired_bootstrap_many` with fresh draws each turn, against a loop that draws the
  queries of a resample once for all metrics, and against scipy on the differences.
- **sweep**: 20 budgets x 3 orders x 5 thresholds after `prepare`, new budgets every turn, against nested
  loops that find duplicates once for each threshold with ready-made sets of shingles, then fit, order and
  measure. Both must give the same metrics in the sampled queries, or the benchmark stops. Growth: four
  times the time of a quarter of the queries, or of the settings, against the whole.
- **a worker**: the peak of a fresh process that sweeps one part of a run of 174,500 rows, less that of a
  process that sweeps a part of one query.
- **peak memory**: of a fresh process that loads and prepares the run, against the size of its files.
- **starts**: wall time of fresh processes, 15 of each.
"""


# --- rows measured in processes of their own ----------------------------------------------------


def memory_row(folder: Path) -> Row:
    """Compare the peak of loading and preparing with what the files weigh.

    Linux lets a child start from its parent's peak, so this runs before the parent grows.
    """
    peak = int(child(sys.executable, "-c", PEAK, str(folder))) * (1 if sys.platform == "darwin" else 1024)
    files = sum((folder / name).stat().st_size for name in ("bench.run", "collection.tsv"))
    allowed = 4 * files + 300e6
    return Row(
        "peak memory of load + prepare", "4 × (run + collection) + 300 MB", [(peak, allowed)], 1, unit="MB"
    )


def start_rows() -> list[Row]:
    """Compare starts with the least that Python needs."""
    python, empty = sys.executable, "`python -c pass`"
    least = {empty: (python, "-c", "pass"), "`import numpy`": (python, "-c", "import numpy")}
    cases = [
        ("`import packtools`", (python, "-c", "import packtools"), "`import numpy`", 1.5),
        ("`python -m packtools.cli --help`", (python, "-m", "packtools.cli", "--help"), empty, 5),
    ]
    script = Path(python).with_name("packtools")
    if script.is_file():
        cases.append(("`packtools --help`, installed script", (str(script), "--help"), empty, 5))
    rows = []
    for measure, command, rival, wanted in cases:
        child(*command)  # once unmeasured, so that compiled files are there
        pairs = alternate(partial(start, command), partial(start, least[rival]), STARTS)
        rows.append(Row(measure, rival, pairs, wanted, of_medians=True))
    return rows


# --- rows measured in this process --------------------------------------------------------------


def in_process_rows(folder: Path, repeat: int) -> tuple[list[Row], str]:
    """Load and prepare the run, then measure everything that works on it; say how large it is."""
    prepared = prepare(load_run(folder), min_jaccard=FLOOR)
    n_rows = int((prepared.passage >= 0).sum())
    size = f"{len(prepared.qids):,} queries, {n_rows:,} rows, {len(prepared.docids):,} distinct passages"
    rows = [
        evaluate_row(prepared, QUICK * repeat),
        budgets_row(prepared, None, repeat),
        budgets_row(prepared, SEPARATOR, repeat),
        count_row(prepared, repeat),
        prepare_row(prepared, repeat),
        near_row(prepared, repeat),
        *character_rows(prepared, repeat),
        *bootstrap_rows(len(prepared.qids), repeat),
        *sweeps.sweep_rows(prepared, max(repeat // 2, 1)),
        *loading.loading_rows(folder, repeat),
    ]
    return rows, size


def bootstrap_rows(n_queries: int, repeat: int) -> list[Row]:
    """Resample paired differences of four metrics; the plain loop draws once for all of them."""
    draw = np.random.default_rng(0).normal
    before, after = draw(0.5, 0.2, (n_queries, METRICS)), draw(0.48, 0.2, (n_queries, METRICS))
    difference = after - before
    lists = [tuple(row) for row in difference.tolist()]

    def ours(i: int) -> object:
        return paired_bootstrap_many(before, after, n_resamples=RESAMPLES, rng=i + 1)

    part = max(RESAMPLES // LOOP_SHARE, 1)
    loop = alternate(ours, lambda i: rivals.plain_bootstrap(lists, part, i), repeat, LOOP_SHARE)
    library = alternate(ours, lambda i: rivals.scipy_bootstrap(difference, RESAMPLES, i), repeat)
    what = f"{RESAMPLES:,} paired resamples, {METRICS} metrics"
    return [
        Row(what, f"plain Python loop (every {LOOP_SHARE}th timed, scaled)", loop, 40, faster=True),
        Row(f"{what}, against scipy", "scipy.stats.bootstrap, percentile", library, 1),
    ]


def character_rows(prepared: PreparedRun, repeat: int) -> list[Row]:
    """Pack by characters: a setting against the plain packer, and against the first setting."""
    corpus = prepared.corpus.with_counter(CharCounter())
    corpus.table("simple").words, corpus.facts
    settings = [PackerConfig.characters(900, 320 + 4 * i) for i in range(repeat + 1)]

    def both(i: int) -> tuple[float, float]:
        run = prepared._with(Corpus(corpus.texts, CharCounter()))  # as prepare(run) leaves it
        first = seconds(lambda: run.evaluate(settings[0]))
        return seconds(lambda: run.evaluate(settings[i + 1])), first

    run = prepared._with(corpus)
    sampled = list(range(0, len(run.qids), ROW_SHARE))
    asked = rivals.asked(run, sampled)
    rivals.check_same_text(run.evaluate(settings[0]), sampled, plain_packer.pack_all(asked, 900, 320))
    pairs = alternate(
        lambda i: run.evaluate(settings[i + 1]),
        lambda i: plain_packer.pack_all(asked, 900, 320 + 4 * (i + 1)),
        repeat,
        len(run.qids) / len(sampled),
    )
    rival = f"plain Python packer (every {ROW_SHARE}th query timed, scaled)"
    name = "pack by characters, 900 / 320, query overlap, all metrics"
    again = [both(i) for i in range(repeat)]
    return [
        Row(name, rival, pairs, 10, faster=True),
        Row("the same, another passage budget", "the first setting after `prepare`", again, 5, faster=True),
    ]


def evaluate_row(prepared: PreparedRun, repeat: int) -> Row:
    """Evaluate a setting with all metrics; the plain loop only fits."""
    config = PackerConfig(budget=990, separator=SEPARATOR, jaccard_threshold=THRESHOLD)
    lists = rivals.size_lists(prepared.survivors(config), prepared.sizes(config))
    prepared.evaluate(config)  # fills what is kept for all budgets: dedup, full size, characters
    pairs = alternate(
        lambda i: prepared.evaluate(config.replace(budget=1000 + 10 * i)),
        lambda i: rivals.plain_fit(lists, 1000 + 10 * i),
        repeat,
    )
    return Row("evaluate one setting, all metrics", "plain Python loop, greedy fit alone", pairs, 1)


def budgets_row(prepared: PreparedRun, separator: str | None, repeat: int) -> Row:
    """Fit 20 budgets at once; without a separator both must keep the same."""
    config = PackerConfig(budget=1000, separator=separator, jaccard_threshold=THRESHOLD)
    left, sizes = prepared.survivors(config), prepared.sizes(config)
    way = prepared.course(config)
    lists = rivals.size_lists(left, sizes)
    if separator is None:
        keep, _ = plan.fit(left, sizes, config, BUDGETS, way)
        rivals.check_same_kept(left, keep, rivals.plain_fits(lists, BUDGETS))
    pairs = alternate(
        lambda _: plan.fit(left, sizes, config, BUDGETS, way),
        lambda _: rivals.plain_fits(lists, BUDGETS),
        repeat,
    )
    how = "no separator" if separator is None else "separator charged"
    return Row(f"fit {len(BUDGETS)} budgets, {how}", "plain Python loop, 20 times", pairs, 20, faster=True)


def count_row(prepared: PreparedRun, repeat: int) -> Row:
    """Count each distinct passage once; the rival counts every row."""
    texts, scale = rivals.row_texts(prepared, ROW_SHARE)
    encode = prepared.counter._encode
    pairs = alternate(
        lambda _: Corpus(prepared.corpus.texts, prepared.counter).n_tokens,
        lambda _: rivals.count_rows(encode, texts),
        repeat,
        scale,
    )
    rival = f"tiktoken on every row (every {ROW_SHARE}th timed, scaled)"
    return Row("count tokens", rival, pairs, 8, faster=True)


def prepare_row(prepared: PreparedRun, repeat: int) -> Row:
    """Prepare whole; the rival only counts and searches."""
    encode, texts = prepared.counter._encode, list(dict.fromkeys(prepared.corpus.texts))
    rank, query = np.nonzero(prepared.passage >= 0)
    together = (query, prepared.passage[rank, query].astype(np.int64))

    def parts(_: int) -> object:
        counts = rivals.count_rows(encode, texts)
        return counts, similar_pairs(compare(prepared.corpus.texts).shingles, FLOOR, together)

    pairs = alternate(lambda _: prepare(prepared.run, min_jaccard=FLOOR), parts, repeat)
    return Row("prepare", "tiktoken on the distinct passages + near-duplicate search alone", pairs, 1.6)


def near_row(prepared: PreparedRun, repeat: int) -> Row:
    """Find near-duplicates; both must find the same in the sampled queries."""
    found, chosen = prepared.corpus.texts, rivals.sample_queries(prepared, SAMPLED)
    texts = rivals.query_texts(prepared, chosen)
    rivals.check_same_pairs(prepared, chosen, rivals.sklearn_pairs(texts, FLOOR))
    pairs = alternate(
        lambda _: find_pairs(found, prepared.passage, compare(found).shingles, FLOOR),
        lambda _: rivals.sklearn_pairs(texts, FLOOR),
        repeat,
        len(prepared.qids) / len(chosen),
    )
    rival = f"scikit-learn CountVectorizer per query ({len(chosen)} queries timed, scaled)"
    return Row(f"near-duplicates, Jaccard ≥ {FLOOR}", rival, pairs, 8, faster=True)


# --- the table ----------------------------------------------------------------------------------


def machine() -> str:
    """Name the processor, Python and the libraries that the figures depend on."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    cpu = models[0] if models else platform.processor() or platform.machine()
    return f"{cpu}, {os.cpu_count()} cores; Python {platform.python_version()}, {libraries}"


def table(folder: Path, repeat: int) -> str:
    """Measure everything and write the table, below a line that says where and on what."""
    rows = [memory_row(folder), *sweeps.parts_rows(), *start_rows()]
    measured, size = in_process_rows(folder, repeat)
    head = "| measure | packtools | rival | ratio (min–max) | wanted | met |\n|---|---|---|---|---|---|"
    lines = [row.line() for row in [*measured, *rows]]
    return "\n".join([f"{machine()}. Run: {size}.", "", head, *lines])


def write_readme(text: str) -> None:
    """Put the table between the marks of the README; begin one where there is none."""
    if not README.is_file():
        README.write_text(ABOUT.format("\n".join(MARKS)), "utf-8")
    old = README.read_text("utf-8")
    before, _, rest = old.partition(MARKS[0])
    _, mark, after = rest.partition(MARKS[1])
    if not mark:
        raise SystemExit(f"{README.name} lacks the lines {MARKS[0]} and {MARKS[1]}")
    README.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", "utf-8")


def main() -> None:
    """Make the run if it is absent, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench", help="made if absent")
    parser.add_argument("--queries", type=int, default=QUERIES, help="of a run that has to be made")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each row")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    given = parser.parse_args()
    if not (given.folder / "bench.run").is_file():
        passages = max(PASSAGES * given.queries // QUERIES, 2 * make_run.TOPIC)
        make_run.write(given.folder, given.queries, DEPTH, passages)
    text = table(given.folder.resolve(), given.repeat)
    print(text)
    if given.write:
        write_readme(text)


if __name__ == "__main__":
    main()
