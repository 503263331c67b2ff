"""The panel without a browser: controls, pictures, escaping, errors, exports."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import packtools as pt


@pytest.fixture(scope="module")
def prepared():
    return pt.prepare(pt.load_sample())


@pytest.fixture
def panel(prepared, tmp_path):
    return pt.Explorer(prepared, export_dir=tmp_path)


def test_controls_move_the_model_and_follow_each_other(panel):
    panel.settings.budget.value = 400
    assert panel.model.config.budget == 400
    assert panel.settings.budget_slider.value == pytest.approx(400)
    panel.settings.budget_slider.value = 1987.0
    assert panel.settings.budget.value == panel.model.config.budget == 2000
    panel.settings.threshold.value = 2.0
    assert panel.model.config.jaccard_threshold is None
    panel.settings.threshold_slider.value = 0.7
    assert panel.settings.threshold.value == panel.model.config.jaccard_threshold == 0.7
    panel.settings.order.value = "ascending"
    panel.settings.protect_differences.value = False
    assert (panel.model.config.order, panel.model.config.protect_differences) == ("ascending", False)
    panel.quality.value = "gold_retention"
    assert "relevant passages kept" in panel.answer.value
    panel.counter.value = "chars"
    assert panel.head.value.endswith("chars</b>")
    assert "3,870" not in panel.answer.value


def test_the_browser_putting_the_slider_on_a_step_changes_no_setting(panel):
    # It shows 431 as the nearest of its steps, half a hundredth of a decade away at most.
    panel.settings.budget.value = 431
    panel.settings.budget_slider.value = 431 * 10**0.0049
    assert panel.settings.budget.value == panel.model.config.budget == 431
    panel.settings.budget_slider.value *= 10**-0.01  # one step back by keyboard
    assert panel.model.config.budget == 425


def test_the_number_of_widgets_stays_the_same(panel):
    from ipywidgets.widgets.widget import _instances

    before = len(_instances)
    for budget in (300, 600, 900):
        panel.settings.budget.value = budget
    assert len(_instances) == before > 10


def test_the_panel_leaves_a_picture_and_words_for_viewers_without_widgets(panel):
    bundle = panel._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"}
    assert "fewer tokens" in bundle["text/plain"]


def test_exports_hold_what_the_panel_shows(panel, tmp_path):
    panel.settings.budget.value = 640
    paths = panel.write_exports()
    folder = paths[0].parent
    assert folder.parent == tmp_path
    assert all(p.parent == folder for p in paths)
    stored = json.loads((folder / "settings.json").read_text("utf-8"))
    assert pt.PackerConfig.from_dict(stored["settings"]) == panel.model.config
    table = pd.read_csv(folder / "comparison.csv", index_col="metric")
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
    panel.pin.click()
    panel.screen.value = "Queries"
    made = [
        panel.head, panel.error, panel.answer, panel.picture, panel.deltas, panel.pins, panel.exported,
        panel.status, panel.queries.place, panel.queries.detail,
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


def test_settings_between_the_steps_of_a_control_are_shown(prepared):
    config = pt.PackerConfig(budget=5, jaccard_threshold=0.855, separator="\n\n")
    panel = pt.Explorer(prepared, config=config)
    assert panel.settings.threshold.value == 0.855
    panel.settings.budget.value = 900
    assert panel.model.config.jaccard_threshold == 0.855


def test_the_budget_control_never_goes_below_the_reserve(prepared):
    panel = pt.Explorer(prepared, config=pt.PackerConfig(budget=900, reserve=400, separator="\n\n"))
    assert panel.settings.budget.min == 401
    panel.settings.budget.value = 1
    assert panel.model.config.budget == 401
    panel.settings.budget_slider.value = 10**panel.settings.budget_slider.min
    assert panel.error.value == ""


def test_the_threshold_control_starts_at_what_was_prepared():
    panel = pt.Explorer(pt.prepare(pt.load_sample(), counter="chars", min_jaccard=0.29))
    assert panel.settings.threshold.options[0][1] == 0.29


@pytest.mark.parametrize("name", ["cost$x^$y", "实验−1", "🧠\tbrain", "x" * 300])
def test_any_run_name_can_be_drawn_and_exported(name, tmp_path):
    frame = pd.DataFrame({"qid": ["q"], "docid": ["a"], "rank": [1]})  # P133
    run = pt.Run.from_frames(frame, {"a": "text"}, answers={"q": ["text"]}, name=name)
    panel = pt.Explorer(run, counter="chars", export_dir=tmp_path)
    assert len(panel.write_exports()) == 10


def test_a_run_prepared_from_a_high_threshold_opens():
    prepared = pt.prepare(pt.load_sample(), counter="chars", min_jaccard=0.9)
    assert pt.Explorer(prepared).model.config.jaccard_threshold == 0.9


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
    shown = panel.answer.value + panel.deltas.value + panel.picture.value[:400]
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
    assert full <= 10**panel.settings.budget_slider.max <= 1.024 * full  # a step is 2.3 %
    panel.settings.budget_slider.value = 10**panel.settings.budget_slider.max
    assert panel.settings.budget.value == panel.model.config.budget == pytest.approx(full, rel=0.03)


def test_a_move_computes_once_and_changes_picture_and_words(panel, monkeypatch):
    calls = []
    original = panel.model._view
    monkeypatch.setattr(panel.model, "_view", lambda state: calls.append(1) or original(state))
    picture, words = panel.picture.value, panel.answer.value
    panel.settings.budget_slider.value = 300.0
    panel.settings.threshold.value = 0.6
    assert len(calls) == 2
    assert panel.picture.value != picture
    assert panel.answer.value != words
    assert panel.picture.value.count("<img") == 1  # P121


def test_an_error_shows_in_the_panel_and_the_last_good_figure_stays(panel, monkeypatch):
    picture, words = panel.picture.value, panel.answer.value
    original = panel.model._view
    monkeypatch.setattr(panel.model, "_view", lambda state: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # P119
        panel.settings.budget.value = 444
    assert 'role="alert"' in panel.error.value
    assert "ZeroDivisionError: division by zero" in panel.error.value
    assert "ready" not in panel.status.value
    assert (panel.picture.value, panel.answer.value) == (picture, words)
    monkeypatch.setattr(panel.model, "_view", original)
    panel.settings.budget.value = 445
    assert panel.error.value == ""
    assert panel.model.config.budget == 445


def test_a_contradiction_of_controls_is_said_and_can_be_mended(panel):
    panel.settings.budget.value = 600
    with pytest.raises(pt.PackerError, match="'reserve' must be less than the budget"):
        panel.settings.reserve.value = 700
    assert "&#x27;reserve&#x27; must be less than the budget" in panel.error.value
    assert panel.model.config.reserve == 0
    panel.settings.reserve.value = 100
    assert panel.error.value == ""
    assert panel.model.config.limit == 500


def test_undo_brings_controls_pickers_and_pictures_back(panel):
    before = panel.answer.value
    panel.settings.order.value = "ascending"
    panel.quality.value = "gold_retention"
    panel.undo.click()
    panel.undo.click()
    assert panel.settings.order.value == "lost_in_middle"
    assert panel.quality.value == "answer_retention"
    assert panel.answer.value == before
    assert panel.undo.disabled
    panel.redo.click()
    assert panel.settings.order.value == panel.model.config.order == "ascending"


def test_pinned_settings_are_shown_compared_and_let_go(panel):
    panel.pin.click()
    panel.settings.budget.value = 500
    assert "Pinned settings, against everything" in panel.pins.value
    panel.against.value = "A"
    assert "<th>A</th>" in panel.deltas.value
    panel.go.click()
    assert "This setting changes nothing" in panel.answer.value
    panel.unpin.click()
    assert panel.against.value == "everything"
    assert panel.pins.value == ""
    assert panel.go.disabled
    assert panel.unpin.disabled


def test_each_view_has_its_picture_and_one_image(panel):
    pictures = set()
    for screen in panel.screen.options[:-1]:
        panel.screen.value = screen
        assert panel.picture.value.count("<img") == 1
        pictures.add(panel.picture.value)
    assert len(pictures) == 4


def test_the_queries_view_follows_the_setting_and_is_computed_only_when_seen(panel, monkeypatch):
    asked = []
    original = panel.queries._show
    monkeypatch.setattr(panel.queries, "_show", lambda qid: asked.append(qid) or original(qid))
    panel.settings.budget.value = 500
    assert asked == []
    panel.screen.value = "Queries"
    first = panel.queries.chosen
    lost, _ = panel.view.flips
    assert first in lost
    assert asked == [first]
    panel.settings.budget.value = 4000
    assert asked == [first, first]
    assert panel.queries.chosen == first
    picture = panel.picture.value
    panel.screen.value = "Trade-off"
    assert panel.picture.value != picture  # it missed the last move


def test_presets_and_prices_are_one_step_each(panel):
    panel.preset.value = "character packer, 900 / 320"
    assert panel.model.config == pt.PackerConfig.characters(900, 320)
    assert panel.settings.config == panel.model.config
    panel.price.value = "gpt-4o"
    assert "USD per 1,000 queries (openai/gpt-4o, input)" in panel.answer.value
    with pytest.raises(pt.SettingError, match="unknown"):
        panel.price.value = "no such model"
    assert "no such model" in panel.error.value
    panel.price.value = ""
    assert "USD" not in panel.answer.value


def test_thirty_moves_leave_no_figures_and_no_more_widgets(panel):
    import sys

    from ipywidgets.widgets.widget import _instances

    before = len(_instances)
    for screen in panel.screen.options:
        panel.screen.value = screen
        for budget in range(300, 900, 100):
            panel.settings.budget.value = budget
    panel.pin.click()
    panel.undo.click()
    assert len(_instances) == before > 30
    if "matplotlib.pyplot" in sys.modules:  # P122: a test beside this one may have loaded it
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


def test_the_export_holds_the_figure_on_the_screen(panel):
    panel.screen.value = "Budget curve"
    panel.paper.value = "column"
    names = [path.name for path in panel.write_exports()]
    assert names[:3] == [f"budget_curve_column.{kind}" for kind in ("png", "svg", "pdf")]
    first = [path.read_bytes() for path in panel.write_exports()]
    assert first == [path.read_bytes() for path in panel.write_exports()]  # P134
    assert panel.exported.value.count("<a ") == len(names)


def test_a_setting_registered_by_the_user_can_be_shown(prepared):
    from packtools.ordering import ORDERINGS

    pt.register_ordering("odd first", lambda places: places[::2] + places[1::2])
    try:
        panel = pt.Explorer(prepared, config=pt.PackerConfig(budget=900, order="odd first"))
        assert panel.settings.order.value == "odd first"
    finally:
        del ORDERINGS["odd first"]
