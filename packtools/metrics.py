"""What a pack costs and what it keeps: one number a query, and a table that describes each metric.

Judges anybody's packs: works on arrays of counts and masks, and knows nothing of our packer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from packtools.arrays import Floats
from packtools.errors import MetricUnavailable, SettingError, unknown
from packtools.matching import find_folded, fold, has_hyphen_break, source_offset
from packtools.progress import progress

__all__ = ["DERIVED", "METRICS", "Metric", "find_answer"]


@dataclass(frozen=True)
class Metric:
    """Describe one metric.

    Parameters
    ----------
    name : str
        Column name.
    words : str
        What the panel calls it.
    unit : {"tokens", "chars", "chunks", "share", "USD"}
    kind : {"cost", "retention"}
    higher_is_better : bool
    low, high : float or None
        Range; None is unbounded.
    needs : tuple of str
        What a run must have: "qrels", "answers".
    source : str
        Where the definition comes from.
    """

    name: str
    words: str
    unit: str
    kind: str
    higher_is_better: bool
    low: float | None
    high: float | None
    needs: tuple[str, ...]
    source: str


def _metric(
    name: str, words: str, unit: str, kind: str, better: str, source: str, needs: tuple[str, ...] = ()
) -> Metric:
    return Metric(
        name, words, unit, kind, better == "higher", 0.0, 1.0 if unit == "share" else None, needs, source
    )


METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        _metric("n_tokens", "tokens", "tokens", "cost", "lower", "count of the rendered context"),
        _metric("n_chars", "characters", "chars", "cost", "lower", "length of the rendered context"),
        _metric("n_chunks", "chunks", "chunks", "cost", "lower", "number of chunks kept"),
        _metric(
            "compression_ratio",
            "share of the prompt left",
            "share",
            "cost",
            "lower",
            "packed / original, in the unit of the budget; the packing report of the generation pipeline",
        ),
        _metric(
            "gold_retention",
            "relevant passages kept",
            "share",
            "retention",
            "higher",
            "recall of the judged-relevant candidates: kept / retrieved, of those that have text",
            ("qrels",),
        ),
        _metric(
            "answer_retention",
            "answer kept",
            "share",
            "retention",
            "higher",
            "1 if an answer that the full context holds is still in the packed text "
            "(has_answer of Karpukhin et al. 2020, DPR, sec. 3, before and after)",
            ("answers",),
        ),
        _metric(
            "answer_position",
            "place of the answer",
            "share",
            "retention",
            "lower",
            "characters before the first answer / characters of the packed text; "
            "after Liu et al. 2024, Lost in the Middle",
            ("answers",),
        ),
        _metric(
            "answer_chunk",
            "place of the answer's chunk",
            "share",
            "retention",
            "lower",
            "chunks before the first that holds an answer / (chunks - 1): 0 is the first, 1 the last",
            ("answers",),
        ),
        _metric(
            "numbers_kept",
            "numbers kept",
            "share",
            "retention",
            "higher",
            "distinct numbers of the kept passages that the packed text still holds / all of them; 1 where "
            "they hold none",
        ),
        _metric(
            "names_kept",
            "names kept",
            "share",
            "retention",
            "higher",
            "the same for runs of capitalised words",
        ),
    )
}


DERIVED: dict[str, Metric] = {
    m.name: m
    for m in (
        _metric(
            "cost_usd",
            "cost in US dollars",
            "USD",
            "cost",
            "lower",
            "tokens of each class x the price of that class",
        ),
        _metric(
            "shared_prefix",
            "tokens shared with the prompt before",
            "tokens",
            "cost",
            "higher",
            "tokens at the start that the context of the query before has, too: what a prompt cache saves",
        ),
        _metric(
            "expected_quality",
            "answers expected",
            "share",
            "retention",
            "higher",
            "a position curve at the place of the answer; after Liu et al. 2024, Lost in the Middle, app. G",
            ("answers",),
        ),
    )
}
"""Metrics worked out of others, or of a price, on request."""


def get_metric(name: str) -> Metric:
    """Give the metric of that name, or one error that lists them all."""
    known = METRICS | DERIVED
    if name not in known:
        unknown(SettingError, "metric", "name", name, known)
    return known[name]


def need(name: str, unavailable: dict[str, str]) -> Metric:
    """Give a metric, or say why this run can't give it."""
    metric = get_metric(name)
    if name in unavailable:
        raise MetricUnavailable(f"{name}: not available: {unavailable[name]}.")
    return metric


def share(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """Divide; NaN ("not scored") where the whole is 0."""
    p, w = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    out: Floats = np.full(np.broadcast(p, w).shape, np.nan)
    np.divide(p, w, out=out, where=w != 0)
    return out


def answer_retention(kept: npt.ArrayLike, full: npt.ArrayLike) -> Floats:
    """Give 1.0 or 0.0 where the full context holds an answer, NaN elsewhere."""
    return np.where(np.asarray(full, bool), np.asarray(kept, bool).astype(float), np.nan)


def find_answer(text: str, answers: Iterable[str]) -> int:
    """Find the first place in a text where one of the answers stands.

    1. Both are folded: NFKC (ligatures, widths, composed accents), lower case, white space to one
       space, line-break hyphens joined.
    2. The answer must stand as whole words and whole numbers: "no" is not in "nobody", "5" not in
       "15" or "5.2"; scripts without spaces match anywhere.

    Parameters
    ----------
    text : str
    answers : iterable of str

    Returns
    -------
    int
        Character offset in `text`; -1 if none is there.

    References
    ----------
    Karpukhin et al. (2020), Dense Passage Retrieval for Open-Domain Question Answering, sec. 3.

    Examples
    --------
    >>> find_answer("Nobody knows; no, really.", ["No"])
    14
    >>> find_answer("It is 15.2 km long.", ["15", "5.2 km"])
    -1
    """
    return _first(text, fold(text), folded_answers(answers))


def folded_answers(answers: Iterable[str]) -> list[str]:
    """Fold answers once, for many texts; those that fold to nothing are left out."""
    return [a for a in dict.fromkeys(fold(a) for a in answers) if a]


def _first(text: str, folded: str, answers: Sequence[str]) -> int:
    """Give the first offset of an answer; words broken at a line end are tried in both ways."""
    places = []
    for keep in (False, True) if has_hyphen_break(text) else (False,):
        form = fold(text, keep) if keep else folded
        same = text.isascii() and len(text) == len(form)
        for answer in answers:
            at = find_folded(answer, form) if answer in form else -1
            if at >= 0:
                places.append(at if same else source_offset(text, at, keep))
    return min(places, default=-1)


def find_answers(
    texts: Sequence[str], passage: npt.NDArray[np.int32], answers: Sequence[Sequence[str]]
) -> npt.NDArray[np.int32]:
    """Find the answers of each query in each of its candidates.

    Parameters
    ----------
    texts : sequence of str
        Distinct passages; each is folded once.
    passage : ndarray of int32, shape (ranks, queries)
        Place in `texts`; -1 is none.
    answers : sequence of sequences of str, length queries

    Returns
    -------
    ndarray of int32, shape (ranks, queries)
        Offset of the first answer in the passage; -1 if none.
    """
    folded = [fold(t) for t in texts]
    broken = {i: fold(t, keep_hyphens=True) for i, t in enumerate(texts) if has_hyphen_break(t)}
    at = np.full(passage.shape, -1, dtype=np.int32)
    asked = progress(zip(answers, passage.T, strict=True), "find answers", len(answers))
    for query, (given, column) in enumerate(asked):
        wanted = folded_answers(given)
        places = column.tolist()
        hits: set[int] = set()
        for answer in wanted:
            hits.update(r for r, place in enumerate(places) if place >= 0 and answer in folded[place])
            if broken:
                hits.update(r for r, place in enumerate(places) if answer in broken.get(place, ""))
        for rank in hits:
            at[rank, query] = _first(texts[places[rank]], folded[places[rank]], wanted)
    return at
