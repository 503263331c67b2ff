"""The formats that are a run by themselves: how a file of each is told, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packtools.errors import RunFormatError, unknown
from packtools.runs import dpr, question_sets, table_formats, tool_outputs
from packtools.runs.cases import Case
from packtools.runs.records import has_keys, head_of

Reader = Callable[..., Iterator[tuple[int, Case]]]


@dataclass(frozen=True)
class Format:
    """Describe a format.

    Parameters
    ----------
    words : str
        What it is called in messages.
    read : callable
        ``read(path, report)`` gives numbered cases.
    looks : callable
        ``looks(path, head)`` says whether a file is of it; `head` is its first line that is not
        blank, or the beginning of JSON that is laid out over many lines.
    what : {"line", "record"}, default "line"
        What the numbers of the cases count.
    runs : callable or None, default None
        ``runs(path)`` names the runs that one file holds; ``read(path, report, run)`` then takes the one
        chosen, and of several such files in a folder, the stages of one pipeline, one must be named.
    """

    words: str
    read: Reader
    looks: Callable[[Path, str], bool]
    what: str = "line"
    runs: Callable[[Path], list[str]] | None = None


def _keys(*keys: str) -> Callable[[Path, str], bool]:
    return lambda path, head: has_keys(head, *keys)


FORMATS: dict[str, Format] = {
    "dpr": Format("DPR or lost-in-the-middle JSONL", dpr.read_dpr, lambda path, head: '"ctxs"' in head),
    "predictions": Format(
        "packing predictions JSONL", tool_outputs.read_predictions, _keys("query_id", "passages")
    ),
    "flashrag": Format(
        "FlashRAG intermediate_data.json", tool_outputs.read_flashrag, _keys("retrieval_result"), "record"
    ),
    "ragchecker": Format(
        "RAGChecker JSON", tool_outputs.read_ragchecker, _keys("results", "retrieved_context"), "record"
    ),
    "ragas": Format("ragas JSONL", tool_outputs.read_ragas, _keys("user_input", "retrieved_contexts")),
    "ramdocs": Format("RAMDocs JSONL", question_sets.read_ramdocs, _keys("documents", "gold_answers")),
    "hotpotqa": Format(
        "HotpotQA JSON", question_sets.read_hotpotqa, _keys("context", "supporting_facts"), "record"
    ),
    "squad": Format("SQuAD-shaped JSON", question_sets.read_squad, _keys("paragraphs", "qas"), "record"),
    "trec_rag": Format(
        "TREC RAG rerank requests", question_sets.read_rerank_requests, _keys("query", "candidates", "docid")
    ),
    "autorag": Format(
        "AutoRAG Parquet", table_formats.read_autorag, table_formats.looks_autorag, "record",
        table_formats.autorag_runs,
    ),
    "haystack": Format(
        "Haystack EvaluationRunResult JSON", table_formats.read_haystack_json,
        table_formats.looks_haystack_json, "record",
    ),
    "haystack_csv": Format(
        "Haystack evaluation CSV", table_formats.read_haystack_csv, table_formats.looks_haystack_csv
    ),
    "ragas_csv": Format("ragas CSV", table_formats.read_ragas_csv, table_formats.looks_ragas_csv),
}  # fmt: skip


def tell(path: Path) -> str | None:
    """Name the format of a file; None if it is none of these."""
    head = head_of(path)
    return next((name for name, known in FORMATS.items() if known.looks(path, head)), None)


def get_format(name: str) -> Format:
    """Give the format of that name, or one error that lists them all."""
    if name not in FORMATS:
        unknown(RunFormatError, "load_run", "format", name, FORMATS)
    return FORMATS[name]


def runs_inside(path: Path, name: str | None = None) -> list[str] | None:
    """Name the runs that one file of a format holds; None if the format has one a file."""
    known = get_format(str(name or tell(path)))
    return None if known.runs is None else known.runs(path)
