"""TREC and MS MARCO run files, and qrels of two, three and four columns."""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from packtools.errors import RunFormatError
from packtools.progress import progress
from packtools.runs.files import DAMAGED, open_bytes, text_lines
from packtools.runs.model import LoadReport

RUN_FIELDS = "qid Q0 docid rank score tag"
RUN_COLUMNS = ["qid", "q0", "docid", "rank", "score", "tag"]
_TYPES: Any = {**dict.fromkeys(("qid", "docid", "tag"), "category"), "rank": np.int64, "score": np.float64}
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
    n_lines = data.count(b"\n") + (not data.endswith(b"\n") and len(data) > 0)
    tabs, spaces = data.count(b"\t"), data.count(b" ")
    plain = (tabs, spaces) in ((5 * n_lines, 0), (0, 5 * n_lines))
    if not n_lines or not plain or any(mark in data for mark in _ODD):
        return None
    try:
        table = pd.read_csv(
            io.BytesIO(data),
            sep="\t" if tabs else " ",
            header=None,
            names=RUN_COLUMNS,
            usecols=["qid", "docid", "rank", "score", "tag"],
            dtype=_TYPES,
            quoting=csv.QUOTE_NONE,
            na_filter=False,
            skip_blank_lines=False,
            encoding="utf-8",
        )
    except (ValueError, OverflowError, pd.errors.ParserError):  # the careful reader says where
        return None
    ids = [*table["qid"].cat.categories, *table["docid"].cat.categories, *table["tag"].cat.categories]
    sound = len(table) == n_lines and all(isinstance(i, str) and i for i in ids)
    sound = sound and bool(np.isfinite(table["score"].to_numpy()).all())
    return table.drop(columns="tag") if sound else None


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


def _is_whole(text: str) -> bool:
    return re.fullmatch("[+-]?[0-9]{1,9}", text.strip()) is not None
