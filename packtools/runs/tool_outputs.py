"""What other tools save of a run: packing predictions, FlashRAG, RAGChecker, ragas, ranx."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from packtools.errors import RunFormatError, shown
from packtools.runs import records
from packtools.runs.cases import Case, Context
from packtools.runs.files import is_text
from packtools.runs.predictions import _row
from packtools.runs.records import Place, Unreadable
from packtools.runs.report import LoadReport
from packtools.runs.tables import DOC_KEYS, QUERY_KEYS
from packtools.runs.trec import is_number

__all__ = [
    "looks_ranx", "ragas_case", "read_flashrag", "read_predictions", "read_ragas", "read_ragchecker",
    "read_ranx",
]  # fmt: skip

Numbered = Iterator[tuple[int, Case]]
RANX = "a JSON object of qid to an object of docid to score"
_STRING = r'\s*"(?:[^"\\]|\\.)*"\s*:\s*'
_PAIR = _STRING + r'"?-?[0-9]+[0-9.eE+-]*"?\s*'
_RANX_HEAD = re.compile(rf"\ufeff?\s*\{{{_STRING}\{{(?:{_PAIR},){{0,50}}+{_PAIR}[,}}]")
"""An object in an object, whose first pairs are all of a text and a number."""


def read_predictions(path: Path, report: LoadReport) -> Numbered:
    """Read a packing predictions file as a run: the passages that the reader was shown.

    The rows are those of `load_predictions`, with its rules: a `passages` that is one text counts as
    no passages. An id belongs to the passage at the same place; passages beyond the ids are named by
    their text, and so are all of them where there are more ids than passages.
    """
    return records.from_lines(path, report, _predicted)


def _predicted(record: dict[str, Any], place: Place) -> Case:
    try:
        row = _row(place.path, place.number, record, place.report)
    except RunFormatError as error:
        why = str(error).removeprefix(f"load_predictions: {place.path.name}:{place.number}: ")
        raise Unreadable(f"has a wrong field: {why.rstrip('.')}", record) from error
    if isinstance(record.get("passages"), str):
        place.repaired("'passages' that is one text, not a list: counts as none")
    contexts = _paired(row.passages, row.top_doc_ids, place)
    answers = None if record.get("references") is None else row.references
    return Case(row.query, contexts, row.qid, answers, row.prediction)


def _paired(texts: Sequence[str], ids: Sequence[str], place: Place) -> list[Context]:
    """Pair texts with ids by place; more ids than texts can't be told apart."""
    if len(ids) > len(texts):
        if texts:
            place.repaired("more ids than passages: the passages are named by their text")
        ids = ()
    elif ids and len(ids) < len(texts):
        place.repaired("fewer ids than passages: the rest are named by their text")
    return [Context(text, docid or None) for text, docid in zip_longest(texts, ids)]


def read_flashrag(path: Path, report: LoadReport) -> Numbered:
    """Read FlashRAG's intermediate_data.json: one JSON array, or the same records as JSONL.

    The first line of `contents` is the title, without the quotes around it; the rest is the text.
    Contents of one line are text.
    """
    return records.from_either(path, report, _flashrag)


def _flashrag(record: dict[str, Any], place: Place) -> Case:
    output = record.get("output")
    if output is not None and not isinstance(output, dict):
        raise Unreadable("has an 'output' that is not an object", output)
    output = output or {}
    return Case(
        records.text(record, "question"),
        [_contents(item, place) for item in records.objects(output, "retrieval_result")],
        place.id(record, QUERY_KEYS),
        place.answers(record, "golden_answers"),
        place.said(output, "pred"),
    )


def _contents(item: dict[str, Any], place: Place) -> Context:
    title, line_end, text = records.text(item, "contents").partition("\n")
    if not line_end:
        title, text = "", title
    title = title.strip()
    if len(title) > 1 and title[0] == title[-1] == '"' and '"' not in title[1:-1]:
        title = title[1:-1]
    return Context(text, place.id(item, DOC_KEYS), title, place.score(item.get("score")))


def read_ragchecker(path: Path, report: LoadReport) -> Numbered:
    """Read RAGChecker's input or output file: one JSON object with a list `results`."""
    listed = records.list_in(path, records.json_value(path), "results")
    return records.from_items(path, report, _ragchecker, listed)


def _ragchecker(record: dict[str, Any], place: Place) -> Case:
    return Case(
        records.text(record, "query"),
        [
            Context(records.text(item, "text"), place.id(item, DOC_KEYS))
            for item in records.objects(record, "retrieved_context")
        ],
        place.id(record, ("query_id", *QUERY_KEYS)),
        place.answers(record, "gt_answer"),
        place.said(record, "response"),
    )


def read_ragas(path: Path, report: LoadReport) -> Numbered:
    """Read a ragas data set: JSONL, or one JSON array of the same records."""
    return records.from_either(path, report, _ragas)


def ragas_case(record: dict[str, Any], path: Path, number: int, report: LoadReport) -> Case | None:
    """Turn one ragas record into a case.

    Parameters
    ----------
    record : dict
        `user_input`, and as far as they are there `retrieved_contexts`, `retrieved_context_ids`,
        `response` and `reference`; lists are lists, nothing is None.
    path : Path
    number : int
        Of its line.
    report : LoadReport

    Returns
    -------
    Case or None
        None if it can't be read and ``report.bad_lines`` is "skip".
    """
    place = Place(path, number, report)
    try:
        return _ragas(record, place)
    except Unreadable as error:
        place.bad(error)
        return None


def _ragas(record: dict[str, Any], place: Place) -> Case:
    texts = _strings(record, "retrieved_contexts")
    ids = [place.id({"id": value}, ("id",)) or "" for value in _strings(record, "retrieved_context_ids", int)]
    return Case(
        records.text(record, "user_input"),
        _paired(texts, ids, place),
        place.id(record, QUERY_KEYS),
        place.answers(record, "reference"),
        place.said(record, "response"),
    )


def _strings(record: dict[str, Any], key: str, *also: type) -> list[Any]:
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, (str, *also)) for item in value):
        raise Unreadable(f"has a {key!r} that is not a list of texts", value)
    return value


def looks_ranx(head: str) -> bool:
    """Whether the head of a file is that of a ranx run: an object of objects of numbers."""
    return _RANX_HEAD.match(head) is not None


def read_ranx(path: Path, report: LoadReport) -> pd.DataFrame:
    """Read a ranx run, a JSON object of qid to an object of docid to score; it has no text.

    Parameters
    ----------
    path : Path
    report : LoadReport

    Returns
    -------
    DataFrame, columns qid, docid, rank, score
        As `trec.read_run` gives it: a score that is not a finite number is NaN and placed last; a
        document named twice for a query is there twice.

    Raises
    ------
    RunFormatError
        If it is not such an object, names a query twice, or a score is not a number.
    """
    found = records.json_value(path, tuple)  # a tuple of pairs: nothing that is named twice is lost
    if not isinstance(found, tuple):
        raise RunFormatError(f"load_run: {path.name} must be {RANX}; got a {type(found).__name__}.")
    columns: dict[str, list[Any]] = {name: [] for name in ("qid", "docid", "rank", "score")}
    seen: set[str] = set()
    for number, (qid, documents) in enumerate(found, 1):
        place = Place(path, number, report, "record")
        if qid in seen:
            raise RunFormatError(f"load_run: {path.name} names query {qid!r} twice. Keep one of them.")
        seen.add(qid)
        rows = _ranked(qid, documents, place)
        for column, values in zip(columns.values(), zip(*rows, strict=True), strict=False):
            column.extend(values)
    if not columns["qid"]:
        raise RunFormatError(f"load_run: {path.name} holds no document; a ranx run is {RANX}.")
    report.read(path.name, f"{len(columns['qid']):,} documents, {len(seen):,} queries")
    ids = {name: pd.Categorical(np.array(columns[name], dtype=object)) for name in ("qid", "docid")}
    numbers = {"rank": np.array(columns["rank"], np.int64), "score": np.array(columns["score"], np.float64)}
    return pd.DataFrame({**ids, **numbers})


def _ranked(qid: str, documents: Any, place: Place) -> list[tuple[str, str, int, float]]:
    """Rank the documents of a query by score, ties in the order of the file."""
    name = place.path.name
    if not isinstance(documents, tuple):
        kind = type(documents).__name__
        raise RunFormatError(
            f"load_run: {name}: query {qid!r} must have an object of docid to score; got a {kind}."
        )
    for given in (qid, *(docid for docid, _ in documents)):
        if not given or not is_text(given):
            raise RunFormatError(f"load_run: {name}: query {qid!r} has an id that is empty or no text.")
    if not documents:
        place.ignored("query without documents: not in the run")
    scored = [(docid, _ranx_score(qid, docid, score, place)) for docid, score in documents]
    scored.sort(key=lambda pair: math.inf if math.isnan(pair[1]) else -pair[1])
    return [(qid, docid, rank, score) for rank, (docid, score) in enumerate(scored, 1)]


def _ranx_score(qid: str, docid: str, score: Any, place: Place) -> float:
    known = isinstance(score, str | int | float) and not isinstance(score, bool)
    if score is not None and not (known and is_number(str(score))):
        raise RunFormatError(
            f"load_run: {place.path.name}: the score of document {docid!r} for query {qid!r} must be a "
            f"number; got {shown(score) if known else type(score).__name__}."
        )
    value = math.nan if score is None else float(str(score))
    if not math.isfinite(value):
        place.repaired("score that is not a finite number, placed last")
        return math.nan
    return value
