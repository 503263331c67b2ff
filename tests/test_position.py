"""Order: quality by the place of the answer, and the tokens that prompts in a row share."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_equivalence import Words
from test_select_equivalence import SNIPPETS, TABLES, configs

import packtools as pt
from packtools.position import POSITION_CURVES, PositionCurve, expected_quality, shared_prefix

# Liu et al. (2024), table 1 (closed-book) and app. G, tables 5 to 7, in percent.
PUBLISHED = {
    "gpt-3.5-turbo-10": ((0, 4, 9), (76.8, 61.2, 62.4), 56.1),
    "gpt-3.5-turbo-20": ((0, 4, 9, 14, 19), (75.8, 57.2, 53.8, 55.4, 63.2), 56.1),
    "gpt-3.5-turbo-16k-30": (
        (0, 4, 9, 14, 19, 24, 29),
        (73.4, 55.1, 50.5, 50.9, 51.8, 54.9, 63.7),
        56.0,
    ),
    "claude-1.3-20": ((0, 4, 9, 14, 19), (59.9, 55.9, 56.8, 57.2, 60.1), 48.3),
    "mpt-30b-instruct-20": ((0, 4, 9, 14, 19), (53.7, 51.8, 52.2, 52.7, 56.3), 31.5),
    "longchat-13b-16k-20": ((0, 4, 9, 14, 19), (68.6, 57.4, 55.3, 52.5, 55.0), 35.0),
}
ORDERS = ["descending", "ascending", "lost_in_middle", "document", "fill"]
SEPARATED = pt.PackerConfig(separator="\n\n", detect_conflicts=False)


def run_of(table, texts, answers=None):
    rows = [(qid, docid, rank) for qid, docs in table.items() for rank, docid in enumerate(docs, 1)]
    return pt.Run.from_frames(
        pd.DataFrame(rows, columns=["qid", "docid", "rank"]),
        texts,
        queries=dict.fromkeys(table, "how old is the river stone"),
        answers=answers,
    )


@pytest.fixture(scope="module")
def sample():
    return pt.prepare(pt.load_sample())


# --- curves ---------------------------------------------------------------------------------------


def test_curves_against_the_published_tables():
    assert set(POSITION_CURVES) == {*PUBLISHED, "flat"}
    for name, (index, percent, closed_book) in PUBLISHED.items():
        curve, documents = POSITION_CURVES[name], int(name.rsplit("-", 1)[1])
        assert curve.name == name
        assert f"({documents} documents)" in curve.source
        places = [i / (documents - 1) for i in index]
        assert [*curve.at(places) * 100] == pytest.approx(percent)
        assert curve.absent * 100 == pytest.approx(closed_book)


def test_a_curve_is_straight_between_points_and_level_outside():
    curve = PositionCurve("mine", [0.25, 0.75], [0.4, 0.8], 0.1, "made up")
    assert curve.at([0, 0.25, 0.5, 0.7, 1]).tolist() == pytest.approx([0.4, 0.4, 0.6, 0.76, 0.8])
    assert np.isnan(curve.at(np.nan))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "'name' must be a string that is not empty; got ''."),
        ({"source": None}, "'source' must be a string that is not empty; got None."),
        ({"positions": [0, 0]}, "'positions' must be ascending; got (0.0, 0.0)."),
        ({"positions": [0, 2]}, "'positions' must be a list of shares from 0 to 1; got [0, 2]."),
        ({"positions": []}, "'positions' must be a list of shares from 0 to 1; got []."),
        ({"values": [57, 53]}, "'values' must be a list of shares from 0 to 1; got [57, 53]."),
        ({"values": "ab"}, "'values' must be a list of shares from 0 to 1; got 'ab'."),
        ({"values": [0.5]}, "'values' must be as long as positions (2); got (0.5,)."),
        ({"absent": 56.1}, "'absent' must be a share from 0 to 1; got 56.1."),
        ({"absent": np.nan}, "'absent' must be a share from 0 to 1; got nan."),
    ],
)
def test_a_curve_refuses_what_is_none(change, message):
    with pytest.raises(pt.SettingError) as caught:
        dataclasses.replace(PositionCurve("mine", (0, 1), (0.5, 0.5), 0.1, "made up"), **change)
    assert str(caught.value) == f"PositionCurve: {message}"


# --- expected quality -----------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [None, "\n\n"])
def test_chunks_stand_at_their_index(separator):
    # chunks of 3 to 23 characters, one of 40 with "gold" at its start or its end
    table, texts, place = {}, {}, {}
    for n in range(1, 7):
        for k in range(n):
            for gold in ("gold" + "x" * 35 + ".", "x" * 35 + " gold"):
                qid = f"q{len(table)}"
                table[qid], place[qid] = [f"{qid}-{i}" for i in range(n)], k / max(n - 1, 1)
                texts |= {docid: f"{i:<2}".ljust(3 + 4 * i, "y") for i, docid in enumerate(table[qid])}
                texts[f"{qid}-{k}"] = gold.replace("goldx", "gold ")
    prepared = pt.prepare(run_of(table, texts, {qid: ["gold"] for qid in table}), counter="chars")
    packed = prepared.evaluate(pt.PackerConfig(order="descending", separator=separator))
    line = PositionCurve("line", (0, 1), (0, 1), 0.5, "gives the place back")
    assert expected_quality(packed.per_query, line).to_dict() == pytest.approx(place)


@pytest.mark.parametrize("order", ORDERS)
def test_the_flat_curve_gives_answer_retention(order, sample):
    for budget in (200, 1000):
        per_query = sample.evaluate(SEPARATED.replace(budget=budget, order=order)).per_query
        got = expected_quality(per_query, "flat")
        assert got.name == "expected_quality"
        pd.testing.assert_series_equal(got, per_query["answer_retention"], check_names=False)


def test_absent_and_not_scored_from_a_table_alone():
    rows = [
        (1, 0.0),
        (1, 10 / 19),  # the eleventh of 20, between index 9 and 14
        (1, 1.0),
        (0, np.nan),
        (np.nan, 0.3),
        (np.nan, np.nan),
    ]
    table = pd.DataFrame(rows, columns=["answer_retention", "answer_chunk"], index=list("abcdef"))
    eleventh = 0.538 + (0.554 - 0.538) / 5
    want = [0.758, eleventh, 0.632, 0.561, np.nan, np.nan]
    got = expected_quality(table)
    assert got.index.tolist() == list("abcdef")
    assert got.to_numpy() == pytest.approx(want, nan_ok=True)
    assert expected_quality(table.iloc[:0]).empty


def test_expected_quality_says_what_is_missing():
    run = run_of({"q": ["a"]}, {"a": "one"})
    per_query = pt.prepare(run, counter="chars").evaluate(pt.PackerConfig()).per_query
    with pytest.raises(pt.MetricUnavailable) as caught:
        expected_quality(per_query)
    assert str(caught.value) == (
        "expected_quality: needs the columns answer_retention, answer_chunk; missing: "
        "answer_retention, answer_chunk. Evaluate a run with answers."
    )
    with pytest.raises(pt.SettingError, match=r"curve 'flatt' is unknown; .* Did you mean 'flat'\?"):
        expected_quality(per_query.assign(answer_retention=1.0, answer_chunk=0.0), "flatt")
    with pytest.raises(pt.SettingError, match=r"'per_query' must be a DataFrame; got 3\. Give packed"):
        expected_quality(3)


# --- shared prefixes ------------------------------------------------------------------------------


def shared_by_force(packed, contexts, before="", sequence=None):
    """Render every context and count the chunks at the start that two in a row have in common."""
    counter, separator = packed.prepared.counter, packed.config.separator
    out, last = [], None
    for qid in sequence if sequence is not None else packed.prepared.qids:
        one = contexts[qid]
        n = 0
        if last is not None:
            while one.passages[: n + 1] == last.passages[: n + 1] and n < min(
                len(one.passages), len(last.passages)
            ):
                n += 1
        common = one.passages[:n]
        if separator is None:
            size = sum(map(counter.count, common))
        else:
            text = separator.join(common)
            if common and n < len(one.passages) and n < len(last.passages):
                text += separator
            assert one.text.startswith(text)
            assert last is None or last.text.startswith(text)
            size = counter.count(text) if text else 0
        out.append(size + counter.count(before) if last is not None and before else size)
        last = one
    return out


def rendered(packed):
    return {qid: packed.context(qid) for qid in packed.prepared.qids}


def overlapping():
    """Queries that start alike, are cut at unlike places, repeat each other or share nothing."""
    rng = random.Random(4)
    words = ["river", "stone", "old", "Paris", "3,000", "of", "the", "was", "basalt", "1931", "Alma", "dam"]
    texts = {}
    for i in range(30):
        sentences = (" ".join(rng.choices(words, k=rng.randint(3, 12))) for _ in range(rng.randint(1, 4)))
        texts[f"d{i}"] = " ".join(f"{s.capitalize()}." for s in sentences)
    texts["d3"] = "\n indented " + texts["d3"]  # counts may not add up before white space
    texts["d5"] = "/path " + texts["d5"]
    texts["same"] = texts["d1"]  # the same text under another id
    table = {
        "q0": ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11"],
        "q1": ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d20", "d10", "d11"],
        "q2": ["d0", "same", "d2", "d3", "d21"],
        "q3": ["d0", "d1", "d2", "d3"],
        "q4": ["d0", "d1", "d2", "d3"],
        "q5": ["d22", "d1", "d2", "d3", "d11"],
        "q6": ["d23", "d1", "d24", "d3", "d11"],
        "q7": ["d25"],
        "q8": ["d25", "d26"],
    }
    return run_of(table, texts, {qid: ["1931"] for qid in table})


CONFIGS = [
    SEPARATED,
    SEPARATED.replace(budget=60),
    SEPARATED.replace(budget=97, overflow="truncate"),
    SEPARATED.replace(budget=100, unit="chars", overflow="truncate"),
    SEPARATED.replace(passage_budget=9),
    SEPARATED.replace(budget=80, passage_budget=11, sentence_selection="query_overlap"),
    SEPARATED.replace(separator=None, budget=70),
    SEPARATED.replace(separator=" ", budget=70),
    pt.PackerConfig.characters(300, 60),
]


@pytest.mark.parametrize(
    ("order", "counter"),
    [
        *((order, "cl100k_base") for order in ORDERS),
        ("descending", "chars"),
        ("descending", Words()),
        ("document", Words()),
    ],
)
def test_shared_prefix_against_the_rendered_contexts(order, counter):
    prepared = pt.prepare(overlapping(), counter=counter)
    sequence = ["q1", "q0", "q0", "q3", "q8", "q7", "q2", "q4", "q1"]
    some = 0
    for config in CONFIGS:
        packed = prepared.evaluate(config.replace(order=order))
        got, contexts = shared_prefix(packed), rendered(packed)
        assert got.tolist() == shared_by_force(packed, contexts)
        some += int((got > 0).sum())
        told = shared_prefix(packed, sequence=sequence, before="Answer briefly.\n\n")
        assert told.index.tolist() == sequence
        assert told.tolist() == shared_by_force(packed, contexts, "Answer briefly.\n\n", sequence)
    assert some > 10  # the cases are not empty


@pytest.mark.parametrize("order", ["descending", "document"])
def test_shared_prefix_of_the_sample_against_the_rendered_contexts(order, sample):
    packed = sample.evaluate(SEPARATED.replace(budget=400, order=order))
    assert shared_prefix(packed).tolist() == shared_by_force(packed, rendered(packed))


@settings(max_examples=30, deadline=None)
@given(table=TABLES, config=configs(st.integers(1, 120)), counter=st.sampled_from(["cl100k_base", Words()]))
def test_shared_prefix_of_awkward_texts_under_any_setting(table, config, counter):
    docs = {f"q{q}": [f"d{d}" for d in row] for q, row in enumerate([*table, table[-1]])}
    packed = pt.prepare(run_of(docs, {f"d{i}": t for i, t in enumerate(SNIPPETS)}), counter=counter).evaluate(
        config
    )
    assert shared_prefix(packed).tolist() == shared_by_force(packed, rendered(packed))


def test_a_query_asked_again_shares_all_and_others_no_more_than_they_have():
    prepared = pt.prepare(overlapping())
    for config in CONFIGS:
        packed = prepared.evaluate(config)
        n_tokens = packed.per_query["n_tokens"]
        again = shared_prefix(packed, sequence=[q for q in prepared.qids for _ in (0, 1)])
        assert again.iloc[1::2].to_dict() == n_tokens.to_dict()
        assert (shared_prefix(packed) <= n_tokens).all()


def test_the_head_of_a_prompt_is_shared_only_if_the_order_keeps_it_there():
    # the same four best passages, another fifth one: all but the last are shared best first
    texts = {docid: f"Passage {docid}." for docid in "abcdef"}
    run = run_of({"q1": list("abcde"), "q2": list("abcdf")}, texts)
    prepared = pt.prepare(run, counter="chars")
    packed = prepared.evaluate(SEPARATED.replace(order="descending"))
    assert shared_prefix(packed).to_dict() == {"q1": 0, "q2": 4 * (10 + 2)}
    packed = prepared.evaluate(SEPARATED.replace(order="ascending"))
    assert shared_prefix(packed).to_dict() == {"q1": 0, "q2": 0}
    packed = prepared.evaluate(SEPARATED.replace(order="lost_in_middle"))  # a c (e or f) d b
    assert shared_prefix(packed).to_dict() == {"q1": 0, "q2": 2 * (10 + 2)}


def test_short_prefixes_are_not_kept_and_the_instructions_count():
    prepared = pt.prepare(
        run_of({"q1": ["a"], "q2": ["a"], "q3": ["b"]}, {"a": "12345", "b": "xyz"}), counter="chars"
    )
    packed = prepared.evaluate(SEPARATED)
    told = {least: shared_prefix(packed, before="Do.\n", least=least).tolist() for least in (0, 4, 5, 9, 10)}
    assert told == {0: [0, 9, 4], 4: [0, 9, 4], 5: [0, 9, 0], 9: [0, 9, 0], 10: [0, 0, 0]}


def test_a_short_sequence_and_an_empty_context_share_nothing():
    prepared = pt.prepare(run_of({"q1": ["a"], "q2": ["a"]}, {"a": "12345"}), counter="chars")
    packed = prepared.evaluate(SEPARATED)
    assert shared_prefix(packed, sequence=[]).tolist() == []
    one = shared_prefix(packed, sequence=["q2"], before="Do.\n")
    assert (one.to_dict(), one.name, one.index.name, one.dtype) == (
        {"q2": 0},
        "shared_prefix",
        "qid",
        "int64",
    )
    empty = prepared.evaluate(SEPARATED.replace(budget=3))
    assert shared_prefix(empty).tolist() == [0, 0]
    assert shared_prefix(empty, before="Do.\n").tolist() == [0, 4]


def test_shared_prefix_refuses_what_is_none():
    packed = pt.prepare(run_of({"q1": ["a"], "q2": ["a"]}, {"a": "12345"})).evaluate(SEPARATED)
    bad = {
        "'packed' must be a PackedRun; got 3.": (3, {}),
        "'before' must be a string; got 3.": (packed, {"before": 3}),
        "'least' must be at least 0 tokens; got -1.": (packed, {"least": -1}),
        "'sequence' must be a list of qids; got 'q1'.": (packed, {"sequence": "q1"}),
    }
    for message, (first, named) in bad.items():
        with pytest.raises(pt.SettingError) as caught:
            shared_prefix(first, **named)
        assert str(caught.value) == f"shared_prefix: {message}"
    with pytest.raises(pt.SettingError, match="query: qid 'q9' is unknown; known: 'q1', 'q2'"):
        shared_prefix(packed, sequence=["q1", "q9"])
