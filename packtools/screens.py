"""The figures of the panel: which there are, what each needs of the model, drawn for screen or paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from packtools import metrics
from packtools.explorer import ExplorerModel
from packtools.figures import TradeOffFigure
from packtools.panel_figures import HeadroomFigure, PositionFigure, headroom_title, position_title
from packtools.spread_figure import DeltasFigure, deltas_title
from packtools.view import INTERVAL, View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SCREENS", "STEMS", "Screens"]

TRADE_OFF, CURVE, DELTAS, EVIDENCE = "Trade-off", "Budget curve", "Per-query changes", "Place of evidence"
SCREENS = (TRADE_OFF, CURVE, DELTAS, EVIDENCE)
STEMS = dict(
    zip(SCREENS, ("trade_off", "budget_curve", "per_query_changes", "place_of_evidence"), strict=True)
)
"""Names of the files of each figure."""
PLACE = "answer_position"


class Screens:
    """Draw the views of a model; on the screen each kind of figure is made once and then updated.

    Parameters
    ----------
    model : ExplorerModel
    """

    def __init__(self, model: ExplorerModel) -> None:
        self.model = model
        self._made: dict[tuple[str, str], Any] = {}

    def png(self, view: View, screen: str) -> tuple[bytes, str]:
        """Render a view for the screen; give the picture and what it says."""
        key = (screen, view.quality)
        if key not in self._made:
            self._made[key] = self._make(view, screen, "page")
        drawn = self._made[key]
        title, subtitle = self._draw(drawn, view, screen)
        return drawn.png(), f"{title}. {subtitle}"

    def figure(self, view: View, screen: str, width: str) -> Figure:
        """Draw a view as a figure of its own, for paper."""
        drawn = self._make(view, screen, width)
        self._draw(drawn, view, screen)
        figure: Figure = drawn.figure
        return figure

    def _make(self, view: View, screen: str, width: str) -> Any:
        if screen == EVIDENCE:
            return PositionFigure(width)
        kinds: dict[str, Callable[..., Any]] = {CURVE: HeadroomFigure, DELTAS: DeltasFigure}
        return kinds.get(screen, TradeOffFigure)(view.quality, width)

    def _draw(self, drawn: Any, view: View, screen: str) -> tuple[str, str]:
        """Put a view into a figure; give its title and subtitle."""
        if screen == CURVE:
            return self._curve(drawn, view)
        if screen == DELTAS:
            return self._deltas(drawn, view)
        if screen == EVIDENCE:
            return self._evidence(drawn, view)
        view.draw(drawn)
        return view.title, view.subtitle

    def _curve(self, drawn: HeadroomFigure, view: View) -> tuple[str, str]:
        room, budget = self.model.room(), view.config.budget
        unit = "characters" if view.config.unit == "chars" else view.noun
        nearest = self.model.room_unlimited() if budget is None else room
        title = headroom_title(view.quality, view.curve, nearest, budget, unit)
        here = {"budget": budget, "quality": view.here["quality"]}
        foot = view.foot(f"bars: {INTERVAL} of the difference to {view.against}")
        drawn.update(view.curve, room, here, title, view.subtitle, foot, unit)
        return title, view.subtitle

    def _deltas(self, drawn: DeltasFigure, view: View) -> tuple[str, str]:
        row, delta = view.row(view.quality), view.per_query["delta"]
        title = deltas_title(view.quality, delta)
        mean = {name: float(row[name]) for name in ("delta", "ci_low", "ci_high")}
        foot = view.foot(f"difference to {view.against}; bar: mean and its {INTERVAL}")
        drawn.update(delta, mean, title, view.subtitle, foot)
        return title, view.subtitle

    def _evidence(self, drawn: PositionFigure, view: View) -> tuple[str, str]:
        sides = [p.per_query for p in (view.baseline, view.packed)]
        foot = view.foot(f"outline: {view.against}; of queries whose answer is scored")
        if PLACE not in sides[0]:
            why = view.prepared.unavailable.get(PLACE, "")
            title = f"{metrics.METRICS[PLACE].words}: {why}"
            drawn.update([], [], title, "", foot, view.against)
            return title, ""
        scored = np.array(sides[0]["answer_retention"].notna())
        before, here = (side[PLACE].to_numpy(float)[scored] for side in sides)
        title = position_title(before, here)
        drawn.update(before, here, title, view.subtitle, foot, view.against)
        return title, view.subtitle
