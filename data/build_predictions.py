"""Answer the sample's questions from plain and from packed contexts: data/sample/predictions/*.jsonl.

Usage: python data/build_predictions.py

The reader is a rule, not a model: it takes the sentence most like the question (TF-IDF) that holds
something of the kind asked for (a date, a number with its unit, a name), and answers with that. It is
right often enough to be hurt by a context that lacks the sentence, and always gives the same answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer

import packtools as pt
from packtools.facts import NAME, find_facts

OUT = Path(__file__).parent / "sample" / "predictions"
PLAIN_TOP = 5
PACKED = pt.ContextPackingConfig(enabled=True, max_context_chars=900, max_passage_chars=320)
MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
DATE = re.compile(
    rf"\d{{1,2}} {MONTH}(?: \d{{4}})?|{MONTH} \d{{1,2}}(?:, \d{{4}})?|{MONTH} \d{{4}}"
    r"|\b1[0-9]\d\d\b|\b20\d\d\b"
)
NUMBER = re.compile(r"\d[\d,.]*\d(?:\s?%|\s[a-z]+)?|\d(?:\s?%|\s[a-z]+)?")
WHEN = re.compile(r"\b(?:when|date|year|day)\b", re.IGNORECASE)
COUNT = re.compile(
    r"\b(?:how (?:many|much|long|high|deep|far|tall|old|heavy|wide|fast|big|often)|length|toll|number|"
    r"percentage|temperature|height|depth|weight)\b",
    re.IGNORECASE,
)


def spans(question: str, sentence: str) -> Iterator[str]:
    """Give what a sentence holds of the kind that is asked for."""
    if WHEN.search(question):
        yield from (m.group() for m in DATE.finditer(sentence))
    elif COUNT.search(question):
        yield from (m.group() for m in NUMBER.finditer(sentence))
    else:
        found = find_facts([sentence])
        for begin, end, number in zip(found.begin, found.end, found.number, strict=True):
            if found.kind[number] == NAME:
                yield sentence[begin:end]


def answer(question: str, passages: list[str], words: TfidfVectorizer) -> str:
    """Answer from the sentence most like the question that holds an answer of the right kind."""
    sentences = [p[a:b] for p in passages for a, b in pt.split_sentences(p)]
    if not sentences:
        return ""
    likeness = (words.transform(sentences) @ words.transform([question]).T).toarray()[:, 0]
    asked = question.lower()
    for place in (-likeness).argsort(kind="stable").tolist():
        for span in spans(question, sentences[place]):
            if span.lower() not in asked:
                return span
    return sentences[int(likeness.argmax())]


def main() -> None:
    """Write plain.jsonl (the first passages, whole) and packed.jsonl (the character packer)."""
    run = pt.load_sample()
    words = TfidfVectorizer(sublinear_tf=True).fit(run.passages["text"])
    rows: dict[str, list[str]] = {"plain": [], "packed": []}
    for qid, query in run.queries["text"].items():
        chunks = run.chunks(qid)
        ids, texts = [c.id for c in chunks], [c.text for c in chunks]
        packed = pt.pack_context(query=query, doc_ids=ids, passages=texts, config=PACKED)
        sides = {
            "plain": (ids[:PLAIN_TOP], texts[:PLAIN_TOP], None),
            "packed": (list(packed.retained_doc_ids), list(packed.passages), packed.to_dict()),
        }
        for name, (kept, passages, packing) in sides.items():
            row = {
                "query_id": qid, "query": query, "top_doc_ids": kept, "passages": passages,
                "prediction": answer(query, passages, words), "references": list(run.answers[qid]),
                "retrieval_source": "bm25", "context_packing": packing,
            }  # fmt: skip
            rows[name].append(json.dumps(row, ensure_ascii=False))
    OUT.mkdir(exist_ok=True)
    for name, lines in rows.items():
        (OUT / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
