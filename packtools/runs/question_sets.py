"""Question sets that bring their passages: RAMDocs, HotpotQA, SQuAD and its kin, TREC RAG requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packtools.runs import records
from packtools.runs.cases import Case, Context
from packtools.runs.files import text_of
from packtools.runs.records import Place, Unreadable
from packtools.runs.report import LoadReport
from packtools.runs.tables import DOC_KEYS, QUERY_KEYS, TEXT_KEYS

__all__ = ["read_hotpotqa", "read_ramdocs", "read_rerank_requests", "read_squad"]

Numbered = Iterator[tuple[int, Case]]
ENDS = tuple(".!?\"')”’")
SPACED = "sentences without a space between them: joined by one"
KEPT = ("url", "start_char", "end_char")


def read_ramdocs(path: Path, report: LoadReport) -> Numbered:
    """Read RAMDocs: documents of type "correct" are relevant; type and answer become columns."""
    return records.from_either(path, report, _ramdocs)


def _ramdocs(record: dict[str, Any], place: Place) -> Case:
    return Case(
        records.text(record, "question"),
        [_document(item, place) for item in records.objects(record, "documents")],
        place.id(record, QUERY_KEYS),
        place.answers(record, "gold_answers"),
    )


def _document(item: dict[str, Any], place: Place) -> Context:
    kind = place.said(item, "type")
    extra = {"type": kind, "answer": place.said(item, "answer")}
    text, docid = records.text(item, "text"), place.id(item, DOC_KEYS)
    return Context(text, docid, gold=None if kind is None else kind == "correct", extra=extra)


def read_hotpotqa(path: Path, report: LoadReport) -> Numbered:
    """Read HotpotQA: one JSON array, or the same records as JSONL.

    A paragraph is named by its title, and relevant if the title is among the supporting facts; those
    that are not among the paragraphs are judged too. Sentences are joined as they stand; only where
    one ends and a word follows without white space is a space put between them, and reported.
    """
    return records.from_either(path, report, _hotpotqa)


def _hotpotqa(record: dict[str, Any], place: Place) -> Case:
    supporting = _supporting(record)
    listed = record.get("context") or []
    if not isinstance(listed, list):
        raise Unreadable("has a 'context' that is not a list", listed)
    paragraphs = [_paragraph(item, supporting, place) for item in listed]
    titles = {p.title for p in paragraphs}
    missing = [title for title in supporting or () if title not in titles]
    for _ in missing:
        place.ignored("supporting paragraph that is not among the contexts")
    return Case(
        records.text(record, "question"),
        paragraphs,
        place.id(record, QUERY_KEYS),
        place.answers(record, "answer"),
        gold=missing,
    )


def _supporting(record: dict[str, Any]) -> list[str] | None:
    facts = record.get("supporting_facts")
    if facts is None:
        return None
    if not isinstance(facts, list) or not all(
        isinstance(fact, list) and fact and isinstance(fact[0], str) for fact in facts
    ):
        raise Unreadable("has 'supporting_facts' that are not [title, sentence number]", facts)
    return list(dict.fromkeys(fact[0] for fact in facts))


def _paragraph(item: Any, supporting: list[str] | None, place: Place) -> Context:
    match item:
        case [str(title), [*sentences]] if all(isinstance(s, str) for s in sentences):
            text = _joined(sentences, place)
            gold = None if supporting is None else title in supporting
            return Context(text, title or None, title, gold=gold)
    raise Unreadable("has a 'context' that is not [title, [sentences]]", item)


def _joined(sentences: list[str], place: Place) -> str:
    text = ""
    for sentence in sentences:
        if text.endswith(ENDS) and sentence[:1].isalnum():
            place.repaired(SPACED)
            text += " "
        text += sentence
    return text


def read_squad(path: Path, report: LoadReport) -> Numbered:
    """Read SQuAD-shaped JSON: a paragraph is the one candidate of each of its questions.

    It is judged relevant, but for questions that it can't answer (`is_impossible`).
    """
    articles = records.list_in(path, records.json_value(path), "data")
    return records.from_items(path, report, _squad, _questions(articles, path, report))


def _questions(articles: list[Any], path: Path, report: LoadReport) -> Iterator[dict[str, Any]]:
    """Give each question with its paragraph and the title of its article."""
    for i, article in enumerate(articles):
        for j, paragraph in enumerate(records.list_in(path, article, "paragraphs", f"data[{i}]")):
            listed = records.list_in(path, paragraph, "qas", f"data[{i}].paragraphs[{j}]")
            if not listed:
                report.ignored(path.name, "paragraph without questions: not in the run")
            own = {key: value for key, value in paragraph.items() if key != "qas"}
            for qa in listed:
                yield {**own, "title": article.get("title"), "qa": qa}


def _squad(record: dict[str, Any], place: Place) -> Case:
    text, qa = records.text(record, "context"), record["qa"]
    question = records.text(qa, "question")
    answers = [records.text(answer, "text") for answer in records.objects(qa, "answers")]
    title, gold = text_of(record, ("title",)) or "", qa.get("is_impossible") is not True
    context = Context(text, place.id(record, DOC_KEYS), title, gold=gold)
    return Case(question, [context], place.id(qa, QUERY_KEYS), tuple(dict.fromkeys(answers)))


def read_rerank_requests(path: Path, report: LoadReport) -> Numbered:
    """Read TREC RAG rerank requests: the text is the segment; its place in the page becomes columns."""
    return records.from_either(path, report, _request)


def _request(record: dict[str, Any], place: Place) -> Case:
    query = record.get("query")
    question = records.text(query, "text")
    contexts = [_candidate(item, place) for item in records.objects(record, "candidates")]
    return Case(question, contexts, place.id(query, ("qid", *QUERY_KEYS)) if query else None)


def _candidate(item: dict[str, Any], place: Place) -> Context:
    doc = item.get("doc")
    text = text_of(doc, ("segment", *TEXT_KEYS)) if isinstance(doc, dict) else None
    if text is None or not isinstance(doc, dict):
        raise Unreadable("has a candidate without a text 'segment' in its 'doc'", item)
    extra = {key: doc[key] for key in KEPT if key in doc}
    docid, title = place.id(item, ("docid", *DOC_KEYS)), text_of(doc, ("title",)) or ""
    return Context(text, docid, title, place.score(item.get("score")), extra=extra)
