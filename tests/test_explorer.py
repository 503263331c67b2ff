"""The panel without a browser: words, state, escaping, errors."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

import packtools as pt
from packtools.explorer import cost_words


@pytest.fixture(scope="module")
def prepared():
    return pt.prepare(pt.load_sample())


@pytest.fixture
def panel(prepared, tmp_path):
    return pt.Explorer(prepared, export_dir=tmp_path)


def at(prepared, **settings):
    model = pt.ExplorerModel(prepared)
    model.config = model.config.replace(**settings)
    return model.view()


def test_a_clear_loss_is_said_with_interval_and_names(prepared):
    first, second, third, *_ = at(prepared, budget=500).sentences
    assert first == "88 % fewer tokens (465 of 3,870 per query)"
    assert re.fullmatch(r"answer kept −12\.5 points \[−\d+\.\d, −\d\.\d\], n = 72", second)
    assert third.startswith("9 queries lost their answer (")
    assert third.endswith(", …), 0 gained")


def test_a_difference_inside_its_interval_is_no_measurable_change(prepared):
    second = at(prepared, budget=1000).sentences[1]
    assert second.startswith("no measurable change in “answer kept”: −1.4 points [")
    assert second.endswith("0.0], n = 72")


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


def test_controls_move_the_model_and_follow_each_other(panel):
    panel.budget.value = 400
    assert panel.model.config.budget == 400
    assert panel.budget_slider.value == pytest.approx(400)
    panel.budget_slider.value = 1987.0
    assert panel.budget.value == panel.model.config.budget == 2000
    panel.threshold.value = 2.0
    assert panel.model.config.jaccard_threshold is None
    panel.threshold_slider.value = 0.7
    assert panel.threshold.value == panel.model.config.jaccard_threshold == 0.7
    panel.order.value = "ascending"
    panel.protect.value = False
    assert (panel.model.config.order, panel.model.config.protect_differences) == ("ascending", False)
    panel.quality.value = "gold_retention"
    assert "relevant passages kept" in panel.answer.value
    panel.counter.value = "chars"
    assert panel.head.value.endswith("chars</b>")
    assert "3,870" not in panel.answer.value


def test_the_browser_putting_the_slider_on_a_step_changes_no_setting(panel):
    # It shows 431 as the nearest of its steps, half a hundredth of a decade away at most.
    panel.budget.value = 431
    panel.budget_slider.value = 431 * 10**0.0049
    assert panel.budget.value == panel.model.config.budget == 431
    panel.budget_slider.value *= 10**-0.01  # one step back by keyboard
    assert panel.model.config.budget == 425


def test_a_move_computes_once_and_changes_picture_and_words(panel, monkeypatch):
    calls = []
    original = panel.model.view
    monkeypatch.setattr(panel.model, "view", lambda: calls.append(1) or original())
    picture, words = panel.picture.value, panel.answer.value
    panel.budget_slider.value = 300.0
    panel.threshold.value = 0.6
    assert len(calls) == 2
    assert panel.picture.value != picture
    assert panel.answer.value != words
    assert panel.picture.value.count("<img") == 1


def test_an_error_shows_in_the_panel_and_the_last_good_figure_stays(panel, monkeypatch):
    picture = panel.picture.value

    def broken():
        return 1 / 0

    original = panel.model.view
    monkeypatch.setattr(panel.model, "view", broken)
    with pytest.raises(ZeroDivisionError):  # P119
        panel.budget.value = 444
    assert 'role="alert"' in panel.error.value
    assert "ZeroDivisionError: division by zero" in panel.error.value
    assert panel.picture.value == picture
    monkeypatch.setattr(panel.model, "view", original)
    panel.budget.value = 445
    assert panel.error.value == ""


def test_the_number_of_widgets_stays_the_same(panel):
    from ipywidgets.widgets.widget import _instances

    before = len(_instances)
    for budget in (300, 600, 900):
        panel.budget.value = budget
    assert len(_instances) == before > 10


def test_the_panel_leaves_a_picture_and_words_for_viewers_without_widgets(panel):
    bundle = panel._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"}
    assert "fewer tokens" in bundle["text/plain"]


def test_exports_hold_what_the_panel_shows(panel, tmp_path):
    panel.budget.value = 640
    paths = panel.write_exports()
    assert all(p.parent == tmp_path / "sample-bm25" for p in paths)
    stored = json.loads((tmp_path / "sample-bm25" / "settings.json").read_text("utf-8"))
    assert pt.PackerConfig.from_dict(stored["settings"]) == panel.model.config
    table = pd.read_csv(tmp_path / "sample-bm25" / "comparison.csv", index_col="metric")
    assert f"{table.at['n_tokens', 'candidate']:,.0f} of 3,870" in panel.answer.value
    assert "settings.json" in panel.exported.value


HOSTILE = "<script>alert('x')</script>&\"<b>"


def test_text_from_files_is_escaped_wherever_html_is_made(tmp_path):
    frame = pd.DataFrame({"qid": [HOSTILE] * 2, "docid": [HOSTILE, "d"], "rank": [1, 2]})
    run = pt.Run.from_frames(
        frame,
        {HOSTILE: HOSTILE, "d": HOSTILE},
        queries={HOSTILE: HOSTILE},
        answers={HOSTILE: ["alert"]},
        name=HOSTILE,
    )
    panel = pt.Explorer(run, counter="chars", config=pt.PackerConfig(budget=5), export_dir=tmp_path)
    panel.write_exports()
    made = [
        panel.head, panel.error, panel.answer, panel.picture, panel.deltas, panel.queries, panel.exported, panel.status,
    ]  # fmt: skip
    html = "".join(w.value for w in made)
    html += (
        run._repr_html_() + panel.view.packed._repr_html_() + panel.view.packed.context(HOSTILE)._repr_html_()
    )
    assert "<script" not in html
    assert '<b>"' not in html
    assert "&lt;script&gt;" in html  # P79


def test_a_run_without_labels_says_why_and_shows_cost():
    frame = pd.DataFrame({"qid": ["q", "q"], "docid": ["a", "b"], "rank": [1, 2]})
    panel = pt.Explorer(pt.Run.from_frames(frame, {"a": "one text", "b": "another"}), counter="chars")
    assert "relevant passages kept: no qrels in this run" in panel.deltas.value
    assert "answer kept: no answers in this run" in panel.deltas.value
    assert panel.quality.options == (("chunks", "n_chunks"),)


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


def test_settings_between_the_steps_of_a_control_are_shown(prepared):
    config = pt.PackerConfig(budget=5, jaccard_threshold=0.855, separator="\n\n")
    panel = pt.Explorer(prepared, config=config)
    assert panel.threshold.value == 0.855
    panel.budget.value = 900
    assert panel.model.config.jaccard_threshold == 0.855


def test_the_budget_control_never_goes_below_the_reserve(prepared):
    panel = pt.Explorer(prepared, config=pt.PackerConfig(budget=900, reserve=400, separator="\n\n"))
    assert panel.budget.min == 401
    panel.budget.value = 1
    assert panel.model.config.budget == 401
    panel.budget_slider.value = 10**panel.budget_slider.min
    assert panel.error.value == ""


def test_the_threshold_control_starts_at_what_was_prepared():
    panel = pt.Explorer(pt.prepare(pt.load_sample(), counter="chars", min_jaccard=0.29))
    assert panel.threshold.options[0][1] == 0.29


@pytest.mark.parametrize("name", ["cost$x^$y", "实验−1", "🧠\tbrain", "x" * 300])
def test_any_run_name_can_be_drawn_and_exported(name, tmp_path):
    frame = pd.DataFrame({"qid": ["q"], "docid": ["a"], "rank": [1]})  # P133
    run = pt.Run.from_frames(frame, {"a": "text"}, answers={"q": ["text"]}, name=name)
    panel = pt.Explorer(run, counter="chars", export_dir=tmp_path)
    assert len(panel.write_exports()) == 7


def test_a_run_prepared_from_a_high_threshold_opens():
    prepared = pt.prepare(pt.load_sample(), counter="chars", min_jaccard=0.9)
    assert pt.Explorer(prepared).model.config.jaccard_threshold == 0.9


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


def test_a_baseline_of_ones_own_is_the_one_in_words_table_and_figure(prepared):
    base = pt.PackerConfig(budget=2000, separator="\n\n", order="descending")
    model = pt.ExplorerModel(prepared, baseline=base, config=base.replace(budget=500))
    view = model.view()
    mean = prepared.evaluate(base).per_query["n_tokens"].mean()
    assert view.curve.index[0] == "baseline"
    assert view.curve.iloc[0]["n_tokens"] == view.row("n_tokens")["baseline"] == mean
    at_500 = pt.trade_off(prepared, base, [500], quality=[view.quality], baseline=view.baseline).iloc[1]
    assert at_500[f"{view.quality}_ci_low"] == view.here["ci_low"]
    assert view.caption.endswith("difference to baseline")
    panel = pt.Explorer(prepared, baseline=base)
    assert "<th>baseline</th>" in panel.deltas.value
    assert "<th>everything</th>" not in panel.deltas.value
    assert "<th>everything</th>" in pt.Explorer(prepared).deltas.value


def test_characters_are_never_called_tokens(prepared):
    panel = pt.Explorer(prepared)
    panel.counter.value = "chars"
    shown = panel.answer.value + panel.deltas.value + panel.queries.value + panel.picture.value[:400]
    assert "fewer characters" in shown
    assert "tokens" not in shown
    figure = panel.view.figure()
    assert figure.axes[0].get_xlabel() == "characters per query, mean (log scale)"
    assert all("tokens" not in text.get_text() for text in [*figure.texts, *figure.axes[0].texts])
    panel.counter.value = "o200k_base"
    assert "fewer tokens" in panel.answer.value


def test_the_budget_slider_reaches_the_full_context_of_every_counter(prepared):
    panel = pt.Explorer(prepared)
    panel.counter.value = "chars"
    full = prepared.with_counter("chars").full("tokens", "\n\n").max()
    assert 10**panel.budget_slider.max == pytest.approx(full)
    panel.budget_slider.value = 10**panel.budget_slider.max
    assert panel.budget.value == panel.model.config.budget == pytest.approx(full, rel=0.03)


def test_cutting_passages_is_a_change_and_stands_in_the_caption():
    config = pt.PackerConfig(
        separator="\n\n", deduplicate=False, order="descending", passage_budget=90, sentence_selection="tfidf"
    )
    view = pt.ExplorerModel(pt.load_sample(), config=config).view()
    assert not view.changes_nothing
    assert view.title.startswith("58 % fewer tokens, answer kept \N{MINUS SIGN}25.0 points")
    assert "passages cut to 90 tokens, sentences by TF-IDF" in view.caption
