"""Costs of token counts under a price: hand sums, steps, what is unknown, what is refused."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

import packtools as pt
from packtools.errors import SettingError
from packtools.money import KINDS, Price, cost_usd

# USD per million tokens; no rate is a sum or a multiple of others by chance, so a mixed-up class shows.
SMALL = Price("small", 3, cached_input=0.3, cache_write=3.75, output=15)
P11 = {"n_tokens": 620, "cached": 500, "cache_write": 20, "output": 50}  # 100 plain + 500 + 20
LACKS = "price 'small' (own) has no rate of {}: the cost of 1 of 1 requests is unknown"


def dollars(price, **counts):
    return float(price.cost(**counts))


def table(**n_tokens):
    return pd.DataFrame({"n_tokens": list(n_tokens.values())}, index=pd.Index(list(n_tokens), name="qid"))


# -- classes


def test_each_class_has_its_own_price():
    # P11: 100 x 3 + 500 x 0.3 + 20 x 3.75 + 50 x 15 = 300 + 150 + 75 + 750 millionths
    assert dollars(SMALL, **P11) == pytest.approx(1275e-6, rel=1e-12)
    assert SMALL.unknown(**P11) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_rate_is_unknown_and_said_and_never_0(kind):
    lacking = replace(SMALL, **{kind: None})
    assert np.isnan(dollars(lacking, **P11))
    assert lacking.unknown(**P11) == LACKS.format(kind)
    free = replace(SMALL, **{kind: 0})
    assert dollars(free, **P11) < 1275e-6
    assert free.unknown(**P11) == ""


def test_every_missing_rate_is_named():
    lacking = Price("small", 3)
    assert lacking.unknown(**P11) == LACKS.format("cached_input and cache_write and output")


def test_a_rate_that_no_token_needs_may_be_missing():
    assert Price("small", 3).cost([100, 200]).tolist() == pytest.approx([300e-6, 600e-6])
    assert dollars(Price("small", None, cached_input=2), n_tokens=10, cached=10) == pytest.approx(20e-6)
    assert dollars(Price("small", None), n_tokens=0) == 0


def test_a_free_model_costs_0():
    free = Price("local", 0, cached_input=0, cache_write=0, output=0)
    assert dollars(free, **P11) == 0


def test_only_the_requests_that_need_the_rate_are_unknown():
    lacking = Price("small", 3, output=15)
    cost = lacking.cost([10, 10, 10], cached=[0, 4, 0], output=1)
    assert np.isnan(cost).tolist() == [False, True, False]
    assert cost[[0, 2]] == pytest.approx([45e-6, 45e-6])
    assert "1 of 3 requests" in lacking.unknown([10, 10, 10], cached=[0, 4, 0], output=1)


def test_arrays_give_what_one_request_at_a_time_gives():
    rng = np.random.default_rng(0)
    stepped = replace(SMALL, input=[(0, 3), (50, 5), (80, 9)], output=[(0, 15), (60, 20)])
    n = rng.integers(0, 100, 200)
    cached = rng.integers(0, n + 1)
    written = rng.integers(0, n - cached + 1)
    out = rng.integers(0, 9, 200)
    each = [
        dollars(stepped, n_tokens=a, cached=b, cache_write=c, output=d)
        for a, b, c, d in zip(n, cached, written, out, strict=True)
    ]
    assert stepped.cost(n, cached=cached, cache_write=written, output=out).tolist() == each


def test_shapes_go_together_and_no_request_is_no_cost():
    assert SMALL.cost(np.full((3, 1), 9), output=np.array([1, 2])).shape == (3, 2)
    assert SMALL.cost([]).shape == (0,)
    assert SMALL.cost(9).dtype == np.float64


# -- steps


def test_above_a_step_all_tokens_pay_its_rate():
    # Gemini 2.5 Pro as published: 1.25 and 10 up to 200,000 tokens of prompt, 2.50 and 15 above.
    price = Price("gemini", [(0, 1.25), (200_000, 2.5)], output=[(0, 10), (200_000, 15)])
    cost = price.cost([200_000, 200_001, 300_000], output=1_000)
    assert cost == pytest.approx([0.25 + 0.010, 0.5000025 + 0.015, 0.75 + 0.015], rel=1e-12)


def test_the_step_goes_by_all_input_tokens_cached_ones_too():
    price = Price("steps", [(0, 1), (100, 2)], cached_input=[(0, 0.1), (100, 0.2)])
    assert price.cost(100, cached=90) == pytest.approx(10e-6 + 9e-6)
    assert price.cost(101, cached=91) == pytest.approx(20e-6 + 18.2e-6)


def test_an_answer_without_input_pays_the_first_step():
    assert dollars(Price("steps", 1, output=[(0, 4), (10, 8)]), n_tokens=0, output=1_000_000) == 4


# -- per query


def test_cost_usd_adds_the_fixed_part_and_pairs_by_qid():
    per_query = table(q1=1_000, q2=0, q3=50)
    shuffled = ["q3", "q1", "other", "q2"]
    got = cost_usd(
        per_query,
        SMALL,
        fixed=pd.Series([5, 100, 9, 10], index=shuffled),
        cached=pd.Series([0, 500, 9, 4], index=shuffled),
        cache_write=20 * (per_query["n_tokens"] == 1_000),
        output=50,
    )
    # q1: 580 plain + 500 cached + 20 written; q2: 6 plain + 4 cached; q3: 55 plain
    by_hand = [580 * 3 + 500 * 0.3 + 20 * 3.75 + 750, 18 + 1.2 + 750, 165 + 750]
    assert got.to_numpy() == pytest.approx(np.array(by_hand) / 1e6, rel=1e-12)
    assert (got.name, got.index.name, list(got.index)) == ("cost_usd", "qid", ["q1", "q2", "q3"])
    assert got.dtype == np.float64


def test_cost_usd_warns_of_what_it_can_not_price():
    words = (
        "cost_usd: price 'small' (own) has no rate of cached_input: the cost of 1 of 2 queries is unknown. "
        "Add it: dataclasses.replace(price, …=USD per million tokens)."
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(words)}$"):
        got = cost_usd(table(a=10, b=20), Price("small", 3), cached=pd.Series({"a": 0, "b": 1}))
    assert got["a"] == pytest.approx(30e-6)
    assert np.isnan(got["b"])


def test_cost_usd_of_no_query_is_empty():
    assert cost_usd(table(), SMALL, fixed=3).tolist() == []


def test_cost_usd_of_a_packed_run_goes_by_its_tokens():
    frame = pd.DataFrame(
        {"qid": ["a", "a", "b"], "docid": ["1", "2", "2"], "rank": [1, 2, 1], "score": [2.0, 1.0, 1.0]}
    )
    run = pt.Run.from_frames(frame, {"1": "x" * 10, "2": "y" * 90})
    packed = pt.prepare(run, counter="chars").evaluate(pt.PackerConfig(separator="\n\n"))
    # "chars" counts a character as a token: 10 + 2 + 90, and 90, at a dollar each.
    assert cost_usd(packed.per_query, Price("unit", 1e6)).to_dict() == {"a": 102, "b": 90}


# -- what is refused


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"n_tokens": -1}, "'n_tokens' must be whole numbers of tokens, 0 or more; got -1."),
        ({"n_tokens": [3, 2.5]}, "'n_tokens' must be whole numbers of tokens, 0 or more; got 2.5."),
        ({"n_tokens": [1.0, np.nan]}, "'n_tokens' must be whole numbers of tokens, 0 or more; got nan."),
        ({"n_tokens": 9, "output": np.inf}, "'output' must be whole numbers of tokens, 0 or more; got inf."),
        ({"n_tokens": "9"}, "'n_tokens' must be whole numbers of tokens, 0 or more; got '9'."),
        ({"n_tokens": True}, "'n_tokens' must be whole numbers of tokens, 0 or more; got True."),
        (
            {"n_tokens": [9, 1_000], "cached": [0, 900], "cache_write": [0, 101]},
            "'cached' and 'cache_write' are parts of the input and must not be more than it; got 900 + 101 of "
            "1,000 tokens.",
        ),
        (
            {"n_tokens": [1, 2], "output": [1, 2, 3]},
            "the counts must have one shape, or be one number; got n_tokens (2,), cached (), cache_write (), "
            "output (3,).",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_bad_counts_are_refused(counts, words):
    with pytest.raises(SettingError) as caught:
        SMALL.cost(**counts)
    assert str(caught.value) == f"Price.cost: {words}"


RULE = "must be US dollars per million tokens, 0 or more, or rising steps of them from 0 on"


@pytest.mark.parametrize(
    "rate",
    [-1, np.nan, np.inf, "3", True, [], [3], [(5, 1.0)], [(0, 1.0), (9, -2)], [(0, 1), (9, 2), (9, 3)],
     [(0, 1), (1.5, 2)], [(0, 1, 2)], {0: 1}],
    ids=repr,
)  # fmt: skip
def test_bad_rates_are_refused(rate):
    for kind in KINDS:
        with pytest.raises(SettingError, match=f"^Price: '{kind}' {RULE}; got .*Write 3.0, or"):
            Price("x", **{"input": 1, kind: rate})


def test_a_price_is_checked_frozen_and_comparable():
    assert Price("x", [[0, 1], [9, 2]]) == Price("x", ((0, 1.0), (9, 2.0)))
    assert len({Price("x", np.float64(1)), Price("x", 1)}) == 1
    assert Price("x", 1, date=date(2025, 6, 10)).date == "2025-06-10"
    with pytest.raises(FrozenInstanceError):
        SMALL.input = 1
    with pytest.raises(
        SettingError, match="^Price: 'date' must be a day, as in '2025-06-10', or None; got 'June'"
    ):
        Price("x", 1, date="June")
    with pytest.raises(SettingError, match="^Price: 'name' must be a string; got 3"):
        Price(3, 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"per_query": pd.DataFrame({"n": [1]})}, "'per_query' must be a table with a column n_tokens; got ['n']. Pass packed.per_query."),
        ({"per_query": [10]}, "'per_query' must be a table with a column n_tokens; got [10]. Pass packed.per_query."),
        ({"price": "gpt-4o"}, "'price' must be a Price; got 'gpt-4o'. Write price_of(model) or Price(name, input=…)."),
        ({"fixed": [1, 2]}, "'fixed' must be one number of tokens, or a Series by qid; got [1, 2]. A list has no qids to pair it by."),
        ({"output": -5}, "'output' must be whole numbers of tokens, 0 or more; got -5."),
        ({"cached": pd.Series({"a": 1})}, "'cached' must hold every query of the table; 1 of 2 are missing, as 'b'. Give a Series with the same ids, or one number."),
        ({"cached": pd.Series([1, 2, 3], index=["a", "b", "a"])}, "'cached' must be a Series with one value a query; got 'a'. It stands there twice."),
        ({"cached": 11}, "'cached' and 'cache_write' are parts of the input and must not be more than it; got 11 + 0 of 10 tokens."),
    ],
)  # fmt: skip
def test_cost_usd_refuses_in_words(change, words):
    with pytest.raises(SettingError) as caught:
        cost_usd(**{"per_query": table(a=10, b=20), "price": SMALL, **change})
    assert str(caught.value) == f"cost_usd: {words}"
