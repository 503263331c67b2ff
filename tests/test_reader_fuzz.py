"""Whatever a file holds: one of our errors or a run, and never another id or text than the file's."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from readers import READERS, Reader, Record

import packtools as pt
from packtools.runs.formats import FORMATS
from packtools.runs.report import LoadReport

every = pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())


def quick(n: int) -> settings:
    return settings(
        max_examples=n, deadline=None, derandomize=True, database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def outcome(read: Callable[[], Any]) -> Any:
    """Give what a reader gives, or None for one of our errors, in one line; anything else is a failure."""
    try:
        return read()
    except pt.PacktoolsError as error:
        message = str(error)
    assert message
    assert "\n" not in message
    return None


# --- valid files come back as they were written -------------------------------------------------

ODD = st.sampled_from(["007", "NA", "1e5", "null", '"', "'", "\\", "\\n", "#", "\u2028", "\x85", "\xa0", "\x0b", "\x1c",
                       "a b", ",", "é", "e\u0301", "\U0001f9e0", "\x00", "\ufeff", "d" * 40])  # fmt: skip
ANY = st.lists(ODD | st.text(max_size=6), min_size=1, max_size=3).map("".join)
SPACES = " \t\n\r\x0b\x0c"


def is_id_between_tabs(value: str) -> bool:
    """Not what a table of lines can't hold, nor padding, a comment or a byte-order mark at the start."""
    return not re.search("[\t\n\r]", value) and value == value.strip(" ") and value[0] not in "#\ufeff"


IDS = ANY.filter(lambda v: v.strip() and v.strip(SPACES) and v.isprintable() is not None)
TAB_IDS = IDS.filter(is_id_between_tabs)
TAB_TEXTS = (ANY | st.just("")).filter(lambda v: not re.search("[\n\r]", v))
UNIQUE = {"min_size": 1, "max_size": 4, "unique_by": (lambda r: r.qid, lambda r: r.docid)}
TAB_RECORDS = st.lists(st.builds(Record, TAB_IDS, TAB_IDS, TAB_TEXTS), **UNIQUE)
JSON_RECORDS = st.lists(st.builds(Record, IDS, IDS, ANY | st.just("")), **UNIQUE)


@every
@quick(20)
@given(data=st.data(), packed=st.booleans())
def test_a_valid_file_is_read_as_it_was_written(folder, reader, data, packed):
    records = data.draw(JSON_RECORDS if reader.is_json else TAB_RECORDS)
    lines = reader.lines(records)
    if not reader.is_json:  # what looks like four columns between blanks is refused
        assume(
            not any(re.fullmatch("[^ \t]+[ \t]+Q?0[ \t]+[^ \t]+[ \t]+[^ \t]+", line) for line in lines[1:])
        )
        assume(
            reader.head
            or not re.search("[ \t]Q?0[ \t]", lines[0])
            or "Q0\t" in lines[0]
            or "\t0\t" in lines[0]
        )
    path = written(folder, reader.file, "".join(line + "\n" for line in lines).encode(), packed)
    assert reader.read(path, LoadReport()) == reader.expected(records)


def written(folder: Path, file: str, data: bytes, packed: bool = False) -> Path:
    path = folder / (file + ".gz" if packed else file)
    path.write_bytes(gzip.compress(data, 1) if packed else data)
    return path


# --- damaged files ------------------------------------------------------------------------------

INSERTED = st.sampled_from([
    b"\xef\xbb\xbf", b"\x00", b"\r", b"\n", b"\n\n", b"\t", b" ", b"\x1a", b"\x85", b"\xff\xfe", b"\xed\xa0\xbd",
    b"\\ud83d", b"\\u0000", b'"', b"{", b"}", b"[" * 60, b"[" * 3000, b"9" * 30, b"9" * 5000, b"-", b"1e999", b"NaN",
    b"null", b"true", b",", b":", b"\xe2\x80\xa8",
]) | st.binary(min_size=1, max_size=4)  # fmt: skip


@st.composite
def damaged(draw, data: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 3))):
        at, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        lines = data.split(b"\n")
        data = draw(st.sampled_from([
            data[:at],  # cut
            data[:at] + draw(INSERTED) + data[at:],
            data[:at] + draw(INSERTED) + data[end:],
            data[:at] + data[at:end][::-1] + data[end:],
            b"\n".join([*lines, *lines[:1]]),
            b"\n".join(lines[::-1]),
        ]))  # fmt: skip
    return data


def of_file(data: bytes, value: str, is_json: bool) -> bool:
    """Whether a file says this value, as far as a plain look tells."""
    if value.encode() in data:
        return True
    return is_json and any(value in said(json_or_none(line)) for line in data.split(b"\n"))


def json_or_none(line: bytes) -> Any:
    try:
        return json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        return None


def said(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*map(said, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(said, value)) if value else set()
    return {str(value)}


TWO = [Record("q1", "d1", "first text"), Record("q2", "d2", "second\u2028text"), Record("3", "4", "5")]


@every
@quick(30)
@given(data=st.data(), skip=st.booleans(), strict=st.booleans())
def test_a_damaged_file_is_one_of_our_errors_or_what_it_says(folder, reader, data, skip, strict):
    raw = "".join(line + "\n" for line in reader.lines(TWO)).encode()
    raw = data.draw(damaged(raw) | st.binary(max_size=60))
    report = LoadReport(strict=strict, bad_lines="skip" if skip else "raise")
    rows = outcome(lambda: reader.read(written(folder, reader.file, raw), report))
    if not report.of("repaired"):
        for value in (value for row in rows or () for value in row):
            assert of_file(raw, value, reader.is_json) or re.fullmatch(r"text-[0-9a-f]{12}", value)


@pytest.mark.parametrize("reader", [READERS["TREC run"], READERS["DPR"]], ids=["TREC run", "DPR"])
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@quick(25)
@given(data=st.data())
def test_a_damaged_packed_file_is_one_of_our_errors(folder, reader, suffix, data):
    import zstandard

    raw = "".join(line + "\n" for line in reader.lines(TWO)).encode()
    packed = gzip.compress(raw) if suffix == ".gz" else zstandard.compress(raw)
    path = written(folder, reader.file + suffix, data.draw(damaged(packed) | st.binary(max_size=40)))
    outcome(lambda: reader.read(path, LoadReport()))


# --- JSON of every shape ------------------------------------------------------------------------

KEYS = st.sampled_from(sorted({
    "_id", "id", "qid", "query_id", "docid", "doc_id", "title", "text", "contents", "question", "query", "answers",
    "golden_answers", "references", "ctxs", "score", "isgold", "hasanswer", "passages", "top_doc_ids", "prediction",
    "context_packing", "output", "retrieval_result", "pred", "results", "retrieved_context", "response", "gt_answer",
    "user_input", "retrieved_contexts", "retrieved_context_ids", "reference", "documents", "gold_answers", "type",
    "answer", "context", "supporting_facts", "data", "paragraphs", "qas", "candidates", "doc", "segment", "inputs",
}))  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "x", "q1", "1.5", "\ud83d", "nan"])
    | st.just(10**400)
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def bent(draw, value: Any) -> Any:
    """Put another value in place of one somewhere inside."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        out = value.copy()
        out[key] = draw(bent(value[key]))
        return out
    return draw(VALUES)


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.is_json])
@quick(25)
@given(data=st.data(), skip=st.booleans())
def test_json_of_every_shape_is_one_of_our_errors_or_a_run(folder, name, data, skip):
    reader: Reader = READERS[name]
    good = json.loads(reader.line(TWO[0]))
    raw = "".join(json.dumps(data.draw(bent(good))) + "\n" for _ in range(2)).encode()
    report = LoadReport(bad_lines="skip" if skip else "raise")
    outcome(lambda: reader.read(written(folder, reader.file, raw), report))


@pytest.mark.parametrize("name", FORMATS)
@quick(12)
@given(value=VALUES, skip=st.booleans(), strict=st.booleans())
def test_any_json_given_to_load_run_is_one_of_our_errors_or_a_run(folder, name, value, skip, strict):
    path = written(folder, "any.json", json.dumps(value).encode())
    bad_lines = "skip" if skip else "raise"
    outcome(lambda: pt.load_run(path, format=name, strict=strict, bad_lines=bad_lines))


@pytest.mark.parametrize("role", ["run", "collection", "queries", "qrels", "answers"])
@quick(15)
@given(data=st.data(), skip=st.booleans())
def test_bytes_in_any_role_are_one_of_our_errors_or_a_run(folder, role, data, skip):
    parts = {"run": "TREC run", "collection": "collection TSV", "queries": "queries JSONL", "qrels": "TREC qrels",
             "answers": "answers JSONL"}  # fmt: skip
    raw = {
        part: "".join(line + "\n" for line in READERS[name].lines(TWO)).encode()
        for part, name in parts.items()
    }
    raw[role] = data.draw(damaged(raw[role]) | st.binary(max_size=60))
    paths = {part: written(folder, READERS[name].file, raw[part]) for part, name in parts.items()}
    run = outcome(lambda: pt.load_run(paths, bad_lines="skip" if skip else "raise"))
    for qid in () if run is None else run.queries.index:
        assert all(of_file(raw["collection"], chunk.text, False) for chunk in run.chunks(qid))
