"""The tables of a run, checked and put in order: candidates, passages, judgements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import infer_dtype

from packtools.errors import RunFormatError, fail, unknown
from packtools.runs.report import LoadReport
from packtools.schema import CANDIDATE_COLUMNS, QREL_COLUMNS

SAMPLE_IDS = 5
TIES = ("rank", "trec_eval")


def text_index(values: Iterable[str], name: str) -> pd.Index[Any]:
    """Make an index of plain Python strings, whatever string type pandas prefers."""
    index: pd.Index[Any] = pd.Index(np.array(list(values), dtype=object), dtype=object, name=name)
    return index


def _all_text(values: Any) -> bool:
    return infer_dtype(np.asarray(values, dtype=object), skipna=False) in ("string", "empty")


def passage_frame(passages: Mapping[str, str] | pd.DataFrame) -> pd.DataFrame:
    """Check a table of passages, or make it of texts by docid."""
    if isinstance(passages, pd.DataFrame):
        for column in ("title", "text"):
            if column not in passages:
                rule = f"a table with a column {column!r}"
                fail(RunFormatError, "Run.from_frames", "passages", rule, list(passages.columns))
        frame = passages
        if not _all_text(frame.index):
            frame = frame.set_axis(text_index(map(str, frame.index), "docid"))
    else:
        frame = pd.DataFrame({"title": "", "text": list(passages.values())}, dtype=object)
        frame.index = text_index(map(str, passages), "docid")
    if not frame.index.is_unique:
        twice = frame.index[frame.index.duplicated()][0]
        fail(RunFormatError, "Run.from_frames", "passages", "a table with each docid once", twice)
    if not _all_text(frame["text"]):
        docid, text = next((d, t) for d, t in frame["text"].items() if not isinstance(t, str))
        hint = f"Passage {docid!r}; leave it out if it has no text."
        fail(RunFormatError, "Run.from_frames", "passages", "texts (strings)", text, hint)
    return frame


def ordered_candidates(
    candidates: pd.DataFrame, queries: Mapping[str, str] | None, report: LoadReport, name: str, ties: str
) -> pd.DataFrame:
    """Sort by query and rank rule, keep the best of repeats, and number ranks 1, 2, …"""
    if ties not in TIES:
        unknown(RunFormatError, "Run.from_frames", "ties", ties, TIES)
    rank, score = _checked(candidates)
    qid, docid = _by_query(_categorical(candidates["qid"]), queries), _categorical(candidates["docid"])
    worst = np.where(np.isfinite(score), -score, np.inf)
    if ties == "trec_eval":
        alphabet = np.argsort(np.argsort(docid.categories.to_numpy(dtype=object)))
        keys = [qid.codes, worst, -alphabet[docid.codes]]
    else:
        keys = [qid.codes, worst, rank]
    by = None if _is_sorted(keys) else np.lexsort(keys[::-1])
    codes, document, place = (_take(values, by) for values in (qid.codes, docid.codes, rank))
    moved = (codes[1:] == codes[:-1]) & (place[1:] < place[:-1])
    if moved.any() and ties == "rank":
        n = len(np.unique(codes[1:][moved]))
        report.ignored(name, "query whose ranks disagree with its scores: sorted by score", n=n)
    again = pd.Series(codes.astype(np.int64) * len(docid.categories) + document).duplicated().to_numpy()
    if again.any():
        report.repaired(name, "document repeated for a query: the best rank stays", n=int(again.sum()))
        by = np.flatnonzero(~again) if by is None else by[~again]
        codes, document = qid.codes[by], docid.codes[by]
    first = np.cumsum(np.bincount(codes, minlength=len(qid.categories)))
    fresh = np.arange(1, len(codes) + 1) - np.concatenate([[0], first])[codes]
    ids = {
        column: pd.Categorical.from_codes(numbers, known.categories)
        for column, numbers, known in (("qid", codes, qid), ("docid", document, docid))
    }
    frame = pd.DataFrame({**ids, "rank": fresh.astype(np.int32), "score": _take(score, by)})
    for extra in candidates.columns:
        if extra not in frame:
            frame[extra] = _take(candidates[extra].to_numpy(), by)
    return frame


def _take(values: npt.NDArray[Any], by: npt.NDArray[np.intp] | None) -> npt.NDArray[Any]:
    return values if by is None else values[by]


def _is_sorted(keys: list[npt.NDArray[Any]]) -> bool:
    """Whether rows stand in the order of some keys, the first one first."""
    if len(keys[0]) < 2:
        return True
    level = np.ones(len(keys[0]) - 1, dtype=bool)
    for key in keys:
        before, after = key[:-1], key[1:]
        if (level & (after < before)).any():
            return False
        level &= after == before
    return True


def _by_query(qid: pd.Categorical, queries: Mapping[str, str] | None) -> pd.Categorical:
    """Number the queries in the order of the query file; those it lacks, and all without one, by id."""
    place = {q: n for n, q in enumerate(qid.categories)}
    order = [q for q in queries if q in place] if queries else []
    seen = set(order)
    order += sorted(q for q in place if q not in seen)
    number = np.empty(len(order), dtype=qid.codes.dtype)
    number[[place[q] for q in order]] = np.arange(len(order))
    return pd.Categorical.from_codes(number[qid.codes], text_index(order, "id"))


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


def _categorical(values: pd.Series[Any]) -> pd.Categorical:
    """Number ids; the categories are plain Python strings, each of them used."""
    name = str(values.name)
    if values.isna().any():
        fail(RunFormatError, "Run.from_frames", name, "an id in every row", "a missing value")
    if isinstance(values.dtype, pd.CategoricalDtype) and _all_text(values.cat.categories):
        codes, found = values.cat.codes.to_numpy(), values.cat.categories.to_numpy(dtype=object)
        used = np.bincount(codes, minlength=len(found)) > 0
        if not used.all():
            codes, found = (np.cumsum(used) - 1)[codes], found[used]
    else:
        codes, found = pd.factorize(np.array([str(v) for v in values], dtype=object))
    if "" in found:
        fail(RunFormatError, "Run.from_frames", name, "an id that is not empty in every row", "")
    return pd.Categorical.from_codes(codes, text_index(found, "id"))


def join_report(candidates: pd.DataFrame, passages: pd.DataFrame, report: LoadReport, whole: bool) -> None:
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


def qrel_frame(qrels: pd.DataFrame, qids: list[str], report: LoadReport) -> pd.DataFrame:
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
