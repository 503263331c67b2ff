"""Numbered rows of a table (CSV, TSV, JSON lines, Parquet): the columns asked for, as they are written."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from packtools.errors import RunFormatError, unknown
from packtools.runs.files import BOM, DAMAGED, first_line, is_deep, json_records, open_bytes
from packtools.runs.parquet import arrow
from packtools.runs.records import json_value
from packtools.runs.report import LoadReport

__all__ = ["as_list", "column_names", "fields_of", "looks_cut", "table_kind", "table_rows"]

Row = tuple[int, int, dict[str, Any]]
"""Line of the file (row of a Parquet file), place among the data rows, values by column."""
KINDS = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet", ".pq"),
}
DELIMITERS = {"csv": ",", "tsv": "\t"}
FIELD_CHARS = 2**31 - 1
BATCH = 256
"""Parquet rows held as Python values at a time."""


def table_kind(path: Path) -> str | None:
    """Tell what kind of table a file is by its name; None if it is none."""
    plain = path.name.lower()
    for packed in (".gz", ".zst"):
        plain = plain.removesuffix(packed)
    return next((kind for kind, ends in KINDS.items() if plain.endswith(ends)), None)


def table_rows(path: Path, wanted: Sequence[str], report: LoadReport) -> Iterator[Row]:
    """Read some columns of a table, row by row.

    Parameters
    ----------
    path : Path
    wanted : sequence of str
        Column names; the others are dropped at once.
    report : LoadReport

    Yields
    ------
    tuple of line, place, values
        `line` is where the row starts in the file (for Parquet, the row); `place` counts data rows
        from 1, bad ones too (in JSON lines it is the line). CSV and TSV cells are texts; the others
        are what the file holds.

    Raises
    ------
    RunFormatError
        If a column is not there, or the file can't be read.

    Notes
    -----
    CSV: quotes as in RFC 4180, also in TSV; a row with another number of fields than the header is a
    bad line; a quote that is never closed is an error, whatever `bad_lines` says.
    """
    kind = table_kind(path)
    if kind is None:
        ends = ", ".join(end for ends in KINDS.values() for end in ends)
        raise RunFormatError(
            f"load_run: {path.name} is no table that can be read by column; its name must end in {ends} "
            "(.gz and .zst after it are fine)."
        )
    if kind == "parquet":
        return _parquet_rows(path, wanted)
    if kind == "jsonl":
        return _json_rows(path, wanted, report)
    return _csv_rows(path, wanted, report, DELIMITERS[kind])


def column_names(path: Path) -> list[str]:
    """Name the columns of a table: its header, its schema, or the fields of its first record."""
    kind = table_kind(path)
    if kind == "parquet":
        with _parquet(path) as file:
            return list(file.schema_arrow.names)
    report = LoadReport(bad_lines="skip")
    if kind in DELIMITERS:
        return next((fields for _, fields in _records(path, DELIMITERS[kind], report) if fields), [])
    return next((list(record) for _, record in json_records(path, report)), [])


def fields_of(path: Path) -> list[str]:
    """Name the fields of a file for a message: columns, or keys of JSON; none if it can't be told."""
    try:
        if table_kind(path) != "jsonl" or first_line(path).strip().endswith("}"):
            return column_names(path) if table_kind(path) else []
        value = json_value(path)
    except RunFormatError:
        return []
    value = value[0] if isinstance(value, list) and value else value
    return list(value) if isinstance(value, dict) else []


def _check(path: Path, wanted: Sequence[str], names: Sequence[str]) -> None:
    for column in wanted:
        if column not in names:
            unknown(RunFormatError, f"load_run: {path.name}", "column", column, names)
        if names.count(column) > 1:
            n = names.count(column)
            raise RunFormatError(
                f"load_run: {path.name} has {n} columns named {column!r}. Rename all but one."
            )


class _Lines:
    """Decode physical lines, which end at "\\n" only, and keep the place of a byte that is not UTF-8."""

    def __init__(self, path: Path) -> None:
        self.path, self.number, self.last = path, 0, ""
        self.broken: tuple[int, int] | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            with open_bytes(self.path) as stream:
                for self.number, raw in enumerate(stream, 1):
                    self.last = self._text(raw.removeprefix(BOM) if self.number == 1 else raw)
                    yield self.last
        except DAMAGED as error:
            where = f"{self.path.name} is damaged after line {self.number:,}"
            raise RunFormatError(f"load_run: {where}: {error}. Get the file again.") from error

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            self.broken = self.broken or (self.number, error.start + 1)
            return raw.decode("utf-8", "surrogateescape")


def _records(path: Path, delimiter: str, report: LoadReport) -> Iterator[tuple[int, list[str] | None]]:
    """Give the first line and the fields of each CSV record; None for a bad one that is skipped."""
    csv.field_size_limit(max(csv.field_size_limit(), FIELD_CHARS))
    lines = _Lines(path)
    reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise RunFormatError(
                    f"load_run: {path.name}:{start} opens a quote that is never closed. Close it, or get the "
                    "file again."
                ) from error
            why = (
                "has a carriage return outside quotes"
                if "new-line" in str(error)
                else f"is not CSV ({error})"
            )
            report.bad(path.name, start, why, lines.last)
            yield start, None
            continue
        if lines.broken is not None:
            (line, byte), lines.broken = lines.broken, None
            report.bad(path.name, line, f"is not UTF-8 (byte {byte})", lines.last)
            yield start, None
        elif not fields:
            report.ignored(path.name, "blank line", start)
        else:
            yield start, fields


def _csv_rows(path: Path, wanted: Sequence[str], report: LoadReport, delimiter: str) -> Iterator[Row]:
    records = _records(path, delimiter, report)
    _, names = next(records, (0, None))
    if names is None:
        raise RunFormatError(f"load_run: {path.name} has no first line of column names.")
    _check(path, wanted, names)
    at = {column: names.index(column) for column in wanted}
    place = 0
    for line, fields in records:
        if fields is not None and len(fields) != len(names):
            if not "".join(fields).strip():
                report.ignored(path.name, "blank line", line)
                continue
            why = f"has {len(fields)} fields; the first line has {len(names)}"
            report.bad(path.name, line, why, delimiter.join(fields))
            fields = None
        place += 1
        if fields is not None:
            yield line, place, {column: fields[i] for column, i in at.items()}


def _json_rows(path: Path, wanted: Sequence[str], report: LoadReport) -> Iterator[Row]:
    checked = False
    for number, record in json_records(path, report):
        if not checked and any(column not in record for column in wanted):
            _check(path, wanted, _all_fields(path, wanted))
        checked = True
        yield number, number, {column: record.get(column) for column in wanted}


def _all_fields(path: Path, wanted: Sequence[str]) -> list[str]:
    """Name the fields of the records, read as far as it takes to see all that are wanted."""
    seen: dict[str, None] = {}
    for _, record in json_records(path, LoadReport(bad_lines="skip")):
        seen.update(dict.fromkeys(record))
        if all(column in seen for column in wanted):
            break
    return list(seen)


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    pa = arrow()
    try:
        with pa.parquet.ParquetFile(path) as file:
            yield file
    except RunFormatError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise RunFormatError(
            f"load_run: {path.name} can't be read as Parquet: {error}. Write it again."
        ) from error


def _parquet_rows(path: Path, wanted: Sequence[str]) -> Iterator[Row]:
    with _parquet(path) as file:
        _check(path, wanted, list(file.schema_arrow.names))
        place = 0
        columns = list(dict.fromkeys(wanted))
        for batch in file.iter_batches(batch_size=BATCH, columns=columns, use_threads=False):
            for row in batch.to_pylist():
                place += 1
                yield place, place, {column: row[column] for column in columns}


def as_list(value: Any, numbers: bool = False) -> list[Any] | None:
    """Take a list, or a list written as text; None if it is neither.

    A text is read as JSON, else as a Python literal of texts (never evaluated).

    Parameters
    ----------
    value : object
    numbers : bool, default False
        Read nan, inf and None in a text too, as Python writes them in lists of numbers.

    Notes
    -----
    A Python literal that holds numbers is no list here, for Python reads 18_19 as 1819; nor is
    ``['a' 'b']``, as numpy prints arrays, for Python joins the two.

    Examples
    --------
    >>> as_list('["a", "b"]'), as_list("['it\\\\'s', None]"), as_list("['a' 'b']"), as_list("[18_19]")
    (['a', 'b'], ["it's", None], None, None)
    """
    if isinstance(value, list):
        return value
    text = value.strip() if isinstance(value, str) else ""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    if numbers:
        for word, json_word in (("nan", "NaN"), ("inf", "Infinity"), ("None", "null")):
            text = re.sub(rf"\b{word}\b", json_word, text)
    try:
        found: list[Any] = json.loads(text)
    except (ValueError, RecursionError):
        return _literal(text)
    return None if is_deep(found) else found


def _literal(text: str) -> list[Any] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(v, str | None) for v in found):
        return None
    return None if repr(found) != text and _joins_texts(text) else found


def _joins_texts(text: str) -> bool:
    """Whether two texts stand side by side without a comma."""
    skipped = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT)
    try:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        kinds = [token.type for token in tokens if token.type not in skipped]
    except (tokenize.TokenError, SyntaxError):
        return True
    return any(a == b == tokenize.STRING for a, b in pairwise(kinds))


def looks_cut(value: Any) -> bool:
    """Whether a text begins as a list of texts does, and is none: cut, or printed by numpy."""
    begins = isinstance(value, str) and value.strip().startswith(("['", '["'))
    return begins and as_list(value) is None
