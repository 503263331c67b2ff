"""A sweep gives what `evaluate` gives, whoever does the work and however often it is interrupted."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import packtools as pt
from packtools import grids, sweeping
from packtools.grids import expand, setting_id, varied
from packtools.ordering import ORDERINGS, arrangement
from packtools.pieces import Shelf
from packtools.prepared import PreparedRun
from packtools.selection import SELECTORS

GRID = {"budget": [150, 400], "order": ["descending", "lost_in_middle"], "jaccard_threshold": [None, 0.7]}


@pytest.fixture(scope="module")
def prepared():
    return pt.prepare(pt.load_sample(), counter="chars")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "parts"
    pt.partition(pt.load_sample(), folder, parts=3)
    return folder


@pytest.fixture(scope="module")
def alone(prepared):
    return pt.sweep(prepared, **GRID)


def same(a, b):
    """Whether two sweeps hold the same bits."""
    return (
        a.ids == b.ids
        and a.qids == b.qids
        and list(a.values) == list(b.values)
        and all(a.values[m].tobytes() == b.values[m].tobytes() for m in a.values)
    )


# --- the grid -------------------------------------------------------------------------------------


def test_a_grid_is_every_combination_once():
    base = pt.PackerConfig(separator="\n")
    found = expand(base, {"budget": [500, 200, 500], "order": ("fill", "ascending"), "reserve": 100})
    assert [(c.order, c.budget) for c in found] == [
        ("fill", 500),
        ("fill", 200),
        ("ascending", 500),
        ("ascending", 200),
    ]
    assert {(c.separator, c.reserve) for c in found} == {("\n", 100)}
    assert varied(found) == ["budget", "order"]


def test_a_grid_takes_ranges_and_numpy_numbers():
    assert [c.budget for c in expand(pt.PackerConfig(), {"budget": range(1, 4)})] == [1, 2, 3]
    found = expand(pt.PackerConfig(), {"jaccard_threshold": np.array([0.5, 0.75])})
    assert [type(c.jaccard_threshold) for c in found] == [float, float]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"budgets": [1]}, "sweep: setting 'budgets' is unknown; known: 'budget', .* Did you mean 'budget'?"),
        ({"budget": []}, r"sweep: 'budget' must be a value or a list of at least one; got \[\]."),
        ({"budget": [500, 0]}, "PackerConfig: 'budget' must be at least 1 token; got 0."),
        ({"order": "descendin"}, "order 'descendin' is unknown; .* Did you mean 'descending'?"),
        ({"jaccard_threshold": 0.2}, r"'jaccard_threshold' must be at least 0.5; got 0.2. Pairs were kept"),
        ({"budget": 500, "rng": -1}, "sweep: 'rng' must be a whole number from 0 on; got -1."),
        ({"budget": 500, "baseline": 7}, "sweep: 'baseline' must be a PackerConfig or None; got 7."),
        ({"budget": 500, "base": {}}, "sweep: 'base' must be a PackerConfig; got {}."),
    ],
)
def test_bad_grids_are_one_error(prepared, grid, message):
    with pytest.raises(pt.PacktoolsError, match=message):
        pt.sweep(prepared, **grid)


def test_ids_are_a_promise():
    # printf '{"budget": 500, "order": "descending"}' | sha256sum
    assert setting_id(pt.PackerConfig(budget=500, order="descending")) == "sea0b83540345"
    assert setting_id(pt.PackerConfig(order="descending", budget=500, unit="tokens")) == "sea0b83540345"


def test_ladders_differ_in_the_budget_alone():
    found = expand(pt.PackerConfig(), {"budget": [10, 20], "order": ["fill", "ascending"], "reserve": [0, 1]})
    ladders = grids.ladders(found)
    assert sorted(map(len, ladders)) == [2, 2, 2, 2]
    for ladder in ladders:
        assert len({c.replace(budget=None) for c in ladder}) == 1


# --- values ---------------------------------------------------------------------------------------


def test_a_sweep_equals_evaluate_setting_by_setting(prepared, alone):
    assert len(alone.ids) == 8
    for setting, config in zip(alone.ids, alone.configs, strict=True):
        assert alone.per_query(setting).equals(prepared.evaluate(config).per_query.astype(float))
    assert alone.per_query().equals(prepared.evaluate(alone.baseline).per_query.astype(float))


def test_the_baseline_is_the_unpacked_run_or_a_setting(prepared, alone):
    assert alone.baseline == pt.unpacked(alone.configs[0])
    other = pt.PackerConfig(budget=400, order="ascending", separator="\n\n", detect_conflicts=False)
    found = pt.sweep(prepared, baseline=other, budget=[150, 400])
    assert found.per_query().equals(prepared.evaluate(other).per_query.astype(float))


def test_a_setting_equal_to_the_baseline_is_a_setting_too(prepared):
    base = pt.unpacked(pt.PackerConfig(separator="\n\n"))
    found = pt.sweep(prepared, base=base, budget=[None, 400])
    assert len(found.ids) == 2
    row = found.table.loc[found.ids[0]]
    assert (row["answer_retention_delta"], row["answer_retention_p_value"]) == (0, 1)


def test_a_run_is_prepared_for_the_lowest_threshold_and_the_counter():
    found = pt.sweep(pt.load_sample(), counter="chars", jaccard_threshold=[0.3], budget=400)
    expected = pt.prepare(pt.load_sample(), counter="chars", min_jaccard=0.3).evaluate(found.configs[0])
    assert found.counter == "chars"
    assert found.per_query(found.ids[0]).equals(expected.per_query.astype(float))


def test_a_prepared_run_can_be_counted_anew(prepared):
    found = pt.sweep(prepared, counter="cl100k_base", budget=400)
    assert found.counter == "cl100k_base"
    assert found.per_query()["n_tokens"].sum() < found.per_query()["n_chars"].sum()


# --- workers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_parts_equal_the_run_in_memory(parts, alone, n_jobs):
    assert same(pt.sweep(parts, counter="chars", n_jobs=n_jobs, **GRID), alone)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_on_a_run_in_memory(prepared, alone, backend):
    with joblib.parallel_config(backend, n_jobs=2):
        assert same(pt.sweep(prepared, **GRID), alone)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as made,
        distributed.Client(made),
    ):
        yield made


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_dask_equals_the_local_result(cluster, parts, alone):
    with joblib.parallel_config("dask"):
        assert same(pt.sweep(parts, counter="chars", **GRID), alone)


def dying_selector(marker: Path):
    """Give a selector that kills the process that asks it, once."""

    def shortest(query, sentences):
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [-len(s) for s in sentences]

    return shortest


CUT = {"budget": [150, 400], "passage_budget": 40, "sentence_selection": "shortest"}


@pytest.fixture(scope="module")
def undisturbed(prepared):
    pt.register_selector("shortest", lambda query, sentences: [-len(s) for s in sentences])
    found = pt.sweep(prepared, **CUT)
    SELECTORS.pop("shortest")
    return found


@pytest.fixture
def dying(tmp_path, undisturbed):
    pt.register_selector("shortest", dying_selector(tmp_path / "died"))
    yield tmp_path / "died"
    SELECTORS.pop("shortest")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
def test_a_killed_dask_worker_loses_nothing(cluster, parts, dying, undisturbed):
    with joblib.parallel_config("dask"):
        found = pt.sweep(parts, counter="chars", **CUT)
    assert dying.exists()
    assert same(found, undisturbed)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_killed_local_worker_loses_nothing(parts, dying, undisturbed):
    found = pt.sweep(parts, counter="chars", n_jobs=2, **CUT)
    assert dying.exists()
    assert same(found, undisturbed)


def test_what_the_user_registered_reaches_the_workers(parts, undisturbed):
    pt.register_selector("shortest", lambda query, sentences: [-len(s) for s in sentences])
    try:
        assert same(pt.sweep(parts, counter="chars", n_jobs=2, **CUT), undisturbed)
    finally:
        SELECTORS.pop("shortest")


def test_an_error_in_a_worker_is_the_error_of_the_sweep(parts):
    pt.register_selector("broken", lambda query, sentences: [])
    try:
        with pytest.raises(pt.PackerError, match="'broken' must be one number for each of"):
            pt.sweep(parts, n_jobs=2, budget=50, passage_budget=9, sentence_selection="broken")
    finally:
        SELECTORS.pop("broken")


# --- early ends -----------------------------------------------------------------------------------


ARMED: list[int] = []


@pytest.fixture
def stop():
    """An ordering that is Ctrl-C where it is armed."""

    def order(items):
        if ARMED:
            raise KeyboardInterrupt
        return list(items)

    pt.register_ordering("stop", order)
    ARMED.append(1)
    arrangement.cache_clear()
    yield ARMED
    ARMED.clear()
    ORDERINGS.pop("stop")


def test_ctrl_c_keeps_what_is_finished(prepared, stop):
    found = pt.sweep(prepared, order=["descending", "stop", "ascending"], budget=[150, 400])
    assert found.missing == "ended early: 2 of 6 settings"
    assert "ended early" in repr(found)
    assert [c.order for c in found.configs] == ["descending"] * 2
    assert found.per_query(found.ids[0]).equals(prepared.evaluate(found.configs[0]).per_query.astype(float))


def test_ctrl_c_before_anything_is_finished_is_ctrl_c(prepared, stop):
    with pytest.raises(KeyboardInterrupt):
        pt.sweep(prepared, order="stop", budget=400)


def test_a_sweep_goes_on_from_its_checkpoint(prepared, stop, tmp_path, monkeypatch):
    grid = {"order": ["descending", "stop"], "budget": [150, 400]}
    assert pt.sweep(prepared, checkpoint=tmp_path, **grid).missing
    stop.clear()
    done = []
    real = PreparedRun.each_budget
    monkeypatch.setattr(
        PreparedRun, "each_budget", lambda self, c, b: done.append(c.order) or real(self, c, b)
    )
    found = pt.sweep(prepared, checkpoint=tmp_path, **grid)
    assert done == ["stop"]
    assert same(found, pt.sweep(prepared, **grid))
    done.clear()
    pt.sweep(prepared, checkpoint=tmp_path, order="stop", budget=[150, 400, 600])
    assert done == ["stop"]  # for the one budget that is new
    done.clear()
    assert same(found, pt.sweep(prepared, checkpoint=tmp_path, **grid))
    assert done == []


def test_a_checkpoint_of_other_data_is_not_used(prepared, tmp_path):
    pt.sweep(prepared, checkpoint=tmp_path, budget=400)
    run = pt.load_sample()
    other = pt.Run.from_frames(
        run.candidates, {d: t + "!" for d, t in run.passages["text"].items()}, answers=run.answers.to_dict()
    )
    again = pt.prepare(other, counter="chars")
    found = pt.sweep(again, checkpoint=tmp_path, budget=400)
    assert same(found, pt.sweep(again, budget=400))
    recounted = pt.sweep(prepared, counter="cl100k_base", checkpoint=tmp_path, budget=400)
    assert same(recounted, pt.sweep(prepared, counter="cl100k_base", budget=400))


def test_a_torn_file_of_a_checkpoint_is_done_again(prepared, tmp_path):
    pt.sweep(prepared, checkpoint=tmp_path, budget=400)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:100])
    assert same(pt.sweep(prepared, checkpoint=tmp_path, budget=400), pt.sweep(prepared, budget=400))


def test_parts_go_on_from_a_checkpoint(parts, alone, tmp_path, monkeypatch):
    first = pt.sweep(parts, counter="chars", checkpoint=tmp_path, n_jobs=2, **GRID)
    assert same(first, alone)
    monkeypatch.setattr(sweeping, "load_run", None)  # nothing is read again
    assert same(pt.sweep(parts, counter="chars", checkpoint=tmp_path, **GRID), alone)


def test_parts_that_end_early_give_their_queries(prepared, parts, tmp_path, alone):
    pt.sweep(parts, counter="chars", checkpoint=tmp_path, **GRID)
    source = sweeping._source(str(parts), "chars", list(alone.configs))
    shelf = Shelf(tmp_path, sweeping._marks(source, [alone.baseline, *alone.configs]))
    pieces = [p for name in source.names[:2] for p in shelf.find(name, source.fingerprint(name))]
    found = sweeping.put_together(
        source.name, "chars", alone.baseline, list(alone.configs), source.names, pieces, 0
    )
    assert found.missing == "ended early: the queries of 2 of 3 parts"
    n = len(found.qids)
    assert 0 < n < len(alone.qids)
    assert all(np.array_equal(found.values[m], alone.values[m][:, :n], equal_nan=True) for m in alone.values)


def test_the_folder_of_a_checkpoint_is_a_folder(prepared, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(pt.SettingError, match="'checkpoint' must be a folder"):
        pt.sweep(prepared, checkpoint=tmp_path / "file", budget=400)


def test_parts_of_several_partitions_are_one_run_but_for_weights(tmp_path, prepared):
    run = pt.load_sample()
    half = run.n_queries // 2
    for name, qids in (("a", run.queries.index[:half]), ("b", run.queries.index[half:])):
        some = pt.Run.from_frames(
            run.candidates[run.candidates["qid"].isin(qids)],
            run.passages,
            queries=run.queries.loc[qids, "text"].to_dict(),
            qrels=run.qrels[run.qrels["qid"].isin(qids)],
            answers=run.answers[qids].to_dict(),
        )
        pt.partition(some, tmp_path / "all" / name, parts=2)
    found = pt.sweep(tmp_path / "all", counter="chars", budget=400)
    assert same(found, pt.sweep(prepared, budget=400))
    with pytest.raises(pt.SettingError, match="'run' must be one partition, for the sentence selections mmr"):
        pt.sweep(tmp_path / "all", budget=50, passage_budget=20, sentence_selection="mmr")


def test_the_same_query_in_two_parts_is_an_error(tmp_path):
    for name in "ab":
        pt.partition(pt.load_sample(), tmp_path / "twice" / name, parts=1)
    with pytest.raises(pt.RunFormatError, match="sweep: query '.*' is in more than one part of the run"):
        pt.sweep(tmp_path / "twice", counter="chars", budget=400)


def test_a_function_registered_anew_is_not_taken_from_a_checkpoint(prepared, tmp_path):
    pt.register_ordering("mine", lambda items: list(items))
    first = pt.sweep(prepared, checkpoint=tmp_path, order="mine", budget=400)
    again = pt.sweep(prepared, checkpoint=tmp_path, order="mine", budget=400)
    pt.register_ordering("mine", lambda items: list(items)[::-1])
    other = pt.sweep(prepared, checkpoint=tmp_path, order="mine", budget=400)
    ORDERINGS.pop("mine")
    assert same(again, first)
    assert not same(other, first)
    turned = pt.sweep(prepared, order="ascending", budget=400)
    assert other.values["answer_position"][1].tobytes() == turned.values["answer_position"][1].tobytes()


class Doubled:
    name = "my"

    def __init__(self, times):
        self.times = times

    def count(self, text):
        return self.times * len(text)


def test_a_counter_of_the_same_name_is_another_one(tmp_path):
    run = pt.load_sample()
    once, twice = (pt.sweep(run, counter=Doubled(n), checkpoint=tmp_path, budget=4000) for n in (1, 2))
    assert twice.table["n_tokens"].iloc[0] == 2 * once.table["n_tokens"].iloc[0]


def test_a_folder_with_odd_characters_finds_its_checkpoint(tmp_path, monkeypatch):
    pt.partition(pt.load_sample(), tmp_path / "b[1]*", parts=2)
    pt.sweep(tmp_path / "b[1]*", counter="chars", checkpoint=tmp_path / "kept", budget=400)
    monkeypatch.setattr(sweeping, "load_run", None)  # nothing is read again
    pt.sweep(tmp_path / "b[1]*", counter="chars", checkpoint=tmp_path / "kept", budget=400)


def test_a_splitter_of_ones_own_reaches_the_workers(parts, prepared):
    pt.SPLITTERS["halves"] = pt.SPLITTERS["simple"]
    cut = {"budget": 400, "passage_budget": 60, "sentence_selection": "head", "splitter": "halves"}
    try:
        assert same(pt.sweep(parts, counter="chars", n_jobs=2, **cut), pt.sweep(prepared, **cut))
    finally:
        pt.SPLITTERS.pop("halves")


def test_numbers_are_those_of_the_querys_own_passages():
    # q1 has "1,000" within "1,000%", which is cut away with its sentence, and "1000" only q0 has.
    texts = {"a": "There were 1000 men.", "b": "They paid 1,000% then. Later 1,000 men came along."}
    frame = pd.DataFrame({"qid": ["q0", "q1"], "docid": ["a", "b"], "rank": [1, 1]})
    run = pt.Run.from_frames(frame, texts)
    config = pt.PackerConfig(passage_budget=36, unit="chars", sentence_selection="head")
    whole = pt.prepare(run, counter="chars").evaluate(config)
    alone = pt.prepare(run.only(["q1"]), counter="chars").evaluate(config)
    assert whole.per_query.loc["q1", "numbers_kept"] == alone.per_query.loc["q1", "numbers_kept"]
    assert whole.lost.query("qid == 'q1'").to_numpy().tolist() == alone.lost.to_numpy().tolist()


def test_parts_without_query_text_or_passages_are_parts(tmp_path):
    frame = pd.DataFrame({"qid": ["q0", "q1", "q2"], "docid": ["a", "b", "gone"], "rank": [1, 1, 1]})
    texts = {"a": "Saturn has moons. " * 5, "b": "Steel is an alloy. " * 5}
    run = pt.Run.from_frames(frame, texts, queries={"q0": "Saturn moons", "q1": "", "q2": ""})
    pt.partition(run, tmp_path / "parts", parts=3)
    cut = {"budget": 60, "passage_budget": 40, "sentence_selection": "query_overlap"}
    assert same(pt.sweep(tmp_path / "parts", counter="chars", **cut), pt.sweep(run, counter="chars", **cut))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_jobs": 0}, "sweep: 'n_jobs' must be a whole number but 0, or None; got 0."),
        ({"n_jobs": "2"}, "sweep: 'n_jobs' must be a whole number but 0, or None; got '2'."),
        ({"budget": b"12"}, "PackerConfig: 'budget' must be a whole number of tokens"),
    ],
)
def test_bad_arguments_are_one_error(prepared, given, message):
    with pytest.raises(pt.PacktoolsError, match=message):
        pt.sweep(prepared, **{"budget": 400, **given})


def test_a_budget_of_numpy_is_a_number(prepared):
    assert pt.sweep(prepared, budget=np.array(400)).configs[0].budget == 400


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_workers_that_die_again_and_again_are_an_error(parts):
    def deadly(query, sentences):
        os.kill(os.getpid(), signal.SIGKILL)

    SELECTORS["shortest"] = replace(SELECTORS["head"], score=lambda given, n: deadly(None, None))
    try:
        with pytest.raises(pt.WorkersDied, match="sweep: workers died 4 times in a row"):
            pt.sweep(parts, counter="chars", n_jobs=2, **CUT)
    finally:
        SELECTORS.pop("shortest")
