"""What files do to readers, on every reader: each case of damage or oddity, with what must come of it."""

from __future__ import annotations

import gzip
import json
import math
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from readers import READERS, Reader, Record

import packtools as pt
from packtools.runs.report import LoadReport
from packtools.runs.tables import read_collection, read_queries
from packtools.runs.trec import read_qrels, read_run

TWO = [Record("q1", "d1", "first text"), Record("q2", "d2", "second text")]
MARKS = "one\u2028two\u2029three\u0085four"
every = pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
with_text = pytest.mark.parametrize(
    "reader", [r for r in READERS.values() if "text" in r.holds], ids=[k for k, r in READERS.items() if "text" in r.holds]
)  # fmt: skip
with_tabs = pytest.mark.parametrize(
    "reader", [r for r in READERS.values() if not r.is_json], ids=[k for k, r in READERS.items() if not r.is_json]
)  # fmt: skip


def read(reader: Reader, path: Path, **options) -> tuple[list[tuple[str, ...]], LoadReport]:
    report = LoadReport(**options)
    return reader.read(path, report), report


def amounts(report: LoadReport, kind: str) -> dict[str, int]:
    return {note.what: note.n for note in report.of(kind)}


@every
def test_what_was_written_is_read(reader, tmp_path):
    assert read(reader, reader.write(tmp_path / reader.file, TWO))[0] == reader.expected(TWO)


# --- P82: a file that was cut -------------------------------------------------------------------


@every
def test_a_cut_last_line_names_file_line_rule_and_the_line(reader, tmp_path):
    path = reader.write(tmp_path / reader.file, TWO)
    number = path.read_bytes().count(b"\n") + 1
    with path.open("a") as stream:
        stream.write(reader.cut)
    with pytest.raises(pt.RunFormatError) as error:
        read(reader, path)
    message = str(error.value)
    assert f"{reader.file}:{number} {reader.why}" in message
    assert f"the line is {reader.cut!r}" in message
    if reader is not READERS["predictions"]:  # all or nothing, as in the published report
        rows, report = read(reader, path, bad_lines="skip")
        assert rows == reader.expected(TWO)
        assert [note.n for note in report.of("skipped")] == [1]


@every
def test_a_cut_gzip_is_damaged(reader, tmp_path):
    many = [Record(f"q{i}", f"d{i}", f"text {i * i}") for i in range(3000)]
    data = gzip.compress(reader.write(tmp_path / reader.file, many).read_bytes())
    path = tmp_path / (reader.file + ".gz")
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(pt.RunFormatError, match=r"\.gz is damaged after line \d"):
        read(reader, path)


# --- P83: blank lines, line ends, byte-order marks ----------------------------------------------


@every
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_are_ignored_and_counted(reader, tmp_path, end):
    lines = reader.lines(TWO)
    path = tmp_path / reader.file
    path.write_bytes(end.join([*lines[:-1], "", "  ", lines[-1]]).encode())  # no line end at the end
    rows, report = read(reader, path)
    assert rows == reader.expected(TWO)
    assert amounts(report, "ignored")["blank line"] == 2


@every
def test_a_byte_order_mark_is_no_part_of_the_first_field(reader, tmp_path):
    path = reader.write(tmp_path / reader.file, TWO)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read(reader, path)[0] == reader.expected(TWO)


@every
def test_gzip_is_read_like_plain(reader, tmp_path):
    data = reader.write(tmp_path / reader.file, TWO).read_bytes()
    path = tmp_path / (reader.file + ".gz")
    path.write_bytes(gzip.compress(data[:20]) + gzip.compress(data[20:]))  # two members, as cat makes them
    assert read(reader, path)[0] == reader.expected(TWO)


# --- P85, P86, P88, P89, P103: ids and texts come back as they were written ---------------------


@with_text
def test_line_separators_inside_a_text_are_text(reader, tmp_path):
    records = [Record("q1", "d1", MARKS), Record("q2", "d2", "x\x0b\x0c\x1c\x1d\x1e y")]  # P85
    assert read(reader, reader.write(tmp_path / reader.file, records))[0] == reader.expected(records)


@every
def test_line_separators_inside_an_id_are_part_of_it(reader, tmp_path):
    records = [Record(f"q{MARKS}", f"d{MARKS}", "x"), Record("\u2028x", "\u00a0", "y")]
    assert read(reader, reader.write(tmp_path / reader.file, records))[0] == reader.expected(records)


@every
def test_ids_that_look_like_something_else_stay_text(reader, tmp_path):
    odd = ["007", "7", "72057594038135102", "18_19", "1e5", "NA", "nan", "None", "true", "0x10", "1.0", "-0"]
    records = [Record(f"{i}", f"{i}", "x") for i in odd]  # P86
    assert read(reader, reader.write(tmp_path / reader.file, records))[0] == reader.expected(records)


@every
@pytest.mark.parametrize("name", ['"d1', "'d1'", '""', "doc one", "d,1", "d\\1", "d#1", "<b>&amp;", "d1;"])
def test_quotes_spaces_and_marks_are_literal(reader, tmp_path, name):
    records = [Record(f"q{name}", name, f'{name} "x" \\n'), Record("q2", "d2", '"')]  # P88, P89
    assert read(reader, reader.write(tmp_path / reader.file, records))[0] == reader.expected(records)


@every
def test_composed_and_decomposed_accents_stay_as_they_are(reader, tmp_path):
    records = [
        Record("caf\u00e9", "caf\u00e9", "caf\u00e9"),
        Record("cafe\u0301", "cafe\u0301", "cafe\u0301"),
    ]
    assert read(reader, reader.write(tmp_path / reader.file, records))[0] == reader.expected(records)


def test_composed_and_decomposed_answers_are_equal(tmp_path):
    READERS["TREC run"].write(tmp_path / "x.run", [Record("q1", "d1", "")])
    READERS["collection TSV"].write(tmp_path / "collection.tsv", [Record("", "d1", "the caf\u00e9 there")])
    READERS["answers TSV"].write(tmp_path / "answers.tsv", [Record("q1", "", "cafe\u0301")])
    packed = pt.prepare(pt.load_run(tmp_path), counter="chars").evaluate(pt.PackerConfig(budget=99))
    assert packed.per_query.loc["q1", "answer_retention"] == 1.0  # P103


def test_ids_join_across_files_as_text(tmp_path):
    odd = ["007", "72057594038135102", "18_19", "1e5"]
    records = [Record(i, i, f"text {i}") for i in odd]
    for name, file in (("TREC run", "x.run"), ("collection JSONL", "corpus.jsonl"), ("TREC qrels", "qrels.txt"),
                       ("queries TSV", "queries.tsv"), ("answers JSONL", "answers.jsonl")):  # fmt: skip
        READERS[name].write(tmp_path / file, records)
    run = pt.load_run(tmp_path)
    assert [run.chunks(i)[0].text for i in odd] == [f"text {i}" for i in odd]
    assert [run.answers[i] for i in odd] == [(f"text {i}",) for i in odd]
    assert run.qrels.to_numpy().tolist() == [[i, i, 1] for i in odd]


@pytest.mark.parametrize("name", [k for k, r in READERS.items() if r.is_json])
@pytest.mark.parametrize("value", ["1.0", "1e5", "true", "[1]", '"\\ud83d"', "{}"])
def test_json_ids_that_are_no_ids_are_never_made_up(tmp_path, name, value):
    reader = READERS[name]
    for key in ("qid", "docid"):
        if key not in reader.holds:
            continue
        record = Record(**{"qid": "q1", "docid": "d1", "text": "x", key: "HERE"})
        path = tmp_path / reader.file
        path.write_text(reader.line(record).replace('"HERE"', value) + "\n")
        with pytest.raises(pt.RunFormatError, match=rf"{reader.file}:1"):
            read(reader, path)


# --- P88: fields are never shifted --------------------------------------------------------------


def test_a_space_in_an_id_before_a_seventh_field_shifts_nothing(tmp_path):
    (tmp_path / "x.run").write_text("q1\tQ0\tdoc 1\t2\t1.5\tt\tjunk\n")
    table = read_run(tmp_path / "x.run", LoadReport())
    assert table.astype(object).to_numpy().tolist() == [["q1", "doc 1", 2, 1.5]]


@pytest.mark.parametrize("line", ["q1\t0 d1 1", "q1 0\td1 1", "q1 0 d1\t1", "q1 0\td1\t1", "q1\t0 d1\t1"])
def test_qrels_that_mix_tabs_and_blanks_are_not_guessed(tmp_path, line):
    (tmp_path / "qrels.txt").write_text(line + "\n")
    with pytest.raises(pt.RunFormatError, match=r"qrels\.txt:1 has \d fields by tabs, and 4 by blanks"):
        read_qrels(tmp_path / "qrels.txt", LoadReport())


@pytest.mark.parametrize("line", ["\td1\t1", "q1\t\t1", "q1\t0\t\t1"])
def test_empty_ids_in_qrels_name_the_line(tmp_path, line):
    (tmp_path / "qrels.txt").write_text(line + "\n")
    with pytest.raises(pt.RunFormatError, match=r"qrels\.txt:1 has an empty id"):
        read_qrels(tmp_path / "qrels.txt", LoadReport())


def test_a_first_judgement_with_a_bad_label_is_no_header(tmp_path):
    (tmp_path / "test.tsv").write_text("q1\td1\t1.0\n")
    with pytest.raises(pt.RunFormatError, match=r"test\.tsv:1 has 3 fields or no whole label"):
        read_qrels(tmp_path / "test.tsv", LoadReport())


# --- P91: the same thing twice ------------------------------------------------------------------

TWICE = {
    "MS MARCO run": ([("q1", "d1"), ("q1", "d1")], None, ""),  # `Run.from_frames` keeps the best rank
    "TREC qrels": ([("q1", "d1")], "repaired", "document judged twice for a query: the highest label stays"),
    "BEIR qrels": ([("q1", "d1")], "repaired", "document judged twice for a query: the highest label stays"),
    "collection TSV": ([("d1", "x")], "ignored", "id repeated with the same text"),
    "collection JSONL": ([("d1", "x")], "ignored", "id repeated with the same text"),
    "queries TSV": ([("q1", "x")], None, ""),
    "queries JSONL": ([("q1", "x")], None, ""),
    "DPR": (None, "", r"x\.jsonl:2 repeats question id 'q1'"),
    "predictions": (None, "", r"predictions\.jsonl:2: query_id 'q1' is already in line 1"),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_record_that_stands_twice(tmp_path, name):
    reader, (rows, kind, what) = READERS[name], TWICE[name]
    path = reader.write(tmp_path / reader.file, [Record("q1", "d1", "x")] * 2)
    if rows is None:
        with pytest.raises(pt.RunFormatError, match=what):
            read(reader, path)
        return
    found, report = read(reader, path)
    assert found == rows
    if kind is not None:
        assert amounts(report, kind)[what] == 1


def test_a_document_twice_in_a_dpr_list_keeps_its_best_rank(tmp_path):
    ctxs = [{"id": "d1", "text": "a", "score": 2}, {"id": "d2", "text": "b", "score": 1.5},
            {"id": "d1", "text": "a", "score": 1}]  # fmt: skip
    (tmp_path / "x.jsonl").write_text(json.dumps({"id": "q", "question": "?", "ctxs": ctxs}) + "\n")
    run = pt.load_run(tmp_path / "x.jsonl")
    assert run.candidates[["docid", "rank", "score"]].to_numpy().tolist() == [["d1", 1, 2.0], ["d2", 2, 1.5]]
    assert amounts(run.report, "repaired") == {"document repeated for a query: the best rank stays": 1}


def test_the_highest_of_two_labels_stays(tmp_path):
    (tmp_path / "qrels.txt").write_text("q 0 d 2\nq 0 d -1\nq 0 e 0\nq 0 e 3\n")
    assert read_qrels(tmp_path / "qrels.txt", LoadReport())["label"].tolist() == [2, 3]


# --- P92, P95: scores, flags and answers of DPR files -------------------------------------------


def dpr(tmp_path: Path, *ctxs: dict, **fields) -> Path:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"id": "q", "question": "?", "ctxs": list(ctxs)} | fields) + "\n")
    return path


@pytest.mark.parametrize(
    ("scores", "read"),
    [
        (["3", "1.5e-05", "-3"], [3.0, 1.5e-05, -3.0]),
        ([3, math.nan, 1], [3.0, 3.0, 1.0]),
        ([math.inf, 2, "nan"], [2.0, 2.0, 2.0]),
        (["3", "1_0", "1"], [3.0, 3.0, 1.0]),  # Python would take 1_0 for 10
    ],
)
def test_dpr_scores(tmp_path, scores, read):
    path = dpr(tmp_path, *({"text": f"t{i}", "score": s} for i, s in enumerate(scores)))
    assert pt.load_run(path).candidates["score"].tolist() == read


def test_flags_that_are_not_there_are_not_made_up(tmp_path):
    run = pt.load_run(dpr(tmp_path, {"id": "a", "text": "x", "isgold": None}, {"id": "b", "text": "y"}))
    assert run.qrels is None
    assert "hasanswer" not in run.candidates
    run = pt.load_run(dpr(tmp_path, {"id": "a", "text": "x", "isgold": 1, "hasanswer": False}))
    assert run.qrels.to_numpy().tolist() == [["q", "a", 1]]
    assert run.candidates["hasanswer"].tolist() == [False]


@pytest.mark.parametrize("key", ["isgold", "hasanswer"])
def test_a_flag_written_as_text_is_not_taken_for_true(tmp_path, key):
    with pytest.raises(pt.RunFormatError, match=rf"x\.jsonl:1 ctxs\[0\] '{key}' must be true or false"):
        pt.load_run(dpr(tmp_path, {"text": "x", key: "False"}))


@pytest.mark.parametrize("answers", [[1992], ["x", None], 5, {"a": 1}])
def test_answers_that_are_no_texts_are_not_dropped(tmp_path, answers):
    with pytest.raises(pt.RunFormatError, match=r"x\.jsonl:1 has answers that are no texts"):
        pt.load_run(dpr(tmp_path, {"text": "x"}, answers=answers))


# --- ids that several texts share ---------------------------------------------------------------


def test_a_text_keeps_the_name_it_was_given(tmp_path):
    texts = ["a", "b", "c", "b", "a", "c"]  # each question numbers its contexts from 0, as some tools do
    lines = [json.dumps({"id": f"q{i}", "question": "?", "ctxs": [{"id": "0", "text": t, "isgold": True}]})
             for i, t in enumerate(texts)]  # fmt: skip
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    run = pt.load_run(tmp_path / "x.jsonl")
    assert [run.chunks(f"q{i}")[0].text for i in range(6)] == texts
    assert run.candidates["docid"].tolist() == ["0", "0~2", "0~3", "0~2", "0", "0~3"]
    assert run.qrels["docid"].tolist() == ["0", "0~2", "0~3", "0~2", "0", "0~3"]


def test_gold_ids_of_a_case_follow_the_name_of_their_text():
    from packtools.runs.cases import Case, Cases, Context

    cases = Cases(Path("x.json"), LoadReport(), "record")
    cases.add(1, Case("?", [Context("a", "0"), Context("b", "1")], "q1", gold=["0"]))
    cases.add(2, Case("?", [Context("c", "0"), Context("d", "1")], "q2", gold=["0", "gone"]))
    assert list(cases.gold) == [("q1", "0"), ("q2", "0~2"), ("q2", "gone")]


def test_a_text_named_by_its_text_never_takes_the_place_of_another(tmp_path):
    named = pt.load_run(dpr(tmp_path, {"text": "x"})).candidates["docid"].tolist()[0]
    run = pt.load_run(dpr(tmp_path, {"id": named, "text": "other"}, {"text": "x"}))
    assert [c.text for c in run.chunks("q")] == ["other", "x"]


# --- P94: fields that nobody asked for ----------------------------------------------------------


@pytest.mark.parametrize("name", [k for k, r in READERS.items() if r.is_json])
def test_an_unused_field_takes_no_memory(tmp_path, name):
    reader, n, size = READERS[name], 400, 10_000
    path = tmp_path / reader.file
    lines = reader.lines([Record(f"q{i}", f"d{i}", f"text {i}") for i in range(n)])
    path.write_text("".join(f'{line[:-1]}, "trace": "{"x" * size}"}}\n' for line in lines))
    tracemalloc.start()
    assert len(read(reader, path)[0]) == n
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * size / 4  # what is kept is some hundred bytes a record


def test_passages_that_the_run_does_not_name_take_no_memory(tmp_path):
    reader, n, size = READERS["collection TSV"], 400, 10_000
    path = reader.write(tmp_path / reader.file, [Record("", f"d{i}", "x" * size) for i in range(n)])
    tracemalloc.start()
    assert list(read_collection(path, {"d7"}, LoadReport()).index) == ["d7"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * size / 4


# --- P97: ids that were cut ---------------------------------------------------------------------


@pytest.mark.parametrize("corpus", ["collection TSV", "collection JSONL"])
@pytest.mark.parametrize("run", ["TREC run", "MS MARCO run"])
def test_cut_ids_are_one_error_with_samples_of_both_sides(tmp_path, run, corpus):
    full = [f"clueweb09-en0000-00-{i:05d}" for i in range(8)]
    READERS[run].write(tmp_path / "r", [Record("q", i[:20], "") for i in full[:1]])
    READERS[corpus].write(tmp_path / READERS[corpus].file, [Record("", i, "x") for i in full])
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run({"run": tmp_path / "r", "collection": tmp_path / READERS[corpus].file})
    assert str(error.value) == (
        "load_run: 0 of 1 candidates have passage text. Ids in the run: 'clueweb09-en0000-00-'; ids in the "
        f"collection: {', '.join(map(repr, full[:5]))}. Give the collection that the run was made from."
    )


# --- JSON that Python itself can't hold ---------------------------------------------------------


@pytest.mark.parametrize("name", [k for k, r in READERS.items() if r.is_json])
@pytest.mark.parametrize("depth", [101, 480, 900, 960, 985, 100_000])
def test_deep_nesting_is_one_clear_error(tmp_path, name, depth):
    reader = READERS[name]
    deep = "[" * depth + '"\\ud83d"' + "]" * depth
    path = tmp_path / reader.file
    path.write_text(f'{reader.line(TWO[0])[:-1]}, "deep": {deep}}}\n')
    with pytest.raises(pt.RunFormatError, match=rf"{reader.file}:1 is JSON"):
        read(reader, path)


def test_nesting_that_is_not_deep_is_read(tmp_path):
    reader = READERS["collection JSONL"]
    path = tmp_path / reader.file
    wide = "[" + ",".join(["[[[[]]]]"] * 500) + "]"
    path.write_text(f'{reader.line(TWO[0])[:-1]}, "deep": {"[" * 90 + wide + "]" * 90}}}\n')
    assert read(reader, path)[0] == [("d1", "first text")]


def test_a_million_digits_are_refused_at_once(tmp_path):
    (tmp_path / "x.run").write_text(f"q Q0 d 1 {'9' * 1_000_000}x t\n")
    with pytest.raises(pt.RunFormatError, match=r"x\.run:1 rank '1' and score"):
        read_run(tmp_path / "x.run", LoadReport())


@pytest.mark.parametrize("long", ["d" * 300, "d" * 256, "d" * 8, "d" * 9, "é" * 7])
def test_ids_of_any_length_are_told_apart(tmp_path, long):
    ids = [long, long + "1", long + "2", long[:-1], "x"]
    (tmp_path / "x.run").write_text("".join(f"{i} Q0 {i} 1 2 t\n" for i in ids))
    table = read_run(tmp_path / "x.run", LoadReport())
    assert table["docid"].tolist() == ids
    assert table["qid"].tolist() == ids


# --- real files ---------------------------------------------------------------------------------


def plain(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line for line in data.decode().split("\n") if line.strip()]


RUNS = ["trec_eval/results.test", "trec_eval/results.trunc", "trec_eval/results-302.test",
        "trec_eval/results.comment.test.gz", "trec_eval/prefs.results.test",
        "msmarco_dl19/runs/run.bm25.dl19.top100.txt", "msmarco_dl19/runs/run.splade_pp_ed.dl19.top100.txt",
        "msmarco_dl19/runs/run.distilbert_tasb.dl19.top100.txt",
        "msmarco_dl19/runs/run.openai_ada2.dl19.top100.txt"]  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_real_runs_against_plain_python(real, name):
    report = LoadReport()
    table = read_run(real / name, report)
    fields = [line.split() for line in plain(real / name)]
    assert table["qid"].tolist() == [f[0] for f in fields]
    assert table["docid"].tolist() == [f[2] for f in fields]
    assert table["rank"].tolist() == [int(f[3]) for f in fields]
    assert table["score"].tolist() == [float(f[4]) for f in fields]
    assert report.of("repaired") == report.of("skipped") == []


QRELS = [f"trec_eval/{name}" for name in (
    "qrels.test", "qrels.123", "qrels-302.test", "qrels.rel_level", "qrels.comment.test", "qrels.comments.123",
    "qrels.test.with-comments")] + ["msmarco_dl19/qrels.dl19-passage.txt"]  # fmt: skip


@pytest.mark.parametrize("name", QRELS)
def test_real_qrels_against_plain_python(real, name):
    report = LoadReport()
    table = read_qrels(real / name, report)
    lines = plain(real / name)
    fields = [line.split() for line in lines if not line.startswith("#")]
    judged: dict[tuple[str, str], int] = {}
    for qid, _, docid, label in fields:  # qrels.123 judges each pair up to three times
        judged[qid, docid] = max(int(label), judged.get((qid, docid), -9))
    assert {(q, d): label for q, d, label in table.itertuples(index=False)} == judged
    assert sum(amounts(report, "repaired").values()) == len(fields) - len(judged)
    assert sum(amounts(report, "ignored").values()) == sum(line.startswith("#") for line in lines)
    assert report.of("skipped") == []


@pytest.mark.parametrize(("folder", "header"), [("msmarco_dl19/beir", 0), ("arcd_ar", 1)])
def test_real_beir_folders_against_plain_python(real, folder, header):
    report = LoadReport()
    corpus = [json.loads(line) for line in plain(real / folder / "corpus.jsonl")]
    wanted = {str(record["_id"]) for record in corpus}
    passages = read_collection(real / folder / "corpus.jsonl", wanted, report)
    assert dict(zip(passages.index, passages["text"], strict=True)) == {r["_id"]: r["text"] for r in corpus}
    queries = [json.loads(line) for line in plain(real / folder / "queries.jsonl")]
    assert read_queries(real / folder / "queries.jsonl", report) == {r["_id"]: r["text"] for r in queries}
    table = read_qrels(real / folder / "qrels" / "test.tsv", report)
    judged = [line.split("\t") for line in plain(real / folder / "qrels" / "test.tsv")[header:]]
    assert Counter(map(tuple, table.astype(str).to_numpy())) == Counter(map(tuple, judged))
    assert report.of("skipped") == []


def test_real_arabic_qrels_judge_queries_that_are_not_there(real, tmp_path):
    queries = [json.loads(line)["_id"] for line in plain(real / "arcd_ar" / "queries.jsonl")]
    first = json.loads(plain(real / "arcd_ar" / "corpus.jsonl")[0])["_id"]
    (tmp_path / "a.run").write_text("".join(f"{q} Q0 {first} 1 1 t\n" for q in queries))
    report = str(pt.load_run([tmp_path / "a.run", real / "arcd_ar"]).report)
    judged = {line.split("\t")[0] for line in plain(real / "arcd_ar" / "qrels" / "test.tsv")[1:]}
    assert f"{len(judged - set(queries)):,} judged queries are not in the run" in report
    assert f"{len(judged & set(queries))} of 50 queries are judged" in report
