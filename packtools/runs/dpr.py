"""DPR and lost-in-the-middle JSONL: question, answers, ctxs with their texts in one record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packtools.runs.cases import Case, Context
from packtools.runs.files import has_odd_id, id_of, json_records, text_of
from packtools.runs.report import LoadReport
from packtools.runs.tables import ANSWER_KEYS, DOC_KEYS, QUERY_KEYS, answer_list

ODD_ID = "has an id that is neither a text nor a whole number"


def read_dpr(path: Path, report: LoadReport) -> Iterator[tuple[int, Case]]:
    """Read a DPR file whole.

    The list order is the rank. A context without a score keeps its place. `isgold` gives the
    qrels (label 1); `hasanswer` is kept as a column of the candidates.
    """
    for number, record in json_records(path, report):
        question, ctxs = record.get("question"), record.get("ctxs")
        if not isinstance(question, str) or not isinstance(ctxs, list):
            report.bad(path.name, number, "needs a text 'question' and a list 'ctxs'", repr(list(record)))
            continue
        qid = id_of(record, QUERY_KEYS, path, number, report)
        if qid is None and has_odd_id(record, QUERY_KEYS):
            report.bad(path.name, number, ODD_ID, repr(record))
            continue
        answers = answer_list(record)
        if answers is None and any(record.get(key) is not None for key in ANSWER_KEYS):
            report.bad(path.name, number, "has answers that are no texts", repr(record))
            continue
        contexts = [_context(path, report, number, place, ctx) for place, ctx in enumerate(ctxs)]
        said = text_of(record, ("prediction",))
        yield number, Case(question, [c for c in contexts if c is not None], qid, answers, said)


def _context(path: Path, report: LoadReport, number: int, place: int, ctx: Any) -> Context | None:
    text = ctx.get("text") if isinstance(ctx, dict) else None
    if not isinstance(text, str):
        report.bad(path.name, number, f"ctxs[{place}] has no text", repr(ctx))
        return None
    docid = id_of(ctx, DOC_KEYS, path, number, report)
    if docid is None and has_odd_id(ctx, DOC_KEYS):
        report.bad(path.name, number, f"ctxs[{place}] {ODD_ID}", repr(ctx))
        return None
    flags = {key: ctx.get(key) for key in ("isgold", "hasanswer")}
    for key, value in flags.items():
        if value not in (None, True, False):
            report.bad(path.name, number, f"ctxs[{place}] {key!r} must be true or false", repr(ctx))
            return None
    return Context(
        text,
        docid,
        text_of(ctx, ("title",)) or "",
        score_of(ctx.get("score"), path, number, report),
        None if flags["isgold"] is None else bool(flags["isgold"]),
        {} if flags["hasanswer"] is None else {"hasanswer": bool(flags["hasanswer"])},
    )


def score_of(value: Any, path: Path, number: int, report: LoadReport) -> float:
    """Take a score, written as a number or as text; NaN where there is none."""
    if value is None:
        return math.nan
    try:
        return math.nan if isinstance(value, bool) or "_" in str(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        what = "score that is not a number: its place in the list counts"
        report.repaired(path.name, what, number)
        return math.nan
