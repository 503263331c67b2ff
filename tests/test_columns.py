"""Tables with a column map: ids and texts as they are written, and only the mapped columns in memory."""

from __future__ import annotations

import csv
import gzip
import json
import math
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import packtools as pt
from packtools.runs.columns import COLUMN_ROLES
from packtools.runs.rows import as_list

KINDS = ["csv", "tsv", "jsonl", "parquet"]
IDS = ["007", "72057594038135102", "18_19", "1e5", "NA", "nan", "None", "true", "0x10", "1.0", " a "]  # P86
LONG = {"qid": "q", "query": "question", "docid": "d", "text": "chunk", "score": "s"}


def write(path: Path, rows: list[dict]) -> Path:
    """Write a table by the library of its kind."""
    kind = path.suffix[1:]
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text(text, "utf-8", newline="")
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]), delimiter="\t" if kind == "tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


def raw(tmp_path, text: str | bytes, name: str = "x.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def found(run: pt.Run) -> list[tuple]:
    frame = run.candidates
    return list(zip(frame["qid"], frame["docid"], frame["rank"], strict=True))


def notes(run: pt.Run, kind: str) -> str:
    return "; ".join(map(str, run.report.of(kind)))


@pytest.mark.parametrize("kind", KINDS)
def test_ids_that_look_like_something_else_stay_text(tmp_path, kind):
    rows = [
        {
            "q": i,
            "question": f"why {i}?",
            "d": i,
            "chunk": f"text {i}",
            "s": "1.5" if kind != "parquet" else 1.5,
        }
        for i in IDS
    ]
    run = pt.load_run(write(tmp_path / f"x.{kind}", rows), columns=LONG)
    assert sorted(found(run)) == sorted((i, i, 1) for i in IDS)
    assert list(run.passages.index) == IDS
    assert run.queries["text"].to_dict() == {i: f"why {i}?" for i in IDS}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_join_with_other_files_as_text(tmp_path, kind):
    ids = [i for i in IDS if i.strip() == i]
    table = write(tmp_path / f"x.{kind}", [{"q": i, "d": i, "other": "z"} for i in ids])
    (tmp_path / "collection.tsv").write_text("".join(f"{i}\ttext {i}\n" for i in [*ids, "7", "100000.0"]))
    (tmp_path / "queries.tsv").write_text("".join(f"{i}\twhy {i}?\n" for i in ids))
    (tmp_path / "qrels.txt").write_text("".join(f"{i} 0 {i} 1\n" for i in ids))
    beside = [tmp_path / name for name in ("collection.tsv", "queries.tsv", "qrels.txt")]
    run = pt.load_run([table, *beside], columns={"qid": "q", "docid": "d"})
    assert run.queries["text"].to_dict() == {i: f"why {i}?" for i in ids}
    assert run.passages["text"].to_dict() == {i: f"text {i}" for i in ids}
    assert set(zip(run.qrels["qid"], run.qrels["docid"], strict=True)) == {(i, i) for i in ids}
    assert "passage text for 10 of 10 candidates (100%)" in notes(run, "joined")
    named = pt.load_run({"run": table, "collection": beside[0]}, columns={"qid": "q", "docid": "d"})
    assert sorted(found(named)) == sorted(found(run))


IDTEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)
PIECES = st.sampled_from(
    [",", '"', "\n", "\r\n", "\r", "\u2028", "\ufeff", "\t", "'", "\\", "a", "é", " ", "\0"]
)
TEXT = st.lists(PIECES, min_size=1, max_size=8).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(st.tuples(IDTEXT, IDTEXT, TEXT), min_size=1, max_size=5, unique_by=lambda r: r[1]))
@pytest.mark.parametrize("kind", KINDS)
def test_any_ids_and_texts_read_back_as_they_were_written(tmp_path, kind, rows):
    rows = [(q, d, text) for q, d, text in rows if not text.strip().startswith("[")] or [("q", "d", "t")]
    path = write(tmp_path / f"x.{kind}", [{"q": q, "unused": text, "d": d, "t": text} for q, d, text in rows])
    run = pt.load_run(path, columns={"qid": "q", "docid": "d", "text": "t"}, strict=True)
    assert run.passages["text"].to_dict() == {d: text for _, d, text in rows}
    assert {(q, d) for q, d, _ in found(run)} == {(q, d) for q, d, _ in rows}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lists=st.lists(st.lists(TEXT, min_size=1, max_size=4, unique=True), min_size=1, max_size=3))
@pytest.mark.parametrize("writer", ["json", "python", "jsonl", "parquet"])
def test_lists_read_back_as_they_were_written(tmp_path, writer, lists):
    cell = {"json": json.dumps, "python": repr}.get(writer, lambda value: value)
    kind = writer if writer in KINDS else "csv"
    rows = [
        {"q": str(i), "ids": cell([f"{i}-{n}" for n in range(len(ts))]), "ctx": cell(ts)}
        for i, ts in enumerate(lists)
    ]
    columns = {"qid": "q", "docid": "ids", "text": "ctx"}
    run = pt.load_run(write(tmp_path / f"x.{kind}", rows), columns=columns, strict=True)
    assert found(run) == [(str(i), f"{i}-{n}", n + 1) for i, ts in enumerate(lists) for n in range(len(ts))]
    assert list(run.passages["text"]) == [t for ts in lists for t in ts]


def test_long_form_ranks_by_score_and_rows_may_stand_anywhere(tmp_path):
    text = (
        "q,d,chunk,s,question\n"
        "q1,d1,one,0.1,why?\n"
        "q2,d1,one,-3,how?\n"  # another query in between
        "q1,d2,two,1.5e-05,\n"  # its question is told above
        "q1,d3,three,2,why?\n"
        "q1,d4,four,2,why?\n"  # a tie keeps the order of the file
    )
    run = pt.load_run(raw(tmp_path, text), columns=LONG)
    assert found(run) == [
        ("q1", "d3", 1), ("q1", "d4", 2), ("q1", "d1", 3), ("q1", "d2", 4), ("q2", "d1", 1),
    ]  # fmt: skip
    assert list(run.candidates["score"]) == [2.0, 2.0, 0.1, 1.5e-05, -3.0]
    assert run.queries["text"].to_dict() == {"q1": "why?", "q2": "how?"}
    assert "one row a candidate" in notes(run, "read")
    by_name = pt.load_run(raw(tmp_path, text), columns=LONG, ties="trec_eval")
    assert found(by_name)[:2] == [("q1", "d4", 1), ("q1", "d3", 2)]


@pytest.mark.parametrize("odd", ["nan", "NaN", "inf", "-inf", ""])
def test_a_score_that_is_not_finite_is_reported_and_placed_last(tmp_path, odd):
    text = f"q,d,chunk,s,question\nq,d1,one,{odd},why?\nq,d2,two,-3,why?\nq,d3,three,1,why?\n"
    run = pt.load_run(raw(tmp_path, text), columns=LONG)  # P92
    assert found(run) == [("q", "d3", 1), ("q", "d2", 2), ("q", "d1", 3)]
    assert math.isnan(run.candidates["score"].iloc[2])
    assert "score that is not a finite number, placed last (1, first at x.csv:2)" in notes(run, "repaired")
    with pytest.raises(pt.RunFormatError, match=r"x\.csv:2: score that is not a finite number"):
        pt.load_run(raw(tmp_path, text), columns=LONG, strict=True)


def test_a_rank_orders_where_there_is_no_score_and_breaks_its_ties(tmp_path):
    text = "q,d,chunk,r,s\nq,d1,one,2,5\nq,d2,two,1,5\nq,d3,three,3,9\n"
    columns = {"qid": "q", "docid": "d", "text": "chunk", "rank": "r"}
    assert [d for _, d, _ in found(pt.load_run(raw(tmp_path, text), columns=columns))] == ["d2", "d1", "d3"]
    run = pt.load_run(raw(tmp_path, text), columns={**columns, "score": "s"})
    assert [d for _, d, _ in found(run)] == ["d3", "d2", "d1"]
    assert "ranks disagree with its scores" in notes(run, "ignored")


def test_labels_are_qrels_with_their_grades(tmp_path):
    text = "q,d,chunk,label\nq,d1,one,3\nq,d2,two,0\nq,d3,three,\nq,d4,four,True\nq,d5,five,1.0\nq,d1,one,1\n"
    run = pt.load_run(
        raw(tmp_path, text), columns={"qid": "q", "docid": "d", "text": "chunk", "label": "label"}
    )
    judged = dict(zip(run.qrels["docid"], run.qrels["label"], strict=True))
    assert judged == {"d1": 3, "d2": 0, "d4": 1, "d5": 1}  # of a repeated passage the highest label
    assert "label" not in run.candidates
    assert "document repeated for a query: the best rank stays (1" in notes(run, "repaired")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_list_form_brings_answers_and_predictions(tmp_path, kind):
    as_cell = repr if kind == "csv" else lambda value: value
    rows = [
        {"question": "who?", "ctx": as_cell(["it's", 'a "b"']), "n": as_cell([2.5, 0.5]), "gt": as_cell(["x", "y"]), "out": "x!"},
        {"question": "why?", "ctx": as_cell(["c"]), "n": as_cell([1.0]), "gt": as_cell(["z"]), "out": "w"},
    ]  # fmt: skip
    columns = {"query": "question", "text": "ctx", "score": "n", "answers": "gt", "prediction": "out"}
    run = pt.load_run(write(tmp_path / f"x.{kind}", rows), columns=columns)
    assert list(run.queries.index) == ["row-1", "row-2"]
    assert [len(run.chunks(q)) for q in run.queries.index] == [2, 1]
    assert [c.text for c in run.chunks("row-1")] == ["it's", 'a "b"']
    assert list(run.answers) == [("x", "y"), ("z",)]
    assert list(run.predictions) == ["x!", "w"]
    assert "one row a query, with lists" in notes(run, "read")


def test_the_same_questions_have_the_same_ids_in_each_file(tmp_path):
    """So that runs without ids can be compared: by row in list form, by text in long form."""
    lists = [
        raw(tmp_path, f'question,ctx\n"{first}",{cell}\nhow?,"[""b""]"\n', name)
        for name, first, cell in (("a.csv", "why?", '"[""a""]"'), ("b.csv", "why\n\n?", '"[""a"", ""b""]"'))
    ]
    columns = {"query": "question", "text": "ctx"}
    assert [list(pt.load_run(path, columns=columns).queries.index) for path in lists] == [
        ["row-1", "row-2"]
    ] * 2
    one = raw(tmp_path, "question,ctx\nwhy?,a\nhow?,b\n", "c.csv")
    two = raw(tmp_path, "question,ctx\nhow?,b\nhow?,c\nwhy?,a\n", "d.csv")
    texts = [pt.load_run(path, columns=columns).queries["text"].to_dict() for path in (one, two)]
    assert texts[0] == texts[1]
    assert sorted(texts[0].values()) == ["how?", "why?"]


def test_a_skipped_row_does_not_move_the_ids_of_those_after_it(tmp_path):
    path = raw(tmp_path, 'question,ctx\nwhy?,"[""a""]"\nhow?,no list\nwho?,"[""b""]"\n')
    run = pt.load_run(path, columns={"query": "question", "text": "ctx"}, bad_lines="skip")
    assert run.queries["text"].to_dict() == {"row-1": "why?", "row-3": "who?"}
    assert "has no list in column 'ctx', as the rows above have (1, first at x.csv:3)" in notes(
        run, "skipped"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_column_lists_those_there_are_and_the_nearest(tmp_path, kind):
    path = write(tmp_path / f"x.{kind}", [{"question": "why?", "chunk": "a"}])
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(path, columns={"query": "questions", "text": "chunk"})
    assert str(error.value) == (
        f"load_run: x.{kind}: column 'questions' is unknown; known: 'question', 'chunk'. "
        "Did you mean 'question'?"
    )


def test_a_field_that_some_records_leave_out_is_no_missing_column(tmp_path):
    lines = '{"q": "a", "t": "one"}\n{"q": "b", "t": "two", "label": 1}\n'
    columns = {"qid": "q", "text": "t", "label": "label"}
    run = pt.load_run(raw(tmp_path, lines, "x.jsonl"), columns=columns)
    assert list(run.qrels["qid"]) == ["b"]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        # Line 4: the quoted text above it spans lines 2 and 3.
        ('q,t\na,"x\ny"\n,z\n', {"qid": "q", "text": "t"}, "x.csv:4 has no id in column 'q'"),
        ('q,t\na,"x\r\n\r\ny"\r\n , z\r\n', {"qid": "q", "text": "t"}, "x.csv:5 has no id in column 'q'"),
        ("q,t\na,x\n,z\n", {"query": "q", "text": "t"}, "x.csv:3 has an empty query in column 'q'"),
        ("q,d,t\na,1,x\na,,z\n", {"qid": "q", "docid": "d", "text": "t"}, "x.csv:3 has no id in column 'd'"),
        ("q,t\na,x\nb\n", {"qid": "q", "text": "t"}, "x.csv:3 has 1 fields; the first line has 2"),
        ("q,t\na,x\nb,y,z\n", {"qid": "q", "text": "t"}, "x.csv:3 has 3 fields; the first line has 2"),
        ("q,t\na,x\nb,y\rz\n", {"qid": "q", "text": "t"}, "x.csv:3 has a carriage return outside quotes"),
        ('q,t\na,x\nb,"y"z\n', {"qid": "q", "text": "t"}, "x.csv:3 is not CSV"),
        ('q,t\na,x\nb,"y\nc,z\n', {"qid": "q", "text": "t"}, "x.csv:3 opens a quote that is never closed"),
        ("q,t,s\na,x,high\n", {"qid": "q", "text": "t", "score": "s"}, "x.csv:2 has no number in column 's'"),
        ("q,t,s\na,x,1_0\n", {"qid": "q", "text": "t", "score": "s"}, "x.csv:2 has no number in column 's'"),
        ("q,t,r\na,x,\n", {"qid": "q", "text": "t", "rank": "r"}, "x.csv:2 has no rank in column 'r'"),
        ("q,t,l\na,x,0.5\n", {"qid": "q", "text": "t", "label": "l"}, "x.csv:2 has no whole number in column 'l'"),
        ("q,t,t\na,x,y\n", {"qid": "q", "text": "t"}, "x.csv has 2 columns named 't'"),
        ("", {"qid": "q", "text": "t"}, "x.csv has no first line of column names"),
        ("q,t\n", {"qid": "q", "text": "t"}, "x.csv holds no question with contexts"),
        # A cell cut at a spreadsheet's limit, and an array as numpy prints it.
        ('q,t\na,"[\'one\', \'tw"\n', {"qid": "q", "text": "t"}, "x.csv:2 has a list in column 't' that can't be read"),
        ("q,t\na,['one' 'two']\n", {"qid": "q", "text": "t"}, "x.csv:2 has a list in column 't' that can't be read"),
        ('q,t,s\na,"[""x"", ""y""]",[1]\n', {"qid": "q", "text": "t", "score": "s"}, "x.csv:2 has lists of unequal length"),
    ],
)  # fmt: skip
def test_a_bad_row_is_an_error_with_its_line(tmp_path, text, columns, message):
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(raw(tmp_path, text), columns=columns)
    assert message in str(error.value)


def test_bad_rows_are_skipped_and_counted_if_asked(tmp_path):
    text = b"q,t\na,x\n,y\nb\nc,\xff\nd,z\n\n"
    run = pt.load_run(raw(tmp_path, text), columns={"qid": "q", "text": "t"}, bad_lines="skip")
    assert list(run.queries.index) == ["a", "d"]
    assert sum(note.n for note in run.report.of("skipped")) == 3
    assert "blank line (1, first at x.csv:7)" in notes(run, "ignored")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_utf8_reads_with_and_without_a_mark(tmp_path, mark):
    run = pt.load_run(raw(tmp_path, mark + "q,t\nä,é\n".encode()), columns={"qid": "q", "text": "t"})
    assert found(run)[0][0] == "ä"


@pytest.mark.parametrize(
    ("name", "place"), [("x.csv", "x.csv:3 is not UTF-8 (byte 3)"), ("x.jsonl", "x.jsonl:1 is not UTF-8")]
)
def test_another_encoding_is_an_error_with_its_line_and_byte(tmp_path, name, place):
    data = "q,t\na,b\nc,é\n" if name == "x.csv" else '{"q": "é"}\n'
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(raw(tmp_path, data.encode("latin-1"), name), columns={"qid": "q", "text": "t"})
    assert place in str(error.value)


def test_gzip_reads_and_a_cut_file_says_where(tmp_path):
    data = gzip.compress("".join(["q,t\n", *(f"q{i},text {i * i}\n" for i in range(3000))]).encode())
    columns = {"qid": "q", "text": "t"}
    assert pt.load_run(raw(tmp_path, data, "x.csv.gz"), columns=columns).n_queries == 3000
    with pytest.raises(pt.RunFormatError, match=r"x\.csv\.gz is damaged after line"):
        pt.load_run(raw(tmp_path, data[: len(data) // 2], "x.csv.gz"), columns=columns)
    with pytest.raises(pt.RunFormatError, match=r"x\.parquet can't be read as Parquet"):
        pt.load_run(raw(tmp_path, b"PAR1 no more", "x.parquet"), columns=columns)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "'columns' must be a mapping of what a column holds to its name"),
        (["q"], "'columns' must be a mapping of what a column holds to its name"),
        ({"docids": "d"}, "role in 'columns' 'docids' is unknown; known: 'qid', 'query', 'docid'"),
        ({"qid": 3, "text": "t"}, "'columns['qid']' must be the name of a column; got 3"),
        ({"text": "t"}, "'columns' must be a map with qid or query; one of them tells the queries apart"),
        ({"qid": "q"}, "'columns' must be a map with text or docid"),
        ({"qid": "q", "docid": "d", "title": "t"}, "'columns' must be a map with text where it has title"),
    ],
)
def test_a_wrong_map_is_one_clear_error(tmp_path, columns, message):
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(raw(tmp_path, "q,t\na,b\n"), columns=columns)
    assert message in str(error.value)


def test_what_can_not_go_with_a_map_is_an_error(tmp_path):
    path, columns = raw(tmp_path, "q,t\na,b\n"), {"qid": "q", "text": "t"}
    for options, message in (
        ({"format": "dpr"}, "'format' must be None with 'columns'"),
        ({"run": "x"}, "'run' must be None with 'columns'"),
    ):
        with pytest.raises(pt.RunFormatError, match=message):
            pt.load_run(path, columns=columns, **options)
    for paths in (tmp_path, [], {"collection": path}):
        with pytest.raises(
            pt.RunFormatError, match="'paths' must be a table, or a list that starts with one"
        ):
            pt.load_run(paths, columns=columns)
    with pytest.raises(pt.RunFormatError, match=r"x\.txt is no table that can be read by column"):
        pt.load_run(raw(tmp_path, "q,t\n", "x.txt"), columns=columns)
    collection = raw(tmp_path, "a\tb\n", "collection.tsv")
    with pytest.raises(
        pt.RunFormatError, match=r"x\.csv has its own text, by 'columns'; collection\.tsv was given"
    ):
        pt.load_run([path, collection], columns=columns)
    with pytest.raises(pt.RunFormatError, match=r"x\.csv came without passage text"):
        pt.load_run(path, columns={"qid": "q", "docid": "t"})


def test_the_roles_are_those_that_the_documentation_names():
    assert all(role in pt.load_run.__doc__ for role in COLUMN_ROLES)


def test_numbers_as_ids_are_written_out_and_reported(tmp_path):
    path = raw(tmp_path, '{"q": 7, "d": 72057594038135102, "t": "x"}\n', "x.jsonl")
    columns = {"qid": "q", "docid": "d", "text": "t"}
    run = pt.load_run(path, columns=columns)
    assert found(run) == [("7", "72057594038135102", 1)]
    assert "numeric 'd' read as text" in notes(run, "ignored")
    for value in ("7.0", "true", "null", '[1, "a"]'):
        with pytest.raises(pt.RunFormatError, match=r"x\.jsonl:1 has no id in column 'q'"):
            pt.load_run(raw(tmp_path, f'{{"q": {value}, "d": 1, "t": "x"}}\n', "x.jsonl"), columns=columns)


def test_what_a_query_says_twice_in_two_ways_is_reported(tmp_path):
    text = "q,question,t,out\na,why?,x,yes\na,how?,y,no\n"
    columns = {"qid": "q", "query": "question", "text": "t", "prediction": "out"}
    run = pt.load_run(raw(tmp_path, text), columns=columns)
    assert (run.queries["text"]["a"], run.predictions["a"]) == ("why?", "yes")
    for name in ("query", "prediction"):
        assert f"another {name} for a query: the first stays (1, first at x.csv:3)" in notes(run, "repaired")


def test_a_text_in_brackets_is_a_text(tmp_path):
    text = 'q,t\na,[1]\na,[deleted]\na,"[""x"", ""y""]"\n'
    run = pt.load_run(raw(tmp_path, text), columns={"qid": "q", "text": "t"})
    assert list(run.passages["text"]) == ["[1]", "[deleted]", '["x", "y"]']
    assert "text that looks like a list: kept as text" in notes(run, "ignored")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["a", null, "b"]', ["a", None, "b"]),
        ("['it\\'s', \"b\", None]", ["it's", "b", None]),
        ("['a'\n 'b']", None),  # as numpy prints arrays: Python would join the two
        ("['a', 'b' 'c']", None),
        ("[18_19]", None),  # Python would read 1819
        ("[0x10]", None),
        ("[007]", None),
        ("['a', 1]", None),
        ("('a', 'b')", None),
        ("['a'", None),
        ("[__import__('os').getcwd()]", None),
        ("[" * 3000 + "]" * 3000, None),
        ("[" * 150 + "]" * 150, None),
        ("['\\d']", ["\\d"]),  # no such escape: Python warns, and keeps it
        ("text", None),
        (None, None),
        (3, None),
    ],
)
def test_a_list_written_as_text_is_read_and_nothing_is_run(text, expected):
    assert as_list(text) == expected


def test_lists_of_numbers_may_hold_nan():
    assert as_list("[0.5, inf, None]", numbers=True) == [0.5, math.inf, None]
    assert math.isnan(as_list("[nan]", numbers=True)[0])


def test_a_very_long_cell_is_read(tmp_path):
    long = "x" * 300_000  # over twice the limit that Python's reader has
    run = pt.load_run(raw(tmp_path, f"q,t\na,{long}\n"), columns={"qid": "q", "text": "t"})
    assert run.passages["text"].iloc[0] == long


MEASURED = """
import re, resource, sys
from pathlib import Path
import packtools as pt
def peak():
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, getrusage starts a child at the peak of its parent
        return int(re.search(r"VmHWM:\\s+([0-9]+) kB", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
columns = {"qid": "q", "docid": "d", "text": "t"}
for kind in sys.argv[2:]:
    pt.load_run(f"{sys.argv[1]}/small.{kind}", columns=columns)  # imports come first
before = peak()
for kind in sys.argv[2:]:
    print(kind, pt.load_run(f"{sys.argv[1]}/big.{kind}", columns=columns).n_queries, peak() - before)
"""


def test_memory_is_bounded_by_the_columns_asked_for(tmp_path):
    """Rows with an unused field of 5 kB: the peak stays well under the size of the file (P94)."""
    n, junk, kinds = 20_000, "z" * 5000, ["parquet", "csv", "jsonl"]
    for kind in kinds:
        write(tmp_path / f"small.{kind}", [{"q": "q", "d": "d", "t": "x", "unused": "z"}])
    with (tmp_path / "big.csv").open("w") as cells, (tmp_path / "big.jsonl").open("w") as lines:
        cells.write("q,d,t,unused\n")
        for i in range(n):
            cells.write(f"q{i},d{i},text {i},{junk}\n")
            lines.write(f'{{"q": "q{i}", "d": "d{i}", "t": "text {i}", "unused": "{junk}"}}\n')
    few = {
        name: [f"{start}{i}" for i in range(n)] for name, start in (("q", "q"), ("d", "d"), ("t", "text "))
    }
    table = pa.table({**few, "unused": pa.array([junk] * n)})
    pq.write_table(table, tmp_path / "big.parquet", compression="none", use_dictionary=False)
    command = [sys.executable, "-c", MEASURED, str(tmp_path), *kinds]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kib = {
        kind: (int(queries), int(grown)) for kind, queries, grown in map(str.split, done.stdout.splitlines())
    }
    for kind in kinds:
        size = (tmp_path / f"big.{kind}").stat().st_size
        assert size > 5000 * n
        assert kib[kind][0] == n
        assert kib[kind][1] * 1024 < size / 2
