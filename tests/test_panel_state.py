"""The panel without a browser: controls, model and picture stay in step."""

from __future__ import annotations

import pandas as pd
import pytest

import packtools as pt


@pytest.fixture(scope="module")
def prepared():
    return pt.prepare(pt.load_sample())


@pytest.fixture
def panel(prepared, tmp_path):
    return pt.Explorer(prepared, export_dir=tmp_path)


def test_flips_are_not_counted_where_no_answer_is_scored():
    frame = pd.DataFrame({"qid": ["q", "q"], "docid": ["a", "b"], "rank": [1, 2]})
    texts = {"a": "one text", "b": "another"}
    run = pt.Run.from_frames(frame, texts, answers={"q": ["nowhere to be found"]})
    model = pt.ExplorerModel(run, counter="chars", config=pt.PackerConfig(budget=9))
    assert model.state.quality == "n_chunks"  # not an empty figure
    said = model.set_quality("answer_retention").sentences
    assert "answer kept: not scored (n = 0)" in said
    assert not any("lost" in line for line in said)


def test_undo_of_a_counter_takes_the_sliders_back(panel):
    reach = panel.settings.budget_slider.min, panel.settings.budget_slider.max
    panel.counter.value = "chars"
    assert (panel.settings.budget_slider.min, panel.settings.budget_slider.max) != reach
    panel.undo.click()
    assert (panel.settings.budget_slider.min, panel.settings.budget_slider.max) == reach
    panel.settings.unit.value = "chars"
    assert "4.25 characters a token" in panel.settings.note.value
    panel.undo.click()
    panel.counter.value = "chars"
    panel.undo.click()
    panel.redo.click()
    assert panel.settings.prepared is panel.model.prepared


class Words:
    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def test_an_own_counter_can_be_chosen_again():
    panel = pt.Explorer(pt.load_sample(), counter=Words())
    said = panel.answer.value
    panel.counter.value = "chars"
    assert "words" in panel.counter.options
    panel.counter.value = "words"
    assert panel.answer.value == said


def test_a_picker_goes_back_where_its_choice_fails():
    frame = pd.DataFrame({"qid": ["q", "q"], "docid": ["a", "b"], "rank": [1, 2]})
    panel = pt.Explorer(pt.Run.from_frames(frame, {"a": "one text", "b": "another"}), counter="chars")
    for _ in range(2):  # the second choice is an event, too
        with pytest.raises(pt.PackerError, match="needs the text of the query"):
            panel.preset.value = "sentences by query overlap"
        assert panel.preset.value == ""
        assert "needs the text of the query" in panel.error.value
        panel.error.value = ""


def test_a_picture_that_fails_leaves_the_model_where_the_panel_is(panel, monkeypatch):
    panel.screen.value = "Budget curve"
    panel.settings.budget.value = 900
    before = panel.model.state, panel.view, panel.answer.value

    def broken(*given, **more):
        raise MemoryError("too large")

    with monkeypatch.context() as patched:
        patched.setattr("packtools.explorer.headroom", broken)
        with pytest.raises(MemoryError):
            panel.settings.budget.value = 321
    assert (panel.model.state, panel.view, panel.answer.value) == before
    assert panel.view.config.budget == 900
    panel.undo.click()
    assert panel.model.config.budget == 1150
    assert panel.error.value == ""


def test_a_model_moved_by_a_cell_is_shown_with_the_next_move(panel):
    panel.model.change(budget=300)
    panel.screen.value = "Budget curve"
    assert panel.view.config.budget == panel.settings.budget.value == 300
    panel.model.change(budget=400)
    panel.settings.order.value = "ascending"
    assert (panel.model.config.budget, panel.view.config.order) == (400, "ascending")
    assert panel.settings.budget.value == 400
