"""The state of the panel: a setting, what it is compared with, what is pinned, and the way back.

Plain Python without widgets: `widgets` only shows it, and tests read it directly.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from packtools import metrics
from packtools.config import PackerConfig
from packtools.errors import MetricUnavailable, SettingError, fail, unknown
from packtools.money import Price
from packtools.oracle import MEASURED, headroom
from packtools.packed import PackedRun
from packtools.prepared import PreparedRun, prepare
from packtools.presets import START, preset
from packtools.runs.model import Run
from packtools.tradeoff import SHOWN, available, baseline_name, ladder, round_budget, trade_off, unpacked
from packtools.view import View

__all__ = ["ExplorerModel"]

COUNTERS = ("cl100k_base", "o200k_base", "chars")
PIN_NAMES = "ABCDEF"
"""Pinned settings are called by these letters; there are at most so many."""
ONE_MOVE = 1.0
"""Seconds between two changes of the same setting that undo takes back together."""
STEPS_KEPT = 200
STEPS = 12
"""Budgets of the curve."""
KEPT = 30
"""Results of each kind that are remembered."""


@dataclass(frozen=True)
class State:
    """Hold what undo brings back.

    Parameters
    ----------
    config : PackerConfig
    quality : str
        Metric on the vertical axis.
    counter : str
    price : Price or None
        What tokens cost.
    against : str
        "everything", "baseline", or the letter of a pinned setting.
    pins : mapping of str to PackerConfig
    """

    config: PackerConfig
    quality: str
    counter: str
    price: Price | None = None
    against: str = "everything"
    pins: Mapping[str, PackerConfig] = field(default_factory=dict)


class ExplorerModel:
    """Hold a prepared run and the setting that is being looked at.

    Parameters
    ----------
    run : Run, PreparedRun or path
    counter : str, default "cl100k_base"
        Used if the run is not prepared yet.
    config : PackerConfig or None, default None
        The setting to start from; None packs into a quarter of the full context.
    baseline : PackerConfig or None, default None
        What settings are compared with at first; None is the unpacked run.
    price : Price or None, default None
        What tokens cost.

    Attributes
    ----------
    qualities : dict of str to str
        Metrics for the vertical axis and their words.
    state : State
        Setting, quality metric, counter, price, pinned settings and the one compared with.

    Examples
    --------
    >>> from packtools import load_sample
    >>> model = ExplorerModel(load_sample())
    >>> view = model.change(budget=500)
    >>> view.sentences[0], model.undo().config.budget
    ('88 % fewer tokens (465 of 3,870 per query)', 1150)
    """

    def __init__(
        self,
        run: Run | PreparedRun | str | Path,
        *,
        counter: str = "cl100k_base",
        config: PackerConfig | None = None,
        baseline: PackerConfig | None = None,
        price: Price | None = None,
    ) -> None:
        _check_price("ExplorerModel", price)
        prepared = run if isinstance(run, PreparedRun) else prepare(run, counter=counter)
        self._counted = {prepared.counter.name: prepared}
        self._curves: dict[tuple[Any, ...], pd.DataFrame] = {}
        self._rooms: dict[tuple[Any, ...], pd.DataFrame] = {}
        self._packed: dict[tuple[str, PackerConfig], PackedRun] = {}
        self.baseline = baseline
        if config is None:
            config = preset(START, budget=start_budget(prepared), min_jaccard=prepared.min_jaccard)
        against = "everything" if baseline is None else "baseline"
        full = self._remembered(prepared.counter.name, unpacked(config))
        self.qualities = _qualities(prepared, full)
        quality = next(iter(self.qualities))
        self.state = State(config, quality, prepared.counter.name, price, against)
        self._past: list[State] = []
        self._future: list[State] = []
        self._last: tuple[frozenset[str], float] = (frozenset(), 0.0)

    @property
    def prepared(self) -> PreparedRun:
        """The run as the chosen counter counts it."""
        return self._counted[self.state.counter]

    @property
    def counters(self) -> list[str]:
        """Names of the counters that can be chosen: the usual ones, and each that has counted the run."""
        return list(dict.fromkeys([*COUNTERS, *(p.counter.name for p in self._counted.values())]))

    @property
    def config(self) -> PackerConfig:
        """The setting."""
        return self.state.config

    def largest_context(self, config: PackerConfig) -> int:
        """Give the size of the largest full context, in the unit of a setting."""
        return max(int(self.prepared.full(config.unit, config.separator).max(initial=1)), 2)

    # --- changes: each gives the new view, or raises and leaves everything as it was ----------------

    def show(self, config: PackerConfig) -> View:
        """Look at another setting."""
        if not isinstance(config, PackerConfig):
            fail(SettingError, "ExplorerModel.show", "config", "a PackerConfig", config)
        old, new = self.config.to_dict(), config.to_dict()
        changed = {name for name in new if new[name] != old[name]}
        return self._move(replace(self.state, config=config), changed)

    def change(self, **settings: Any) -> View:
        """Change some settings of the packer."""
        return self.show(self.config.replace(**settings))

    def set_quality(self, name: str) -> View:
        """Choose the metric of the vertical axis."""
        if name not in self.qualities:
            metrics.need(name, self.prepared.unavailable)
            raise MetricUnavailable(f"{name}: not a quality of this run; known: {', '.join(self.qualities)}.")
        return self._move(replace(self.state, quality=name), {"quality"})

    def set_counter(self, name: str) -> View:
        """Count the run with another counter; each is counted once."""
        if name not in self._counted:
            counted = self.prepared.with_counter(name)
            self._counted[name] = self._counted.get(counted.counter.name, counted)
            self._counted[counted.counter.name] = self._counted[name]
        name = self._counted[name].counter.name
        return self._move(replace(self.state, counter=name), {"counter"})

    def set_price(self, price: Price | None) -> View:
        """Choose what tokens cost; None shows no money."""
        _check_price("ExplorerModel.set_price", price)
        return self._move(replace(self.state, price=price), {"price"})

    def pin(self, config: PackerConfig | None = None) -> str:
        """Keep a setting to compare with, at most six; give its letter.

        Parameters
        ----------
        config : PackerConfig or None, default None
            None is the setting that is shown. One that is pinned already keeps its letter.

        Raises
        ------
        SettingError
            If six are pinned.
        """
        config = self.config if config is None else config
        pins = self.state.pins
        for name, pinned in pins.items():
            if pinned == config:
                return name
        free = [letter for letter in PIN_NAMES if letter not in pins]
        if not free:
            raise SettingError(f"pin: {len(PIN_NAMES)} settings are pinned already. Unpin one of them first.")
        self._move(replace(self.state, pins={**pins, free[0]: config}), {f"pin {free[0]}"})
        return free[0]

    def unpin(self, name: str) -> View:
        """Let a pinned setting go; if it was compared with, the first baseline takes its place."""
        self._check_pin("unpin", name)
        pins = {letter: config for letter, config in self.state.pins.items() if letter != name}
        against = self._first_baseline if self.state.against == name else self.state.against
        return self._move(replace(self.state, pins=pins, against=against), {f"pin {name}"})

    def compare_with(self, name: str) -> View:
        """Choose what settings are compared with: "everything", "baseline" or a pinned letter."""
        if name not in self.baselines:
            unknown(SettingError, "compare_with", "baseline", name, self.baselines)
        return self._move(replace(self.state, against=name), {"against"})

    @property
    def baselines(self) -> list[str]:
        """What can be compared with."""
        own = [] if self.baseline is None else ["baseline"]
        return ["everything", *own, *self.state.pins]

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to take back."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """Whether there is a step that was taken back."""
        return bool(self._future)

    def undo(self) -> View:
        """Take back the last step; a slider's moves within a second of each other are one."""
        return self._step(self._past, self._future, "undo")

    def redo(self) -> View:
        """Do again what was taken back."""
        return self._step(self._future, self._past, "redo")

    def _step(self, source: list[State], target: list[State], what: str) -> View:
        if not source:
            raise SettingError(f"{what}: there is no step to {what}.")
        view = self._view(source[-1])
        target.append(self.state)
        self.state = source.pop()
        self._last = (frozenset(), 0.0)
        return view

    def _move(self, state: State, changed: set[str]) -> View:
        """Look at a new state; remember the old one unless this goes on with the last move."""
        view = self._view(state)
        if state == self.state:
            return view
        now = time.monotonic()
        what, when = self._last
        if not (what and what == changed and now - when < ONE_MOVE):
            self._past = [*self._past[-STEPS_KEPT + 1 :], self.state]
        elif self._past and self._past[-1] == state:  # there and back again is no step
            self._past = self._past[:-1]
            changed = set()
        self._future = []
        self._last = (frozenset(changed), now)
        self.state = state
        return view

    def _check_pin(self, where: str, name: str) -> None:
        if name not in self.state.pins:
            unknown(SettingError, where, "pinned setting", name, self.state.pins)

    @property
    def _first_baseline(self) -> str:
        return "everything" if self.baseline is None else "baseline"

    # --- results --------------------------------------------------------------------------------------

    def view(self) -> View:
        """Evaluate the current state."""
        return self._view(self.state)

    def mark(self) -> tuple[State, list[State], list[State]]:
        """Give what `go_back` takes to be again where the model is now."""
        return self.state, list(self._past), list(self._future)

    def go_back(self, mark: tuple[State, list[State], list[State]]) -> None:
        """Be again where the model was, with the steps that it had."""
        (self.state, self._past, self._future), self._last = mark, (frozenset(), 0.0)

    def _view(self, state: State) -> View:
        prepared = self._counted[state.counter]
        packed = prepared.evaluate(state.config)
        base = self._baseline_of(state)
        name = baseline_name(base.config) if state.against in ("everything", "baseline") else state.against
        pinned = {letter: self._remembered(state.counter, config) for letter, config in state.pins.items()}
        curve = self._curve(state, base)
        curve = curve.rename(index={curve.index[0]: name})
        return View(base, packed, state.quality, curve, name, pinned, state.price)

    def _baseline_of(self, state: State) -> PackedRun:
        if state.against in state.pins:
            config = state.pins[state.against]
        else:
            own = self.baseline if state.against == "baseline" else None
            config = own or unpacked(state.config)
        return self._remembered(state.counter, config)

    def _remembered(self, counter: str, config: PackerConfig) -> PackedRun:
        key = (counter, config)
        if key not in self._packed:
            _make_room(self._packed)
            self._packed[key] = self._counted[counter].evaluate(config)
        return self._packed[key]

    def _curve(self, state: State, base: PackedRun) -> pd.DataFrame:
        key = (state.counter, state.quality, base.config, state.config.replace(budget=None))
        if key not in self._curves:
            _make_room(self._curves)
            prepared = self._counted[state.counter]
            budgets = ladder(prepared, state.config, STEPS)
            self._curves[key] = trade_off(
                prepared, state.config, budgets, quality=[state.quality], baseline=base
            )
        return self._curves[key]

    def room(self) -> pd.DataFrame | None:
        """Give the `headroom` table of the current setting: its own budget and a ladder of others.

        None where the metric has no best possible.
        """
        state = self.state
        if state.quality not in MEASURED:
            return None
        tables = [self._room(state, None)]
        if state.config.budget not in (None, *tables[0].index):
            tables.append(self._room(state, state.config.budget))
        return pd.concat(tables).sort_index()

    def room_unlimited(self) -> pd.DataFrame | None:
        """Give the line of the `headroom` table for no budget: one that holds everything.

        Without a budget duplicates may stay that go under any; so the line is not one of the ladder.
        """
        state, config = self.state, self.config.replace(budget=None)
        if state.quality not in MEASURED:
            return None
        config = config.replace(deduplicate=config.deduplicates)
        return self._room(replace(state, config=config), max(ladder(self.prepared, config)))

    def _room(self, state: State, budget: int | None) -> pd.DataFrame:
        key = (state.counter, state.quality, state.config.replace(budget=None), budget)
        if key not in self._rooms:
            _make_room(self._rooms)
            budgets = ladder(self.prepared, state.config, STEPS) if budget is None else [budget]
            self._rooms[key] = headroom(self.prepared, state.config, budgets, metric=state.quality)
        return self._rooms[key]


def _check_price(where: str, price: object) -> None:
    if price is not None and not isinstance(price, Price):
        fail(SettingError, where, "price", "a Price or None", price)


def start_budget(prepared: PreparedRun) -> int:
    """Give a quarter of the largest full context, in tokens, rounded."""
    most = int(max(prepared.full(SHOWN.unit, SHOWN.separator).max(initial=1), 2))
    return round_budget(most / 4)


def _make_room(kept: dict[Any, Any]) -> None:
    """Let the oldest results go, so that a day of moves does not fill the memory."""
    while len(kept) >= KEPT:
        del kept[next(iter(kept))]


def _qualities(prepared: PreparedRun, full: PackedRun) -> dict[str, str]:
    """Give what the vertical axis can show, what no query scores last; the chunks kept if all is that."""
    order = ("answer_retention", "gold_retention", "answer_position")
    known = available(prepared, "retention")
    names = [n for n in order if n in known]
    scored = [n for n in names if full.per_query[n].notna().any()]
    unscored = [n for n in names if n not in scored]
    return {n: metrics.METRICS[n].words for n in [*(scored or ["n_chunks"]), *unscored]}
