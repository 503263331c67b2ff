"""Controls for every setting: what they say is what is shown, and one move is one call."""

from __future__ import annotations

from dataclasses import fields

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt
from packtools.control_widgets import CONTROLS, NONE, OWN
from packtools.controls import SettingControls
from packtools.tradeoff import SHOWN

START = SHOWN.replace(budget=1000, jaccard_threshold=0.85)


@pytest.fixture(scope="module")
def prepared():
    return pt.prepare(pt.load_sample())


@pytest.fixture(scope="module")
def shown(prepared):
    return SettingControls(prepared, START, on_change=lambda config: pytest.fail("nobody moved a control"))


@pytest.fixture
def controls(prepared):
    """Controls that note each call."""
    calls = []
    made = SettingControls(prepared, START, on_change=calls.append)
    made.calls = calls
    return made


counts = st.none() | st.integers(1, 10**10)
configs = st.builds(
    pt.PackerConfig,
    budget=st.none() | st.integers(500, 10**12),
    unit=st.sampled_from(["tokens", "chars"]),
    passage_budget=counts,
    sentence_selection=st.sampled_from([None, "head", "query_overlap", "tfidf", "mmr"]),
    splitter=st.sampled_from(["prose", "simple"]),
    min_sentence_chars=st.integers(1, 300),
    white_space=st.sampled_from(["keep", "collapse"]),
    deduplicate=st.sampled_from([None, True, False]),
    same_text=st.sampled_from(["normalised", "lowercase"]),
    jaccard_threshold=st.none() | st.floats(0.01, 1.0) | st.sampled_from([0.85, 0.8537, 1.0]),
    protect_differences=st.booleans(),
    fill=st.sampled_from(["score", "rank", "shorter_first", "value_per_token"]),
    overflow=st.sampled_from(["skip", "truncate"]),
    order=st.sampled_from(["lost_in_middle", "descending", "ascending", "fill", "document"]),
    separator=st.none()
    | st.sampled_from(
        [
            "\n\n",
            "\n",
            " ",
            "\n---\n",
            "",
            "\n—\n",
            '"',
            "\\",
            '\\"',
            "\t|\\n",
            "𝄞 \u2028",
            "\N{SYMBOL FOR NULL}none",
            "none",
        ]
    )
    | st.text(st.characters(codec="utf-8"), max_size=5),
    reserve=st.integers(0, 499),
    detect_conflicts=st.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(config=configs)
def test_a_setting_shown_is_the_setting_said(shown, config):
    shown.show(config)
    assert shown.config == config


def test_every_setting_has_a_control(controls):
    names = {f.name for f in fields(pt.PackerConfig)}
    called = {"jaccard_threshold": "threshold"}
    assert {called.get(name, name) for name in names} <= set(CONTROLS)


MOVES = [
    ("budget", 640, {"budget": 640}),
    ("budget_slider", 1987.0, {"budget": 2000}),
    ("limited", False, {"budget": None}),
    ("reserve", 200, {"reserve": 200}),
    ("fill", "shorter_first", {"fill": "shorter_first"}),
    ("overflow", "truncate", {"overflow": "truncate"}),
    ("order", "ascending", {"order": "ascending"}),
    ("threshold", 0.6, {"jaccard_threshold": 0.6}),
    ("threshold", 2.0, {"jaccard_threshold": None}),
    ("threshold_slider", 0.7, {"jaccard_threshold": 0.7}),
    ("protect_differences", False, {"protect_differences": False}),
    ("deduplicate", False, {"deduplicate": False}),
    ("same_text", "lowercase", {"same_text": "lowercase"}),
    ("sentence_selection", "tfidf", {"sentence_selection": "tfidf"}),
    ("splitter", "simple", {"splitter": "simple"}),
    ("min_sentence_chars", 12, {"min_sentence_chars": 12}),
    ("white_space", "collapse", {"white_space": "collapse"}),
    ("separator", " ", {"separator": " "}),
    ("separator", NONE, {"separator": None}),
    ("detect_conflicts", True, {"detect_conflicts": True}),
]


@pytest.mark.parametrize(("name", "value", "change"), MOVES)
def test_a_move_changes_one_setting_and_calls_once(controls, name, value, change):
    getattr(controls, name).value = value
    assert controls.calls == [START.replace(**change)]


def test_slider_and_field_follow_each_other(controls):
    controls.budget.value = 400
    assert controls.budget_slider.value == pytest.approx(400)
    controls.budget_slider.value = 1987.0
    assert controls.budget.value == 2000
    controls.threshold_slider.value = 0.7
    assert controls.threshold.value == 0.7
    controls.threshold.value = 2.0
    assert controls.threshold_slider.value == 2.0


def test_the_browser_putting_a_handle_on_a_step_is_no_move(controls):
    controls.budget.value = 431
    controls.budget_slider.value = 431 * 10**0.0049  # the nearest step, half of a hundredth away at most
    assert [c.budget for c in controls.calls] == [431]


def test_a_separator_of_ones_own_is_typed_with_escapes(controls):
    controls.separator.value = OWN
    assert controls.calls == []  # the field starts with the separator there was
    assert controls.own_separator.value == r"\n\n"
    controls.own_separator.value = r'\n"—"\n'
    assert controls.calls[-1].separator == '\n"—"\n'
    with pytest.raises(pt.PackerError, match=r"'separator' must be text in which \\n is a line break"):
        controls.own_separator.value = "\\"


def test_cutting_starts_at_half_of_a_median_passage(controls, prepared):
    sizes = prepared.whole_sizes("tokens")[prepared.passage >= 0]
    controls.cut.value = True
    (config,) = controls.calls
    assert config.passage_budget == pytest.approx(sorted(sizes.tolist())[len(sizes) // 2] / 2, rel=0.05)
    controls.passage_budget.value = 77
    controls.cut.value = False
    assert [c.passage_budget for c in controls.calls[1:]] == [77, None]


def test_another_unit_scales_the_budgets_and_says_so(controls, prepared):
    controls.unit.value = "chars"
    (config,) = controls.calls
    ratio = prepared.full("chars", "\n\n").sum() / prepared.full("tokens", "\n\n").sum()
    assert config.budget == pytest.approx(1000 * ratio, rel=0.02)
    assert config.unit == "chars"
    assert f"budget {config.budget:,}" in controls.note.value
    assert f"{ratio:.2f} characters a token" in controls.note.value
    controls.order.value = "ascending"
    assert controls.note.value == ""


def test_what_has_no_effect_is_switched_off_with_the_reason(controls):
    assert controls.passage_budget.disabled
    assert controls.passage_budget.tooltip == "no effect: passages are not cut"
    controls.cut.value = True
    assert not controls.passage_budget.disabled
    assert controls.splitter.disabled
    controls.sentence_selection.value = "head"
    assert not controls.splitter.disabled
    controls.limited.value = False
    assert controls.budget.disabled
    assert controls.reserve.disabled
    assert "there is no limit: Budget, Budget, exact" in controls.groups[0][1].value
    controls.limited.value = True
    assert controls.groups[0][1].layout.display == "none"


def test_the_guard_of_differences_counts_for_same_text_too(controls):
    # 3.14 and 314 are the same text without punctuation: the guard keeps both.
    controls.threshold.value = 2.0
    assert not controls.protect_differences.disabled
    controls.deduplicate.value = False
    assert controls.protect_differences.disabled
    assert controls.same_text.disabled


def test_who_is_filled_first_counts_without_a_budget_where_the_prompt_is_as_filled(controls):
    controls.limited.value = False
    assert controls.fill.disabled
    controls.order.value = "fill"
    assert not controls.fill.disabled


def test_the_budget_never_goes_below_the_reserve(controls):
    controls.reserve.value = 400
    assert controls.budget.min == 401
    controls.budget.value = 1
    assert controls.calls[-1].budget == 401


def test_another_counter_moves_the_reach_of_the_slider(prepared, controls):
    chars = prepared.with_counter("chars")
    controls.follow(chars)
    most = chars.full("tokens", "\n\n").max()
    assert most <= 10**controls.budget_slider.max < most * 10**0.0101  # the next whole step
    assert controls.config == START
    assert controls.calls == []


def test_each_choice_of_a_setting_that_may_be_none_is_seen_in_the_browser(controls):
    # A dropdown shows no choice at all where its index is None.
    for name in ("deduplicate", "sentence_selection", "separator"):
        control = getattr(controls, name)
        for place in range(len(control.options)):
            control.set_state({"index": place})  # as the browser sends it
            assert control.index == place, name


def test_leaving_a_threshold_between_the_steps_goes_where_the_user_put_it(prepared):
    calls = []
    start = START.replace(jaccard_threshold=0.8537)
    made = SettingControls(prepared, start, on_change=calls.append)
    made.threshold_slider.value = 0.85
    assert calls == [START]
    assert (made.threshold.value, made.threshold_slider.value) == (0.85, 0.85)


def test_a_reserve_that_leaves_no_room_is_an_error_and_can_be_mended(prepared):
    calls, errors = [], []

    def guard(action):
        def guarded(event):
            try:
                action(event)
            except pt.PackerError as error:
                errors.append(str(error))

        return guarded

    made = SettingControls(prepared, START, on_change=calls.append, guard=guard)
    made.reserve.value = 1000
    assert len(errors) == 1
    assert errors[0].startswith("PackerConfig: 'reserve' must be less than the budget; got reserve 1,000")
    assert (made.reserve.value, made.budget.value, calls) == (1000, 1000, [])
    made.reserve.value = 0  # back to where it was: the caller must know that all is well again
    assert calls == [START]
    made.reserve.value = 1000
    made.budget.value = 1500
    assert calls[1:] == [START.replace(reserve=1000, budget=1500)]


def test_showing_the_last_good_setting_mends_the_controls(controls):
    with pytest.raises(pt.PackerError):
        controls.reserve.value = 1000
    controls.show(START)
    assert controls.config == START
    assert controls.calls == []


def test_a_name_that_is_no_longer_registered_is_an_error(prepared, controls):
    pt.register_ordering("own_order", lambda items: list(items))
    try:
        controls.show(START)  # what was registered since is offered
        assert ("own order", "own_order") in controls.order.options
        controls.order.value = "own_order"
        assert controls.calls == [START.replace(order="own_order")]
    finally:
        pt.ORDERINGS.pop("own_order")
    with pytest.raises(pt.PackerError, match="order 'own_order' is unknown"):
        controls.budget.value = 640
    assert controls.order.value == "own_order"


def test_a_slider_that_is_dragged_is_left_alone(prepared):
    made = SettingControls(prepared, START, on_change=lambda config: made.show(config))
    made.budget.value = 10**6
    reach = (made.budget_slider.min, made.budget_slider.max)
    for value in (2000.0, 1987.0, 1500.5):
        made.budget_slider.value = value
        assert made.budget_slider.value == value
        assert (made.budget_slider.min, made.budget_slider.max) == reach


def test_a_number_that_was_typed_comes_back_when_it_is_switched_on_again(controls):
    controls.budget.value = 640
    controls.limited.value = False
    controls.limited.value = True
    assert [c.budget for c in controls.calls] == [640, None, 640]
    controls.cut.value = True
    controls.passage_budget.value = 77
    controls.cut.value = False
    controls.cut.value = True
    assert controls.calls[-1].passage_budget == 77


def test_a_reserve_in_characters_stands_in_no_way_of_a_budget_in_tokens(prepared):
    calls = []
    start = START.replace(unit="chars", budget=5000, reserve=2000)
    made = SettingControls(prepared, start, on_change=calls.append)
    made.unit.value = "tokens"
    ratio = prepared.full("tokens", "\n\n").sum() / prepared.full("chars", "\n\n").sum()
    (config,) = calls
    assert config.reserve == round(2000 * ratio)
    assert config.budget == pytest.approx(5000 * ratio, abs=25)  # round steps of 50


def test_the_slider_changes_its_range_with_the_handle_inside_and_by_whole_steps(prepared, controls):
    # Else the browser moves the handle and reports that after the kernel has gone on.
    slider, seen = controls.budget_slider, []
    slider.observe(lambda event: seen.append((slider.min, slider.max, slider.value)), ["min", "max", "value"])
    controls.unit.value = "chars"
    controls.show(START)
    controls.show(pt.PackerConfig.characters(900, 320))
    assert len(seen) > 6
    for low, high, value in seen:
        assert 10**low <= value * (1 + 1e-9)
        assert value <= 10**high * (1 + 1e-9)
        assert low / slider.step == pytest.approx(round(low / slider.step))
        assert high / slider.step == pytest.approx(round(high / slider.step))
    values = [value for _, _, value in seen]
    assert len(set(values)) <= 4  # moved once by each of the three, never by a range that left it behind


def test_the_note_on_the_unit_outlives_the_browser_putting_the_handle_on_a_step(controls):
    controls.unit.value = "chars"
    controls.budget_slider.value *= 10**0.004
    assert "Scaled by" in controls.note.value
    assert len(controls.calls) == 1


def test_the_number_of_widgets_stays_the_same(prepared, controls):
    from ipywidgets.widgets.widget import _instances

    before = len(_instances)
    controls.show(pt.PackerConfig.characters(900, 320, separator="%"))
    controls.follow(prepared.with_counter("chars"))
    controls.unit.value = "tokens"
    controls.show(START)
    assert len(_instances) == before > 20


def test_every_control_has_its_words_and_its_class(controls):
    for name in CONTROLS:
        control = getattr(controls, name)
        assert control.description, name
        assert f"packtools-{name.replace('_', '-')}" in control._dom_classes, name


def test_a_run_without_text_has_controls_too():
    frame = pd.DataFrame({"qid": ["q"], "docid": ["a"], "rank": [1]})
    run = pt.prepare(pt.Run.from_frames(frame, {"a": ""}), counter="chars")
    made = SettingControls(run, pt.PackerConfig(), on_change=lambda config: None)
    assert made.config == pt.PackerConfig()
    made.unit.value = "chars"
    assert made.config == pt.PackerConfig(unit="chars")
