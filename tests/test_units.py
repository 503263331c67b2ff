"""Every column of every table says its unit, in its name or in METRICS, and a recount agrees."""

from __future__ import annotations

import re

import pytest

import packtools as pt
from packtools.packed_plain import REPORTED

NO_UNIT = {
    "qid", "docid", "query", "kind", "lost", "decision", "of", "unit", "setting",  # words
    "rank", "budget", "passage_budget",  # as in the run, and as in the setting
    "score", "similarity",  # of the retriever; a Jaccard
    "p_value", "p_holm",  # chances
    "baseline", "candidate", "delta", "ci_low", "ci_high",  # in the column "unit" of the same row
    "at_most",  # in the unit of the metric beside it
    "mean", "median", "total",  # the same
    "best", "kept", "room", "lost_to_budget", "lost_to_selection", "lost_to_dedup", "lost_to_fill",  # shares
    "order", "on_front", "passes", "front_share", "saving",  # words, flags, shares
}  # fmt: skip
COUNTED = re.compile(r"(?:n|N)(?:_(?:tokens|chars|chunks|queries))?|wins|ties|losses|over_by")
PARTS = re.compile(r"_(?:baseline|candidate|delta|ci_low|ci_high|p_value|p_holm|n|whole)$")


def is_told(column: str) -> bool:
    """Whether a column's name says what it counts."""
    bare = PARTS.sub("", column)
    known = {**pt.METRICS, **pt.DERIVED, **REPORTED}
    return column in NO_UNIT or bare in known or bool(COUNTED.fullmatch(bare)) or bare in NO_UNIT


@pytest.fixture(scope="module")
def sides():
    prepared = pt.prepare(pt.load_sample(), splitters=["prose"])
    config = pt.PackerConfig(
        budget=500, separator="\n\n", passage_budget=60, sentence_selection="tfidf", overflow="truncate"
    )
    return prepared, prepared.evaluate(pt.unpacked(config)), prepared.evaluate(config)


def test_every_column_has_a_unit(sides):
    prepared, full, tight = sides
    compared = pt.compare(full, tight)
    view = pt.ExplorerModel(prepared).view()
    swept = pt.sweep(prepared, budget=[250, 500], order=["descending", "ascending"])
    swept = swept.with_metric("cost_usd", lambda t: pt.cost_usd(t, pt.Price("mine", 2.5)))
    swept = swept.with_metric("expected_quality", pt.expected_quality)
    tables = [
        tight.per_query, tight.summary, tight.decisions, tight.lost, compared.table, compared.per_query,
        pt.delta_table(full, tight), pt.trade_off(prepared, full.config, [500]),
        pt.trade_off(prepared, full.config, [50], vary="passage_budget"), view.per_query, view.table, view.curve,
        swept.table, swept.pareto(), swept.recommend().table, swept.per_query(), pt.shared_prefix(tight).to_frame(),
        pt.headroom(prepared, full.config, [500]), pt.headroom_per_query(prepared, full.config, 500),
    ]  # fmt: skip
    for table in tables:
        assert [c for c in table.columns if not is_told(str(c))] == []


def test_a_name_without_a_unit_would_be_found():
    assert not is_told("length")
    assert not is_told("saved")


def test_the_counts_are_those_of_the_packed_texts(sides):
    prepared, full, tight = sides
    for packed in (full, tight):
        for qid in prepared.qids[::9]:
            text, chunks = packed.context(qid).text, packed.context(qid).chunks
            row = packed.per_query.loc[qid]
            assert row["n_tokens"] == prepared.counter.count(text)
            assert (row["n_chars"], row["n_chunks"]) == (len(text), len(chunks))


def test_the_units_of_a_comparison_are_those_of_its_metrics(sides):
    _, full, tight = sides
    table = pt.compare(full, tight).table
    assert table["unit"].to_dict() == {name: pt.METRICS[name].unit for name in table.index}
    assert table.loc["n_tokens", "delta"] == pytest.approx(
        (tight.per_query["n_tokens"].sum() - full.per_query["n_tokens"].sum()) / len(full.per_query)
    )
