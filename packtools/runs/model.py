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
from packtools.runs.report import LoadReport
from packtools.schema import CANDIDATE_COLUMNS, QREL_COLUMNS, Chunk

SAMPLE_IDS = 5
TIES = ("rank", "trec_eval")


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
        texts = _passage_frame(passages)
        queries = None if queries is None else {str(q): str(t) for q, t in queries.items()}
        ordered = _ordered(candidates, queries, report, name, ties)
        qids = list(ordered["qid"].cat.categories)
        _join_report(ordered, texts, report, whole=cls is Run)
        if qrels is not None:
            qrels = _qrel_frame(qrels, qids, report)
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
            {"text": [known.get(q, "") for q in qids]}, index=_index(qids, "qid"), dtype=object
        )
        told = None
        if answers is not None:
            given = {str(q): _answer_tuple(a) for q, a in answers.items()}
            values = [given.get(q, ()) for q in qids]
            told = pd.Series(values, index=_index(qids, "qid"), name="answers", dtype=object)
            report.joined(f"answers for {sum(map(bool, values)):,} of {len(qids):,} queries")
        read = None
        if predictions is not None:
            said = {str(q): p for q, p in predictions.items()}
            read = pd.Series([said.get(q) for q in qids], index=_index(qids, "qid"), dtype=object)
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


def _index(values: Iterable[str], name: str) -> pd.Index[Any]:
    index: pd.Index[Any] = pd.Index(np.array(list(values), dtype=object), dtype=object, name=name)
    return index


def _passage_frame(passages: Mapping[str, str] | pd.DataFrame) -> pd.DataFrame:
    if isinstance(passages, pd.DataFrame):
        for column in ("title", "text"):
            if column not in passages:
                rule = f"a table with a column {column!r}"
                fail(RunFormatError, "Run.from_frames", "passages", rule, list(passages.columns))
        frame = passages
        if not all(isinstance(docid, str) for docid in frame.index):
            frame = frame.set_axis(_index(map(str, frame.index), "docid"))
    else:
        frame = pd.DataFrame({"title": "", "text": list(passages.values())}, dtype=object)
        frame.index = _index(map(str, passages), "docid")
    if not frame.index.is_unique:
        twice = frame.index[frame.index.duplicated()][0]
        fail(RunFormatError, "Run.from_frames", "passages", "a table with each docid once", twice)
    for docid, text in zip(frame.index, frame["text"], strict=True):
        if not isinstance(text, str):
            hint = f"Passage {docid!r}; leave it out if it has no text."
            fail(RunFormatError, "Run.from_frames", "passages", "texts (strings)", text, hint)
    return frame


def _ordered(
    candidates: pd.DataFrame, queries: Mapping[str, str] | None, report: LoadReport, name: str, ties: str
) -> pd.DataFrame:
    """Sort by query and rank rule, keep the best of repeats, and number ranks 1, 2, …"""
    if ties not in TIES:
        unknown(RunFormatError, "Run.from_frames", "ties", ties, TIES)
    rank, score = _checked(candidates)
    qid, docid = (_categorical(candidates[c], c) for c in ("qid", "docid"))
    present = set(qid.categories)
    order = [q for q in queries if q in present] if queries else []
    seen = set(order)
    qid = qid.reorder_categories(order + sorted(q for q in present if q not in seen))
    worst = np.where(np.isfinite(score), -score, np.inf)
    if ties == "trec_eval":
        alphabet = np.argsort(np.argsort(docid.categories.to_numpy(dtype=object)))
        by = np.lexsort((-alphabet[docid.codes], worst, qid.codes))
    else:
        by = np.lexsort((rank, worst, qid.codes))
    q = qid.codes[by].astype(np.int64)
    moved = (q[1:] == q[:-1]) & (rank[by][1:] < rank[by][:-1])
    if moved.any() and ties == "rank":
        n = len(np.unique(q[1:][moved]))
        report.ignored(name, "query whose ranks disagree with its scores: sorted by score", n=n)
    _, firsts = np.unique(q * (len(docid.categories) + 1) + docid.codes[by], return_index=True)
    if len(firsts) < len(by):
        report.repaired(name, "document repeated for a query: the best rank stays", n=len(by) - len(firsts))
    by = by[np.sort(firsts)]
    codes = qid.codes[by].astype(np.int64)
    fresh = (np.arange(len(by)) - np.searchsorted(codes, codes) + 1).astype(np.int32)
    frame = pd.DataFrame({"qid": qid[by], "docid": docid[by], "rank": fresh, "score": score[by]})
    for extra in candidates.columns:
        if extra not in frame:
            frame[extra] = candidates[extra].to_numpy()[by]
    return frame


def _checked(candidates: pd.DataFrame) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Check a candidate table; give its ranks and scores, the latter from the rank if there are none."""
    for column in ("qid", "docid", "rank"):
        if column not in candidates:
            rule, hint = (
                f"a table with a column {column!r}",
                f"A run table has {', '.join(CANDIDATE_COLUMNS)}.",
            )
            fail(RunFormatError, "Run.from_frames", "candidates", rule, list(candidates.columns), hint)
    if not len(candidates):
        fail(
            RunFormatError, "Run.from_frames", "candidates", "a table with at least one row", candidates.shape
        )
    out = []
    for column in ("rank", "score") if "score" in candidates else ("rank",):
        try:
            out.append(pd.to_numeric(candidates[column]).to_numpy(np.float64, na_value=np.nan))
        except (TypeError, ValueError) as error:
            raise RunFormatError(f"Run.from_frames: column '{column}' must hold numbers: {error}.") from error
    rank = out[0]
    if not np.isfinite(rank).all():
        fail(RunFormatError, "Run.from_frames", "rank", "a whole number in every row", "a missing value")
    score = out[1] if len(out) > 1 else 1.0 / np.maximum(rank, 1.0)
    return rank, np.where(np.isfinite(score), score, np.nan)


def _categorical(values: pd.Series[Any], name: str) -> pd.Categorical:
    """Number ids; the categories are plain Python strings, whatever string type pandas prefers."""
    if values.isna().any():
        fail(RunFormatError, "Run.from_frames", name, "an id in every row", "a missing value")
    if isinstance(values.dtype, pd.CategoricalDtype) and all(
        isinstance(c, str) for c in values.cat.categories
    ):
        used = values.cat.remove_unused_categories().cat
        if "" in used.categories:
            fail(RunFormatError, "Run.from_frames", name, "an id that is not empty in every row", "")
        return pd.Categorical.from_codes(used.codes, _index(map(str, used.categories), "id"))
    codes, found = pd.factorize(np.array([str(v) for v in values], dtype=object))
    if "" in found:
        fail(RunFormatError, "Run.from_frames", name, "an id that is not empty in every row", "")
    return pd.Categorical.from_codes(codes, _index(found, "id"))


def _join_report(candidates: pd.DataFrame, passages: pd.DataFrame, report: LoadReport, whole: bool) -> None:
    """Say how much of the run has text; none at all is an error, but for a part of a run."""
    docids = candidates["docid"].cat.categories
    has = np.asarray(docids.isin(passages.index))[candidates["docid"].cat.codes]
    n = len(candidates)
    if whole and n and not has.any():
        theirs = ", ".join(map(repr, docids[:SAMPLE_IDS]))
        some = passages.attrs.get("sample_ids") or list(passages.index[:SAMPLE_IDS])
        ours = ", ".join(map(repr, some)) or "none"
        raise RunFormatError(
            f"load_run: 0 of {n:,} candidates have passage text. Ids in the run: {theirs}; ids in the "
            f"collection: {ours}. Give the collection that the run was made from."
        )
    report.joined(f"passage text for {int(has.sum()):,} of {n:,} candidates ({has.mean():.0%})")
    qids = candidates["qid"].cat
    told = np.zeros(len(qids.categories), dtype=bool)
    told[qids.codes.to_numpy()[has]] = True
    bare = list(qids.categories[~told])
    if bare:
        listed = ", ".join(bare[:SAMPLE_IDS])
        report.joined(f"{len(bare):,} queries have no passage text at all, such as {listed}")


def _qrel_frame(qrels: pd.DataFrame, qids: list[str], report: LoadReport) -> pd.DataFrame:
    for column in QREL_COLUMNS:
        if column not in qrels:
            rule, hint = f"a table with a column {column!r}", f"Qrels have {', '.join(QREL_COLUMNS)}."
            fail(RunFormatError, "Run.from_frames", "qrels", rule, list(qrels.columns), hint)
    try:
        label = pd.to_numeric(qrels["label"]).to_numpy()
    except (TypeError, ValueError) as error:
        raise RunFormatError(f"Run.from_frames: column 'label' must hold numbers: {error}.") from error
    ids = {c: np.array([str(v) for v in qrels[c]], dtype=object) for c in ("qid", "docid")}
    known = set(qids)
    judged = dict.fromkeys(ids["qid"])
    absent = [q for q in judged if q not in known]
    report.joined(f"{len(judged) - len(absent):,} of {len(qids):,} queries are judged")
    if absent:
        listed = ", ".join(absent[:SAMPLE_IDS])
        report.joined(f"{len(absent):,} judged queries are not in the run, such as {listed}")
    return pd.DataFrame({**ids, "label": label})
