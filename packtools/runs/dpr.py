"""DPR and lost-in-the-middle JSONL: question, answers, ctxs with their texts in one record."""

from __future__ import annotations

import hashlib
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from packtools.errors import RunFormatError
from packtools.progress import progress
from packtools.runs.files import id_of, json_records, text_of
from packtools.runs.model import Run
from packtools.runs.report import LoadReport
from packtools.runs.tables import DOC_KEYS, QUERY_KEYS, answer_list

ID_DIGITS = 12


class _Reader:
    """Collect the tables of one file."""

    def __init__(self, path: Path, report: LoadReport) -> None:
        self.path, self.report = path, report
        self.rows: dict[str, list[Any]] = {k: [] for k in ("qid", "docid", "rank", "score", "hasanswer")}
        self.passages: dict[str, tuple[str, str]] = {}
        self.queries: dict[str, str] = {}
        self.answers: dict[str, tuple[str, ...]] = {}
        self.gold: list[tuple[str, str]] = []
        self.judged = False

    def record(self, number: int, record: dict[str, Any]) -> None:
        question, ctxs = record.get("question"), record.get("ctxs")
        if not isinstance(question, str) or not isinstance(ctxs, list):
            why = "needs a text 'question' and a list 'ctxs'"
            self.report.bad(self.path.name, number, why, repr(list(record)))
            return
        qid = id_of(record, QUERY_KEYS, self.path, number, self.report)
        if qid is None:
            qid = f"line-{number}"
            self.report.repaired(self.path.name, "no question id: made from the line number", number)
        if qid in self.queries:
            self.report.bad(self.path.name, number, f"repeats question id {qid!r}", question)
            return
        self.queries[qid] = question
        if not ctxs:
            self.report.repaired(self.path.name, "question without contexts: not in the run", number)
        answers = answer_list(record)
        if answers is not None:
            self.answers[qid] = answers
        self._contexts(number, qid, ctxs)

    def _contexts(self, number: int, qid: str, ctxs: list[Any]) -> None:
        scores = [self._score(c, number) for c in ctxs]
        scores = self._by_place(scores, number)
        seen = set()
        for rank, (ctx, score) in enumerate(zip(ctxs, scores, strict=True), 1):
            text = ctx.get("text") if isinstance(ctx, dict) else None
            if not isinstance(text, str):
                self.report.bad(self.path.name, number, f"ctxs[{rank - 1}] has no text", repr(ctx))
                continue
            docid = self._docid(ctx, text, number)
            if docid in seen:
                self.report.repaired(
                    self.path.name, "document repeated for a query: the best rank stays", number
                )
                continue
            seen.add(docid)
            values = (qid, docid, rank, score, bool(ctx.get("hasanswer", False)))
            for column, value in zip(self.rows.values(), values, strict=True):
                column.append(value)
            if "isgold" in ctx:
                self.judged = True
                if ctx["isgold"]:
                    self.gold.append((qid, docid))

    def _score(self, ctx: Any, number: int) -> float:
        value = ctx.get("score") if isinstance(ctx, dict) else None
        if value is None:
            return math.nan
        try:
            return math.nan if isinstance(value, bool) or "_" in str(value) else float(value)
        except (TypeError, ValueError, OverflowError):
            self.report.repaired(
                self.path.name, "score that is not a number: its place in the list counts", number
            )
            return math.nan

    def _by_place(self, scores: list[float], number: int) -> list[float]:
        """Let a context without a score stand where the list has it: it takes its neighbour's."""
        known = [s for s in scores if math.isfinite(s)]
        if len(known) == len(scores):
            if any(a < b for a, b in pairwise(scores)):
                self.report.ignored(
                    self.path.name, "list that is not sorted by score: its order counts", number
                )
                return [1.0 / rank for rank in range(1, len(scores) + 1)]
            return scores
        if not known or any(a < b for a, b in pairwise(known)):
            self.report.ignored(self.path.name, "list without usable scores: its order counts", number)
            return [1.0 / rank for rank in range(1, len(scores) + 1)]
        missing = len(scores) - len(known)
        what = "context without a score: keeps its place, with the score above it"
        self.report.repaired(self.path.name, what, number, n=missing)
        last, out = known[0], []
        for score in scores:
            last = score if math.isfinite(score) else last
            out.append(last)
        return out

    def _docid(self, ctx: dict[str, Any], text: str, number: int) -> str:
        title = text_of(ctx, ("title",)) or ""
        docid = id_of(ctx, DOC_KEYS, self.path, number, self.report)
        if docid is None:
            digest = hashlib.sha256(f"{title}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()
            docid = "text-" + digest[:ID_DIGITS]
            self.report.ignored(self.path.name, "context without an id: named by its text", number)
        elif self.passages.get(docid, (title, text)) != (title, text):
            self.report.repaired(
                self.path.name, "one id for two texts: the later is named id~2, id~3, …", number
            )
            docid = self._other_id(docid, (title, text))
        self.passages[docid] = (title, text)
        return docid

    def _other_id(self, docid: str, value: tuple[str, str]) -> str:
        n = 2
        while self.passages.get(f"{docid}~{n}", value) != value:
            n += 1
        return f"{docid}~{n}"


def read_dpr(
    path: Path,
    report: LoadReport,
    name: str,
    qrels: pd.DataFrame | None,
    answers: dict[str, tuple[str, ...]] | None,
    ties: str = "rank",
) -> Run:
    """Read a DPR file whole.

    The list order is the rank. A context without a score keeps its place. `isgold` gives the
    qrels (label 1); `hasanswer` is kept as a column of the candidates. Qrels and answers from
    other files go before those in the file.
    """
    reader = _Reader(path, report)
    for number, record in progress(json_records(path, report), f"read {path.name}"):
        reader.record(number, record)
    if not reader.rows["qid"]:
        raise RunFormatError(
            f"load_run: {path.name} holds no question with contexts (fields question, ctxs)."
        )
    report.read(path.name, f"{len(reader.queries):,} questions, {len(reader.rows['qid']):,} contexts")
    passages = pd.DataFrame(list(reader.passages.values()), columns=["title", "text"], dtype=object)
    passages.index = pd.Index(np.array(list(reader.passages), dtype=object), dtype=object, name="docid")
    gold = np.array(reader.gold, dtype=object).reshape(-1, 2)
    own = pd.DataFrame({"qid": gold[:, 0], "docid": gold[:, 1], "label": np.ones(len(gold), np.int32)})
    return Run.from_frames(
        pd.DataFrame(reader.rows),
        passages,
        queries=reader.queries,
        ties=ties,
        name=name,
        report=report,
        qrels=own if qrels is None and reader.judged else qrels,
        answers=reader.answers or None if answers is None else answers,
    )
