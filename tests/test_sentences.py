"""Sentences are exact slices, cut where a reader would cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt

CASES = {
    # P59
    "If David et al. get the funds, e.g. from the U.S. or No. 5, he goes.": 1,
    "She is an M.D.: an oncologist.": 1,
    "It wears size S. Fits well.": 1,  # documented: a single capital may be an initial
    # P61
    "第一文です．第二文です．": 2,
    "第一文です。第二文です。": 2,
    # P67, P70
    "It doesn't work. Try again. It isn't broken.": 3,
    "Call `a.b()`. See https://x.org/a.b?c=1. Version 1.2.3 is out.": 3,
    # and their kin
    "Dr. Who met Mr. J. R. Smith. He left.": 2,
    "See Eq. (2) and Fig. 3 for details. Then go.": 2,
    "M. Dupont est ici. Il part.": 2,
    "Wait... what? Yes!": 2,
    'He said "Stop. Now." Then he left.': 2,
    "Pi is 3.14. It is.": 2,
    "هل هذا صحيح؟ نعم. جيد.": 3,
    "यह सही है। वह गलत है।": 2,
    "They met at 5 p.m. It rained.": 2,
    "One line\nand its end. Another.": 2,
    "": 0,
    "   ": 0,
    "no stop at all": 1,
}


def pieces(text: str, splitter: str = "prose") -> list[str]:
    return [text[a:b] for a, b in pt.split_sentences(text, splitter)]


@pytest.mark.parametrize("text", list(CASES))
def test_sentences_are_cut_where_a_reader_cuts(text):
    assert len(pieces(text)) == CASES[text], pieces(text)


def test_leading_white_space_stays_outside():
    assert pt.split_sentences("  Hello. World.") == [(2, 8), (9, 15)]  # P68


def test_repeated_sentences_have_places_of_their_own():
    text = "This is a test. " * 6  # P71
    spans = pt.split_sentences(text)
    assert len(spans) == 6
    assert [a for a, _ in spans] == sorted({a for a, _ in spans})
    assert {text[a:b] for a, b in spans} == {"This is a test."}


def test_offsets_count_characters_not_bytes():
    assert pieces("é🧠 One. Two é. Three 🧠.") == ["é🧠 One.", "Two é.", "Three 🧠."]  # P73


TABLE = "Prices below.\n\n| item | excl. tax |\n|------|----------:|\n| oak | 5,120 |\n| elm | 4.5 |\n\nAll in kr. per ton."


def test_table_rows_stay_whole_and_the_rule_goes_with_the_header():
    assert pieces(TABLE) == [
        "Prices below.", "| item | excl. tax |\n|------|----------:|", "| oak | 5,120 |", "| elm | 4.5 |",
        "All in kr. per ton.",
    ]  # fmt: skip  # P65


def test_rows_without_outer_bars_are_rows_too():
    assert pieces("a | b | c. d\n1 | 2. 3 | 4") == ["a | b | c. d", "1 | 2. 3 | 4"]


def test_code_fences_are_one_piece():
    text = "Run this. Then wait.\n```sh\nls. -l; echo a. b\n\n# not a heading\n```\nDone. Bye."
    assert pieces(text) == [
        "Run this.",
        "Then wait.",
        "```sh\nls. -l; echo a. b\n\n# not a heading\n```",
        "Done.",
        "Bye.",
    ]
    assert pieces("```\nnever closed. still code") == ["```\nnever closed. still code"]


def test_list_items_and_headings_start_pieces():
    text = "# Title of it\nIntro text\n- one thing\n- two things. And more\n1. first\n2) second\n  goes on"
    assert pieces(text) == [
        "# Title of it", "Intro text", "- one thing", "- two things.", "And more", "1. first", "2) second\n  goes on",
    ]  # fmt: skip


def test_the_simple_rule_is_the_recorded_one():
    assert pieces("A. B! C? d.e 3.5 。x", "simple") == ["A.", "B!", "C?", "d.e 3.5 。x"]
    with pytest.raises(pt.SettingError, match="splitter 'best' is unknown; known: 'prose', 'simple'"):
        pt.split_sentences("x", "best")


def assert_whole(text: str, splitter: str) -> None:
    """Sentences and the gaps between them are the text, byte for byte; gaps hold white space only."""
    at, rebuilt = 0, ""
    for start, end in pt.split_sentences(text, splitter):
        assert at <= start < end
        gap = text[at:start]
        assert not gap.strip()
        assert text[start:end] == text[start:end].strip()
        rebuilt += gap + text[start:end]
        at = end
    assert not text[at:].strip()
    assert rebuilt + text[at:] == text


PARTS = st.sampled_from(
    ["One.", " Two!", "\n", "\n\n", "| a | b |", "|---|---|", "```", "- x", "1. y", "# h", " ", "  ", "Dr.", " No. 5",
     "第一。", "؟", "।", "\u2028", "\u0085", "\r\n", "é", "🧠", "\u00a0", "...", '"Q."', "(a. b)", "\x1c", "|", "\t"]
)  # fmt: skip


@pytest.mark.parametrize("splitter", ["prose", "simple"])
@settings(max_examples=400, deadline=None)
@given(text=st.one_of(st.lists(PARTS, max_size=14).map("".join), st.text(max_size=60)))
def test_sentences_and_gaps_together_are_the_text(splitter, text):
    assert_whole(text, splitter)


def real_texts(real):
    """Every passage of the real files that has text."""
    import ast

    import pandas as pd

    def jsonl(path):
        return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]

    for name in ("msmarco_dl19/beir", "arcd_ar"):
        yield from (row["text"] for row in jsonl(real / name / "corpus.jsonl"))
    for article in json.loads((real / "drcd_zh_hant" / "DRCD_dev.json").read_text("utf-8"))["data"]:
        yield from (p["context"] for p in article["paragraphs"])
    for row in jsonl(real / "ramdocs" / "RAMDocs_test.jsonl"):
        yield from (d["text"] for d in row["documents"])
    for path in sorted((real / "haystack_aragog").glob("detailed_*.csv")):
        for contexts in pd.read_csv(path)["contexts"]:
            yield from ast.literal_eval(contexts)
    for row in json.loads((real / "hotpotqa" / "hotpotqa_sample.json").read_text("utf-8")):
        yield from ("".join(sentences) for _, sentences in row["context"])
    yield from pt.load_run(real / "nq_multidoc").passages["text"]
    yield from pt.load_run(real / "nq_oracle").passages["text"]


def test_every_real_passage_is_cut_into_slices(real):
    n = 0
    for text in dict.fromkeys(real_texts(real)):
        assert_whole(text, "prose")
        assert_whole(text, "simple")
        n += 1
    assert n > 12_000


def test_boundaries_agree_with_hotpotqa(real):
    """HotpotQA comes cut into sentences; the F1 of inner boundaries against it is high."""
    rows = json.loads((real / "hotpotqa" / "hotpotqa_sample.json").read_text("utf-8"))
    right = found = wanted = 0
    for row in rows:
        for _, sentences in row["context"]:
            text = "".join(sentences)
            ends, at = set(), 0
            for sentence in sentences[:-1]:
                at += len(sentence)
                ends.add(len(text[:at].rstrip()))
            ours = {b for _, b in pt.split_sentences(text)[:-1]}
            right, found, wanted = right + len(ends & ours), found + len(ours), wanted + len(ends)
    assert 2 * right / (found + wanted) > 0.95
