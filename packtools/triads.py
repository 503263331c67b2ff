"""The RAG triad of saved answers: does the context fit the query, the answer the context and the references?

Works on the rows of a predictions file, whoever packed and answered; no model call.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from packtools import grounding
from packtools.answers import exact_match, token_f1
from packtools.errors import RunFormatError, SettingError, check_count, fail, is_number, shown
from packtools.grounding import PassageWords, content_tokens, stop_words, tokens
from packtools.progress import progress

__all__ = ["DIMENSIONS", "Movement", "SCORES", "TriadReport", "movement", "query_form", "triad", "triad_row"]

Row = dict[str, Any]
Qrels = Mapping[Any, Any]

DIMENSIONS = ("context_relevance", "groundedness", "answer_relevance")
SCORES = (*DIMENSIONS, "triad", "lexical_grounding", "ngram_grounding", "exact_match")
QUESTION_WORDS = ("who", "what", "when", "where", "why", "how", "which")
FLAGS = ("empty_context", "missing_references", "vacuous_lexical_grounding", "vacuous_ngram_grounding")
KEYS = ("query", "passages", "prediction", "references")
RULE = "msmarco"
SNIPPET_CHARS = 240
_VERBS = "am is are was were do does did has have had can could will would shall should may might must"
_YES_NO = {*_VERBS.split(), *(f"{v}n't" for v in _VERBS.split()), "can't", "won't", "shan't", "ain't"}


def query_form(query: str) -> str:
    """Sort a query by its first word.

    who, what, when, where, why, how and which stand for themselves, contractions too ("what's"). A form
    of be, do or have, or a modal verb, negated or not, is yes_no; all else, an empty query too, is other.

    Examples
    --------
    >>> [query_form(q) for q in ("What's a fjord?", "Isn't it cold", "capital of Peru")]
    ['what', 'yes_no', 'other']
    """
    words = (word.strip("'") for word in tokens(query.replace("\u2019", "'")))
    first = next(filter(None, words), "")
    word = "yes_no" if first in _YES_NO else first.partition("'")[0]
    return word if word in (*QUESTION_WORDS, "yes_no") else "other"


def triad_row(
    row: Mapping[str, Any],
    qrels: Qrels | None = None,
    *,
    context_top_k: int | None = None,
    ngram_n: int = 3,
    low_score_threshold: float = 0.5,
) -> Row:
    """Score one saved answer on the three sides of the RAG triad.

    1. The first `context_top_k` passages and ids are what was shown.
    2. ``context_relevance``: with qrels 1.0 or 0.0 for a relevant id among the shown ones; without,
       the lexical grounding of the query in the passages.
    3. ``groundedness`` is `lexical_grounding`, ``answer_relevance`` is `token_f1` against the references
       under the recorded rule ("msmarco"), ``triad`` their mean.

    Parameters
    ----------
    row : mapping
        ``query_id`` (string or whole number), ``query``, ``passages``, ``prediction``, ``references``,
        and, with qrels, ``top_doc_ids``. A string stands for a list of one; null for nothing.
    qrels : mapping of query id to ids, optional
        Relevant ids, or a mapping of id to label (1 or more is relevant). A query that is not in it
        has none. Ids are compared as text.
    context_top_k : int, optional
        Passages looked at; None or 0 is all.
    ngram_n : int, default 3
    low_score_threshold : float, default 0.5
        A dimension strictly below it is low.

    Returns
    -------
    dict
        ``query_id``, ``query``, ``query_form``, ``prediction``, ``references``, ``scores``, ``context``
        and ``flags``, as plain values for JSON.

    Raises
    ------
    RunFormatError
        If a key is missing or of the wrong type; the message names the query and the key.
    SettingError
        If a setting breaks its rule.

    Notes
    -----
    A flag tells where a value is no evidence: 0.0 without references, 1.0 (vacuous) where an answer has
    nothing to look for. ``context_recall`` counts shown places: a relevant id shown twice counts twice.

    References
    ----------
    TruLens, The RAG Triad: https://www.trulens.org/getting_started/core_concepts/rag_triad/. There a
    model judges each side; here words are counted. Token F1: Rajpurkar et al. (2016), SQuAD, sec. 6.1.

    Examples
    --------
    >>> row = {"query_id": 7, "query": "capital of Peru", "passages": ["Lima is the capital of Peru."],
    ...        "prediction": "Cusco", "references": ["Lima"]}
    >>> triad_row(row)["flags"]["low_dimensions"]
    ['groundedness', 'answer_relevance']
    """
    options = _options(context_top_k, ngram_n, low_score_threshold, qrels is not None)
    return next(_scored([row], qrels, options, PassageWords()))


def triad(
    rows: Iterable[Mapping[str, Any]],
    qrels: Qrels | None = None,
    *,
    context_top_k: int | None = None,
    ngram_n: int = 3,
    low_score_threshold: float = 0.5,
    words: PassageWords | None = None,
) -> TriadReport:
    """Score every row of a predictions file: `triad_row` on each, and the report over all.

    Parameters and errors are those of `triad_row`; an id that comes twice is a RunFormatError. Give the
    same `words` to several calls to read each passage only once. Cost: one pass over each distinct passage,
    one set of tokens a row.

    Examples
    --------
    >>> row = {"query": "capital of Peru", "passages": "Lima", "references": "Lima"}
    >>> report = triad([{**row, "query_id": 1, "prediction": "Lima"},
    ...                 {**row, "query_id": 2, "prediction": "Cusco"}])
    >>> report.means["answer_relevance"]["mean"], [low["query_id"] for low in report.low_scores]
    (0.5, ['2', '1'])
    """
    if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        fail(SettingError, "triad", "rows", "a list of mappings", rows, "One row is a list of one.")
    options = _options(context_top_k, ngram_n, low_score_threshold, qrels is not None)
    words = PassageWords() if words is None else words
    return TriadReport(list(_scored(progress(rows, "score answers"), qrels, options, words)), options)


@dataclass(frozen=True)
class TriadReport:
    """Hold the triad of a whole predictions file.

    `per_query` is what `triad_row` gives, in the order of the rows; `options` the settings that gave it.
    """

    per_query: list[Row] = field(repr=False)
    options: dict[str, Any]

    @cached_property
    def means(self) -> dict[str, dict[str, float | None]]:
        """Give `mean` and `n` of each score, and `mean_judged` and `n_judged`; None without rows.

        The first two are over all rows, as recorded. The other two leave out values with nothing behind
        them: answers without references, vacuous groundings, contexts of queries without a relevant id
        (with no qrels: without content words).
        """
        pairs = [(row, _judged(row)) for row in self.per_query]
        judged = {name: [row for row, known in pairs if name in known] for name in SCORES}
        return {name: _mean(name, self.per_query) | _mean(name, judged[name], "_judged") for name in SCORES}

    @cached_property
    def low_scores(self) -> list[Row]:
        """List the rows with a low dimension: lowest triad first, ties by id as text."""
        low = [row for row in self.per_query if row["flags"]["low_dimensions"]]
        return sorted(low, key=lambda row: (row["scores"]["triad"], row["query_id"]))

    @cached_property
    def query_forms(self) -> dict[str, int]:
        """Count the rows of each query form."""
        forms = Counter(row["query_form"] for row in self.per_query)
        return {form: forms[form] for form in (*QUESTION_WORDS, "yes_no", "other")}

    @cached_property
    def flags(self) -> dict[str, int]:
        """Count the rows with each flag, and with each dimension low (``low_groundedness``, …)."""
        flags = [row["flags"] for row in self.per_query]
        low = {f"low_{name}": sum(name in one["low_dimensions"] for one in flags) for name in DIMENSIONS}
        return {name: sum(one[name] for one in flags) for name in FLAGS} | low

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values for JSON; low-score cases by id."""
        counts = {"n": len(self.per_query), "query_forms": self.query_forms, "flags": self.flags}
        head = {"options": self.options, "means": self.means, **counts}
        return {
            **head,
            "low_scores": [row["query_id"] for row in self.low_scores],
            "per_query": self.per_query,
        }


def _mean(name: str, rows: list[Row], end: str = "") -> dict[str, float | None]:
    total = math.fsum(row["scores"][name] for row in rows)
    return {f"mean{end}": total / len(rows) if rows else None, f"n{end}": len(rows)}


def _judged(row: Row) -> set[str]:
    """Name the scores of a row that have something behind them."""
    context, flags = row["context"], row["flags"]
    asked = context["n_relevant_qrels"] if context["qrels_available"] else content_tokens(row["query"])
    known = {"context_relevance"} if asked else set()
    known |= set() if flags["vacuous_lexical_grounding"] else {"groundedness", "lexical_grounding"}
    known |= set() if flags["vacuous_ngram_grounding"] else {"ngram_grounding"}
    known |= set() if flags["missing_references"] else {"answer_relevance", "exact_match"}
    return known | {"triad"} if known.issuperset(DIMENSIONS) else known


@dataclass(frozen=True)
class Movement:
    """Hold which queries moved between two reports.

    ``buckets[score]`` lists the ids "improved" and "worsened", largest change first, and "unchanged", ties
    by id; ``deltas[score][id]`` is after - before; `only_before` and `only_after` are ids without a partner.
    """

    buckets: dict[str, dict[str, list[str]]]
    deltas: dict[str, dict[str, float]]
    only_before: list[str]
    only_after: list[str]
    tolerance: float

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Count each bucket of each score."""
        return {name: {b: len(ids) for b, ids in held.items()} for name, held in self.buckets.items()}


def movement(before: TriadReport, after: TriadReport, *, tolerance: float = 1e-9) -> Movement:
    """Say of each query whether it got better or worse, score by score.

    Queries are paired by id. after - before above the tolerance is improved, below -tolerance worsened,
    else unchanged. The default allows for rounding only; a larger tolerance asks for a larger change.

    Raises
    ------
    SettingError
        If no id is shared, a pair has other references, or the reports were scored in different ways
        (with and without qrels, another ``ngram_n``).

    Examples
    --------
    >>> row = {"query_id": 1, "query": "capital of Peru", "passages": "Lima", "references": "Lima"}
    >>> full, cut = triad([{**row, "prediction": "Lima"}]), triad([{**row, "prediction": "Cusco"}])
    >>> movement(full, cut).buckets["groundedness"]
    {'improved': [], 'worsened': ['1'], 'unchanged': []}
    """
    if not is_number(tolerance) or tolerance < 0 or math.isinf(tolerance):
        fail(SettingError, "movement", "tolerance", "a finite number of 0 or more", tolerance)
    for name in ("qrels_available", "ngram_n"):
        if before.options[name] != after.options[name]:
            rule = f"the same in both reports ({before.options[name]!r} before)"
            fail(SettingError, "movement", name, rule, after.options[name], "Score both in one way.")
    old = {row["query_id"]: row for row in before.per_query}
    new = {row["query_id"]: row for row in after.per_query}
    shared = sorted(old.keys() & new.keys())
    if not shared:
        fail(SettingError, "movement", "after", "a report that shares a query id with 'before'", list(new))
    for qid in shared:
        if old[qid]["references"] != new[qid]["references"]:
            where, rule = f"movement: query {shown(qid)}", f"as before, {shown(old[qid]['references'])}"
            fail(SettingError, where, "references", rule, new[qid]["references"])
    deltas = {s: {qid: new[qid]["scores"][s] - old[qid]["scores"][s] for qid in shared} for s in SCORES}
    buckets = {name: _buckets(delta, tolerance) for name, delta in deltas.items()}
    return Movement(buckets, deltas, sorted(old.keys() - new), sorted(new.keys() - old), float(tolerance))


def _buckets(delta: dict[str, float], tolerance: float) -> dict[str, list[str]]:
    """Sort ids by what their change is."""
    largest = sorted(delta, key=lambda qid: (-abs(delta[qid]), qid))
    return {
        "improved": [qid for qid in largest if delta[qid] > tolerance],
        "worsened": [qid for qid in largest if delta[qid] < -tolerance],
        "unchanged": [qid for qid in sorted(delta) if abs(delta[qid]) <= tolerance],
    }


def _scored(rows: Iterable[Any], qrels: Any, options: dict[str, Any], words: PassageWords) -> Iterator[Row]:
    """Score rows one by one."""
    relevant, seen = _relevant(qrels), set()
    for number, row in enumerate(rows, 1):
        qid = _query_id(row, number)
        if qid in seen:
            fail(RunFormatError, f"triad: row {number}", "query_id", "new in each row", qid)
        seen.add(qid)
        judged = None if relevant is None else relevant.get(qid, frozenset())
        yield _score(_read(row, qid, relevant is not None), judged, options, words)


def _options(top_k: Any, ngram_n: Any, low: Any, qrels_available: bool) -> dict[str, Any]:
    """Check the settings of a call; give them as plain values."""
    if top_k is not None:
        top_k = check_count(SettingError, "triad", "context_top_k", top_k, "passage", least=0) or None
    ngram_n = check_count(SettingError, "triad", "ngram_n", ngram_n, "token")
    if not is_number(low) or math.isinf(low):
        fail(SettingError, "triad", "low_score_threshold", "a finite number", low)
    settings = {"context_top_k": top_k, "ngram_n": ngram_n, "low_score_threshold": float(low)}
    return {**settings, "rule": RULE, "qrels_available": qrels_available}


def _relevant(qrels: Any) -> dict[str, frozenset[str]] | None:
    """Give the relevant ids of each query as text."""
    if qrels is None:
        return None
    if not isinstance(qrels, Mapping):
        fail(SettingError, "triad", "qrels", "a mapping of query id to relevant ids, or None", qrels)
    out: dict[str, frozenset[str]] = {}
    for qid, given in qrels.items():
        where = f"triad: query {shown(str(qid))}"
        if isinstance(given, Mapping):
            if wrong := [label for label in given.values() if not is_number(label)]:
                fail(SettingError, where, "qrels", "labelled by numbers", wrong[0])
            given = [one for one, label in given.items() if label >= 1]
        out[str(qid)] = out.get(str(qid), frozenset()) | frozenset(grounding.as_ids(where, "qrels", given))
    return out


def _query_id(row: object, number: int) -> str:
    """Give the id of a row as text."""
    where = f"triad: row {number}"
    if not isinstance(row, Mapping):
        fail(RunFormatError, where, "row", "a mapping of keys to values", row)
    if not grounding.is_id(row.get("query_id")):
        rule = "a string that is not empty, or a whole number"
        fail(RunFormatError, where, "query_id", rule, row.get("query_id"))
    return str(row["query_id"])


def _read(row: Mapping[str, Any], qid: str, judged: bool) -> Row:
    """Give the values of a row as text and lists of text, or name the key that is wrong."""
    where = f"triad: query {shown(qid)}"
    for key in (*KEYS, "top_doc_ids") if judged else KEYS:
        if key not in row:
            fail(RunFormatError, where, key, "in the row", list(row), "Write null where there is none.")
    out: Row = {"query_id": qid}
    for key in ("query", "prediction"):
        if row[key] is not None and not isinstance(row[key], str):
            fail(RunFormatError, where, key, "a string or null", row[key])
        out[key] = row[key] or ""
    for key in ("passages", "references"):
        out[key] = grounding.as_passages(row[key], where, key, RunFormatError)
    ids = row.get("top_doc_ids")
    out["top_doc_ids"] = [] if ids is None else grounding.as_ids(where, "top_doc_ids", ids, RunFormatError)
    return out


def _score(row: Row, relevant: frozenset[str] | None, options: dict[str, Any], words: PassageWords) -> Row:
    """Score one row that was read."""
    top_k, n = options["context_top_k"], options["ngram_n"]
    ids, passages = row["top_doc_ids"][:top_k], row["passages"][:top_k]
    query, prediction, references = row["query"], row["prediction"], row["references"]
    found, context = tokens(prediction), words.context(passages)
    content = frozenset(found) - stop_words()
    shown_as = _context(ids, passages, relevant)
    hits = shown_as["n_relevant_in_context"]
    fit = context.lexical(content_tokens(query)) if hits is None else float(hits > 0)
    grounded, answer = context.lexical(content), token_f1(prediction, references, rule=RULE)
    scores = {
        "context_relevance": fit,
        "groundedness": grounded,
        "answer_relevance": answer,
        "triad": (fit + grounded + answer) / 3,
        "lexical_grounding": grounded,
        "ngram_grounding": context.ngram(found, n),
        "exact_match": exact_match(prediction, references, rule=RULE),
    }
    flags = {
        "empty_context": not any(text.strip() for text in passages),
        "missing_references": not any(text.strip() for text in references),
        "vacuous_lexical_grounding": not content,
        "vacuous_ngram_grounding": len(found) < n,
        "low_dimensions": [name for name in DIMENSIONS if scores[name] < options["low_score_threshold"]],
    }
    out = {key: row[key] for key in ("query_id", "query", "prediction", "references")}
    return {**out, "query_form": query_form(query), "scores": scores, "context": shown_as, "flags": flags}


def _context(ids: list[str], passages: list[str], relevant: frozenset[str] | None) -> Row:
    """Say what was shown, and where the relevant ids stand in it."""
    judged = relevant is not None
    ranks = [rank for rank, one in enumerate(ids, 1) if relevant and one in relevant]
    return {
        "metric": "qrels_hit" if judged else "query_context_lexical_overlap",
        "top_doc_ids": ids,
        "passage_snippets": [text[:SNIPPET_CHARS].replace("\n", " ") for text in passages],
        "n_passages": len(passages),
        "qrels_available": judged,
        "first_relevant_rank": ranks[0] if ranks else None,
        "n_relevant_in_context": len(ranks) if judged else None,
        "n_relevant_qrels": len(relevant) if relevant is not None else None,
        "context_recall": (len(ranks) / len(relevant) if relevant else 0.0) if judged else None,
    }
