"""TREC and MS MARCO run files, and qrels of two, three and four columns."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from packtools.errors import RunFormatError
from packtools.runs.files import BOM, DAMAGED, open_bytes, text_lines
from packtools.runs.frames import text_index
from packtools.runs.report import LoadReport

RUN_FIELDS = "qid Q0 docid rank score tag"
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:nan|inf|infinity)", re.I
)
_LABELS = ("score", "label", "relevance", "rel", "relevancy", "grade", "judgement", "judgment")


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
    """Let pyarrow parse a plain file; None if anything about it asks for the careful reader.

    All lines must have six fields with one blank, or one tab, between them.
    """
    from pyarrow import ArrowInvalid, BufferReader, csv, dictionary, float64, int32, string

    fields = RUN_FIELDS.split()
    kinds = dict.fromkeys(fields, dictionary(int32(), string()))
    try:
        with open_bytes(path) as stream:
            data = stream.read()
        separator = "\t" if b"\t" in data else " "
        odd = (b"\r", b"\0", BOM, *([b" "] if separator == "\t" else []))
        if any(sign in data for sign in odd):
            return None
        table = csv.read_csv(
            BufferReader(data),
            csv.ReadOptions(column_names=fields),
            csv.ParseOptions(delimiter=separator, quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types={**kinds, "score": float64()}, null_values=[]),
        )
    except (*DAMAGED, ArrowInvalid):
        return None
    ids = {name: _numbered(table.column(name)) for name in fields if name != "score"}
    score, ranked = table.column("score").to_numpy(), ids["rank"][1]
    if any("" in found for _, found in ids.values()) or not all(map(_WHOLE.fullmatch, ranked)):
        return None
    if not np.isfinite(score).all():
        return None
    columns: dict[str, Any] = {
        name: pd.Categorical.from_codes(codes, text_index(found, name))
        for name, (codes, found) in ids.items()
        if name in ("qid", "docid")
    }
    columns["rank"] = np.array([int(rank) for rank in ranked], dtype=np.int64)[ids["rank"][0]]
    return pd.DataFrame({**columns, "score": score})


def _numbered(column: Any) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Take the numbers of a dictionary column, by first appearance, and the text of each number."""
    whole = column.unify_dictionaries().combine_chunks()
    return whole.indices.to_numpy(), whole.dictionary.to_pylist()


def _read_slow(path: Path, report: LoadReport) -> pd.DataFrame:
    """Read line by line, mending what can be mended and naming the place of what can't."""
    rows: list[tuple[str, str, int, float]] = []
    name, width = path.name, 0
    for number, line in text_lines(path, report):
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
    """Split at tabs if that gives three fields, or six and more; else at blanks and tabs.

    Fields between tabs may hold spaces. Only ASCII blanks: a no-break space is part of an id.
    """
    if "\t" in line:
        fields = [f.strip(" ") for f in line.split("\t")]
        if len(fields) == 3 or len(fields) >= 6:
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
    name, width, first = path.name, 0, True
    for number, line in text_lines(path, report):
        if line.startswith("#"):
            report.ignored(name, "comment line", number)
            continue
        fields = _qrel_fields(line)
        header, first = first and len(fields) == 3 and fields[-1].lower() in _LABELS, False
        if header:
            report.ignored(name, "header line", number)
            continue
        why = _qrel_fault(line, fields, width)
        if why:
            report.bad(name, number, why, line)
            continue
        width = len(fields)  # the first line tells which kind it is
        label = 1 if width == 2 else int(fields[-1])
        pair = fields[0], fields[2 if width == 4 else 1]
        if pair in best:
            report.repaired(name, "document judged twice for a query: the highest label stays", number)
        best[pair] = max(label, best.get(pair, label))
    report.read(name, f"{len(best):,} judgements, {len({q for q, _ in best}):,} queries")
    keys = list(best)
    return pd.DataFrame(
        {
            "qid": np.array([q for q, _ in keys], dtype=object),
            "docid": np.array([d for _, d in keys], dtype=object),
            "label": np.array(list(best.values()), dtype=np.int32),
        }
    )


def _qrel_fields(line: str) -> list[str]:
    """Split at tabs if there are one to three of them (ids may then hold spaces), else at blanks and tabs."""
    if line.count("\t") in (1, 2, 3):
        return [f.strip(" ") for f in line.split("\t")]
    return re.split("[ \t]+", line.strip(" \t"))


def _qrel_fault(line: str, fields: list[str], width: int) -> str:
    """Say what is wrong with a line of judgements; "" where nothing is."""
    n = len(fields)
    if n not in (2, 3, 4) or (n > 2 and not _is_whole(fields[-1])):
        return f"has {n} fields or no whole label; qrels have 4 (qid 0 docid label), 3 or 2"
    if width not in (0, n):
        return f"has {n} fields; the lines above have {width}"
    if not all(fields):
        return "has an empty id"
    blanks = re.split("[ \t]+", line.strip(" \t"))
    if n < 4 and len(blanks) == 4 and blanks[1] in ("0", "Q0"):
        return f"has {n} fields by tabs, and 4 by blanks and tabs; use one of the two between fields"
    return ""


def is_number(text: str) -> bool:
    """Whether a field is written as a number; Python's underscores are none."""
    return _NUMBER.fullmatch(text) is not None


def _is_whole(text: str) -> bool:
    return re.fullmatch("[+-]?[0-9]{1,9}", text) is not None
