"""Tables of the user's own schema: a map says which column holds what.

Long form is one row a candidate; list form is one row a query, with lists of its candidates.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from packtools.errors import RunFormatError, fail, unknown
from packtools.progress import progress
from packtools.runs.cases import ID_DIGITS, Case, Cases, Context
from packtools.runs.files import _mended, id_of
from packtools.runs.records import Place, Unreadable
from packtools.runs.report import LoadReport
from packtools.runs.rows import DELIMITERS, Row, as_list, looks_cut, table_kind, table_rows
from packtools.runs.trec import is_number

__all__ = ["COLUMN_ROLES", "Table", "check_columns", "read_table"]

LISTED = ("docid", "text", "title", "rank", "score", "label")
COLUMN_ROLES = ("qid", "query", *LISTED, "answers", "prediction")
_LABEL_LIMIT = 10**9


@dataclass(slots=True)
class _Found:
    """One candidate of a query."""

    rank: float
    score: float
    docid: str | None
    text: str
    title: str
    label: int | None


@dataclass(slots=True)
class _Asked:
    """What the rows of one query say; of each thing, the first row that says it."""

    number: int
    qid: str | None
    query: str
    answers: tuple[str, ...] | None
    prediction: str | None
    found: list[_Found] = field(default_factory=list)


def check_columns(columns: object) -> dict[str, str]:
    """Check a column map.

    Parameters
    ----------
    columns : mapping of role to column name
        Roles are those of `COLUMN_ROLES`; a qid or a query is needed, and a text or a docid.

    Raises
    ------
    RunFormatError
    """
    rule = "a mapping of what a column holds to its name, such as {'query': 'question', 'text': 'chunk'}"
    if not isinstance(columns, Mapping) or not columns:
        fail(RunFormatError, "load_run", "columns", rule, columns)
    for role, column in columns.items():
        if role not in COLUMN_ROLES:
            unknown(RunFormatError, "load_run", "role in 'columns'", role, COLUMN_ROLES)
        if not isinstance(column, str):
            fail(RunFormatError, "load_run", f"columns[{role!r}]", "the name of a column", column)
    for group, why in (
        (("qid", "query"), "one of them tells the queries apart"),
        (("text", "docid"), "without a text, the docid finds it in a collection"),
    ):
        if not any(role in columns for role in group):
            fail(
                RunFormatError,
                "load_run",
                "columns",
                f"a map with {' or '.join(group)}; {why}",
                dict(columns),
            )
    if "title" in columns and "text" not in columns:
        fail(RunFormatError, "load_run", "columns", "a map with text where it has title", dict(columns))
    return dict(columns)


def read_table(path: Path, columns: Mapping[str, str], report: LoadReport) -> Table:
    """Read a table by a checked column map.

    1. The first row with a text (or else a docid) tells the form: a list there is list form.
    2. Long form: rows of a query may stand anywhere; score descending is the rank, then the rank
       column, then the order of the file; a score that is no finite number goes last.
    3. List form: the order of the lists is the rank, unless a rank is mapped.

    Parameters
    ----------
    path : Path
        CSV, TSV, JSON lines or Parquet.
    columns : mapping of role to column name
    report : LoadReport

    Raises
    ------
    RunFormatError
        If a column is not there, or a row can't be read.

    Notes
    -----
    Without a qid, a query is named by its row (list form) or by its text (long form). Memory is that
    of the mapped columns; a text that repeats is held once.
    """
    table = Table(path, report, columns)
    raw = table_rows(path, list(columns.values()), report)
    if table_kind(path) != "jsonl":  # lines bring a bar of their own
        raw = progress(raw, f"read {path.name}")
    rows = ((n, place, {role: row[c] for role, c in columns.items()}) for n, place, row in raw)
    table.take_rows(rows)
    return table


class Table(Cases):
    """Collect the rows of a table into the tables of a run.

    Parameters
    ----------
    path : Path
    report : LoadReport
    columns : mapping of role to column name
    """

    def __init__(self, path: Path, report: LoadReport, columns: Mapping[str, str]) -> None:
        kind = table_kind(path)
        super().__init__(path, report, "record" if kind == "parquet" else "line")
        self.columns, self.cells, self.long = columns, kind in DELIMITERS, True
        self.texts: dict[str, str] = {}

    def frame(self) -> pd.DataFrame:
        """Give the candidates as they were read: columns qid, docid, rank, score."""
        return pd.DataFrame(self.rows)

    def labels(self) -> pd.DataFrame | None:
        """Take the labels out, as qrels; None if there are none."""
        given = self.extra.pop("label", {})
        at = list(given)
        ids = {c: np.array([self.rows[c][i] for i in at], dtype=object) for c in ("qid", "docid")}
        label = np.array(list(given.values()), dtype=np.int32)
        return pd.DataFrame({**ids, "label": label}) if at else None

    def take_rows(self, rows: Iterator[Row]) -> None:
        """Take all rows, by role."""
        rows = self._tell_form(rows)
        words = "one row a candidate" if self.long else "one row a query, with lists"
        self.report.read(self.path.name, words)
        for asked in self._long_rows(rows) if self.long else self._list_rows(rows):
            self._add(asked)

    def _tell_form(self, rows: Iterator[Row]) -> Iterator[Row]:
        key = "text" if "text" in self.columns else "docid"
        held = []
        for row in rows:
            value = row[2][key]
            if self.cells and looks_cut(value):
                why = f"has a list in column {self.columns[key]!r} that can't be read (cut, or not JSON)"
                self._place(row[0]).bad(Unreadable(why, value))
                continue
            held.append(row)
            if value in (None, ""):
                continue
            listed = as_list(value) if self.cells else value
            self.long = not isinstance(listed, list) or (
                key == "text" and not all(isinstance(text, str | None) for text in listed)
            )
            if listed != []:  # an empty list in a cell may be a text
                break
        return chain(held, rows)

    def _place(self, number: int) -> Place:
        return Place(self.path, number, self.report, self.what)

    def _long_rows(self, rows: Iterable[Row]) -> Iterable[_Asked]:
        groups: dict[str, _Asked] = {}
        for number, _, row in rows:
            place = self._place(number)
            try:
                asked, found = self._asked(row, place), self._found(row, place)
            except Unreadable as error:
                place.bad(error)
                continue
            key = asked.query if asked.qid is None else asked.qid
            group = groups.setdefault(key, asked)
            if group is not asked:
                _merge(group, asked, place)
            elif asked.qid is None:
                digest = hashlib.sha256(key.encode()).hexdigest()
                asked.qid = "query-" + digest[:ID_DIGITS]
                place.ignored("query without an id: named by its text")
            group.found.append(found)
        return groups.values()

    def _list_rows(self, rows: Iterable[Row]) -> Iterator[_Asked]:
        for number, row_number, row in rows:
            place = self._place(number)
            try:
                asked = self._asked(row, place)
                asked.found = [self._found(one, place) for one in self._unrolled(row)]
            except Unreadable as error:
                place.bad(error)
                continue
            if asked.qid is None:
                asked.qid = f"row-{row_number}"
                place.ignored("query without an id: named by its row")
            yield asked

    def _unrolled(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        lists: dict[str, list[Any]] = {}
        for role in (role for role in LISTED if role in row):
            value = row[role]
            if isinstance(value, str) and self.cells and value:
                value = as_list(value, numbers=role in ("rank", "score"))
            elif value in (None, ""):
                value = []
            if not isinstance(value, list):
                why = f"has no list in column {self.columns[role]!r}, as the rows above have"
                raise Unreadable(why, row[role])
            lists[role] = value
        lengths = {self.columns[role]: len(value) for role, value in lists.items()}
        if len(set(lengths.values())) > 1:
            raise Unreadable(f"has lists of unequal length ({lengths})", list(lists.values()))
        return (dict(zip(lists, one, strict=True)) for one in zip(*lists.values(), strict=True))

    def _asked(self, row: Mapping[str, Any], place: Place) -> _Asked:
        qid = self._id(row, "qid", place)
        query = self._text(row, "query", place)
        if not query.strip():
            if qid is None:
                raise Unreadable(f"has an empty query in column {self.columns['query']!r}", row["query"])
            if "query" in row:
                place.ignored("row without a query text")
        answers = row.get("answers")
        listed = as_list(answers) if self.cells else None
        given = None if answers == "" else answers if listed is None else listed
        told = place.answers({"answers": _mended(given, self.path, place.number, self.report)}, "answers")
        return _Asked(place.number, qid, query, told, place.said(dict(row), "prediction"))

    def _found(self, row: Mapping[str, Any], place: Place) -> _Found:
        text = self._text(row, "text", place)
        if "text" in row and not text.strip():
            place.ignored("row without a text: an empty passage")
        if self.long and self.cells and as_list(text) is not None:
            place.ignored("text that looks like a list: kept as text")
        rank = self._number(row, "rank")
        if "rank" in row and not math.isfinite(rank):
            raise Unreadable(f"has no rank in column {self.columns['rank']!r}", row["rank"])
        score = self._number(row, "score")
        if not math.isfinite(score):
            if self.long and "score" in row:
                place.repaired("score that is not a finite number, placed last")
            score = math.nan
        docid = self._id(row, "docid", place)
        title = self._text(row, "title", place)
        return _Found(rank, score, docid, self.texts.setdefault(text, text), title, self._label(row))

    def _id(self, row: Mapping[str, Any], role: str, place: Place) -> str | None:
        if role not in row:
            return None
        column = self.columns[role]
        found = id_of({column: row[role]}, (column,), self.path, place.number, self.report)
        if found is None or not found.strip():
            raise Unreadable(f"has no id in column {column!r} (text, or a whole number)", row[role])
        return found

    def _text(self, row: Mapping[str, Any], role: str, place: Place) -> str:
        value = row.get(role)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise Unreadable(f"has no text in column {self.columns[role]!r}", value)
        return str(_mended(value, self.path, place.number, self.report))

    def _number(self, row: Mapping[str, Any], role: str) -> float:
        value = row.get(role)
        if value is None or value == "":
            return math.nan
        try:
            is_score = isinstance(value, int | float) and (role == "label" or not isinstance(value, bool))
            if is_score or is_number(value.strip()):
                return float(value)
        except (AttributeError, OverflowError):
            pass  # neither a number nor a text, or beyond any float
        raise Unreadable(f"has no number in column {self.columns[role]!r}", value)

    def _label(self, row: Mapping[str, Any]) -> int | None:
        value = row.get("label")
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return int(value.strip().lower() == "true")
        number = self._number(row, "label")
        if math.isnan(number):
            return None
        if not number.is_integer() or abs(number) > _LABEL_LIMIT:
            raise Unreadable(f"has no whole number in column {self.columns['label']!r}", value)
        return int(number)

    def _add(self, asked: _Asked) -> None:
        found, place = asked.found, self._place(asked.number)
        if self.long:
            found.sort(key=lambda f: (math.inf if math.isnan(f.score) else -f.score, _order(f)))
            if any(_order(a) > _order(b) for a, b in pairwise(found)):
                place.ignored("query whose ranks disagree with its scores: sorted by score")
        else:
            found.sort(key=_order)
        labels: dict[tuple[str | None, str, str], int] = {}
        for f in found:
            if f.label is not None:
                key = (f.docid, f.title, f.text)
                labels[key] = max(f.label, labels.get(key, f.label))
        contexts = []
        for f in found:
            label = labels.get((f.docid, f.title, f.text))
            extra = {} if label is None else {"label": label}
            contexts.append(Context(f.text, f.docid, f.title, f.score, extra=extra))
        self.add(asked.number, Case(asked.query, contexts, asked.qid, asked.answers, asked.prediction))

    def _by_place(self, scores: list[float], number: int) -> list[float]:
        """Keep the scores of long form, which is sorted by them; those that are missing stand last."""
        if self.long and any(math.isfinite(score) for score in scores):
            return scores
        return super()._by_place(scores, number)


def _order(found: _Found) -> float:
    return 0.0 if math.isnan(found.rank) else found.rank


def _merge(group: _Asked, asked: _Asked, place: Place) -> None:
    """Fill in what the rows before did not say; what they said otherwise stays."""
    for name in ("query", "answers", "prediction"):
        old, new = getattr(group, name), getattr(asked, name)
        if new and not old:
            setattr(group, name, new)
        elif new and new != old:
            place.repaired(f"another {name} for a query: the first stays")
