"""Tables to matplotlib figures, and their export; screen and paper are the same code.

Object-oriented matplotlib only, never pyplot. A figure is laid out once and then updated.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from packtools import metrics
from packtools.errors import SettingError, unknown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TradeOffFigure", "curves_figure", "export_figure", "trade_off_figure"]

# Okabe, Ito (2008), Color Universal Design.
STRONG, MUTED, GREY, INK = "#D55E00", "#0072B2", "#767676", "#222222"
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": STRONG, "marker": "D", "linewidth": 2.0},
    {"color": MUTED, "marker": "s", "linewidth": 1.4},
    {"color": "#009E73", "marker": "^", "linewidth": 1.4},
    {"color": "#8A5A83", "marker": "o", "linewidth": 1.4},
    {"color": GREY, "marker": "v", "linewidth": 1.4},
)
WIDTHS = {"page": 6.9, "column": 3.3}
FORMATS = ("png", "svg", "pdf")
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "svg.hashsalt": "packtools",
    "pdf.fonttype": 42,
    "text.parse_math": False,
}
LONGEST = 122
"""Characters of a caption line that fit the page width."""


class TradeOffFigure:
    """Draw quality against cost: the budget curve, the baseline and this setting.

    Parameters
    ----------
    quality : str, default "answer_retention"
        The metric on the vertical axis.
    width : {"page", "column"}, default "page"
    dpi : int, default 110
        Of the picture on screen.
    """

    def __init__(self, quality: str = "answer_retention", width: str = "page", dpi: int = 110) -> None:
        from matplotlib import rc_context

        if width not in WIDTHS:
            unknown(SettingError, "TradeOffFigure", "width", width, WIDTHS)
        self.metric = metrics.get_metric(quality)
        inches = WIDTHS[width]
        self.small = 7.0 if width == "column" else 8.0
        with rc_context(STYLE):
            self.figure: Figure = _figure_class()(figsize=(inches, inches * 0.58), dpi=dpi, facecolor="white")
            self.axes = self.figure.add_axes((0.12, 0.245, 0.85, 0.565))
            self._build()

    def _build(self) -> None:
        ax, small = self.axes, self.small
        _style(ax, self.metric, small)
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
        self._title = self.figure.text(
            0.012, 0.965, "", fontsize=small + 3, color=INK, weight="bold", va="top"
        )
        self._subtitle = self.figure.text(0.012, 0.885, "", fontsize=small + 0.5, color=INK, va="top")
        self._caption = self.figure.text(0.012, 0.02, "", fontsize=small - 1, color=GREY, va="bottom")

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
        base, line = curve.iloc[0], curve.iloc[1:]
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
        _limits(
            self.axes,
            self.metric,
            np.array([*x, base["n_tokens"], here["n_tokens"]]),
            np.array([*y, *low, *high, zero, *ends]),
        )
        _place(self._base_label, base["n_tokens"], zero, f"{curve.index[0]}: {base['n_tokens']:,.0f} {noun}")
        _place(
            self._here_label,
            here["n_tokens"],
            here["quality"] * scale,
            f"this setting: {here['n_tokens']:,.0f}",
        )
        near_edge = here["n_tokens"] > 0.6 * self.axes.get_xlim()[1]
        self._here_label.set_horizontalalignment("right" if near_edge else "left")
        self._here_label.set_position((-9 if near_edge else 9, -8))
        self.axes.set_xlabel(f"{noun} per query, mean (log scale)", fontsize=self.small + 1, color=INK)
        self._title.set_text(drawable(title))
        self._subtitle.set_text(drawable(subtitle))
        self._caption.set_text(drawable(caption))

    def png(self) -> bytes:
        """Render for the screen."""
        return _png(self.figure)


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
    quality: str = "answer_retention",
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
    quality : str, default "answer_retention"
    title, subtitle, caption : str
    noun : {"tokens", "characters"}, default "tokens"
    """
    drawn = TradeOffFigure(quality)
    first = next(iter(curves.values()))
    base = first.iloc[0]
    nowhere = dict.fromkeys(("n_tokens", "quality", "ci_low", "ci_high"), float("nan"))
    drawn.update(first.iloc[:1], nowhere, title, subtitle, caption, noun)
    ax, scale = drawn.axes, 100.0 if drawn.metric.unit == "share" else 1.0
    xs, ys = [base["n_tokens"]], [base[quality] * scale]
    ends: list[tuple[float, float, str, str]] = []
    for look, (name, curve) in zip(itertools.cycle(LOOKS), curves.items(), strict=False):
        line = curve.iloc[1:].sort_values("n_tokens", kind="stable")
        x, y = line["n_tokens"].to_numpy(float), line[quality].to_numpy(float) * scale
        low, high = (base[quality] * scale + line[f"{quality}_ci_{end}"] * scale for end in ("low", "high"))
        ax.fill_between(x, low, high, color=look["color"], alpha=0.1, linewidth=0)
        ax.plot(x, y, markersize=4.5, **look)
        ends.append((y[0], x[0], name, look["color"]))
        xs, ys = [*xs, *x], [*ys, *y, *low, *high]
    _limits(ax, drawn.metric, np.array(xs), np.array(ys))
    _name_ends(ax, ends, drawn.small)
    return drawn.figure


def _name_ends(ax: Any, ends: list[tuple[float, float, str, str]], size: float) -> None:
    """Write names left of the points where curves begin, none over another."""
    left, right = ax.get_xlim()
    for _, x, name, _ in ends:  # room for the name: its share of the width, letters being 0.62 em wide
        share = min(0.62 * size * len(name) / 72 / (0.85 * WIDTHS["page"]) + 0.03, 0.8)
        left = min(left, x / (right / x) ** (share / (1 - share)))
    ax.set_xlim(left, right)
    bottom, top = ax.get_ylim()
    step = (top - bottom) * 0.065
    at = -np.inf
    for y, x, name, color in sorted(ends):
        at = max(y, at + step)
        place: dict[str, Any] = {"xycoords": "data", "textcoords": "data", "ha": "right", "va": "center"}
        ax.annotate(
            drawable(name), (x, y), (x / 1.06, at), color=color, fontsize=size, weight="bold", **place
        )


def export_figure(
    figure: Figure,
    stem: str | Path,
    *,
    settings: Mapping[str, Any],
    formats: tuple[str, ...] = FORMATS,
    dpi: int = 300,
) -> list[Path]:
    """Write a figure as files that are byte-identical on repeat, with its settings inside.

    Parameters
    ----------
    figure : Figure
    stem : path
        Path without suffix.
    settings : mapping
        Plain values; written into the file's description.
    formats : tuple of {"png", "svg", "pdf"}
    dpi : int, default 300

    Returns
    -------
    list of Path
    """
    from matplotlib import rc_context

    text = json.dumps(settings, ensure_ascii=True, sort_keys=True)
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Software": None, "Description": text},
        "svg": {"Date": None, "Description": text},
        "pdf": {"CreationDate": None, "Subject": text},
    }
    stem = Path(stem)
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    with rc_context(STYLE):
        for kind in formats:
            if kind not in metadata:
                unknown(SettingError, "export_figure", "format", kind, metadata)
            path = stem.with_name(f"{stem.name}.{kind}")
            figure.savefig(path, format=kind, dpi=dpi, metadata=metadata[kind])
            paths.append(path)
    return paths


def _style(ax: Any, metric: metrics.Metric, small: float) -> None:
    """Give axes the look of all figures."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#BBBBBB")
    ax.grid(True, color="#E8E8E8", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=small, colors=INK, length=3)
    ax.set_xscale("log")
    ax.set_ylabel(_axis_words(metric), fontsize=small + 1, color=INK)


def _limits(ax: Any, metric: metrics.Metric, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
    """Set limits and round ticks around what is drawn."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    x, y = x[np.isfinite(x) & (x > 0)], y[np.isfinite(y)]
    left, right = (x.min() / 1.25, x.max() * 1.35) if len(x) else (1.0, 10.0)
    ticks = [t for t in _round_ticks(left, right) if left <= t <= right]
    while len(ticks) < 2:  # an axis without numbers says nothing
        left, right = left / 1.3, right * 1.3
        ticks = [t for t in _round_ticks(left, right) if left <= t <= right]
    ax.set_xlim(left, right)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    bottom, top = (y.min(), y.max()) if len(y) else (0.0, 1.0)
    pad = max((top - bottom) * 0.18, 2.0 if metric.unit == "share" else 0.5)
    ax.set_ylim(bottom - pad, top + pad)
    unit = " %" if metric.unit == "share" else ""
    ax.yaxis.set_major_formatter(
        FuncFormatter(lambda v, _: f"{v:,.0f}{unit}" if v <= 100 or not unit else "")
    )


def _png(figure: Figure) -> bytes:
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


@lru_cache(maxsize=1)
def _figure_class() -> type[Figure]:
    """Give a Figure that shows itself in Jupyter, where no pyplot backend does it."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            return _png(self)

    return ShownFigure


def _place(label: Any, x: float, y: float, text: str) -> None:
    """Write a label beside its point; nothing where there is no point."""
    label.set_visible(bool(np.isfinite(x) and np.isfinite(y) and x > 0))
    if label.get_visible():
        label.xy = (x, y)
        label.set_text(text)


def drawable(text: str) -> str:
    """Make a text safe to draw: characters that the font lacks become "□", long lines are cut."""
    known = _glyphs()
    lines = (
        "".join(c if ord(c) in known else " " if c.isspace() else "□" for c in line)
        for line in text.split("\n")
    )
    return "\n".join(line if len(line) <= LONGEST else line[: LONGEST - 1] + "…" for line in lines)


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    """Code points of the font of all figures, which comes with matplotlib."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont(STYLE["font.family"][0])).get_charmap())


def _axis_words(metric: metrics.Metric) -> str:
    return (
        f"{metric.words}, % of queries"
        if metric.name == "answer_retention"
        else (f"{metric.words}, mean %" if metric.unit == "share" else f"{metric.words} per query, mean")
    )


def _round_ticks(left: float, right: float) -> list[float]:
    """1, 2, 5 times powers of ten; fewer when the range is wide."""
    powers = range(int(np.floor(np.log10(left))), int(np.ceil(np.log10(right))) + 1)
    steps = (1, 2, 5) if right / left < 300 else (1,)
    return [s * 10.0**p for p in powers for s in steps]
