"""Files of other tools that are a run by themselves: nothing is lost, and what is mended is said."""

from __future__ import annotations

import copy
import gzip
import json
import unicodedata

import numpy as np
import pytest

import packtools as pt
from packtools.runs import records, tool_outputs
from packtools.runs.cases import Cases
from packtools.runs.formats import FORMATS, tell
from packtools.runs.report import LoadReport
from packtools.runs.tool_outputs import looks_ranx, ragas_case, read_ranx

PREDICTION = {
    "query_id": "007",
    "query": "who?",
    "top_doc_ids": ["a", "b"],
    "passages": ["first", "second"],
    "prediction": "me",
    "references": ["me", "I"],
    "context_packing": None,
}
FLASHRAG = {
    "id": "test_0",
    "question": "who?",
    "golden_answers": ["me", "I"],
    "output": {
        "retrieval_result": [
            {"id": "12", "contents": '"A title"\nfirst line\nsecond line', "score": 0.9},
            {"id": "7", "contents": "Another title\nmore", "score": 0.5},
        ],
        "pred": "me",
    },
}
RAGCHECKER = {
    "query_id": "0",
    "query": "who?",
    "gt_answer": "me",
    "response": "it is me",
    "retrieved_context": [{"doc_id": "000", "text": "first"}, {"doc_id": "001", "text": "second"}],
}
RAGAS = {
    "user_input": "who?",
    "retrieved_contexts": ["first", "second"],
    "retrieved_context_ids": ["a", 2],
    "response": "it is me",
    "reference": "me",
}
RAMDOCS = {
    "question": "who?",
    "documents": [
        {"text": "first", "type": "correct", "answer": "me"},
        {"text": "second", "type": "misinfo", "answer": "you"},
    ],
    "disambig_entity": ["x"],
    "gold_answers": ["me"],
    "wrong_answers": ["you"],
}
HOTPOTQA = {
    "_id": "h1",
    "question": "who?",
    "answer": "me",
    "supporting_facts": [["One", 0], ["One", 1], ["Absent", 0]],
    "context": [["One", ["A sentence.", " Another, ", "with a tail."]], ["Two", ["Other."]]],
}
SQUAD = {
    "title": "A title",
    "paragraphs": [
        {
            "id": "p1",
            "context": "first paragraph",
            "qas": [
                {"id": "s1", "question": "who?", "answers": [{"text": "me"}, {"text": "me"}, {"text": "I"}]},
                {"id": "s2", "question": "why?", "answers": [], "is_impossible": True},
            ],
        }
    ],
}
REQUEST = {
    "query": {"qid": 429, "text": "who?"},
    "candidates": [
        {
            "docid": "d#4",
            "score": "18.2876",
            "doc": {
                "url": "u",
                "title": "T",
                "headings": "H",
                "segment": "first",
                "start_char": 5,
                "end_char": 9,
            },
        },
        {"docid": "d#3", "score": 18.0, "doc": {"url": "u", "title": "T", "segment": "second"}},
    ],
}
LINES = {"predictions": PREDICTION, "ragas": RAGAS, "ramdocs": RAMDOCS, "trec_rag": REQUEST}
VALUES = {
    "flashrag": [FLASHRAG],
    "ragchecker": {"results": [RAGCHECKER]},
    "hotpotqa": [HOTPOTQA],
    "squad": {"version": "1", "data": [SQUAD]},
}
SAMPLES = {**LINES, **VALUES}


@pytest.fixture
def write(tmp_path):
    """Write JSON values, one a line, or one laid out over many lines."""

    def to(*values, name: str = "x.jsonl", indent: int | None = None, ascii: bool = True):
        lines = [
            v if isinstance(v, str) else json.dumps(v, indent=indent, ensure_ascii=ascii) for v in values
        ]
        data = "".join(line + "\n" for line in lines).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return to


def rows(run: pt.Run) -> list[tuple]:
    frame = run.candidates
    return list(zip(frame["qid"], frame["docid"], frame["rank"], strict=True))


def texts(run: pt.Run) -> list[str]:
    return [run.passages["text"][docid] for docid in run.candidates["docid"]]


def notes(run: pt.Run, kind: str = "repaired") -> list[str]:
    return [note.what for note in run.report.of(kind)]


# What each format comes to.


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("layout", ["compact", "indented", "gzip", "marked"])
def test_each_format_is_told_whatever_its_layout(write, name, layout):
    indent = 2 if layout == "indented" and name in VALUES else None
    sample = SAMPLES[name]
    text = ("\ufeff" if layout == "marked" else "") + json.dumps(sample, indent=indent)
    path = write(text, name="x.json.gz" if layout == "gzip" else "x.json")
    assert tell(path) == name
    run = pt.load_run(path)
    first = "A sentence. Another, with a tail." if name == "hotpotqa" else None
    first = (
        "first paragraph" if name == "squad" else "first line\nsecond line" if name == "flashrag" else first
    )
    assert texts(run)[0] == (first or "first")
    assert run.queries["text"].iloc[0] == "who?"


def test_predictions_as_a_run(write):
    run = pt.load_run(write(PREDICTION, "", {**PREDICTION, "query_id": "18_19", "references": "me"}))
    assert rows(run) == [("007", "a", 1), ("007", "b", 2), ("18_19", "a", 1), ("18_19", "b", 2)]  # P86
    assert texts(run) == ["first", "second"] * 2
    assert run.answers.to_dict() == {"007": ("me", "I"), "18_19": ("me",)}
    assert run.predictions.to_dict() == {"007": "me", "18_19": "me"}
    assert notes(run) == []
    assert "blank line" in notes(run, "ignored")


def test_a_repeated_query_id_is_an_error_with_both_lines(write):
    path = write(PREDICTION, "", PREDICTION, name="p.jsonl")
    with pytest.raises(pt.RunFormatError, match=r"load_run: p\.jsonl:3 repeats question id '007' of line 1;"):
        pt.load_run(path)
    run = pt.load_run(path, bad_lines="skip")
    assert run.n_queries == 1
    assert [note.n for note in run.report.of("skipped")] == [1]


@pytest.mark.parametrize(
    ("ids", "docids", "said"),
    [
        (["a"], ["a", None], "fewer ids than passages: the rest are named by their text"),
        (["a", "b", "c"], [None, None], "more ids than passages: the passages are named by their text"),
        (None, [None, None], None),
        ([1, 2], ["1", "2"], None),
    ],
)
def test_ids_and_passages_of_different_number(write, ids, docids, said):
    run = pt.load_run(write({**PREDICTION, "top_doc_ids": ids}))
    found = [docid if not docid.startswith("text-") else None for docid in run.candidates["docid"]]
    assert found == docids
    assert texts(run) == ["first", "second"]
    assert notes(run) == ([said] if said else [])


def test_passages_that_are_one_text_count_as_none_as_in_the_report(write):
    one = {**PREDICTION, "query_id": "q2", "passages": "one text"}
    run = pt.load_run(write(PREDICTION, one))
    assert list(run.queries.index) == ["007"]
    assert "'passages' that is one text, not a list: counts as none" in notes(run)
    assert "question without contexts: not in the run" in notes(run)
    with pytest.raises(pt.RunFormatError, match="strict=True"):
        pt.load_run(write(PREDICTION, one), strict=True)


def test_a_wrong_field_of_predictions_names_the_line_and_the_rule(write):
    path = write(PREDICTION, {**PREDICTION, "query_id": None}, name="p.jsonl")
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(path)
    assert str(error.value).startswith(
        "load_run: p.jsonl:2 has a wrong field: 'query_id' must be a text that is not empty; got None; the line is"
    )
    assert pt.load_run(path, bad_lines="skip").n_queries == 1


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [
        ('"A title"\ntext', "A title", "text"),
        ("A title\nline\nline", "A title", "line\nline"),
        ('"A" and "B"\ntext', '"A" and "B"', "text"),  # no pair of quotes around it
        ("only text", "", "only text"),
        ("\ntext", "", "text"),
        ('"\ntext', '"', "text"),
    ],
)
def test_flashrag_contents_are_title_and_text(write, contents, title, text):
    record = copy.deepcopy(FLASHRAG)
    record["output"]["retrieval_result"] = [{"contents": contents}]
    run = pt.load_run(write([record]))
    assert run.passages.to_numpy().tolist() == [[title, text]]


def test_flashrag_as_an_array_and_as_lines_is_the_same(write):
    other = {**FLASHRAG, "id": "test_1", "output": {"pred": "no idea"}}
    array = pt.load_run(write([FLASHRAG, other], indent=1, name="intermediate_data.json"))
    lines = pt.load_run(write(FLASHRAG, other, name="lines.jsonl"))
    for run in (array, lines):
        assert rows(run) == [("test_0", "12", 1), ("test_0", "7", 2)]
        assert run.candidates["score"].tolist() == [0.9, 0.5]
        assert run.answers.to_dict() == {"test_0": ("me", "I")}
        assert run.predictions.to_dict() == {"test_0": "me"}
        assert notes(run) == ["question without contexts: not in the run"]


def test_ragchecker_reads(write):
    bare = {**RAGCHECKER, "query_id": "1", "retrieved_context": [{"text": "third"}]}
    run = pt.load_run(write({"results": [RAGCHECKER, bare], "metrics": {"overall": {}}}, indent=2))
    assert texts(run) == ["first", "second", "third"]
    assert rows(run)[:2] == [("0", "000", 1), ("0", "001", 2)]
    assert rows(run)[2][1].startswith("text-")
    assert run.answers["0"] == ("me",)
    assert run.predictions["0"] == "it is me"


def test_ragas_reads_with_ids_as_text(write):
    run = pt.load_run(write(RAGAS))
    assert rows(run) == [("line-1", "a", 1), ("line-1", "2", 2)]
    assert texts(run) == ["first", "second"]
    assert run.answers["line-1"] == ("me",)
    assert run.predictions["line-1"] == "it is me"
    assert notes(run) == ["no question id: made from the line number"]


def test_a_ragas_record_alone_becomes_a_case(tmp_path):
    report = LoadReport(bad_lines="skip")
    case = ragas_case(
        {**RAGAS, "retrieved_context_ids": None, "response": None}, tmp_path / "x.csv", 5, report
    )
    assert case is not None
    assert [(c.text, c.docid) for c in case.contexts] == [("first", None), ("second", None)]
    assert (case.question, case.answers, case.prediction, case.qid) == ("who?", ("me",), None, None)
    assert ragas_case({"user_input": ["a", "b"]}, tmp_path / "x.csv", 6, report) is None
    assert [(note.first_line, note.n) for note in report.of("skipped")] == [(6, 1)]


def test_ramdocs_labels_and_columns(write):
    run = pt.load_run(write(RAMDOCS))
    assert run.candidates["type"].tolist() == ["correct", "misinfo"]
    assert run.candidates["answer"].tolist() == ["me", "you"]
    assert run.qrels["docid"].tolist() == [run.candidates["docid"][0]]
    assert run.answers.iloc[0] == ("me",)


def test_hotpotqa_joins_sentences_as_they_stand_and_judges_titles(write):
    run = pt.load_run(write([HOTPOTQA]))
    assert texts(run) == ["A sentence. Another, with a tail.", "Other."]
    assert sorted(run.qrels["docid"]) == ["Absent", "One"]
    assert notes(run) == []
    assert "supporting paragraph that is not among the contexts" in notes(run, "ignored")
    glued = {
        **HOTPOTQA,
        "context": [["One", ["It ends.", "It starts", ", so it goes."]]],
    }  # as 2WikiMultihopQA
    run = pt.load_run(write([glued]))
    assert texts(run) == ["It ends. It starts, so it goes."]
    assert notes(run) == ["sentences without a space between them: joined by one"]


def test_hotpotqa_without_contexts_is_reported(write):
    run = pt.load_run(write([HOTPOTQA, {**HOTPOTQA, "_id": "h2", "context": []}]))
    assert list(run.queries.index) == ["h1"]
    assert "question without contexts: not in the run" in notes(run)


def test_squad_gives_each_question_its_paragraph(write):
    no_question = {"context": "nobody asks", "qas": []}
    run = pt.load_run(write({"data": [{**SQUAD, "paragraphs": [*SQUAD["paragraphs"], no_question]}]}))
    assert rows(run) == [("s1", "p1", 1), ("s2", "p1", 1)]
    assert run.passages.loc["p1"].tolist() == ["A title", "first paragraph"]
    assert run.answers.to_dict() == {"s1": ("me", "I"), "s2": ()}
    assert run.qrels["qid"].tolist() == ["s1"]  # the paragraph does not answer s2
    assert "paragraph without questions: not in the run" in notes(run, "ignored")


def test_rerank_requests_keep_the_place_in_the_page(write):
    run = pt.load_run(write(REQUEST))
    assert rows(run) == [("429", "d#4", 1), ("429", "d#3", 2)]
    assert run.candidates["score"].tolist() == [18.2876, 18.0]  # P95
    assert run.candidates["url"].tolist() == ["u", "u"]
    assert run.candidates["start_char"].iloc[0] == 5
    assert np.isnan(run.candidates["start_char"].iloc[1])
    assert run.passages["title"].tolist() == ["T", "T"]
    assert "numeric 'qid' read as text" in notes(run, "ignored")


# Nothing is changed without a word.


@pytest.mark.parametrize("name", SAMPLES)
def test_line_separators_and_accents_inside_texts_are_kept(write, name):
    odd = "a\u2028b\u2029c\u0085d " + unicodedata.normalize("NFD", "café")  # P85, P103
    text = json.dumps(SAMPLES[name], ensure_ascii=False).replace("who?", odd)
    run = pt.load_run(write(text))
    assert run.queries["text"].iloc[0] == odd
    assert run.report.of("skipped") == []


def test_a_question_without_an_id_is_named_by_line_or_record(write):
    bare = {k: v for k, v in FLASHRAG.items() if k != "id"}
    assert list(pt.load_run(write([FLASHRAG, bare])).queries.index) == ["test_0", "record-2"]
    assert list(pt.load_run(write(FLASHRAG, "", bare)).queries.index) == ["test_0", "line-3"]


@pytest.mark.parametrize(
    ("key", "value", "answers"), [("gt_answer", 42, ("42",)), ("gt_answer", ["a", 1.5, "a"], ("a", "1.5"))]
)
def test_answers_that_are_numbers_become_text_and_are_reported(write, key, value, answers):
    run = pt.load_run(write({"results": [{**RAGCHECKER, key: value}]}))
    assert run.answers["0"] == answers
    assert notes(run) == ["number in 'gt_answer' read as text"]


def test_a_lone_surrogate_is_replaced_and_reported(write):
    text = json.dumps([FLASHRAG]).replace("who?", "wh\\ud83d?")
    run = pt.load_run(write(text))
    assert run.queries["text"].iloc[0] == "wh\ufffd?"
    assert notes(run) == ["lone surrogate replaced by U+FFFD"]


# Files that can't be read.


def test_a_half_written_line_names_line_and_column_and_can_be_skipped(write):
    line = json.dumps(RAGAS)
    path = write(line, line[:30], name="r.jsonl")  # P82
    with pytest.raises(
        pt.RunFormatError, match=r"load_run: r\.jsonl:2 is not JSON \(.* at column \d+\); the line is"
    ):
        pt.load_run(path)
    run = pt.load_run(path, bad_lines="skip")
    assert run.n_queries == 1
    assert [note.n for note in run.report.of("skipped")] == [1]


@pytest.mark.parametrize("bad_lines", ["raise", "skip"])
def test_a_half_written_value_names_line_and_column_and_can_not_be_skipped(write, bad_lines):
    path = write('[\n {"id": "q", "retrieval_result": [', name="f.json")  # P82
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(path, bad_lines=bad_lines)
    assert str(error.value) == (
        "load_run: f.json:3 is not JSON (Expecting value at column 1); the file must be one whole JSON value. "
        "It may be cut short: get it again."
    )


def test_bytes_that_are_not_utf8_name_line_and_byte(tmp_path):
    (tmp_path / "f.json").write_bytes(b'[\n{"retrieval_result": "\xff"}]')
    with pytest.raises(pt.RunFormatError, match=r"f\.json:2 is not UTF-8 \(byte 23\)"):
        pt.load_run(tmp_path / "f.json")


def test_a_wrong_record_of_an_array_is_named_by_its_number(write):
    path = write([FLASHRAG, {"id": "q", "question": None, "output": {}}], indent=1, name="f.json")
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(path)
    assert str(error.value) == (
        "load_run: f.json: record 2 needs a text 'question'; got \"{'id': 'q', 'question': None, 'output': {}}\". "
        "Mend the record, or load with bad_lines='skip' to leave it out."
    )
    run = pt.load_run(path, bad_lines="skip")
    assert run.n_queries == 1
    assert [(note.n, note.first_line) for note in run.report.of("skipped")] == [(1, 2)]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ragchecker", [], r"x\.json: the file must be a JSON object with a list 'results'; got a list"),
        ("ragchecker", {"a": 1}, r"must be a JSON object with a list 'results'; got the keys \['a'\]"),
        (
            "squad",
            {"data": [{"title": "t"}]},
            r"x\.json: data\[0\] must be a JSON object with a list 'paragraphs'",
        ),
        ("squad", {"data": [{"paragraphs": [3]}]}, r"data\[0\]\.paragraphs\[0\] must be .* 'qas'; got a int"),
        ("hotpotqa", [{**HOTPOTQA, "context": 3}], r"record 1 has a 'context' that is not a list"),
        ("hotpotqa", [[1]], r"record 1 is JSON but not an object"),
        ("flashrag", [], r"holds no question with contexts"),
    ],
)
def test_values_of_another_shape_are_errors_that_say_what_is_wanted(write, name, value, message):
    with pytest.raises(pt.RunFormatError, match=message):
        pt.load_run(write(value, name="x.json"), format=name)


ODD = [None, True, -1.5, "", "\ud800", [], [[1]], {"a": 1}, 10**400]


def _changed(value, odd):
    """Every copy of a JSON value with one part of it replaced by something odd, or left out."""
    yield odd
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        for changed in _changed(part, odd):
            whole = copy.copy(value)
            whole[key] = changed
            yield whole


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("bad_lines", ["raise", "skip"])
def test_no_content_raises_anything_but_packtools_errors(write, name, bad_lines):
    sample, known, read = SAMPLES[name], FORMATS[name], 0
    for value in (changed for odd in ODD for changed in _changed(sample, odd)):
        path, report = write(json.dumps(value)), LoadReport(bad_lines=bad_lines)
        cases = Cases(path, report, known.what)
        try:
            for number, case in known.read(path, report):
                cases.add(number, case)
            read += len(cases.rows["qid"]) > 0
            if bad_lines == "raise" and cases.rows["qid"]:
                cases.run("x")
        except pt.PacktoolsError:
            continue
    assert read  # some of these are fine


@pytest.mark.parametrize("name", SAMPLES)
def test_a_cut_file_raises_nothing_but_packtools_errors(write, name):
    text = json.dumps(SAMPLES[name])
    for end in range(1, len(text), 13):
        with pytest.raises(pt.PacktoolsError):
            pt.load_run(write(text[:end]), format=name)


@pytest.mark.parametrize("depth", [300, 3000, 200_000])
@pytest.mark.parametrize("name", SAMPLES)
def test_deep_nesting_raises_nothing_but_packtools_errors(write, name, depth):
    deep = "[" * depth + "]" * depth
    text = json.dumps(SAMPLES[name])
    for old in ('"first"', '["first", "second"]', '"me"', '"One"', '"A title"', '"who?"'):
        if old in text:
            try:
                pt.load_run(write(text.replace(old, deep)), format=name)
            except pt.PacktoolsError:
                continue


# FlashRAG without contexts; ranx.


def test_flashrag_questions_without_contexts_are_queries_and_answers_beside_a_run(write, real):
    path = real / "tool_outputs" / "flashrag_nq_test.jsonl"
    listed = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    with pytest.raises(
        pt.RunFormatError, match=r"flashrag_nq_test\.jsonl has no contexts .*'golden_answers'"
    ):
        pt.load_run(path)
    with pytest.raises(pt.RunFormatError, match=r"flashrag_nq_test\.jsonl holds no question with contexts"):
        pt.load_run(path, format="flashrag")
    trec = write(*(f"{record['id']} Q0 d{i} 1 1.0 t" for i, record in enumerate(listed)), name="x.run")
    collection = write(*(f"d{i}\ttext {i}" for i in range(len(listed))), name="collection.tsv")
    run = pt.load_run({"run": trec, "collection": collection, "queries": path, "answers": path})
    assert run.queries["text"].to_dict() == {r["id"]: r["question"] for r in listed}
    assert run.answers.to_dict() == {r["id"]: tuple(r["golden_answers"]) for r in listed}
    assert (run.n_queries, sum(map(len, run.answers))) == (17, 41)


def ranx(path) -> tuple[list[tuple], LoadReport]:
    report = LoadReport()
    return list(read_ranx(path, report).itertuples(index=False, name=None)), report


def test_a_ranx_run_is_ranked_by_score_with_ties_in_the_order_of_the_file(write):
    path = write({"007": {"d1": 0.5, "d2": 0.9, "d3": 0.5}, "q2": {"NA": 1}, "q3": {}}, name="run.json")
    found, report = ranx(path)
    assert found == [
        ("007", "d2", 1, 0.9),
        ("007", "d1", 2, 0.5),
        ("007", "d3", 3, 0.5),
        ("q2", "NA", 1, 1.0),
    ]
    assert [note.what for note in report.of("ignored")] == ["query without documents: not in the run"]
    frame = read_ranx(path, LoadReport())
    assert [str(frame[name].dtype) for name in frame] == ["category", "category", "int64", "float64"]
    run = pt.Run.from_frames(frame, {"d2": "text"})
    assert [c.id for c in run.chunks("007")] == ["d2"]


def test_ranx_scores_that_are_not_finite_go_last_and_text_scores_are_numbers(write):
    found, report = ranx(
        write('{"q": {"a": NaN, "b": "1.5e-05", "c": null, "d": -3, "e": Infinity}}')
    )  # P92, P95
    assert [row[1] for row in found] == ["b", "d", "a", "c", "e"]
    assert [row[3] for row in found[:2]] == [1.5e-05, -3.0]
    assert np.isnan([row[3] for row in found[2:]]).all()
    assert [(note.what, note.n) for note in report.of("repaired")] == [
        ("score that is not a finite number, placed last", 3)
    ]


def test_a_document_named_twice_in_a_ranx_query_keeps_its_best_rank(write):
    report = LoadReport()
    frame = read_ranx(
        write('{"q": {"d1": 1.0, "d2": 1.5, "d1": 2.0}}'), report
    )  # P91: json keeps the last only
    run = pt.Run.from_frames(frame, {"d1": "x", "d2": "y"}, report=report)
    assert list(zip(run.candidates["docid"], run.candidates["score"], strict=True)) == [
        ("d1", 2.0),
        ("d2", 1.5),
    ]
    assert "document repeated for a query: the best rank stays" in notes(run)


def test_a_ranx_run_loads_beside_a_collection_and_asks_for_one_when_alone(write):
    path = write({"007": {"d1": 0.5, "d2": 0.9}}, name="bm25.json", indent=4)
    with pytest.raises(
        pt.RunFormatError, match=r"bm25\.json came without passage text\. Give the collection too"
    ):
        pt.load_run(path)
    collection = write("d1\tone", "d2\ttwo", name="collection.tsv")
    for paths in ([path, collection], {"run": path, "collection": collection}):
        run = pt.load_run(paths)
        assert rows(run) == [("007", "d2", 1), ("007", "d1", 2)]
        assert texts(run) == ["two", "one"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", r"x\.json must be a JSON object of qid to an object of docid to score; got a list\."),
        ("{}", r"x\.json holds no document"),
        ('{"q": {}}', r"x\.json holds no document"),
        ('{"q": [1]}', r"query 'q' must have an object of docid to score; got a list"),
        ('{"q": {"d": "high"}}', r"the score of document 'd' for query 'q' must be a number; got 'high'"),
        ('{"q": {"d": true}}', r"must be a number; got bool"),
        ('{"q": {"d": {"e": 1}}}', r"must be a number"),
        ('{"q": {"": 1}}', r"query 'q' has an id that is empty or no text"),
        ('{"q": {"d\\ud800": 1}}', r"query 'q' has an id that is empty or no text"),
        ('{"q": {"d": 1}, "q": {"e": 1}}', r"x\.json names query 'q' twice"),
        ('{"q": {"d": 1},\n "r": {"d"', r"x\.json:\d is not JSON \(.* at column \d+\)"),
    ],
)
def test_ranx_files_that_break_the_rule_are_errors(write, text, message):
    with pytest.raises(pt.RunFormatError, match=message):
        read_ranx(write(text, name="x.json"), LoadReport())


def test_a_ranx_head_is_told_from_others(write):
    run = {"q 1": {'d"1': 0.5, "d2": 1e-05}}
    for path in (write(run), write(run, indent=4), write(run, name="x.json.gz")):
        assert looks_ranx(records.head_of(path))
    for name, sample in SAMPLES.items():
        assert not looks_ranx(records.head_of(write(sample))), name
    assert not looks_ranx('{"q": {"a": {"b": 1}}}')


# Real files, against plain JSON parsing.


def parsed(path):
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.split("\n") if line]
    return json.loads(text)


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_real_ragchecker(real, kind):
    path = real / "tool_outputs" / f"ragchecker_checking_{kind}.json"
    results = parsed(path)["results"]
    run = pt.load_run(path)
    assert texts(run) == [c["text"] for r in results for c in r["retrieved_context"]]
    assert run.queries["text"].to_dict() == {r["query_id"]: r["query"] for r in results}
    assert run.answers.to_dict() == {r["query_id"]: (r["gt_answer"],) for r in results}
    assert run.predictions.to_dict() == {r["query_id"]: r["response"] for r in results}
    assert (run.n_queries, len(run.candidates), len(run.passages)) == (2, 7, 7)
    # both questions number their documents from 000: three ids are used for two texts
    assert [(n.n, n.what) for n in run.report.of("repaired")] == [
        (3, "one id for two texts: the later is named id~2, id~3, …")
    ]


def test_real_ramdocs(real):
    path = real / "ramdocs" / "RAMDocs_test.jsonl"
    listed = parsed(path)
    run = pt.load_run(path)
    pairs = {(i, d["text"]): d for i, r in enumerate(listed, 1) for d in reversed(r["documents"])}
    found = {
        (int(qid.removeprefix("line-")), text): (kind, answer)
        for qid, text, kind, answer in zip(
            run.candidates["qid"], texts(run), run.candidates["type"], run.candidates["answer"], strict=True
        )
    }
    assert found == {key: (d["type"], d["answer"]) for key, d in pairs.items()}
    assert (run.n_queries, sum(len(r["documents"]) for r in listed), len(found)) == (500, 2766, 2765)
    assert len(run.qrels) == sum(d["type"] == "correct" for d in pairs.values()) == 1917
    assert run.answers.to_dict() == {
        f"line-{i}": tuple(dict.fromkeys(r["gold_answers"])) for i, r in enumerate(listed, 1)
    }
    repeats = [n.n for n in run.report.of("repaired") if n.what.startswith("document repeated")]
    assert repeats == [1]


def test_real_hotpotqa(real):
    path = real / "hotpotqa" / "hotpotqa_sample.json"
    listed = parsed(path)
    run = pt.load_run(path)
    with_contexts = [r for r in listed if r["context"]]
    wanted = {(r["_id"], title): "".join(sentences) for r in listed for title, sentences in r["context"]}
    assert (
        dict(zip(zip(run.candidates["qid"], run.candidates["docid"], strict=True), texts(run), strict=True))
        == wanted
    )
    assert (run.n_queries, len(with_contexts), len(wanted)) == (29, 29, 145)
    judged = {(r["_id"], title) for r in listed for title, _ in r["supporting_facts"]}
    assert set(zip(run.qrels["qid"], run.qrels["docid"], strict=True)) == judged
    assert run.answers.to_dict() == {r["_id"]: (r["answer"],) for r in with_contexts}
    assert [(n.n, n.what) for n in run.report.of("repaired")] == [
        (1, "question without contexts: not in the run")
    ]
    missing = len(judged - {(r["_id"], t) for r in listed for t, _ in r["context"]})
    told = [n.n for n in run.report.of("ignored") if n.what.startswith("supporting paragraph")]
    assert told == [missing] == [40]


def test_real_drcd(real):
    path = real / "drcd_zh_hant" / "DRCD_dev.json"
    paragraphs = [(a["title"], p) for a in parsed(path)["data"] for p in a["paragraphs"]]
    run = pt.load_run(path)
    assert run.passages.to_dict("index") == {
        p["id"]: {"title": title, "text": p["context"]} for title, p in paragraphs
    }
    assert rows(run) == [(q["id"], p["id"], 1) for _, p in paragraphs for q in p["qas"]]
    assert run.answers.to_dict() == {
        q["id"]: tuple(dict.fromkeys(a["text"] for a in q["answers"]))
        for _, p in paragraphs
        for q in p["qas"]
    }
    assert (run.n_queries, len(run.passages), len(run.qrels)) == (3524, 1000, 3524)
    assert run.report.of("repaired") == []


def test_real_rerank_requests(real):
    path = real / "trec_rag" / "rerank_candidates_rag24_sample.jsonl"
    (request,) = parsed(path)
    run = pt.load_run(path)
    assert list(run.queries.index) == ["429"]
    assert texts(run) == [c["doc"]["segment"] for c in request["candidates"]]
    for column, values in {
        "docid": [c["docid"] for c in request["candidates"]],
        "score": [c["score"] for c in request["candidates"]],
        **{k: [c["doc"][k] for c in request["candidates"]] for k in ("url", "start_char", "end_char")},
    }.items():
        assert run.candidates[column].tolist() == values
    assert run.report.of("repaired") == []


@pytest.mark.parametrize(("name", "contexts"), [("plain", 360), ("packed", 258)])
def test_the_sample_predictions_are_runs(name, contexts):
    path = pt.sample_path() / "predictions" / f"{name}.jsonl"
    listed = parsed(path)
    run = pt.load_run(path)
    found = {
        qid: part.tolist()
        for qid, part in run.candidates.assign(text=texts(run)).groupby("qid", observed=True)["text"]
    }
    assert found == {r["query_id"]: r["passages"] for r in listed}
    assert run.predictions.to_dict() == {r["query_id"]: r["prediction"] for r in listed}
    assert len(run.candidates) == sum(len(r["passages"]) for r in listed) == contexts


def test_the_readers_share_one_row_parser_for_predictions(write):
    path = write(PREDICTION)
    (case,) = (case for _, case in tool_outputs.read_predictions(path, LoadReport()))
    row = pt.load_predictions(path).rows["007"]
    assert [c.text for c in case.contexts] == list(row.passages)
    assert (case.prediction, case.answers, case.question) == (row.prediction, row.references, row.query)
