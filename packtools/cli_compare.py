"""The commands that judge predictions files: `compare` and `triad`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from packtools.errors import SettingError, fail

__all__ = ["add_compare", "add_triad"]

Adder = Callable[[str, str, str], argparse.ArgumentParser]


def add_compare(command: Adder) -> None:
    """Add `packtools compare`."""
    parser = command(
        "compare",
        "Compare the answers from plain and from packed contexts, query by query; gate on the difference.",
        "packtools compare --baseline-predictions plain.jsonl --compressed-predictions packed.jsonl \\\n"
        '      --output-dir build/compare --fail-if "answer_retention < -0.01"',
    )
    for side, words in (("baseline", "the plain contexts"), ("compressed", "the packed contexts")):
        parser.add_argument(
            f"--{side}-predictions", required=True, metavar="FILE", help=f"answers from {words} (JSONL)"
        )
        parser.add_argument(f"--{side}-name", default=side, metavar="NAME", help=f"default: {side}")
    parser.add_argument(
        "--output-dir", type=Path, help="write comparison.json, per_query.jsonl and report.md here"
    )
    parser.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="GATE",
        help="exit with 1 if the difference packed - plain of a metric is so: 'token_f1 < -0.02'; repeatable",
    )
    parser.add_argument(
        "--answer-rule",
        default="msmarco",
        metavar="RULE",
        help="how answers are judged: msmarco (default), squad, hotpotqa or unicode",
    )
    parser.add_argument(
        "--counter",
        default="cl100k_base",
        help="an encoding, a model name, 'chars' or a tokenizer.json (default: cl100k_base)",
    )
    parser.set_defaults(command=_compare)


def _compare(given: argparse.Namespace) -> int:
    from packtools.packed_plain import packing_report
    from packtools.runs.predictions import load_predictions

    if given.output_dir is not None:
        given.output_dir.mkdir(parents=True, exist_ok=True)
    plain, packed = (load_predictions(p) for p in (given.baseline_predictions, given.compressed_predictions))
    names = (given.baseline_name, given.compressed_name)
    report = packing_report(plain, packed, names=names, counter=given.counter, rule=given.answer_rule)
    missed = report.missed(given.fail_if)
    print(report.to_markdown(), end="")
    if given.output_dir is not None:
        print("\nwritten: " + ", ".join(str(p) for p in report.save(given.output_dir)))
    for gate in missed:
        print(f"packtools: gate missed: {gate}", file=sys.stderr)
    return 1 if missed else 0


def add_triad(command: Adder) -> None:
    """Add `packtools triad`."""
    parser = command(
        "triad",
        "Score context relevance, groundedness and answer relevance of predictions files.",
        "packtools triad --predictions plain=plain.jsonl packed=packed.jsonl --output-dir build/triad",
    )
    parser.add_argument(
        "--predictions", required=True, nargs="+", metavar="NAME=FILE", help="one or more predictions files"
    )
    parser.add_argument("--qrels", metavar="FILE", help="judge context relevance by these (TREC or BEIR)")
    parser.add_argument(
        "--baseline-config", metavar="NAME", help="compare the others with it (default: the first)"
    )
    parser.add_argument(
        "--context-top-k", type=int, metavar="K", help="passages shown that count (default: all)"
    )
    parser.add_argument(
        "--output-dir", type=Path, help="write metrics.json, the rows, the low-score cases and report.md here"
    )
    parser.set_defaults(command=_triad)


def _triad(given: argparse.Namespace) -> int:
    from packtools.triad_report import triad_files

    files: dict[str, str] = {}
    for pair in given.predictions:
        name, sign, path = pair.partition("=")
        if not (name and sign and path) or name in files:
            fail(SettingError, "triad", "--predictions", "NAME=FILE, each name once", pair)
        files[name] = path
    report = triad_files(
        files, qrels=given.qrels, baseline=given.baseline_config, context_top_k=given.context_top_k
    )
    print(report.to_markdown(), end="")
    if given.output_dir is not None:
        print("\nwritten: " + ", ".join(str(p) for p in report.save(given.output_dir)))
    return 0
