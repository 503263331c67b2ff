"""The recorded behaviour of the character packer, case by case."""

from __future__ import annotations

import pytest
from conftest import ROOT, vectors
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt

CASES = vectors("char_packer.jsonl")
needs_cases = pytest.mark.skipif(
    not CASES, reason="../shared/vectors is not here: the recorded cases lie beside the project"
)


def packed(case):
    given = case["input"]
    config = pt.ContextPackingConfig.from_mapping(given["config"])
    return pt.pack_context(
        query=given["query"], doc_ids=given["doc_ids"], passages=given["passages"], config=config
    )


@needs_cases
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_pack_context_gives_the_recorded_outcome(case):
    expected = case["expected"]
    if "error" in expected:
        with pytest.raises(pt.PackerError):
            packed(case)
        return
    found = packed(case)
    pt.verify_spans(found.packed)
    given = found.to_dict()
    assert list(found.passages) == expected["passages"]
    assert found.context == " ".join(expected["passages"])
    assert given["compression_ratio"] == pytest.approx(expected["compression_ratio"], abs=1e-9)
    for name in ("retained_doc_ids", "dropped_doc_ids", "original_context_chars", "packed_context_chars"):
        assert given[name] == expected[name]
    assert given["spans"] == expected["spans"]


@pytest.fixture(scope="module")
def whole_run():
    """All recorded cases as the queries of one run: an id is its case and its place."""
    import pandas as pd

    cases = [c for c in CASES if "error" not in c["expected"] and c["input"]["passages"]]
    rows, texts, queries = [], {}, {}
    for case in cases:
        queries[case["name"]] = case["input"]["query"]
        for rank, text in enumerate(case["input"]["passages"], 1):
            docid = f"{case['name']}/{rank}"
            rows.append((case["name"], docid, rank))
            texts[docid] = text or ""
    frame = pd.DataFrame(rows, columns=["qid", "docid", "rank"])
    run = pt.Run.from_frames(frame, texts, queries=queries)
    return pt.prepare(run, counter="chars"), cases


@needs_cases
def test_evaluate_gives_the_recorded_outcome_on_a_run_made_of_all_cases(whole_run):
    prepared, cases = whole_run
    settings = {}
    for case in cases:
        config = pt.ContextPackingConfig.from_mapping(case["input"]["config"]).to_packer_config()
        settings.setdefault(config, []).append(case)
    assert len(settings) > 30
    for config, mine in settings.items():
        packed = prepared.evaluate(config)
        decisions = dict(list(packed.decisions.groupby("qid", observed=True)))
        for case in mine:
            expected, name = case["expected"], case["name"]
            ranks = [span["source_rank"] for span in expected["spans"]]
            assert packed.kept(name) == [f"{name}/{rank}" for rank in ranks], (name, config)
            row = packed.per_query.loc[name]
            assert row["n_chars"] == expected["packed_context_chars"]
            if expected["original_context_chars"]:
                assert row["compression_ratio"] == pytest.approx(expected["compression_ratio"], abs=1e-9)
            sizes = dict(zip(decisions[name]["rank"], decisions[name]["n_chars"], strict=True))
            assert [sizes[rank] for rank in ranks] == [s["selected_char_count"] for s in expected["spans"]]
            assert packed.context(name).passages == tuple(expected["passages"])


WORDS = st.sampled_from(
    ["alpha", "Beta", "gamma.", "delta!", "eta?", "THETA", "3.5", "x", "中文。", "\ufffd", "\u00a0", "  ", "\n", "é.",
     "T\u0308a", "t\u0308a", "\U0001f9e0", "İ", "a-b", "No. 5"]
)  # fmt: skip
TEXTS = st.lists(WORDS, max_size=14).map(" ".join)


@settings(max_examples=400, deadline=None)
@given(
    query=TEXTS,
    passages=st.lists(
        st.one_of(TEXTS, st.sampled_from(["", "alpha beta. Gamma delta!", "Alpha Beta. gamma delta!"])),
        max_size=6,
    ),
    most=st.integers(1, 90),
    each=st.integers(1, 60),
)
def test_pack_context_equals_a_plain_packer_of_the_same_rules(query, passages, most, each):
    """The oracle is the loop that the benchmarks race against, written from the rules alone."""
    import sys

    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from plain_packer import pack
    finally:
        sys.path.pop(0)
    config = pt.ContextPackingConfig(enabled=True, max_context_chars=most, max_passage_chars=each)
    ids = list(range(len(passages)))
    found = pt.pack_context(query=query, doc_ids=ids, passages=passages, config=config)
    assert list(found.passages) == pack(query, passages, most, each)
    pt.verify_spans(found.packed)
