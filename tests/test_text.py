"""Normal form, shingles, the guard, answer matching."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt
from packtools.matching import find_folded, fold, source_offset


def slow_normal(text: str) -> str:
    """The rule as it is written, character by character."""
    lowered = unicodedata.normalize("NFC", text).lower()
    return " ".join("".join(c for c in lowered if unicodedata.category(c)[0] not in "PS").split())


@settings(max_examples=500)
@given(st.text(max_size=40) | st.text(alphabet=st.characters(max_codepoint=127), max_size=40))
def test_normalise_against_the_rule_character_by_character(text):
    assert pt.normalise(text) == slow_normal(text)


def test_accents_are_equal_however_composed():
    assert pt.text_key("café") == pt.text_key("cafe\u0301")  # P53
    assert pt.text_key("東京") != pt.text_key("大阪")


def test_texts_of_bare_punctuation_equal_only_themselves():
    keys = [pt.text_key(t) for t in ("", "...", "!!!", "abc")]  # P40
    assert len(set(keys)) == 4
    assert pt.text_key("...") == pt.text_key("...")


def test_table_rows_with_unlike_numbers_are_unlike():
    assert pt.text_key("1|2|300$") != pt.text_key("4|5|6")  # P44


def test_similarity_of_scripts_without_spaces_is_graded():
    a, b = "東京は日本の首都です。人口は多い。", "東京は日本の首都です。人口が多い。"  # P41
    # 13 triples of characters of the normal form (punctuation deleted); 3 hold the particle.
    assert pt.jaccard(a, b) == pytest.approx(10 / 16)
    assert pt.shingle_rule(a) == "3 characters"
    assert pt.shingle_rule("서울은 대한민국의 수도이다") == "5 words"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("3.14", "314"), ("in 2021", "in 2022"), ("It is safe.", "It is not safe."), ("Road 1506", "Road 1507"),
        ("on 3 March", "on 3 April"), ("5 %", "5"), ("-5 degrees", "5 degrees"), ("can open", "can't open"),
        ("three ships", "four ships"), ("C'est sûr", "Ce n'est pas sûr"), ("有毒", "没有毒"), ("第三", "第四"),
        ("1|2|300", "12|300"), ("सुरक्षित है", "सुरक्षित नहीं है"), ("a fee of .5", "a fee of 5"),
        ("1e-5 per mole", "1e5 per mole"), ("$5", "€5"), ("p < 0.05", "p > 0.05"), ("5 Jan", "5 Feb"),
        ("10⁵", "105"), ("from 5 to 7", "from 7 to 5"), ("行く", "行かない"),
    ],
)  # fmt: skip
def test_texts_that_differ_in_a_number_date_or_negation_are_told_apart(a, b):
    assert pt.differences(a) != pt.differences(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [("1,000 ships", "1000 ships!"), ("In March", "in MARCH."), ("5 %", "5%"), ("a fine day", "a good day"),
     ("５ km", "5 km"), ("it is Not", "NOT: it is"), ("とても大きな街", "とても広い街"), ("−5", "-5")],
)  # fmt: skip
def test_texts_that_differ_otherwise_are_not_told_apart(a, b):
    assert pt.differences(a) == pt.differences(b)


@pytest.mark.parametrize(
    ("answer", "text", "at"),
    [
        ("No", "Nobody said so", -1),
        ("no", "I say no.", 6),
        ("5", "15 or 5.2 or 1,500", -1),
        ("5", "It costs 5.", 9),
        ("3.14", "about 3.145", -1),
        ("東京", "大東京都", 1),
        ("30", "約30年前", 1),
        ("30", "約130年前", -1),
        ("café", "the cafe\u0301 there", 4),
        ("office", "the o\ufb03ce door", 4),
        ("information", "infor-\nmation", 0),
        ("New York", "in New\n  York now", 3),
        ("U.S.", "the U.S. army", 4),
        ("C++", "in C++ and C", 3),
        ("", "text", -1),
        ("a_b", "xa_b", -1),
        (".5", "10.5", -1),
        ("5", "see .5", -1),
        ("5", "in 2001. 5 men", 9),
        ("राम", "रामायण", -1),
        ("102", "10² km", -1),
        ("51", "5½ kg", -1),
        ("1990", "in 1990-\n1995 he", 3),
        ("Coca-Cola", "the Coca-\nCola firm", 4),
        ("Next", "the end-\n\nNext para", 10),
        ("文字", "中-\n文字", 3),
        ("known", "well-\nknown", 6),
        ("5", "5.5 é 5", 6),
        ("5", "é15, 5", 5),
        ("Coca-Cola", "infor-\nmation " * 10 + "Coca-\nCola", 140),
        ("Coca-Cola", "é infor-\nmation " * 30 + "Coca-\nCola and more", 480),
    ],
)  # fmt: skip
def test_find_answer_keeps_words_and_numbers_whole(answer, text, at):
    assert pt.find_answer(text, [answer]) == at


def test_find_answer_gives_the_first_of_several():
    assert pt.find_answer("b then a", ["a", "b"]) == 0
    assert pt.find_answer("", ["a"]) == -1


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(["ﬁ", "é", "e\u0301", "  ", "\n", "word", "½", "東", "x", "\u00ad", "Ⅷ"]), max_size=12
    ),
    st.integers(0, 5),
)
def test_the_offset_of_an_answer_is_where_its_fold_begins(parts, cut):
    text = "".join(parts[:cut]) + " target " + "".join(parts[cut:])
    at = pt.find_answer(text, ["target"])
    assert text[at : at + 6] == "target"


def test_source_offset_counts_through_folded_white_space():
    text = "a   b\n\n c"
    assert [source_offset(text, i) for i in (0, 2, 4)] == [0, 4, 8]


def test_find_folded_never_matches_an_empty_answer():
    assert find_folded("", fold("anything")) == -1


@pytest.mark.parametrize(
    "text",
    ["東京は日本の首都です。人口は多い。" * 4000, "A" * 60_000, "a1" * 30_000, "1" * 60_000, "1," * 30_000],
)
def test_the_guard_is_linear_in_the_text(text):
    # Quadratic work on 60,000 characters would take minutes; the limit of the runner catches it.
    assert len(pt.differences(text)) <= len(text)
