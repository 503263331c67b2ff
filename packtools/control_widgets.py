"""The widgets of the packer's settings, without what they mean: `controls` gives them that."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import ipywidgets as w

__all__ = ["ControlWidgets"]

WIDTH = "352px"
OFF = 2.0
"""Stands for "no threshold" in the controls, at the end beyond 1.00."""
MOST = 1_000_000_000


class Special(Enum):
    """Stand for what no name and no text may stand for; a dropdown shows None as nothing chosen."""

    NONE = "none"
    OWN = "own"


NONE, OWN = Special.NONE, Special.OWN
SEPARATORS = [
    ("blank line", "\n\n"),
    ("line break", "\n"),
    ("space", " "),
    ("line of dashes", "\n---\n"),
    ("empty", ""),
    ("none: chunks charged alone", NONE),
    ("own, typed below", OWN),
]
PLAIN = (
    "unit", "reserve", "fill", "overflow", "order", "protect_differences", "same_text", "splitter",
    "min_sentence_chars", "white_space", "detect_conflicts",
)  # fmt: skip
OR_NONE = ("deduplicate", "sentence_selection")
CONTROLS = (
    "budget_slider", "budget", "limited", "threshold_slider", "threshold", "cut", "passage_budget",
    "separator", "own_separator", *PLAIN, *OR_NONE,
)  # fmt: skip


class ControlWidgets:
    """Make a control for every setting and group them; most options are filled in later.

    Each control has the class ``packtools-`` and its name with dashes.

    Attributes
    ----------
    first : ipywidgets.VBox
        What is moved most: budget, order, near-duplicates.
    more : ipywidgets.VBox
        All others, in groups to open.
    note : ipywidgets.HTML
        For a word on the last move.
    groups : list of pairs of a list of controls and an ipywidgets.HTML
        What stands together, and its foot.
    """

    def __init__(self) -> None:
        self._make_first()
        self._make_more()
        self.groups: list[tuple[list[Any], w.HTML]] = []
        self._arrange()
        for name in CONTROLS:
            getattr(self, name).add_class(f"packtools-{name.replace('_', '-')}")

    def _make_first(self) -> None:
        self.budget_slider = w.FloatLogSlider(
            base=10, min=0, max=1, step=0.01, readout=False, description="Budget", **_wide()
        )
        self.budget = _count("Budget, exact")
        self.limited = _tick("limit the prompt to the budget")
        self.order = _pick("Order")
        self.threshold_slider = w.SelectionSlider(
            options=[("off", OFF)], description="Near-duplicates", readout=False, **_wide()
        )
        self.threshold = _pick("Dropped from", [("off", OFF)])
        self.protect_differences = _tick("keep those that differ in a number or date")
        self.note = w.HTML(layout=w.Layout(width=WIDTH))

    def _make_more(self) -> None:
        self.unit = _pick("Counted in", [("tokens", "tokens"), ("characters", "chars")])
        self.reserve = _count("Reserve", 0)
        self.fill = _pick("Filled by")
        self.overflow = _pick(
            "Too long", [("left out, the next tried", "skip"), ("cut to fit, then stop", "truncate")]
        )
        self.deduplicate = _pick(
            "Same text", [("dropped if anything is", NONE), ("dropped", True), ("kept", False)]
        )
        self.same_text = _pick(
            "Same means", [("equal without punctuation", "normalised"), ("equal in lower case", "lowercase")]
        )
        self.cut = _tick("cut long passages")
        self.passage_budget = _count("Cut to")
        self.sentence_selection = _pick("Sentences by")
        self.splitter = _pick("Split as")
        self.min_sentence_chars = _count("Least length")
        self.white_space = _pick("White space", [("kept", "keep"), ("runs become one space", "collapse")])
        self.separator = _pick("Separator", SEPARATORS)
        self.own_separator = w.Text(
            description="Own separator", placeholder=r"\n is a line break", continuous_update=False, **_wide()
        )
        self.detect_conflicts = _tick("look for chunks that contradict each other")

    def _arrange(self) -> None:
        groups = {
            "": [
                self.budget_slider, self.budget, self.limited, self.order, self.threshold_slider,
                self.threshold, self.protect_differences,
            ],
            "More on the budget": [self.unit, self.reserve, self.fill, self.overflow],
            "Same text": [self.deduplicate, self.same_text],
            "Long passages": [
                self.cut, self.passage_budget, self.sentence_selection, self.splitter,
                self.min_sentence_chars, self.white_space,
            ],
            "Separator and conflicts": [self.separator, self.own_separator, self.detect_conflicts],
        }  # fmt: skip
        self.groups = [(group, w.HTML(layout=w.Layout(width=WIDTH))) for group in groups.values()]
        (first, foot), *others = self.groups
        self.first = w.VBox([*first, foot, self.note])
        self.more = w.VBox(
            [
                part
                for title, (group, below) in zip(list(groups)[1:], others, strict=True)
                for part in _fold(title, w.VBox([*group, below]))
            ]
        )
        self.more.add_class("packtools-more")


def _wide() -> dict[str, Any]:
    return {"layout": w.Layout(width=WIDTH), "style": {"description_width": "104px"}}


def _pick(description: str, options: Iterable[Any] = ()) -> w.Dropdown:
    return w.Dropdown(options=list(options), description=description, **_wide())


def _count(description: str, least: int = 1) -> w.BoundedIntText:
    return w.BoundedIntText(value=least, min=least, max=MOST, description=description, **_wide())


def _tick(description: str) -> w.Checkbox:
    return w.Checkbox(description=description, indent=False, layout=w.Layout(width=WIDTH))


def _fold(title: str, box: w.VBox) -> tuple[w.ToggleButton, w.VBox]:
    """Put a group under a button that opens it; the headers of an Accordion are out of Tab's reach."""
    button = w.ToggleButton(layout=w.Layout(width=WIDTH))

    def turn(event: Any = None) -> None:
        button.description = f"{'▾' if button.value else '▸'} {title}"
        box.layout.display = None if button.value else "none"

    turn()
    button.observe(turn, "value")
    return button, box


def say(place: w.HTML, words: str) -> None:
    """Show quiet words, or take no room."""
    place.value = f'<div class="quiet" style="line-height:1.4">{words}</div>' if words else ""
    place.layout.display = None if words else "none"
