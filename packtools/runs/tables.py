"""Collections, queries and answers: TSV (id, text) and JSONL (BEIR and its relatives)."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import pandas as pd

from packtools.runs.files import id_of, json_records, text_lines, text_of
from packtools.runs.frames import SAMPLE_IDS
from packtools.runs.report import LoadReport

DOC_KEYS = ("_id", "id", "docid", "doc_id", "pid", "passage_id")
QUERY_KEYS = ("_id", "id", "qid", "query_id")
TEXT_KEYS = ("text", "contents", "passage", "body")
QUESTION_KEYS = ("text", "query", "question")
ANSWER_KEYS = ("answers", "golden_answers", "references", "answer")


def is_jsonl(path: Path) -> bool:
    """Whether a name says JSON lines."""
    return any(s.lower() in (".jsonl", ".json", ".ndjson") for s in path.suffixes)


def read_collection(path: Path, wanted: Container[str], report: LoadReport) -> pd.DataFrame:
    """Read the passages that a run names; the others are only counted.

    Returns
    -------
    DataFrame, index docid, columns title, text
    """
    place: dict[str, int] = {}
    titles: list[str] = []
    texts: list[str] = []
    some: list[str] = []
    n = 0
    for number, docid, title, text in _passages(path, report):
        n += 1
        if n <= SAMPLE_IDS:
            some.append(docid)
        if docid not in wanted:
            continue
        if docid in place:
            at = place[docid]
            same = titles[at] == title and texts[at] == text
            what = (
                "id repeated with the same text" if same else "id repeated with another text: the first stays"
            )
            (report.ignored if same else report.repaired)(path.name, what, number)
            continue
        place[docid] = len(texts)
        titles.append(title)
        texts.append(text)
    report.read(path.name, f"{n:,} passages, {len(texts):,} of them in the run")
    frame = pd.DataFrame({"title": titles, "text": texts}, dtype=object)
    frame.index = pd.Index(list(place), dtype=object, name="docid")
    frame.attrs["sample_ids"] = some
    return frame


def _passages(path: Path, report: LoadReport):  # type: ignore[no-untyped-def]
    if not is_jsonl(path):
        for number, docid, text in id_text_lines(path, report):
            yield number, docid, "", text
        return
    for number, record in json_records(path, report):
        docid = id_of(record, DOC_KEYS, path, number, report)
        text = text_of(record, TEXT_KEYS)
        if docid is None or text is None:
            missing = "an id" if docid is None else "a text"
            keys = ", ".join(DOC_KEYS if docid is None else TEXT_KEYS)
            report.bad(path.name, number, f"has no field for {missing} ({keys})", repr(list(record)))
            continue
        yield number, docid, text_of(record, ("title",)) or "", text


def id_text_lines(path: Path, report: LoadReport):  # type: ignore[no-untyped-def]
    """Give (line number, id, text) of a two-column TSV; quotes are literal."""
    for number, line in text_lines(path, report):
        key, tab, text = line.partition("\t")
        if not tab or not key:
            report.bad(path.name, number, "has no tab; a line is: id TAB text", line)
            continue
        yield number, key, text


def read_queries(path: Path, report: LoadReport) -> dict[str, str]:
    """Read query texts by id, in the file's order."""
    found: dict[str, str] = {}
    rows = _query_records(path, report) if is_jsonl(path) else id_text_lines(path, report)
    for number, qid, text in rows:
        if qid in found and found[qid] != text:
            report.repaired(path.name, "query id repeated with another text: the first stays", number)
            continue
        found[qid] = text
    report.read(path.name, f"{len(found):,} queries")
    return found


def _query_records(path: Path, report: LoadReport):  # type: ignore[no-untyped-def]
    for number, record in json_records(path, report):
        qid = id_of(record, QUERY_KEYS, path, number, report)
        text = text_of(record, QUESTION_KEYS)
        if qid is None or text is None:
            keys = ", ".join((*QUERY_KEYS, *QUESTION_KEYS))
            report.bad(path.name, number, f"has no id or no text ({keys})", repr(list(record)))
            continue
        yield number, qid, text


def read_answers(path: Path, report: LoadReport) -> dict[str, tuple[str, ...]]:
    """Read reference answers by query id: JSONL with a list, or TSV with one answer a line."""
    found: dict[str, tuple[str, ...]] = {}
    if is_jsonl(path):
        for number, record in json_records(path, report):
            qid = id_of(record, QUERY_KEYS, path, number, report)
            given = answer_list(record)
            if qid is None or given is None:
                keys = ", ".join((*QUERY_KEYS, *ANSWER_KEYS))
                report.bad(path.name, number, f"has no id or no answers ({keys})", repr(list(record)))
                continue
            found[qid] = found.get(qid, ()) + given
    else:
        for _, qid, text in id_text_lines(path, report):
            found[qid] = (*found.get(qid, ()), text)
    report.read(path.name, f"answers for {len(found):,} queries")
    return found


def answer_list(record: dict[str, object]) -> tuple[str, ...] | None:
    """Take the answers of a record: a list of strings, or one string."""
    for key in ANSWER_KEYS:
        value = record.get(key)
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return tuple(value)
    return None
