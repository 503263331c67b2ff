"""What the panel knows: a setting, its comparison with the baseline, and how to say it in words.

Plain Python without widgets: `widgets` only shows it, and tests read it directly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from packtools import __version__, metrics
from packtools.config import PackerConfig
from packtools.counters import counted
from packtools.drawing import export_figure
from packtools.errors import MetricUnavailable
from packtools.figures import TradeOffFigure
from packtools.packed import PackedRun
from packtools.prepared import PreparedRun, prepare
from packtools.runs.model import Run
from packtools.tradeoff import (
    SHOWN,
    available,
    baseline_name,
    delta_table,
    ladder,
    round_budget,
    trade_off,
    unpacked,
)
from packtools.words import change, is_testable, order_words, quality_words, queries, setting_words, their

__all__ = ["ExplorerModel", "View"]

COUNTERS = ("cl100k_base", "o200k_base", "chars")
THRESHOLD = 0.85
EXPORT_STEM = "trade_off"


@dataclass(frozen=True)
class View:
    """Hold all that the panel shows of one setting.

    Parameters
    ----------
    model : ExplorerModel
    config : PackerConfig
    quality : str
        Metric on the vertical axis.
    baseline, packed : PackedRun
    curve : DataFrame
        The same setting under a ladder of budgets, baseline first.
    """

    model: ExplorerModel
    config: PackerConfig
    quality: str
    baseline: PackedRun
    packed: PackedRun
    curve: pd.DataFrame

    @cached_property
    def table(self) -> pd.DataFrame:
        """This setting against the baseline, metric by metric."""
        return delta_table(self.baseline, self.packed)

    @property
    def noun(self) -> str:
        """What the costs count: "tokens" or "characters"."""
        return counted(self.packed.prepared.counter)

    @property
    def baseline_name(self) -> str:
        """What is compared with: "everything" or "baseline"."""
        return baseline_name(self.baseline.config)

    def row(self, name: str) -> pd.Series[Any]:
        """Give one metric's line of the table."""
        return cast("pd.Series[Any]", self.table.loc[name])

    @cached_property
    def per_query(self) -> pd.DataFrame:
        """Tokens and quality of every query, baseline and here, the largest loss first."""
        name = self.quality
        base, here = self.baseline.per_query, self.packed.per_query
        frame = pd.DataFrame(
            {
                "query": self.model.prepared.run.queries["text"],
                "n_tokens_baseline": base["n_tokens"],
                "n_tokens": here["n_tokens"],
                f"{name}_baseline": base[name],
                name: here[name],
            }
        )
        frame["delta"] = frame[name] - frame[f"{name}_baseline"]
        loss = frame["delta"] if metrics.METRICS[name].higher_is_better else -frame["delta"]
        by = np.lexsort((-(base["n_tokens"] - here["n_tokens"]).to_numpy(), loss.fillna(np.inf).to_numpy()))
        return frame.iloc[by]

    @property
    def flips(self) -> tuple[list[str], list[str]]:
        """Queries that lost their answer, and that gained it."""
        if "answer_retention" not in self.packed.per_query:
            return [], []
        change = self.packed.per_query["answer_retention"] - self.baseline.per_query["answer_retention"]
        return list(change.index[change < 0]), list(change.index[change > 0])

    @property
    def changes_nothing(self) -> bool:
        """Whether every query packs exactly as in the baseline."""
        same = (
            self.baseline.keep.shape == self.packed.keep.shape
            and (self.baseline.keep == self.packed.keep).all()
        )
        same = bool(same and (self.baseline.layout.rank == self.packed.layout.rank).all())
        return same and bool((self.baseline.per_query["n_chars"] == self.packed.per_query["n_chars"]).all())

    @property
    def sentences(self) -> list[str]:
        """The answer in words: cost, quality, flips, what was held back."""
        if self.changes_nothing:
            return ["This setting changes nothing: every query packs as in the baseline."]
        cost = self.row("n_tokens")
        out = [cost_words(cost["baseline"], cost["candidate"], self.noun)]
        quality = self.row(self.quality)
        out.append(quality_words(metrics.METRICS[self.quality], quality))
        lost, gained = self.flips
        if "answer_retention" in self.packed.per_query:
            listed = f" ({', '.join(lost[:3])}{', …' if len(lost) > 3 else ''})" if lost else ""
            out.append(f"{queries(len(lost))} lost {their(len(lost))} answer{listed}, {len(gained):,} gained")
        held = self.packed.n_held_back
        if held:
            what = (
                "near-duplicate held back: it differs"
                if held == 1
                else "near-duplicates held back: they differ"
            )
            out.append(f"{held:,} {what} in a number, a date or a negation")
        return out

    @property
    def title(self) -> str:
        """The finding in a sentence, for the top of the figure."""
        if self.changes_nothing:
            return "This setting changes nothing"
        cost, quality = self.row("n_tokens"), self.row(self.quality)
        words = metrics.METRICS[self.quality].words
        saving = cost_words(cost["baseline"], cost["candidate"], self.noun).partition(" (")[0]
        if not is_testable(quality):
            return saving
        if quality["ci_low"] <= 0 <= quality["ci_high"]:
            return f"{saving}, no measurable change in “{words}”"
        return f"{saving}, {words} {change(metrics.METRICS[self.quality], quality['delta'])}"

    @property
    def subtitle(self) -> str:
        """The figures behind the title."""
        cost, quality = self.row("n_tokens"), self.row(self.quality)
        words = quality_words(metrics.METRICS[self.quality], quality)
        words = words.replace(
            f"no measurable change in “{metrics.METRICS[self.quality].words}”:", "difference"
        )
        return f"{cost['candidate']:,.0f} of {cost['baseline']:,.0f} {self.noun} per query · {words}"

    @property
    def caption(self) -> str:
        """n, counter and settings, for the foot of the figure."""
        row = self.row(self.quality)
        parts = [
            f"n = {row['n']:,} of {row['N']:,} queries",
            self.model.prepared.run.name,
            self.model.prepared.counter.name,
            order_words(self.config.order),
        ]
        foot = [
            *setting_words(self.config),
            f"bar and band: 95 % paired bootstrap interval of the difference to {self.baseline_name}",
        ]
        return " · ".join(parts) + "\n" + " · ".join(foot)

    @property
    def here(self) -> dict[str, float]:
        """The point to mark, with its interval."""
        row = self.row(self.quality)
        return {
            "n_tokens": float(self.packed.per_query["n_tokens"].mean()),
            "quality": float(self.packed.per_query[self.quality].mean()),
            "ci_low": float(row["ci_low"]),
            "ci_high": float(row["ci_high"]),
        }

    def draw(self, figure: TradeOffFigure) -> None:
        """Show this view in a figure."""
        figure.update(self.curve, self.here, self.title, self.subtitle, self.caption, self.noun)

    def figure(self, width: str = "page") -> Any:
        """Draw this view as a figure of its own."""
        drawn = TradeOffFigure(self.quality, width)
        self.draw(drawn)
        return drawn.figure

    def to_dict(self) -> dict[str, Any]:
        """Give what reproduces this view."""
        return {
            "packtools": __version__,
            "run": self.model.prepared.run.name,
            "counter": self.model.prepared.counter.name,
            "quality": self.quality,
            "baseline": self.baseline.config.to_dict(),
            "settings": self.config.to_dict(),
        }

    def export(self, folder: str | Path) -> list[Path]:
        """Write the figure (PNG, SVG, PDF), both tables (CSV) and the settings (JSON).

        The same view gives the same bytes.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = export_figure(self.figure(), folder / EXPORT_STEM, settings=self.to_dict())
        tables = {"comparison.csv": self.table, "per_query.csv": self.per_query, "curve.csv": self.curve}
        for name, table in tables.items():
            table.to_csv(folder / name, lineterminator="\n", float_format="%.10g")
            paths.append(folder / name)
        settings = folder / "settings.json"
        settings.write_text(json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n", "utf-8")
        return [*paths, settings]


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
        None is the unpacked run.
    """

    def __init__(
        self,
        run: Run | PreparedRun | str | Path,
        *,
        counter: str = "cl100k_base",
        config: PackerConfig | None = None,
        baseline: PackerConfig | None = None,
    ) -> None:
        self.prepared = run if isinstance(run, PreparedRun) else prepare(run, counter=counter)
        self._counted = {self.prepared.counter.name: self.prepared}
        self._curves: dict[tuple[str, str, PackerConfig], pd.DataFrame] = {}
        self._baselines: dict[tuple[str, PackerConfig], PackedRun] = {}
        self._baseline = baseline
        if config is None:
            most = self.largest_context(SHOWN)
            threshold = max(THRESHOLD, self.prepared.min_jaccard)
            config = SHOWN.replace(budget=round_budget(most / 4), jaccard_threshold=threshold)
        self.config = config
        self.quality = next(iter(self.qualities))

    def largest_context(self, config: PackerConfig) -> int:
        """Give the size of the largest full context, in the unit of a setting."""
        return max(int(self.prepared.full(config.unit, config.separator).max(initial=1)), 2)

    @property
    def qualities(self) -> dict[str, str]:
        """Metrics for the vertical axis and their words; the chunks kept if there is none."""
        order = ("answer_retention", "gold_retention", "answer_position")
        names = [n for n in order if n in available(self.prepared, "retention")] or ["n_chunks"]
        return {n: metrics.METRICS[n].words for n in names}

    @property
    def missing(self) -> list[str]:
        """Say which metrics are not available, and why."""
        return [f"{metrics.METRICS[n].words}: {why}" for n, why in self.prepared.unavailable.items()]

    def set_counter(self, name: str) -> None:
        """Count the run with another counter; each is counted once."""
        if name not in self._counted:
            self._counted[name] = self.prepared.with_counter(name)
        self.prepared = self._counted[name]

    def set_quality(self, name: str) -> None:
        """Choose the metric of the vertical axis."""
        if name not in self.qualities:
            metrics.need(name, self.prepared.unavailable)
            raise MetricUnavailable(f"{name}: not a quality of this run; known: {', '.join(self.qualities)}.")
        self.quality = name

    def view(self) -> View:
        """Evaluate the current setting."""
        packed = self.prepared.evaluate(self.config)
        base = self._base()
        return View(self, self.config, self.quality, base, packed, self._curve(base))

    def _base(self) -> PackedRun:
        config = self._baseline or unpacked(self.config)
        key = (self.prepared.counter.name, config)
        if key not in self._baselines:
            self._baselines[key] = self.prepared.evaluate(config)
        return self._baselines[key]

    def _curve(self, base: PackedRun) -> pd.DataFrame:
        key = (self.prepared.counter.name, self.quality, self.config.replace(budget=None))
        if key not in self._curves:
            budgets = ladder(self.prepared, self.config)
            self._curves[key] = trade_off(
                self.prepared, self.config, budgets, quality=[self.quality], baseline=base
            )
        return self._curves[key]


def cost_words(baseline: float, here: float, noun: str = "tokens") -> str:
    """Say the saving, token-weighted: "75 % fewer tokens (958 of 3,870 per query)"."""
    figures = f"({here:,.0f} of {baseline:,.0f} per query)"
    if not baseline:
        return f"no {noun} in the baseline (n/a)"
    saved = 1 - here / baseline
    if round(abs(saved), 3) == 0:
        return f"as many {noun} {figures}"
    digits = 1 if abs(saved) < 0.01 or 0.99 < saved < 1 else 0
    share = f"{abs(saved):.{digits}%}".replace("%", " %")
    return f"{share} {'fewer' if saved > 0 else 'more'} {noun} {figures}"
