"""Tables to matplotlib figures; screen and paper are the same code.

Object-oriented matplotlib only, never pyplot. A figure is laid out once and then updated.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from packtools import drawing, metrics
from packtools.drawing import GREY, INK, LOOKS, MUTED, STRONG, STYLE
from packtools.errors import SettingError, fail

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TradeOffFigure", "curves_figure", "trade_off_figure"]


class TradeOffFigure:
    """Draw quality against cost: the budget curve, the baseline and this setting.

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
        from matplotlib import rc_context

        self.metric = quality if isinstance(quality, metrics.Metric) else metrics.get_metric(quality)
        self.canvas = drawing.canvas(self.metric, width, "TradeOffFigure", dpi)
        self.figure, self.axes, self.small = self.canvas.figure, self.canvas.axes, self.canvas.small
        with rc_context(STYLE):
            self._build()

    def _build(self) -> None:
        ax, small = self.axes, self.small
        (self._curve,) = ax.plot([], [], color=MUTED, marker="s", markersize=3.5, linewidth=1.4)
        self._band = ax.fill_between([], [], [], color=MUTED, alpha=0.15, linewidth=0)
        (self._base,) = ax.plot(
            [],
            [],
            color=GREY,
            marker="o",
            markersize=9,
            linestyle="",
            markerfacecolor="white",
            markeredgewidth=1.8,
        )
        (self._bar,) = ax.plot([], [], color=STRONG, linewidth=2.2, solid_capstyle="butt")
        (self._here,) = ax.plot([], [], color=STRONG, marker="D", markersize=9, linestyle="")
        label: dict[str, Any] = {"fontsize": small, "xycoords": "data", "textcoords": "offset points"}
        self._base_label = ax.annotate("", (1, 0), (0, 9), ha="right", va="bottom", color=GREY, **label)
        self._here_label = ax.annotate(
            "", (1, 0), (9, -8), ha="left", va="top", color=STRONG, weight="bold", **label
        )

    def update(
        self,
        curve: pd.DataFrame,
        here: Mapping[str, float],
        title: str,
        subtitle: str,
        caption: str,
        noun: str = "tokens",
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
        """
        name = self.metric.name
        scale = 100.0 if self.metric.unit == "share" else 1.0
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
            np.array([*x, base["n_tokens"], here["n_tokens"]]),
            np.array([*y, *low, *high, zero, *ends]),
        )
        drawing.place(
            self._base_label, base["n_tokens"], zero, f"{curve.index[0]}: {base['n_tokens']:,.0f} {noun}"
        )
        words = f"this setting: {here['n_tokens']:,.0f}"
        drawing.place(self._here_label, here["n_tokens"], here["quality"] * scale, words)
        near_edge = drawing.near_right(self.axes, here["n_tokens"], words, self.small)
        self._here_label.set_horizontalalignment("right" if near_edge else "left")
        self._here_label.set_position((-9 if near_edge else 9, -8))
        self.axes.set_xlabel(f"{noun} per query, mean (log scale)", fontsize=self.small + 1, color=INK)
        self.canvas.say(title, subtitle, caption)

    def png(self) -> bytes:
        """Render for the screen."""
        return drawing.png(self.figure)


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
