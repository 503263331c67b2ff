"""Pairing by query id, and averaging of repetitions."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest

import packtools as pt
from packtools import stats
from packtools.pairing import average_repetitions, pair_by_id
from packtools.significance import permutation_test


def test_repetitions_are_averaged_inside_a_query_first():
    # q1 was run three times, q2 once: each counts once.
    found = average_repetitions(["q2", "q1", "q1", "q1"], [1.0, 0.0, 0.0, 0.3])
    assert found.index.tolist() == ["q2", "q1"]
    assert found.tolist() == pytest.approx([1.0, 0.1])
    assert found.mean() == pytest.approx(0.55)
    assert found.index.name == "qid"


def test_repetitions_that_are_not_scored_do_not_count():
    found = average_repetitions(["a", "a", "b"], [1.0, None, np.nan])
    assert found["a"] == 1
    assert math.isnan(found["b"])
    assert average_repetitions([], []).empty


def test_repetitions_are_checked():
    with pytest.raises(pt.SettingError) as caught:
        average_repetitions([7, 8], [1, 2])
    assert str(caught.value) == (
        "average_repetitions: 'qids' must be query ids, each a string; got 7. Read ids as text: \"007\" is not 7."
    )
    with pytest.raises(pt.SettingError, match=r"'values' must be of shape \(1,\); got \(2,\)"):
        average_repetitions(["q"], [1, 2])


def test_shuffled_rows_change_nothing():
    a = pd.Series(np.random.default_rng(0).random(30), index=[f"q{i}" for i in range(30)])
    pairs = pair_by_id(a, a[::-1])
    delta = stats.paired_bootstrap(pairs.a, pairs.b)
    assert (delta.delta, delta.low, delta.high) == (0, 0, 0)
    assert permutation_test(pairs.a, pairs.b).p_value == 1
    assert pairs.ids == tuple(a.index)


def test_queries_of_one_side_are_counted_and_both_rules_are_there():
    a = pd.Series({"q1": 1.0, "q3": 1.0, "q2": 0.0})
    b = pd.Series({"q2": 1.0, "q9": 1.0, "q1": 1.0, "q8": 0.5})
    inner = pair_by_id(a, b)
    assert (inner.ids, inner.a.tolist(), inner.b.tolist()) == (("q1", "q2"), [1, 0], [1, 1])
    assert (inner.only_a, inner.only_b, inner.rule, inner.n) == (1, 2, "intersection", 2)
    union = pair_by_id(a, b, fill=0)
    assert union.ids == ("q1", "q3", "q2", "q9", "q8")
    assert (union.a.tolist(), union.b.tolist()) == ([1, 1, 0, 0, 0], [1, 0, 1, 1, 0.5])
    assert (union.only_a, union.only_b, union.rule, union.n) == (1, 2, "union, 0.0 where missing", 5)


def test_pairs_keep_missing_values_and_ids_as_they_are():
    pairs = pair_by_id(
        pd.Series({"007": np.nan, "NA": 1.0, "7": 2.0}), pd.Series({"7": 3.0, "007": 1.0, "NA": 4.0})
    )
    assert pairs.ids == ("007", "NA", "7")
    assert pairs.b.tolist() == [1, 4, 3]
    assert math.isnan(pairs.a[0])
    assert (pairs.n, pairs.testable) == (2, True)
    empty = pair_by_id(pd.Series({"x": 1.0}), pd.Series({"y": 1.0}))
    assert (empty.ids, len(empty.a), empty.n, empty.testable) == ((), 0, 0, False)
    assert pair_by_id(average_repetitions([], []), average_repetitions([], [])).ids == ()


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (
            pd.Series([1.0, 2.0, 3.0], index=["q1", "q2", "q1"]),
            "pair_by_id: 'b' must be indexed by ids that occur once; got 'q1'. "
            "Average its repetitions first: average_repetitions.",
        ),
        (
            pd.Series([1.0]),  # the default index is a position
            "pair_by_id: 'b' must be query ids, each a string; got 0. Read ids as text: \"007\" is not 7.",
        ),
        ([1.0, 2.0], "pair_by_id: 'b' must be a Series with query ids as index; got [1.0, 2.0]."),
        (pd.Series({"q1": np.inf}), "pair_by_id: 'b' must be finite or NaN (not scored); got inf."),
    ],
)
def test_pairing_is_checked(series, message):
    with pytest.raises(pt.SettingError) as caught:
        pair_by_id(pd.Series({"q1": 1.0}), series)
    assert str(caught.value) == message


def test_pairs_are_frozen():
    pairs = pair_by_id(pd.Series({"q": 1.0}), pd.Series({"q": 1.0}))
    assert not pairs.testable
    with pytest.raises(FrozenInstanceError):
        pairs.n = 5
