"""The panel without a browser: words, state, escaping, errors."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import packtools as pt
from packtools.exporting import table_caption
from packtools.screens import Screens
from packtools.view import cost_words
from packtools.words import config_words


@pytest.fixture(scope="module")
def prepared():
    return pt.prepare(pt.load_sample())


def at(prepared, **settings):
    return pt.ExplorerModel(prepared).change(**settings)


def test_a_clear_loss_is_said_with_interval_and_names(prepared):
    first, second, third, *_ = at(prepared, budget=500).sentences
    assert first == "88 % fewer tokens (465 of 3,870 per query)"
    # Nine flips, all one way: McNemar's exact p is 2 / 2**9.
    assert re.fullmatch(r"answer kept −12\.5 points \[−\d+\.\d, −\d\.\d\], n = 72, p = 0\.0039", second)
    assert third.startswith("9 queries lost their answer (")
    assert third.endswith(", …), 0 gained")


def test_a_difference_inside_its_interval_is_no_measurable_change(prepared):
    second = at(prepared, budget=1000).sentences[1]
    assert second.startswith("no measurable change in “answer kept”: −1.4 points [")
    assert second.endswith("0.0], n = 72, p = 1.0000")


def test_a_setting_that_changes_nothing_says_so(prepared):
    view = at(prepared, budget=10**6, order="descending", jaccard_threshold=None, deduplicate=False)
    assert view.sentences == ["This setting changes nothing: every query packs as in the baseline."]
    assert view.title == "This setting changes nothing"


def test_what_the_guard_holds_back_is_counted(prepared):
    assert at(prepared, budget=None).packed.n_held_back == 67
    assert at(prepared, budget=None, protect_differences=False).packed.n_held_back == 0
    # The oracle: near-duplicates that appear in the ledger once the guard is off.
    decided = at(prepared, budget=None, protect_differences=False).packed.decisions["decision"]
    guarded = at(prepared, budget=None).packed.decisions["decision"]
    assert (decided == "near_duplicate_of").sum() > (guarded == "near_duplicate_of").sum()


@pytest.mark.parametrize(
    ("baseline", "here", "words"),
    [
        (100, 100, "as many tokens (100 of 100 per query)"),  # P13: a no-op is no saving
        (100, 29, "71 % fewer tokens (29 of 100 per query)"),
        (100, 0, "100 % fewer tokens (0 of 100 per query)"),
        (0, 0, "no tokens in the baseline (n/a)"),
        (100, 103, "3 % more tokens (103 of 100 per query)"),  # P17: may be negative, and is shown so
    ],
)
def test_savings_are_said_the_right_way_round(baseline, here, words):
    assert cost_words(baseline, here) == words


def test_the_saving_is_weighted_by_tokens():
    # P16: one query at 90 %, nine at 0 %: the headline is the saving over all tokens.
    frame = pd.DataFrame(
        [(f"q{i}", d, r) for i in range(10) for r, d in enumerate(["a", "b"] if i == 0 else ["a"], 1)],
        columns=["qid", "docid", "rank"],
    )
    run = pt.Run.from_frames(frame, {"a": "x" * 10, "b": "y" * 90}, answers={"q0": ["x"]})
    model = pt.ExplorerModel(run, counter="chars", config=pt.PackerConfig(budget=10))
    assert model.view().sentences[0] == "47 % fewer characters (10 of 19 per query)"


def test_queries_are_listed_by_their_loss(prepared):
    frame = at(prepared, budget=500).per_query
    assert frame["delta"].head(9).tolist() == [-1.0] * 9
    assert (frame["delta"].iloc[9:] == 0).all()
    assert len(frame) == 72


def test_a_quality_that_is_not_there_is_one_clear_error(prepared):
    model = pt.ExplorerModel(prepared)
    with pytest.raises(pt.SettingError, match="name 'f1' is unknown"):
        model.set_quality("f1")
    with pytest.raises(pt.MetricUnavailable, match="n_tokens: not a quality of this run"):
        model.set_quality("n_tokens")


def test_settings_round_trip_through_json():
    config = pt.PackerConfig(
        budget=700, jaccard_threshold=0.9, separator="\n—\n", reserve=10, order="ascending"
    )
    assert pt.PackerConfig.from_json(config.to_json()) == config
    with pytest.raises(
        pt.PackerError,
        match=r"from_dict: setting 'budgets' is unknown; known: 'budget'.*Did you mean 'budget'",
    ):
        pt.PackerConfig.from_dict({"budgets": 3})
    with pytest.raises(pt.PackerError, match="from_json: not JSON"):
        pt.PackerConfig.from_json("{")


@pytest.mark.parametrize(
    ("here", "words"),
    [
        (997, "0.3 % fewer tokens"),
        (1, "99.9 % fewer tokens"),
        (995.9, "0.4 % fewer tokens"),
        (1003, "0.3 % more tokens"),
    ],
)
def test_small_savings_are_not_rounded_away(here, words):
    assert cost_words(1000, here).startswith(words)


def test_cutting_passages_is_a_change_and_stands_in_the_caption():
    config = pt.PackerConfig(
        separator="\n\n", deduplicate=False, order="descending", passage_budget=90, sentence_selection="tfidf"
    )
    view = pt.ExplorerModel(pt.load_sample(), config=config).view()
    assert not view.changes_nothing
    assert view.title.startswith("58 % fewer tokens, answer kept \N{MINUS SIGN}25.0 points")
    assert "passages cut to 90 tokens, sentences by TF-IDF" in view.caption


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""
    now = [100.0]
    monkeypatch.setattr("packtools.explorer.time.monotonic", lambda: now[0])
    return now


def budgets(model, *values):
    for value in values:
        model.change(budget=value)


def test_undo_takes_steps_back_and_redo_does_them_again(prepared, clock):
    model = pt.ExplorerModel(prepared)
    first = model.config
    model.change(order="ascending")
    model.change(budget=700)
    model.set_quality("gold_retention")
    assert model.undo().quality == "answer_retention"
    assert model.undo().config == first.replace(order="ascending")
    assert model.undo().config == first
    assert not model.can_undo
    with pytest.raises(pt.SettingError, match=r"undo: there is no step to undo\."):
        model.undo()
    assert model.redo().config.order == "ascending"
    model.redo()
    assert model.redo().quality == "gold_retention"
    assert not model.can_redo
    model.undo()
    model.change(budget=300)  # a new step: what was taken back is gone
    assert not model.can_redo


def test_a_slider_s_moves_within_a_second_are_one_step(prepared, clock):
    model = pt.ExplorerModel(prepared)
    first = model.config.budget
    budgets(model, 900, 800, 700)
    clock[0] += 1.5
    budgets(model, 600, 500)
    assert model.undo().config.budget == 700
    assert model.undo().config.budget == first
    model.redo()
    budgets(model, 650)  # after undo or redo a move begins a step of its own
    assert model.undo().config.budget == 700


def test_a_move_that_changes_nothing_is_no_step(prepared):
    model = pt.ExplorerModel(prepared)
    model.show(model.config)
    model.set_quality(model.state.quality)
    assert not model.can_undo


def test_a_step_that_fails_leaves_everything_as_it_was(prepared):
    model = pt.ExplorerModel(prepared)
    before = model.state
    with pytest.raises(pt.PackerError, match="order 'upward' is unknown"):
        model.change(order="upward")
    with pytest.raises(pt.PackerError, match="'reserve' must be less than the budget"):
        model.change(budget=100, reserve=100)
    with pytest.raises(pt.SettingError, match="'config' must be a PackerConfig"):
        model.show({"budget": 100})
    assert model.state == before
    assert not model.can_undo


def test_six_settings_can_be_pinned_and_any_of_them_compared_with(prepared):
    model = pt.ExplorerModel(prepared)
    for letter, budget in zip("ABCDEF", (250, 500, 1000, 2000, 3000, 4000), strict=True):
        model.change(budget=budget)
        assert model.pin() == letter
    assert model.pin() == "F"  # it is there already
    with pytest.raises(pt.SettingError, match="6 settings are pinned already"):
        model.pin(model.config.replace(budget=10))
    view = model.compare_with("B")
    model.change(budget=500)
    assert model.view().sentences == ["This setting changes nothing: every query packs as in the baseline."]
    assert view.against == "B"
    assert view.baseline.config.budget == 500
    oracle = prepared.evaluate(view.config).per_query["answer_retention"].mean()
    oracle -= prepared.evaluate(view.config.replace(budget=500)).per_query["answer_retention"].mean()
    assert view.row("answer_retention")["delta"] == pytest.approx(oracle)
    assert view.pins.loc["B", ["delta", "ci_low", "ci_high"]].tolist() == [0, 0, 0]
    assert model.unpin("B").against == "everything"
    assert list(model.state.pins) == ["A", "C", "D", "E", "F"]
    with pytest.raises(pt.SettingError, match="pinned setting 'B' is unknown"):
        model.unpin("B")
    assert model.undo().against == "B"
    assert model.pin(model.config.replace(budget=250)) == "A"


def test_a_price_is_said_per_thousand_queries(prepared):
    model = pt.ExplorerModel(prepared)
    view = model.set_price(pt.Price("own", input=2.5))
    mean = view.packed.per_query["n_tokens"].mean()
    full = view.baseline.per_query["n_tokens"].mean()
    assert (
        f"{mean * 2.5 / 1000:,.2f} of {full * 2.5 / 1000:,.2f} USD per 1,000 queries (own, input)"
        in view.sentences
    )
    assert (
        "no price of input tokens in own"
        in model.set_price(pt.Price("own", input=None, output=1.0)).sentences
    )
    assert "no price: this counter counts characters" in model.set_counter("chars").sentences
    assert not any("USD" in line for line in model.set_price(None).sentences)


def test_the_room_above_a_curve_is_there_for_what_can_be_kept(prepared):
    model = pt.ExplorerModel(prepared)
    room = model.room()
    assert (room["best"] >= room["kept"]).all()
    kept = prepared.evaluate(model.config).per_query["answer_retention"].mean()
    assert room.loc[model.config.budget, "kept"] == pytest.approx(kept)
    assert room.index.is_monotonic_increasing
    model.set_quality("answer_position")
    assert model.room() is None


def passages(sizes, *, n=2, wanted=3):
    """A run of n queries with passages of these sizes; the one of rank `wanted` holds the answer."""
    rows, texts = [], {}
    for q in range(n):
        for rank, size in enumerate(sizes, 1):
            rows.append((f"q{q}", f"d{q}_{rank}", rank))
            words = " ".join(f"w{q}x{rank}y{k}" for k in range(400))
            texts[f"d{q}_{rank}"] = (f"answer{q} {words}" if rank == wanted else words)[:size]
    frame = pd.DataFrame(rows, columns=["qid", "docid", "rank"])
    return pt.Run.from_frames(frame, texts, answers={f"q{q}": [f"answer{q}"] for q in range(n)})


def test_the_largest_budget_of_the_curve_drops_nothing():
    # 3 x 404 + 2 x 2 = 1,216 characters: rounded to the nearest budget that is 1,200, and a chunk goes.
    model = pt.ExplorerModel(
        passages([404] * 3), counter="chars", config=pt.PackerConfig(separator="\n\n", budget=None)
    )
    last = model.view().curve.iloc[-1]
    assert last["budget"] == 1250
    assert last["n_tokens"] == 1216
    assert last["answer_retention"] == 1
    assert model.room().iloc[-1]["kept"] == 1


def test_the_room_without_a_budget_is_that_of_a_pack_without_one():
    # Under any budget two of the three equal texts go; without a budget all stay, and nothing is lost.
    frame = pd.DataFrame(
        [(q, f"{q}{k}", k) for q in "ab" for k in (1, 2, 3)], columns=["qid", "docid", "rank"]
    )
    qrels = frame[["qid", "docid"]].assign(label=1)
    run = pt.Run.from_frames(frame, {d: f"text of {d[0]}" for d in frame["docid"]}, qrels=qrels)
    model = pt.ExplorerModel(run, config=pt.PackerConfig(separator="\n\n"))
    assert model.room().iloc[-1]["room"] == pytest.approx(2 / 3)
    assert model.room_unlimited()["room"].tolist() == [0]
    _, said = Screens(model).png(model.view(), "Budget curve")
    assert said.startswith("Without a budget: as good as the best possible")


def test_other_texts_of_the_same_length_are_a_change(prepared):
    start = pt.PackerConfig(jaccard_threshold=0.85, separator="\n")
    model = pt.ExplorerModel(prepared, config=start)
    model.compare_with(model.pin())
    assert model.view().changes_nothing
    view = model.change(separator=" ")
    assert (view.packed.per_query["n_chars"] == view.baseline.per_query["n_chars"]).all()
    assert not view.changes_nothing
    # A line break becomes a space: as long, but another prompt.
    run = pt.Run.from_frames(
        pd.DataFrame({"qid": ["q"], "docid": ["d"], "rank": [1]}), {"d": "one\ntwo"}, answers={"q": ["two"]}
    )
    model = pt.ExplorerModel(run, counter="chars", config=start)
    assert model.view().changes_nothing
    assert model.change(separator=" ").changes_nothing  # there is nothing to separate
    assert not model.change(white_space="collapse").changes_nothing


def test_sentences_of_the_same_length_are_a_change():
    text = "Alpha beta ones. Omega sigma tre."
    run = pt.Run.from_frames(
        pd.DataFrame({"qid": ["q"], "docid": ["d"], "rank": [1]}),
        {"d": text},
        queries={"q": "omega"},
        answers={"q": ["x"]},
    )
    start = pt.PackerConfig(passage_budget=16, unit="chars", separator="\n\n")
    model = pt.ExplorerModel(run, counter="chars", config=start.replace(sentence_selection="head"))
    model.compare_with(model.pin())
    view = model.change(sentence_selection="query_overlap")
    texts = [p.context("q").text for p in (view.baseline, view.packed)]
    assert texts == ["Alpha beta ones.", "Omega sigma tre."]
    assert not view.changes_nothing
    assert model.change(sentence_selection="head").changes_nothing


def test_settings_are_said_in_what_the_counter_counts(prepared):
    model = pt.ExplorerModel(
        prepared, config=pt.PackerConfig(budget=900, passage_budget=90, separator="\n\n")
    )
    model.pin()
    view = model.set_counter("chars")
    assert view.pins.at["A", "words"].startswith("900 characters · ")
    assert "passages cut to 90 characters" in view.caption
    assert "token" not in view.caption + view.pins.at["A", "words"] + table_caption(view)
    assert config_words(model.config.replace(budget=1)).startswith("1 token · ")


def test_two_pinned_settings_never_have_the_same_words():
    start = pt.PackerConfig(budget=900, jaccard_threshold=0.85, separator="\n\n")
    others = [
        {"fill": "rank"}, {"protect_differences": False}, {"separator": "\n"}, {"separator": None},
        {"white_space": "collapse"}, {"same_text": "lowercase"}, {"deduplicate": True}, {"overflow": "truncate"},
    ]  # fmt: skip
    words = [config_words(c) for c in (start, *(start.replace(**other) for other in others))]
    assert len(set(words)) == len(words)
    assert words[0] == "900 tokens · lost in the middle · near-duplicates dropped from 0.85"


def test_a_small_price_is_not_rounded_away(prepared):
    view = pt.ExplorerModel(prepared, price=pt.Price("own", input=0.01)).change(budget=300)
    here, full = (p.per_query["n_tokens"].mean() / 100_000 for p in (view.packed, view.baseline))
    assert f"{here:.4f} of {full:.4f} USD per 1,000 queries (own, input)" in view.sentences


def test_there_and_back_within_a_second_is_no_step(prepared, clock):
    model = pt.ExplorerModel(prepared)
    first = model.config.budget
    budgets(model, 500, first)
    assert not model.can_undo
    budgets(model, 500)
    assert model.undo().config.budget == first


def test_each_pin_is_a_step_of_its_own(prepared, clock):
    model = pt.ExplorerModel(prepared)
    model.pin()
    model.pin(model.config.replace(budget=7))
    model.undo()
    assert list(model.state.pins) == ["A"]


def test_a_price_given_at_the_start_is_no_step(prepared):
    model = pt.ExplorerModel(prepared, price=pt.Price("own", input=1.0))
    assert not model.can_undo
    with pytest.raises(pt.SettingError, match="ExplorerModel: 'price' must be a Price or None; got 3"):
        pt.ExplorerModel(prepared, price=3)
