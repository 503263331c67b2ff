"""The commands for many settings and for runs too big for one machine: `sweep` and `partition`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packtools.money import Price
    from packtools.swept import SweepResult

__all__ = ["add_partition", "add_sweep"]

Adder = Callable[[str, str, str], argparse.ArgumentParser]


def add_partition(command: Adder) -> None:
    """Add `packtools partition`."""
    parser = command(
        "partition",
        "Store a run as a folder of Parquet parts, each of which can be swept by itself.",
        "packtools partition runs/bm25.run collection.tsv queries.tsv qrels.txt --parts 8 \\\n"
        "      --output-dir build/parts",
    )
    parser.add_argument("run", nargs="+", metavar="RUN", help="path(s) of a saved run")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--parts", type=int, metavar="N", help="number of parts")
    size.add_argument(
        "--rows", type=int, metavar="N", help="candidates in a part, about (default: 1,000,000)"
    )
    parser.add_argument(
        "--output-dir",
        type=Path,
        required=True,
        help="the folder to write: a new one, or a partition to overwrite",
    )
    parser.set_defaults(command=_partition)


def _partition(given: argparse.Namespace) -> int:
    from packtools.runs.layout import read_manifest
    from packtools.runs.load import load_run
    from packtools.runs.parts import ROWS, partition

    run = load_run(given.run[0] if len(given.run) == 1 else given.run)
    rows = ROWS if given.rows is None else given.rows
    partition(run, given.output_dir, parts=given.parts, rows=rows)
    written = read_manifest(given.output_dir) or {}
    print(f"{written['run']}: {', '.join(written['tables'])}\n")
    lines = [(part["name"], part) for part in written["parts"]] + [("all", written)]
    width = max(len(name) for name, _ in lines)
    print(f"{'part':<{width}}  {'queries':>11}  {'rows':>13}  {'passages':>13}")
    for name, n in lines:
        print(f"{name:<{width}}  {n['n_queries']:>11,}  {n['n_rows']:>13,}  {n['n_passages']:>13,}")
    print(f"\nwritten: {given.output_dir}")
    return 0


def _or_off(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Read a value of a kind; "off" is none."""

    def read(text: str) -> Any:
        return None if text == "off" else kind(text)

    read.__name__ = kind.__name__
    return read


AXES: tuple[tuple[str, Callable[[str], Any], str, str], ...] = (
    ("budget", _or_off(int), "N", "tokens; 'off' for none"),
    ("order", str, "NAME", "lost_in_middle, descending, ascending, fill or document"),
    ("jaccard_threshold", _or_off(float), "SHARE", "drop near-duplicates at or above it; 'off' for none"),
    ("passage_budget", _or_off(int), "N", "cut every longer passage to so many tokens; 'off' for none"),
    ("sentence_selection", _or_off(str), "NAME", "head, query_overlap, tfidf or mmr; 'off' for none"),
    ("overflow", str, "NAME", "skip or truncate"),
    ("fill", str, "NAME", "score, rank, shorter_first or value_per_token"),
)

QUALITIES = ("answer_retention", "gold_retention")


def add_sweep(command: Adder) -> None:
    """Add `packtools sweep`."""
    parser = command(
        "sweep",
        "Evaluate a grid of settings over a saved run; recommend the cheapest that loses little.",
        "packtools sweep data/sample --budget 500 1000 2000 --order descending lost_in_middle \\\n"
        "      --jaccard-threshold off 0.85 --margin 0.05 --output-dir build/sweep",
    )
    parser.add_argument(
        "run", nargs="*", help="path(s) of a saved run, or a folder of parts (default: sample)"
    )
    for name, kind, metavar, words in AXES:
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=kind, nargs="+", metavar=metavar, help=f"one or more: {words}")
    parser.add_argument(
        "--metric", help="what must not get worse (default: answer_retention, without answers gold_retention)"
    )
    parser.add_argument(
        "--margin", type=float, default=0.01, help="loss of it that is still accepted (default: %(default)s)"
    )
    parser.add_argument("--cost", default="n_tokens", help="what is to be saved (default: %(default)s)")
    parser.add_argument(
        "--counter",
        default="cl100k_base",
        help="an encoding, a model name, 'chars' or a tokenizer.json (default: cl100k_base)",
    )
    parser.add_argument(
        "--price", metavar="MODEL", help="add cost_usd at the published price of a model (extra: prices)"
    )
    parser.add_argument("--price-date", metavar="DATE", help="the day whose price counts (default: today)")
    parser.add_argument(
        "--n-jobs", type=int, metavar="N", help="worker processes; -1 is every core (default: 1)"
    )
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="keep finished work here, and go on from it"
    )
    parser.add_argument(
        "--output-dir",
        type=Path,
        help="write the table (CSV), figures (PNG, SVG, PDF) and settings (JSON) here",
    )
    parser.add_argument(
        "--parquet", action="store_true", help="write the table and every query's values as Parquet, too"
    )
    parser.set_defaults(command=_sweep)


def _sweep(given: argparse.Namespace) -> int:
    from packtools.errors import SettingError, fail
    from packtools.metrics import get_metric
    from packtools.runs import load_sample
    from packtools.stats import check_size
    from packtools.sweep_report import printed_sweep, write_sweep
    from packtools.sweeping import sweep

    grid = {name: getattr(given, name) for name, *_ in AXES if getattr(given, name) is not None}
    if not grid:
        fail(SettingError, "packtools sweep", "--budget", "given, or another setting", None, "See --help.")
    check_size("packtools sweep", "--margin", given.margin)
    for name in filter(None, (given.metric, given.cost)):
        get_metric(name)
    price = _price(given.price, given.price_date)
    if given.output_dir is not None:  # what can't be written to is better known before the work
        given.output_dir.mkdir(parents=True, exist_ok=True)
    run = load_sample() if not given.run else given.run[0] if len(given.run) == 1 else given.run
    found = sweep(run, counter=given.counter, n_jobs=given.n_jobs, checkpoint=given.checkpoint, **grid)
    if price is not None:
        found = _priced(found, price)
    metric = given.metric or next((m for m in QUALITIES if m in found.values), QUALITIES[0])
    best = found.recommend(metric, given.margin, cost=given.cost)
    print(printed_sweep(found, best))
    if given.output_dir is not None:
        paths = write_sweep(found, best, given.output_dir, parquet=given.parquet)
        print("\nwritten: " + ", ".join(str(p) for p in paths))
    return 130 if found.missing else 0


def _price(model: str | None, date: str | None) -> Price | None:
    from packtools.errors import SettingError, fail

    if model is None:
        if date is not None:
            fail(SettingError, "packtools sweep", "--price", "given with --price-date", None)
        return None
    from packtools.prices import price_of

    return price_of(model, date=date)


def _priced(found: SweepResult, price: Price) -> SweepResult:
    from packtools.money import cost_usd

    print(f"{price}\n")
    return found.with_metric("cost_usd", lambda per_query: cost_usd(per_query, price))
