"""Take what retrievers give in memory: their documents become chunks, or a run with its questions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas as pd

from packtools.errors import SettingError, fail, is_number, shown
from packtools.runs.cases import ID_DIGITS, Case, Cases, Context
from packtools.runs.model import Run
from packtools.runs.report import LoadReport
from packtools.runs.tables import DOC_KEYS, TEXT_KEYS
from packtools.schema import QREL_COLUMNS, Chunk

__all__ = ["to_chunks", "to_run"]

TEXTS = (*TEXT_KEYS, "page_content", "content")
IDS = (*DOC_KEYS, "node_id", "id_")
METADATA = ("metadata", "meta")
ACCEPTED = (
    "accepted are a LangChain, LlamaIndex or Haystack document, a mapping or object with one of "
    f"{', '.join(TEXTS)}, (docid, text, score), (document, score), a text, or a Chunk"
)


@dataclass(frozen=True)
class _Document:
    """Hold what was found of one document."""

    text: str
    docid: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        title = self.metadata.get("title")
        return title if isinstance(title, str) else ""


def to_chunks(documents: Iterable[Any]) -> list[Chunk]:
    """Convert the documents of one question to chunks, for `ContextPacker`.

    Documents are told by what they have, so no framework is needed or imported:

    1. LangChain `Document`: `page_content`, `id`, `metadata`; a pair ``(document, score)`` too.
    2. LlamaIndex `NodeWithScore`: `node`, `score`; of the node `get_content()`, `node_id`, `metadata`.
       A node alone too.
    3. Haystack `Document`: `content`, `id`, `score`, `meta`.
    4. A mapping, a named tuple, or any object with such names: text, contents, page_content or
       content; id, _id, docid or doc_id; score. What else is in a mapping is metadata.
    5. A tuple ``(docid, text, score)``, a text, or a `Chunk`, which stays as it is.

    Parameters
    ----------
    documents : iterable of documents
        Of any of these kinds, also mixed.

    Returns
    -------
    list of Chunk
        In the same order, with text, score and metadata as they were (a title stands in the
        metadata). A document without an id is named by its text.

    Raises
    ------
    SettingError
        If a document is of no such kind, or its text, id or score is of the wrong type.

    Notes
    -----
    The packer sorts by score, highest first. Without any score the order of the list counts; where
    only some are missing, a document takes the score of the one above it. Distances (lower is better)
    are no scores: give such documents without them.

    The kinds follow the attribute names of langchain-core 0.2 and later, llama-index-core 0.10 and
    later, and haystack-ai 2; they are tested with stand-ins of these names, not with the packages.

    Examples
    --------
    >>> to_chunks([{"docid": 7, "contents": "Steel is an alloy.", "score": 0.9, "source": "a.pdf"}])[0]
    ... # doctest: +NORMALIZE_WHITESPACE
    Chunk(id='7', text='Steel is an alloy.', score=0.9, token_count=None, trust='trusted',
          tenant_id=None, content_ref=None, must_keep=(), metadata={'source': 'a.pdf'})
    """
    given = _listed(documents, "to_chunks", "documents")
    read = [_read(one, "to_chunks", f"document {n}") for n, one in enumerate(given, 1)]
    scores = _by_place([one.score for one in read])
    out = []
    for source, one, score in zip(given, read, scores, strict=True):
        if isinstance(source, Chunk):
            out.append(source if source.score == score else replace(source, score=score))
            continue
        docid = one.docid if one.docid is not None else _text_id(one)
        out.append(Chunk(docid, one.text, score, metadata=dict(one.metadata)))
    return out


def to_run(
    queries: Mapping[Any, str],
    retrieved: Mapping[Any, Iterable[Any]],
    *,
    answers: Mapping[Any, Any] | None = None,
    qrels: pd.DataFrame | Mapping[Any, Mapping[Any, int]] | None = None,
    predictions: Mapping[Any, str | None] | None = None,
    name: str = "run",
) -> Run:
    """Build a run from questions and the documents that were retrieved for each.

    Parameters
    ----------
    queries : mapping of qid to text
        "" for a question without a text.
    retrieved : mapping of qid to a list of documents
        Best first; documents of any kind that `to_chunks` takes.
    answers : mapping of qid to a list of answers (or one answer), or None
    qrels : DataFrame with columns qid, docid, label, mapping of qid to {docid: label}, or None
    predictions : mapping of qid to what a reader answered, or None
    name : str, default "run"

    Returns
    -------
    Run
        ``run.report`` says what was mended: the rules are those of a file of questions with contexts.

    Raises
    ------
    SettingError
        If a document is of no known kind, a query of `retrieved` or `predictions` is not among
        `queries`, or nothing was retrieved.

    Notes
    -----
    1. The order of the list is the rank. Scores are kept where they fall with it; otherwise (they are
       distances, or missing) the order counts and they are made from it, and the report says so.
    2. Ids are text. A document without one is named by its text; one id with two texts becomes two.
    3. Of the metadata only "title" is taken.
    4. Answers and judgements of other queries are not taken; a question with no documents is left out.

    A table goes through `Run.from_frames`.

    Examples
    --------
    >>> found = [("d1", "Steel is an alloy.", 0.9), {"id": 7, "content": "Iron is an element."}]
    >>> run = to_run({"q1": "What is steel?"}, {"q1": found})
    >>> run.candidates["docid"].tolist(), run.candidates["score"].tolist()
    (['d1', '7'], [0.9, 0.9])
    """
    if not isinstance(name, str):
        fail(SettingError, "to_run", "name", "a text", name)
    asked = _by_id(queries, "queries")
    found = _by_id(retrieved, "retrieved", asked)
    said = {} if predictions is None else _by_id(predictions, "predictions", asked)
    cases = Cases(Path(name), LoadReport(), "query")
    for number, (qid, question) in enumerate(asked.items(), 1):
        for parameter, text in (("queries", question), ("predictions", said.get(qid, ""))):
            if not isinstance(text, str) and (parameter == "queries" or text is not None):
                fail(SettingError, "to_run", parameter, "texts", text, f"Query {qid!r}.")
        documents = _listed(found.get(qid, ()), "to_run", f"retrieved[{qid!r}]")
        contexts = [
            _context(one, f"query {qid!r}, document {n}", cases.report, number)
            for n, one in enumerate(documents, 1)
        ]
        cases.add(number, Case(question, contexts, qid, None, said.get(qid)))
    if not cases.rows["qid"]:
        fail(SettingError, "to_run", "retrieved", "documents of at least one query", retrieved)
    known = None if answers is None else _by_id(answers, "answers")
    return cases.run(name, _qrel_frame(qrels), known)


def _context(document: Any, at: str, report: LoadReport, number: int) -> Context:
    one = _read(document, "to_run", at)
    if isinstance(document, Chunk) and document.content_ref is not None and not document.text:
        fail(SettingError, "to_run", "retrieved", "documents with their texts", document, f"{at}.")
    if any(key != "title" for key in one.metadata):
        report.ignored("retrieved", "metadata other than the title: not taken", number)
    score = math.nan if one.score is None else one.score
    return Context(one.text, one.docid, one.title, score)


def _qrel_frame(qrels: object) -> pd.DataFrame | None:
    if qrels is None or isinstance(qrels, pd.DataFrame):
        return qrels
    rows = []
    for qid, judged in _by_id(qrels, "qrels").items():
        if not isinstance(judged, Mapping):
            fail(SettingError, "to_run", f"qrels[{qid!r}]", "a mapping of docid to label", judged)
        rows += [(qid, _id(docid, "to_run", f"qrels[{qid!r}]"), label) for docid, label in judged.items()]
    return pd.DataFrame(rows, columns=list(QREL_COLUMNS))


# --- one document ---------------------------------------------------------------------------------


def _read(document: Any, where: str, at: str) -> _Document:
    """Find text, id, score and metadata of a document of any kind."""
    if isinstance(document, Chunk):
        score = _score(document.score, where, at)
        return _Document(document.text, document.id, score, document.metadata)
    if isinstance(document, str):
        return _Document(document)
    if isinstance(document, tuple):
        fields = getattr(document, "_asdict", None)
        if fields is None:
            return _read_tuple(document, where, at)
        document = fields()
    node = _first(document, ("node",))[1]
    if node is not None and not isinstance(document, Mapping):
        return replace(_read(node, where, at), score=_score(_first(document, ("score",))[1], where, at))
    key, text = _text(document)
    if text is None:
        kind = f"{type(document).__module__}.{type(document).__qualname__}".removeprefix("builtins.")
        raise SettingError(f"{where}: {at} is of type {kind}, which has no text; {ACCEPTED}.")
    if not isinstance(text, str):
        fail(SettingError, where, key, "a text", text, f"{at[0].upper()}{at[1:]}.")
    id_key, docid = _first(document, IDS)
    return _Document(
        text,
        None if docid is None else _id(docid, where, at),
        _score(_first(document, ("score",))[1], where, at),
        _metadata(document, (key, id_key, "score")),
    )


def _read_tuple(document: tuple[Any, ...], where: str, at: str) -> _Document:
    if len(document) == 2:
        return replace(_read(document[0], where, at), score=_score(document[1], where, at))
    if len(document) != 3:
        fail(SettingError, where, at, "a tuple (docid, text, score) or (document, score)", document)
    docid, text, score = document
    if not isinstance(text, str):
        fail(SettingError, where, at, "a tuple (docid, text, score)", document)
    return _Document(text, _id(docid, where, at), _score(score, where, at))


def _first(document: Any, names: Iterable[str]) -> tuple[str, Any]:
    """Give the first of some fields that is there and not None, and its name."""
    for name in names:
        value = document.get(name) if isinstance(document, Mapping) else getattr(document, name, None)
        if value is not None:
            return name, value
    return "", None


def _text(document: Any) -> tuple[str, Any]:
    get_content = None if isinstance(document, Mapping) else getattr(document, "get_content", None)
    return ("get_content", get_content()) if callable(get_content) else _first(document, TEXTS)


def _metadata(document: Any, used: Iterable[str]) -> dict[str, Any]:
    """Give what is known of a document besides; of a mapping all other fields too."""
    key, value = _first(document, METADATA)
    inner = dict(value) if isinstance(value, Mapping) else {}
    if not isinstance(document, Mapping):
        return inner
    taken = {*used, key} if isinstance(value, Mapping) else set(used)
    return {**inner, **{str(k): v for k, v in document.items() if k not in taken}}


def _id(value: object, where: str, at: str) -> str:
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not (whole or isinstance(value, str | UUID)) or value == "":
        rule = "a text that is not empty, or a whole number"
        fail(SettingError, where, "id", rule, value, f"It is of {at}.")
    return str(value)


def _score(value: Any, where: str, at: str) -> float | None:
    """Take a score; one that is not a finite number is missing."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if not is_number(value):
        fail(SettingError, where, "score", "a number or None", value, f"It is of {at}.")
    return float(value) if math.isfinite(float(value)) else None


def _by_place(scores: list[float | None]) -> list[float | None]:
    """Give a document without a score that of the one above; none has one if all are missing."""
    last = next((s for s in scores if s is not None), None)
    out = []
    for score in scores:
        last = last if score is None else score
        out.append(last)
    return out


def _text_id(document: _Document) -> str:
    """Name a document by its title and text, as `load_run` does."""
    value = f"{document.title}\0{document.text}".encode("utf-8", "surrogatepass")
    return "text-" + hashlib.sha256(value).hexdigest()[:ID_DIGITS]


# --- lists and mappings ---------------------------------------------------------------------------


def _listed(documents: Any, where: str, parameter: str) -> list[Any]:
    """Check that these are several documents, not one, nor a table."""
    hint = "For a table see Run.from_frames." if isinstance(documents, pd.DataFrame) else ""
    single = isinstance(documents, str | bytes | Mapping | pd.DataFrame | Chunk)
    if single or not isinstance(documents, Iterable) or _text(documents)[1] is not None:
        fail(SettingError, where, parameter, "a list of documents", documents, hint)
    return list(documents)


def _by_id(given: Any, parameter: str, asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Take a mapping by query id, the ids as text; with `asked` they must be among those."""
    if not isinstance(given, Mapping | pd.Series):
        fail(SettingError, "to_run", parameter, "a mapping by query id", given)
    out: dict[str, Any] = {}
    for key, value in given.items():
        qid = _id(key, "to_run", f"'{parameter}'")
        if qid in out:
            fail(SettingError, "to_run", parameter, "a mapping with each query once, as text", key)
        if asked is not None and qid not in asked:
            rule, hint = "of queries that are in 'queries'", f"There are {shown(list(asked))}."
            fail(SettingError, "to_run", parameter, rule, qid, hint)
        out[qid] = value
    return out
