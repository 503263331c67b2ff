"""Runs whose passages are cut: what is lost, what is worked out once, and that results can travel."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import packtools as pt
from packtools import corpus, facts, selection
from packtools.facts import find_facts


def prepared_of(texts, answers=None, counter="chars", query="x", **more):
    frame = pd.DataFrame(
        [("q", f"d{i}", i) for i in range(1, len(texts) + 1)], columns=["qid", "docid", "rank"]
    )
    run = pt.Run.from_frames(
        frame,
        {f"d{i}": text for i, text in enumerate(texts, 1)},
        queries={"q": query},
        answers={"q": answers} if answers else None,
    )
    return pt.prepare(run, counter=counter, **more)


def words(text, kind):
    found = find_facts([text])
    return [
        text[a:b]
        for a, b, n in zip(found.begin, found.end, found.number, strict=True)
        if found.kind[n] == kind
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The Rhine flows past Basel. Basel is old.", ["Rhine", "Basel"]),
        ("Marie Curie met Pierre in Paris; Paris was cold.", ["Marie Curie", "Pierre", "Paris"]),
        ("Then John F. Kennedy met Dr. Dre near Mt. Everest.", ["John F. Kennedy", "Dr. Dre", "Mt. Everest"]),
        ("He takes Vitamin C. The U.S. Army left.", ["Vitamin C", "U.S. Army"]),
        ("They called AT&T and Whitney Houston's mother.", ["AT&T", "Whitney Houston"]),
        ("in H2O or B-52, at -5 °C, snake_Case", []),
        ("voice of E\u0301lan Vital and École Normale", ["E\u0301lan Vital", "École Normale"]),
        ("said BBC全球新聞服務是一家 and IBM公司", []),
        ("see OSM Map General Map Google Map Old Map New", []),
        ("it says STEP THE TAPE BACK, at NATO", ["NATO"]),
        ("но Москва большая", ["Москва"]),
        ("東京は日本の首都です", []),
    ],
)
def test_names_are_runs_of_capitalised_words(text, names):
    assert words(text, facts.NAME) == names


def test_numbers_are_whole_and_compared_in_their_plain_form():
    text = "It cost 1,000 or 1000 dollars, 3.5 % of -20, in 2021–22, or ٣٫٥."
    assert words(text, facts.NUMBER) == ["1,000", "1000", "3.5 %", "-20", "2021–22", "٣٫٥"]
    found = find_facts([text])
    assert found.number[0] == found.number[1]
    assert found.words[found.number[1]] == "1,000"


def test_what_a_cut_loses_is_listed_and_its_share_counted():
    text = "Nothing here. The dam near Alma is 111 metres tall. Built in 1931 by Otto Frick for 20 towns."
    prepared = prepared_of([text], query="how tall is the dam")
    config = pt.PackerConfig(
        unit="chars", passage_budget=55, sentence_selection="query_overlap", separator=" "
    )
    packed = prepared.evaluate(config)
    assert packed.context("q").text == "Nothing here. The dam near Alma is 111 metres tall."
    assert packed.lost.to_dict("records") == [
        {"qid": "q", "kind": "number", "lost": "1931"},
        {"qid": "q", "kind": "number", "lost": "20"},
        {"qid": "q", "kind": "name", "lost": "Otto Frick"},
    ]
    assert packed.per_query.at["q", "numbers_kept"] == pytest.approx(1 / 3)
    assert packed.per_query.at["q", "names_kept"] == 0.5


def test_what_still_stands_in_the_packed_text_is_not_lost():
    texts = ["It was 1,000 km. Whitney Houston sang of Voldemort. Thomas Jefferson wrote. More text follows here.",
             "Voldemort and Whitney Houston's album. In 1000 ways Jefferson did."]  # fmt: skip
    config = pt.PackerConfig(unit="chars", passage_budget=66, sentence_selection="head", separator=" ")
    packed = prepared_of(texts).evaluate(config)
    text = packed.context("q").text
    assert not any(word in text for word in packed.lost["lost"])


def test_equal_packs_have_equal_metrics_whatever_the_setting_could_have_cut():
    prepared = prepared_of(["nothing here at all", "One 2 three."])
    skip = prepared.evaluate(pt.PackerConfig(budget=1000, unit="chars", overflow="skip"))
    truncate = prepared.evaluate(pt.PackerConfig(budget=1000, unit="chars", overflow="truncate"))
    pd.testing.assert_frame_equal(skip.per_query, truncate.per_query)
    assert skip.per_query.at["q", "numbers_kept"] == 1.0


def test_an_answer_that_collapsing_breaks_counts_as_lost():
    prepared = prepared_of(["The infor-\nmation is here.", "Other text."], ["information"])
    whole = prepared.evaluate(pt.PackerConfig(budget=None, separator=" "))
    assert whole.per_query.at["q", "answer_retention"] == 1.0
    assert prepared.evaluate(pt.PackerConfig.characters(900)).per_query.at["q", "answer_retention"] == 0.0


def test_chunks_after_the_last_have_no_overshoot():
    packed = prepared_of(["aaaa bbbb cccc", "dddd eeee", "z"]).evaluate(pt.PackerConfig.characters(10))
    assert packed.decisions["over_by"].tolist() == [0, 0, 0]
    assert packed.decisions["n_chars"].tolist() == [4, 9, 1]  # a cut behind a space takes the word too
    assert packed.decisions["n_chars_whole"].tolist() == [14, 9, 1]


def test_no_budgets_give_no_packs():
    prepared = prepared_of(["a"])
    assert prepared.evaluate_budgets(pt.PackerConfig(), []) == []


@pytest.mark.parametrize("counter", ["chars", "cl100k_base"])
def test_prepared_and_packed_runs_can_be_pickled(counter):
    prepared = prepared_of(["One two. Three four. Five.", "Six  seven."], counter=counter)
    config = pt.PackerConfig.characters(20, 12)
    packed = prepared.evaluate(config)
    again = pickle.loads(pickle.dumps(packed))
    pd.testing.assert_frame_equal(again.per_query, packed.per_query)
    pd.testing.assert_frame_equal(again.decisions, packed.decisions)
    second = pickle.loads(pickle.dumps(prepared)).evaluate(config.replace(order="document"))
    assert second.per_query.at["q", "n_chars"] == packed.per_query.at["q", "n_chars"]


def test_the_full_size_in_characters_counts_no_token(monkeypatch):
    prepared = pt.prepare(pt.load_sample())
    monkeypatch.setattr(type(prepared.counter), "count", None)
    full = prepared.full("chars", " ")
    texts = [" ".join(c.text for c in prepared.run.chunks(qid)) for qid in prepared.qids]
    assert full.tolist() == [len(text) for text in texts]


def test_sentences_and_facts_are_found_once_for_both_forms_of_white_space(monkeypatch):
    calls = []
    split = selection.split_sentences
    monkeypatch.setattr(
        selection, "split_sentences", lambda text, name: calls.append(text) or split(text, name)
    )
    mentions = facts._mentions
    monkeypatch.setattr(facts, "_mentions", lambda text: calls.append(text) or mentions(text))
    texts = ["One two. Three four.", "Five  six. Seven.", "Eight nine. Ten."]
    prepared = prepared_of(texts, splitters=["simple"])
    assert len(calls) == 8  # three texts and one collapsed, each split and searched
    config = pt.PackerConfig.characters(30, 12)
    prepared.evaluate(config)
    prepared.evaluate(config.replace(passage_budget=9, white_space="keep"))
    other = prepared.with_counter("cl100k_base")
    other.evaluate(config.replace(budget=20))
    other.evaluate(config.replace(passage_budget=8, white_space="keep"))
    assert len(calls) == 8


def test_moving_either_budget_splits_compares_and_searches_nothing(monkeypatch):
    prepared = pt.prepare(pt.load_sample(), splitters=["prose"])
    config = pt.PackerConfig(
        budget=700,
        passage_budget=60,
        sentence_selection="query_overlap",
        separator="\n\n",
        jaccard_threshold=0.85,
    )
    before = prepared.evaluate(config).per_query

    def never(*args, **kwargs):
        raise AssertionError("work that belongs into prepare")

    for module, name in (
        (corpus, "SentenceTable"), (corpus, "find_facts"), (selection, "split_sentences"), (selection, "_words"),
        (facts, "find_numbers"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, never)
    for change in ({"budget": 500}, {"passage_budget": 40}, {"order": "ascending"}, {"overflow": "truncate"}):
        assert len(prepared.evaluate(config.replace(**change)).per_query) == len(before)
    pd.testing.assert_frame_equal(prepared.evaluate(config).per_query, before)


def test_the_short_way_over_the_first_ranks_changes_nothing(monkeypatch):
    prepared = pt.prepare(pt.load_sample(), splitters=["simple"])
    shallow = [
        prepared.evaluate(pt.PackerConfig.characters(b, p))
        for b in (300, 900, 4000)
        for p in (None, 120, 320)
    ]
    monkeypatch.setattr(type(prepared), "_depths", lambda self, configs: iter(()))
    fresh = pt.prepare(pt.load_sample(), splitters=["simple"])
    for one in shallow:
        deep = fresh.evaluate(one.config)
        pd.testing.assert_frame_equal(one.per_query, deep.per_query)
        pd.testing.assert_frame_equal(one.decisions, deep.decisions)
        assert np.array_equal(one.keep, deep.keep)


def test_similarity_weights_of_a_run_can_be_taken_to_a_single_pack():
    prepared = pt.prepare(pt.load_sample(), splitters=["prose"])
    config = pt.PackerConfig(budget=500, passage_budget=50, sentence_selection="tfidf", separator="\n\n")
    qid = prepared.qids[3]
    packer = pt.ContextPacker(config, prepared.counter, weights=prepared.weights)
    one = packer.pack_sync(None, prepared.run.chunks(qid), query=prepared.run.queries.at[qid, "text"])
    assert one.text == prepared.evaluate(config).context(qid).text
    assert prepared.evaluate(config).per_query.at[qid, "n_tokens"] == one.n_used
