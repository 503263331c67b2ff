"""`load_run`: tell what each path is, read the parts, join them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from packtools.errors import RunFileMissing, RunFormatError, fail, shown, unknown
from packtools.progress import progress
from packtools.runs import tables, tool_outputs, trec
from packtools.runs.cases import Cases
from packtools.runs.columns import Table, check_columns, read_table
from packtools.runs.files import existing
from packtools.runs.find import CASES, FORMAT_ROLE, SUBFOLDERS, Paths, find_files, holds_run, path_of, stem
from packtools.runs.formats import FORMATS, get_format, tell
from packtools.runs.frames import TIES
from packtools.runs.model import Run
from packtools.runs.read_parts import load_parts
from packtools.runs.records import head_of
from packtools.runs.report import LoadReport

__all__ = ["Paths", "holds_run", "load_run", "load_sample", "sample_path"]


def load_run(
    paths: Paths,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    run: str | None = None,
    ties: str = "rank",
    strict: bool = False,
    bad_lines: str = "raise",
) -> Run:
    """Read a saved run from files of the usual formats.

    1. A folder loads whole: its run, collection, queries, qrels and answers are told by their
       usual names (``corpus.jsonl``, ``queries.tsv``, ``qrels.txt`` or ``qrels/test.tsv``,
       ``answers.jsonl``, ``*.run``, ``runs/``). Of several runs the first by name is read, unless
       `run` names one; the report says so.
    2. Several paths are joined; a file named outright goes before one found in a folder.
    3. A mapping names each part: run, collection, queries, qrels, answers.
    4. A file of questions with their contexts (DPR, lost-in-the-middle, or what AutoRAG, FlashRAG,
       Haystack, RAGChecker or ragas save) is a run by itself.
    5. With `columns`, the first path (or the part named run) is a table of your own: CSV, TSV, JSON
       lines or Parquet. One row a candidate, or one row a query with lists, told by the data.
    6. A folder made by `partition` is a run; so is each part in it, and any list of parts.

    Ids are text, whatever they look like. Plain, ``.gz`` and ``.zst`` files.

    Parameters
    ----------
    paths : path, sequence of paths, or mapping of part to path
    format : str or None, default None
        What a file named outright is, where its name and first line don't tell: "trec", "ranx", "beir",
        or one of `packtools.runs.formats.FORMATS`.
    columns : mapping of str to str, or None, default None
        Which column holds what: keys among qid, query, docid, text, title, rank, score, label, answers
        and prediction; values are column names. No other column is read. Without a text, the docid
        finds it in a collection given too.
    run : str or None, default None
        Which run of a folder to read: a part of its file name. Or which of the retrievals in one
        AutoRAG file, such as "lexical".
    ties : {"rank", "trec_eval"}, default "rank"
        Equal scores keep the file's rank, or go by docid descending as trec_eval does.
    strict : bool, default False
        Raise at the first repair.
    bad_lines : {"raise", "skip"}, default "raise"

    Returns
    -------
    Run
        ``run.report`` says what was read, repaired and skipped, with file and line.

    Raises
    ------
    RunFileMissing
        If a path does not exist.
    RunFormatError
        If a line can't be read, a part is missing or named twice, or no passage has text.

    Examples
    --------
    >>> load_run(sample_path()).n_queries
    72
    """
    if format is not None and format not in FORMAT_ROLE and format not in FORMATS:
        unknown(RunFormatError, "load_run", "format", format, [*FORMAT_ROLE, *FORMATS])
    if bad_lines not in ("raise", "skip"):
        unknown(RunFormatError, "load_run", "bad_lines", bad_lines, ("raise", "skip"))
    report = LoadReport(strict=strict, bad_lines=bad_lines)
    if ties not in TIES:
        unknown(RunFormatError, "load_run", "ties", ties, TIES)
    if columns is not None:
        if format is not None or run is not None:
            given = "format" if format is not None else "run"
            fail(RunFormatError, "load_run", given, "None with 'columns'", format or run)
        return _load_table(paths, check_columns(columns), ties, report)
    parted = load_parts(paths, report, ties, run)
    if parted is not None:
        return parted
    parts = find_files(paths, format, run, report)
    if CASES in parts:
        _check_alone(parts)
        named = next(iter(FORMATS.keys() & paths.keys()), None) if isinstance(paths, Mapping) else format
        qrels, answers = _judgements(parts, report)
        cases, inside = _read_cases(parts[CASES], named, run, report)
        name = _run_name(parts[CASES]) + (f":{inside}" if inside else "")
        return cases.run(name, qrels, answers, ties)
    if "run" not in parts:
        parted = load_parts(paths, report, ties, run, nested=True)
        if parted is not None:
            return parted
        raise RunFormatError(
            f"load_run: {shown(str(paths))} holds no run, {_held(parts)}. "
            "Give a run file too: load_run([folder, 'run.txt'])."
        )
    is_ranx = format == "ranx" or tool_outputs.looks_ranx(head_of(parts["run"]))
    candidates = (tool_outputs.read_ranx if is_ranx else trec.read_run)(parts["run"], report)
    return _with_texts(candidates, parts, ties, report)


def _judgements(
    parts: dict[str, Path], report: LoadReport
) -> tuple[pd.DataFrame | None, dict[str, tuple[str, ...]] | None]:
    qrels = trec.read_qrels(parts["qrels"], report) if "qrels" in parts else None
    return qrels, tables.read_answers(parts["answers"], report) if "answers" in parts else None


def _with_texts(
    candidates: pd.DataFrame,
    parts: dict[str, Path],
    ties: str,
    report: LoadReport,
    table: Table | None = None,
) -> Run:
    """Join candidates with the texts, the queries and what else lies in files of its own."""
    if "collection" not in parts:
        raise RunFormatError(
            f"load_run: {parts['run'].name} came without passage text. "
            "Give the collection too: load_run([run, 'collection.tsv'])."
        )
    qrels, answers = _judgements(parts, report)
    passages = tables.read_collection(parts["collection"], set(candidates["docid"].unique()), report)
    queries = tables.read_queries(parts["queries"], report) if "queries" in parts else None
    own = table or Cases(parts["run"], report)
    return Run.from_frames(
        candidates,
        passages,
        queries=(own.queries or None) if queries is None else queries,
        qrels=table.labels() if qrels is None and table is not None else qrels,
        answers=(own.answers or None) if answers is None else answers,
        predictions=own.predictions or None,
        ties=ties,
        name=_run_name(parts["run"]),
        report=report,
    )


def _load_table(paths: Paths, columns: dict[str, str], ties: str, report: LoadReport) -> Run:
    """Load a table by its column map, and what was given beside it."""
    parts = _table_parts(paths, report)
    for role, column in (("collection", "text"), ("queries", "query")):
        if role in parts and column in columns:
            raise RunFormatError(
                f"load_run: {parts['run'].name} has its own {column}, by 'columns'; {parts[role].name} was "
                f"given as the {role} too. Leave out one or the other."
            )
    table = read_table(parts["run"], columns, report)
    if "text" not in columns:
        return _with_texts(table.frame(), parts, ties, report, table)
    qrels, answers = _judgements(parts, report)
    if "queries" in parts:
        table.queries = tables.read_queries(parts["queries"], report)
    return table.run(_run_name(parts["run"]), table.labels() if qrels is None else qrels, answers, ties)


def _table_parts(paths: Paths, report: LoadReport) -> dict[str, Path]:
    """Tell the parts where the run is a table: the part named run, or the first path."""
    if isinstance(paths, Mapping):
        parts = find_files(paths, None, None, report)
    else:
        listed = [paths] if isinstance(paths, str | Path) else list(paths)
        first = existing(path_of(listed[0])) if listed else Path()
        parts = {**find_files(listed[1:], None, None, report), "run": first}
    if CASES in parts or "run" not in parts or parts["run"].is_dir():
        rule = "a table, or a list that starts with one, or a mapping with a run that is one"
        fail(RunFormatError, "load_run", "paths", f"{rule}, where 'columns' is given", paths)
    return parts


def _read_cases(
    path: Path, format: str | None, run: str | None, report: LoadReport
) -> tuple[Cases, str | None]:
    """Read a file that is a run by itself; say which of the runs in it was asked for, if one was."""
    known = get_format(str(format or tell(path)))
    cases = Cases(path, report, known.what)
    inside = run if known.runs is not None and run in known.runs(path) else None
    chosen = () if known.runs is None else (inside,)
    found = known.read(path, report, *chosen)
    if known.what != "line":  # lines bring a bar of their own
        found = progress(found, f"read {path.name}")
    for number, case in found:
        cases.add(number, case)
    return cases, inside


def _held(parts: dict[str, Path]) -> str:
    return f"only {', '.join(parts)}" if parts else "and no file of a format that packtools reads"


def _check_alone(parts: dict[str, Path]) -> None:
    """A file of questions with their contexts brings its own run, texts and queries."""
    for role in ("run", "collection", "queries"):
        if role in parts:
            raise RunFormatError(
                f"load_run: {parts[CASES].name} is a run by itself, with its own texts; {parts[role].name} "
                f"was given as the {role} too. Load one or the other."
            )


def _run_name(path: Path) -> str:
    folder = path.parent.parent if path.parent.name in SUBFOLDERS else path.parent
    name = stem(path).removeprefix("run.")
    return f"{folder.name}/{name}" if folder.name else name


def sample_path() -> Path:
    """Give the folder of the sample run that comes with packtools."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_sample", package.parent / "data" / "sample"):
        if folder.is_dir():
            return folder
    raise RunFileMissing(f"sample_path: no sample run beside {package}. Install rag-packtools again.")


def load_sample(run: str | None = None) -> Run:
    """Load the sample run.

    Parameters
    ----------
    run : {"bm25", "fusion", "tfidf"} or None, default None
        None is bm25.
    """
    return load_run(sample_path(), run=run)
