"""Selection and truncation on arrays equal a pack made query by query, and spans hold, for any setting."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_equivalence import Words, assert_same

import packtools as pt

SNIPPETS = [
    "Alpha beta gamma. Delta epsilon zeta! Eta theta? Iota kappa lambda mu.",
    "  Leading space. Then more\n\nand a break. End.  ",
    "/slash first. Second /here.",
    "| Name | Sum |\n|---|---|\n| excl. | 5,120 |\n| incl. | 6,093 |\n\nThat is all.",
    "第一文です．第二文です．東京は日本の首都です。大阪は大きい。",
    "```\ncode here. not a sentence.\n```\nProse follows it. And ends.",
    "One sentence without any stop at all that goes on and on for a while and then some more",
    "a" * 60,
    "Tab\tand\u00a0no-break. A\ufffdB is odd.  Two  spaces.",
    "Is it safe? It is not safe. It is safe. It costs $5, or 5.50.",
    "Alpha beta gamma. Eta theta?",
    "ALPHA beta GAMMA. eta THETA?",
    "- first item\n- second item here\n- third\n\n1. One\n2. Two",
    "\U0001f9e0\U0001f9e0 brains. \U0001f9e0 more. e\u0301 accents.",
    "هل هذا صحيح؟ نعم. هذا نص عربي.",
    "",
    " \n ",
    "...",
]
QUERIES = ["alpha safe eta", "大阪 東京", "sum incl 6,093", "x", "What is the second item?"]


def configs(unit_budgets):
    """Settings of the whole pipeline."""
    return st.builds(
        pt.PackerConfig,
        budget=st.one_of(st.none(), unit_budgets),
        unit=st.sampled_from(["tokens", "chars"]),
        passage_budget=st.one_of(st.none(), st.integers(1, 40)),
        sentence_selection=st.sampled_from([None, *pt.SELECTORS]),
        splitter=st.sampled_from(["prose", "simple"]),
        min_sentence_chars=st.sampled_from([1, 12, 90]),
        white_space=st.sampled_from(["keep", "collapse"]),
        deduplicate=st.sampled_from([None, True, False]),
        same_text=st.sampled_from(["normalised", "lowercase"]),
        jaccard_threshold=st.sampled_from([None, 0.5, 1.0]),
        protect_differences=st.booleans(),
        fill=st.sampled_from(list(pt.FILLS)),
        overflow=st.sampled_from(["skip", "truncate"]),
        order=st.sampled_from(list(pt.ORDERINGS)),
        separator=st.sampled_from([None, "\n\n", "\n", " ", "", " / "]),
        detect_conflicts=st.just(False),
    )


def assert_within_budgets(prepared, config, qid):
    """Check what no setting may break: budgets, and a text in place of every promise."""
    packed = prepared.evaluate(config)
    one = packed.context(qid)
    measure = len if config.unit == "chars" else prepared.counter.count
    if config.budget is not None:
        assert one.n_used <= config.budget
    if config.separator is not None:
        assert one.n_used == measure(one.text)
    if config.passage_budget is not None:
        assert all(measure(text) <= config.passage_budget for text in one.passages)
    answers = prepared.run.answers[qid]
    if any(pt.find_answer(c.text, answers) >= 0 for c in prepared.run.chunks(qid)):
        kept = any(pt.find_answer(text, answers) >= 0 for text in one.passages)
        assert packed.per_query.at[qid, "answer_retention"] == kept


def run_of(table):
    rows = [
        (f"q{q}", f"d{d}", rank, 1.0 / rank) for q, docs in enumerate(table) for rank, d in enumerate(docs, 1)
    ]
    qids = [f"q{q}" for q in range(len(table))]
    return pt.Run.from_frames(
        pd.DataFrame(rows, columns=["qid", "docid", "rank", "score"]),
        {f"d{i}": text for i, text in enumerate(SNIPPETS)},
        queries={q: QUERIES[i % len(QUERIES)] for i, q in enumerate(qids)},
        answers={q: ["6,093", "safe", "大阪", "eta"] for q in qids},
    )


TABLES = st.lists(
    st.lists(st.integers(0, len(SNIPPETS) - 1), min_size=1, max_size=12, unique=True), min_size=1, max_size=4
)


@settings(max_examples=400, deadline=None)
@given(table=TABLES, config=configs(st.integers(1, 120)))
def test_awkward_texts_under_any_setting(table, config):
    prepared = pt.prepare(run_of(table))
    assert_same(prepared, config, prepared.qids)
    for qid in prepared.qids:
        assert_within_budgets(prepared, config, qid)


@settings(max_examples=80, deadline=None)
@given(table=TABLES, config=configs(st.integers(1, 60)))
def test_awkward_texts_with_a_counter_that_promises_nothing(table, config):
    prepared = pt.prepare(run_of(table), counter=Words())
    assert_same(prepared, config, prepared.qids)


@pytest.fixture(scope="module")
def sample():
    return pt.prepare(pt.load_sample(), splitters=["prose", "simple"])


@settings(max_examples=120, deadline=None)
@given(config=configs(st.integers(20, 1500)), data=st.data())
def test_the_sample_under_any_setting(sample, config, data):
    qids = data.draw(st.lists(st.sampled_from(sample.qids), min_size=1, max_size=3))
    assert_same(sample, config, qids)
    for qid in qids:
        assert_within_budgets(sample, config, qid)


@pytest.mark.parametrize("name", ["nq-open-20_total_documents_gold_at_0.jsonl.gz"])
def test_real_questions_under_the_published_settings(real, name):
    prepared = pt.prepare(real / "nq_multidoc" / name, min_jaccard=0.9)
    for config in (
        pt.PackerConfig.characters(900, 320),
        pt.PackerConfig.characters(2000, None, ordering="shorter_first"),
        pt.PackerConfig(budget=400, passage_budget=60, sentence_selection="tfidf", separator="\n\n"),
        pt.PackerConfig(budget=400, passage_budget=60, sentence_selection="mmr", overflow="truncate"),
    ):
        assert_same(prepared, config.replace(detect_conflicts=False), prepared.qids[::60])
