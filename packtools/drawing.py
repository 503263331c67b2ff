"""How every figure looks: colours, widths, axes, safe text, and the files that a figure is written to."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from packtools import metrics
from packtools.errors import SettingError, unknown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["export_figure"]

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
LAYOUTS = {"page": (0.58, (0.12, 0.97, 0.245, 0.81), 1), "column": (1.05, (0.24, 0.95, 0.3, 0.755), 2)}
"""Height by width; left, right, bottom and top of the axes as shares; lines that a line of words may take."""
FORMATS = ("png", "svg", "pdf")
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "svg.hashsalt": "packtools",
    "pdf.fonttype": 42,
    "text.parse_math": False,
}
FALLBACKS = (
    "Noto Sans CJK", "Source Han Sans", "Noto Sans JP", "Noto Sans SC", "Noto Sans KR", "WenQuanYi",
    "IPAexGothic", "IPAGothic", "Droid Sans Fallback", "Microsoft YaHei", "Yu Gothic", "MS Gothic",
    "Malgun Gothic", "Hiragino Sans", "PingFang", "Arial Unicode MS",
)  # fmt: skip
"""First words of the names of fonts for Chinese, Japanese and Korean, in the order they are looked for."""
LONGEST, SMALLEST = 122, 7.0
"""Characters of a line that fit the page width, in points of the caption."""
LETTER = 0.62
"""Width of a letter, as a share of the size of its font."""


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
    text = json.dumps(settings, ensure_ascii=True, sort_keys=True)
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Software": None, "Description": text},
        "svg": {"Date": None, "Description": text},
        "pdf": {"CreationDate": None, "Subject": text},
    }
    stem = Path(stem)
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    with styled():
        for kind in formats:
            if kind not in metadata:
                unknown(SettingError, "export_figure", "format", kind, metadata)
            path = stem.with_name(f"{stem.name}.{kind}")
            figure.savefig(path, format=kind, dpi=dpi, metadata=metadata[kind])
            paths.append(path)
    return paths


@dataclasses.dataclass(frozen=True)
class Canvas:
    """Hold a figure in the look of all figures, laid out once: its axes, and its words to be set.

    Parameters
    ----------
    figure : Figure
    axes : Axes
    small : float
        Points of the ticks' text; the other sizes follow.
    words : tuple of Text
        Title, subtitle, caption.
    lines : int
        How many lines each line of them may take.
    """

    figure: Figure
    axes: Any
    small: float
    words: tuple[Any, ...]
    lines: int

    def say(self, title: str, subtitle: str, caption: str) -> None:
        """Set the words."""
        for text, said in zip(self.words, (title, subtitle, caption), strict=True):
            wide = 0.92 if text.get_weight() == "bold" else 1.0
            room = self.figure.get_figwidth() / WIDTHS["page"] * (SMALLEST / text.get_fontsize())
            text.set_text(_wrapped(drawable(said, 1000), int(LONGEST * room * wide), self.lines))
        above, below, _ = self.words
        high = 1.35 * above.get_fontsize() * (above.get_text().count("\n") + 1)
        below.set_y(above.get_position()[1] - high / 72 / self.figure.get_figheight() - 0.027)


def canvas(metric: metrics.Metric, width: str, where: str, dpi: int = 110) -> Canvas:
    """Make an empty figure for a metric."""
    if width not in WIDTHS:
        unknown(SettingError, where, "width", width, WIDTHS)
    inches, small = WIDTHS[width], 7.0 if width == "column" else 8.0
    high, (left, right, bottom, top), lines = LAYOUTS[width]
    with styled():
        figure = figure_class()(figsize=(inches, inches * high), dpi=dpi, facecolor="white")
        ax = figure.add_axes((left, bottom, right - left, top - bottom))
        style(ax, metric, small)
        words = (
            figure.text(0.012, 0.965, "", fontsize=small + 3, color=INK, weight="bold", va="top"),
            figure.text(0.012, 0.885, "", fontsize=small + 0.5, color=INK, va="top"),
            figure.text(0.012, 0.02, "", fontsize=SMALLEST, color=GREY, va="bottom"),
        )
    return Canvas(figure, ax, small, words, lines)


def style(ax: Any, metric: metrics.Metric, small: float) -> None:
    """Give axes the look of all figures."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#BBBBBB")
    ax.grid(True, color="#E8E8E8", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=small, colors=INK, length=3)
    ax.set_xscale("log")
    name_y(ax, axis_words(metric), small)


def name_y(ax: Any, words: str, small: float) -> None:
    """Name the vertical axis, in two lines if it is short."""
    room = ax.get_position().height * ax.figure.get_figheight() * 72
    ax.set_ylabel(textwrap.fill(words, int(room / 0.58 / (small + 1))), fontsize=small + 1, color=INK)


def limits(ax: Any, metric: metrics.Metric, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
    """Set limits and round ticks around what is drawn."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    x, y = x[np.isfinite(x) & (x > 0)], y[np.isfinite(y)]
    left, right = (x.min() / 1.25, x.max() * 1.35) if len(x) else (1.0, 10.0)
    ticks = [t for t in _round_ticks(left, right) if left <= t <= right]
    while len(ticks) < 2:  # an axis without numbers says nothing
        left, right = left / 1.3, right * 1.3
        ticks = [t for t in _round_ticks(left, right) if left <= t <= right]
    ax.set_xlim(left, right)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}" if left >= 1 else f"{v:g}"))
    bottom, top = (y.min(), y.max()) if len(y) else (0.0, 1.0)
    pad = max((top - bottom) * 0.18, 2.0 if metric.unit == "share" else 0.5)
    ax.set_ylim(bottom - pad, top + pad)
    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    unit = " %" if metric.unit == "share" else ""
    ax.yaxis.set_major_formatter(
        FuncFormatter(lambda v, _: f"{v:,.0f}{unit}" if v <= 100 or not unit else "")
    )


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


@lru_cache(maxsize=1)
def figure_class() -> type[Figure]:
    """Give a Figure that shows itself in Jupyter, where no pyplot backend does it."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            return png(self)

    return ShownFigure


def place(label: Any, x: float, y: float, text: str) -> None:
    """Write a label beside its point; nothing where there is no point."""
    label.set_visible(bool(np.isfinite(x) and np.isfinite(y) and x > 0))
    if label.get_visible():
        label.xy = (x, y)
        label.set_text(drawable(text))


def near_right(ax: Any, x: float, text: str, size: float) -> bool:
    """Whether a text beside a point of a log axis would run out on the right."""
    left, right = np.log(ax.get_xlim())
    return bool(x > 0 and (np.log(x) - left) / (right - left) > 1 - _share(ax, text, size))


def side(ax: Any, x: float, text: str, size: float) -> tuple[str, int]:
    """Say how a text below a point of a log axis is aligned with it, and moved sideways, in points."""
    if not near_right(ax, x, text, size):
        return "left", 9
    return ("right", -9) if near_right(ax, x, text[: len(text) // 2 + 1], size) else ("center", 0)


def _share(ax: Any, text: str, size: float) -> float:
    """Give the share of the width of axes that a text takes."""
    wide = ax.get_position().width * ax.figure.get_figwidth()
    return float(LETTER * size * columns(text) / 72 / wide + 0.03)


def columns(text: str) -> int:
    """Count the letters of a text, the square ones of Chinese and the like twice."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(letter: str) -> int:
    return 2 if letter == "□" or unicodedata.east_asian_width(letter) in "WF" else 1


def drawable(text: str, longest: int = LONGEST) -> str:
    """Make a text safe to draw: characters that the fonts lack become "□", long lines are cut."""
    known = _glyphs()
    lines = (
        "".join(c if ord(c) in known else " " if c.isspace() else "□" for c in line)
        for line in text.split("\n")
    )
    return "\n".join(_cut(line, longest) for line in lines)


def short(text: str, longest: int = 24) -> str:
    """Make a name of any length a drawable label of one line."""
    return drawable(" ".join(text.split()), longest)


def _wrapped(text: str, longest: int, lines: int) -> str:
    """Break each line of a text into so many lines at most; the last is cut."""
    out: list[str] = []
    for line in text.split("\n"):
        if columns(line) <= longest:
            out.append(line)
            continue
        parts = textwrap.wrap(line, max(longest * len(line) // max(columns(line), 1), 1))
        out += [*parts[: lines - 1], _cut(" ".join(parts[lines - 1 :]), longest)]
    return "\n".join(out)


def _cut(line: str, longest: int) -> str:
    """Cut a line to so many columns."""
    if columns(line) <= longest:
        return line
    ends = np.cumsum([_columns(letter) for letter in line])
    return line[: int(np.searchsorted(ends, longest - 1, side="right"))] + "…"


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draw in the look of all figures, with a font for Chinese and the like if one is installed."""
    from matplotlib import rc_context

    with rc_context(STYLE | {"font.family": list(families())}):
        yield


@lru_cache(maxsize=1)
def families() -> tuple[str, ...]:
    """Name the fonts of all figures: the one that comes with matplotlib, and the one behind it."""
    from matplotlib.font_manager import fontManager

    fonts = fontManager.ttflist
    names = sorted({font.name for font in fonts if font.name.startswith(FALLBACKS)})
    first = STYLE["font.family"][0]
    if not names:
        return (first,)
    name = min(names, key=lambda one: next(i for i, f in enumerate(FALLBACKS) if one.startswith(f)))
    faces = [font for font in fonts if font.name == name]
    for weight in {400, 700}.difference(font.weight for font in faces):  # or each missing weight is logged
        nearest = min(faces, key=lambda font: (abs(int(font.weight) - weight), font.style != "normal"))
        fonts.append(dataclasses.replace(nearest, weight=weight))
    return (first, name)


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    """Code points that the fonts of all figures have, plain and bold."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    known: set[int] = set()
    for name in families():
        faces = (FontProperties(family=name, weight=weight) for weight in ("normal", "bold"))
        plain, bold = (set(get_font(findfont(face)).get_charmap()) for face in faces)
        known |= plain & bold
    return frozenset(known)


def axis_words(metric: metrics.Metric) -> str:
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


def name_ends(ax: Any, ends: list[tuple[float, float, str, str]], size: float) -> None:
    """Write names left of the points where curves begin, none over another."""
    ends = [end for end in ends if end[1] > 0]
    left, right = ax.get_xlim()
    for _, x, name, _ in ends:  # room for the name
        share = min(_share(ax, name, size), 0.8)
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
