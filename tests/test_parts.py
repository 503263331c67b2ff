"""Runs stored by parts: nothing is lost, a part gives what the whole gives, bad files are told."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal, assert_series_equal
from sklearn.feature_extraction.text import TfidfVectorizer
from test_select_equivalence import SNIPPETS, TABLES, configs, run_of

import packtools as pt
from packtools.cli import main
from packtools.runs import parts as parts_module
from packtools.runs.parts import blocks, is_partition, part_files, partition, parts_of


def assert_same_run(a: pt.Run, b: pt.Run) -> None:
    """Compare all of two runs, with the order and type of everything."""
    assert a.name == b.name
    for table in ("candidates", "queries", "passages"):
        assert_frame_equal(getattr(a, table), getattr(b, table), check_exact=True)
    assert (a.qrels is None, a.answers is None) == (b.qrels is None, b.answers is None)
    if a.qrels is not None:
        assert_frame_equal(a.qrels, b.qrels)
    if a.answers is not None:
        assert_series_equal(a.answers, b.answers)


@pytest.fixture
def odd(tmp_path) -> pt.Run:
    """A run with whatever may get lost: ids that look like numbers or nothing, a score that is none,
    ties, queries, passages and judgements in orders of their own, a candidate without text."""
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "x.run").write_text(
        "NA Q0 007 1 9.5 t\nNA Q0 d9 2 nan t\n1e3 Q0 7 1 1.0 t\n1e3 Q0 007 2 1.0 t\n1e3 Q0 gone 3 1.0 t\n"
        "01 Q0 d9 4 0.1 t\n01 Q0 é 2 0.30000000000000004 t\nq Q0 d9 1 1 t\n"
    )
    (folder / "queries.tsv").write_text("q\tlast first\n01\tWhere is é?\n1e3\tmoons\nNA\t\n")
    (folder / "corpus.jsonl").write_text(
        '{"_id": "é", "title": "T", "text": "moons  of\\tSaturn. Rings too."}\n{"_id": "d9", "text": "alpha beta"}\n'
        '{"_id": "7", "text": "seven"}\n{"_id": "007", "title": "", "text": "Bond. James Bond."}\n'
    )
    (folder / "qrels.txt").write_text("NA 0 unseen 2\n01 0 d9 1\nNA 0 007 1\nq 0 d9 0\n1e3 0 7 3\n")
    (folder / "answers.tsv").write_text("NA\tJames\nNA\tBond\nq\talpha\n")
    return pt.load_run(folder, ties="trec_eval")


@pytest.fixture(scope="module")
def sample() -> pt.Run:
    return pt.load_sample()


@pytest.fixture(scope="module")
def stored(sample, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "parts"
    partition(sample, folder, parts=4)
    return folder


@pytest.fixture(scope="module")
def prepared(sample, stored) -> tuple[pt.PreparedRun, list[pt.PreparedRun]]:
    """The whole run and its parts."""
    return pt.prepare(sample), [pt.prepare(pt.load_run(p)) for p in parts_of(stored)]


# --- nothing is lost --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 4])
def test_all_parts_together_are_the_run(odd, tmp_path, n):
    folder = tmp_path / "parts"
    made = partition(odd, folder, parts=n)
    assert_same_run(odd, pt.load_run(folder))
    assert_same_run(odd, pt.load_run(made))
    assert [p.name for p in made] == [f"part-{i:05d}" for i in range(n)]


def test_the_sample_is_the_same_by_parts(sample, stored):
    assert_same_run(sample, pt.load_run(stored))


def test_extra_columns_keep_their_types(tmp_path):
    records = [
        {
            "id": f"q{i}",
            "question": "?",
            "answers": [],
            "ctxs": [{"id": f"d{i}", "text": "t", "score": 1, "hasanswer": i == 1, "isgold": i == 0}],
        }
        for i in range(3)
    ]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    run = pt.load_run(path)
    partition(run, tmp_path / "parts", parts=3)
    again = pt.load_run(tmp_path / "parts")
    assert_same_run(run, again)
    assert again.candidates["hasanswer"].tolist() == [False, True, False]
    for part in parts_of(tmp_path / "parts"):  # no gold passage in the last two: judged all the same
        assert pt.load_run(part).qrels is not None


def test_a_part_holds_what_its_queries_need_and_no_more(odd, tmp_path):
    first, last = partition(odd, tmp_path / "p", parts=2)
    run = pt.load_run(first)
    assert run.name == "odd/x/part-00000"
    assert list(run.queries.index) == ["q", "01"]
    assert list(run.passages.index) == ["é", "d9"]
    assert run.qrels.to_dict("list") == {"qid": ["01", "q"], "docid": ["d9", "d9"], "label": [1, 0]}
    assert list(run.answers) == [("alpha",), ()]
    run = pt.load_run(last)
    assert run.candidates["docid"].tolist() == ["gone", "7", "007", "007", "d9"]  # ties by docid, descending
    assert run.candidates["score"].isna().tolist() == [False, False, False, False, True]
    assert str(run.report).splitlines()[0] == "read: part-00001: 5 rows, 2 queries"


def test_the_same_run_gives_the_same_bytes(sample, stored, tmp_path):
    partition(sample, tmp_path / "again", parts=4)
    files = sorted(p.relative_to(stored) for p in stored.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(tmp_path / "again") for p in (tmp_path / "again").rglob("*.*"))
    for file in files:
        assert (stored / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file


def test_the_manifest_counts_what_is_there(odd, tmp_path):
    partition(odd, tmp_path / "p", parts=2)
    manifest = json.loads((tmp_path / "p" / "manifest.json").read_text("utf-8"))
    counted = {k: v for k, v in manifest.items() if k.startswith("n_")}
    assert counted == {"n_queries": 4, "n_rows": 8, "n_passages": 4}
    assert manifest["parts"] == [
        {"name": "part-00000", "n_queries": 2, "n_rows": 3, "n_passages": 2},
        {"name": "part-00001", "n_queries": 2, "n_rows": 5, "n_passages": 3},
    ]
    assert manifest["tables"] == ["candidates", "queries", "passages", "qrels", "answers"]
    assert manifest["run"] == "odd/x"


# --- a part gives what the whole gives --------------------------------------------------------------


def characters(**given):
    return pt.PackerConfig.characters(**given)


PRESETS = st.builds(
    characters,
    max_context_chars=st.integers(20, 300),
    max_passage_chars=st.one_of(st.none(), st.integers(5, 60)),
    sentence_selection=st.sampled_from(list(pt.SELECTORS)),
)


@settings(max_examples=25, deadline=None)
@given(table=TABLES, config=st.one_of(configs(st.integers(1, 120)), PRESETS), data=st.data())
def test_parts_give_what_the_whole_gives_under_any_setting(table, config, data):
    run = run_of(table)
    n = data.draw(st.integers(1, run.n_queries))
    with tempfile.TemporaryDirectory() as folder:
        parts = [pt.prepare(pt.load_run(p)) for p in partition(run, folder, parts=n)]
        assert_same_packed(pt.prepare(run), parts, config)


@pytest.mark.parametrize("selection", ["tfidf", "mmr", "query_overlap"])
@pytest.mark.parametrize("white_space", ["keep", "collapse"])
def test_parts_weigh_words_as_the_whole_does(prepared, selection, white_space):
    config = pt.PackerConfig(
        budget=600,
        passage_budget=30,
        sentence_selection=selection,
        white_space=white_space,
        jaccard_threshold=0.8,
        separator="\n\n",
    )
    assert_same_packed(*prepared, config)


def test_weights_travel_to_workers_and_to_another_counter(prepared):
    config = pt.PackerConfig(budget=2000, unit="chars", passage_budget=90, sentence_selection="tfidf")
    whole, (part, *_) = prepared
    mine = pickle.loads(pickle.dumps(part)).with_counter("chars").evaluate(config)
    expected = whole.with_counter("chars").evaluate(config).per_query.loc[part.qids]
    assert_frame_equal(mine.per_query, expected, check_exact=True)


def assert_same_packed(whole, parts, config):
    expected = whole.evaluate(config)
    packed = [p.evaluate(config) for p in parts]
    joined = pd.concat([p.per_query for p in packed])
    assert_frame_equal(joined, expected.per_query, check_exact=True, check_index_type=False)
    decisions = [p.decisions.astype({"qid": str, "docid": str, "of": str}) for p in (*packed, expected)]
    joined = pd.concat(decisions[:-1], ignore_index=True)
    assert_frame_equal(joined, decisions[-1].reset_index(drop=True), check_exact=True)
    for one in packed:
        qid = one.per_query.index[0]
        assert one.context(qid).text == expected.context(qid).text


def test_stored_weights_are_those_of_a_fit_on_all_passages(tmp_path):
    run = run_of([[i] for i in range(len(SNIPPETS))])
    fitted = TfidfVectorizer().fit(SNIPPETS)
    part = partition(run, tmp_path / "p", parts=4)[2]
    prepared = pt.prepare(pt.load_run(part))
    for corpus in (prepared.corpus, prepared.collapsed.corpus):
        again = corpus.weights.vectoriser
        assert again.vocabulary_ == fitted.vocabulary_
        assert again.idf_.tobytes() == fitted.idf_.tobytes()
        a, b = again.transform(SNIPPETS), fitted.transform(SNIPPETS)
        assert [x.tobytes() for x in (a.data, a.indices, a.indptr)] == [
            x.tobytes() for x in (b.data, b.indices, b.indptr)
        ]


def test_white_space_makes_no_other_words():
    # Parts weigh collapsed texts by the words of the texts as they stand.
    spaces = " \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u2000\u2028\u3000\ufffd"
    texts = [f"{s}ΟΔΟΣ{s}{s}alpha{s}Σ beta{s}x2{s}" for s in spaces]
    collapsed = [" ".join(t.replace("\ufffd", " ").split()) for t in texts]
    plain, other = TfidfVectorizer().fit(texts), TfidfVectorizer().fit(collapsed)
    assert plain.vocabulary_ == other.vocabulary_
    assert plain.idf_.tobytes() == other.idf_.tobytes()


def test_a_run_without_any_word_has_weights_without_terms(tmp_path):
    run = pt.Run.from_frames(
        pd.DataFrame({"qid": ["a", "b"], "docid": ["x", "y"], "rank": [1, 1]}),
        {"x": "... ...", "y": "! !"},
        queries={"a": "why", "b": "what"},
    )
    config = pt.PackerConfig(budget=9, unit="chars", passage_budget=3, sentence_selection="tfidf")
    parts = [pt.prepare(pt.load_run(p)) for p in partition(run, tmp_path / "p", parts=2)]
    assert_same_packed(pt.prepare(run), parts, config)


def test_a_part_divided_again_keeps_the_weights_of_the_whole(sample, stored, tmp_path):
    part = parts_of(stored)[3]
    smaller = partition(part, tmp_path / "p", parts=2)
    assert pq.read_table(tmp_path / "p" / "weights.parquet").equals(pq.read_table(stored / "weights.parquet"))
    config = pt.PackerConfig(budget=500, passage_budget=20, sentence_selection="tfidf")
    assert_same_packed(pt.prepare(pt.load_run(part)), [pt.prepare(pt.load_run(p)) for p in smaller], config)


# --- how a run is divided ---------------------------------------------------------------------------


@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=40), data=st.data())
def test_blocks_are_contiguous_and_none_is_empty(sizes, data):
    n = data.draw(st.integers(1, len(sizes)))
    bounds = blocks(np.concatenate([[0], np.cumsum(sizes)]), n)
    assert (bounds[0], bounds[-1], len(bounds)) == (0, len(sizes), n + 1)
    assert (np.diff(bounds) > 0).all()


@given(depth=st.integers(1, 100), queries=st.integers(1, 200), data=st.data())
def test_queries_of_one_depth_are_dealt_evenly(depth, queries, data):
    n = data.draw(st.integers(1, queries))
    sizes = np.diff(blocks(np.arange(queries + 1) * depth, n))
    assert sizes.max() - sizes.min() <= 1


def test_parts_are_as_many_as_the_rows_need(sample, odd, tmp_path):
    rows = len(sample.candidates)
    assert len(partition(sample, tmp_path / "a", rows=-(-rows // 3))) == 3
    assert len(partition(sample, tmp_path / "b")) == 1
    assert len(partition(odd, tmp_path / "c", rows=1)) == odd.n_queries  # a query is not divided


# --- folders ----------------------------------------------------------------------------------------


def test_parts_are_found_however_deep_and_sorted_by_path(odd, tmp_path):
    one, other = (odd_half(odd, qids) for qids in (["q", "01"], ["1e3", "NA"]))
    partition(other, tmp_path / "all" / "b" / "late", parts=2)
    partition(one, tmp_path / "all" / "a", parts=1)
    found = parts_of(tmp_path / "all")
    assert [p.relative_to(tmp_path / "all").as_posix() for p in found] == [
        "a/part-00000",
        "b/late/part-00000",
        "b/late/part-00001",
    ]
    assert parts_of(found[1]) == [found[1]]
    run = pt.load_run(tmp_path / "all")
    assert run.name == "all"
    assert list(run.queries.index) == ["q", "01", "1e3", "NA"]
    assert len(run.candidates) == 8
    assert "late/part-00001: " in str(run.report)
    config = pt.PackerConfig(budget=50, passage_budget=3, sentence_selection="mmr")
    with pytest.raises(pt.PackerError) as error:
        pt.prepare(run).evaluate(config)
    assert str(error.value) == (
        "prepare: all is a part of a run, and the sentence selections 'tfidf' and 'mmr' need the TF-IDF weights "
        "of the whole run; its parts have no manifest.json beside them, or are of several partitions. "
        "Partition the whole run with packtools.partition, or select by 'query_overlap'."
    )


def odd_half(run: pt.Run, qids: list[str]) -> pt.Run:
    rows = run.candidates[run.candidates["qid"].isin(qids)].astype({"qid": str, "docid": str})
    queries = {q: t for q, t in run.queries["text"].items() if q in qids}
    return pt.Run.from_frames(rows, run.passages, queries=queries, name=qids[0])


def test_some_parts_are_a_part(sample, stored, prepared):
    two = parts_of(stored)[1:3]
    run = pt.load_run(two)
    assert run.name == sample.name
    assert run.n_queries == sum(pt.load_run(p).n_queries for p in two)
    config = pt.PackerConfig(budget=500, passage_budget=20, sentence_selection="tfidf")
    assert_same_packed(pt.prepare(run), prepared[1][1:3], config)


def test_a_worker_needs_its_own_part_and_the_files_beside_it_only(stored, prepared, tmp_path):
    part = parts_of(stored)[1]
    for path in (*part_files(part), stored / "manifest.json"):
        copy = tmp_path / path.relative_to(stored)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    config = pt.PackerConfig(budget=500, passage_budget=20, sentence_selection="tfidf")
    mine = pt.load_run(tmp_path / part.name)
    assert_same_packed(prepared[1][1], [pt.prepare(mine)], config)
    (tmp_path / "manifest.json").unlink()
    assert_same_run(mine, pt.load_run(part))
    assert pt.load_run(tmp_path / part.name).home is None


def test_a_run_beside_its_own_parts_stays_that_run(odd, tmp_path):
    folder = tmp_path / "odd"
    partition(odd, folder / "parts", parts=2)
    assert_same_run(pt.load_run(folder, ties="trec_eval"), odd)
    assert not is_partition(folder)
    assert is_partition(folder / "parts")
    assert is_partition(folder / "parts" / "part-00001")
    (tmp_path / "outer").mkdir()
    (folder / "parts").rename(tmp_path / "outer" / "parts")
    assert is_partition(tmp_path / "outer")
    assert not is_partition(tmp_path / "nothing")


def test_a_partition_is_overwritten_whole(odd, sample, tmp_path):
    folder = tmp_path / "p"
    partition(sample, folder, parts=6)
    made = partition(odd, folder, parts=2)
    assert parts_of(folder) == made
    assert sorted(p.name for p in folder.iterdir()) == [
        "manifest.json",
        "part-00000",
        "part-00001",
        "weights.parquet",
    ]
    assert_same_run(pt.load_run(folder), odd)


def test_a_folder_with_anything_else_is_left_alone(odd, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("all of it")
    with pytest.raises(pt.SettingError) as error:
        partition(odd, folder, parts=2)
    assert "'folder' must be new, empty or a partition already" in str(error.value)
    assert str(error.value).endswith("It holds 'thesis.txt'; give another folder.")
    assert [p.name for p in folder.iterdir()] == ["thesis.txt"]
    partition(odd, tmp_path / "p", parts=2)
    (tmp_path / "p" / "part-00001" / "notes.md").write_text("mine")
    with pytest.raises(pt.SettingError, match="a partition with nothing else in it"):
        partition(odd, tmp_path / "p", parts=1)
    assert_same_run(pt.load_run(tmp_path / "p"), odd)


@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_a_killed_partition_is_not_taken_for_a_run_and_can_be_done_again(
    odd, sample, tmp_path, stop, monkeypatch
):
    folder = tmp_path / "p"
    partition(sample, folder, parts=2)
    calls = []

    def killed(source, target):
        calls.append(target)
        if len(calls) == stop:
            raise KeyboardInterrupt
        os.rename(source, target)

    monkeypatch.setattr(parts_module.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        partition(odd, folder, parts=3)
    monkeypatch.undo()
    for read in (pt.load_run, parts_of):
        with pytest.raises(pt.RunFormatError, match=r"is an unfinished partition: it has no manifest.json"):
            read(folder)
    partition(odd, folder, parts=3)
    assert_same_run(pt.load_run(folder), odd)


def test_a_missing_part_and_one_too_many_are_told(odd, tmp_path):
    folder = tmp_path / "p"
    made = partition(odd, folder, parts=3)
    made[1].rename(folder / "part-00007")
    with pytest.raises(pt.RunFormatError, match=r"part-00001 is missing. Run packtools.partition again."):
        pt.load_run(folder)
    (folder / "part-00007").rename(made[1])
    partition(odd, tmp_path / "one", parts=1)[0].rename(folder / "part-00003")
    with pytest.raises(pt.RunFormatError, match=r"part-00003 is not in its manifest.json"):
        parts_of(folder)


def test_what_holds_no_parts_is_told(tmp_path):
    with pytest.raises(pt.RunFileMissing):
        parts_of(tmp_path / "nowhere")
    with pytest.raises(
        pt.RunFormatError, match=r"holds no parts of a run. Make them with packtools.partition"
    ):
        parts_of(tmp_path)


def test_a_query_in_two_parts_is_an_error(odd, tmp_path):
    one = partition(odd, tmp_path / "a", parts=2)[0]
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run([one, *partition(odd, tmp_path / "b", parts=1)])
    assert str(error.value) == (
        "load_run: query 'q' is in a/part-00000 and in b/part-00000. All candidates of a query belong in one part."
    )
    with pytest.raises(pt.RunFormatError, match="in part-00000 and in part-00000"):
        pt.load_run([one, one])


def test_parts_are_joined_with_parts_only(odd, tmp_path):
    one = partition(odd, tmp_path / "a", parts=2)[0]
    with pytest.raises(pt.RunFormatError, match="parts of a run can be joined with nothing else"):
        pt.load_run([one, tmp_path / "odd" / "qrels.txt"])
    with pytest.raises(pt.RunFormatError, match="'run' must be None where parts of a run are read"):
        pt.load_run(tmp_path / "a", run="x")


# --- parts that another program wrote ----------------------------------------------------------------

PLAIN = {
    "candidates": {"qid": ["b", "b", "a"], "docid": ["y", "x", "x"], "rank": [2, 1, 1]},
    "queries": {"qid": ["b", "a"], "text": ["two words", "one"]},
    "passages": {"docid": ["x", "y", "z"], "text": ["first text. more", "second text", "third"]},
    "qrels": {"qid": ["b"], "docid": ["y"], "label": [1]},
    "answers": {"qid": ["b"], "answers": [["text", "more"]]},
}


def foreign(folder: Path, tables=("candidates", "queries", "passages"), **changed) -> Path:
    part = folder / "p0"
    part.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys((*tables, *changed)):
        columns = {**PLAIN[name], **changed.get(name, {})}
        table = pa.table({k: v for k, v in columns.items() if v is not None})
        pq.write_table(table, part / f"{name}.parquet")
    (folder / "manifest.json").write_text('{"format": "packtools-parts", "version": 1}')
    return part


def test_the_least_that_another_program_must_write(tmp_path):
    foreign(tmp_path / "f")
    run = pt.load_run(tmp_path / "f")
    assert run.name == "f"
    assert list(run.queries.index) == ["b", "a"]
    assert run.candidates["docid"].tolist() == ["x", "y", "x"]
    assert run.candidates["rank"].tolist() == [1, 2, 1]
    assert run.candidates["score"].tolist() == [1.0, 0.5, 1.0]  # 1 / rank, as in any run without scores
    assert list(run.passages.index) == ["x", "y"]
    assert run.passages["title"].tolist() == ["", ""]
    assert (run.qrels, run.answers) == (None, None)
    assert "passage that no candidate names (1)" in str(run.report)


def test_whole_number_ids_are_read_as_text_and_reported(tmp_path):
    numbers = {
        "candidates": {"qid": pa.array([1, 1, 20]), "docid": pa.array([7, 8, 7], pa.uint8())},
        "queries": {"qid": pa.array([1, 20]).dictionary_encode()},
        "passages": {"docid": [7, 8, 9]},
    }
    foreign(tmp_path, **numbers)
    run = pt.load_run(tmp_path)
    assert list(run.queries.index) == ["1", "20"]
    assert run.candidates["docid"].tolist() == ["8", "7", "7"]
    assert "p0/candidates.parquet: numeric 'docid' read as text (3)" in str(run.report)


def test_other_ways_to_store_texts_are_read(tmp_path):
    kinds = [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
    for number, kind in enumerate(kinds):
        docid = pa.array(["y", "x", "x"]).cast(kind)
        text = pa.array(PLAIN["passages"]["text"]).cast(kind)
        foreign(tmp_path / str(number), candidates={"docid": docid}, passages={"text": text})
        assert pt.load_run(tmp_path / str(number)).chunks("a")[0].text == "first text. more"


def test_a_table_may_be_a_folder_of_files(tmp_path):
    part = foreign(tmp_path)
    table = pq.read_table(part / "candidates.parquet")
    (part / "candidates.parquet").unlink()
    (part / "candidates.parquet").mkdir()
    for i in range(3):
        pq.write_table(table[i : i + 1], part / "candidates.parquet" / f"part-{i}.snappy.parquet")
    (part / "candidates.parquet" / "_SUCCESS").touch()
    assert pt.load_run(part).candidates["docid"].tolist() == ["x", "y", "x"]
    assert len(part_files(part)) == 5


def test_without_weights_a_part_says_so_and_the_whole_does_without(tmp_path):
    config = pt.PackerConfig(budget=50, unit="chars", passage_budget=12, sentence_selection="tfidf")
    part = foreign(tmp_path / "f")
    foreign(
        tmp_path / "g", candidates={"qid": ["c"] * 3, "docid": ["x", "y", "z"]}, queries={"qid": ["c", "d"]}
    )
    (tmp_path / "g" / "p0").rename(tmp_path / "f" / "p1")
    pt.prepare(pt.load_run(tmp_path / "f")).evaluate(config)
    prepared = pt.prepare(pt.load_run(part))
    with pytest.raises(pt.PackerError) as error:
        prepared.evaluate(config)
    assert str(error.value) == (
        "prepare: f/p0 is a part of a run, and the sentence selections 'tfidf' and 'mmr' need the TF-IDF weights "
        "of the whole run; there is no weights.parquet (term, idf) beside it. Partition the whole run with "
        "packtools.partition, or select by 'query_overlap'."
    )
    prepared.evaluate(config.replace(sentence_selection="query_overlap"))


WRONG = {
    "no column": (
        {"candidates": {"docid": None}},
        "load_run: p0/candidates.parquet: 'docid' must be one of the columns; got ['qid', 'rank'].",
    ),
    "floats as ids": (
        {"candidates": {"docid": [1.0, 2.0, 1.0]}},
        "load_run: p0/candidates.parquet: 'docid' must be an id (text) in every row; got 'double'. "
        "Write the ids as text.",
    ),
    "null id": (
        {"candidates": {"qid": ["b", None, "a"]}},
        "load_run: p0/candidates.parquet, row 2: 'qid' must be an id (text) in every row; got None. "
        "Leave the row out, or give it an id.",
    ),
    "empty id": (
        {"queries": {"qid": ["b", ""]}},
        "load_run: p0/queries.parquet, row 2: 'qid' must be an id (text) in every row; got ''.",
    ),
    "rank that is no whole number": (
        {"candidates": {"rank": [1.5, 2.0, 3.0]}},
        "load_run: p0/candidates.parquet: 'rank' must be a whole number in every row; got 'double'.",
    ),
    "score that is text": (
        {"candidates": {"score": ["a", "b", "c"]}},
        "load_run: p0/candidates.parquet: 'score' must be numbers; got 'string'.",
    ),
    "query that is not told": (
        {"queries": {"qid": ["b", "c"]}},
        "load_run: p0/candidates.parquet, row 3: 'qid' must be a query in queries.parquet of the part; got 'a'. "
        "Write all queries of a part, '' for one without a text.",
    ),
    "query told twice": (
        {"queries": {"qid": ["b", "b"]}},
        "load_run: p0/queries.parquet, row 2: 'qid' must be a query, each once; got 'b'.",
    ),
    "one docid, two texts": (
        {"passages": {"docid": ["x", "y", "x"]}},
        "load_run: p0/passages.parquet, row 3: 'docid' must be a passage with one text; the text of row 1 is "
        "another; got 'x'.",
    ),
    "null text": (
        {"passages": {"text": ["a", None, "c"]}},
        "load_run: p0/passages.parquet, row 2: 'text' must be a text in every row; got None. "
        "Leave the row out, or write ''.",
    ),
    "null label": (
        {"qrels": {"label": pa.array([None], pa.int32())}},
        "load_run: p0/qrels.parquet, row 1: 'label' must be a number in every row; got None. "
        "Leave the row out, or give it a number.",
    ),
    "answers that are no lists": (
        {"answers": {"answers": ["text"]}},
        "load_run: p0/answers.parquet: 'answers' must be a list of texts in every row; got 'string'.",
    ),
    "answer that is none": (
        {"answers": {"answers": [["text", None]]}},
        "load_run: p0/answers.parquet, row 1: 'answers' must be a list of texts in every row; got ['text', None].",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_column_is_told_with_file_row_value_and_rule(tmp_path, case):
    changed, message = WRONG[case]
    foreign(tmp_path, **changed)
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(tmp_path)
    assert str(error.value) == message


def test_a_bad_file_is_told(tmp_path):
    part = foreign(tmp_path)
    whole = (part / "passages.parquet").read_bytes()
    (part / "passages.parquet").write_bytes(whole[:-20])
    with pytest.raises(
        pt.RunFormatError, match=r"load_run: p0/passages.parquet can't be read: .*Write it again."
    ):
        pt.load_run(part)
    (part / "passages.parquet").unlink()
    with pytest.raises(
        pt.RunFormatError, match=r"load_run: p0/passages.parquet is missing. A part is a folder"
    ):
        pt.load_run(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "packtools-parts", "version": 2}')
    with pytest.raises(pt.RunFormatError, match=r"'version' must be 1; got 2. Update packtools."):
        pt.load_run(tmp_path)


def test_parts_that_do_not_agree_are_told(tmp_path):
    foreign(tmp_path / "f", ["candidates", "queries", "passages", "qrels"])
    other = {"candidates": {"qid": ["c"] * 3, "docid": ["x", "y", "z"]}, "queries": {"qid": ["c", "d"]}}
    foreign(tmp_path / "g", **other)
    part = (tmp_path / "g" / "p0").rename(tmp_path / "f" / "p1")
    with pytest.raises(pt.RunFormatError, match=r"load_run: p1 has no qrels.parquet, and p0 has one."):
        pt.load_run(tmp_path / "f")
    pq.write_table(pa.table({**PLAIN["qrels"], "qid": ["c"]}), part / "qrels.parquet")
    assert len(pt.load_run(tmp_path / "f").qrels) == 2
    pq.write_table(
        pa.table({**PLAIN["passages"], "text": ["a", "second text", "c"]}), part / "passages.parquet"
    )
    with pytest.raises(pt.RunFormatError) as error:
        pt.load_run(tmp_path / "f")
    assert str(error.value) == (
        "load_run: p1/passages.parquet: 'docid' must be a passage with one text; p0/passages.parquet has another; "
        "got 'x'."
    )


# --- settings, the extra, the command ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parts": 0}, "partition: 'parts' must be at least 1 part; got 0."),
        (
            {"parts": 5},
            "partition: 'parts' must be at most the number of queries, 4; got 5. A query is not divided.",
        ),
        ({"rows": 0}, "partition: 'rows' must be at least 1 row; got 0."),
        ({"rows": 1.5}, "partition: 'rows' must be a whole number of rows; got 1.5."),
    ],
)
def test_settings_out_of_their_rule_write_nothing(odd, tmp_path, given, message):
    with pytest.raises(pt.SettingError) as error:
        partition(odd, tmp_path / "p", **given)
    assert str(error.value) == message
    assert not (tmp_path / "p").exists()


def test_a_column_of_mixed_types_and_a_text_that_is_no_text_are_told(tmp_path):
    rows = pd.DataFrame({"qid": ["a", "a"], "docid": ["x", "y"], "rank": [1, 2], "more": [1, "one"]})
    run = pt.Run.from_frames(rows, {"x": "text", "y": "text"})
    with pytest.raises(pt.SettingError, match="an extra column of the candidates can't be stored"):
        partition(run, tmp_path / "p")
    run = pt.Run.from_frames(rows.drop(columns="more"), {"x": "\ud800", "y": "text"})
    with pytest.raises(pt.RunFormatError, match="a text can't be stored as UTF-8"):
        partition(run, tmp_path / "p")


def test_the_command_says_what_it_wrote(odd, tmp_path, capsys):
    folder = tmp_path / "p"
    argv = ["partition", str(tmp_path / "odd"), "--parts", "2", "--output-dir", str(folder)]
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "odd/x: candidates, queries, passages, qrels, answers"
    assert [line.split() for line in lines[2:6]] == [
        ["part", "queries", "rows", "passages"],
        ["part-00000", "2", "3", "2"],
        ["part-00001", "2", "5", "3"],
        ["all", "4", "8", "4"],
    ]
    assert lines[-1] == f"written: {folder}"
    assert main(["partition", str(tmp_path / "odd"), "--rows", "3", "--output-dir", str(folder)]) == 0
    assert len(parts_of(folder)) == 3


def test_bad_input_of_the_command_is_exit_code_two(tmp_path, odd, capsys):
    there = tmp_path / "odd"
    for argv in (
        [str(tmp_path / "none"), "--output-dir", str(tmp_path / "p")],
        [str(there), "--parts", "9", "--output-dir", str(tmp_path / "p")],
        [str(there), "--output-dir", str(there)],
    ):
        assert main(["partition", *argv]) == 2
        assert capsys.readouterr().err.startswith("packtools: ")
