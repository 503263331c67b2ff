"""The slider and the packer can't disagree: `evaluate` equals `pack_sync`, query by query."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt

BUDGETS = [1, 60, 137, 250, 400, 777, 1000, 1500, 2600, 6000]
THRESHOLDS = [None, 0.5, 0.7, 0.85, 0.95, 1.0]


@pytest.fixture(scope="module")
def sample():
    return pt.prepare(pt.load_sample())


def assert_same(prepared, config, qids):
    """Compare the whole outcome of a setting with packs made one by one."""
    packed = prepared.evaluate(config)
    packer = pt.ContextPacker(config, prepared.counter, weights=prepared.weights)
    table = dict(list(packed.decisions.groupby("qid", observed=True)))
    for qid in qids:
        one = packer.pack_sync(None, prepared.run.chunks(qid), query=prepared.run.queries.at[qid, "text"])
        pt.verify_spans(one)
        assert packed.kept(qid) == [c.id for c in one.chunks], (qid, config)
        column = "n_tokens" if config.unit == "tokens" else "n_chars"
        if config.separator is not None:
            assert packed.per_query.at[qid, "n_tokens"] == prepared.counter.count(one.text)
            assert packed.per_query.at[qid, "n_chars"] == len(one.text)
        assert packed.per_query.at[qid, column] == one.n_used, (qid, config)
        assert packed.per_query.at[qid, "n_chunks"] == len(one.chunks)
        rows = table[qid]
        rows = rows[rows["decision"] != "no_text"]
        ledger = [(d.docid, d.reason or "kept", d.of or "", d.over_by or 0, d.size) for d in one.decisions]
        columns = ["docid", "decision", "of", "over_by", f"n_{config.unit}"]
        assert list(rows[columns].itertuples(index=False, name=None)) == ledger


@pytest.mark.parametrize("order", ["lost_in_middle", "descending", "ascending"])
@pytest.mark.parametrize("separator", [None, "\n\n"])
def test_evaluate_equals_pack_query_by_query_on_the_sample(sample, order, separator):
    number = 0
    for budget in BUDGETS:
        for threshold in THRESHOLDS:
            number += 1
            config = pt.PackerConfig(
                budget=budget,
                order=order,
                separator=separator,
                jaccard_threshold=threshold,
                protect_differences=number % 3 != 0,
            )
            assert_same(sample, config, sample.qids[number % 24 :: 24])


@settings(max_examples=60, deadline=None)
@given(
    budget=st.sampled_from([None, *BUDGETS]),
    order=st.sampled_from(["lost_in_middle", "descending", "ascending", "fill", "document"]),
    fill=st.sampled_from(["score", "rank", "shorter_first", "value_per_token"]),
    threshold=st.sampled_from(THRESHOLDS),
    separator=st.sampled_from([None, "\n\n", "\n", "\n---\n", " ", ""]),
    unit=st.sampled_from(["tokens", "chars"]),
    protect=st.booleans(),
    data=st.data(),
)
def test_evaluate_equals_pack_for_any_setting(
    sample, budget, order, fill, threshold, separator, unit, protect, data
):
    config = pt.PackerConfig(
        budget=budget,
        order=order,
        fill=fill,
        jaccard_threshold=threshold,
        separator=separator,
        unit=unit,
        protect_differences=protect,
    )
    assert_same(sample, config, data.draw(st.lists(st.sampled_from(sample.qids), min_size=1, max_size=3)))


@pytest.mark.parametrize("gold", [0, 9, 19])
def test_evaluate_equals_pack_on_real_multidocument_questions(real, gold):
    prepared = pt.prepare(real / "nq_multidoc" / f"nq-open-20_total_documents_gold_at_{gold}.jsonl.gz")
    for order in pt.ORDERINGS:
        for number, budget in enumerate(BUDGETS):
            for threshold in THRESHOLDS:
                config = pt.PackerConfig(
                    budget=budget, order=order, separator="\n\n", jaccard_threshold=threshold
                )
                assert_same(prepared, config, prepared.qids[number + gold :: 33])


SNIPPETS = [
    "alpha beta gamma delta epsilon",
    " leading space",
    "/slash first",
    "\n\nbreaks",
    "3.14",
    "3,14",
    "...",
    "",
    "   ",
    "É è",
    "中文没有空格的文字在这里",
    "Not so.",
    "so",
    "x" * 40,
    "tail  ",
    "tab\tend\n",
]


@settings(max_examples=150, deadline=None)
@given(
    table=st.lists(
        st.lists(st.sampled_from(range(len(SNIPPETS))), min_size=1, max_size=7, unique=True),
        min_size=1,
        max_size=4,
    ),
    budget=st.one_of(st.none(), st.integers(1, 60)),
    order=st.sampled_from(["lost_in_middle", "descending", "ascending", "fill", "document"]),
    fill=st.sampled_from(["score", "shorter_first", "value_per_token"]),
    separator=st.sampled_from([None, "\n\n", "\n", " / ", ""]),
    threshold=st.sampled_from([None, 0.5, 1.0]),
    scores=st.lists(st.sampled_from([3.0, 0.0, -2.5, np.nan]), min_size=7, max_size=7),
)
def test_evaluate_equals_pack_on_awkward_texts(table, budget, order, fill, separator, threshold, scores):
    rows = [
        (f"q{q}", f"d{d}", r, scores[r - 1]) for q, docs in enumerate(table) for r, d in enumerate(docs, 1)
    ]
    frame = pd.DataFrame(rows, columns=["qid", "docid", "rank", "score"])
    run = pt.Run.from_frames(frame, {f"d{i}": s for i, s in enumerate(SNIPPETS)})
    prepared = pt.prepare(run)
    config = pt.PackerConfig(
        budget=budget, order=order, fill=fill, separator=separator, jaccard_threshold=threshold
    )
    assert_same(prepared, config, prepared.qids)


def test_shuffled_rows_give_the_same_packs(sample):
    run = sample.run
    mixed = run.candidates.iloc[np.random.default_rng(1).permutation(len(run.candidates))]
    again = pt.Run.from_frames(
        mixed,
        run.passages,
        queries=run.queries["text"].to_dict(),
        qrels=run.qrels,
        answers=run.answers.to_dict(),
    )
    config = pt.PackerConfig(budget=700, separator="\n\n", jaccard_threshold=0.85)
    first, second = sample.evaluate(config), pt.prepare(again).evaluate(config)
    assert first.per_query.to_csv() == second.per_query.to_csv()
    assert first.decisions.to_csv() == second.decisions.to_csv()


class Words:
    """Count words; promises nothing about joins."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


@pytest.mark.parametrize("separator", [None, "\n\n", " | ", ""])
def test_evaluate_equals_pack_for_own_counters_and_orderings(separator):
    pt.register_ordering("best_second", lambda items: [*items[1:2], *items[:1], *items[2:]])
    try:
        prepared = pt.prepare(pt.load_sample("tfidf"), counter=Words())
        for order in ("best_second", "lost_in_middle"):
            for budget in (None, 90, 400, 1200):
                config = pt.PackerConfig(budget=budget, order=order, separator=separator)
                assert_same(prepared, config, prepared.qids[::17])
                assert budget is None or (prepared.evaluate(config).per_query["n_tokens"] <= budget).all()
    finally:
        del pt.ORDERINGS["best_second"]
