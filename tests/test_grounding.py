"""Grounding: the recorded values, a plain second implementation, and values worked out by hand."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from packtools.errors import SettingError
from packtools.grounding import (
    PassageWords,
    content_tokens,
    context_relevance,
    ground_many,
    lexical_grounding,
    ngram_grounding,
    tokens,
)

ROWS = vectors("grounding.jsonl")
ABSENT = pytest.mark.skip(reason="../shared/vectors is not here")
CASES = [pytest.param(row, id=f"{i}-{row['prediction'][:20]}") for i, row in enumerate(ROWS)] or [
    pytest.param({}, id="absent", marks=ABSENT)
]

# --- a second implementation, as plain as it can be: regular expressions, sets, loops -------------


def plain_tokens(text):
    return re.findall("[a-z0-9']+", text.lower())


def plain_lexical(prediction, passages):
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    content = {token for token in plain_tokens(prediction) if token not in ENGLISH_STOP_WORDS}
    if not content:
        return 1.0
    there = set()
    for passage in passages:
        there.update(plain_tokens(passage))
    return len([token for token in content if token in there]) / len(content)


def plain_runs(found, n):
    return {tuple(found[i : i + n]) for i in range(len(found)) if i + n <= len(found)}


def plain_ngram(prediction, passages, n):
    wanted = plain_runs(plain_tokens(prediction), n)
    if not wanted:
        return 1.0
    there = set()
    for passage in passages:
        there |= plain_runs(plain_tokens(passage), n)
    return len(wanted & there) / len(wanted)


# Few words, so that runs repeat and meet; stop words, quotes, odd case, letters outside ASCII, and
# what the code itself uses to join and replace ("?", two spaces).
ASCII = ["red", "blue", "The", "of", "it's", "it", "s", "'", "x1", "1", "a|b", "RED-blue", "|", "?", "", "\n"]
OTHER = ["café", "東京", "\u0130", "\u212a", "\ud800"]
WORDS = st.sampled_from([*ASCII, *OTHER])
TEXTS = st.lists(WORDS, max_size=9).map(" ".join) | st.text(max_size=12)
PASSAGES = st.lists(TEXTS, max_size=4)


@given(TEXTS, PASSAGES, st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_grounding_against_a_plain_second_implementation(prediction, passages, n):
    assert tokens(prediction) == plain_tokens(prediction)
    assert lexical_grounding(prediction, passages) == plain_lexical(prediction, passages)
    assert ngram_grounding(prediction, passages, n=n) == plain_ngram(prediction, passages, n)


@given(st.lists(st.tuples(TEXTS, PASSAGES), max_size=5), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_many_rows_give_what_each_row_gives(rows, n):
    found = ground_many([p for p, _ in rows], [c for _, c in rows], n=n)
    assert found.lexical.tolist() == [plain_lexical(p, c) for p, c in rows]
    assert found.ngram.tolist() == [plain_ngram(p, c, n) for p, c in rows]
    assert found.vacuous_ngram.tolist() == [len(plain_tokens(p)) < n for p, _ in rows]
    # Nothing to look for: exactly the answers that even an empty context grounds.
    assert found.vacuous_lexical.tolist() == [plain_lexical(p, []) == 1.0 for p, _ in rows]


@given(TEXTS, PASSAGES, st.randoms())
@settings(max_examples=50, deadline=None)
def test_the_order_of_passages_does_not_matter_and_one_more_never_lowers(prediction, passages, random):
    shuffled = random.sample(passages, len(passages))
    for measure in (lexical_grounding, ngram_grounding):
        assert measure(prediction, shuffled) == measure(prediction, passages)
        assert measure(prediction, passages) >= measure(prediction, passages[:-1])


# --- the recorded behaviour -----------------------------------------------------------------------


@pytest.mark.parametrize("row", CASES)
def test_grounding_gives_the_recorded_values(row):
    found = lexical_grounding(row["prediction"], row["passages"])
    assert found == pytest.approx(row["lexical_grounding"], rel=0, abs=1e-9)
    found = ngram_grounding(row["prediction"], row["passages"])
    assert found == pytest.approx(row["ngram_grounding"], rel=0, abs=1e-9)


@pytest.mark.skipif(not ROWS, reason="../shared/vectors is not here")
def test_many_rows_give_the_recorded_values_and_share_one_reading():
    assert len(ROWS) == 54
    words = PassageWords()
    found = ground_many([r["prediction"] for r in ROWS], [r["passages"] for r in ROWS], words=words)
    np.testing.assert_allclose(found.lexical, [r["lexical_grounding"] for r in ROWS], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.ngram, [r["ngram_grounding"] for r in ROWS], rtol=0, atol=1e-9)
    assert set(words) == {p for r in ROWS for p in r["passages"]}


# --- by hand --------------------------------------------------------------------------------------


def test_tokens_are_ascii_letters_digits_and_apostrophes():
    assert tokens("It isn't café-AU lait_2") == ["it", "isn't", "caf", "au", "lait", "2"]
    assert tokens("\u0130\u212a") == ["i", "k"]  # dotted I lowers to i and a mark, the Kelvin sign to k
    assert tokens("東京 \ud800 !") == []


def test_stop_words_are_those_of_scikit_learn():
    assert content_tokens("The bill, whose system is it? I don't know") == {
        "don't",
        "know",
    }  # "bill", "system" too


def test_a_run_never_crosses_two_passages_nor_a_word():
    assert ngram_grounding("red blue", ["red", "blue"], n=2) == 0.0
    assert ngram_grounding("red blue", ["red  |  blue"], n=2) == 1.0  # spaces and marks part nothing
    assert ngram_grounding("red blue", ["tired blues"], n=2) == 0.0
    assert lexical_grounding("red", ["tired"]) == 0.0


@pytest.mark.parametrize(
    ("n", "expected"),
    [(1, 1.0), (2, 2 / 3), (3, 0.0), (4, 0.0), (5, 1.0)],  # 4 tokens: no run of 5, vacuous
)
def test_n_sets_the_length_of_a_run(n, expected):
    # Runs of 2: "wind power", "power prices" (not there), "prices fall".
    assert ngram_grounding("wind power prices fall", ["wind power", "prices fall"], n=n) == expected


@pytest.mark.parametrize("passages", [None, "", [], [""], [None], ["東京"]])
def test_without_passage_tokens_only_an_empty_answer_is_grounded(passages):
    assert lexical_grounding("Canberra", passages) == 0.0
    assert ngram_grounding("Canberra is big", passages) == 0.0
    assert lexical_grounding("", passages) == lexical_grounding(None, passages) == 1.0
    assert ngram_grounding(None, passages) == 1.0


def test_a_string_is_one_passage_and_an_iterator_is_read_once():
    assert lexical_grounding("Peru Lima", "Lima") == 0.5
    assert ngram_grounding("a b c", iter(["a b c"])) == 1.0


def test_context_relevance_with_judgements_is_a_hit():
    words = ["nothing in common"]
    assert context_relevance("capital", words, shown_ids=["d9", "d1"], relevant={"d1"}) == 1.0
    assert context_relevance("capital", words, shown_ids=["d9"], relevant={"d1"}) == 0.0
    assert context_relevance("capital", ["capital"], shown_ids=["d1"], relevant=[]) == 0.0
    assert context_relevance("capital", [], shown_ids=[], relevant=["d1"]) == 0.0
    assert context_relevance("capital", [], shown_ids=np.array([3, 4]), relevant=["4"]) == 1.0  # ids are text
    assert context_relevance("capital", [], shown_ids="d1", relevant="d1") == 1.0  # one id, not letters
    assert context_relevance("capital", [], shown_ids="d1", relevant="d") == 0.0


def test_context_relevance_without_judgements_is_the_grounding_of_the_query():
    # Content words: capital, peru.
    assert context_relevance("what is the capital of Peru", ["Lima, Peru"]) == 0.5
    assert context_relevance("what is the capital of Peru", ["Lima, Peru"], shown_ids=["d1"]) == 0.5
    assert context_relevance("what is it", []) == context_relevance(None, None) == 1.0


def test_each_distinct_passage_is_read_once(monkeypatch):
    read = []
    monkeypatch.setattr("packtools.grounding.tokens", lambda text: read.append(text) or text.split())
    words = PassageWords()
    found = ground_many(["x", "y"], [["p q", "r"], ["r", "p q"]], words=words)
    ground_many(["q"], [["p q"]], words=words)
    assert sorted(read) == ["p q", "q", "r", "x", "y"]
    assert found.lexical.tolist() == [0.0, 0.0]


def test_no_rows_give_no_values():
    found = ground_many([], [])
    assert found.lexical.shape == found.ngram.shape == found.vacuous_lexical.shape == (0,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ngram_grounding("a", [], n=0), "ngram_grounding: 'n' must be at least 1 token; got 0."),
        (
            lambda: ngram_grounding("a", [], n=1.5),
            "ngram_grounding: 'n' must be a whole number of tokens; got 1.5.",
        ),
        (lambda: ground_many(["a"], [[]], n=-1), "ground_many: 'n' must be at least 1 token; got -1."),
        (
            lambda: lexical_grounding(5, []),
            "lexical_grounding: 'prediction' must be a string or None; got 5.",
        ),
        (lambda: lexical_grounding("a", 5), "grounding: 'passages' must be a list of strings; got 5."),
        (lambda: lexical_grounding("a", ["b", 5]), "grounding: 'passages' must be a list of strings; got 5."),
        (
            lambda: lexical_grounding("a", {"d1": "b"}),
            "grounding: 'passages' must be a list of strings; got {'d1': 'b'}.",
        ),
        (
            lambda: context_relevance("a", [], relevant=["d1"]),
            "context_relevance: 'shown_ids' must be given with 'relevant'; got None. "
            "Without judgements leave 'relevant' out.",
        ),
        (
            lambda: context_relevance("a", [], shown_ids=[1.5], relevant=["d1"]),
            "context_relevance: 'shown_ids' must be a list of ids (strings or whole numbers); got 1.5.",
        ),
        (
            lambda: context_relevance("a", [], shown_ids=["d1"], relevant=[True]),
            "context_relevance: 'relevant' must be a list of ids (strings or whole numbers); got True.",
        ),
        (
            lambda: ground_many(["a"], []),
            "ground_many: 'contexts' must be of length 1; got 0.",
        ),
        (
            lambda: ground_many("a", [[]]),
            "ground_many: 'predictions' must be a list with one entry a row; got 'a'.",
        ),
        (
            lambda: ground_many(["a"], "b"),
            "ground_many: 'contexts' must be a list with one entry a row; got 'b'.",
        ),
    ],
)
def test_bad_arguments_give_one_clear_error(call, message):
    with pytest.raises(SettingError) as raised:
        call()
    assert str(raised.value) == message


def test_the_stop_list_loads_on_first_use_only():
    code = "import packtools.grounding, packtools.triads, sys; print('sklearn' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
