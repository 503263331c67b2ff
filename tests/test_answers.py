"""Answers are judged as recorded, as SQuAD and HotpotQA judge them, and as the answer cases ask."""

from __future__ import annotations

import math
import re
import string
import subprocess
import sys
import unicodedata
from collections import Counter

import numpy as np
import pytest
from conftest import vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from packtools.answers import ANSWER_METRICS, RULES, bleu, exact_match, rouge_l, score_answers, token_f1
from packtools.errors import MissingExtra, SettingError

CASES = vectors("answer_metrics.jsonl")
ALL_RULES = ["msmarco", "squad", "hotpotqa", "unicode"]


def both(prediction: str, references: list[str], rule: str) -> tuple[float, float]:
    return exact_match(prediction, references, rule=rule), token_f1(prediction, references, rule=rule)


# --- recorded values ----------------------------------------------------------------------------


@pytest.mark.skipif(not CASES, reason="../shared/vectors is not here: it lies beside the project")
@pytest.mark.parametrize(("rule", "prefix"), [("msmarco", ""), ("squad", "squad_v1_")])
def test_scores_against_recorded_vectors(rule, prefix):
    assert len(CASES) == 90
    for case in CASES:
        scores = both(case["prediction"], case["references"], rule)
        expected = (case[f"{prefix}exact_match"], case[f"{prefix}token_f1"])
        assert scores == pytest.approx(expected, abs=1e-9), case


@pytest.mark.skipif(not CASES, reason="../shared/vectors is not here: it lies beside the project")
@pytest.mark.parametrize(("rule", "prefix"), [("msmarco", ""), ("squad", "squad_v1_")])
def test_score_answers_against_recorded_vectors(rule, prefix):
    scores = score_answers([c["prediction"] for c in CASES], [c["references"] for c in CASES], rule=rule)
    for name in ("exact_match", "token_f1"):
        expected = [c[f"{prefix}{name}"] if c["references"] else np.nan for c in CASES]
        np.testing.assert_allclose(scores[name], expected, rtol=0, atol=1e-9)


def test_the_recorded_rule_is_the_default():
    # Articles first: "u.s.a." loses its "a".
    assert exact_match("U.S.A.", ["us"]) == 1.0
    assert token_f1("U.S.A.", ["us"]) == 1.0
    assert score_answers(["U.S.A."], [["us"]])["exact_match"].tolist() == [1.0]


# The official script of SQuAD v1.1, written down again as the oracle.
def official_words(text: str) -> list[str]:
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def official_f1(prediction: str, truth: str) -> float:
    ours, theirs = official_words(prediction), official_words(truth)
    same = sum((Counter(ours) & Counter(theirs)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(ours), same / len(theirs)
    return 2 * precision * recall / (precision + recall)


ANSWER = st.lists(
    st.sampled_from(["the", "A", "a-b", "U.S.A.", "red", "Red.", "blue", "yes", "no", "3.14", "!"])
).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(ANSWER, st.lists(ANSWER, min_size=1, max_size=3))
def test_squad_against_the_official_script(prediction, references):
    wanted = max(official_f1(prediction, r) for r in references)
    same = any(official_words(prediction) == official_words(r) for r in references)
    assert both(prediction, references, "squad") == pytest.approx((float(same), wanted), abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(ANSWER, ANSWER)
def test_hotpotqa_against_the_official_script(prediction, truth):
    ours, theirs = " ".join(official_words(prediction)), " ".join(official_words(truth))
    whole = ("yes", "no", "noanswer")
    cut = ours != theirs and (ours in whole or theirs in whole)
    wanted = 0.0 if cut else official_f1(prediction, truth)
    assert both(prediction, [truth], "hotpotqa") == pytest.approx((float(ours == theirs), wanted), abs=1e-12)


# --- the rule for all languages -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("(3.14)", "3.14"),
        ("3.14.", "3.14"),
        ("It is 3.14, sir", "it is 3.14 sir"),
        ("1,000", "1000"),
        ("1,234,567.5", "1234567.5"),
        (".5", "0.5"),
        ("\u22125", "-5"),  # minus sign
        ("(-5)", "-5"),
        ("1e+5", "1e5"),
        ("１２３", "123"),
        ("٣٫٥", "3.5"),
        ("$100", "100"),
        ("1914\u20131918", "1914 1918"),  # a range is no negative number
        ("U.S.A.", "USA"),
        ("don\u2019t", "dont"),
        ("it\u00b4s", "it's"),
        ("AT&T", "ATT"),
        ("well-known", "well known"),
        ("No.5", "No. 5"),
        ("“Paris”", "paris"),
        ("«Paris»…", "Paris"),
        ("Paris \u2013 Lyon", "Paris Lyon"),
        ("Straße", "STRASSE"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ＴＯＫＹＯ", "tokyo"),
        ("東京。", "東京"),
        ("東京 大阪", "東京大阪"),
        ("New\u200bYork", "NewYork"),
        ("New\u00a0York\n", "new york"),
        ("\u200fالقاهرة\u061f", "القاهرة"),
        ("कोलकाता।", "कोलकाता"),
        ("the Beatles", "Beatles"),
        ("naive ¨", "naive"),  # NFKC makes it a mark without a letter
        ("J\u0323\u030c", "\u01f0\u0323"),  # case folding undoes NFC: two orders of marks
    ],
)
def test_unicode_takes_these_as_equal(prediction, reference):
    assert both(prediction, [reference], "unicode") == (1.0, 1.0)
    assert both(reference, [prediction], "unicode") == (1.0, 1.0)


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("314", "3.14"),
        ("(3.14)", "314"),
        ("5", "-5"),
        ("5", ".5"),
        ("1e5", "1e-5"),
        ("1e 5", "1e-5"),
        ("12", "1/2"),
        ("1030", "10:30"),
        ("102", "10²"),
        ("A", "The"),  # only articles: kept
        ("+", "×"),  # only symbols: kept
        ("👍", "👎"),
        ("cafe", "café"),
        ("कलकता", "कोलकाता"),  # vowel signs are letters here
        ("", "the"),
    ],
)
def test_unicode_takes_these_as_different(prediction, reference):
    assert both(prediction, [reference], "unicode") == (0.0, 0.0)
    assert both(reference, [prediction], "unicode") == (0.0, 0.0)


@pytest.mark.parametrize("sentence", ["The result is (3.14).", "(3.14): the result", "about 3.14, or so"])
def test_unicode_finds_a_whole_number_in_a_sentence(sentence):
    assert token_f1(sentence, ["3.14"], rule="unicode") > 0
    assert token_f1(sentence, ["314"], rule="unicode") == 0.0


def test_f1_is_graded_for_scripts_without_spaces():
    # 2 of 2 characters right, 2 of 3 found: 2 * 2 / (2 + 3).
    assert both("東京", ["東京都"], "unicode") == (0.0, pytest.approx(0.8))
    # Thai, and a Latin word among Han: 1 common of 2 and of 4 words.
    assert 0 < token_f1("กรุง", ["กรุงเทพ"], rule="unicode") < 1
    assert token_f1("iPhone 手", ["iphone手机壳"], rule="unicode") == pytest.approx(2 * 2 / (2 + 4))
    # Hangul and Cyrillic have spaces: words stay whole.
    assert token_f1("서울", ["서울시"], rule="unicode") == 0.0


def test_an_article_is_removed_between_spaces_only():
    assert exact_match("Aさん", ["さん"], rule="unicode") == 0.0
    assert exact_match("a さん", ["さん"], rule="unicode") == 1.0
    assert exact_match("theater", ["ater"], rule="unicode") == 0.0


@pytest.mark.parametrize(
    ("prediction", "reference", "score"), [("", "", 1.0), ("", "x", 0.0), ("x", "", 0.0), ("???", "...", 1.0)]
)
def test_empty_answers_under_unicode(prediction, reference, score):
    assert both(prediction, [reference], "unicode") == (score, score)


def test_a_reference_without_words_is_left_out_with_a_warning():
    text = r"^exact_match: 1 reference has no words and is left out \(rule 'unicode'\)\.$"
    with pytest.warns(UserWarning, match=text) as caught:
        assert exact_match("Paris", ["Paris", "???"], rule="unicode") == 1.0
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="token_f1: 2 references have no words and are left out"):
        assert token_f1("Paris", ["", "Paris", "???"], rule="unicode") == 1.0
    # Left out means that an empty answer can't win by it.
    with pytest.warns(UserWarning, match="left out"):
        assert exact_match("", ["Paris", "???"], rule="unicode") == 0.0


@pytest.mark.parametrize("rule", ["msmarco", "squad", "hotpotqa"])
def test_the_older_rules_leave_nothing_out_and_do_not_warn(rule):
    assert both("Paris", ["Paris", "???"], rule) == (1.0, 1.0)
    assert both("", ["Paris", "???"], rule) == (1.0, 0.0)
    assert both("", [""], rule) == (1.0, 0.0)


@pytest.mark.parametrize("word", ["café", "Ångström", "ΐ", "한국", "が"])
def test_composed_and_decomposed_accents_are_equal_under_unicode(word):
    apart = unicodedata.normalize("NFD", word)
    assert apart != unicodedata.normalize("NFC", word)
    assert both(apart, [word], "unicode") == (1.0, 1.0)
    assert both(apart, [word], "squad") == (0.0, 0.0)


def test_yes_no_answers_differ_by_rule():
    assert token_f1("yes it is", ["yes"], rule="hotpotqa") == 0.0
    # 1 common word of 3 and of 1: 2 * 1 / (3 + 1).
    for rule in ("msmarco", "squad", "unicode"):
        assert token_f1("yes it is", ["yes"], rule=rule) == 0.5
    assert both("Yes.", ["yes"], "hotpotqa") == (1.0, 1.0)
    assert token_f1("yes it is", ["it is"], rule="hotpotqa") == pytest.approx(0.8)
    assert token_f1("yes it is", ["yes", "it is"], rule="hotpotqa") == pytest.approx(0.8)


# --- properties of every rule -------------------------------------------------------------------


@pytest.mark.parametrize("rule", ALL_RULES)
def test_best_over_references_wherever_it_stands(rule):
    assert both("Paris", ["x", "Paris"], rule) == (1.0, 1.0)
    assert both("Paris", ["Paris", "x"], rule) == (1.0, 1.0)
    # Against "b c" 2*1/4, against "b" 2*1/3.
    assert both("k b", ["b c", "b"], rule) == (0.0, pytest.approx(2 / 3))


@pytest.mark.parametrize("rule", ALL_RULES)
def test_repeated_words_count_as_often_as_both_have_them(rule):
    # inspect_ai counted sets: 1.0. Right: 1 common of 5 and of 1.
    assert token_f1("Paris Paris Paris Paris Paris", ["Paris"], rule=rule) == pytest.approx(2 / 6)
    assert both("blue red", ["red blue"], rule) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("rule", "score"), [("msmarco", 0.0), ("squad", 0.0), ("hotpotqa", 0.0), ("unicode", np.nan)]
)
def test_without_references(rule, score):
    assert both("Paris", [], rule) == pytest.approx((score, score), nan_ok=True)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
@pytest.mark.parametrize("rule", ALL_RULES)
def test_scores_are_symmetric_and_within_0_and_1(rule, one, other):
    exact, f1 = both(one, [other], rule)
    assert (exact, f1) == both(other, [one], rule)
    assert exact in (0.0, 1.0)
    assert 0 <= f1 <= 1
    assert exact_match(one, [one], rule=rule) == 1.0
    if rule == "unicode":
        assert f1 >= exact
        assert both(unicodedata.normalize("NFD", one), [unicodedata.normalize("NFC", one)], rule) == (
            1.0,
            1.0,
        )


def test_every_rule_is_named_and_has_a_source():
    assert list(RULES) == ALL_RULES
    for name, rule in RULES.items():
        assert rule.name == name
        assert rule.source


# --- ROUGE-L ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prediction", "references", "score"),
    [
        # rouge-score's own tests.
        ("testing two", ["testing one two"], 4 / 5),
        ("text first", ["first text", "first something"], 1 / 2),
        # Lin 2004, sec. 3.1, sentences S2 and S3 (beta 1).
        ("police kill the gunman", ["police killed the gunman"], 3 / 4),
        ("the gunman kill police", ["police killed the gunman"], 2 / 4),
        # Best over the references, wherever it stands.
        ("Paris", ["x", "Paris"], 1.0),
        ("Paris", ["Paris", "x"], 1.0),
        # No words on a side.
        ("", ["x"], 0.0),
        ("x", ["", "???"], 0.0),
        ("", [""], 0.0),
        # Scripts: whole words, accents, characters where there are no spaces.
        ("東京", ["東京都"], 0.8),
        ("café", ["cafe\u0301"], 1.0),
        ("café", ["caf"], 0.0),
        ("Москва река", ["москва"], 2 / 3),
        ("की", ["का"], 0.0),
    ],
)
def test_rouge_l_against_known_values(prediction, references, score):
    pytest.importorskip("rouge_score")
    assert rouge_l(prediction, references) == pytest.approx(score, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(max_codepoint=127), max_size=40), st.text("ab .-'\n_A3", max_size=40))
def test_rouge_l_of_ascii_against_the_plain_library(prediction, reference):
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    for one, other in ((prediction, reference), (reference, prediction), (reference, reference + " b a")):
        expected = scorer.score(other, one)["rougeL"].fmeasure
        assert rouge_l(one, [other]) == pytest.approx(expected, abs=1e-12)


# --- BLEU ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prediction", "references", "score"),
    [
        # Precisions 3/4, 2/3, 1/2 and, with none of 1 in common, 1/(2*1).
        ("this is a fest", ["this is a test"], (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** (1 / 4)),
        # Effective order 1; sacrebleu's own test: 0.3678794411714425.
        ("test", ["a test"], math.exp(1 - 2 / 1)),
        ("Paris", ["Paris"], 1.0),
        # Order 2: 1/2 and 1/(2*1); twice as long a reference.
        ("another test", ["this is a test"], math.exp(1 - 4 / 2) * math.sqrt(1 / 2 * 1 / 2)),
        # Papineni 2002, sec. 2.1.1: clipped to 2 of 7; the reference of 7 words is the nearest.
        (
            "the the the the the the the",
            ["the cat is on the mat", "there is a cat on the mat"],
            (2 / 7 * 1 / 12 * 1 / 20 * 1 / 32) ** (1 / 4),
        ),
        # Words of both references count: 4/4, 2/3, then 1/(2*2) and 1/(4*1).
        ("a b c d", ["a b x y", "q q c d"], (1 * 2 / 3 * 1 / 4 * 1 / 4) ** (1 / 4)),
        ("this is a test", ["x", "this is a test"], 1.0),
        ("paris", ["Paris"], 0.0),  # case counts
        ("", ["x"], 0.0),
        ("", [""], 0.0),
        # Characters where there are no spaces: all of 2 and of 1 right, 2 of 3 long.
        ("東京", ["東京都"], math.exp(1 - 3 / 2)),
        ("が", ["がく"], math.exp(1 - 2 / 1)),
        ("café", ["cafe\u0301"], 1.0),
    ],
)
def test_bleu_against_hand_values(prediction, references, score):
    pytest.importorskip("sacrebleu")
    assert bleu(prediction, references) == pytest.approx(score, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(ANSWER, st.lists(ANSWER, min_size=1, max_size=3))
def test_bleu_of_ascii_against_the_plain_library(prediction, references):
    library = pytest.importorskip("sacrebleu")
    expected = library.sentence_bleu(prediction, references, use_effective_order=True).score / 100
    assert bleu(prediction, references) == pytest.approx(expected, abs=1e-9)
    assert 0 <= bleu(prediction, references) <= 1


@pytest.mark.parametrize(("metric", "package"), [(rouge_l, "rouge_score"), (bleu, "sacrebleu")])
def test_rouge_and_bleu_without_references_are_not_scored(metric, package):
    pytest.importorskip(package)
    assert math.isnan(metric("Paris", []))


@pytest.mark.parametrize(
    ("metric", "module", "package"),
    [(rouge_l, "rouge_score", "rouge-score"), (bleu, "sacrebleu", "sacrebleu")],
)
def test_a_missing_library_names_the_pip_line(monkeypatch, metric, module, package):
    name = metric.__name__
    text = f"{name}: needs the package '{package}', which is not installed. Run: pip install 'rag-packtools[answers]'"
    monkeypatch.setitem(sys.modules, module, None)
    for call in (lambda: metric("a b", ["a b"]), lambda: score_answers(["a b"], [["a b"]], [name])):
        with pytest.raises(MissingExtra) as caught:
            call()
        assert str(caught.value) == text
        assert isinstance(caught.value.__cause__, ImportError)
    # The others go on.
    assert score_answers(["a b"], [["a b"]])["token_f1"].tolist() == [1.0]


def test_importing_answers_loads_no_optional_library():
    code = (
        "import sys, packtools.answers as a; a.exact_match('x', ['x'])\n"
        "print([m for m in ('rouge_score', 'sacrebleu', 'nltk', 'absl', 'lxml') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# --- many answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ALL_RULES)
def test_score_answers_leaves_out_what_has_no_references_or_no_answer(rule):
    predictions = ["Paris", "Rome", None, "x b", "", float("nan"), "Oslo"]
    references = [["paris"], [], ["Oslo"], ["b"], ["Oslo"], ["Oslo"], None]
    scores = score_answers(predictions, references, rule=rule)
    assert list(scores) == ["exact_match", "token_f1"]
    nan = np.nan
    np.testing.assert_array_equal(scores["exact_match"], [1, nan, nan, 0, 0, nan, nan])
    np.testing.assert_allclose(scores["token_f1"], [1, nan, nan, 2 / 3, 0, nan, nan])
    assert all(s.dtype == np.float64 for s in scores.values())


def test_score_answers_gives_every_metric_in_the_order_asked():
    pytest.importorskip("rouge_score")
    pytest.importorskip("sacrebleu")
    assert set(ANSWER_METRICS) == {"exact_match", "token_f1", "rouge_l", "bleu"}
    names = ["bleu", "rouge_l", "token_f1", "exact_match"]
    scores = score_answers(["testing two", "Paris", None], [["testing one two"], [], ["x"]], names)
    assert list(scores) == names
    assert [s[0] for s in scores.values()] == pytest.approx(
        # BLEU: 2/2, then 1/(2*1), and 2 words for 3.
        [math.exp(1 - 3 / 2) * math.sqrt(1 / 2), 0.8, 0.8, 0.0]
    )
    assert all(np.isnan(s[1:]).all() for s in scores.values())


def test_score_answers_warns_once_for_all_queries():
    predictions, references = ["a b", "Rome", None], [["b", "?"], ["Rome", "", "..."], ["Oslo", "?"]]
    text = r"^score_answers: 3 references have no words and are left out \(rule 'unicode'\)\.$"
    with pytest.warns(UserWarning, match=text) as caught:
        scores = score_answers(predictions, references, rule="unicode")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(scores["token_f1"], [1, 1, np.nan])


def test_score_answers_of_no_queries_and_of_no_metrics():
    assert {n: len(s) for n, s in score_answers([], []).items()} == {"exact_match": 0, "token_f1": 0}
    assert score_answers(["x"], [["x"]], []) == {}


def test_score_answers_takes_arrays_and_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"answer": ["Paris", None], "gold": [["paris"], ["x"]]}, index=[7, 3])
    scores = score_answers(frame["answer"], frame["gold"], ["exact_match"])
    np.testing.assert_array_equal(scores["exact_match"], [1, np.nan])
    scores = score_answers(np.array(["Paris"]), [np.array(["x", "Paris"])], ["exact_match"])
    assert scores["exact_match"].tolist() == [1.0]


# --- wrong input --------------------------------------------------------------------------------

KNOWN = "known: 'msmarco', 'squad', 'hotpotqa', 'unicode'."


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: exact_match("x", ["x"], rule="squat"),
            f"exact_match: rule 'squat' is unknown; {KNOWN} Did you mean 'squad'?",
        ),
        (lambda: token_f1("x", ["x"], rule=None), f"token_f1: rule None is unknown; {KNOWN}"),
        (
            lambda: score_answers(["x"], [["x"]], rule="MSMARCO!"),
            f"score_answers: rule 'MSMARCO!' is unknown; {KNOWN}",
        ),
        (
            lambda: score_answers(["x"], [["x"]], ["blue"]),
            "score_answers: metric 'blue' is unknown; known: 'exact_match', 'token_f1', 'rouge_l', 'bleu'. "
            "Did you mean 'bleu'?",
        ),
        (
            lambda: score_answers(["x"], [["x"]], "bleu"),
            "score_answers: 'metrics' must be a list; got 'bleu'. Put a single text into a list.",
        ),
        (
            lambda: exact_match("London", "London"),
            "exact_match: 'references' must be a list; got 'London'. Put a single text into a list.",
        ),
        (
            lambda: rouge_l("London", "London"),
            "rouge_l: 'references' must be a list; got 'London'. Put a single text into a list.",
        ),
        (lambda: bleu(3, ["London"]), "bleu: 'prediction' must be a text; got 3."),
        (lambda: token_f1(None, ["London"]), "token_f1: 'prediction' must be a text; got None."),
        (lambda: token_f1("x", ["London", None]), "token_f1: 'references[1]' must be a text; got None."),
        (
            lambda: score_answers(["x", "y"], [["x"]]),
            "score_answers: 'references' must be as long as 'predictions' (2); got 1.",
        ),
        (
            lambda: score_answers("xy", [["x"], ["y"]]),
            "score_answers: 'predictions' must be a list; got 'xy'. Put a single text into a list.",
        ),
        (
            lambda: score_answers(["x", 3], [["x"], []]),
            "score_answers: 'predictions[1]' must be a text; got 3.",
        ),
        (lambda: score_answers([1.5], [["x"]]), "score_answers: 'predictions[0]' must be a text; got 1.5."),
        (
            lambda: score_answers(["x", "y"], [["x"], "y"]),
            "score_answers: 'references[1]' must be a list; got 'y'. Put a single text into a list.",
        ),
        (
            lambda: score_answers(["x"], [["x", 3]]),
            "score_answers: 'references[0][1]' must be a text; got 3.",
        ),
    ],
)
def test_wrong_input_gives_one_clear_error(call, text):
    with pytest.raises(SettingError) as caught:
        call()
    assert str(caught.value) == text
