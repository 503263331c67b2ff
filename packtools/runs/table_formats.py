"""Tables that other tools save: AutoRAG's Parquet, Haystack's CSV and JSON, ragas's CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from packtools.errors import RunFormatError, shown, unknown
from packtools.runs import records
from packtools.runs.cases import Case, Context
from packtools.runs.files import _mended, text_of
from packtools.runs.records import Place, Unreadable
from packtools.runs.report import LoadReport
from packtools.runs.rows import as_list, column_names, table_kind, table_rows
from packtools.runs.tables import DOC_KEYS, QUERY_KEYS
from packtools.runs.tool_outputs import ragas_case

__all__ = [
    "autorag_runs",
    "looks_autorag",
    "looks_haystack_csv",
    "looks_haystack_json",
    "looks_ragas_csv",
    "read_autorag",
    "read_haystack_csv",
    "read_haystack_json",
    "read_ragas_csv",
]

Numbered = Iterator[tuple[int, Case]]
QUESTIONS = ("question", "questions", "query", "queries")
CONTEXTS = ("contexts", "documents", "retrieved_contexts", "retrieved_documents")
ANSWERS = ("ground_truth_answers", "true_answers", "ground_truths", "answers", "answer")
PREDICTED = ("predicted_answers", "predicted_answer", "responses")
RAGAS = ("user_input", "retrieved_contexts", "retrieved_context_ids", "response", "reference")
_RETRIEVED = re.compile(rb"retrieved_contents|retrieved_ids")
_RUN_RESULT = re.compile(r'\s*\{\s*("run_name"\s*:\s*"[^"]*"\s*,\s*)?"(inputs|results)"\s*:\s*\{')
_FOOTER = 8
"""Bytes at the end of a Parquet file: the length of its footer, and PAR1."""


def looks_autorag(path: Path, head: str) -> bool:
    """Whether a Parquet file has AutoRAG's columns; its footer has their names as plain text."""
    if not head.startswith("PAR1") or table_kind(path) != "parquet":
        return False
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - _FOOTER, 0))
        length = int.from_bytes(stream.read(4), "little")
        stream.seek(max(size - _FOOTER - length, 0))
        return _RETRIEVED.search(stream.read(length)) is not None


def autorag_runs(path: Path) -> list[str]:
    """Name the retrievals that one AutoRAG file holds, by what follows "retrieved_contents"; "" is first."""
    found = [re.fullmatch("retrieved_contents(?:_(.+))?", name) for name in column_names(path)]
    return sorted(match[1] or "" for match in found if match)


def read_autorag(path: Path, report: LoadReport, run: str | None = None) -> Numbered:
    """Read an AutoRAG result: of retrieval, of a reranker or of a generator.

    Parameters
    ----------
    path : Path
    report : LoadReport
    run : str or None, default None
        Which of the file's retrievals, such as "lexical"; None is the columns without a suffix, or
        else the first suffix by name. The report says which.

    Notes
    -----
    `retrieval_gt` is a list of lists (any of the inner, all of the outer); each id in it is relevant.
    """
    runs = autorag_runs(path)
    if not runs:
        raise RunFormatError(
            f"load_run: {path.name} has no contexts: no column 'retrieved_contents' or one like it. "
            f"It has {shown(column_names(path), 300)}. Give the result of a retrieval, reranker or generator."
        )
    chosen = runs[0] if run is None else run
    if chosen not in runs:
        unknown(RunFormatError, f"load_run: {path.name}", "run", run, runs)
    columns = _autorag_columns(path, chosen)
    others = ", ".join(name or "without suffix" for name in runs if name != chosen)
    more = f"; there are also: {others}; name one with run=" if others else ""
    report.joined(f"{path.name}: the retrieval is in {columns['contents']}{more}")
    for number, _, row in table_rows(path, list(columns.values()), report):
        place = Place(path, number, report, "record")
        try:
            yield number, _autorag({role: row[column] for role, column in columns.items()}, place)
        except Unreadable as error:
            place.bad(error)


def _autorag_columns(path: Path, run: str) -> dict[str, str]:
    """Find the columns of one retrieval by what they hold."""
    tail = f"_{run}" if run else ""
    names = column_names(path)
    wanted = {
        "qid": ("qid",),
        "query": ("query",),
        "gold": ("retrieval_gt",),
        "answers": ("generation_gt",),
        "prediction": ("generated_texts",),
        "contents": (f"retrieved_contents{tail}",),
        "ids": (f"retrieved_ids{tail}",),
        "scores": (f"retrieve_scores{tail}", f"retrieved_scores{tail}"),
    }
    found = {role: next((n for n in known if n in names), None) for role, known in wanted.items()}
    for needed in ("qid", "query"):
        if found[needed] is None:
            unknown(RunFormatError, f"load_run: {path.name}", "column", needed, names)
    return {role: name for role, name in found.items() if name is not None}


def _autorag(row: Mapping[str, Any], place: Place) -> Case:
    if not isinstance(row["query"], str):
        raise Unreadable("has no text in 'query'", row["query"])
    qid = place.id({"qid": row["qid"]}, ("qid",))
    if qid is None:
        raise Unreadable("has no id in 'qid'", row["qid"])
    gold = list(dict.fromkeys(_flat(row.get("gold"))))
    if not all(isinstance(docid, str) for docid in gold):
        raise Unreadable("has a 'retrieval_gt' that is not lists of ids", row["gold"])
    if any(isinstance(inner, list) and len(inner) > 1 for inner in row.get("gold") or ()):
        place.ignored("'retrieval_gt' with alternatives: each counts as relevant")
    texts = _list(row["contents"], "contents")
    ids = _list(row["ids"], "ids") if "ids" in row else [None] * len(texts)
    scores = _list(row.get("scores"), "scores") or [None] * len(texts)
    if not len(texts) == len(ids) == len(scores):
        raise Unreadable(f"has {len(texts)} contents, {len(ids)} ids and {len(scores)} scores", ids)
    contexts = []
    for text, docid, score in zip(texts, ids, scores, strict=True):
        named = None if docid is None else place.id({"docid": docid}, ("docid",))
        if not isinstance(text, str) or (named is None and docid is not None):
            raise Unreadable("has a retrieved passage without a text or with an empty id", (docid, text))
        contexts.append(Context(text, named, score=place.score(score)))
    answers = place.answers(dict(row), "answers")
    return Case(row["query"], contexts, qid, answers, place.said(dict(row), "prediction"), gold)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for inner in value:
            yield from _flat(inner)
    elif value is not None and value != "":
        yield value


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Unreadable(f"has {what} that are not a list", value)
    return value


def looks_haystack_csv(path: Path, head: str) -> bool:
    """Whether a CSV has columns of questions, contexts and predicted or true answers."""
    names = _header(path)
    return all(any(n in known for n in names) for known in (QUESTIONS, CONTEXTS, (*ANSWERS, *PREDICTED)))


def _header(path: Path) -> list[str]:
    try:
        return column_names(path) if table_kind(path) == "csv" else []
    except RunFormatError:
        return []  # said with its place by whoever reads the file


def read_haystack_csv(path: Path, report: LoadReport) -> Numbered:
    """Read a Haystack evaluation as a table, a row a question; metric columns are left out.

    A question is named by its place, which is the same in each run over the same questions.
    """
    names = column_names(path)
    columns = _haystack_fields(path, names)
    _left_out(path, [n for n in names if n not in columns.values()], report)
    for line, number, row in table_rows(path, list(columns.values()), report):
        values = {role: row[column] for role, column in columns.items()}
        place = Place(path, line, report)
        for role in ("contexts", "answers"):
            if role in values:
                values[role] = _mended(_cell(values[role]), path, line, report)
        try:
            yield line, _haystack(values, number, place)
        except Unreadable as error:
            place.bad(error)


def looks_haystack_json(path: Path, head: str) -> bool:
    """Whether a file is the JSON of a Haystack EvaluationRunResult."""
    return _RUN_RESULT.match(head) is not None


def read_haystack_json(path: Path, report: LoadReport) -> Numbered:
    """Read a Haystack EvaluationRunResult: lists by position under "inputs".

    Raises
    ------
    RunFormatError
        If the lists are of unequal length: position is all that joins them.
    """
    found = records.json_value(path)
    given = found.get("inputs") if isinstance(found, dict) else None
    if not isinstance(given, dict):
        raise RunFormatError(
            f"load_run: {path.name} must be a JSON object with an object 'inputs'; got {shown(found)}."
        )
    columns = _haystack_fields(path, list(given))
    _left_out(path, [name for name in given if name not in columns.values()], report)
    lists = {role: given[name] for role, name in columns.items()}
    for role, value in lists.items():
        if not isinstance(value, list):
            raise RunFormatError(
                f"load_run: {path.name}: {columns[role]!r} must be a list; got {shown(value)}."
            )
    lengths = {columns[role]: len(value) for role, value in lists.items()}
    if len(set(lengths.values())) > 1:
        raise RunFormatError(
            f"load_run: {path.name} has lists of unequal length: {lengths}. Position is all that joins them: "
            "save the file again."
        )
    items = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    yield from records.from_items(
        path, report, lambda item, place: _haystack(item, place.number, place), items
    )


def _haystack_fields(path: Path, names: Sequence[str]) -> dict[str, str]:
    """Find the fields by what they hold; without questions or contexts it is no run."""
    wanted = {
        "qid": ("query_id", "question_id"),
        "question": QUESTIONS,
        "contexts": CONTEXTS,
        "answers": ANSWERS,
        "prediction": PREDICTED,
    }
    found = {role: next((n for n in known if n in names), None) for role, known in wanted.items()}
    for role, words in (("question", "questions"), ("contexts", "contexts")):
        if found[role] is None:
            known = ", ".join(repr(name) for name in wanted[role])
            raise RunFormatError(
                f"load_run: {path.name} has no {words}: none of {known}. It has {shown(list(names), 300)}."
            )
    return {role: name for role, name in found.items() if name is not None}


def _left_out(path: Path, names: Sequence[str], report: LoadReport) -> None:
    if names:
        report.ignored(path.name, f"columns that are not read: {', '.join(map(str, names))}", n=len(names))


def _haystack(row: Mapping[str, Any], number: int, place: Place) -> Case:
    question, contexts = row["question"], row["contexts"]
    if not isinstance(question, str) or not question.strip():
        raise Unreadable("has an empty question", question)
    if not isinstance(contexts, list):
        raise Unreadable(
            "has contexts that are not a list of texts (cut, or not a Python or JSON list)", contexts
        )
    qid = f"row-{number}"
    if "qid" in row:
        found = place.id({"query_id": row["qid"]}, ("query_id",))
        if found is None:
            raise Unreadable("has an empty query id", row["qid"])
        qid = found
    else:
        place.ignored("question without an id, as the format has it: named by its row")
    answers = place.answers(dict(row), "answers")
    passages = [_document(context, place) for context in contexts]
    return Case(question, passages, qid, answers, place.said(dict(row), "prediction"))


def _document(item: Any, place: Place) -> Context:
    """Take a text, or a document with its content, id and score."""
    text = text_of(item, ("content", "text")) if isinstance(item, dict) else item
    if not isinstance(text, str):
        raise Unreadable("has a context that is no text", item)
    if not isinstance(item, dict):
        return Context(text)
    return Context(text, place.id(item, DOC_KEYS), score=place.score(item.get("score")))


def looks_ragas_csv(path: Path, head: str) -> bool:
    """Whether a CSV has ragas's columns."""
    return {"user_input", "retrieved_contexts"} <= set(_header(path))


def read_ragas_csv(path: Path, report: LoadReport) -> Numbered:
    """Read a ragas data set saved as CSV, where lists stand as text; an empty cell is nothing.

    A question without an id is named by its place, which is the same in each run over the same
    questions.
    """
    names = column_names(path)
    known = [*RAGAS[:2], *(name for name in names if name in (*RAGAS[2:], *QUERY_KEYS))]
    _left_out(path, [name for name in names if name not in known], report)
    for line, number, row in table_rows(path, known, report):
        record = {name: value if value != "" else None for name, value in row.items()}
        for name in ("retrieved_contexts", "retrieved_context_ids"):
            if name in record:
                record[name] = _cell(record[name])
        record["retrieved_contexts"] = _mended(record["retrieved_contexts"], path, line, report)
        case = ragas_case(record, path, line, report)
        if case is not None and case.qid is None:
            report.ignored(path.name, "question without an id: named by its row", line)
            case = replace(case, qid=f"row-{number}")
        if case is not None:
            yield line, case


def _cell(value: Any) -> Any:
    """Read a list that stands as text; what is none is left for whoever checks it."""
    found = as_list(value)
    return value if found is None else found
