"""Figures of a whole sweep: the Pareto front, and the headroom under the oracle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from packtools import drawing
from packtools.drawing import GREY, INK, MUTED, STRONG, drawable
from packtools.metrics import Metric, get_metric
from packtools.recommending import Recommendation
from packtools.swept import BASELINE, SweepResult
from packtools.words import amount

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["front_figure", "headroom_figure"]


def front_figure(
    found: SweepResult,
    cost: str = "n_tokens",
    quality: str = "answer_retention",
    *,
    title: str,
    subtitle: str = "",
    caption: str = "",
    recommended: Recommendation | None = None,
    width: str = "page",
) -> Figure:
    """Draw every setting of a sweep, and the front of those that no other one beats.

    Settings on the front carry the 95 % interval of their difference to the baseline, and are the
    larger, the more often they are on it when the queries are drawn anew.

    Parameters
    ----------
    found : SweepResult
    cost, quality : str
    title, subtitle, caption : str
    recommended : Recommendation or None, default None
        Its setting is marked and named.
    width : {"page", "column"}, default "page"

    Raises
    ------
    MetricUnavailable
        If the sweep lacks a metric.
    """
    points = found.pareto(cost, quality)
    points = points[points[cost] > 0]  # a log axis has no place for what costs nothing
    metric, price = found.metric(quality), found.metric(cost)
    scale = 100.0 if metric.unit == "share" else 1.0
    table = found.table.loc[points.index]
    x, y = points[cost].to_numpy(float), points[quality].to_numpy(float) * scale
    zero = float(found.table[quality].iloc[0]) * scale
    ends = [zero + table[f"{quality}_ci_{end}"].to_numpy(float) * scale for end in ("low", "high")]
    front = points["on_front"].to_numpy()
    drawn = drawing.canvas(metric, width, "front_figure")
    drawn.say(title, subtitle, caption)
    ax = drawn.axes
    ax.plot(x[~front], y[~front], color=MUTED, marker="o", markersize=3, linestyle="", alpha=0.45)
    ax.plot(x[front], y[front], color=STRONG, linewidth=1.2, alpha=0.7)
    ax.vlines(x[front], ends[0][front], ends[1][front], color=STRONG, linewidth=1.4, alpha=0.6)
    share = points["front_share"].to_numpy()[front]
    ax.scatter(x[front], y[front], s=8 + 52 * share, color=STRONG, marker="D", zorder=3)
    drawing.limits(ax, metric, x, np.concatenate([y, ends[0][front], ends[1][front]]))
    ax.set_xlabel(f"{price.words} per query, mean (log scale)", fontsize=drawn.small + 1, color=INK)
    names = {BASELINE: ("baseline", GREY, "white", 9)}
    if recommended is not None and recommended.setting is not None:
        names[recommended.setting] = ("recommended", INK, "none", 14)
    for (setting, (word, color, face, size)), below in zip(names.items(), (False, True), strict=False):
        if setting in points.index:
            at = points.index.tolist().index(setting)
            ring: dict[str, Any] = {"markerfacecolor": face, "markeredgewidth": 1.8, "markersize": size}
            ax.plot(x[at], y[at], color=color, marker="o", linestyle="", zorder=4, **ring)
            text = f"{word}: {_cost(price, float(x[at]))}"
            _name(ax, float(x[at]), float(y[at]), text, color, drawn.small, below=below)
    return drawn.figure


def headroom_figure(
    table: pd.DataFrame,
    metric: str = "answer_retention",
    *,
    title: str,
    subtitle: str = "",
    caption: str = "",
    noun: str = "tokens",
    width: str = "page",
) -> Figure:
    """Draw what a setting keeps under each budget, and the most that any packer could.

    Bars are the 95 % interval of the room between the two.

    Parameters
    ----------
    table : DataFrame
        As `headroom` gives it.
    metric : str, default "answer_retention"
    title, subtitle, caption : str
    noun : {"tokens", "characters"}, default "tokens"
        What the budgets count.
    width : {"page", "column"}, default "page"
    """
    known = get_metric(metric)
    x = table.index.to_numpy(float)
    best, kept = (table[name].to_numpy(float) * 100 for name in ("best", "kept"))
    low, high = (best - table[f"room_ci_{end}"].to_numpy(float) * 100 for end in ("high", "low"))
    drawn = drawing.canvas(known, width, "headroom_figure")
    drawn.say(title, subtitle, caption)
    ax, small = drawn.axes, drawn.small
    ax.fill_between(x, kept, best, color=STRONG, alpha=0.1, linewidth=0)
    ax.plot(x, best, color=MUTED, marker="s", markersize=4, linewidth=1.4, linestyle="--")
    ax.plot(x, kept, color=STRONG, marker="D", markersize=4.5, linewidth=2.0)
    ax.vlines(x, low, high, color=STRONG, linewidth=1.4, alpha=0.6)
    drawing.limits(ax, known, x, np.concatenate([best, kept, low, high]))
    ax.set_xlabel(f"budget, {noun} (log scale)", fontsize=small + 1, color=INK)
    drawing.name_ends(
        ax, [(kept[0], x[0], "this setting", STRONG), (best[0], x[0], "best possible", MUTED)], small
    )
    return drawn.figure


def _name(ax: Any, x: float, y: float, text: str, color: str, size: float, *, below: bool = False) -> None:
    """Write a name beside its point, on the side where there is room."""
    near_edge = drawing.near_right(ax, x, text, size)
    ax.annotate(
        drawable(text),
        (x, y),
        (-9 if near_edge else 9, -9 if below else 9),
        textcoords="offset points",
        ha="right" if near_edge else "left",
        va="top" if below else "bottom",
        color=color,
        fontsize=size,
        weight="bold" if below else "normal",
    )


def _cost(metric: Metric, value: float) -> str:
    return amount(metric, value) if metric.unit == "USD" else f"{amount(metric, value)} {metric.words}"
