"""A row of the benchmark table, and how its two sides are timed in turns."""

from __future__ import annotations

import gc
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Pairs = list[tuple[float, float]]


@dataclass(frozen=True)
class Row:
    """Hold one line of the table.

    Parameters
    ----------
    measure, rival : str
        What is measured, and against what.
    pairs : list of (ours, rival)
        Seconds, or bytes where `unit` is "MB"; taken in turns.
    wanted : float
        The most that ours / rival may be; with `faster` the least that rival / ours may be.
    """

    measure: str
    rival: str
    pairs: Pairs
    wanted: float
    faster: bool = False
    unit: str = "s"
    of_medians: bool = False

    @property
    def ratios(self) -> list[float]:
        """Give the ratio of each pair."""
        return [b / a if self.faster else a / b for a, b in self.pairs]

    @property
    def ratio(self) -> float:
        """Give the median of the ratios, or the ratio of the medians."""
        ours, rival = (statistics.median(side) for side in zip(*self.pairs, strict=True))
        return ours / rival if self.of_medians else statistics.median(self.ratios)

    def line(self) -> str:
        """Write the row as Markdown."""
        ours, rival = (self._shown(statistics.median(s)) for s in zip(*self.pairs, strict=True))
        low, high = min(self.ratios), max(self.ratios)
        met = self.ratio >= self.wanted if self.faster else self.ratio <= self.wanted
        word, sign = (" faster", "≥") if self.faster else ("", "≤")
        spread = f" ({low:.3g}–{high:.3g})" if len(self.pairs) > 1 else ""
        cells = [
            self.measure, ours, f"{rival}: {self.rival}", f"{self.ratio:.3g} ×{word}{spread}",
            f"{sign} {self.wanted:g} ×{word}", "yes" if met else "no",
        ]  # fmt: skip
        return f"| {' | '.join(cells)} |"

    def _shown(self, value: float) -> str:
        if self.unit == "MB":
            return f"{value / 1e6:,.0f} MB"
        return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


# --- timing -------------------------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    """Time one call, with the collector run before it and on during it."""
    gc.collect()
    start = time.perf_counter()
    result = work()
    taken = time.perf_counter() - start
    del result  # freed outside the timing
    return taken


def alternate(
    ours: Callable[[int], object], rival: Callable[[int], object], repeat: int, scale: float = 1.0
) -> Pairs:
    """Time both in turns; each gets the number of the turn. The rival's time is scaled."""
    return [(seconds(partial(ours, i)), scale * seconds(partial(rival, i))) for i in range(repeat)]


def child(*command: str) -> str:
    """Run a command from the project root; give what it prints."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def start(command: tuple[str, ...], _: int) -> str:
    """Run a command, whatever the turn."""
    return child(*command)
