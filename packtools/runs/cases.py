"""Files that hold questions with their contexts: what every such format comes to, and the run made of it.

A format is a function that gives `Case`s (see `formats`); ids, ranks, repeats and labels are settled
here, the same for all of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from packtools.errors import RunFormatError
from packtools.runs.model import Run
from packtools.runs.report import LoadReport

ID_DIGITS = 12


@dataclass(frozen=True)
class Context:
    """Hold one retrieved passage of a question.

    Parameters
    ----------
    text : str
    docid : str or None, default None
        None names it by its text.
    title : str, default ""
    score : float, default NaN
        NaN is missing.
    gold : bool or None, default None
        Whether it is judged relevant; None is not judged.
    extra : mapping of str to value
        Kept as columns of the candidates.
    """

    text: str
    docid: str | None = None
    title: str = ""
    score: float = math.nan
    gold: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """Hold one question of a file.

    Parameters
    ----------
    question : str
    contexts : sequence of Context
        In the order of the file, which is their rank.
    qid : str or None, default None
        None makes it from the place in the file.
    answers : tuple of str or None, default None
        Reference answers.
    prediction : str or None, default None
        What a reader answered.
    gold : sequence of str, default ()
        Ids of relevant passages, retrieved or not.
    """

    question: str
    contexts: Sequence[Context]
    qid: str | None = None
    answers: tuple[str, ...] | None = None
    prediction: str | None = None
    gold: Sequence[str] = ()


class Cases:
    """Collect the questions of one file into the tables of a run.

    Parameters
    ----------
    path : Path
    report : LoadReport
    what : str, default "line"
        What the numbers of `add` count: "line", or "record" of one JSON value.
    """

    def __init__(self, path: Path, report: LoadReport, what: str = "line") -> None:
        self.path, self.report, self.what = path, report, what
        report.counts(path.name, what)
        self.rows: dict[str, list[Any]] = {k: [] for k in ("qid", "docid", "rank", "score")}
        self.extra: dict[str, dict[int, Any]] = {}
        self.passages: dict[str, tuple[str, str]] = {}
        self.others: dict[str, dict[tuple[str, str], str]] = {}
        self.queries: dict[str, str] = {}
        self.answers: dict[str, tuple[str, ...]] = {}
        self.predictions: dict[str, str] = {}
        self.gold: dict[tuple[str, str], None] = {}
        self.judged = False

    def add(self, number: int, case: Case) -> None:
        """Take a question; a repeated id is a bad line."""
        name, qid = self.path.name, case.qid
        if qid is None:
            qid = f"{self.what}-{number}"
            self.report.repaired(name, f"no question id: made from the {self.what} number", number)
        if qid in self.queries:
            self.report.bad(name, number, f"repeats question id {qid!r}", case.question)
            return
        self.queries[qid] = case.question
        if not case.contexts:
            self.report.repaired(name, "question without contexts: not in the run", number)
        if case.answers is not None:
            self.answers[qid] = case.answers
        if case.prediction is not None:
            self.predictions[qid] = case.prediction
        named = self._contexts(number, qid, case.contexts)
        for docid in case.gold:
            self.judged = True
            self.gold[qid, named.get(docid, docid)] = None

    def _contexts(self, number: int, qid: str, contexts: Sequence[Context]) -> dict[str, str]:
        """Take the contexts of a question; give what each id of the file came to."""
        scores = self._by_place([c.score for c in contexts], number)
        seen: set[str] = set()
        named: dict[str, str] = {}
        for rank, (context, score) in enumerate(zip(contexts, scores, strict=True), 1):
            docid = self._docid(context, number)
            if context.docid is not None:
                named.setdefault(context.docid, docid)
            if context.gold is not None:
                self.judged = True
                if context.gold:
                    self.gold[qid, docid] = None
            if docid in seen:
                what = "document repeated for a query: the best rank stays"
                self.report.repaired(self.path.name, what, number)
                continue
            seen.add(docid)
            for column, value in zip(self.rows.values(), (qid, docid, rank, score), strict=True):
                column.append(value)
            for name, value in context.extra.items():
                self.extra.setdefault(name, {})[len(self.rows["qid"]) - 1] = value
        return named

    def _by_place(self, scores: list[float], number: int) -> list[float]:
        """Let a context without a score stand where the list has it: it takes its neighbour's."""
        name = self.path.name
        known = [s for s in scores if math.isfinite(s)]
        if len(known) == len(scores):
            if any(a < b for a, b in pairwise(scores)):
                self.report.ignored(name, "list that is not sorted by score: its order counts", number)
                return [1.0 / rank for rank in range(1, len(scores) + 1)]
            return scores
        if not known or any(a < b for a, b in pairwise(known)):
            self.report.ignored(name, "list without usable scores: its order counts", number)
            return [1.0 / rank for rank in range(1, len(scores) + 1)]
        missing = len(scores) - len(known)
        what = "context without a score: keeps its place, with the score above it"
        self.report.repaired(name, what, number, n=missing)
        last, out = known[0], []
        for score in scores:
            last = score if math.isfinite(score) else last
            out.append(last)
        return out

    def _docid(self, context: Context, number: int) -> str:
        value = (context.title, context.text)
        docid = context.docid
        if docid is None:
            digest = hashlib.sha256("\0".join(value).encode("utf-8", "surrogatepass")).hexdigest()
            docid = "text-" + digest[:ID_DIGITS]
            self.report.ignored(self.path.name, "context without an id: named by its text", number)
        if self.passages.get(docid, value) != value:
            what = "one id for two texts: the later is named id~2, id~3, …"
            self.report.repaired(self.path.name, what, number)
            docid = self._other_id(docid, value)
        self.passages[docid] = value
        return docid

    def _other_id(self, docid: str, value: tuple[str, str]) -> str:
        """Name a text whose id another text has; the same text gets the same name again."""
        others = self.others.setdefault(docid, {})
        if value not in others:
            n = len(others) + 2
            while self.passages.get(f"{docid}~{n}", value) != value:
                n += 1
            others[value] = f"{docid}~{n}"
        return others[value]

    def run(
        self,
        name: str,
        qrels: pd.DataFrame | None = None,
        answers: Mapping[str, tuple[str, ...]] | None = None,
        ties: str = "rank",
    ) -> Run:
        """Build the run; qrels and answers from other files go before those in this one.

        Raises
        ------
        RunFormatError
            If no question has a context.
        """
        if not self.rows["qid"]:
            raise RunFormatError(f"load_run: {self.path.name} holds no question with contexts.")
        n = len(self.rows["qid"])
        self.report.read(self.path.name, f"{len(self.queries):,} questions, {n:,} contexts")
        columns = {k: [values.get(i) for i in range(n)] for k, values in self.extra.items()}
        passages = pd.DataFrame(list(self.passages.values()), columns=["title", "text"], dtype=object)
        passages.index = pd.Index(np.array(list(self.passages), dtype=object), dtype=object, name="docid")
        gold = np.array(list(self.gold), dtype=object).reshape(-1, 2)
        own = pd.DataFrame({"qid": gold[:, 0], "docid": gold[:, 1], "label": np.ones(len(gold), np.int32)})
        return Run.from_frames(
            pd.DataFrame({**self.rows, **columns}),
            passages,
            queries=self.queries,
            ties=ties,
            name=name,
            report=self.report,
            qrels=own if qrels is None and self.judged else qrels,
            answers=self.answers or None if answers is None else answers,
            predictions=self.predictions or None,
        )
