"""Tables of other tools: AutoRAG's Parquet, Haystack's CSV and JSON, ragas's CSV."""

from __future__ import annotations

import ast
import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import packtools as pt


def notes(run: pt.Run, kind: str) -> str:
    return "; ".join(map(str, run.report.of(kind)))


def found(run: pt.Run) -> list[tuple]:
    frame = run.candidates
    return list(zip(frame["qid"], frame["docid"], frame["rank"], strict=True))


def autorag(path: Path, *rows: dict) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def row(qid: str, suffix: str = "", scores: str = "retrieve_scores", **more) -> dict:
    """One row of an AutoRAG result with two retrieved passages."""
    return {
        "qid": qid,
        "query": f"why {qid}?",
        "retrieval_gt": [["d1"], ["d9"]],
        "generation_gt": ["because", "so"],
        f"retrieved_contents{suffix}": [f"text{suffix} 1", "text 2"],
        f"retrieved_ids{suffix}": ["d1", "d2"],
        f"{scores}{suffix}": [2.0, 1.0],
        **more,
    }


def cells(path: Path, rows: list[dict]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_an_autorag_generator_result_brings_all_it_knows(tmp_path):
    run = pt.load_run(autorag(tmp_path / "x.parquet", row("007", generated_texts="so it is")))
    assert found(run) == [("007", "d1", 1), ("007", "d2", 2)]
    assert list(run.candidates["score"]) == [2.0, 1.0]
    assert run.passages["text"].to_dict() == {"d1": "text 1", "d2": "text 2"}
    assert run.queries["text"].to_dict() == {"007": "why 007?"}
    assert run.answers["007"] == ("because", "so")
    assert run.predictions["007"] == "so it is"
    # d9 was not retrieved, and is judged all the same.
    assert set(zip(run.qrels["qid"], run.qrels["docid"], strict=True)) == {("007", "d1"), ("007", "d9")}


def test_autorag_columns_without_a_suffix_go_first(tmp_path):
    both = {**row("q", "_vectordb"), **row("q")}
    path = autorag(tmp_path / "x.parquet", both)
    run = pt.load_run(path)
    assert list(run.passages["text"]) == ["text 1", "text 2"]
    assert "x.parquet: the retrieval is in retrieved_contents; there are also: vectordb" in notes(
        run, "joined"
    )
    run = pt.load_run(path, run="vectordb")
    assert list(run.passages["text"]) == ["text_vectordb 1", "text 2"]
    assert run.name.endswith("/x:vectordb")


def test_of_several_autorag_suffixes_the_first_by_name_is_read_and_said(tmp_path):
    rows = {**row("q", "_semantic"), **row("q", "_lexical", "retrieved_scores")}
    path = autorag(tmp_path / "x.parquet", rows)
    run = pt.load_run(path)
    assert list(run.passages["text"]) == ["text_lexical 1", "text 2"]
    told = "the retrieval is in retrieved_contents_lexical; there are also: semantic; name one with run="
    assert told in notes(run, "joined")
    with pytest.raises(
        pt.RunFormatError, match="run 'semantics' is unknown; known: 'x', 'lexical', 'semantic'"
    ):
        pt.load_run(path, run="semantics")
    assert pt.load_run({"autorag": path}, run="semantic").passages["text"].iloc[0] == "text_semantic 1"


def test_alternatives_in_retrieval_gt_are_each_relevant_and_said(tmp_path):
    given = row("q", retrieval_gt=[["d1", "d2"], ["d1"], []])
    run = pt.load_run(autorag(tmp_path / "x.parquet", given))
    assert sorted(run.qrels["docid"]) == ["d1", "d2"]
    assert "'retrieval_gt' with alternatives: each counts as relevant" in notes(run, "ignored")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": None}, "x.parquet: record 2 has no text in 'query'"),
        ({"qid": ""}, "x.parquet: record 2 has no id in 'qid'"),
        ({"retrieved_ids": ["d1"]}, "x.parquet: record 2 has 2 contents, 1 ids and 2 scores"),
        ({"retrieved_ids": ["d1", ""]}, "x.parquet: record 2 has a retrieved passage without a text or with an empty"),
        ({"retrieved_contents": ["a", None]}, "x.parquet: record 2 has a retrieved passage without a text"),
    ],
)  # fmt: skip
def test_a_bad_autorag_row_is_named_or_skipped(tmp_path, change, message):
    path = autorag(tmp_path / "x.parquet", row("q1"), {**row("q2"), **change}, row("q3"))
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(path)
    assert message in str(error.value)
    assert list(pt.load_run(path, bad_lines="skip").queries.index) == ["q1", "q3"]


def test_a_folder_of_autorag_stages_asks_for_one(tmp_path):
    for name in ("retrieval", "reranker"):
        autorag(tmp_path / f"{name}.parquet", row("q"))
    autorag(tmp_path / "qa.parquet", {"qid": "q", "query": "why?", "retrieval_gt": [["d1"]]})
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(tmp_path)
    assert str(error.value) == (
        "load_run: 2 files could be the run: reranker, retrieval. They are stages of one pipeline: name the one "
        "to read with run=."
    )
    assert pt.load_run(tmp_path, run="retrieval").name.endswith("/retrieval")


def test_the_real_autorag_results_load(real):
    """Ids per list, repeats and gold, recounted with pyarrow alone."""
    for name, suffix in (
        ("lexical_retrieval_best_0", "_lexical"), ("passage_reranker_best_0", ""), ("generator_best_0", ""),
    ):  # fmt: skip
        table = pq.read_table(real / "autorag" / f"{name}.parquet").to_pylist()
        run = pt.load_run(real / "autorag" / f"{name}.parquet")
        lists = {r["qid"]: r[f"retrieved_ids{suffix}"] for r in table}
        want = {qid: list(dict.fromkeys(ids)) for qid, ids in lists.items()}
        assert {qid: [c.id for c in run.chunks(qid)] for qid in run.queries.index} == want
        repeats = sum(len(lists[qid]) - len(ids) for qid, ids in want.items())
        assert sum(note.n for note in run.report.of("repaired")) == repeats
        assert repeats == (40 if suffix else 0)  # every lexical list of 10 holds 6 different ids
        gold = {(r["qid"], d) for r in table for inner in r["retrieval_gt"] for d in inner}
        assert set(zip(run.qrels["qid"], run.qrels["docid"], strict=True)) == gold
        pairs = [
            zip(r[f"retrieved_ids{suffix}"], r[f"retrieved_contents{suffix}"], strict=True) for r in table
        ]
        texts = {docid: text for row_pairs in pairs for docid, text in row_pairs}
        assert run.passages["text"].to_dict() == texts
        assert run.answers.to_dict() == {r["qid"]: tuple(r["generation_gt"]) for r in table}
        said = {r["qid"]: r.get("generated_texts") for r in table}
        assert (run.predictions is None and not any(said.values())) or run.predictions.to_dict() == said


def test_real_autorag_files_that_are_no_run_say_so(real):
    for name, fields in (("qa", "'retrieval_gt'"), ("corpus", "'doc_id'")):
        with pytest.raises(pt.RunFormatError, match=rf"{name}\.parquet has no contexts .*{fields}"):
            pt.load_run(real / "autorag" / f"{name}.parquet")
        with pytest.raises(pt.RunFormatError, match=rf"{name}\.parquet has no contexts"):
            pt.load_run(real / "autorag" / f"{name}.parquet", format="autorag")
    with pytest.raises(
        pt.RunFormatError, match="3 files could be the run: generator_best_0, lexical_retrieval"
    ):
        pt.load_run(real / "autorag")


def haystack_rows(path: Path) -> list[dict]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_real_haystack_runs_load(real):
    """Texts recounted with csv and ast alone; a question has the same id in each run."""
    files = sorted((real / "haystack_aragog").glob("detailed_*.csv"))
    assert len(files) == 9
    for path in files:
        rows, run = haystack_rows(path), pt.load_run(path, strict=True)
        assert run.queries["text"].to_dict() == {f"row-{i}": r["questions"] for i, r in enumerate(rows, 1)}
        assert list(run.predictions) == [r["predicted_answers"] for r in rows]
        assert list(run.answers) == [(r["true_answers"],) for r in rows]
        contexts = [list(dict.fromkeys(ast.literal_eval(r["contexts"]))) for r in rows]
        assert [[c.text for c in run.chunks(qid)] for qid in run.queries.index] == contexts
        assert "columns that are not read: context_relevance, faithfulness, sas" in notes(run, "ignored")
        assert set(run.candidates) == {"qid", "docid", "rank", "score"}


def test_a_folder_of_haystack_runs_reads_the_first_and_says_so(real):
    run = pt.load_run(real / "haystack_aragog")
    assert "9 runs found (detailed_" in notes(run, "joined")
    run = pt.load_run(real / "haystack_aragog", run="top_k-3__chunk_size-64")
    assert run.depth == 3


def test_real_haystack_files_that_are_no_run_say_so(real):
    reports = sorted((real / "haystack_aragog").glob("score_report_*.csv"))
    assert len(reports) == 9
    for path in reports:
        with pytest.raises(pt.RunFormatError, match=r"has no contexts .*\['metrics', 'score'\]"):
            pt.load_run(path)
    with pytest.raises(
        pt.RunFormatError, match=r"has no questions: none of .* It has \['metrics', 'score'\]"
    ):
        pt.load_run(reports[0], format="haystack_csv")
    for name in ("eval_questions.json", "eval_questions_relevant_doc.json"):
        with pytest.raises(pt.RunFormatError, match=r"has no contexts .*\['questions', 'ground_truths'"):
            pt.load_run(real / "haystack_aragog" / name)


def result(path: Path, inputs: dict, indent: int | None = None, **more) -> Path:
    path.write_text(
        json.dumps({**more, "inputs": inputs, "results": {"sas": {"score": 1}}}, indent=indent), "utf-8"
    )
    return path


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize(
    ("question", "contexts", "answers", "more"),
    [
        ("question", "contexts", "ground_truth_answers", {}),
        ("questions", "documents", "true_answers", {"run_name": "a run"}),
    ],
)
def test_a_haystack_result_reads_by_position(tmp_path, question, contexts, answers, more, indent):
    inputs = {
        question: ["why?", "how?"],
        contexts: [["a", "b"], [{"id": "007", "content": "c", "score": 0.5}]],
        answers: ["x", ["y", "z"]],
        "predicted_answers": ["p1", None],
        "other": [1, 2],
    }
    run = pt.load_run(result(tmp_path / "x.json", inputs, indent, **more))
    assert run.queries["text"].to_dict() == {"row-1": "why?", "row-2": "how?"}
    assert [[c.text for c in run.chunks(q)] for q in run.queries.index] == [["a", "b"], ["c"]]
    assert run.chunks("row-2")[0].id == "007"
    assert list(run.answers) == [("x",), ("y", "z")]
    assert list(run.predictions) == ["p1", None]
    assert "columns that are not read: other" in notes(run, "ignored")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"questions": ["a", "b"], "contexts": [["x"]]}, "has lists of unequal length: {'questions': 2, 'contexts': 1}"),
        ({"questions": ["a"], "answers": ["x"]}, "has no contexts: none of 'contexts', 'documents'"),
        ({"contexts": [["a"]]}, "has no questions: none of 'question', 'questions'"),
        ({"questions": "a", "contexts": [["x"]]}, "'questions' must be a list; got 'a'"),
        ({"questions": [""], "contexts": [["x"]]}, "record 1 has an empty question"),
        ({"questions": ["a"], "contexts": [[3]]}, "record 1 has a context that is no text"),
        ({"questions": ["a"], "contexts": ["x"]}, "record 1 has contexts that are not a list of texts"),
    ],
)  # fmt: skip
def test_a_broken_haystack_result_says_what_is_wrong(tmp_path, inputs, message):
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(result(tmp_path / "x.json", inputs))
    assert message in str(error.value)


def test_a_cut_list_in_a_haystack_csv_names_its_line(tmp_path):
    head = "questions,contexts,true_answers\n"
    path = tmp_path / "x.csv"
    path.write_text(head + '"why\n?","[\'a\']",x\nhow?,"[\'b\', \'c",y\n')
    with pytest.raises(pt.RunFormatError, match=r"x\.csv:4 has contexts that are not a list of texts \(cut"):
        pt.load_run(path)
    run = pt.load_run(path, bad_lines="skip")
    assert run.queries["text"].to_dict() == {"row-1": "why\n?"}


@pytest.mark.parametrize("as_text", [repr, json.dumps])
def test_a_ragas_csv_reads_with_its_lists_as_text(tmp_path, as_text):
    rows = [
        {
            "user_input": "why,\n?",
            "retrieved_contexts": as_text(["it's", 'a "b"']),
            "retrieved_context_ids": as_text(["007", "1e5"]),
            "response": "NA",
            "reference": "because",
            "faithfulness": 0.5,
        },
        {
            "user_input": "how?",
            "retrieved_contexts": as_text(["c"]),
            "retrieved_context_ids": as_text(["18_19"]),
            "response": "",
            "reference": "",
            "faithfulness": "",
        },
    ]
    run = pt.load_run(cells(tmp_path / "results.csv", rows))
    assert found(run) == [("row-1", "007", 1), ("row-1", "1e5", 2), ("row-2", "18_19", 1)]
    assert run.passages["text"].to_dict() == {"007": "it's", "1e5": 'a "b"', "18_19": "c"}
    assert run.queries["text"].to_dict() == {"row-1": "why,\n?", "row-2": "how?"}
    assert list(run.answers) == [("because",), ()]
    assert list(run.predictions) == ["NA", None]
    assert "columns that are not read: faithfulness" in notes(run, "ignored")


def test_a_ragas_csv_without_ids_or_answers_reads(tmp_path):
    rows = [{"user_input": "why?", "retrieved_contexts": "['a', 'b']"}]
    run = pt.load_run(cells(tmp_path / "x.csv", rows))
    assert [c.text for c in run.chunks("row-1")] == ["a", "b"]
    assert run.answers is None
    assert run.predictions is None


def test_a_ragas_csv_needs_its_contexts(tmp_path):
    path = cells(tmp_path / "x.csv", [{"user_input": "why?", "retrieved_context": "['a']"}])
    with pytest.raises(
        pt.RunFormatError, match=r"x\.csv: column 'retrieved_contexts' is unknown; known: 'user_in"
    ):
        pt.load_run(path, format="ragas_csv")


def test_a_cut_list_in_a_ragas_csv_names_its_line(tmp_path):
    path = cells(tmp_path / "x.csv", [{"user_input": "why?", "retrieved_contexts": "['a', 'b"}])
    with pytest.raises(pt.RunFormatError, match=r"x\.csv:2 has a 'retrieved_contexts' that is not a list"):
        pt.load_run(path)


@pytest.mark.parametrize(
    "head", ["questions,contexts,true_answers", "user_input,retrieved_contexts,reference"]
)
def test_half_a_character_in_a_list_is_mended_and_said(tmp_path, head):
    (tmp_path / "x.csv").write_text(head + "\nwhy?,['cut \\ud83d'],[]\n")
    run = pt.load_run(tmp_path / "x.csv")
    assert list(run.passages["text"]) == ["cut \ufffd"]
    assert "lone surrogate replaced by U+FFFD (1, first at x.csv:2)" in notes(run, "repaired")


def test_a_stray_table_in_a_folder_is_left_alone(tmp_path):
    (tmp_path / "run.txt").write_text("q1 Q0 d1 1 2.5 t\n")
    (tmp_path / "collection.tsv").write_text("d1\tone\n")
    (tmp_path / "scores.csv").write_text('"never closed\n')
    (tmp_path / "notes.csv").write_text("query,note\nq1,x\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    assert pt.load_run(tmp_path).n_queries == 1


def test_a_ranx_run_reads_beside_its_collection(tmp_path):
    (tmp_path / "ranx.json").write_text('{"q1": {"d1": 0.5, "d2": 2}}')
    (tmp_path / "collection.tsv").write_text("d1\tone\nd2\ttwo\n")
    run = pt.load_run([tmp_path / "ranx.json", tmp_path / "collection.tsv"])
    assert found(run) == [("q1", "d2", 1), ("q1", "d1", 2)]
