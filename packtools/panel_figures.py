"""Figures of the panel: quality by budget with the headroom above it, and the place of the evidence.

Each is built once and then updated, like `TradeOffFigure`; beside it a function says its finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from packtools import drawing, metrics
from packtools.arrays import Floats
from packtools.drawing import GREY, INK, MUTED, SMALLEST, STRONG
from packtools.errors import SettingError, fail
from packtools.figures import NO_QUERY, Picture, as_metric, between, settle, spots
from packtools.metrics import Metric
from packtools.words import change, count_words

__all__ = [
    "HeadroomFigure",
    "PositionFigure",
    "headroom_title",
    "position_title",
]

PARTS = 10
AT_THE_RIGHT = ((-2, 3, "right", "bottom"), (-2, -3, "right", "top"), (-54, 3, "right", "bottom"))
THIRD = (1 / 3, 2 / 3)


# --- quality by budget ------------------------------------------------------------------------------


class HeadroomFigure(Picture):
    """Draw quality against the budget, and the most that any packer could keep.

    Parameters
    ----------
    metric : str or Metric, default "answer_retention"
    width : {"page", "column"}, default "page"
    dpi : int, default 110
        Of the picture on screen.
    """

    def _build(self) -> None:
        ax = self.axes
        self._base = ax.axhline(0, color=GREY, linewidth=1.2)
        self._budget = ax.axvline(1, color=STRONG, linewidth=1.0, linestyle=":")
        self._room = ax.fill_between([], [], [], color=MUTED, alpha=0.15, linewidth=0)
        (self._best,) = ax.plot([], [], color=MUTED, marker="s", markersize=4, linestyle="--", linewidth=1.4)
        self._bars = ax.vlines([], [], [], color=STRONG, linewidth=1.4, alpha=0.5)
        (self._curve,) = ax.plot([], [], color=STRONG, marker="o", markersize=3, linewidth=1.6)
        (self._here,) = ax.plot([], [], color=STRONG, marker="D", markersize=9, linestyle="")
        self._base_label = self.label(color=GREY)
        self._best_label = self.label(color=MUTED, weight="bold")
        self._here_label = self.label(color=STRONG, weight="bold")

    def update(
        self,
        curve: pd.DataFrame,
        room: pd.DataFrame | None,
        here: Mapping[str, float | None],
        title: str,
        subtitle: str,
        caption: str,
        unit: str = "tokens",
    ) -> None:
        """Show another setting.

        Parameters
        ----------
        curve : DataFrame
            As `trade_off` gives it, by budget: the baseline first. Bars are the 95 % interval of the
            difference to it.
        room : DataFrame or None
            As `headroom` gives it; None where the metric has no oracle: then only the curve is drawn.
        here : mapping
            budget, quality: the setting marked. A budget of None is none: the point stands at the
            largest budget.
        title, subtitle, caption : str
        unit : {"tokens", "characters"}, default "tokens"
            What the budgets count.
        """
        base, line = curve.iloc[0], curve.iloc[1:].sort_values("budget", kind="stable")
        name, scale = self.metric.name, self.scale
        x, y = line["budget"].to_numpy(float), line[name].to_numpy(float) * scale
        zero = float(base[name]) * scale
        ends = [zero + line[f"{name}_ci_{end}"].to_numpy(float) * scale for end in ("low", "high")]
        oracle_x, best, kept = _oracle(room, scale)
        at, quality = _budget(here, x), _number(here["quality"]) * scale
        self._curve.set_data(x, y)
        self._bars.set_segments(np.stack([np.column_stack([x, end]) for end in ends], axis=1))
        self._best.set_data(oracle_x, best)
        self._room.set_data(oracle_x, kept, best)
        self._kept = kept
        self._base.set_ydata([zero, zero])
        self._here.set_data([at], [quality])
        self._budget.set_xdata([at, at])
        self._budget.set_visible(bool(np.isfinite(at)))
        drawing.limits(
            self.axes,
            self.metric,
            np.array([*x, *oracle_x, at]),
            np.array([*y, *best, *ends[0], *ends[1], zero, quality]),
        )
        named = "no budget" if here["budget"] is None else f"{at:,.0f}"
        self._name(drawing.short(str(curve.index[0])), zero, f"this setting: {named}", at, quality)
        self.axes.set_xlabel(f"budget, {unit} (log scale)", fontsize=self.small + 1, color=INK)
        self.canvas.say(title, subtitle, caption)

    def _name(self, baseline: str, zero: float, words: str, at: float, quality: float) -> None:
        """Write the labels, none over another or over a curve."""
        ax = self.axes
        drawing.place(self._base_label, ax.get_xlim()[1], zero, baseline)
        drawing.place(self._here_label, at, quality, words)
        x, best = self._best.get_data()
        widest = np.argsort(self._kept - best)[:1]
        top = (float(x[widest[0]]), float(best[widest[0]])) if len(widest) else (0.0, 0.0)
        drawing.place(self._best_label, top[0], top[1], "best possible")
        bottom, ceiling = ax.get_ylim()
        taken = spots(ax, np.full(40, at), np.linspace(bottom, ceiling, 40), 0.5)
        taken += spots(ax, [at], [quality], 9)
        for drawn in (self._curve, self._best):
            drawn_x, drawn_y = drawn.get_data()
            taken += spots(ax, drawn_x, drawn_y, 5) + spots(ax, *between(drawn_x, drawn_y), 2)
        settle([self._base_label], taken, AT_THE_RIGHT)
        settle([self._best_label, self._here_label], taken)


def headroom_title(
    metric: str | Metric,
    curve: pd.DataFrame,
    room: pd.DataFrame | None,
    budget: float | None,
    unit: str = "tokens",
) -> str:
    """Say how much more could be kept at a budget, or without an oracle how small it may be.

    Parameters
    ----------
    metric : str or Metric
    curve, room, unit
        As in `HeadroomFigure.update`.
    budget : float or None
        The nearest one of `room` is named; None is no budget, like the largest.

    Examples
    --------
    >>> room = pd.DataFrame({"room": [0.2], "room_ci_low": [0.1], "room_ci_high": [0.3]}, index=[500])
    >>> headroom_title("answer_retention", pd.DataFrame(), room, 480)
    'At 500 tokens: 20.0 points more are possible'
    """
    known = as_metric(metric)
    if room is None or room["room"].isna().all():
        return _curve_title(known, curve, unit)
    budgets = room.index.to_numpy(float)
    nearest = int(np.argmin(np.abs(np.log(budgets / (budgets.max() if budget is None else budget)))))
    row = room.iloc[nearest]
    where = "Without a budget" if budget is None else f"At {count_words(int(budgets[nearest]), unit)}"
    if row["room"] <= 0:
        return f"{where}: as good as the best possible"
    if not row["room_ci_low"] > 0:
        return f"{where}: not measurably below the best possible"
    return f"{where}: {change(known, row['room']).removeprefix('+')} more are possible"


def _curve_title(metric: Metric, curve: pd.DataFrame, unit: str) -> str:
    """Say from which budget on no loss is measurable."""
    line = curve.iloc[1:].sort_values("budget", ascending=False, kind="stable")
    low, high = (line[f"{metric.name}_ci_{end}"].to_numpy(float) for end in ("low", "high"))
    fine = high >= 0 if metric.higher_is_better else low <= 0
    if np.isnan([*low, *high]).all():
        return (
            f"{metric.words} by budget: {NO_QUERY}"
            if line[metric.name].isna().all()
            else f"{metric.words} by budget"
        )
    n = int(np.logical_and.accumulate(fine).sum())
    if not n:
        return f"“{metric.words}” is measurably worse at every budget"
    return (
        f"No measurable loss in “{metric.words}” from {count_words(int(line['budget'].iloc[n - 1]), unit)} on"
    )


def _oracle(room: pd.DataFrame | None, scale: float) -> tuple[Floats, Floats, Floats]:
    """Give budgets, best and kept, ascending."""
    if room is None:
        return np.empty(0), np.empty(0), np.empty(0)
    table = room.sort_index()
    best, kept = (table[name].to_numpy(float) * scale for name in ("best", "kept"))
    return table.index.to_numpy(float), best, kept


def _budget(here: Mapping[str, float | None], budgets: Floats) -> float:
    """Give where a setting stands on the axis of budgets."""
    return float(budgets.max(initial=0)) if here["budget"] is None else _number(here["budget"])


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


# --- place of the evidence --------------------------------------------------------------------------


class PositionFigure(Picture):
    """Draw where in the prompt the evidence stands, here and in the baseline.

    Parameters
    ----------
    width : {"page", "column"}, default "page"
    dpi : int, default 110
        Of the picture on screen.
    """

    def __init__(self, width: str = "page", dpi: int = 110) -> None:
        super().__init__(metrics.METRICS["answer_position"], width, dpi)

    def _build(self) -> None:
        from matplotlib.collections import PolyCollection
        from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

        ax, place = self.axes, self.axes.get_position()
        narrow = place.width * self.figure.get_figwidth() < 4
        right = 0.72 if narrow else 0.80
        ax.set_position((place.x0, place.y0, right - place.x0, place.height))
        ax.set_xscale("linear")
        ax.set_xlim(0, 100)
        percent = FuncFormatter(lambda v, _: f"{v:.0f} %")
        ax.xaxis.set_major_locator(MultipleLocator(50 if narrow else 20))
        ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(percent)
        drawing.name_y(ax, "% of queries", self.small)
        ax.set_xlabel("place in the prompt", fontsize=self.small + 1, color=INK)
        for third in THIRD:
            ax.axvline(100 * third, color=GREY, linewidth=0.8, linestyle=":")
        look: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "color": GREY}
        ax.text(0.5, 0.99, "middle third", va="top", fontsize=SMALLEST, **look)
        self._none = ax.text(0.5, 0.5, NO_QUERY, fontsize=self.small, **look)
        self._parts = PolyCollection([], facecolor=STRONG, edgecolor="white", alpha=0.85)
        ax.add_collection(self._parts, autolim=False)
        self._outline, self._dots = (
            ax.plot([], [], color=GREY, linewidth=1.6)[0],
            ax.plot([], [], color=GREY, linestyle="", marker="o", markersize=5, markerfacecolor="white")[0],
        )
        beside: dict[str, Any] = {"fontsize": self.small, "va": "top", "linespacing": 1.35}
        top = place.y1
        self._words = [
            self.figure.text(right + 0.02, y, "", color=color, **beside)
            for y, color in ((top, STRONG), (top - place.height / 2, GREY))
        ]

    def update(
        self,
        before: npt.ArrayLike,
        here: npt.ArrayLike,
        title: str,
        subtitle: str,
        caption: str,
        against: str = "everything",
    ) -> None:
        """Show another setting.

        Parameters
        ----------
        before, here : array-like of float, shape (n_queries,)
            answer_position of the baseline and of the setting: 0 is the start of the prompt, 1 its
            end; NaN where no answer is kept. Give the queries whose answers are scored.
        title, subtitle, caption : str
        against : str, default "everything"
            What the baseline is called.

        Raises
        ------
        SettingError
            If the two are not equally long.
        """
        old, new = (np.asarray(side, dtype=np.float64) for side in (before, here))
        if old.shape != new.shape:
            fail(SettingError, "PositionFigure.update", "here", f"as long as before ({old.size})", new.size)
        first, second = _parts(old), _parts(new)
        edges = np.linspace(0, 100, PARTS + 1)
        self._parts.set_verts(
            [[(a, 0), (a, h), (b, h), (b, 0)] for a, b, h in zip(edges, edges[1:], second, strict=False)]
        )
        self._outline.set_data(np.repeat(edges, 2), [0, *np.repeat(first, 2), 0])
        self._dots.set_data((edges[1:] + edges[:-1]) / 2, first)
        for drawn in (self._none, self._outline, self._dots):
            drawn.set_visible(bool(old.size) != (drawn is self._none))
        self.axes.set_ylim(0, 1.25 * max(first.max(), second.max(), 5))
        names = (("■ ", "this setting"), ("○ ", drawing.short(against, 12)))
        for text, (mark, name), side in zip(self._words, names, (new, old), strict=True):
            share = f"{np.isnan(side).mean():.1%}".replace("%", " %") if len(side) else "n/a"
            text.set_text(drawing.drawable(f"{mark}{name}\n{share} without\nan answer"))
        self.canvas.say(title, subtitle, caption)


def position_title(before: npt.ArrayLike, here: npt.ArrayLike) -> str:
    """Say how much of the evidence stands in the middle third of the prompt.

    Parameters
    ----------
    before, here
        As in `PositionFigure.update`.

    Examples
    --------
    >>> position_title([0.5, 0.4, 0.1, 0.9], [0.5, 0.1, 0.1, float("nan")])
    'Evidence in the middle third: 25 % of queries, 50 % before'
    """
    shares = []
    for side in (before, here):
        place = np.asarray(side, dtype=np.float64)
        if not place.size:
            return f"Place of the evidence: {NO_QUERY}"
        shares.append(f"{((place >= THIRD[0]) & (place < THIRD[1])).mean():.0%}".replace("%", " %"))
    return f"Evidence in the middle third: {shares[1]} of queries, {shares[0]} before"


def _parts(place: Floats) -> Floats:
    """Give the percent of queries in each of the equal parts of the prompt; the last holds its end."""
    count, _ = np.histogram(place[~np.isnan(place)], PARTS, (0, 1))
    return np.asarray(100 * count / max(place.size, 1), dtype=np.float64)
