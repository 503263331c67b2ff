"""The figure of the panel that shows how many queries a setting changes, and by how much."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from packtools import drawing
from packtools.arrays import Floats
from packtools.drawing import GREY, INK, MUTED, STRONG
from packtools.figures import NO_QUERY, Picture, as_metric, settle, spots
from packtools.metrics import Metric
from packtools.words import queries, signed, their

__all__ = ["DeltasFigure", "deltas_title"]

BARS = 20
"""About how many bars a histogram has on its longer side."""
INTERVAL = ("delta", "ci_low", "ci_high")
SIDE_COLORS = (STRONG, GREY, MUTED)
ABOVE = (
    (0, 5, "center", "bottom"), (0, 5, "left", "bottom"), (0, 5, "right", "bottom"),
    (8, 0, "left", "center"), (-8, 0, "right", "center"),
    (0, 17, "center", "bottom"), (0, 17, "left", "bottom"), (0, 17, "right", "bottom"),
)  # fmt: skip
"""Where a label may stand above its bar, as in `settle`."""


class DeltasFigure(Picture):
    """Draw how many queries got worse and better, by how much, and the mean with its interval.

    Parameters
    ----------
    metric : str or Metric, default "answer_retention"
    width : {"page", "column"}, default "page"
    dpi : int, default 110
        Of the picture on screen.
    """

    def _build(self) -> None:
        from matplotlib.collections import PolyCollection
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        ax, share = self.axes, self.metric.unit == "share"
        ax.set_xscale("linear")
        ax.grid(False, axis="x")
        ax.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: "" if share and abs(v) > 100 else _plus(v)))
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
        drawing.name_y(ax, "queries", self.small)
        words = f"change in “{self.metric.words}”{', points' if share else ''}"
        ax.set_xlabel(words, fontsize=self.small + 1, color=INK)
        self._bars = [PolyCollection([], facecolor=color, edgecolor="white") for color in SIDE_COLORS]
        for bars in self._bars:
            ax.add_collection(bars, autolim=False)
        ax.axvline(0, color=INK, linewidth=0.8, zorder=0.9)
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        self._labels = [self.label(color=color, weight="bold", bbox=paper) for color in SIDE_COLORS]
        (self._bar,) = ax.plot([], [], color=INK, linewidth=2.2, solid_capstyle="butt")
        (self._mean,) = ax.plot([], [], color=INK, marker="D", markersize=6, linestyle="")
        self._mean_label = self.label(color=INK, bbox=paper)
        self._none = ax.text(
            0.5,
            0.5,
            NO_QUERY,
            transform=ax.transAxes,
            ha="center",
            color=GREY,
            fontsize=self.small,
            bbox=paper,
        )

    def update(
        self, deltas: pd.Series[float], mean: Mapping[str, float], title: str, subtitle: str, caption: str
    ) -> None:
        """Show another setting.

        Parameters
        ----------
        deltas : Series of float by qid
            Setting minus baseline; NaN where a query is not scored.
        mean : mapping
            delta, ci_low, ci_high: a row of the delta table.
        title, subtitle, caption : str

        Notes
        -----
        Beside a histogram the queries that stay the same would hide all others: their bar is cut.
        """
        values = deltas.dropna().to_numpy(float) * self.scale
        changed = values[values != 0]
        step = self.scale if self._whole(changed) else _bar_width(changed)
        whole = step == self.scale and self._whole(changed)
        bars = _bars(changed, step, whole)
        worse = (bars[:, 1] <= 0) == self.metric.higher_is_better
        most = bars[:, 2].max(initial=0)
        same, room = len(values) - len(changed), np.inf if whole else 1.15 * most
        half = step / 4 if whole else step / 6
        sides = [bars[worse], np.array([[-half, half, min(same, room)]]), bars[~worse]]
        for drawn, side in zip(self._bars, sides, strict=True):
            drawn.set_verts([[(a, 0), (a, h), (b, h), (b, 0)] for a, b, h in side])
        edge = step * (1.4 if whole else 1.0)
        left, right = bars[:, 0].min(initial=-edge), bars[:, 1].max(initial=edge)
        self.axes.set_xlim(left - 0.04 * (right - left), right + 0.04 * (right - left))
        self.axes.set_ylim(0, 1.6 * max(most, sides[1][0, 2], 1))
        self._none.set_visible(not len(values))
        self._say_mean(
            {name: value * self.scale for name, value in mean.items() if name in INTERVAL}, len(values)
        )
        self._name(sides, same, step, whole)
        self.canvas.say(title, subtitle, caption)

    def _whole(self, changed: Floats) -> bool:
        """Whether queries keep all or nothing, so that three bars say everything."""
        return bool((np.abs(changed) == self.scale).all()) and (
            self.metric.unit == "share" or not len(changed)
        )

    def _say_mean(self, mean: Mapping[str, float], n: int) -> None:
        """Show the mean and its interval above the bars."""
        delta, low, high = (mean[name] for name in INTERVAL)
        height = 0.86 * self.axes.get_ylim()[1]
        self._mean.set_data([delta], [height])
        self._bar.set_data([low, high], [height] * 2)
        known = n > 0 and np.isfinite(delta)
        interval = f" [{signed(low)}, {signed(high)}]" if np.isfinite([low, high]).all() else f", n = {n}"
        self._mean_label.set_text(f"mean {signed(delta)}{interval}" if known else "")
        self._mean_label.xy = (delta if known else 0, height)
        self._mean_label.set_visible(known)

    def _name(self, sides: list[Floats], same: int, step: float, whole: bool) -> None:
        """Write how many queries each side has, none over another or over a bar."""
        down = -step if self.metric.higher_is_better else step
        better = self.metric.higher_is_better and whole
        words = ("lost", "same", "gained") if better else ("worse", "same", "better")
        for label, side, word, at in zip(self._labels, sides, words, (down, 0, -down), strict=True):
            n = same if word == "same" else int(side[:, 2].sum())
            a, b, height = side[int(np.argmax(side[:, 2]))] if len(side) else (at, at, 0)
            label.xy = ((a + b) / 2, height)
            label.set_text(f"{n:,} {word}" + (", bar cut" if word == "same" and height < n else ""))
            label.set_visible(bool(n or whole) and not self._none.get_visible())
        to_pixels = self.axes.transData.transform
        taken = [to_pixels([(a, 0), (b, h)]).ravel() for a, b, h in np.concatenate(sides)]
        x, y = self._bar.get_data()
        taken += spots(self.axes, [*x, *self._mean.get_xdata()], [*y, y[0]], 7)
        settle([self._mean_label, *self._labels], taken, ABOVE)


def deltas_title(metric: str | Metric, deltas: pd.Series[float]) -> str:
    """Say how many queries got worse and better.

    Parameters
    ----------
    metric : str or Metric
    deltas : Series of float by qid
        As in `DeltasFigure.update`.

    Examples
    --------
    >>> deltas_title("answer_retention", pd.Series([0.0, -1.0, float("nan")]))
    '1 query lost its answer, 0 gained, of 2'
    """
    known, values = as_metric(metric), deltas.dropna().to_numpy(float)
    if not len(values):
        return f"“{known.words}”: {NO_QUERY}"
    up, down = int((values > 0).sum()), int((values < 0).sum())
    if not up and not down:
        return f"No query changes in “{known.words}” (n = {len(values):,})"
    worse, better = (down, up) if known.higher_is_better else (up, down)
    if known.name == "answer_retention":
        return f"{queries(worse)} lost {their(worse)} answer, {better:,} gained, of {len(values):,}"
    return f"“{known.words}”: {queries(worse)} worse, {better:,} better, of {len(values):,}"


def _bar_width(changed: Floats) -> float:
    """Give a round width for the bars of a histogram; whole numbers get bars of whole numbers."""
    longest = np.abs(changed).max(initial=0) / BARS
    power = 10.0 ** np.floor(np.log10(longest))
    width = next(float(n * power) for n in (1, 2, 5, 10) if n * power >= longest * (1 - 1e-9))
    return max(width, 1.0) if (changed == np.round(changed)).all() else width


def _bars(changed: Floats, step: float, whole: bool) -> Floats:
    """Count queries: rows of left, right, count. No bar reaches over zero; its far end belongs to it."""
    number, count = np.unique(np.sign(changed) * np.ceil(np.abs(changed) / step - 1e-9), return_counts=True)
    far, near = number * step, (number - np.sign(number)) * step
    if whole:
        far, near = number * step * 1.25, number * step * 0.75
    return np.column_stack([np.minimum(far, near), np.maximum(far, near), count])


def _plus(value: float) -> str:
    """Write a number of an axis with a real minus sign."""
    return f"{value:+,g}".replace("-", "\N{MINUS SIGN}") if value else "0"
