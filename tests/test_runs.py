"""Saved runs: every repair has a line in the report, ids are never changed, errors name the place."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt

DOCS = {"d1": "first text", "d2": "second text", "d3": "third text"}


@pytest.fixture
def files(tmp_path):
    """Write a run beside a small collection and load it."""

    def load(run: str | bytes, collection: dict[str, str] | None = None, name: str = "x.run", **options):
        path = tmp_path / name
        data = run if isinstance(run, bytes) else run.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        lines = "".join(f"{k}\t{v}\n" for k, v in (collection or DOCS).items())
        (tmp_path / "collection.tsv").write_text(lines, "utf-8")
        return pt.load_run([path, tmp_path / "collection.tsv"], **options)

    return load


def rows(run: pt.Run) -> list[tuple]:
    frame = run.candidates
    return list(zip(frame["qid"], frame["docid"], frame["rank"], frame["score"], strict=True))


def notes(run: pt.Run, kind: str) -> list[str]:
    return [str(n) for n in run.report.of(kind)]


def test_a_trec_run_reads(files):
    run = files("q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5e-05 t\n")
    assert rows(run) == [("q1", "d1", 1, 2.5), ("q1", "d2", 2, 1.5e-05)]
    assert notes(run, "repaired") == []


@pytest.mark.parametrize(
    "text",
    [
        "q1 Q0 d1 1 2.5 t\n\nq1 Q0 d2 2 -3 t",  # a blank line, no newline at the end
        "q1 Q0 d1 1 2.5 t\r\nq1 Q0 d2 2 -3 t\r\n",
        "\ufeffq1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 -3 t\n",
        "q1\tQ0\td1\t1\t  2.5\tt\nq1\tQ0\td2\t2\t  -3\tt\n",
        "  q1   Q0 d1  1 2.5 t\nq1 Q0 d2 2 -3 t\n",
    ],
)
def test_blank_lines_line_ends_marks_and_padding_change_nothing(files, text):
    assert rows(files(text)) == [("q1", "d1", 1, 2.5), ("q1", "d2", 2, -3.0)]  # P83, P92


def test_gzip_reads(files):
    assert rows(files("q1 Q0 d1 1 2.5 t\n", name="x.run.gz")) == [("q1", "d1", 1, 2.5)]


def test_a_cut_gzip_names_the_line(tmp_path):
    data = gzip.compress(("".join(f"q{i} Q0 d1 1 {i} t\n" for i in range(5000))).encode())
    (tmp_path / "x.run.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "collection.tsv").write_text("d1\tx\n")
    with pytest.raises(pt.RunFormatError, match=r"x\.run\.gz is damaged"):
        pt.load_run([tmp_path / "x.run.gz", tmp_path / "collection.tsv"])


IDS = ["007", "72057594038135102", "18_19", "1e5", "NA", "nan", "None", "true", "0x10", "1.0"]


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_ids_that_look_like_something_else_stay_text(files, separator):
    lines = "".join(separator.join([i, "Q0", i, "1", "1.0", "t"]) + "\n" for i in IDS)  # P86
    run = files(lines, {i: f"text {i}" for i in IDS})
    assert sorted(run.queries.index) == sorted(IDS)
    assert sorted(run.candidates["docid"]) == sorted(IDS)
    assert [run.chunks(i)[0].text for i in IDS] == [f"text {i}" for i in IDS]


def test_an_id_with_a_space_in_a_tab_separated_file_is_one_id(files):
    run = files("q1\tQ0\tdoc one\t1\t1.5\tt\n", {"doc one": "text"})  # P88
    assert rows(run) == [("q1", "doc one", 1, 1.5)]


def test_quotes_are_literal(files):
    run = files('q1 Q0 "d1 1 1.5 t\nq1 Q0 d2 2 1 t\n', {'"d1': 'a "quoted" text', "d2": '"'})  # P89
    assert run.chunks("q1")[0].text == 'a "quoted" text'
    assert run.chunks("q1")[1].text == '"'


def test_a_repeated_document_keeps_its_best_rank_and_is_counted(files):
    run = files("q1 Q0 d1 1 2.0 t\nq1 Q0 d2 2 1.5 t\nq1 Q0 d1 3 1.0 t\n")  # P91
    assert rows(run) == [("q1", "d1", 1, 2.0), ("q1", "d2", 2, 1.5)]
    assert notes(run, "repaired") == [f"{run.name}: document repeated for a query: the best rank stays (1)"]


def test_scores_that_are_not_finite_go_last_and_are_reported(files):
    run = files("q1 Q0 d1 1 nan t\nq1 Q0 d2 2 inf t\nq1 Q0 d3 3 -5 t\n")  # P92
    assert [r[1] for r in rows(run)] == ["d3", "d1", "d2"]
    (note,) = run.report.of("repaired")
    assert (note.n, note.first_line) == (2, 1)
    order = [
        c.id
        for c in pt.ContextPacker(pt.PackerConfig(order="descending", budget=99))
        .pack_sync(None, run.chunks("q1"))
        .chunks
    ]
    assert order == ["d3", "d1", "d2"]


def test_ties_keep_the_rank_or_go_by_docid_as_trec_eval_does(files):
    text = "q1 Q0 d1 2 1.0 t\nq1 Q0 d3 1 1.0 t\nq1 Q0 d2 3 1.0 t\n"  # P34
    assert [r[1] for r in rows(files(text))] == ["d3", "d1", "d2"]
    assert [r[1] for r in rows(files(text, ties="trec_eval"))] == ["d3", "d2", "d1"]


def test_ranks_that_disagree_with_scores_are_reported(files):
    run = files("q1 Q0 d1 1 1.0 t\nq1 Q0 d2 2 3.0 t\n")
    assert [r[1] for r in rows(run)] == ["d2", "d1"]
    assert any("ranks disagree with its scores" in n for n in notes(run, "ignored"))


def test_a_run_without_scores_gets_them_from_the_rank(files):
    run = files("q1\td1\t1\nq1\td2\t2\n", name="run.msmarco.tsv")
    assert rows(run) == [("q1", "d1", 1, 1.0), ("q1", "d2", 2, 0.5)]
    assert "no score: made from the rank" in notes(run, "repaired")[0]


def test_fields_after_the_sixth_are_left_out_and_counted(files):
    run = files("q1 Q0 d1 1 1.0 t more junk\n")
    assert rows(run) == [("q1", "d1", 1, 1.0)]
    assert notes(run, "repaired") == ["x.run: fields after the sixth left out (1, first at x.run:1)"]


def test_a_cut_line_names_file_line_and_rule(files):
    text = "q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.0\n"  # P82
    with pytest.raises(pt.RunFormatError) as error:
        files(text)
    assert str(error.value) == (
        "load_run: x.run:2 has 5 fields; a TREC run line has 6 (qid Q0 docid rank score tag); the line is "
        "'q1 Q0 d2 2 1.0'. Mend the line, or load with bad_lines='skip' to leave it out."
    )
    run = files(text, bad_lines="skip")
    assert rows(run) == [("q1", "d1", 1, 2.5)]
    assert run.report.of("skipped")[0].n == 1


@pytest.mark.parametrize("line", ["q1 Q0 d1 x 1.0 t", "q1 Q0 d1 1 high t", "q1 Q0 d1 1.5 1.0 t"])
def test_ranks_and_scores_that_are_no_numbers_are_errors(files, line):
    with pytest.raises(pt.RunFormatError, match=r"x\.run:1 rank '.*' and score '.*' must be"):
        files(line + "\n")


def test_bytes_that_are_not_utf8_name_the_line(files):
    with pytest.raises(pt.RunFormatError, match=r"x\.run:2 is not UTF-8 \(byte 9\)"):
        files(b"q1 Q0 d1 1 1.0 t\nq1 Q0 d2\xff 2 1.0 t\n")


def test_strict_mode_raises_at_the_first_repair(files):
    with pytest.raises(pt.RunFormatError, match="strict=True allows no repair"):
        files("q1 Q0 d1 1 2.0 t\nq1 Q0 d1 2 1.0 t\n", strict=True)


def test_the_fast_and_the_careful_reader_agree(files, tmp_path):
    from packtools.runs import trec
    from packtools.runs.report import LoadReport

    generator = np.random.default_rng(0)
    text = "".join(
        f"q{i % 7} Q0 d{generator.integers(40)} {i} {generator.normal():.17g} t\n" for i in range(400)
    )
    path = tmp_path / "y.run"
    path.write_text(text)
    fast = trec._read_fast(path)
    slow = trec._read_slow(path, LoadReport())
    assert fast is not None
    for column in ("qid", "docid", "rank", "score"):
        assert fast[column].astype(object).tolist() == slow[column].astype(object).tolist()


def test_no_text_at_all_is_an_error_with_sample_ids(files):
    with pytest.raises(pt.RunFormatError) as error:
        files("q1 Q0 doc12 1 1.0 t\n", {"doc1234": "text", "doc1299": "text"})  # P97: cut ids
    assert str(error.value) == (
        "load_run: 0 of 1 candidates have passage text. Ids in the run: 'doc12'; ids in the collection: "
        "'doc1234', 'doc1299'. Give the collection that the run was made from."
    )


def test_queries_without_any_text_are_listed(files):
    run = files("q1 Q0 d1 1 1.0 t\nq2 Q0 gone 1 1.0 t\n")
    assert "1 queries have no passage text at all, such as q2" in "\n".join(notes(run, "joined"))
    assert "passage text for 1 of 2 candidates (50%)" in "\n".join(notes(run, "joined"))


def test_candidates_without_text_are_named_in_the_ledger(files):
    run = files("q1 Q0 gone 1 2.0 t\nq1 Q0 d1 2 1.0 t\n")
    decisions = pt.prepare(run, counter="chars").evaluate(pt.PackerConfig(budget=99)).decisions
    assert decisions["decision"].tolist() == ["no_text", "kept"]


def beir(tmp_path, corpus: list[dict], qrels: str = "q1\td1\t1\n"):
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps(d, ensure_ascii=False) + "\n" for d in corpus), "utf-8"
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "who?"}\n{"_id": "q2", "text": "why?"}\n')
    (tmp_path / "qrels").mkdir(exist_ok=True)
    (tmp_path / "qrels" / "test.tsv").write_text(qrels)
    (tmp_path / "bm25.run").write_text("q1 Q0 d1 1 2 t\nq1 Q0 d2 2 1 t\n")
    (tmp_path / "answers.jsonl").write_text(
        '{"_id": "q1", "answers": ["first"]}\n{"_id": "q9", "answer": "x"}\n'
    )
    return tmp_path


def test_a_beir_folder_with_a_run_loads_whole(tmp_path):
    corpus = [{"_id": "d1", "title": "T", "text": "first one"}, {"_id": "d2", "title": "", "text": "second"}]
    run = pt.load_run(beir(tmp_path, corpus, "query-id\tcorpus-id\tscore\nq1\td1\t1\nq9\td1\t1\nq1\td2\t0\n"))
    assert run.chunks("q1")[0].metadata == {"title": "T"}
    assert run.queries["text"].tolist() == ["who?"]
    assert run.answers.to_dict() == {"q1": ("first",)}
    assert "1 judged queries are not in the run, such as q9" in str(run.report)
    packed = pt.prepare(run, counter="chars").evaluate(pt.PackerConfig(budget=9, order="descending"))
    assert packed.per_query.loc["q1", ["gold_retention", "answer_retention"]].tolist() == [1.0, 1.0]


def test_line_separators_inside_json_strings_are_text(tmp_path):
    odd = "one\u2028two\u2029three\u0085four"  # P85: four lines by splitlines, one record here
    run = pt.load_run(beir(tmp_path, [{"_id": "d1", "text": odd}, {"_id": "d2", "text": "x"}]))
    assert run.chunks("q1")[0].text == odd


def test_numeric_ids_in_json_become_text_and_are_counted(tmp_path):
    folder = beir(tmp_path, [{"_id": 7, "text": "seven"}, {"_id": "d1", "text": "x"}])
    (folder / "bm25.run").write_text("q1 Q0 7 1 2 t\n")
    run = pt.load_run(folder)
    assert run.chunks("q1")[0].text == "seven"
    assert any("numeric '_id' read as text" in n for n in notes(run, "ignored"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"_id": "d3", "te', r"corpus\.jsonl:3 is not JSON \(.* at column \d+\)"),
        ("[1]", r"corpus\.jsonl:3 is JSON but not an object"),
        ('{"title": "x"}', r"corpus\.jsonl:3 has no field for an id"),
        ('{"_id": "d3"}', r"corpus\.jsonl:3 has no field for a text"),
        ('{"_id": true, "text": "x"}', r"corpus\.jsonl:3 has no field for an id"),
    ],
)
def test_bad_json_lines_name_file_and_line(tmp_path, line, why):
    folder = beir(tmp_path, [{"_id": "d1", "text": "a"}, {"_id": "d2", "text": "b"}])
    with (folder / "corpus.jsonl").open("a") as stream:
        stream.write(line + "\n")
    with pytest.raises(pt.RunFormatError, match=why):
        pt.load_run(folder)
    assert pt.load_run(folder, bad_lines="skip").report.of("skipped")[0].n == 1


def test_one_id_with_two_texts_keeps_the_first_and_says_so(tmp_path):
    run = pt.load_run(
        beir(tmp_path, [{"_id": "d1", "text": "a"}, {"_id": "d1", "text": "b"}, {"_id": "d2", "text": "c"}])
    )
    assert run.chunks("q1")[0].text == "a"
    assert any("id repeated with another text" in n for n in notes(run, "repaired"))


def test_qrels_of_two_three_and_four_columns(tmp_path):
    from packtools.runs.report import LoadReport
    from packtools.runs.trec import read_qrels

    for text in ("q1 0 d1 1\nq1 0 d2 0\n", "q1\td1\t1\nq1\td2\t0\n", "# note\nq1 d1 1\nq1 d2 0\n"):
        path = tmp_path / "qrels.txt"
        path.write_text(text)
        frame = read_qrels(path, LoadReport())
        assert frame.to_numpy().tolist() == [["q1", "d1", 1], ["q1", "d2", 0]]
    path.write_text("q1 d1\n")
    assert read_qrels(path, LoadReport())["label"].tolist() == [1]
    path.write_text("q1 0 d1 x\n")
    with pytest.raises(pt.RunFormatError, match=r"qrels\.txt:1 has 4 fields or no whole label"):
        read_qrels(path, LoadReport())


def dpr(tmp_path, *records: dict, name: str = "x.jsonl.gz"):
    data = "".join(json.dumps(r) + "\n" for r in records).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return tmp_path / name


def test_dpr_scores_as_strings_and_labels_are_kept(tmp_path):
    ctxs = [
        {"id": "7", "title": "T", "text": "first", "score": "81.5", "hasanswer": True, "isgold": True},
        {"id": "8", "title": "", "text": "second", "score": "80", "hasanswer": False, "isgold": False},
    ]
    run = pt.load_run(dpr(tmp_path, {"question": "who?", "answers": ["first"], "ctxs": ctxs}))  # P95
    assert run.candidates["score"].tolist() == [81.5, 80.0]
    assert run.candidates["hasanswer"].tolist() == [True, False]
    assert run.passages.loc["7"].tolist() == ["T", "first"]
    assert run.qrels.to_numpy().tolist() == [["line-1", "7", 1]]
    assert any("no question id" in n for n in notes(run, "repaired"))


def test_a_context_without_a_score_keeps_its_place(tmp_path):
    ctxs = [{"text": t, "score": s} for t, s in (("a", 3.0), ("b", None), ("c", 1.0))]
    run = pt.load_run(dpr(tmp_path, {"id": "q", "question": "who?", "ctxs": ctxs}))
    assert [c.text for c in run.chunks("q")] == ["a", "b", "c"]
    assert run.candidates["score"].tolist() == [3.0, 3.0, 1.0]
    assert any("keeps its place" in n for n in notes(run, "repaired"))
    assert run.qrels is None
    assert run.answers is None


def test_one_id_for_two_texts_becomes_two_ids(tmp_path):
    def record(q, text):
        return {"id": q, "question": q, "ctxs": [{"id": "d", "text": text, "score": 1}]}

    run = pt.load_run(dpr(tmp_path, record("q1", "a"), record("q2", "b"), record("q3", "a")))
    assert [run.chunks(q)[0].id for q in ("q1", "q2", "q3")] == ["d", "d~2", "d"]
    assert [run.chunks(q)[0].text for q in ("q1", "q2", "q3")] == ["a", "b", "a"]


def test_a_repeated_question_id_is_an_error(tmp_path):
    record = {"id": "q", "question": "who?", "ctxs": [{"text": "a"}]}
    with pytest.raises(pt.RunFormatError, match=r"x\.jsonl\.gz:2 repeats question id 'q'"):
        pt.load_run(dpr(tmp_path, record, record))


def test_a_folder_with_several_runs_reads_the_first_and_says_so():
    run = pt.load_sample()
    assert run.name == "sample/bm25"
    assert "3 runs found (bm25, fusion, tfidf); read bm25; name another with run=" in str(run.report)
    assert pt.load_sample("tfidf").name == "sample/tfidf"
    with pytest.raises(
        pt.RunFormatError, match="run 'bm52' is unknown; known: 'bm25', 'fusion', 'tfidf'. Did you"
    ):
        pt.load_sample("bm52")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere", r"'nowhere' does not exist"),
        ({"runs": "x"}, r"part 'runs' is unknown; known: 'run'"),
    ],
)
def test_paths_that_are_not_there(given, message):
    with pytest.raises(pt.PacktoolsError, match=message):
        pt.load_run(given)


def test_missing_parts_say_what_to_give(tmp_path):
    (tmp_path / "x.run").write_text("q1 Q0 d1 1 2 t\n")
    with pytest.raises(pt.RunFormatError, match=r"came without passage text\. Give the collection too"):
        pt.load_run(tmp_path / "x.run")
    (tmp_path / "x.run").unlink()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n')
    with pytest.raises(pt.RunFormatError, match="holds no run, only collection"):
        pt.load_run(tmp_path)


def test_parts_can_be_named(tmp_path):
    (tmp_path / "a").write_text("q1 Q0 d1 1 2 t\n")
    (tmp_path / "b").write_text("d1\ttext\n")
    run = pt.load_run({"run": tmp_path / "a", "collection": tmp_path / "b"})
    assert run.chunks("q1")[0].text == "text"


def test_reports_and_runs_escape_what_files_say(files):
    run = files("<b>q&</b> Q0 d1 1 1.0 t\n<b>q&</b> Q0 d1 2 0.5 t\n", {"d1": "<script>"})
    assert "<b>q&" not in run._repr_html_()
    assert (
        "<script>"
        not in pt.prepare(run, counter="chars").evaluate(pt.PackerConfig()).context("<b>q&</b>")._repr_html_()
    )


def test_frames_in_memory_make_a_run():
    frame = pd.DataFrame({"qid": ["q", "q"], "docid": ["a", "b"], "rank": [2, 1]})
    run = pt.Run.from_frames(frame, {"a": "x", "b": "y"}, queries={"q": "who?"})
    assert [c.id for c in run.chunks("q")] == ["b", "a"]
    with pytest.raises(pt.RunFormatError, match="'candidates' must be a table with a column 'rank'"):
        pt.Run.from_frames(frame[["qid", "docid"]], {"a": "x"})


# --- files that broke the reader once ---------------------------------------------------------


def zstd(data: bytes, frames: int = 1) -> bytes:
    import zstandard

    part = len(data) // frames + 1
    return b"".join(zstandard.compress(data[i : i + part]) for i in range(0, len(data), part))


@pytest.mark.parametrize("frames", [1, 3])
def test_zstandard_reads_whole_whatever_its_frames(files, tmp_path, frames):
    text = "".join(f"q{i} Q0 d{i % 3 + 1} 1 {i} t extra\n" for i in range(2000))
    (tmp_path / "y.run.zst").write_bytes(zstd(text.encode(), frames))
    (tmp_path / "collection.tsv").write_text("d1\tx\nd2\ty\nd3\tz\n")
    run = pt.load_run([tmp_path / "y.run.zst", tmp_path / "collection.tsv"])
    assert run.n_queries == 2000


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def junk(data: bytes) -> bytes:
    return b"junk" + data


def flipped(data: bytes) -> bytes:
    return data[:60] + bytes([data[60] ^ 255]) + data[61:]


@pytest.mark.parametrize(
    ("pack", "harm"),
    # A zstandard frame without a checksum can't tell that a byte was flipped.
    [(gzip.compress, half), (gzip.compress, junk), (gzip.compress, flipped), (zstd, half), (zstd, junk)],
)
@pytest.mark.parametrize("name", ["x.run", "corpus.jsonl", "x.jsonl"])
def test_a_damaged_file_is_one_clear_error(tmp_path, pack, harm, name):
    lines = {
        "x.run": "".join(f"q{i} Q0 d1 1 {i} t\n" for i in range(3000)),
        "corpus.jsonl": "".join(f'{{"_id": "d{i}", "text": "number {i}"}}\n' for i in range(3000)),
        "x.jsonl": "".join(f'{{"question": "q{i}", "ctxs": [{{"text": "t{i}"}}]}}\n' for i in range(3000)),
    }
    suffix = ".zst" if pack is zstd else ".gz"
    (tmp_path / (name + suffix)).write_bytes(harm(pack(lines[name].encode())))
    other = "collection.tsv" if name == "x.run" else "a.run"
    (tmp_path / other).write_text("d1\tx\n" if name == "x.run" else "q1 Q0 d1 1 1 t\n")
    paths = {"run": tmp_path / "a.run", "collection": tmp_path / (name + suffix)}
    if name == "x.run":
        paths = {"run": tmp_path / (name + suffix), "collection": tmp_path / other}
    elif name == "x.jsonl":
        paths = {"dpr": tmp_path / (name + suffix)}
    with pytest.raises(pt.RunFormatError, match="is damaged after line"):
        pt.load_run(paths)


def test_a_last_line_cut_to_three_fields_is_no_run_line(files):
    with pytest.raises(pt.RunFormatError, match=r"x\.run:2 has 3 fields; a TREC run line has 6"):
        files("6 Q0 d1 1 9.5 t\n6 Q0 706")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("q1 Q0 d1 99999999999999999999999 1.0 t", "must be a whole number and a number"),
        ("q1 Q0 d1 1_0 1.0 t", "must be a whole number and a number"),
        ("q1 Q0 d1 1 1_5 t", "must be a whole number and a number"),
        ("q1 Q0 d1 True 1.0 t", "must be a whole number and a number"),
        ("q1 Q0 d1 1 True t", "must be a whole number and a number"),
        ("q1 Q0 d1 1 1.0 t\rq1 Q0 d2 2 0.5 t", "has a carriage return inside"),
    ],
)
def test_values_that_python_would_take_for_numbers_are_refused(files, line, why):
    with pytest.raises(pt.RunFormatError, match=why):
        files(line + "\n")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_no_break_space_is_part_of_an_id(files, end):
    run = files(f"q\u00a01 Q0 d\u00a012 3 1.5 t{end}", {"d\u00a012": "text"})
    assert rows(run) == [("q\u00a01", "d\u00a012", 1, 1.5)]


@pytest.mark.parametrize("label", ["--1", "99999999999", "1.0", "9" * 5000])
def test_labels_that_are_no_whole_numbers_name_the_line(tmp_path, label):
    with pytest.raises(pt.RunFormatError, match=r"test\.tsv:1 has 4 fields or no whole label"):
        pt.load_run(beir(tmp_path, [{"_id": "d1", "text": "a"}], f"q1 0 d1 {label}\n"))


@pytest.mark.parametrize(
    "line",
    [
        '{"_id": "d3", "text": "x", "n": ' + "9" * 5000 + "}",
        "[" * 100_000,
        '{"_id": "\\ud83d", "text": "x"}',
        '{"_id": "", "text": "x"}',
    ],
    ids=["huge number", "deep", "lone surrogate", "empty id"],
)
def test_json_that_cannot_be_read_names_the_line(tmp_path, line):
    folder = beir(tmp_path, [{"_id": "d1", "text": "a"}])
    with (folder / "corpus.jsonl").open("a") as stream:
        stream.write(line + "\n")
    with pytest.raises(pt.RunFormatError, match=r"corpus\.jsonl:2"):
        pt.load_run(folder)


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(pt.RunFormatError, match="is a folder where a file is wanted"):
        pt.load_run({"run": tmp_path, "collection": tmp_path})
    with pytest.raises(pt.RunFileMissing, match="does not exist"):
        pt.load_run("x" * 300)
    with pytest.raises(pt.RunFormatError, match="'paths' must be a path, a list of paths or a mapping"):
        pt.load_run(None)


def test_stray_files_beside_runs_are_left_alone(tmp_path):
    folder = beir(tmp_path, [{"_id": "d1", "text": "a"}])
    (folder / "runs").mkdir()
    (folder / "bm25.run").rename(folder / "runs" / "zz")
    (folder / "runs" / "README.md").write_text("# Runs of six or more words here\n")
    (folder / "runs" / ".DS_Store").write_bytes(b"\0\1")
    assert pt.load_run(folder).n_queries == 1


def test_qrels_and_answers_beside_a_dpr_file_are_used(tmp_path):
    path = dpr(
        tmp_path, {"id": "q", "question": "who?", "answers": ["a"], "ctxs": [{"id": "d", "text": "a"}]}
    )
    (tmp_path / "qrels.txt").write_text("q 0 d 2\n")
    (tmp_path / "answers.tsv").write_text("q\tother\n")
    run = pt.load_run([path, tmp_path / "qrels.txt", tmp_path / "answers.tsv"])
    assert run.qrels["label"].tolist() == [2]
    assert run.answers["q"] == ("other",)
    (tmp_path / "b.run").write_text("q Q0 d 1 1 t\n")
    with pytest.raises(
        pt.RunFormatError, match=r"x\.jsonl\.gz is a run by itself.*b\.run was given as the run too"
    ):
        pt.load_run([path, tmp_path / "b.run"])


def test_a_question_without_contexts_is_reported(tmp_path):
    path = dpr(
        tmp_path,
        {"id": "q1", "question": "who?", "ctxs": []},
        {"id": "q2", "question": "why?", "ctxs": [{"text": "a"}]},
    )
    run = pt.load_run(path)
    assert list(run.queries.index) == ["q2"]
    assert any("question without contexts" in n for n in notes(run, "repaired"))


def frame(**columns) -> pd.DataFrame:
    return pd.DataFrame({"qid": ["q", "q"], "docid": ["a", "b"], "rank": [1, 2]} | columns)


def test_frames_are_read_as_they_are_meant():
    texts = {"a": "Paris", "b": "Rome", 7: "seven"}
    run = pt.Run.from_frames(frame(), texts, answers={"q": "Paris"})
    assert run.answers["q"] == ("Paris",)  # one answer, not five letters
    ranks = pt.Run.from_frames(frame(rank=["10", "2"]), texts)
    assert [c.id for c in ranks.chunks("q")] == ["b", "a"]
    numbers = pt.Run.from_frames(
        frame(qid=[1, 1], docid=[7, 7], rank=[1, 2]), texts, queries={1: "who?"},
        qrels=pd.DataFrame({"qid": [1], "docid": [7], "label": [1]}), answers={1: ["seven"]},
    )  # fmt: skip
    assert len(numbers.candidates) == 1  # the same document twice: the best rank stays
    assert any("document repeated" in n for n in notes(numbers, "repaired"))
    row = pt.prepare(numbers, counter="chars").evaluate(pt.PackerConfig()).per_query.loc["1"]
    assert row[["gold_retention", "answer_retention"]].tolist() == [1.0, 1.0]
    by_score = pt.Run.from_frames(frame(score=[0.5, 0.9]), texts)
    assert [(c.id, c.score) for c in by_score.chunks("q")] == [("b", 0.9), ("a", 0.5)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"rank": ["first", "second"]}, "column 'rank' must hold numbers"),
        ({"score": ["high", "low"]}, "column 'score' must hold numbers"),
        ({"qid": ["q", None]}, "'qid' must be an id in every row; got 'a missing value'"),
        ({"rank": [1, np.nan]}, "'rank' must be a whole number in every row"),
    ],
)
def test_frames_with_bad_columns_are_one_clear_error(columns, message):
    with pytest.raises(pt.RunFormatError, match=message):
        pt.Run.from_frames(frame(**columns), {"a": "x", "b": "y"})


def test_frames_without_rows_or_texts_are_one_clear_error():
    with pytest.raises(pt.RunFormatError, match="a table with at least one row"):
        pt.Run.from_frames(frame().iloc[:0], {"a": "x"})
    with pytest.raises(
        pt.RunFormatError, match=r"'passages' must be texts \(strings\); got None. Passage 'b'"
    ):
        pt.Run.from_frames(frame(), {"a": "x", "b": None})


def test_the_ledger_of_a_query_names_candidates_without_text(files):
    run = files("q1 Q0 gone 1 3.0 t\nq1 Q0 d1 2 2.0 t\nq1 Q0 d2 3 1.0 t\n")
    packed = pt.prepare(run, counter="chars").evaluate(pt.PackerConfig(budget=99))
    context = packed.context("q1")
    assert [(d.docid, d.rank, str(d)) for d in context.decisions] == [
        ("gone", 1, "dropped: its text is not in the collection"), ("d1", 2, "kept"), ("d2", 3, "kept"),
    ]  # fmt: skip
    assert [s.rank for s in context.spans] == [2, 3]
    assert packed.decisions["decision"].tolist() == ["no_text", "kept", "kept"]


@pytest.mark.parametrize(
    "text",
    [
        "q1  Q0 2 0.664 t\n",  # the id is missing, two blanks stand there
        "q1 Q0 d1 1 1 t\nq1  Q0 2 0.664 t\n",
        "q1 Q0 d1 1 1 t x\nq1 Q0 d2 2 t\n",  # one field too many and one too few
        "q1 Q0 d1 1.0 1 t\n",
        "q1 Q0 d1 1e3 1 t\n",
        "q1 Q0 d1 99999999999999999 1 t\n",
    ],
)
def test_lines_of_wrong_fields_are_never_shifted(files, text):
    with pytest.raises(pt.RunFormatError, match=r"x\.run:\d (has|rank)"):
        files(text)


FIELDS = [
    st.sampled_from(["q1", "007", "1", "q\u00a02", '"q1"', "NA", ""]), st.sampled_from(["Q0", "0", "null", ""]),
    st.sampled_from(["d1", "08", "d\u3000x", "d\v", "'d", "1e5", ""]),
    st.sampled_from(["1", "2", "01", "+1", "1.0", "x", "0x1F", "1_0", ""]),
    st.sampled_from(["1.5", "-3", "1e-5", "5.", ".5", "+1", "nan", "Infinity", "1e400", "True", "0x1p3", "1_5", "1,5", ""]),
    st.sampled_from(["t", "tag", '"', "t\r", ""]),
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    lines=st.lists(st.tuples(*FIELDS), min_size=1, max_size=4),
    separator=st.sampled_from([" ", "\t"]),
    cut=st.integers(0, 6),
)
def test_the_fast_reader_reads_nothing_that_the_careful_one_would_not(
    tmp_path_factory, lines, separator, cut
):
    from packtools.runs import trec
    from packtools.runs.report import LoadReport

    path = tmp_path_factory.mktemp("fuzz") / "x.run"
    rows = [separator.join(f) for f in lines]
    rows[-1] = separator.join(lines[-1][:cut]) if cut < 6 else rows[-1]
    path.write_text("\n".join(rows) + "\n", "utf-8")
    fast = trec._read_fast(path)
    if fast is None:
        return
    slow = trec._read_slow(path, LoadReport())
    for column in ("qid", "docid", "rank", "score"):
        assert fast[column].astype(object).tolist() == slow[column].astype(object).tolist()


def test_numeric_ids_keep_their_zeros_in_the_fast_reader(files):
    run = files("007 Q0 01 1 2.5 t\n008 Q0 02 2 1.5 t\n", {"01": "a", "02": "b"})
    assert rows(run) == [("007", "01", 1, 2.5), ("008", "02", 1, 1.5)]


@pytest.mark.parametrize(
    "stray",
    ["results.csv", "results.md", "docs.md", "corpus.README.md", "corpus_stats.csv", "corpus.jsonl~",
     "corpus.jsonl.bak", "README.txt", "queries.yaml"],
)  # fmt: skip
def test_stray_files_in_a_folder_are_left_alone(tmp_path, stray):
    folder = beir(tmp_path, [{"_id": "d1", "text": "a"}])
    (folder / stray).write_text("The file has 6 columns each of them\n")
    assert pt.load_run(folder).name.endswith("/bm25")


@pytest.mark.parametrize("name", ["docs-bm25.run", "questions.bm25.run", "Z.RUN", "qrels-like.trec"])
def test_a_run_by_its_ending_is_a_run_whatever_its_name(tmp_path, name):
    folder = beir(tmp_path, [{"_id": "d1", "text": "a"}])
    (folder / "bm25.run").rename(folder / name)
    assert pt.load_run(folder).n_queries == 1


def test_upper_case_names_are_opened_as_what_they_are(tmp_path):
    folder = beir(tmp_path, [{"_id": "d1", "text": "a"}])
    (folder / "CORPUS.JSONL.GZ").write_bytes(gzip.compress((folder / "corpus.jsonl").read_bytes()))
    (folder / "corpus.jsonl").unlink()
    (folder / "A.RUN.GZ").write_bytes(gzip.compress((folder / "bm25.run").read_bytes()))
    (folder / "bm25.run").unlink()
    assert pt.load_run(folder).chunks("q1")[0].text == "a"


def test_two_runs_named_outright_are_an_error(tmp_path):
    for name in ("a.run", "b.run"):
        (tmp_path / name).write_text("q1 Q0 d1 1 2 t\n")
    (tmp_path / "collection.tsv").write_text("d1\tx\n")
    paths = [tmp_path / n for n in ("a.run", "b.run", "collection.tsv")]
    with pytest.raises(pt.RunFormatError, match=r"2 files could be the run: a\.run, b\.run"):
        pt.load_run(paths)
    assert pt.load_run(paths, run="b").name.endswith("/b")
    with pytest.raises(pt.RunFormatError, match="'run' must be None where the parts are named"):
        pt.load_run({"run": paths[0], "collection": paths[2]}, run="b")
    for odd in ([3], b"x"):
        with pytest.raises(pt.RunFormatError, match="'paths' must be"):
            pt.load_run(odd)


def test_lone_surrogates_in_texts_are_replaced_and_reported(tmp_path):
    line = '{"id": "q", "question": "cut \\ud83d", "answers": ["a"], "ctxs": [{"id": "d", "text": "a \\ude00 b"}]}'
    (tmp_path / "x.jsonl").write_text(line + "\n")
    run = pt.load_run(tmp_path / "x.jsonl")
    assert run.queries["text"].tolist() == ["cut \ufffd"]
    assert run.chunks("q")[0].text == "a \ufffd b"
    assert any("lone surrogate" in n for n in notes(run, "repaired"))
    pt.ExplorerModel(run, counter="chars").view().export(tmp_path / "out")


def test_ties_are_broken_as_asked_in_every_format(tmp_path):
    ctxs = [{"id": i, "text": i, "score": 1} for i in "abc"]
    path = dpr(tmp_path, {"id": "q", "question": "who?", "ctxs": ctxs})
    assert [c.id for c in pt.load_run(path).chunks("q")] == ["a", "b", "c"]
    assert [c.id for c in pt.load_run(path, ties="trec_eval").chunks("q")] == ["c", "b", "a"]
    with pytest.raises(pt.RunFormatError, match="ties 'foo' is unknown; known: 'rank', 'trec_eval'"):
        pt.Run.from_frames(frame(), {"a": "x"}, ties="foo")


def test_frames_with_numbers_for_ids_join():
    passages = pd.DataFrame({"title": ["", ""], "text": ["seven", "eight"]}, index=[7, 8])
    run = pt.Run.from_frames(frame(qid=[1, 1], docid=[7, 8]), passages, answers={"1": None})
    assert [c.text for c in run.chunks("1")] == ["seven", "eight"]
    assert run.answers["1"] == ()
    mixed = frame(qid=pd.Categorical([1, "1"]))
    assert pt.Run.from_frames(mixed, {"a": "x", "b": "y"}).n_queries == 1
    with pytest.raises(pt.RunFormatError, match="a table with a column 'text'"):
        pt.Run.from_frames(frame(), passages[["title"]])


# --- real files ---------------------------------------------------------------------------------


def test_dl19_loads_with_a_join_report(real):
    run = pt.load_run(real / "msmarco_dl19")
    assert (run.n_queries, run.depth) == (43, 100)
    assert "passage text for 1,372 of 4,300 candidates (32%)" in str(run.report)


def test_dl19_corpus_lines_with_line_separators_stay_whole(real):
    run = pt.load_run(
        [real / "msmarco_dl19" / "runs" / "run.bm25.dl19.top100.txt", real / "msmarco_dl19" / "beir"]
    )
    assert run.report.of("skipped") == []
    assert "corpus.jsonl: 5,000 passages" in str(run.report)


@pytest.mark.parametrize("gold", [0, 9, 19])
def test_multidocument_questions_keep_the_place_of_their_gold_passage(real, gold):
    run = pt.load_run(real / "nq_multidoc", run=f"nq-open-20_total_documents_gold_at_{gold}")
    places = run.candidates.merge(run.qrels, on=["qid", "docid"])["rank"]
    assert set(places) == {gold + 1}
    order = [c.id for c in run.chunks(run.queries.index[0])]
    again = pt.ContextPacker(pt.PackerConfig(order="descending", budget=10**6)).pack_sync(
        None, run.chunks(run.queries.index[0])
    )
    assert [d.docid for d in again.decisions] == order


@pytest.mark.parametrize(
    "name", ["results.test", "results.trunc", "results-302.test", "results.comment.test.gz"]
)
def test_trec_eval_runs_read(real, name):
    from packtools.runs.report import LoadReport
    from packtools.runs.trec import read_run

    report = LoadReport()
    frame = read_run(real / "trec_eval" / name, report)
    assert len(frame) == {"results.test": 1500, "results.trunc": 584, "results-302.test": 500}.get(
        name, 30100
    )
    assert report.of("skipped") == []


def test_arabic_qrels_name_absent_queries(real):
    with pytest.raises(pt.RunFormatError, match="holds no run, only collection"):
        pt.load_run(real / "arcd_ar")


@pytest.mark.parametrize(("folder", "n"), [("ramdocs", 500), ("hotpotqa", 29), ("trec_rag", 1)])
def test_a_folder_with_one_file_that_is_a_run_loads(real, folder, n):
    assert pt.load_run(real / folder).n_queries == n
