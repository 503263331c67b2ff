"""Records of JSON files: one a line, or the items of one JSON value; how each becomes a case.

A builder takes a record and its `Place` and gives a `Case`; what it can't take it raises as
`Unreadable`, and the place says where that was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packtools.errors import RunFormatError, shown
from packtools.runs import files
from packtools.runs.cases import Case
from packtools.runs.dpr import score_of
from packtools.runs.report import LoadReport

__all__ = [
    "Builder", "Place", "Unreadable", "from_either", "from_items", "from_lines", "has_keys", "head_of",
    "json_value", "list_in", "objects", "text",
]  # fmt: skip

_OPENED = ("[", "{", "[{")
"""First lines of JSON that is laid out over many lines."""


class Unreadable(Exception):
    """A record that can't be read, and why; it never leaves the readers."""

    def __init__(self, why: str, value: Any) -> None:
        super().__init__(why)
        self.why, self.value = why, value


@dataclass(frozen=True)
class Place:
    """Say where a record stands, and take its fields with a line in the report.

    Parameters
    ----------
    path : Path
    number : int
        From 1.
    report : LoadReport
    what : {"line", "record"}, default "line"
        What `number` counts.
    """

    path: Path
    number: int
    report: LoadReport
    what: str = "line"

    def repaired(self, what: str) -> None:
        """Note something that was mended."""
        self.report.repaired(self.path.name, what, self.number)

    def ignored(self, what: str) -> None:
        """Note something that changes nothing."""
        self.report.ignored(self.path.name, what, self.number)

    def bad(self, error: Unreadable) -> None:
        """Raise for a record that can't be read, or count it if the caller asked to skip."""
        text = error.value if isinstance(error.value, str) else repr(error.value)
        self.report.bad(self.path.name, self.number, error.why, text)

    def made_id(self) -> str:
        """Make the id of a question that has none."""
        self.repaired(f"no question id: made from the {self.what} number")
        return f"{self.what}-{self.number}"

    def id(self, record: dict[str, Any], keys: tuple[str, ...]) -> str | None:
        """Take an id as text; None where there is none."""
        found = files.id_of(record, keys, self.path, self.number, self.report)
        if found is None and files.has_odd_id(record, keys):
            raise Unreadable("has an id that is neither a text nor a whole number", record)
        return found

    def score(self, value: Any) -> float:
        """Take a score, a number or its text; NaN where there is none."""
        return score_of(value, self.path, self.number, self.report)

    def said(self, record: dict[str, Any], key: str) -> str | None:
        """Take a text that may be missing; a number is written out and reported."""
        value = record.get(key)
        return None if value is None else self._written(value, key)

    def answers(self, record: dict[str, Any], key: str) -> tuple[str, ...] | None:
        """Take reference answers, a list or one text, each once; None where there are none."""
        value = record.get(key)
        if value is None:
            return None
        listed = value if isinstance(value, list) else [value]
        return tuple(dict.fromkeys(self._written(answer, key) for answer in listed))

    def _written(self, value: Any, key: str) -> str:
        if isinstance(value, str):
            return value
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise Unreadable(f"has a {key!r} that is not text", value)
        self.repaired(f"number in {key!r} read as text")
        return str(value)


Builder = Callable[[dict[str, Any], Place], Case]


def from_lines(path: Path, report: LoadReport, build: Builder) -> Iterator[tuple[int, Case]]:
    """Build a case of each line of a JSONL file."""
    report.counts(path.name, "line")
    found = files.json_records(path, report)
    return _cases(((Place(path, number, report), record) for number, record in found), build)


def from_items(
    path: Path, report: LoadReport, build: Builder, items: Iterable[Any]
) -> Iterator[tuple[int, Case]]:
    """Build a case of each item of a JSON value that was read whole."""
    report.counts(path.name, "record")
    found = enumerate(items, 1)
    return _cases(((Place(path, number, report, "record"), item) for number, item in found), build)


def from_either(path: Path, report: LoadReport, build: Builder) -> Iterator[tuple[int, Case]]:
    """Build a case of each record of one JSON array, or of JSONL."""
    if files.first_line(path).lstrip().startswith("["):
        return from_items(path, report, build, json_value(path))
    return from_lines(path, report, build)


def _cases(found: Iterable[tuple[Place, Any]], build: Builder) -> Iterator[tuple[int, Case]]:
    firsts: dict[str, int] = {}
    for place, record in found:
        try:
            case = build(_object(record, place), place)
            qid = place.made_id() if case.qid is None else case.qid
            first = firsts.setdefault(qid, place.number)
            if first != place.number:
                raise Unreadable(f"repeats question id {qid!r} of {place.what} {first}", record)
        except Unreadable as error:
            place.bad(error)
        else:
            yield place.number, replace(case, qid=qid)


def _object(record: Any, place: Place) -> dict[str, Any]:
    if place.what == "record":  # `json_records` has done these for lines
        if files.is_deep(record):
            raise Unreadable(f"is nested more than {files.DEPTH} deep", "")
        record = files._mended(record, place.path, place.number, place.report)
    if not isinstance(record, dict):
        raise Unreadable("is JSON but not an object", record)
    return record


def json_value(path: Path, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Parse a file that is one JSON value; `hook` takes the pairs of an object.

    Raises
    ------
    RunFormatError
        If it is damaged, not UTF-8 or not JSON, with line and column.
    """
    try:
        with files.open_bytes(path) as stream:
            data = stream.read().removeprefix(files.BOM)
    except files.DAMAGED as error:
        raise RunFormatError(f"load_run: {path.name} is damaged: {error}. Get the file again.") from error
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=hook)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        why = f"{path.name}:{line} is not UTF-8 (byte {column})"
    except json.JSONDecodeError as error:
        why = f"{path.name}:{error.lineno} is not JSON ({error.msg} at column {error.colno})"
    except (ValueError, RecursionError) as error:
        why = f"{path.name} is JSON that can't be read ({error})"
    raise RunFormatError(
        f"load_run: {why}; the file must be one whole JSON value. It may be cut short: get it again."
    )


def list_in(path: Path, value: Any, key: str, where: str = "the file") -> list[Any]:
    """Take the list that a JSON object holds under `key`; `where` names the object."""
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, list):
        got = f"the keys {shown(list(value))}" if isinstance(value, dict) else f"a {type(value).__name__}"
        raise RunFormatError(
            f"load_run: {path.name}: {where} must be a JSON object with a list {key!r}; got {got}."
        )
    return found


def text(record: Any, key: str) -> str:
    """Take a text that must be there."""
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, str):
        raise Unreadable(f"needs a text {key!r}", record)
    return value


def objects(record: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Take a list of objects; null or nothing is an empty one."""
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Unreadable(f"has a {key!r} that is not a list of objects", value)
    return value


def head_of(path: Path) -> str:
    """Give the first line that is not blank, or the first MiB of JSON laid out over many lines."""
    head = files.first_line(path)
    if head.strip() not in _OPENED:
        return head
    with files.open_bytes(path) as stream:
        try:
            return stream.read(files.MIB).decode("utf-8", "replace")
        except files.DAMAGED:
            return head  # said with its place by whoever reads the file whole


def has_keys(head: str, *keys: str) -> bool:
    """Whether the head of a JSON file has all these keys, at whatever depth."""
    return head.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and all(
        re.search(rf'"{key}"\s*:', head) for key in keys
    )
