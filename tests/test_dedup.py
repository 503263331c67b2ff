"""Near-duplicate pairs against brute force, and the rules of the two primitives."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt
from packtools import dedup
from packtools.text import shingles


def naive(text: str) -> set:
    """Word 5-shingles as tuples; a shorter text is one."""
    words = pt.normalise(text).split()
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)} or ({tuple(words)} if words else set())


def brute(texts: list[str], floor: float) -> dict:
    sets = [naive(t) for t in texts]
    out = {}
    for a, b in combinations(range(len(texts)), 2):
        union = sets[a] | sets[b]
        if union and len(sets[a] & sets[b]) / len(union) >= floor:
            out[a, b] = len(sets[a] & sets[b]) / len(union)
    return out


def as_dict(pairs: dedup.Pairs) -> dict:
    return dict(
        zip(
            zip(pairs.first.tolist(), pairs.second.tolist(), strict=True), pairs.jaccard.tolist(), strict=True
        )
    )


TEXTS = st.lists(st.lists(st.sampled_from("abc"), max_size=14).map(" ".join), max_size=25)


@pytest.mark.parametrize("light", [64, 3, 1])
@settings(max_examples=80, deadline=None)
@given(texts=TEXTS, floor=st.sampled_from([0.2, 0.5, 0.8, 0.85, 1.0]))
def test_pairs_against_brute_force(light, texts, floor):
    before, dedup.LIGHT = dedup.LIGHT, light
    try:
        assert as_dict(dedup.similar_pairs(shingles(texts), floor)) == brute(texts, floor)
    finally:
        dedup.LIGHT = before


@settings(max_examples=80, deadline=None)
@given(texts=TEXTS.filter(lambda t: len(t) > 3), data=st.data())
def test_frequent_shingles_still_give_every_pair_that_a_query_has_together(texts, data):
    before, dedup.LIGHT = dedup.LIGHT, 1
    try:
        place = st.integers(0, len(texts) - 1)
        queries = data.draw(st.lists(st.sets(place, min_size=1, max_size=6), min_size=1, max_size=5))
        query = np.array([q for q, docs in enumerate(queries) for _ in docs])
        text = np.array([d for docs in queries for d in sorted(docs)])
        found = as_dict(dedup.similar_pairs(shingles(texts), 0.5, (query, text)))
        expected = brute(texts, 0.5)
        assert found.items() <= expected.items()
        together = {p for docs in queries for p in combinations(sorted(docs), 2)}
        assert {p for p in expected if p in together} <= set(found)
    finally:
        dedup.LIGHT = before


def test_large_work_is_done_in_steps(monkeypatch):
    texts = [" ".join(f"w{(i * 7 + j) % 23}" for j in range(20)) for i in range(60)]
    monkeypatch.setattr(dedup, "STEP", 50)
    monkeypatch.setattr(dedup, "LIGHT", 4)
    assert as_dict(dedup.similar_pairs(shingles(texts), 0.3)) == brute(texts, 0.3)


def test_the_better_ranked_of_a_pair_stays():
    words = [f"w{i}" for i in range(24)]
    a, near, other = " ".join(words), " ".join([*words[:-1], "changed"]), "quite another text"
    chunks = [pt.Chunk("A", a), pt.Chunk("A2", near), pt.Chunk("B", other)]  # P38
    assert [c.id for c in pt.jaccard_dedup(chunks, 0.85)] == ["A", "B"]


def test_a_pair_exactly_at_the_threshold_is_a_duplicate():
    a = " ".join(f"w{i}" for i in range(8))
    b = a + " w8"  # 4 of 5 shingles: 0.8
    chunks = [pt.Chunk("a", a), pt.Chunk("b", b)]
    assert len(pt.jaccard_dedup(chunks, 0.80)) == 1  # P47
    assert len(pt.jaccard_dedup(chunks, 0.81)) == 2


def test_all_alike_and_all_unlike():
    alike = [pt.Chunk(str(i), "one two three four five six") for i in range(3)]
    unlike = [pt.Chunk(str(i), f"text number {i} of its own kind {i}") for i in range(3)]
    assert [c.id for c in pt.jaccard_dedup(alike, 0.85)] == ["0"]  # P49
    assert [c.id for c in pt.jaccard_dedup(unlike, 0.85)] == ["0", "1", "2"]
    assert pt.jaccard_dedup([], 0.85) == []


def test_texts_of_bare_punctuation_are_no_near_duplicates():
    chunks = [pt.Chunk(str(i), t) for i, t in enumerate(["", "...", "!!!", "abc"])]  # P40
    assert [c.id for c in pt.jaccard_dedup(chunks, 0.5)] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("threshold", [0, 1.1, -0.5, "high", None, True, float("nan")])
def test_a_threshold_out_of_its_rule_is_one_clear_error(threshold):
    with pytest.raises(pt.PackerError, match="jaccard_dedup: 'threshold' must be above 0 and at most 1; got"):
        pt.jaccard_dedup([], threshold)


def test_a_slider_moved_back_gives_the_same_result():
    # P50: results depend only on the value of the slider.
    prepared = pt.prepare(pt.load_sample(), counter="chars")
    config = pt.PackerConfig(jaccard_threshold=0.85, separator="\n\n")
    first = prepared.evaluate(config).decisions
    prepared.evaluate(config.replace(jaccard_threshold=1.0))
    assert prepared.evaluate(config).decisions.equals(first)


def test_short_texts_of_two_scripts_are_no_duplicates():
    # One-unit shingles of both widths, over word numbers whose bits once cancelled out.
    chunks = [pt.Chunk(f"w{i}", f"w{i}") for i in range(40)] + [pt.Chunk("c", "口")]
    assert len(pt.jaccard_dedup(chunks, 0.9)) == 41
