"""Tables to matplotlib figures; screen and paper are the same code.

Object-oriented matplotlib only, never pyplot. A figure is laid out once and then updated.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from packtools import drawing, metrics
from packtools.arrays import Floats
from packtools.drawing import GREY, INK, LOOKS, MUTED, STRONG
from packtools.errors import SettingError, fail
from packtools.frontier import front

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TradeOffFigure", "curves_figure", "trade_off_figure"]

NO_QUERY = "no query is scored"
PINS: tuple[dict[str, Any], ...] = tuple(
    {"color": color, "marker": marker, "markersize": 7.5, "markeredgecolor": "white"}
    for color, marker in zip(
        ("#009E73", "#8A5A83", "#56B4E9", "#009E73", "#8A5A83", "#56B4E9"), "^vPXph", strict=True
    )
)
SIDES = (
    (8, 0, "left", "center"), (0, 7, "center", "bottom"), (0, -7, "center", "top"),
    (-8, 0, "right", "center"),
    (6, 5, "left", "bottom"), (6, -5, "left", "top"), (-6, 5, "right", "bottom"), (-6, -5, "right", "top"),
    (0, 18, "center", "bottom"), (0, -18, "center", "top"),
    (12, 16, "left", "bottom"),
    (12, -16, "left", "top"), (-12, 16, "right", "bottom"), (-12, -16, "right", "top"),
)  # fmt: skip
"""Where a label may stand beside its point, in points, the best place first."""
FRONT: dict[str, Any] = {"color": INK, "linewidth": 0.9, "linestyle": (0, (4, 2))}


class Picture(ABC):
    """Draw one kind of figure again and again: built once, then only its data change.

    Parameters
    ----------
    metric : str or Metric, default "answer_retention"
        What it is about.
    width : {"page", "column"}, default "page"
    dpi : int, default 110
        Of the picture on screen.

    Raises
    ------
    SettingError
        If the width is unknown.
    """

    def __init__(
        self, metric: str | metrics.Metric = "answer_retention", width: str = "page", dpi: int = 110
    ) -> None:
        self.metric = as_metric(metric)
        self.scale = 100.0 if self.metric.unit == "share" else 1.0
        self.canvas = drawing.canvas(self.metric, width, type(self).__name__, dpi)
        self.figure, self.axes, self.small = self.canvas.figure, self.canvas.axes, self.canvas.small
        with drawing.styled():
            self._build()

    @abstractmethod
    def _build(self) -> None:
        """Make all that is ever drawn."""

    def png(self) -> bytes:
        """Render for the screen."""
        return drawing.png(self.figure)

    def label(self, **look: Any) -> Any:
        """Make an empty label, to be placed beside a point."""
        beside: dict[str, Any] = {"xycoords": "data", "textcoords": "offset points", "fontsize": self.small}
        return self.axes.annotate("", (1, 0), (0, 0), visible=False, **(beside | look))


class TradeOffFigure(Picture):
    """Draw quality against cost: the budget curve, the baseline, this setting and pinned ones.

    Parameters
    ----------
    quality : str or Metric, default "answer_retention"
        The metric on the vertical axis.
    width : {"page", "column"}, default "page"
    dpi : int, default 110
        Of the picture on screen.
    """

    def __init__(
        self, quality: str | metrics.Metric = "answer_retention", width: str = "page", dpi: int = 110
    ) -> None:
        super().__init__(quality, width, dpi)

    def _build(self) -> None:
        ax = self.axes
        (self._front,) = ax.plot([], [], visible=False, **FRONT)
        self._front_label = self.label(color=INK, style="italic")
        (self._curve,) = ax.plot([], [], color=MUTED, marker="s", markersize=3.5, linewidth=1.4)
        self._band = ax.fill_between([], [], [], color=MUTED, alpha=0.15, linewidth=0)
        ring: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 1.8}
        (self._base,) = ax.plot([], [], color=GREY, marker="o", markersize=9, linestyle="", **ring)
        self._pins = [
            (ax.plot([], [], linestyle="", visible=False, **look)[0], self.label(color=INK)) for look in PINS
        ]
        (self._bar,) = ax.plot([], [], color=STRONG, linewidth=2.2, solid_capstyle="butt")
        (self._here,) = ax.plot([], [], color=STRONG, marker="D", markersize=9, linestyle="")
        self._base_label = self.label(position=(0, 9), ha="right", va="bottom", color=GREY)
        self._here_label = self.label(va="top", color=STRONG, weight="bold")

    def update(
        self,
        curve: pd.DataFrame,
        here: Mapping[str, float],
        title: str,
        subtitle: str,
        caption: str,
        noun: str = "tokens",
        points: pd.DataFrame | None = None,
    ) -> None:
        """Show another setting.

        Parameters
        ----------
        curve : DataFrame
            As `trade_off` gives it: the baseline first, then one row a budget.
        here : mapping
            n_tokens, quality, ci_low, ci_high: the setting marked, with its interval.
        title, subtitle, caption : str
        noun : {"tokens", "characters"}, default "tokens"
            What the costs count.
        points : DataFrame or None, default None
            Pinned settings by name, at most six: n_tokens, quality. With them the front of the
            curve, the pinned settings and this one is drawn.

        Raises
        ------
        SettingError
            If there are more than six points.
        """
        name, scale = self.metric.name, self.scale
        pinned, pin_x, pin_y = _pinned(points)
        pin_y = pin_y * scale
        base, line = curve.iloc[0], placed(curve.iloc[1:])
        x = line["n_tokens"].to_numpy(float)
        order = np.argsort(x, kind="stable")
        y = line[name].to_numpy(float) * scale
        zero = float(base[name]) * scale
        low, high = ((zero + line[f"{name}_ci_{end}"].to_numpy(float) * scale) for end in ("low", "high"))
        self._curve.set_data(x[order], y[order])
        self._band.set_data(x[order], low[order], high[order])
        self._base.set_data([base["n_tokens"]], [zero])
        self._here.set_data([here["n_tokens"]], [here["quality"] * scale])
        ends = [zero + here["ci_low"] * scale, zero + here["ci_high"] * scale]
        self._bar.set_data([here["n_tokens"]] * 2, ends)
        drawing.limits(
            self.axes,
            self.metric,
            np.array([*x, *pin_x, base["n_tokens"], here["n_tokens"]]),
            np.array([*y, *pin_y, *low, *high, zero, *ends]),
        )
        named = f"{drawing.short(str(curve.index[0]))}: {base['n_tokens']:,.0f} {noun}"
        drawing.place(self._base_label, base["n_tokens"], zero, named)
        words = f"this setting: {here['n_tokens']:,.0f}"
        drawing.place(self._here_label, here["n_tokens"], here["quality"] * scale, words)
        side, dx = drawing.side(self.axes, here["n_tokens"], words, self.small)
        self._here_label.set(ha=side, position=(dx, -8))
        self._pin(pinned, pin_x, pin_y)
        self.axes.set_xlabel(f"{noun} per query, mean (log scale)", fontsize=self.small + 1, color=INK)
        self.canvas.say(title, subtitle, caption)

    def _pin(self, names: list[str], x: Floats, y: Floats) -> None:
        """Show the pinned settings and the front, or neither."""
        for number, (mark, label) in enumerate(self._pins):
            there = number < len(names)
            mark.set_visible(there)
            label.set_visible(False)
            if there:
                mark.set_data([x[number]], [y[number]])
                drawing.place(label, x[number], y[number], drawing.short(names[number]))
        self._front.set_visible(bool(names))
        self._front_label.set_visible(False)
        if not names:
            return
        sides = zip(self._curve.get_data(), (x, y), self._here.get_data(), strict=True)
        cost, quality = (np.concatenate(side) for side in sides)
        best = front(cost, quality if self.metric.higher_is_better else -quality) & (cost > 0)
        cheap_first = np.argsort(cost[best], kind="stable")
        front_x, front_y = cost[best][cheap_first], quality[best][cheap_first]
        self._front.set_data(front_x, front_y)
        if len(front_x):
            drawing.place(self._front_label, front_x[0], front_y[0], "front")
        taken = [box(one) for one in (self._base_label, self._here_label) if one.get_visible()]
        taken += spots(self.axes, cost, quality, 8)
        base_x, base_y = self._base.get_data()
        taken += spots(self.axes, base_x, base_y, 9)
        taken += spots(self.axes, *between(*self._curve.get_data()), 2)
        settle([*(label for _, label in self._pins), self._front_label], taken)


def between(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Give points along a curve of a log axis."""
    if not len(x):
        return x, y
    many = np.geomspace(x[0], x[-1], 80)
    return many, np.interp(np.log(many), np.log(x), y)


def _pinned(points: pd.DataFrame | None) -> tuple[list[str], Floats, Floats]:
    """Give names, costs and qualities of the pinned settings; None is no setting."""
    if points is None:
        return [], np.empty(0), np.empty(0)
    if len(points) > len(PINS):
        rule = f"at most {len(PINS)} pinned settings"
        fail(SettingError, "TradeOffFigure.update", "points", rule, len(points), "Unpin one.")
    cost, quality = (points[name].to_numpy(float) for name in ("n_tokens", "quality"))
    return [str(name) for name in points.index], cost, quality


def as_metric(metric: str | metrics.Metric) -> metrics.Metric:
    """Give a metric by its name."""
    return metric if isinstance(metric, metrics.Metric) else metrics.get_metric(metric)


def settle(
    labels: Iterable[Any], taken: list[Floats], sides: Sequence[tuple[int, int, str, str]] = SIDES
) -> None:
    """Move labels to the side of their points where they cover least, one after the other.

    Parameters
    ----------
    labels : iterable of Annotation
        Placed; their texts are measured by their letters.
    taken : list of ndarray of float64, each of shape (4,)
        Left, bottom, right and top of what is not to be covered, in pixels; `box` and `spots` give
        them. The labels' own boxes are added.
    sides : sequence of tuple
        Where a label may stand: offset in points and alignment, the best place first.
    """
    for label in (one for one in labels if one.get_visible()):
        found: list[tuple[float, int, Floats]] = []
        for dx, dy, ha, va in sides:
            label.set(position=(dx, dy), ha=ha, va=va)
            at = box(label)
            found.append((_covered(at, np.array(taken), label.axes), len(found), at))
            if found[-1][0] <= 0:
                break
        _, best, at = min(found, key=lambda one: one[:2])
        dx, dy, ha, va = sides[best]
        label.set(position=(dx, dy), ha=ha, va=va)
        taken.append(at)


def box(label: Any) -> Floats:
    """Give left, bottom, right and top of a label in pixels, by its letters."""
    scale = label.figure.dpi / 72
    x, y = label.axes.transData.transform(label.xy) + np.multiply(label.get_position(), scale)
    size = label.get_fontsize() * scale
    wide, high = drawing.LETTER * size * drawing.columns(label.get_text()), 1.2 * size
    x -= {"left": 0.0, "center": 0.5, "right": 1.0}[label.get_ha()] * wide
    y -= {"bottom": 0.0, "center": 0.5, "top": 1.0}[label.get_va()] * high
    return np.array([x, y, x + wide, y + high])


def spots(ax: Any, x: Any, y: Any, size: float) -> list[Floats]:
    """Give the boxes of markers of a size in points."""
    at = ax.transData.transform(np.column_stack([x, y]))
    at = at[np.isfinite(at).all(axis=1)]
    half = size / 2 * ax.figure.dpi / 72
    return list(np.concatenate([at - half, at + half], axis=1))


def _covered(at: Floats, taken: Floats, ax: Any) -> float:
    """Say how much of other boxes a box covers, and how much of it is outside: worse."""
    frame = ax.bbox.extents
    inside = np.minimum(at[2:], frame[2:]) - np.maximum(at[:2], frame[:2])
    outside = np.prod(at[2:] - at[:2]) - np.prod(np.maximum(inside, 0))
    if not len(taken):
        return float(10 * outside)
    common = np.minimum(at[2:], taken[:, 2:]) - np.maximum(at[:2], taken[:, :2])
    return float(np.prod(np.maximum(common, 0), axis=1).sum() + 10 * outside)


def placed(line: pd.DataFrame) -> pd.DataFrame:
    """Leave out what costs nothing, for which a log axis has no place."""
    return line[line["n_tokens"] > 0]


def trade_off_figure(
    curve: pd.DataFrame,
    here: Mapping[str, float],
    *,
    quality: str = "answer_retention",
    title: str,
    subtitle: str = "",
    caption: str = "",
    width: str = "page",
) -> Figure:
    """Draw a trade-off once: see `TradeOffFigure.update` for the parameters."""
    drawn = TradeOffFigure(quality, width)
    drawn.update(curve, here, title, subtitle, caption)
    return drawn.figure


def curves_figure(
    curves: Mapping[str, pd.DataFrame],
    *,
    quality: str | metrics.Metric = "answer_retention",
    title: str,
    subtitle: str = "",
    caption: str = "",
    noun: str = "tokens",
) -> Figure:
    """Draw several trade-offs against one baseline, each curve with its name at its cheap end.

    Parameters
    ----------
    curves : mapping of name to DataFrame
        Each as `trade_off` gives it; the baseline is that of the first. The first curve is drawn
        strong.
    quality : str or Metric, default "answer_retention"
        A sweep knows its own: ``found.metric(name)``.
    title, subtitle, caption : str
    noun : {"tokens", "characters"}, default "tokens"
    """
    drawn = TradeOffFigure(quality)
    column = drawn.metric.name
    if not curves or any(len(curve) < 2 for curve in curves.values()):
        rule = "at least one curve, each of a baseline and at least one setting"
        fail(SettingError, "curves_figure", "curves", rule, list(curves))
    first = next(iter(curves.values()))
    base = first.iloc[0]
    nowhere = dict.fromkeys(("n_tokens", "quality", "ci_low", "ci_high"), float("nan"))
    drawn.update(first.iloc[:1], nowhere, title, subtitle, caption, noun)
    ax, scale = drawn.axes, 100.0 if drawn.metric.unit == "share" else 1.0
    xs, ys = [base["n_tokens"]], [base[column] * scale]
    ends: list[tuple[float, float, str, str]] = []
    for look, (name, curve) in zip(itertools.cycle(LOOKS), curves.items(), strict=False):
        line = placed(curve.iloc[1:].sort_values("n_tokens", kind="stable"))
        if line.empty:
            continue
        x, y = line["n_tokens"].to_numpy(float), line[column].to_numpy(float) * scale
        low, high = (base[column] * scale + line[f"{column}_ci_{end}"] * scale for end in ("low", "high"))
        ax.fill_between(x, low, high, color=look["color"], alpha=0.1, linewidth=0)
        ax.plot(x, y, markersize=4.5, **look)
        ends.append((y[0], x[0], name, look["color"]))
        xs, ys = [*xs, *x], [*ys, *y, *low, *high]
    drawing.limits(ax, drawn.metric, np.array(xs), np.array(ys))
    drawing.name_ends(ax, ends, drawn.small)
    return drawn.figure
