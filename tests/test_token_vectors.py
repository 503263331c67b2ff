"""The recorded behaviour of the published token packer, case by case."""

from __future__ import annotations

from fractions import Fraction

import pytest
from conftest import vectors

import packtools as pt
from packtools.text import shingles

CASES = vectors("token_packer.jsonl")


def cases(kind: str) -> list:
    rows = [pytest.param(c, id=c["name"]) for c in CASES if c["kind"] == kind]
    absent = pytest.mark.skip(reason="../shared/vectors is not here")
    return rows or [pytest.param({}, id="absent", marks=absent)]


class Words:
    """The counter wired into the recorded cases: words split at white space."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


@pytest.mark.parametrize("case", cases("order"))
def test_orderings_give_the_recorded_order(case):
    for name, expected in case["expected"].items():
        assert pt.ORDERINGS[name].function(case["input"]["items"]) == expected


@pytest.mark.parametrize("case", cases("hash_dedup"))
def test_hash_dedup_keeps_the_recorded_places(case):
    texts = case["input"]["texts"]
    assert [pt.normalise(t) for t in texts] == case["expected"]["normalised"]
    kept = pt.hash_dedup([pt.Chunk(str(i), t) for i, t in enumerate(texts)])
    assert [int(c.id) for c in kept] == case["expected"]["kept"]


@pytest.mark.parametrize("case", cases("jaccard"))
def test_jaccard_gives_the_recorded_fraction(case):
    a, b = case["input"]["text_a"], case["input"]["text_b"]
    expected = case["expected"]
    # The record counts an empty text as one empty shingle; here it has none, so that two texts of
    # bare punctuation are never near-duplicates. The fraction is the same.
    sizes = [max(1, n) for n in shingles([a, b]).size.tolist()]
    assert sizes == [expected["shingles_a"], expected["shingles_b"]]
    assert pt.jaccard(a, b) == pytest.approx(float(Fraction(expected["jaccard"])), abs=1e-12)
    for threshold, near in expected["near_duplicate"].items():
        kept = pt.jaccard_dedup([pt.Chunk("a", a), pt.Chunk("b", b)], float(threshold))
        assert (len(kept) == 1) == near


@pytest.mark.parametrize("protect", [True, False])
@pytest.mark.parametrize("case", cases("pack"))
def test_pack_gives_the_recorded_pack(case, protect):
    given, expected = case["input"], case["expected"]
    config = pt.PackerConfig(
        order=given["order"], jaccard_threshold=given["jaccard_threshold"], protect_differences=protect
    )
    packer = pt.ContextPacker(config=config, token_counter=Words())
    chunks = [
        pt.Chunk(
            c["id"],
            c["content"] or "",
            c["score"],
            token_count=c["token_count"],
            content_ref=c.get("content_ref"),
            tenant_id=c.get("tenant_id"),
        )
        for c in given["chunks"]
    ]
    ctx = pt.RequestContext(tenant_id=given["tenant_id"])
    if "error" in expected:
        with pytest.raises(pt.PackerError):
            packer.pack_sync(ctx, chunks, budget=given["budget"])
        return
    packed = packer.pack_sync(ctx, chunks, budget=given["budget"])
    assert [c.id for c in packed.chunks] == expected["order"]
    assert packed.tokens_used == expected["tokens_used"]
    assert list(packed.dropped_dedup) == expected["dropped_dedup"]
    assert list(packed.dropped_budget) == expected["dropped_budget"]
