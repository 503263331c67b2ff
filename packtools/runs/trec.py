"""TREC and MS MARCO run files, and qrels of two, three and four columns."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from packtools.errors import RunFormatError
from packtools.progress import progress
from packtools.runs.files import DAMAGED, open_bytes, text_lines
from packtools.runs.report import LoadReport

RUN_FIELDS = "qid Q0 docid rank score tag"
RUN_COLUMNS = ["qid", "q0", "docid", "rank", "score", "tag"]
LINES = 1 << 17
"""Run lines parsed at a time; bounds the memory of a load."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:nan|inf|infinity)", re.I)
# Bytes that send a file to the careful reader; pandas takes words for truth values as numbers.
_ODD = (
    b"\r",
    b"\0",
    b"\xef\xbb\xbf",
    *(w.encode() for t in ("true", "false") for w in (t, t.title(), t.upper())),
)


def read_run(path: Path, report: LoadReport) -> pd.DataFrame:
    """Read a run file as it stands: columns qid, docid, rank, score.

    A score that is not a finite number becomes NaN; without a score column it is made from the
    rank. `Run.from_frames` sorts.
    """
    table = _read_fast(path)
    if table is None:
        table = _read_slow(path, report)
    if not len(table):
        raise RunFormatError(f"load_run: {path.name} holds no run line; a TREC run line is: {RUN_FIELDS}.")
    report.read(path.name, f"{len(table):,} run lines, {table['qid'].nunique():,} queries")
    return table


def _read_fast(path: Path) -> pd.DataFrame | None:
    """Parse a plain file with pandas; None if anything about it asks for the careful reader."""
    try:
        with open_bytes(path) as stream:
            data = stream.read()
    except DAMAGED:
        return None
    separator = b"\t" if b"\t" in data else b" "
    if any(mark in data for mark in _ODD) or not _six_fields(data, separator):
        return None
    if separator == b"\t" and b" " in data:
        return None
    known: dict[str, dict[str, int]] = {"qid": {}, "docid": {}, "rank": {}}
    parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in (*known, "score")}
    try:
        for chunk in _chunks(data, separator.decode()):
            for name, numbers in known.items():
                parts[name].append(_numbered(chunk[name], numbers))
            parts["score"].append(chunk["score"].to_numpy())
    except (ValueError, OverflowError, pd.errors.ParserError):  # the careful reader says where
        return None
    columns = {name: np.concatenate(values) for name, values in parts.items()}
    if not all(_WHOLE.fullmatch(rank) for rank in known["rank"]) or not np.isfinite(columns["score"]).all():
        return None
    columns["rank"] = np.array([int(rank) for rank in known["rank"]], dtype=np.int64)[columns["rank"]]
    ids: dict[str, Any] = {
        name: pd.Categorical.from_codes(columns[name], pd.Index(list(known[name]), dtype=object))
        for name in ("qid", "docid")
    }
    return pd.DataFrame({**columns, **ids})


def _chunks(data: bytes, separator: str) -> Iterator[pd.DataFrame]:
    """Parse the file some lines at a time, ids as text (as categories pandas takes them for numbers)."""
    types: Any = {"qid": str, "docid": str, "rank": str, "score": np.float64}
    with pd.read_csv(
        io.BytesIO(data),
        sep=separator,
        header=None,
        names=RUN_COLUMNS,
        usecols=list(types),
        dtype=types,
        quoting=csv.QUOTE_NONE,
        na_filter=False,
        skip_blank_lines=False,
        encoding="utf-8",
        chunksize=LINES,
    ) as reader:
        yield from reader


def _numbered(values: pd.Series[Any], numbers: dict[str, int]) -> npt.NDArray[np.int32]:
    """Number texts in order of first appearance, over all chunks."""
    codes, found = pd.factorize(values.to_numpy(dtype=object))
    return np.array([numbers.setdefault(v, len(numbers)) for v in found], dtype=np.int32)[codes]


def _six_fields(data: bytes, separator: bytes) -> bool:
    """Whether every line has exactly six fields, none of them empty."""
    if not data:
        return False
    raw = np.frombuffer(data if data.endswith(b"\n") else data + b"\n", dtype=np.uint8)
    ends = np.flatnonzero(raw == ord("\n"))
    at = np.flatnonzero(raw == ord(separator))
    if len(at) != 5 * len(ends):
        return False
    fields = at.reshape(-1, 5)
    starts = np.concatenate([[-1], ends[:-1]])
    inside = (fields[:, 0] > starts + 1).all() and (fields[:, 4] < ends - 1).all()
    return bool(inside and (fields[:, 1:] > fields[:, :-1] + 1).all())


def _read_slow(path: Path, report: LoadReport) -> pd.DataFrame:
    """Read line by line, mending what can be mended and naming the place of what can't."""
    rows: list[tuple[str, str, int, float]] = []
    name, width = path.name, 0
    for number, line in progress(text_lines(path, report), f"read {name}"):
        fields = _run_fields(line)
        width = width or (3 if len(fields) == 3 else 6)  # the first line tells which kind it is
        if len(fields) < width or (width == 3 and len(fields) != 3) or "\r" in line:
            rule = (
                f"a TREC run line has 6 ({RUN_FIELDS})"
                if width == 6
                else "the lines above have 3 (qid docid rank)"
            )
            inside = "a carriage return inside" if "\r" in line else f"{len(fields)} fields"
            report.bad(name, number, f"has {inside}; {rule}", line)
            continue
        if width == 3:
            report.repaired(name, "no score: made from the rank", number)
            qid, docid, rank, score = *fields, ""
        else:
            qid, _, docid, rank, score = fields[:5]
            if len(fields) > 6:
                report.repaired(name, "fields after the sixth left out", number)
        if not _WHOLE.fullmatch(rank) or not (score == "" or _NUMBER.fullmatch(score)):
            what = f"rank {rank!r} and score {score!r} must be a whole number and a number"
            report.bad(name, number, what, line)
            continue
        value = float(score) if score else 1.0 / max(int(rank), 1)
        if not math.isfinite(value):
            report.repaired(name, "score that is not a finite number, placed last", number)
            value = math.nan
        if not qid or not docid:
            report.bad(name, number, "has an empty id", line)
            continue
        rows.append((qid, docid, int(rank), value))
    return _table(rows)


def _run_fields(line: str) -> list[str]:
    """Split at tabs if that gives six fields (ids may then hold spaces), else at blanks and tabs.

    Only ASCII blanks: a no-break space is part of an id.
    """
    if "\t" in line:
        fields = [f.strip(" ") for f in line.split("\t")]
        if len(fields) in (3, 6):
            return fields
    return re.split("[ \t]+", line.strip(" \t"))


def _table(rows: list[tuple[str, str, int, float]]) -> pd.DataFrame:
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    return pd.DataFrame(
        {
            "qid": pd.Categorical(np.array(columns[0], dtype=object)),
            "docid": pd.Categorical(np.array(columns[1], dtype=object)),
            "rank": np.array(columns[2], dtype=np.int64),
            "score": np.array(columns[3], dtype=np.float64),
        }
    )


def read_qrels(path: Path, report: LoadReport) -> pd.DataFrame:
    """Read judgements: TREC's four columns, BEIR's three with a header, or two (label 1).

    A line that starts with "#" is a comment. A pair judged twice keeps its highest label.
    """
    best: dict[tuple[str, str], int] = {}
    name = path.name
    first = True
    for number, line in text_lines(path, report):
        if line.startswith("#"):
            report.ignored(name, "comment line", number)
            continue
        fields = line.split("\t") if line.count("\t") in (1, 2, 3) else re.split("[ \t]+", line.strip(" \t"))
        header, first = first and not _is_whole(fields[-1]) and len(fields) == 3, False
        if header:
            report.ignored(name, "header line", number)
            continue
        label = "1" if len(fields) == 2 else fields[-1].strip()
        if len(fields) not in (2, 3, 4) or not _is_whole(label):
            why = f"has {len(fields)} fields or no whole label; qrels have 4 (qid 0 docid label), 3 or 2"
            report.bad(name, number, why, line)
            continue
        qid, docid = fields[0].strip(), fields[2 if len(fields) == 4 else 1].strip()
        if (qid, docid) in best:
            report.repaired(name, "document judged twice for a query: the highest label stays", number)
        best[qid, docid] = max(int(label), best.get((qid, docid), int(label)))
    report.read(name, f"{len(best):,} judgements, {len({q for q, _ in best}):,} queries")
    keys = list(best)
    return pd.DataFrame(
        {
            "qid": np.array([q for q, _ in keys], dtype=object),
            "docid": np.array([d for _, d in keys], dtype=object),
            "label": np.array(list(best.values()), dtype=np.int32),
        }
    )


def is_number(text: str) -> bool:
    """Whether a field is written as a number; Python's underscores are none."""
    return _NUMBER.fullmatch(text) is not None


def _is_whole(text: str) -> bool:
    return re.fullmatch("[+-]?[0-9]{1,9}", text.strip()) is not None
