"""Metrics: one table of properties, and values worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import packtools as pt
from packtools import metrics


@pytest.fixture
def small():
    """Two queries by hand: q1 has an answer in its second passage, q2 has none anywhere."""
    frame = pd.DataFrame(
        [
            ("q1", "a", 1, 3.0),
            ("q1", "b", 2, 2.0),
            ("q1", "c", 3, 1.0),
            ("q2", "c", 1, 1.0),
            ("q2", "a", 2, 0.5),
        ],
        columns=["qid", "docid", "rank", "score"],
    )
    qrels = pd.DataFrame(
        [("q1", "a", 1), ("q1", "b", 2), ("q1", "zz", 1), ("q1", "c", 0)], columns=["qid", "docid", "label"]
    )
    texts = {"a": "aaaa bbbb", "b": "the Nile is here", "c": "cc"}
    return pt.Run.from_frames(frame, texts, qrels=qrels, answers={"q1": ["Nile"], "q2": ["Rhine"]})


def evaluate(run, **settings):
    return pt.prepare(run, counter="chars").evaluate(pt.PackerConfig(unit="chars", **settings))


def test_values_by_hand(small):
    packed = evaluate(small, budget=12, order="descending", separator="|")
    # q1: a (9) fits, b (16) does not, c: 9 + 1 + 2 = 12 fits exactly. q2: c (2), a: 2 + 1 + 9 = 12.
    assert packed.kept("q1") == ["a", "c"]
    assert packed.kept("q2") == ["c", "a"]
    q1, q2 = packed.per_query.loc["q1"], packed.per_query.loc["q2"]
    assert (q1["n_chars"], q1["n_chunks"], q1["compression_ratio"]) == (12, 2, 12 / 29)
    assert q1["gold_retention"] == 0.5  # a of a and b; zz was not retrieved, c is not relevant
    assert q1["answer_retention"] == 0.0
    assert np.isnan(q1["answer_position"])
    assert np.isnan(q1["answer_chunk"])
    assert np.isnan(q2["gold_retention"])  # no relevant candidate: not scored, never 0
    assert np.isnan(q2["answer_retention"])  # the full context holds no answer


def test_the_place_of_the_answer_is_a_share_of_the_packed_text(small):
    for order, before, chunk in (
        ("descending", 9 + 1 + 4, 1),
        ("ascending", 2 + 1 + 4, 1),
        ("lost_in_middle", 9 + 1 + 2 + 1 + 4, 2),
    ):
        packed = evaluate(small, budget=None, order=order, separator="|")
        assert packed.per_query.at["q1", "answer_position"] == before / 29
        assert packed.per_query.at["q1", "answer_chunk"] == chunk / 2


def test_summary_says_how_many_were_scored(small):
    summary = evaluate(small, budget=None).summary
    assert summary.loc["answer_retention", ["n", "N"]].tolist() == [1, 2]
    assert summary.loc["n_chars", ["n", "N", "total"]].tolist() == [2, 2, 38.0]
    assert summary.loc["n_chars", "unit"] == "chars"


def test_metrics_that_a_run_cannot_give_are_absent_and_say_why(small):
    frame = small.candidates[["qid", "docid", "rank"]]
    packed = evaluate(pt.Run.from_frames(frame, small.passages), budget=9)
    assert not {"gold_retention", "answer_retention"} & set(packed.per_query)
    assert packed.unavailable["gold_retention"] == "no qrels in this run"
    assert packed.unavailable["answer_retention"] == "no answers in this run"
    with pytest.raises(pt.MetricUnavailable, match="answer_retention: not available: no answers in this run"):
        metrics.need("answer_retention", packed.unavailable)


def test_an_unknown_metric_lists_the_known_ones():
    with pytest.raises(pt.SettingError, match="metric: name 'gold' is unknown; known: 'n_tokens'"):
        metrics.get_metric("gold")


def test_no_text_at_all_in_a_query_gives_no_ratio():
    frame = pd.DataFrame({"qid": ["q1", "q2"], "docid": ["a", "e"], "rank": [1, 1]})
    packed = evaluate(pt.Run.from_frames(frame, {"a": "x", "e": " "}), budget=9)
    assert packed.per_query["n_tokens"].tolist() == [1, 0]
    assert np.isnan(packed.per_query.at["q2", "compression_ratio"])  # P13: 0 of 0 is n/a


@pytest.fixture(scope="module")
def sample():
    return pt.prepare(pt.load_sample())


@pytest.mark.parametrize("budget", [None, 1, 300, 1000, 10_000])
@pytest.mark.parametrize("order", list(pt.ORDERINGS))
def test_every_metric_keeps_its_range(sample, budget, order):
    packed = sample.evaluate(pt.PackerConfig(budget=budget, order=order, separator="\n\n"))
    assert set(packed.per_query) == set(pt.METRICS)
    for name, metric in pt.METRICS.items():
        values = packed.per_query[name].dropna()
        assert (values >= metric.low).all()
        assert metric.high is None or (values <= metric.high).all()
        assert packed.summary.at[name, "n"] == len(values)


def test_more_budget_never_keeps_fewer_answers_or_relevant_passages_when_the_order_of_filling_is_a_prefix():
    # With equal sizes the kept sets are nested, so retention must not fall.
    rows = [(f"q{q}", f"d{q}-{r}", r) for q in range(6) for r in range(1, 9)]
    frame = pd.DataFrame(rows, columns=["qid", "docid", "rank"])
    texts = {d: f"text {d[-1]} {'Nile' if d.endswith('5') else 'Seine'}"[:12] for _, d, _ in rows}
    qrels = pd.DataFrame([(q, d, 1) for q, d, r in rows if r % 3 == 0], columns=["qid", "docid", "label"])
    run = pt.Run.from_frames(frame, texts, qrels=qrels, answers={f"q{q}": ["Nile"] for q in range(6)})
    prepared = pt.prepare(run, counter="chars")
    config = pt.PackerConfig(unit="chars", deduplicate=False)
    means = [p.per_query.mean() for p in prepared.evaluate_budgets(config, [11, 23, 35, 47, 59, 71, 83, 200])]
    for name in ("gold_retention", "answer_retention", "n_chars"):
        values = [m[name] for m in means]
        assert values == sorted(values)


def test_units_of_every_column_hold_against_a_recount(sample):
    config = pt.PackerConfig(budget=700, separator="\n\n", jaccard_threshold=0.85)
    packed = sample.evaluate(config)
    for qid in sample.qids[::6]:
        context = packed.context(qid)
        row = packed.per_query.loc[qid]
        assert row["n_tokens"] == sample.counter.count(context.text)  # P10
        assert row["n_chars"] == len(context.text)
        assert row["n_chunks"] == len(context.chunks)
        answers = sample.run.answers[qid]
        assert row["answer_retention"] == float(
            any(pt.find_answer(c.text, answers) >= 0 for c in context.chunks)
        )
        first = pt.find_answer(context.text, answers)
        if first >= 0:
            assert row["answer_position"] == pytest.approx(first / len(context.text))
            holds = [pt.find_answer(c.text, answers) >= 0 for c in context.chunks]
            assert row["answer_chunk"] == holds.index(True) / max(len(holds) - 1, 1)
        wanted = sample.run.qrels.query("qid == @qid and label > 0")["docid"]
        retrieved = set(sample.run.candidates.query("qid == @qid")["docid"]) & set(wanted)
        assert row["gold_retention"] == pytest.approx(
            len({c.id for c in context.chunks} & retrieved) / len(retrieved)
        )


def test_the_unpacked_baseline_keeps_everything(sample):
    full = sample.evaluate(pt.PackerConfig(budget=None))
    assert (full.decisions["decision"] == "kept").all()
    assert (full.per_query["compression_ratio"] == 1).all()
    assert (full.per_query["gold_retention"] == 1).all()


def test_another_counter_counts_again_and_compares_nothing_again(sample):
    chars = sample.with_counter("chars")
    assert chars.cells is sample.cells
    packed = chars.evaluate(pt.PackerConfig(budget=4000, separator="\n\n"))
    assert (packed.per_query["n_tokens"] == packed.per_query["n_chars"]).all()


def test_a_slider_move_never_counts_splits_or_compares(sample, monkeypatch):
    from packtools import cells, corpus, metrics, selected

    sample.full("tokens", "\n\n")

    def never(*args, **kwargs):
        raise AssertionError("work that belongs into prepare")

    monkeypatch.setattr(type(sample.counter), "count", never)
    for module, names in (
        (cells, ("compare", "similar_pairs", "exact_groups", "differences")),
        (selected, ("exact_groups", "bag_hashes", "cut_length")),
        (corpus, ("separator_cost", "SentenceTable")),
        (metrics, ("fold", "find_answers", "find_folded")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, never)
    for budget in (100, 900, None):
        for threshold in (None, 0.6, 1.0):
            for order in pt.ORDERINGS:
                config = pt.PackerConfig(
                    budget=budget, jaccard_threshold=threshold, order=order, separator="\n\n"
                )
                assert len(sample.evaluate(config).per_query) == 72


def test_a_threshold_below_what_was_prepared_is_one_clear_error(sample):
    with pytest.raises(pt.SettingError) as error:
        sample.evaluate(pt.PackerConfig(jaccard_threshold=0.3))
    assert str(error.value) == (
        "evaluate: 'jaccard_threshold' must be at least 0.5; got 0.3. "
        "Pairs were kept from there on; use prepare(run, min_jaccard=0.3)."
    )


def test_the_ratio_counts_near_duplicates_that_were_dropped_without_a_budget():
    frame = pd.DataFrame({"qid": ["q", "q"], "docid": ["a", "b"], "rank": [1, 2]})
    text = "alpha beta gamma delta epsilon zeta"
    prepared = pt.prepare(pt.Run.from_frames(frame, {"a": text, "b": text + " eta"}), counter="chars")
    packed = prepared.evaluate(pt.PackerConfig(budget=None, deduplicate=False, jaccard_threshold=0.5))
    assert packed.per_query.at["q", "compression_ratio"] == len(text) / (2 * len(text) + 4)


def test_separators_must_be_a_list():
    with pytest.raises(
        pt.SettingError, match=r"'separators' must be a list of strings; got '--'. Write \['--'\]"
    ):
        pt.prepare(pt.load_sample(), separators="--")


def test_counts_beyond_32_bits_add_up():
    class Huge:
        name = "huge"

        def count(self, text: str) -> int:
            return 10**9

    frame = pd.DataFrame([("q", f"d{r}", r) for r in range(12)], columns=["qid", "docid", "rank"])
    prepared = pt.prepare(
        pt.Run.from_frames(frame, {f"d{r}": f"t{r}" for r in range(12)}), counter=Huge(), separators=[]
    )
    packed = prepared.evaluate(pt.PackerConfig())
    assert packed.per_query.loc["q", ["n_tokens", "n_chunks"]].tolist() == [12 * 10**9, 12]
    assert prepared.evaluate(pt.PackerConfig(budget=5 * 10**9)).per_query.at["q", "n_chunks"] == 5
