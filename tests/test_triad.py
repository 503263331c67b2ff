"""The triad: the recorded rows, a plain second implementation, and reports worked out by hand."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections import Counter

import numpy as np
import pytest
from conftest import vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from packtools.errors import RunFormatError, SettingError
from packtools.grounding import PassageWords
from packtools.triads import DIMENSIONS, SCORES, movement, query_form, triad, triad_row

ROWS = vectors("triad.jsonl")
ABSENT = pytest.mark.skip(reason="../shared/vectors is not here")
CASES = [pytest.param(c, id=c["name"]) for c in ROWS] or [pytest.param({}, id="absent", marks=ABSENT)]


def row(qid="q1", query="capital of Peru", passages="Lima", prediction="Lima", references="Lima", **more):
    """One row; with the defaults: context 0.0, groundedness 1.0, answer 1.0."""
    head = {"query_id": qid, "query": query, "passages": passages}
    return {**head, "prediction": prediction, "references": references, **more}


# --- the recorded behaviour -----------------------------------------------------------------------


def check(found, expected):
    assert found["scores"] == pytest.approx(expected["scores"], rel=0, abs=1e-9)
    assert found["flags"] == expected["flags"]
    assert found["query_form"] == expected["query_form"]
    recall, wanted = found["context"].pop("context_recall"), expected["context"].pop("context_recall")
    assert recall == (None if wanted is None else pytest.approx(wanted, rel=0, abs=1e-9))
    assert found["context"] == expected["context"]


@pytest.mark.parametrize("case", CASES)
def test_a_row_gives_the_recorded_values(case):
    check(triad_row(case["row"], case["qrels"], **case["options"]), copy.deepcopy(case["expected"]))


@pytest.mark.parametrize("case", CASES)
def test_a_report_holds_the_recorded_values(case):
    report = triad(iter([case["row"]]), case["qrels"], **case["options"])
    check(copy.deepcopy(report.per_query[0]), copy.deepcopy(case["expected"]))
    assert {name: report.means[name]["mean"] for name in SCORES} == pytest.approx(
        case["expected"]["scores"], rel=0, abs=1e-9
    )
    assert all(report.means[name]["n"] == 1 for name in SCORES)
    low = case["expected"]["flags"]["low_dimensions"]
    assert [r["query_id"] for r in report.low_scores] == ([str(case["row"]["query_id"])] if low else [])


@pytest.mark.skipif(not ROWS, reason="../shared/vectors is not here")
def test_no_recorded_case_is_missing():
    assert len(ROWS) == 26


# --- a second implementation, as plain as it can be ------------------------------------------------


def plain_grounding(text, passages):
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    content = set(re.findall("[a-z0-9']+", text.lower())) - ENGLISH_STOP_WORDS
    there = {token for passage in passages for token in re.findall("[a-z0-9']+", passage.lower())}
    return len(content & there) / len(content) if content else 1.0


def plain_words(text):
    """Lower case, articles out, ASCII punctuation out, split at white space: the recorded order."""
    text = re.sub(r"\b(a|an|the)\b", " ", text.lower())
    return re.sub(r"[!-/:-@\[-`{-~]", "", text).split()


def plain_f1(prediction, reference):
    a, b = plain_words(prediction), plain_words(reference)
    same = sum(min(Counter(a)[word], Counter(b)[word]) for word in set(a))
    return 2 * same / (len(a) + len(b)) if same else 0.0


def plain_row(one, relevant, k, low):
    passages, ids = one["passages"], one["top_doc_ids"]
    if k:
        passages, ids = passages[:k], ids[:k]
    if relevant is None:
        fit = plain_grounding(one["query"], passages)
    else:
        fit = 1.0 if any(i in relevant.get(one["query_id"], []) for i in ids) else 0.0
    grounded = plain_grounding(one["prediction"], passages)
    answer = max([plain_f1(one["prediction"], r) for r in one["references"]], default=0.0)
    exact = any(plain_words(one["prediction"]) == plain_words(r) for r in one["references"])
    scores = dict(zip(DIMENSIONS, (fit, grounded, answer), strict=True))
    return {
        **scores,
        "triad": (fit + grounded + answer) / 3,
        "exact_match": float(exact),
        "low": [name for name in DIMENSIONS if scores[name] < low],
    }


TEXTS = st.lists(
    st.sampled_from(["Lima", "lima.", "Peru", "the", "is", "Perú", "isn't", "7"]), max_size=5
).map(" ".join)
IDS = st.sampled_from(["d1", "d2", "d3"])


@st.composite
def runs(draw):
    size = draw(st.integers(0, 4))
    rows = [
        row(
            f"q{i}",
            draw(TEXTS),
            draw(st.lists(TEXTS, max_size=3)),
            draw(TEXTS),
            draw(st.lists(TEXTS, max_size=3)),
            top_doc_ids=draw(st.lists(IDS, max_size=3)),
        )
        for i in range(size)
    ]
    qids = st.sampled_from(["q0", "q1", "other"])
    qrels = draw(st.none() | st.dictionaries(qids, st.lists(IDS, max_size=2)))
    return rows, qrels


@given(runs(), st.sampled_from([None, 0, 1, 2, 9]), st.sampled_from([0.0, 0.4, 0.5, 1.0, 1.01]))
@settings(max_examples=200, deadline=None)
def test_triad_against_a_plain_second_implementation(run, k, low):
    rows, qrels = run
    before = copy.deepcopy(rows)
    report = triad(rows, qrels, context_top_k=k, low_score_threshold=low)
    assert rows == before
    expected = [plain_row(one, qrels, k, low) for one in rows]
    for found, wanted in zip(report.per_query, expected, strict=True):
        for name in (*DIMENSIONS, "triad", "exact_match"):
            assert found["scores"][name] == pytest.approx(wanted[name], rel=0, abs=1e-9), name
        assert found["flags"]["low_dimensions"] == wanted["low"]
        assert found["scores"]["lexical_grounding"] == found["scores"]["groundedness"]
    for name in (*DIMENSIONS, "triad"):
        mean = sum(w[name] for w in expected) / len(expected) if expected else None
        wanted_mean = None if mean is None else pytest.approx(mean, rel=0, abs=1e-9)
        assert report.means[name]["mean"] == wanted_mean
        assert report.means[name]["n"] == len(rows)
    assert len(report.low_scores) == sum(bool(w["low"]) for w in expected)
    worst = [(r["scores"]["triad"], r["query_id"]) for r in report.low_scores]
    assert worst == sorted(worst)


@given(runs(), st.randoms())
@settings(max_examples=50, deadline=None)
def test_reports_are_the_same_whatever_was_read_before_and_in_any_order(run, random):
    rows, qrels = run
    once = json.dumps(triad(rows, qrels).to_dict())
    words = PassageWords()
    triad([row("x", passages=["Lima the Peru", "7"])], words=words)
    assert json.dumps(triad(rows, qrels, words=words).to_dict()) == once
    assert [triad_row(one, qrels) for one in rows] == triad(rows, qrels).per_query
    shuffled = triad(random.sample(rows, len(rows)), qrels)
    plain = triad(rows, qrels)
    assert shuffled.means == plain.means
    assert shuffled.low_scores == plain.low_scores
    assert (shuffled.flags, shuffled.query_forms) == (plain.flags, plain.query_forms)


# --- reports by hand ------------------------------------------------------------------------------


@pytest.fixture
def report():
    """Four rows by hand; scores are (context, groundedness, answer), triad."""
    return triad(
        [
            row("b"),  # (0, 1, 1), 2/3
            row("a"),  # the same as b: the tie goes by id
            row("10", "is Lima big", ["Lima is big"], "Lima", ["Lima"]),  # (1, 1, 1), 1: not low
            row(9, None, "", "Cusco it is", []),  # (1 vacuous, 0, 0), 1/3
        ]
    )


def test_low_scores_are_worst_first_and_ties_go_by_id_as_text(report):
    assert [one["query_id"] for one in report.low_scores] == ["9", "a", "b"]
    assert report.low_scores[0]["flags"]["low_dimensions"] == ["groundedness", "answer_relevance"]


def test_means_say_over_how_many_rows_and_how_many_are_evidence(report):
    means = report.means
    assert means["context_relevance"] == {
        "mean": 0.5,
        "n": 4,
        "mean_judged": pytest.approx(1 / 3),  # the empty query has nothing to look for
        "n_judged": 3,
    }
    assert means["groundedness"] == {"mean": 0.75, "n": 4, "mean_judged": 0.75, "n_judged": 4}
    assert means["answer_relevance"] == {"mean": 0.75, "n": 4, "mean_judged": 1.0, "n_judged": 3}
    assert means["exact_match"] == means["answer_relevance"]
    assert means["triad"]["mean"] == pytest.approx((2 / 3 + 2 / 3 + 1 + 1 / 3) / 4)
    assert (means["triad"]["mean_judged"], means["triad"]["n_judged"]) == (pytest.approx(7 / 9), 3)
    # Only "Cusco it is" has three tokens, and its context is empty.
    assert means["ngram_grounding"] == {"mean": 0.75, "n": 4, "mean_judged": 0.0, "n_judged": 1}


def test_a_query_without_relevant_ids_is_no_evidence_for_its_context():
    rows = [row("q1", top_doc_ids=["d1"]), row("q2", top_doc_ids=["d1"])]
    means = triad(rows, {"q1": ["d1"]}).means["context_relevance"]
    assert means == {"mean": 0.5, "n": 2, "mean_judged": 1.0, "n_judged": 1}


def test_counts_by_form_and_by_flag(report):
    assert report.query_forms == {
        **dict.fromkeys(("who", "what", "when", "where", "why", "how", "which"), 0),
        "yes_no": 1,
        "other": 3,
    }
    assert report.flags == {
        "empty_context": 1,
        "missing_references": 1,
        "vacuous_lexical_grounding": 0,
        "vacuous_ngram_grounding": 3,
        "low_context_relevance": 2,
        "low_groundedness": 1,
        "low_answer_relevance": 1,
    }


def test_no_rows_have_no_means():
    report = triad([])
    assert report.means["triad"] == {"mean": None, "n": 0, "mean_judged": None, "n_judged": 0}
    assert (report.low_scores, sum(report.query_forms.values()), sum(report.flags.values())) == ([], 0, 0)


def test_a_report_is_frozen_short_to_show_and_plain_to_save(report):
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.per_query = []
    assert "Cusco" not in repr(report)  # a notebook does not print every row
    saved = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert saved["n"] == 4
    assert saved["low_scores"] == ["9", "a", "b"]
    assert saved["options"] == {
        "context_top_k": None,
        "ngram_n": 3,
        "low_score_threshold": 0.5,
        "rule": "msmarco",
        "qrels_available": False,
    }
    assert saved["per_query"] == report.per_query


@pytest.mark.parametrize(
    ("query", "form"),
    [
        ("who was it", "who"), ("What's a fjord", "what"), ("WHEN?", "when"), ("where", "where"),
        ("  why, then", "why"), ("how many", "how"), ("which", "which"), ("'what' means", "what"),
        ("what\u2019s up", "what"), ("is it", "yes_no"), ("Isn't it", "yes_no"), ("can\u2019t it", "yes_no"),
        ("won't it", "yes_no"), ("does it", "yes_no"), ("should i", "yes_no"), ("whatever", "other"),
        ("whose is it", "other"), ("island of what", "other"), ("tell me who", "other"), ("", "other"),
        ("東京", "other"), ("'", "other"), ("yes_no", "other"), ("other", "other"),
    ],
)  # fmt: skip
def test_query_form_goes_by_the_first_word(query, form):
    assert query_form(query) == form


def test_labels_of_qrels_decide_and_ids_are_text():
    judged = {"q1": {"d1": 0, "d2": 1, "d3": -1}}
    assert triad_row(row(top_doc_ids=["d1", "d3"]), judged)["scores"]["context_relevance"] == 0.0
    assert triad_row(row(top_doc_ids=["d1", "d2"]), judged)["context"]["first_relevant_rank"] == 2
    found = triad_row(row(7, top_doc_ids=np.array([3, 4])), {7: [4]})
    assert (found["query_id"], found["context"]["top_doc_ids"]) == ("7", ["3", "4"])
    assert found["context"]["n_relevant_in_context"] == 1
    both = triad_row(row(7, top_doc_ids=["4"]), {7: ["4"], "7": ["5"]})  # one query, written in two ways
    assert both["context"]["n_relevant_qrels"] == 2


def test_top_k_clips_passages_and_ids_alike():
    one = row(passages=["Cusco", "Lima", "Lima"], top_doc_ids=["d1", "d2", "d3"])
    for k, shown, grounded in ((1, 1, 0.0), (2, 2, 1.0), (9, 3, 1.0), (0, 3, 1.0), (None, 3, 1.0)):
        found = triad_row(one, {"q1": ["d3"]}, context_top_k=k)
        assert found["context"]["n_passages"] == len(found["context"]["top_doc_ids"]) == shown
        assert found["scores"]["groundedness"] == grounded
        assert found["scores"]["context_relevance"] == float(shown == 3)


def test_a_null_passage_is_empty_and_blank_references_are_missing():
    found = triad_row(row(passages=[None, "Lima"], references=["", " "]))
    assert found["context"]["passage_snippets"] == ["", "Lima"]
    assert found["flags"]["missing_references"]
    assert triad_row(row(passages=[None, "\u3000\n"]))["flags"]["empty_context"]


def test_other_scripts_have_no_tokens_and_say_so():
    found = triad_row(row("質問", "東京は", ["東京"], "東京", ["東京"]))
    assert (found["scores"]["groundedness"], found["scores"]["exact_match"]) == (1.0, 1.0)
    assert found["flags"]["vacuous_lexical_grounding"]
    assert not found["flags"]["empty_context"]


# --- bad rows and settings ------------------------------------------------------------------------


def without(key):
    return {name: value for name, value in row().items() if name != key}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(passages=5), "triad: query 'q1': 'passages' must be a list of strings; got 5."),
        (row(passages=["a", 5]), "triad: query 'q1': 'passages' must be a list of strings; got 5."),
        (
            row(passages={"d1": "a"}),
            "triad: query 'q1': 'passages' must be a list of strings; got {'d1': 'a'}.",
        ),
        (
            row(references=[["Lima"]]),
            "triad: query 'q1': 'references' must be a list of strings; got ['Lima'].",
        ),
        (row(prediction=["Lima"]), "triad: query 'q1': 'prediction' must be a string or null; got ['Lima']."),
        (row(prediction=float("nan")), "triad: query 'q1': 'prediction' must be a string or null; got nan."),
        (row(query=7), "triad: query 'q1': 'query' must be a string or null; got 7."),
        (
            row(top_doc_ids=[1.5]),
            "triad: query 'q1': 'top_doc_ids' must be a list of ids (strings or whole numbers); got 1.5.",
        ),
        (
            row(top_doc_ids=["d1", None]),
            "triad: query 'q1': 'top_doc_ids' must be a list of ids (strings or whole numbers); got None.",
        ),
        (
            without("prediction"),
            "triad: query 'q1': 'prediction' must be in the row; got ['query_id', 'query', 'passages', "
            "'references']. Write null where there is none.",
        ),
        (
            {"query_id": 3},
            "triad: query '3': 'query' must be in the row; got ['query_id']. Write null where there is none.",
        ),
        (
            without("query_id"),
            "triad: row 2: 'query_id' must be a string that is not empty, or a whole number; got None.",
        ),
        (row(""), "triad: row 2: 'query_id' must be a string that is not empty, or a whole number; got ''."),
        (
            row(True),
            "triad: row 2: 'query_id' must be a string that is not empty, or a whole number; got True.",
        ),
        (
            row(1.0),
            "triad: row 2: 'query_id' must be a string that is not empty, or a whole number; got 1.0.",
        ),
        ("query_id", "triad: row 2: 'row' must be a mapping of keys to values; got 'query_id'."),
        (row("fine"), "triad: row 2: 'query_id' must be new in each row; got 'fine'."),
    ],
)
def test_a_bad_row_is_one_error_that_names_query_and_key(bad, message):
    with pytest.raises(RunFormatError) as raised:
        triad([row("fine"), bad])
    assert str(raised.value) == message


def test_an_id_written_as_number_and_as_text_is_one_id():
    with pytest.raises(RunFormatError, match="triad: row 2: 'query_id' must be new in each row; got '1'"):
        triad([row(1), row("1")])


@pytest.mark.parametrize("key", ["query", "passages", "prediction", "references"])
def test_each_key_is_needed(key):
    with pytest.raises(RunFormatError, match=f"^triad: query 'q1': '{key}' must be in the row; got "):
        triad_row(without(key))


def test_ids_are_needed_with_qrels_only():
    assert triad_row(row())["context"]["top_doc_ids"] == []
    with pytest.raises(RunFormatError, match="query 'q1': 'top_doc_ids' must be in the row"):
        triad_row(row(), {"q1": ["d1"]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"context_top_k": -1}, "triad: 'context_top_k' must be at least 0 passages; got -1."),
        ({"context_top_k": 1.5}, "triad: 'context_top_k' must be a whole number of passages; got 1.5."),
        ({"ngram_n": 0}, "triad: 'ngram_n' must be at least 1 token; got 0."),
        ({"low_score_threshold": "0.5"}, "triad: 'low_score_threshold' must be a finite number; got '0.5'."),
        (
            {"low_score_threshold": float("nan")},
            "triad: 'low_score_threshold' must be a finite number; got nan.",
        ),
        (
            {"low_score_threshold": float("inf")},
            "triad: 'low_score_threshold' must be a finite number; got inf.",
        ),
        (
            {"qrels": [("q1", "d1")]},
            "triad: 'qrels' must be a mapping of query id to relevant ids, or None; got [('q1', 'd1')].",
        ),
        (
            {"qrels": {"q7": {"d1": "1"}}},
            "triad: query 'q7': 'qrels' must be labelled by numbers; got '1'.",
        ),
        (
            {"qrels": {"q7": [None]}},
            "triad: query 'q7': 'qrels' must be a list of ids (strings or whole numbers); got None.",
        ),
    ],
)
def test_a_bad_setting_is_one_clear_error(given, message):
    with pytest.raises(SettingError) as raised:
        triad([row(top_doc_ids=["d1"])], **given)
    assert str(raised.value) == message


@pytest.mark.parametrize("rows", [row(), "q1", 5, None])
def test_rows_are_a_list(rows):
    with pytest.raises(
        SettingError, match="^triad: 'rows' must be a list of mappings; got .*One row is a list"
    ):
        triad(rows)


# --- movement -------------------------------------------------------------------------------------


def answered(**predictions):
    """Reports over one context, "Lima Cusco Callao"; the reference is "Lima Cusco"."""
    passages = ["Lima Cusco", "Callao"]
    return triad([row(qid, "Lima", passages, text, ["Lima Cusco"]) for qid, text in predictions.items()])


def test_movement_by_hand():
    # Token F1 against "Lima Cusco": "Lima Cusco" 1, "Lima" 2/3, "Lima Quito" 1/2, "Quito" 0.
    # Groundedness: 1, 1, 1/2, 0.
    before = answered(a="Lima", b="Lima Cusco", c="Quito", d="Lima Cusco", e="Quito", gone="Lima")
    after = answered(e="Lima", d="Quito", c="Lima Cusco", b="Lima Quito", a="Lima", new="Lima")
    moved = movement(before, after)
    assert moved.buckets["answer_relevance"] == {
        "improved": ["c", "e"],  # by 1 and by 2/3
        "worsened": ["d", "b"],  # by 1 and by 1/2
        "unchanged": ["a"],
    }
    assert moved.buckets["groundedness"]["improved"] == ["c", "e"]  # both by 1: the tie goes by id
    assert moved.buckets["context_relevance"]["unchanged"] == ["a", "b", "c", "d", "e"]
    assert moved.counts["answer_relevance"] == {"improved": 2, "worsened": 2, "unchanged": 1}
    assert moved.counts["exact_match"] == {"improved": 1, "worsened": 2, "unchanged": 2}
    assert (moved.only_before, moved.only_after) == (["gone"], ["new"])
    assert moved.deltas["answer_relevance"] == pytest.approx(
        {"a": 0, "b": -1 / 2, "c": 1, "d": -1, "e": 2 / 3}
    )
    assert moved.deltas["triad"]["c"] == pytest.approx(2 / 3)


def test_a_change_of_exactly_the_tolerance_is_unchanged():
    before, after = answered(a="Quito", b="Lima Cusco"), answered(a="Lima Quito", b="Lima Quito")
    # Both groundedness and answer change by exactly 1/2: a up, b down.
    for name in ("groundedness", "answer_relevance"):
        same = movement(before, after, tolerance=0.5).buckets[name]
        assert same == {"improved": [], "worsened": [], "unchanged": ["a", "b"]}
        less = movement(before, after, tolerance=0.49).buckets[name]
        assert less == {"improved": ["a"], "worsened": ["b"], "unchanged": []}


@given(runs(), runs())
@settings(max_examples=100, deadline=None)
def test_every_shared_query_is_in_one_bucket_and_turning_round_swaps_them(first, second):
    one = triad(first[0], first[1])
    same = {r["query_id"]: r["references"] for r in first[0]}
    rows = [{**r, "references": same.get(r["query_id"], r["references"])} for r in second[0]]
    two = triad(rows, first[1])
    shared = sorted({r["query_id"] for r in first[0]} & {r["query_id"] for r in rows})
    if not shared:
        return
    there, back = movement(one, two), movement(two, one)
    for name in SCORES:
        held = there.buckets[name]
        assert sorted(held["improved"] + held["worsened"] + held["unchanged"]) == shared
        assert held["improved"] == back.buckets[name]["worsened"]
        assert held["worsened"] == back.buckets[name]["improved"]
        assert held["unchanged"] == back.buckets[name]["unchanged"]
    assert movement(one, one).counts["triad"] == {"improved": 0, "worsened": 0, "unchanged": len(first[0])}


@pytest.mark.parametrize(
    ("after", "given", "message"),
    [
        (
            lambda: triad([row("q2")]),
            {},
            "movement: 'after' must be a report that shares a query id with 'before'; got ['q2'].",
        ),
        (
            lambda: triad([row(references=["Lima", "Cusco"])]),
            {},
            "movement: query 'q1': 'references' must be as before, ['Lima']; got ['Lima', 'Cusco'].",
        ),
        (
            lambda: triad([row(top_doc_ids=[])], {}),
            {},
            "movement: 'qrels_available' must be the same in both reports (False before); got True. "
            "Score both in one way.",
        ),
        (
            lambda: triad([row()], ngram_n=2),
            {},
            "movement: 'ngram_n' must be the same in both reports (3 before); got 2. Score both in one way.",
        ),
        (
            lambda: triad([row()]),
            {"tolerance": -0.1},
            "movement: 'tolerance' must be a finite number of 0 or more; got -0.1.",
        ),
    ],
)
def test_reports_that_cannot_be_paired_are_one_clear_error(after, given, message):
    with pytest.raises(SettingError) as raised:
        movement(triad([row()]), after(), **given)
    assert str(raised.value) == message


def test_other_depths_and_thresholds_can_be_paired():
    other = triad([row()], context_top_k=1, low_score_threshold=0.9)
    assert movement(triad([row()]), other).counts["triad"]["unchanged"] == 1
