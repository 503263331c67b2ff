"""The command line: a thin shell over the library. Heavy modules load inside the command.

Exit codes: 0 done, 1 a gate was missed, 2 bad input, 130 ended by Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packtools.cli_compare import add_compare, add_triad
from packtools.cli_sweep import add_partition, add_sweep
from packtools.errors import PacktoolsError, SettingError, check_count

if TYPE_CHECKING:
    from packtools.runs.model import Run
    from packtools.schema import Chunk, PackedContext

__all__ = ["main"]

BUDGET, TOP_K, TENANT = 4000, 20, "default"
REPORT_BUDGETS = (250, 500, 1000, 2000, 4000)
REPORT_THRESHOLD = 0.85
TEXT_WIDTH = 100


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; give its exit code."""
    given = _parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that can't show a character shows "?"
            stream.reconfigure(errors="replace")
    try:
        return int(given.command(given))
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print("packtools: ended by Ctrl-C", file=sys.stderr)
        return 130
    except (PacktoolsError, OSError, UnicodeError) as error:
        print(f"packtools: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="packtools",
        description="Pack saved RAG runs under a budget and see what it costs in quality.",
        epilog="Run 'packtools COMMAND --help' for the options of a command, with an example.",
    )
    from packtools import __version__

    parser.add_argument("--version", action="version", version=f"packtools {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_pack(commands)
    _add_report(commands)
    add_sweep(partial(_command, commands))
    add_compare(partial(_command, commands))
    add_triad(partial(_command, commands))
    add_partition(partial(_command, commands))
    _add_explore(commands)
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, what: str, example: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=what,
        description=what,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _threshold(text: str) -> float | None:
    """Read a threshold; "off" is none."""
    return None if text == "off" else float(text)


def _add_settings(parser: argparse.ArgumentParser, threshold: float | None) -> None:
    parser.add_argument(
        "--order",
        default="lost_in_middle",
        help="place in the prompt: lost_in_middle (default), descending, ascending, fill or document",
    )
    parser.add_argument(
        "--jaccard-threshold",
        type=_threshold,
        default=threshold,
        metavar="SHARE",
        help=f"drop near-duplicates at or above it; 'off' for none (default: {threshold or 'off'})",
    )
    parser.add_argument(
        "--passage-budget",
        type=int,
        metavar="N",
        help="cut every longer passage to so many tokens (default: none is cut)",
    )
    parser.add_argument(
        "--sentence-selection",
        metavar="NAME",
        help="which sentences of a cut passage stay: head, query_overlap, tfidf or mmr "
        "(default: cut at a word boundary)",
    )
    parser.add_argument(
        "--overflow",
        choices=("skip", "truncate"),
        default="skip",
        help="what a passage does that does not fit: skip it and try the next (default), or cut it and stop",
    )
    parser.add_argument(
        "--counter",
        default="cl100k_base",
        help="an encoding, a model name, 'chars' or a tokenizer.json (default: cl100k_base)",
    )


def _add_pack(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "pack",
        "Pack the passages of one query and say what was dropped.",
        'packtools pack "How many moons does Saturn have?" --budget 1000 --jaccard-threshold 0.85',
    )
    parser.add_argument(
        "query",
        help="a query id or text of the run, or any text: then the run's passages are ranked by TF-IDF",
    )
    parser.add_argument("--run", nargs="+", help="path(s) of a saved run (default: the sample run)")
    parser.add_argument("--budget", "-b", type=int, default=BUDGET, help=f"tokens (default: {BUDGET})")
    parser.add_argument(
        "--top-k", "-k", type=int, default=TOP_K, help=f"candidates to pack (default: {TOP_K})"
    )
    parser.add_argument(
        "--conflicts",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="look for contradictions (default: on)",
    )
    parser.add_argument(
        "--tenant", "-t", default=TENANT, help=f"tenant id of the request (default: {TENANT})"
    )
    _add_settings(parser, None)
    parser.set_defaults(command=_pack)


def _add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "report",
        "Pack a saved run under several budgets; print cost against quality, write figures.",
        "packtools report data/sample --budget 500 1000 2000 --output-dir build/report",
    )
    parser.add_argument("run", nargs="*", help="path(s) of a saved run (default: the sample run)")
    parser.add_argument(
        "--budget", "-b", type=int, nargs="+", default=list(REPORT_BUDGETS), help="tokens, one or more"
    )
    parser.add_argument(
        "--output-dir",
        type=Path,
        help="write the table (CSV), figures (PNG, SVG, PDF) and settings (JSON) here",
    )
    _add_settings(parser, REPORT_THRESHOLD)
    parser.set_defaults(command=_report)


def _add_explore(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "explore",
        "Open JupyterLab on a notebook that explores a saved run.",
        "packtools explore runs/bm25.run collection.tsv queries.tsv qrels.txt",
    )
    parser.add_argument("run", nargs="*", help="path(s) of a saved run (default: the sample run)")
    parser.add_argument(
        "--notebook", type=Path, default=Path("explore_packing.ipynb"), help="where to write the notebook"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="start the server without opening a browser"
    )
    parser.add_argument("--no-start", action="store_true", help="write the notebook only")
    parser.set_defaults(command=_explore)


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    """Give the settings that `_add_settings` asked for."""
    names = ("order", "jaccard_threshold", "passage_budget", "sentence_selection", "overflow")
    return {name: getattr(given, name) for name in names}


def _load(paths: list[str] | None) -> Run:
    from packtools.runs import load_run, load_sample

    if not paths:
        return load_sample()
    return load_run(paths[0] if len(paths) == 1 else paths)


# --- pack -----------------------------------------------------------------------------------------


def _pack(given: argparse.Namespace) -> int:
    from packtools.config import PackerConfig
    from packtools.packer import ContextPacker
    from packtools.schema import RequestContext

    check_count(SettingError, "packtools pack", "--top-k", given.top_k, "candidate")
    config = PackerConfig(**_settings(given), detect_conflicts=given.conflicts, separator="\n\n")
    packer = ContextPacker(config=config, token_counter=given.counter)
    run = _load(given.run)
    source, query, chunks = _candidates(run, given.query, given.top_k)
    context = RequestContext(tenant_id=given.tenant)
    packed = packer.pack_sync(context, chunks, budget=given.budget, query=query)
    _print_pack(given, source, chunks, packed)
    return 0


def _candidates(run: Run, query: str, top_k: int) -> tuple[str, str, list[Chunk]]:
    """Take the saved candidates of a known query; rank the run's passages for any other text.

    Gives where they come from, the text of the query, and the candidates.
    """
    from packtools.text import normalise

    asked = normalise(query)
    known = [
        qid
        for qid, text in run.queries["text"].items()
        if query == qid or (asked and normalise(text) == asked)
    ]
    if known:
        text = str(run.queries.at[known[0], "text"])
        return f"saved candidates of {known[0]}", text, run.chunks(str(known[0]))[:top_k]
    return "TF-IDF over the run's passages (the query is not in the run)", query, _search(run, query, top_k)


def _search(run: Run, query: str, top_k: int) -> list[Chunk]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    from packtools.schema import Chunk

    texts = run.passages["text"].tolist()
    titled = (run.passages["title"] + "\n" + run.passages["text"]).tolist()
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    try:
        passages = vectorizer.fit_transform(titled)
    except ValueError as error:
        raise SettingError(f"packtools pack: the run's passages hold no words to search: {error}.") from error
    found = (vectorizer.transform([query]) @ passages.T).toarray()[0]
    best = (-found).argsort(kind="stable")[:top_k]
    return [Chunk(str(run.passages.index[i]), texts[i], float(found[i])) for i in best if found[i] > 0]


def _print_pack(given: argparse.Namespace, source: str, chunks: list[Chunk], packed: PackedContext) -> None:
    figures = {
        "query": given.query,
        "candidates": source,
        "tenant": given.tenant,
        "order": packed.config.order,
        "budget": packed.config.budget,
        "tokenizer": packed.counter,
        "chunks_in": len(chunks),
        "chunks_out": len(packed.chunks),
        "tokens_used": packed.n_used,
        "dropped_dedup": len(packed.dropped_dedup),
        "dropped_budget": len(packed.dropped_budget),
        "conflicts": len(packed.conflicts),
    }
    for name, value in figures.items():
        print(f"{name}: {value}")
    for conflict in packed.conflicts:
        print(f"  {conflict}")
    for span, chunk, passage in zip(packed.spans, packed.chunks, packed.passages, strict=True):
        text = " ".join(passage.split())
        cut = text if len(text) <= TEXT_WIDTH else text[: TEXT_WIDTH - 1] + "…"
        print(f"{span.rank}\t{chunk.score:.4f}\t{chunk.trust}\t{chunk.id}\t{cut}")


# --- report ---------------------------------------------------------------------------------------


def _report(given: argparse.Namespace) -> int:
    from packtools.explorer import ExplorerModel
    from packtools.prepared import prepare
    from packtools.report import printed, write_report
    from packtools.tradeoff import SHOWN, trade_off

    budgets = sorted(
        {check_count(SettingError, "packtools report", "--budget", b, "token") for b in given.budget}
    )
    config = SHOWN.replace(**_settings(given))
    prepared = prepare(_load(given.run), counter=given.counter)
    table = trade_off(prepared, config, budgets)
    print(printed(prepared, config, table))
    if given.output_dir is not None:
        model = ExplorerModel(prepared, config=config.replace(budget=budgets[len(budgets) // 2]))
        paths = write_report(model.view(), table, given.output_dir)
        print("\nwritten: " + ", ".join(str(p) for p in paths))
    return 0


# --- explore --------------------------------------------------------------------------------------


def _explore(given: argparse.Namespace) -> int:
    from packtools.notebook import open_lab, write_notebook

    run = _load(given.run)  # a bad path or file is an error here, not in the notebook
    fresh = write_notebook(given.notebook, [str(Path(p).resolve()) for p in given.run], run.name)
    print(f"written: {given.notebook}" if fresh else f"opened as it is: {given.notebook}")
    return 0 if given.no_start else open_lab(given.notebook, browser=not given.no_browser)


if __name__ == "__main__":
    sys.exit(main())
