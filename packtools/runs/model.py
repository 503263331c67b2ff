"""What a loaded run is: its tables, and the report of how they were read."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from packtools.errors import RunFormatError, SettingError, fail, unknown
from packtools.runs.frames import (
    SAMPLE_IDS,
    join_report,
    ordered_candidates,
    passage_frame,
    qrel_frame,
    text_index,
)
from packtools.runs.report import LoadReport
from packtools.schema import Chunk


@dataclass(frozen=True)
class Run:
    """Hold a saved run: who asked what, what was retrieved, and what is known of the answers.

    Parameters
    ----------
    name : str
    queries : DataFrame, index qid, column text
        The queries of the run, in the order of the query file (else sorted by id).
    candidates : DataFrame, columns qid, docid, rank, score
        One row a retrieved passage; rank starts at 1; sorted by query, then rank. `qid` and
        `docid` are categoricals of strings.
    passages : DataFrame, index docid, columns title, text
    qrels : DataFrame or None, columns qid, docid, label
        A label of 1 or more is relevant.
    answers : Series or None, index qid, values tuple of str
        Reference answers.
    predictions : Series or None, index qid, values str or None
        What a reader answered.
    report : LoadReport
    """

    name: str
    queries: pd.DataFrame
    candidates: pd.DataFrame
    passages: pd.DataFrame
    qrels: pd.DataFrame | None
    answers: pd.Series[Any] | None
    predictions: pd.Series[Any] | None = None
    report: LoadReport = field(default_factory=LoadReport)

    @classmethod
    def from_frames(
        cls,
        candidates: pd.DataFrame,
        passages: Mapping[str, str] | pd.DataFrame,
        *,
        queries: Mapping[str, str] | None = None,
        qrels: pd.DataFrame | None = None,
        answers: Mapping[str, Sequence[str]] | None = None,
        predictions: Mapping[str, str] | None = None,
        ties: str = "rank",
        name: str = "run",
        report: LoadReport | None = None,
    ) -> Run:
        """Build a run from tables in memory; files go through this too.

        Parameters
        ----------
        candidates : DataFrame
            Columns qid, docid, rank; score may be missing. Sorted here by score, highest first and
            NaN last, then by rank; a document repeated for a query keeps its best rank.
        passages : mapping of docid to text, or DataFrame with columns title, text
        queries : mapping of qid to text, or None
        qrels : DataFrame or None
        answers : mapping of qid to a list of answers (or one answer), or None
        predictions : mapping of qid to what a reader answered, or None
        ties : {"rank", "trec_eval"}, default "rank"
            Equal scores go by rank, or by docid descending.
        name : str, default "run"
        report : LoadReport or None

        Raises
        ------
        RunFormatError
            If a column is missing or no candidate has passage text.
        """
        report = LoadReport() if report is None else report
        texts = passage_frame(passages)
        queries = None if queries is None else {str(q): str(t) for q, t in queries.items()}
        ordered = ordered_candidates(candidates, queries, report, name, ties)
        qids = list(ordered["qid"].cat.categories)
        join_report(ordered, texts, report, whole=cls is Run)
        if qrels is not None:
            qrels = qrel_frame(qrels, qids, report)
            if len(qrels) and not qrels["docid"].isin(ordered["docid"].cat.categories).any():
                report.joined(
                    f"no judged document was retrieved; judged ids: {list(qrels['docid'][:SAMPLE_IDS])}"
                )
        known = queries or {}
        untold = [q for q in qids if q not in known]
        if untold and queries is not None:
            what = (
                f"{len(untold):,} queries of the run have no text, such as {', '.join(untold[:SAMPLE_IDS])}"
            )
            report.joined(what)
        text = pd.DataFrame(
            {"text": [known.get(q, "") for q in qids]}, index=text_index(qids, "qid"), dtype=object
        )
        told = None
        if answers is not None:
            given = {str(q): _answer_tuple(a) for q, a in answers.items()}
            values = [given.get(q, ()) for q in qids]
            told = pd.Series(values, index=text_index(qids, "qid"), name="answers", dtype=object)
            report.joined(f"answers for {sum(map(bool, values)):,} of {len(qids):,} queries")
        read = None
        if predictions is not None:
            said = {str(q): p for q, p in predictions.items()}
            read = pd.Series([said.get(q) for q in qids], index=text_index(qids, "qid"), dtype=object)
            report.joined(f"predictions for {int(read.notna().sum()):,} of {len(qids):,} queries")
            read = read.rename("prediction")
        return cls(name, text, ordered, texts, qrels, told, read, report)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.queries)

    @property
    def has_query_text(self) -> bool:
        """Whether any query has text."""
        return bool(self.queries["text"].str.strip().astype(bool).any())

    @property
    def depth(self) -> int:
        """Largest number of candidates of one query."""
        return int(self.candidates["rank"].max()) if len(self.candidates) else 0

    def number(self, qid: str) -> int:
        """Give the place of a query, or one error that names a near id."""
        if qid not in self.queries.index:
            unknown(SettingError, "query", "qid", qid, list(self.queries.index[:20]), "See run.queries.")
        return int(self.queries.index.get_indexer(pd.Index([qid], dtype=object))[0])

    def only(self, qids: Iterable[str]) -> Run:
        """Give the run of some of its queries, in the order of the run.

        Parameters
        ----------
        qids : iterable of str

        Raises
        ------
        SettingError
            If the run has no such query.
        """
        if isinstance(qids, str) or not isinstance(qids, Iterable):
            fail(SettingError, "Run.only", "qids", "a list of query ids", qids)
        listed = list(qids)
        if not all(isinstance(qid, str) for qid in listed):
            fail(SettingError, "Run.only", "qids", "a list of query ids", listed)
        wanted = set(listed)
        if not wanted:
            fail(SettingError, "Run.only", "qids", "a list of at least one query", [])
        for qid in wanted:
            self.number(qid)
        order = [qid for qid in self.queries.index if qid in wanted]
        rows = self.candidates["qid"].isin(order).to_numpy()
        frame = self.candidates[rows].reset_index(drop=True)
        frame["qid"], frame["docid"] = (
            frame[name].cat.remove_unused_categories() for name in ("qid", "docid")
        )
        qrels = None if self.qrels is None else self.qrels[self.qrels["qid"].isin(wanted)]
        answers = None if self.answers is None else self.answers.loc[order]
        read = None if self.predictions is None else self.predictions.loc[order]
        parts: dict[str, Any] = {"qrels": qrels, "answers": answers, "predictions": read}
        return replace(self, queries=self.queries.loc[order], candidates=frame, **parts)

    def chunks(self, qid: str) -> list[Chunk]:
        """Give the candidates of a query as chunks, best first; those without text are left out.

        A score that is not finite becomes the score above it, so that sorting keeps the order.

        Parameters
        ----------
        qid : str

        Raises
        ------
        SettingError
            If the run has no such query.
        """
        codes = self.candidates["qid"].cat.codes.to_numpy()
        start, end = np.searchsorted(codes, self.number(qid) + np.array([0, 1]))
        rows = self.candidates.iloc[start:end]
        place = self.passages.index.get_indexer(pd.Index(rows["docid"].astype(object)))
        texts, titles = self.passages["text"].to_numpy(), self.passages["title"].to_numpy()
        scores = rows["score"].to_numpy()
        last = float(scores[np.isfinite(scores)].max(initial=-np.inf))
        last = last if np.isfinite(last) else 0.0
        out = []
        for docid, score, at in zip(rows["docid"], scores, place, strict=True):
            last = min(float(score), last) if np.isfinite(score) else last
            if at >= 0:
                out.append(
                    Chunk(docid, texts[at], last, metadata={"title": titles[at]} if titles[at] else {})
                )
        return out

    def save(self, folder: str | Path, format: str = "jsonl", *, lossy: bool = False) -> list[Path]:
        """Write "jsonl", "trec" or "parquet" files that `load_run` reads back as this run.

        What the format can't hold is an error that names it, or with `lossy` left out; the table of
        what each one holds is in the notes of `packtools.runs.save.save_run`.
        """
        from packtools.runs.save import save_run

        return save_run(self, folder, format, lossy=lossy)

    def to_dict(self) -> dict[str, Any]:
        """Give the name, the counts and the notes of the report as plain values."""
        from packtools.runs.save import count_run

        return {"name": self.name, **count_run(self), "report": self.report.to_dict()}

    def __repr__(self) -> str:
        return (
            f"Run({self.name!r}: {self.n_queries:,} queries × up to {self.depth} passages, "
            f"{len(self.passages):,} passages with text, qrels {_yes(self.qrels)}, "
            f"answers {_yes(self.answers)})"
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.report._repr_html_()}"


def _answer_tuple(given: object) -> tuple[str, ...]:
    """Take a list of answers, one answer, or None for none."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        fail(RunFormatError, "Run.from_frames", "answers", "a list of texts for each query", given)
    return tuple(map(str, given))


def _yes(value: object) -> str:
    return "no" if value is None else "yes"
