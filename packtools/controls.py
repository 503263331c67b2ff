"""A control for every setting of the packer: ipywidgets that say a `PackerConfig`, and show one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ipywidgets as w
import numpy as np

from packtools.budget import FILLS
from packtools.config import PackerConfig
from packtools.control_widgets import (
    CONTROLS,
    MOST,
    NONE,
    OFF,
    OR_NONE,
    OWN,
    PLAIN,
    SEPARATORS,
    ControlWidgets,
    say,
)
from packtools.errors import PackerError, fail
from packtools.ordering import ORDERINGS
from packtools.prepared import PreparedRun
from packtools.selecting import check_names
from packtools.selection import SELECTORS
from packtools.sentences import SPLITTERS
from packtools.tradeoff import round_budget
from packtools.words import order_words, selection_words

__all__ = ["SettingControls"]

Handler = Callable[[Any], object]


class SettingControls(ControlWidgets):
    """Show and change every setting of a pack.

    What has no effect under the other settings is switched off, and the foot of its group says why.
    Widgets are made once.

    Parameters
    ----------
    prepared : PreparedRun
        Says how large a context can be, and from where near-duplicates are known.
    config : PackerConfig
        The setting shown first.
    on_change : function of PackerConfig
        Called once for each move of the user that changes the setting.
    guard : function of a handler to a handler, optional
        Wraps what is called with each event, to show its errors. A `PackerError` is raised there if the
        controls contradict each other; they stay as the user set them.

    Attributes
    ----------
    first : ipywidgets.VBox
        What is moved most: budget, order, near-duplicates; 352 px wide.
    more : ipywidgets.VBox
        All others, in groups to open.
    """

    def __init__(
        self,
        prepared: PreparedRun,
        config: PackerConfig,
        *,
        on_change: Callable[[PackerConfig], object],
        guard: Callable[[Handler], Handler] = lambda f: f,
    ) -> None:
        self.prepared, self._on_change = prepared, on_change
        self._quiet = self._wrong = False
        self._shown = config
        super().__init__()
        with self._silence():
            self._set(config, fresh=True)
        for name in CONTROLS:
            getattr(self, name).observe(guard(self._mover(name)), "value")

    # --- building -------------------------------------------------------------------------------------

    # --- what they say, and showing a setting -----------------------------------------------------------

    @property
    def config(self) -> PackerConfig:
        """What the controls say.

        Raises
        ------
        PackerError
            If they contradict each other.
        """
        values: dict[str, Any] = {name: getattr(self, name).value for name in PLAIN}
        values |= {n: None if (v := getattr(self, n).value) is NONE else v for n in OR_NONE}
        return PackerConfig(
            budget=self.budget.value if self.limited.value else None,
            passage_budget=self.passage_budget.value if self.cut.value else None,
            jaccard_threshold=None if self.threshold.value == OFF else self.threshold.value,
            separator=self._separator(),
            **values,
        )

    def show(self, config: PackerConfig) -> None:
        """Let all controls say a setting; `on_change` is not called.

        Where they say it already, a slider that is being dragged is left alone.
        """
        with self._silence():
            if self._says(config):
                self._offer(config)
            else:
                self._set(config, fresh=config.unit != self.unit.value)
        self._shown, self._wrong = config, False

    def follow(self, prepared: PreparedRun) -> None:
        """Take another count of the run: the sliders reach what it needs; no setting changes."""
        self.prepared = prepared
        with self._silence():
            self._offer(self._shown)
            self._offer_thresholds(self.threshold.value)
            self._stretch(self._shown)

    def _says(self, config: PackerConfig) -> bool:
        try:
            return self.config == config
        except PackerError:
            return False

    def _separator(self) -> str | None:
        if self.separator.value is not OWN:
            return None if self.separator.value is NONE else str(self.separator.value)
        typed = self.own_separator.value
        try:
            return str(json.loads('"' + typed.replace('"', '\\"') + '"', strict=False))
        except ValueError:
            rule = r"text in which \n is a line break, \t a tab and \\ a backslash"
            fail(PackerError, "PackerConfig", "separator", rule, typed)

    def _set(self, config: PackerConfig, fresh: bool) -> None:
        """Set every control; where `fresh`, numbers that are not in use are new, too."""
        self._offer(config)
        self.limited.value, self.cut.value = config.budget is not None, config.passage_budget is not None
        self._keep_above(config.reserve)
        for name, suggest in (("budget", self._quarter), ("passage_budget", self._half)):
            value = getattr(config, name)
            if value is not None or fresh:
                _type(getattr(self, name), suggest(config) if value is None else value)
        for name in PLAIN:
            _type(getattr(self, name), getattr(config, name))
        for name in OR_NONE:
            getattr(self, name).value = NONE if (value := getattr(config, name)) is None else value
        self._offer_thresholds(OFF if config.jaccard_threshold is None else config.jaccard_threshold)
        told = NONE if config.separator is None else config.separator
        self.separator.value = told if told in [value for _, value in SEPARATORS] else OWN
        self.own_separator.value = _typed(config.separator or "")
        self._stretch(config)
        self._place_slider()
        self._enable()
        self._tell("")

    def _offer(self, config: PackerConfig) -> None:
        """Offer what is registered now, and what the setting names even if it is not."""
        _fill_in(self.order, ORDERINGS, config.order, order_words)
        _fill_in(self.fill, FILLS, config.fill, _plainly)
        _fill_in(self.splitter, SPLITTERS, config.splitter, _plainly)
        first = [("none: cut at a word", NONE)]
        _fill_in(self.sentence_selection, SELECTORS, config.sentence_selection, selection_words, first)

    def _offer_thresholds(self, at: float) -> None:
        """Set a threshold, one of the hundredths from where near-duplicates are known, or between them."""
        floor = math.ceil(self.prepared.min_jaccard * 100 - 1e-9)
        steps = sorted({*(t / 100 for t in range(floor, 101)), *([] if at == OFF else [at])})
        words = [(f"{t:.2f}" if round(t, 2) == t else repr(t), t) for t in steps]
        for control in (self.threshold, self.threshold_slider):
            _options(control, [*words, ("off", OFF)], at)

    def _stretch(self, config: PackerConfig) -> None:
        """Let the budget slider reach the largest context; larger budgets have the exact field.

        The browser moves a handle that is out of range or between two steps, and reports that as late as
        a move of the user: so both ends are whole steps, and the handle moves while the range is wide.
        """
        self._keep_above(config.reserve)
        slider = self.budget_slider
        most = self._largest(config) + config.reserve
        low = math.floor(math.log10(max(most // 60, config.reserve + 1)) / slider.step) * slider.step
        high = math.ceil(math.log10(most) / slider.step) * slider.step
        if (slider.min, slider.max) != (low, high):
            slider.min, slider.max = min(low, slider.min), max(high, slider.max)
            slider.value = min(max(self.budget.value, 10**low), 10**high)
            slider.min, slider.max = low, high

    def _keep_above(self, reserve: int) -> None:
        """Let no budget be typed that the reserve uses up."""
        self.budget.max = max(MOST, reserve + 1, self.budget.value)
        self.budget.min = reserve + 1

    def _place_slider(self) -> None:
        low, high = 10**self.budget_slider.min, 10**self.budget_slider.max
        self.budget_slider.value = min(max(self.budget.value, low), high)

    def _largest(self, config: PackerConfig) -> int:
        return max(int(self.prepared.full(config.unit, config.separator).max(initial=1)), 2)

    def _quarter(self, config: PackerConfig) -> int:
        """Suggest a budget that saves something."""
        return config.reserve + round_budget(self._largest(config) / 4)

    def _half(self, config: PackerConfig) -> int:
        """Suggest to halve the median passage."""
        sizes = self.prepared.whole_sizes(config.unit)[self.prepared.passage >= 0]
        return round_budget(float(np.median(sizes)) / 2) if sizes.size else 100

    def _enable(self) -> None:
        """Switch off what has no effect, and say why at the foot of its group."""
        why = self._without_effect()
        for name in CONTROLS:
            control = getattr(self, name)
            control.disabled = name in why
            control.tooltip = f"no effect: {why[name]}" if name in why else None
        reasons = {id(getattr(self, name)): reason for name, reason in why.items()}
        for group, foot in self.groups:
            told: dict[str, list[str]] = {}
            for control in group:
                if id(control) in reasons:
                    told.setdefault(reasons[id(control)], []).append(control.description)
            say(foot, "<br>".join(f"No effect, as {why}: {', '.join(names)}." for why, names in told.items()))

    def _without_effect(self) -> dict[str, str]:
        """Name the controls that change nothing under the others, and say why."""
        near = self.threshold.value != OFF
        auto = self.deduplicate.value is NONE
        drops = self.limited.value or near if auto else self.deduplicate.value
        out: dict[str, str] = {}
        if not self.limited.value:
            names = ["budget_slider", "budget", "reserve", "overflow"]
            by_fill = self.order.value in ORDERINGS and ORDERINGS[self.order.value].by == "fill"
            out |= dict.fromkeys(names if by_fill else [*names, "fill"], "there is no limit")
        if not drops:
            out["same_text"] = "same text is kept"
            if not near:
                out["protect_differences"] = "nothing is dropped as a duplicate"
        if not self.cut.value:
            names = ["passage_budget", "sentence_selection", "splitter", "min_sentence_chars"]
            out |= dict.fromkeys(names, "passages are not cut")
        elif self.sentence_selection.value is NONE:
            out |= dict.fromkeys(["splitter", "min_sentence_chars"], "no sentences are chosen")
        if self.separator.value is not OWN:
            out["own_separator"] = "the separator is chosen above"
        return out

    # --- moves of the user ----------------------------------------------------------------------------

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """Take what the controls do meanwhile for no move of the user."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    def _mover(self, name: str) -> Handler:
        follow = getattr(self, f"_{name}_moved", lambda event: True)

        def moved(event: Any) -> None:
            if self._quiet:
                return
            with self._silence():
                if not follow(event):
                    return
                if name != "unit":
                    self._tell("")
                self._enable()
            self._change()

        return moved

    def _change(self) -> None:
        """Report what the controls say if it is another setting, or right again."""
        try:
            config = self.config
            check_names(config)
        except PackerError:
            self._wrong = True
            raise
        if config == self._shown and not self._wrong:
            return
        self._shown, self._wrong = config, False
        with self._silence():
            self._stretch(config)
        self._on_change(config)

    def _budget_slider_moved(self, event: Any) -> bool:
        """Take a move; the browser putting the handle on the nearest step is none."""
        if abs(math.log10(event["new"] / event["old"])) <= 0.501 * self.budget_slider.step:
            return False
        self.budget.value = max(round_budget(event["new"]), self.reserve.value + 1)
        return True

    def _budget_moved(self, event: Any) -> bool:
        self._place_slider()
        return True

    def _threshold_slider_moved(self, event: Any) -> bool:
        self.threshold.value = event["new"]
        return True

    def _threshold_moved(self, event: Any) -> bool:
        self.threshold_slider.value = event["new"]
        return True

    def _separator_moved(self, event: Any) -> bool:
        """Start an own separator with the one before."""
        if event["new"] is OWN:
            self.own_separator.value = "" if event["old"] is NONE else _typed(event["old"])
        return True

    def _unit_moved(self, event: Any) -> bool:
        """Keep the budgets about as large as they were, and say so."""
        separator = self._shown.separator
        sizes = {u: float(self.prepared.full(u, separator).sum()) or 1.0 for u in ("tokens", "chars")}
        ratio = sizes[event["new"]] / sizes[event["old"]]
        self.reserve.value = round(self.reserve.value * ratio)
        budget = max(round_budget(self.budget.value * ratio), self.reserve.value + 1)
        self._keep_above(self.reserve.value)
        _type(self.budget, budget)
        _type(self.passage_budget, round_budget(self.passage_budget.value * ratio))
        self._stretch(self._shown.replace(budget=None, unit=event["new"], reserve=self.reserve.value))
        self._place_slider()
        used = {
            "budget": self.limited.value and self.budget.value,
            "reserve": self.limited.value and self.reserve.value,
            "passages cut to": self.cut.value and self.passage_budget.value,
        }
        told = ", ".join(f"{name} {value:,}" for name, value in used.items() if value)
        mean = f"{sizes['chars'] / sizes['tokens']:.2f} characters a token, as in this run"
        self._tell(f"Scaled by {mean}: {told}." if told else "")
        return True

    def _tell(self, words: str) -> None:
        say(self.note, words)


def _plainly(name: str) -> str:
    return name.replace("_", " ")


def _type(control: Any, value: Any) -> None:
    """Set a value, however large."""
    if isinstance(control, w.BoundedIntText) and value > control.max:
        control.max = value
    control.value = value


def _options(control: Any, options: list[tuple[str, Any]], value: Any) -> None:
    """Set what can be chosen where it differs, and the choice."""
    if control.options != tuple(options):
        control.options = options
    control.value = value


def _fill_in(
    control: w.Dropdown,
    table: Mapping[str, object],
    named: str | None,
    words: Callable[[str], str],
    first: Iterable[tuple[str, Any]] = (),
) -> None:
    """Offer the names of a table, and one that is named or chosen though it left the table."""
    own = [name for name in (named, control.value) if isinstance(name, str)]
    options = [*first, *((words(name), name) for name in dict.fromkeys([*table, *own]))]
    if control.options != tuple(options):
        value = control.value
        control.options = options
        if value is not None:
            control.value = value


def _typed(separator: str) -> str:
    r"""Write a separator as it is typed: a line break is \n; what can't be seen has its number."""
    return "".join(c if c.isprintable() and c != "\\" else json.dumps(c)[1:-1] for c in separator)
