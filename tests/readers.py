"""Every reader behind one face, so that a case or a fuzz strategy is written once for all of them.

A reader joins by one line in `READERS`: how it writes one record, how it reads a file back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from packtools.runs.cases import Cases
from packtools.runs.formats import FORMATS
from packtools.runs.predictions import load_predictions
from packtools.runs.report import LoadReport
from packtools.runs.tables import read_answers, read_collection, read_queries
from packtools.runs.trec import read_qrels, read_run


class Record(NamedTuple):
    """One question with one passage."""

    qid: str
    docid: str
    text: str


class Everything:
    """A collection's `wanted` that wants all ids."""

    def __contains__(self, docid: object) -> bool:
        return True


@dataclass(frozen=True)
class Reader:
    """How records are written in a format, and what reading them gives."""

    file: str
    line: Callable[[Record], str]
    read: Callable[[Path, LoadReport], list[tuple[str, ...]]]
    """Gives the fields of `holds` of every record, in the order of the file."""
    holds: tuple[str, ...]
    head: str = ""
    cut: str = ""
    """A last line that was cut, which can't be taken for a whole one."""
    why: str = ""
    """What is said of the cut line."""

    @property
    def is_json(self) -> bool:
        return ".json" in self.file

    def lines(self, records: Sequence[Record]) -> list[str]:
        return [*([self.head] if self.head else []), *map(self.line, records)]

    def write(self, path: Path, records: Sequence[Record], end: str = "\n") -> Path:
        path.write_bytes("".join(line + end for line in self.lines(records)).encode())
        return path

    def expected(self, records: Sequence[Record]) -> list[tuple[str, ...]]:
        return [tuple(getattr(r, name) for name in self.holds) for r in records]


def dumps(**values: object) -> str:
    return json.dumps(values, ensure_ascii=False)


def frame(read: Callable, *columns: str) -> Callable[[Path, LoadReport], list[tuple[str, ...]]]:
    def rows(path: Path, report: LoadReport) -> list[tuple[str, ...]]:
        table = read(path, report)
        return list(zip(*(table[c].tolist() for c in columns), strict=True))

    return rows


def collection(path: Path, report: LoadReport) -> list[tuple[str, ...]]:
    table = read_collection(path, Everything(), report)
    return list(zip(table.index, table["text"], strict=True))


def answers(path: Path, report: LoadReport) -> list[tuple[str, ...]]:
    return [(qid, text) for qid, texts in read_answers(path, report).items() for text in texts]


def predictions(path: Path, report: LoadReport) -> list[tuple[str, ...]]:
    loaded = load_predictions(path)
    report.notes.extend(loaded.report.notes)
    return [(r.qid, r.top_doc_ids[0], r.passages[0]) for r in loaded.rows.values()]


def cases(name: str) -> Callable[[Path, LoadReport], list[tuple[str, ...]]]:
    """Read a file that is a run by itself, in a format of `FORMATS`."""

    def rows(path: Path, report: LoadReport) -> list[tuple[str, ...]]:
        found = Cases(path, report, FORMATS[name].what)
        for number, case in FORMATS[name].read(path, report):
            found.add(number, case)
        table = found.run("x").candidates
        texts = found.passages
        return [(q, d, texts[d][1]) for q, d in zip(table["qid"], table["docid"], strict=True)]

    return rows


RUN, JUDGED = ("qid", "docid"), frame(read_qrels, "qid", "docid")
READERS: dict[str, Reader] = {
    "TREC run": Reader(
        "x.run", lambda r: f"{r.qid}\tQ0\t{r.docid}\t1\t2.5\tt", frame(read_run, *RUN), RUN,
        cut="q9\tQ0\td9\t1\t2.", why="has 5 fields; a TREC run line has 6",
    ),
    "MS MARCO run": Reader(
        "run.tsv", lambda r: f"{r.qid}\t{r.docid}\t1", frame(read_run, *RUN), RUN,
        cut="q9\td9", why="has 2 fields; the lines above have 3",
    ),
    "TREC qrels": Reader(
        "qrels.txt", lambda r: f"{r.qid}\t0\t{r.docid}\t1", JUDGED, RUN,
        cut="9\t0\t99", why="has 3 fields; the lines above have 4",
    ),
    "BEIR qrels": Reader(
        "test.tsv", lambda r: f"{r.qid}\t{r.docid}\t1", JUDGED, RUN, head="query-id\tcorpus-id\tscore",
        cut="9\t99", why="has 2 fields; the lines above have 3",
    ),
    "qrels of two columns": Reader(
        "qrels.tsv", lambda r: f"{r.qid}\t{r.docid}", JUDGED, RUN, cut="9", why="has 1 fields",
    ),
    "collection TSV": Reader(
        "collection.tsv", lambda r: f"{r.docid}\t{r.text}", collection, ("docid", "text"),
        cut="d9", why="has no tab; a line is: id TAB text",
    ),
    "collection JSONL": Reader(
        "corpus.jsonl", lambda r: dumps(_id=r.docid, title="", text=r.text), collection, ("docid", "text"),
        cut='{"_id": "d9", "te', why="is not JSON",
    ),
    "queries TSV": Reader(
        "queries.tsv", lambda r: f"{r.qid}\t{r.text}", lambda p, n: list(read_queries(p, n).items()),
        ("qid", "text"), cut="q9", why="has no tab; a line is: id TAB text",
    ),
    "queries JSONL": Reader(
        "queries.jsonl", lambda r: dumps(_id=r.qid, text=r.text),
        lambda p, n: list(read_queries(p, n).items()), ("qid", "text"), cut='{"_id": "q9"', why="is not JSON",
    ),
    "answers TSV": Reader(
        "answers.tsv", lambda r: f"{r.qid}\t{r.text}", answers, ("qid", "text"),
        cut="q9", why="has no tab; a line is: id TAB text",
    ),
    "answers JSONL": Reader(
        "answers.jsonl", lambda r: dumps(_id=r.qid, answers=[r.text]), answers, ("qid", "text"),
        cut='{"_id": "q9", "answers": ["x"', why="is not JSON",
    ),
    "DPR": Reader(
        "x.jsonl", lambda r: dumps(id=r.qid, question="who?", ctxs=[{"id": r.docid, "text": r.text}]),
        cases("dpr"), ("qid", "docid", "text"), cut='{"id": "q9", "question": "w', why="is not JSON",
    ),
    "predictions": Reader(
        "predictions.jsonl",
        lambda r: dumps(query_id=r.qid, top_doc_ids=[r.docid], passages=[r.text], prediction=""),
        predictions, ("qid", "docid", "text"), cut='{"query_id": "q9", ', why="is not JSON",
    ),
    "predictions as a run": Reader(
        "predictions.jsonl",
        lambda r: dumps(query_id=r.qid, query="?", top_doc_ids=[r.docid], passages=[r.text], prediction=""),
        cases("predictions"), ("qid", "docid", "text"), cut='{"query_id": "q9", ', why="is not JSON",
    ),
    "FlashRAG": Reader(
        "x.jsonl",
        lambda r: dumps(id=r.qid, question="?", output={"retrieval_result": [{"id": r.docid, "contents": f"\n{r.text}"}]}),
        cases("flashrag"), ("qid", "docid", "text"), cut='{"id": "q9", "question": "w', why="is not JSON",
    ),
    "ragas": Reader(
        "x.jsonl",
        lambda r: dumps(id=r.qid, user_input="?", retrieved_contexts=[r.text], retrieved_context_ids=[r.docid]),
        cases("ragas"), ("qid", "docid", "text"), cut='{"id": "q9", "user_in', why="is not JSON",
    ),
    "TREC RAG requests": Reader(
        "x.jsonl",
        lambda r: dumps(query={"qid": r.qid, "text": "?"}, candidates=[{"docid": r.docid, "doc": {"segment": r.text}}]),
        cases("trec_rag"), ("qid", "docid", "text"), cut='{"query": {"qid": "q9", "te', why="is not JSON",
    ),
}  # fmt: skip
