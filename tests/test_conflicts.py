"""The first, cautious reading of conflicts: a flag shows both quotes and values, or is not raised."""

from __future__ import annotations

import pytest

import packtools as pt


def found(a: str, b: str, trust: str = "trusted") -> list[pt.ConflictAnnotation]:
    return pt.detect_conflicts([pt.Chunk("a", a), pt.Chunk("b", b, trust=trust)])


def test_a_number_that_differs_in_the_same_claim_is_flagged_with_quotes_and_values():
    a = "Built in 1931. The dam is 221 metres high and made of concrete."
    b = "The dam is 223 metres high and made of concrete. It is old."
    (flag,) = found(a, b)
    assert (flag.kind, flag.value_a, flag.value_b) == ("numeric_disagreement", "221", "223")
    assert flag.quote_a in a
    assert flag.quote_b in b
    assert flag.quote_a == "The dam is 221 metres high and made of concrete."


@pytest.mark.parametrize(
    ("a", "b"),
    [
        # P136, and their kin
        ("In 2021 revenue was 5M dollars in all.", "In 2022 revenue was 6M dollars in all."),
        ("The road is 5 km long in total.", "The road is 5,000 m long in total."),
        ("The share is about 40 % of the whole.", "The share is 40.2 % of the whole."),
        ("The hall was opened to all in 1931.", "The hall was opened to all in 1932."),
        ("The peak is 8,848.86 m above the sea.", "The peak is 8,849 m above the sea."),
        ("The lake holds 23,600 cubic km of water.", "The lake holds nearly 23,000 cubic km of water."),
        ("The tower is 300 metres high today.", "A bridge has 12 piers and 4 lanes."),
        ("The tower is 300 metres high.", "The tower is 300 metres high."),
    ],
)
def test_years_units_rounding_and_other_claims_are_not_flagged(a, b):
    assert found(a, b) == []


def test_the_same_claim_under_another_trust_label_is_flagged():
    claim = "The valve must stay closed during the test."
    (flag,) = found(claim, claim, trust="untrusted")
    assert (flag.kind, flag.value_a, flag.value_b) == ("trust_mismatch", "trusted", "untrusted")
    assert found(claim, "Quite another matter is the colour of the door.", trust="untrusted") == []


def test_no_chunks_and_short_texts_give_no_flags():
    assert pt.detect_conflicts([]) == []
    assert found("5", "6") == []


def test_the_sample_holds_the_contradictions_that_were_written_into_it():
    prepared = pt.prepare(pt.load_sample(), counter="chars")
    context = prepared.evaluate(pt.PackerConfig(budget=None)).context("space-q2")
    flags = {frozenset((c.docid_a, c.docid_b)): {c.value_a, c.value_b} for c in context.conflicts}
    assert flags[frozenset(("space-02", "space-42"))] == {"146", "274"}
