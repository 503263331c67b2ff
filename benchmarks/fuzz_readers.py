"""Fuzz the readers with atheris: nothing but our own errors may come out of any file.

Usage: pip install atheris; python benchmarks/fuzz_readers.py CORPUS [-max_total_time=480]

CORPUS is a folder where inputs that reach new code are kept; an empty one is filled with a small
valid file of each kind. The first byte of an input chooses the reader and the next how it is packed and
whether bad lines are skipped; the rest is the file. Other options are libFuzzer's.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import atheris

with atheris.instrument_imports(include=["packtools.runs"]):
    from packtools import PacktoolsError
    from packtools.runs import tables, trec
    from packtools.runs.cases import Cases
    from packtools.runs.formats import FORMATS
    from packtools.runs.predictions import load_predictions
    from packtools.runs.report import LoadReport

ROLES: dict[str, Callable[[Path, LoadReport], object]] = {
    "run": trec.read_run,
    "collection": lambda path, report: tables.read_collection(path, {"d1", "2"}, report),
    "queries": tables.read_queries,
    "qrels": trec.read_qrels,
    "answers": tables.read_answers,
    "load_predictions": lambda path, report: load_predictions(path),
}
GOOD = {
    "run": b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1e-5 t\n",
    "collection": b"d1\tone\nd2\ttwo\n",
    "queries": b"q1\twho?\n",
    "qrels": b"q1 0 d1 1\nq1 0 d2 0\n",
    "answers": b"q1\tone\n",
}
JSON = {
    "collection": b'{"_id": "d1", "title": "T", "text": "one"}\n{"_id": 2, "text": "\\ud83e\\udde0"}\n',
    "queries": b'{"_id": "q1", "text": "who?"}\n',
    "answers": b'{"_id": "q1", "answers": ["one", "two"]}\n',
}
CASES = {
    "dpr": b'{"id": "q", "question": "?", "answers": ["x"], "ctxs": [{"id": "d", "title": "T", "text": "x", '
    b'"score": "1.5", "isgold": true, "hasanswer": false}, {"text": "y", "score": null}]}\n',
    "predictions": b'{"query_id": "q", "query": "?", "top_doc_ids": ["d"], "passages": ["x"], '
    b'"prediction": "x", "references": ["x"], "context_packing": {}}\n',
    "flashrag": b'[{"id": "q", "question": "?", "golden_answers": ["x"], '
    b'"output": {"retrieval_result": [{"id": "d", "contents": "\\"T\\"\\nx", "score": 1}], "pred": "x"}}]',
    "ragchecker": b'{"results": [{"query_id": "q", "query": "?", "gt_answer": "x", "response": "x", '
    b'"retrieved_context": [{"doc_id": "d", "text": "x"}]}]}',
    "ragas": b'{"user_input": "?", "retrieved_contexts": ["x"], "retrieved_context_ids": ["d"], '
    b'"response": "x", "reference": "x"}\n',
    "ramdocs": b'{"question": "?", "documents": [{"text": "x", "type": "correct", "answer": "x"}], '
    b'"gold_answers": ["x"]}\n',
    "hotpotqa": b'[{"_id": "q", "question": "?", "answer": "x", "context": [["T", ["a.", "b."]]], '
    b'"supporting_facts": [["T", 0]]}]',
    "squad": b'{"data": [{"title": "T", "paragraphs": [{"context": "x", '
    b'"qas": [{"id": "q", "question": "?", "answers": [{"text": "x"}]}]}]}]}',
    "trec_rag": b'{"query": {"qid": 1, "text": "?"}, "candidates": [{"docid": "d", "score": 1.5, '
    b'"doc": {"title": "T", "segment": "x", "start_char": 0}}]}\n',
}
HOME = Path(mkdtemp())
TARGETS = [(name, ".txt") for name in ROLES] + [
    (name, ".jsonl") for name in (*JSON, *FORMATS, "load_predictions")
]


def seeds() -> list[bytes]:
    """Give an input for every reader, plain and packed."""
    out = []
    for number, (name, suffix) in enumerate(TARGETS):
        kind = "predictions" if name == "load_predictions" else name
        good = (JSON if suffix == ".jsonl" and kind in JSON else GOOD | CASES).get(kind, b"{}\n")
        out += [bytes([number, 0]) + good, bytes([number, 1]) + gzip.compress(good)]
        out += [bytes([number, 2]) + good.replace(b"\n", b"\r\n"), bytes([number, 6]) + good]
    return out


def one(data: bytes) -> None:
    """Read one input."""
    if len(data) < 3:
        return
    (name, suffix), flags = TARGETS[data[0] % len(TARGETS)], data[1]
    path = HOME / (name + suffix + (".gz" if flags & 1 else ".zst" if flags & 8 else ""))
    path.write_bytes(data[2:])
    report = LoadReport(strict=bool(flags & 4), bad_lines="skip" if flags & 2 else "raise")
    with suppress(PacktoolsError):
        if name in ROLES:
            ROLES[name](path, report)
            return
        cases = Cases(path, report, FORMATS[name].what)
        for number, case in FORMATS[name].read(path, report):
            cases.add(number, case)
        cases.run(name)


def main() -> None:
    """Fill the corpus and run."""
    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        for number, seed in enumerate(seeds()):
            (corpus / f"seed-{number:03d}").write_bytes(seed)
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
