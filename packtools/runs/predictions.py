"""Predictions files: JSONL of what a reader answered from the passages it was shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packtools.errors import RunFormatError, shown
from packtools.runs.files import id_of, is_text, json_records
from packtools.runs.report import LoadReport

__all__ = ["Prediction", "Predictions", "load_predictions"]

KEYS = ("query_id",)


@dataclass(frozen=True)
class Prediction:
    """Hold one row of a predictions file.

    Parameters
    ----------
    qid : str
    query : str
    prediction : str or None
        None where the row has no answer; the report scores it as an empty one.
    references : tuple of str
    passages : tuple of str
        What the reader was shown, in prompt order.
    top_doc_ids : tuple of str
    context_packing : mapping or None
        What the packer wrote about it.
    line : int
        Where in the file it stands, from 1.
    """

    qid: str
    query: str
    prediction: str | None
    references: tuple[str, ...]
    passages: tuple[str, ...]
    top_doc_ids: tuple[str, ...]
    context_packing: Mapping[str, Any] | None
    line: int

    @property
    def context(self) -> str:
        """The passages, stripped, the empty ones left out, joined by one space."""
        return " ".join(p.strip() for p in self.passages if p.strip())


@dataclass(frozen=True)
class Predictions:
    """Hold a predictions file.

    Parameters
    ----------
    name : str
        Of the file.
    rows : mapping of qid to Prediction
        In the order of the file.
    report : LoadReport
    """

    name: str
    rows: Mapping[str, Prediction]
    report: LoadReport = field(default_factory=LoadReport)

    def __len__(self) -> int:
        return len(self.rows)


def load_predictions(path: str | Path) -> Predictions:
    """Read a predictions file.

    Each line is an object with `query_id`, and as far as they are there `query`, `prediction`,
    `references`, `passages`, `top_doc_ids` and `context_packing`. Blank lines are left out.

    Parameters
    ----------
    path : str or Path
        JSONL, plain, .gz or .zst.

    Returns
    -------
    Predictions

    Raises
    ------
    RunFileMissing
        If there is no such file.
    RunFormatError
        At the first line that is not JSON, has no `query_id`, repeats one, or holds a field of the
        wrong kind; with file and line.

    Notes
    -----
    A `passages` that is one text instead of a list counts as no passages, as in the published report.
    """
    path = Path(path)
    report = LoadReport()
    rows: dict[str, Prediction] = {}
    for line, record in json_records(path, report):
        row = _row(path, line, record, report)
        if row.qid in rows:
            raise RunFormatError(
                f"load_predictions: {path.name}:{line}: query_id {row.qid!r} is already in line "
                f"{rows[row.qid].line}. Keep one row a query."
            )
        rows[row.qid] = row
    if not rows:
        raise RunFormatError(f"load_predictions: {path.name} holds no prediction.")
    return Predictions(path.name, rows, report)


def _row(path: Path, line: int, record: dict[str, Any], report: LoadReport) -> Prediction:
    qid = id_of(record, KEYS, path, line, report)
    if qid is None or not qid.strip():
        raise RunFormatError(
            f"load_predictions: {path.name}:{line}: 'query_id' must be a text that is not empty; got "
            f"{shown(record.get('query_id'))}."
        )
    prediction = record.get("prediction")
    if prediction is not None and not isinstance(prediction, str):
        _wrong(path, line, "prediction", "a text", prediction)
    packing = record.get("context_packing")
    if packing is not None and not isinstance(packing, dict):
        _wrong(path, line, "context_packing", "an object", packing)
    query, passages = record.get("query"), record.get("passages")
    if query is not None and not isinstance(query, str):
        _wrong(path, line, "query", "a text", query)
    return Prediction(
        qid,
        query or "",
        prediction,
        _texts(path, line, "references", record.get("references")),
        () if isinstance(passages, str) else _texts(path, line, "passages", passages),
        _ids(path, line, record.get("top_doc_ids")),
        packing,
        line,
    )


def _texts(path: Path, line: int, key: str, given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list) or not all(isinstance(g, str | type(None)) for g in given):
        _wrong(path, line, key, "a list of texts", given)
    return tuple(g or "" for g in given if g is not None or key != "references")


def _ids(path: Path, line: int, given: Any) -> tuple[str, ...]:
    given = [] if given is None else given
    if not isinstance(given, list) or not all(_is_id(g) for g in given):
        _wrong(path, line, "top_doc_ids", "a list of ids", given)
    return tuple(str(g) for g in given)


def _is_id(given: Any) -> bool:
    if isinstance(given, str):
        return is_text(given)
    return isinstance(given, int) and not isinstance(given, bool)


def _wrong(path: Path, line: int, key: str, rule: str, value: Any) -> None:
    raise RunFormatError(f"load_predictions: {path.name}:{line}: {key!r} must be {rule}; got {shown(value)}.")
