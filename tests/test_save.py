"""Runs and packed runs written to files: what is read back is what was saved, or the save says why not."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt

SAVED = ("jsonl", "trec", "parquet")
SAMPLE = ROOT / "data" / "sample"


def make(**changes) -> pt.Run:
    """A small run that all three formats hold: ids that look like something else, ties, a title."""
    parts = {
        "candidates": pd.DataFrame(
            {
                "qid": ["q 2", "q 2", "007", "007"],
                "docid": ["d1", "two words", "NA", "d1"],
                "rank": [1, 2, 1, 2],
                "score": [0.30000000000000004, 1e-300, 5.0, 5.0],
            }
        ),
        "passages": pd.DataFrame(
            {"title": ["", "T", ""], "text": ["first\ntext\u2028", 'second "text"', "  é\t"]},
            index=["d1", "two words", "NA"],
        ),
        "queries": {"q 2": "moons?", "007": ""},
        "qrels": pd.DataFrame({"qid": ["q 2", "007"], "docid": ["two words", "d1"], "label": [1, 1]}),
        "answers": {"q 2": ["Titan", "Rhea"], "007": []},
        "name": "odd/bm25",
    }
    return pt.Run.from_frames(**{**parts, **changes})


def content(run: pt.Run) -> dict:
    """All that a run says, but for its name, its report, and the order of passages and judgements."""
    named = set(run.candidates["docid"])
    passages = zip(run.passages.index, run.passages["title"], run.passages["text"], strict=True)
    qrels = run.qrels
    return {
        "queries": list(run.queries["text"].items()),
        "candidates": run.candidates.astype({"qid": object, "docid": object}).to_dict("list"),
        "passages": {d: (title, text) for d, title, text in passages if d in named},
        "qrels": None if qrels is None else {(r.qid, r.docid): r.label for r in qrels.itertuples()},
        "answers": None if run.answers is None else list(run.answers.items()),
        "predictions": None if run.predictions is None else list(run.predictions.items()),
    }


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "saved"


# --- what is saved is read back -------------------------------------------------------------------


@pytest.mark.parametrize("format", SAVED)
def test_a_run_is_read_back_as_it_was(folder, format):
    run = make()
    back = pt.load_run(run.save(folder, format))
    assert content(back) == content(run)
    assert content(pt.load_run(folder)) == content(run)


def test_predictions_are_read_back_from_jsonl(folder):
    run = make(predictions={"q 2": "Titan."})
    back = pt.load_run(run.save(folder))
    assert back.predictions.to_dict() == {"q 2": "Titan.", "007": None}
    assert content(back) == content(run)


@pytest.mark.parametrize("format", ["trec", "parquet"])
def test_the_sample_is_read_back_with_grades_and_evaluates_alike(folder, format):
    run = pt.load_sample()
    back = pt.load_run(run.save(folder, format))
    assert content(back) == content(run)
    config = pt.PackerConfig(budget=400, jaccard_threshold=0.85)
    ours, theirs = (pt.prepare(one, counter="chars").evaluate(config).per_query for one in (run, back))
    pd.testing.assert_frame_equal(ours, theirs)


@pytest.mark.parametrize("format", ["trec", "parquet"])
def test_missing_texts_missing_scores_and_unretrieved_judgements_are_held(folder, format):
    frame = make().candidates.astype({"qid": object, "docid": object})
    frame["score"] = [1.0, np.nan, np.nan, np.nan]
    frame["docid"] = ["d1", "gone", "NA", "d1"]
    judged = pd.DataFrame(
        {"qid": ["q 2", "007", "007"], "docid": ["unseen", "d1", "NA"], "label": [3, 0, -1]}
    )
    run = make(candidates=frame, qrels=judged)
    back = content(pt.load_run(run.save(folder, format)))
    np.testing.assert_array_equal(back["candidates"].pop("score"), run.candidates["score"])
    wanted = content(run)
    del wanted["candidates"]["score"]
    assert back == wanted


@pytest.mark.parametrize("format", SAVED)
def test_without_answers_and_judgements_there_are_none(folder, format):
    run = make(qrels=None, answers=None)
    back = pt.load_run(run.save(folder, format))
    assert (back.qrels, back.answers, back.predictions) == (None, None, None)
    assert content(back) == content(run)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PLAIN_ID = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r#\ufeff"), min_size=1)
SAFE_ID = PLAIN_ID.map(lambda s: s.strip(" ")).filter(bool)
ANY_ID = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
SCORE = st.floats(allow_nan=False, allow_infinity=False)


def runs(ids) -> st.SearchStrategy[pt.Run]:
    """Runs of whatever ids, texts and scores: one or two questions over one to four passages."""

    @st.composite
    def build(draw) -> pt.Run:
        docids = draw(st.lists(ids, min_size=1, max_size=4, unique=True))
        qids = draw(st.lists(ids, min_size=1, max_size=2, unique=True))
        rows = [(q, d, rank, draw(SCORE)) for q in qids for rank, d in enumerate(docids, 1)]
        pairs = draw(st.lists(st.sampled_from([row[:2] for row in rows]), unique=True))
        return pt.Run.from_frames(
            pd.DataFrame(rows, columns=["qid", "docid", "rank", "score"]),
            pd.DataFrame(
                {"title": [draw(TEXT) for _ in docids], "text": [draw(TEXT) for _ in docids]}, docids
            ),
            queries={q: draw(TEXT) for q in qids},
            qrels=pd.DataFrame([(*pair, 1) for pair in pairs], columns=["qid", "docid", "label"]),
            answers={q: draw(st.lists(TEXT, max_size=2)) for q in qids},
        )

    return build()


def check_whole(run: pt.Run, format: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert content(pt.load_run(run.save(folder, format))) == content(run)


@settings(max_examples=30, deadline=None)
@given(runs(ANY_ID))
def test_jsonl_holds_any_ids_texts_and_scores(run):
    check_whole(run, "jsonl")


@settings(max_examples=30, deadline=None)
@given(runs(SAFE_ID))
def test_trec_holds_ids_with_anything_but_tabs_and_line_ends(run):
    check_whole(run, "trec")


@settings(max_examples=10, deadline=None)
@given(runs(ANY_ID))
def test_parquet_holds_any_ids_texts_and_scores(run):
    check_whole(run, "parquet")


def test_a_real_file_is_read_back(real, folder):
    path = sorted((real / "nq_multidoc").glob("*.jsonl*"))[0]
    run = pt.load_run(path)
    assert content(pt.load_run(run.save(folder))) == content(run)


# --- the files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", SAVED)
def test_the_same_run_gives_the_same_bytes(folder, tmp_path, format):
    run = make()
    written = run.save(folder, format), run.save(folder, format), run.save(tmp_path / "other", format)
    files = [
        sorted(p for p in (folder, tmp_path / "other")[i > 1].rglob("*") if p.is_file()) for i in range(3)
    ]
    assert written[0] == written[1]
    assert [p.read_bytes() for p in files[0]] == [p.read_bytes() for p in files[2]]
    assert not [p for p in folder.rglob(".*") if p.is_file()]


def test_a_trec_run_has_six_columns_parted_by_spaces_or_tabs(folder, tmp_path):
    run = make()
    assert run.save(folder, "trec")[0].read_text("utf-8").split("\n") == [
        "q 2\tQ0\td1\t1\t0.30000000000000004\tbm25",
        "q 2\tQ0\ttwo words\t2\t1e-300\tbm25",
        "007\tQ0\tNA\t1\t5.0\tbm25",
        "007\tQ0\td1\t2\t5.0\tbm25",
        "",
    ]
    plain = run.only(["007"]).save(tmp_path / "plain", "trec")
    assert [p.name for p in plain] == [
        "bm25.run",
        "corpus.jsonl",
        "queries.jsonl",
        "qrels.txt",
        "answers.jsonl",
    ]
    assert plain[0].read_text("utf-8") == "007 Q0 NA 1 5.0 bm25\n007 Q0 d1 2 5.0 bm25\n"
    assert plain[3].read_text("utf-8") == "007 0 d1 1\n"
    assert [row["_id"] for row in lines(plain[1])] == ["d1", "NA"]


def test_a_jsonl_record_has_the_shape_of_dpr(folder):
    (path,) = make().only(["007"]).save(folder)
    assert path.name == "bm25.jsonl"
    assert json.loads(path.read_text("utf-8")) == {
        "id": "007",
        "question": "",
        "answers": [],
        "ctxs": [
            {"id": "NA", "title": "", "text": "  é\t", "score": 5.0, "isgold": False},
            {"id": "d1", "title": "", "text": "first\ntext\u2028", "score": 5.0, "isgold": True},
        ],
    }


@pytest.mark.parametrize(
    "name",
    ["", "a/", "qrels", "Corpus-2", "passages v2", "docs", "queries", "topics", "questions", "answers",
     "run.x", "results.x", "x.gz", ".hidden", "a:b?", "documents", "collection"],
)  # fmt: skip
@pytest.mark.parametrize("format", ["jsonl", "trec"])
def test_a_run_of_any_name_is_read_back(folder, name, format):
    run = make(name=name)
    assert content(pt.load_run(run.save(folder, format))) == content(run)


def test_a_folder_of_another_run_is_refused(folder):
    make().save(folder, "trec")
    rule = (
        f"Run.save: 'folder' must be a folder with nothing else in it; got {pt.errors.shown(str(folder))}. "
    )
    with pytest.raises(pt.SettingError) as told:
        make(answers=None).save(folder, "trec")
    assert str(told.value) == rule + "It holds 'answers.jsonl'; give another."
    with pytest.raises(pt.SettingError, match="'folder' must be called something else"):
        make().save(folder / "qrels", "trec")
    with pytest.raises(pt.SettingError, match="'folder' must be a folder"):
        make().save(folder / "answers.jsonl")


def test_several_runs_go_into_one_folder_as_jsonl(folder):
    make().save(folder)
    make(name="tfidf").save(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["bm25.jsonl", "tfidf.jsonl"]
    assert content(pt.load_run(folder, run="tfidf")) == content(make())


# --- what a format can't hold ---------------------------------------------------------------------


def graded() -> pt.Run:
    """What DPR's yes and no can't say: a grade, a relevant passage that was not retrieved, no text."""
    judged = [("q 2", "d1", 3), ("q 2", "unseen", 1), ("007", "d1", 1), ("other", "d1", 1)]
    run = make(qrels=pd.DataFrame(judged, columns=["qid", "docid", "label"]))
    return replace(run, passages=run.passages.drop(index="NA"))


def test_each_loss_is_named_with_a_format_that_has_none(folder):
    with pytest.raises(pt.SettingError) as told:
        graded().save(folder)
    assert str(told.value) == (
        "Run.save: format 'jsonl' can't hold 1 candidates without passage text, such as 'NA'; "
        "1 judgements with a label other than 1; 2 relevant passages that were not retrieved, such as "
        "'unseen' for 'q 2'. Save it as 'trec', or leave that out with lossy=True."
    )
    with pytest.raises(pt.SettingError) as told:
        graded().save(folder, "parquet")
    assert str(told.value) == (
        "Run.save: format 'parquet' can't hold 1 judged queries that are not in the run, such as 'other'. "
        "Save it as 'trec', or leave that out with lossy=True."
    )
    assert not folder.exists()


def test_lossy_leaves_out_what_was_named(folder):
    back = content(pt.load_run(graded().save(folder, lossy=True)))
    assert back["qrels"] == {("q 2", "d1"): 1, ("007", "d1"): 1}
    assert back["candidates"]["docid"] == ["d1", "two words", "d1"]


def test_columns_of_the_candidates_are_held_by_parquet_alone(folder):
    frame = make().candidates.assign(source=["a", "b", "a", "b"])
    run = make(candidates=frame)
    for format in ("jsonl", "trec"):
        with pytest.raises(pt.SettingError) as told:
            run.save(folder, format)
        assert str(told.value) == (
            f"Run.save: format '{format}' can't hold the columns 'source' of the candidates. "
            "Save it as 'parquet', or leave that out with lossy=True."
        )
    assert content(pt.load_run(run.save(folder, "parquet"))) == content(run)


def test_jsonl_holds_which_contexts_have_an_answer(folder):
    run = make(candidates=make().candidates.assign(hasanswer=[True, False, False, True]))
    assert content(pt.load_run(run.save(folder))) == content(run)


def test_a_prediction_is_held_by_jsonl_alone(folder):
    run = make(predictions={"007": "Bond"})
    for format in ("trec", "parquet"):
        with pytest.raises(
            pt.SettingError, match=r"can't hold what a reader answered \(1 predictions\)\. Save"
        ):
            run.save(folder, format)


def test_a_loss_in_every_format_has_no_other_to_offer(folder):
    run = make()
    run = replace(run, passages=run.passages.assign(url="u"))
    with pytest.raises(pt.SettingError) as told:
        run.save(folder, "trec")
    assert str(told.value) == (
        "Run.save: format 'trec' can't hold the columns 'url' of the passages. "
        "Leave that out with lossy=True."
    )
    for number, format in enumerate(SAVED):
        assert content(pt.load_run(run.save(folder / str(number), format, lossy=True))) == content(make())


def test_a_missing_score_is_named_and_lossy_takes_the_one_above(folder):
    frame = make().candidates.assign(score=[2.0, np.nan, 3.0, 1.0])
    with pytest.raises(pt.SettingError, match="can't hold 1 candidates without a score"):
        make(candidates=frame).save(folder)
    back = pt.load_run(make(candidates=frame).save(folder, lossy=True))
    assert back.candidates["score"].tolist() == [2.0, 2.0, 3.0, 1.0]


def test_a_pair_judged_twice_is_named_and_lossy_keeps_the_highest_label(folder):
    qrels = pd.DataFrame({"qid": ["007"] * 2, "docid": ["d1"] * 2, "label": [1, 2]})
    with pytest.raises(pt.SettingError, match="1 judgements of a pair that was judged before"):
        make(qrels=qrels).save(folder, "trec")
    back = pt.load_run(make(qrels=qrels).save(folder, "trec", lossy=True))
    assert content(back)["qrels"] == {("007", "d1"): 2}
    assert not back.report.of("repaired")


@pytest.mark.parametrize("bad", ["a\tb", "a\nb", "a\rb", " a", "a ", "#a", "\ufeffa"])
def test_an_id_that_trec_lines_would_change_is_refused(folder, bad):
    run = make(
        candidates=pd.DataFrame({"qid": [bad], "docid": ["d1"], "rank": [1]}),
        queries=None,
        qrels=None,
        answers=None,
    )
    with pytest.raises(pt.RunFormatError) as told:
        run.save(folder, "trec", lossy=True)
    assert str(told.value) == (
        "Run.save: 'qid' must be an id without tabs, line ends, outer spaces or a leading '#', for a TREC file; "
        f"got {bad!r}. Save it as 'jsonl' or 'parquet'."
    )
    assert content(pt.load_run(run.save(folder))) == content(run)


def test_labels_that_are_no_whole_numbers_are_refused_by_trec(folder):
    qrels = pd.DataFrame({"qid": ["007"], "docid": ["d1"], "label": [0.5]})
    with pytest.raises(pt.RunFormatError, match="'label' must be a whole number below 1,000,000,000"):
        make(qrels=qrels).save(folder, "trec", lossy=True)


@pytest.mark.parametrize("format", SAVED)
def test_a_text_that_no_file_can_hold_is_refused_and_leaves_no_file(folder, format):
    with pytest.raises(pt.RunFormatError, match="can't be stored as UTF-8"):
        make(queries={"q 2": "\ud800", "007": ""}).save(folder, format)
    assert not [p for p in folder.rglob("*") if "queries" in p.name or p.name.endswith("bm25.jsonl")]


def test_titles_are_texts_or_missing(folder):
    run = make()
    none = replace(run, passages=run.passages.assign(title=[None, "T", np.nan]))
    for number, format in enumerate(SAVED):
        assert content(pt.load_run(none.save(folder / str(number), format))) == content(run)
    odd = replace(run, passages=run.passages.assign(title=[5, "T", ""]))
    with pytest.raises(pt.RunFormatError) as told:
        odd.save(folder)
    assert str(told.value) == "Run.save: 'title' must be a text in every row; got 5. Passage 'd1'."


def test_an_unknown_format_lists_those_there_are(folder):
    with pytest.raises(pt.SettingError) as told:
        make().save(folder, "json")
    assert str(told.value) == (
        "Run.save: format 'json' is unknown; known: 'jsonl', 'trec', 'parquet'. Did you mean 'jsonl'?"
    )


def test_to_dict_counts_in_plain_values():
    told = make(predictions={"007": "Bond"}, qrels=None).to_dict()
    report = told.pop("report")
    assert json.loads(json.dumps(report)) == report
    assert "predictions for 1 of 2 queries" in [note["what"] for note in report]
    assert told == {
        "name": "odd/bm25", "n_queries": 2, "n_candidates": 4, "n_passages": 3,
        "n_judgements": None, "n_answered": 1, "n_predictions": 1,
    }  # fmt: skip


# --- predictions files ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample() -> pt.PreparedRun:
    return pt.prepare(pt.load_sample())


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def test_a_character_pack_gives_the_recorded_file_of_the_sample(sample, tmp_path):
    recorded = lines(SAMPLE / "predictions" / "packed.jsonl")
    said = {row["query_id"]: row["prediction"] for row in recorded}
    path = sample.evaluate(pt.PackerConfig.characters(900, 320)).save_predictions(
        tmp_path / "a" / "b.jsonl", said
    )
    assert lines(path) == [{**row, "retrieval_source": sample.run.name} for row in recorded]
    assert [list(row) for row in lines(path)] == [list(row) for row in recorded]


CONFIGS = [
    pt.PackerConfig(budget=300),
    pt.PackerConfig(budget=300, separator="\n\n", jaccard_threshold=0.6, order="descending"),
    pt.PackerConfig(budget=150, overflow="truncate", passage_budget=60, sentence_selection="query_overlap"),
    pt.PackerConfig(budget=700, unit="chars", white_space="collapse", separator=" | ", fill="shorter_first"),
    pt.PackerConfig(budget=None),
]


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_any_pack_is_told_as_its_contexts_are(sample, tmp_path, config):
    packed = sample.evaluate(config)
    for row in lines(packed.save_predictions(tmp_path / "p.jsonl"))[::12]:
        context, told = packed.context(row["query_id"]), row["context_packing"]
        assert row["passages"] == list(context.passages)
        assert row["top_doc_ids"] == told["retained_doc_ids"] == [c.id for c in context.chunks]
        assert told["config"] == config.to_dict()
        assert told["packed_context_chars"] == len(context.text)
        assert told["packed_context_tokens"] == packed.per_query["n_tokens"][row["query_id"]]
        assert told["original_doc_ids"] == [d.docid for d in context.decisions]
        dropped = {d.docid: d for d in context.decisions if not d.kept}
        assert sorted(told["dropped_doc_ids"]) == sorted(dropped)
        assert {d["doc_id"]: (d["reason"], d.get("of"), d.get("over_by")) for d in told["dropped"]} == {
            docid: (d.reason, d.of, d.over_by) for docid, d in dropped.items()
        }
        spans = [(s.docid, s.rank, s.start, s.end, s.truncated, s.n_sentences) for s in context.spans]
        keys = ("doc_id", "source_rank", "start_char", "end_char", "truncated", "selected_sentence_count")
        assert [tuple(s[key] for key in keys) for s in told["spans"]] == spans


def test_the_full_context_has_ratio_one(sample, tmp_path):
    for config in (pt.PackerConfig(budget=None), pt.PackerConfig(budget=None, separator="\n\n")):
        for row in lines(sample.evaluate(config).save_predictions(tmp_path / "p.jsonl")):
            told = row["context_packing"]
            assert told["compression_ratio"] == 1.0
            assert told["original_context_chars"] == told["packed_context_chars"]
            assert told["original_context_tokens"] == told["packed_context_tokens"]


def test_a_candidate_without_text_is_told_as_an_empty_passage(tmp_path):
    run = pt.load_sample().only(["river-q1", "time-q8"])
    gone = run.chunks("river-q1")[1].id
    run = replace(run, passages=run.passages.drop(index=gone))
    packed = pt.prepare(run).evaluate(pt.PackerConfig.characters(900, 320))
    docids = run.candidates["docid"][run.candidates["qid"] == "river-q1"].tolist()
    passages = [None if d == gone else run.passages["text"][d] for d in docids]
    config = pt.ContextPackingConfig(enabled=True, max_context_chars=900, max_passage_chars=320)
    wanted = pt.pack_context(
        query=run.queries["text"]["river-q1"], doc_ids=docids, passages=passages, config=config
    )
    first = lines(packed.save_predictions(tmp_path / "p.jsonl"))[0]
    assert (first["context_packing"], first["passages"]) == (wanted.to_dict(), list(wanted.passages))


def test_two_files_go_through_the_packing_report(sample, tmp_path):
    full, tight = (sample.evaluate(pt.PackerConfig(budget=b, separator="\n\n")) for b in (None, 300))
    said = {"time-q8": "no idea", "river-q1": None}
    paths = full.save_predictions(tmp_path / "full.jsonl"), tight.save_predictions(tmp_path / "t.jsonl", said)
    left, right = map(pt.load_predictions, paths)
    assert right.rows["time-q8"].prediction == "no idea"
    assert left.rows["time-q8"].prediction is right.rows["river-q1"].prediction is None
    report = pt.packing_report(left, right).to_dict()
    assert report["coverage"]["n_matched_qids"] == sample.run.n_queries
    assert report["scored_as_empty"]["n_rows_without_prediction"] == 2 * sample.run.n_queries - 1


def test_predictions_come_from_the_run_where_none_are_given(tmp_path):
    packed = pt.prepare(make(predictions={"007": "Bond"}), counter="chars").evaluate(
        pt.PackerConfig(budget=30)
    )
    path = packed.save_predictions(tmp_path / "p.jsonl")
    assert [row["prediction"] for row in lines(path)] == [None, "Bond"]
    assert [row["references"] for row in lines(path)] == [["Titan", "Rhea"], []]
    other = packed.save_predictions(tmp_path / "q.jsonl", pd.Series({"q 2": "Rhea", "007": np.nan}))
    assert [row["prediction"] for row in lines(other)] == ["Rhea", None]


def test_the_same_pack_gives_the_same_bytes(sample, tmp_path):
    packed = sample.evaluate(pt.PackerConfig(budget=300))
    one = packed.save_predictions(tmp_path / "p.jsonl").read_bytes()
    assert packed.save_predictions(tmp_path / "p.jsonl").read_bytes() == one
    assert [p.name for p in tmp_path.iterdir()] == ["p.jsonl"]


def test_what_is_no_prediction_is_told(sample, tmp_path):
    packed, path = sample.evaluate(pt.PackerConfig(budget=300)), tmp_path / "p.jsonl"
    cases = {
        "save_predictions: qid 'time-q80' is unknown": {"time-q80": "x"},
        "save_predictions: 'predictions' must be texts, or None; got 5. Query 'time-q8'.": {"time-q8": 5},
        "save_predictions: 'predictions' must be a mapping of qid to what a reader answered; got ['x'].": [
            "x"
        ],
    }
    for message, said in cases.items():
        with pytest.raises(pt.SettingError) as told:
            packed.save_predictions(path, said)
        assert str(told.value).startswith(message)
    with pytest.raises(pt.SettingError, match="'path' must be a name without .gz or .zst"):
        packed.save_predictions(tmp_path / "p.jsonl.gz")
    assert not list(tmp_path.iterdir())
