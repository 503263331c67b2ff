"""What the panel shows of one setting: its comparison with the baseline, and how to say it in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from packtools import __version__, metrics, stats
from packtools.config import PackerConfig
from packtools.counters import counted
from packtools.exporting import export_view
from packtools.figures import TradeOffFigure
from packtools.inference import p_values
from packtools.money import Price
from packtools.packed import PackedRun
from packtools.prepared import PreparedRun
from packtools.tradeoff import delta_table
from packtools.words import (
    chance,
    change,
    config_words,
    is_testable,
    order_words,
    quality_words,
    queries,
    setting_words,
    their,
)

__all__ = ["View"]

INTERVAL = "95 % paired bootstrap interval"


@dataclass(frozen=True)
class View:
    """Hold all that the panel shows of one setting.

    Parameters
    ----------
    baseline, packed : PackedRun
        What is compared, of one prepared run.
    quality : str
        Metric on the vertical axis.
    curve : DataFrame
        The same setting under a ladder of budgets, baseline first.
    against : str
        What the baseline is called: "everything", "baseline", or the name of a pinned setting.
    pinned : mapping of str to PackedRun
        The settings that were pinned, by name.
    price : Price or None
        What tokens cost; None says nothing of money.
    """

    baseline: PackedRun
    packed: PackedRun
    quality: str
    curve: pd.DataFrame
    against: str = "everything"
    pinned: Mapping[str, PackedRun] = field(default_factory=dict)
    price: Price | None = None

    @property
    def config(self) -> PackerConfig:
        """The setting."""
        return self.packed.config

    @property
    def prepared(self) -> PreparedRun:
        """The run."""
        return self.packed.prepared

    @property
    def missing(self) -> list[str]:
        """Say which metrics are not available, and why."""
        return [f"{metrics.METRICS[n].words}: {why}" for n, why in self.prepared.unavailable.items()]

    @cached_property
    def table(self) -> pd.DataFrame:
        """This setting against the baseline, metric by metric."""
        return delta_table(self.baseline, self.packed)

    @property
    def noun(self) -> str:
        """What the costs count: "tokens" or "characters"."""
        return counted(self.prepared.counter)

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
                "query": self.prepared.run.queries["text"],
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

    @cached_property
    def changes_nothing(self) -> bool:
        """Whether every query packs exactly as in the baseline."""
        same = (
            self.baseline.keep.shape == self.packed.keep.shape
            and (self.baseline.keep == self.packed.keep).all()
        )
        same = bool(same and (self.baseline.layout.rank == self.packed.layout.rank).all())
        same = same and bool((self.baseline.per_query["n_chars"] == self.packed.per_query["n_chars"]).all())
        return same and same_texts(self.baseline, self.packed)

    @property
    def sentences(self) -> list[str]:
        """The answer in words: cost, quality, flips, what was held back."""
        if self.changes_nothing:
            return ["This setting changes nothing: every query packs as in the baseline."]
        cost = self.row("n_tokens")
        out = [cost_words(cost["baseline"], cost["candidate"], self.noun)]
        quality = self.row(self.quality)
        said = quality_words(metrics.METRICS[self.quality], quality)
        out.append(f"{said}, p {self.p_words}" if is_testable(quality) else said)
        lost, gained = self.flips
        if "answer_retention" in self.packed.per_query and self.row("answer_retention")["n"]:
            listed = f" ({', '.join(lost[:3])}{', …' if len(lost) > 3 else ''})" if lost else ""
            out.append(f"{queries(len(lost))} lost {their(len(lost))} answer{listed}, {len(gained):,} gained")
        if self.price is not None:
            out.append(self._money(self.price))
        held = self.packed.n_held_back
        if held:
            what = (
                "near-duplicate held back: it differs"
                if held == 1
                else "near-duplicates held back: they differ"
            )
            out.append(f"{held:,} {what} in a number, a date or a negation")
        return out

    @cached_property
    def p_value(self) -> float:
        """Of the quality: McNemar's exact test where it is yes or no, else random signs."""
        base, here = (p.per_query[[self.quality]].to_numpy(float) for p in (self.baseline, self.packed))
        return float(p_values(base, here, rng=0)[0])

    @property
    def p_words(self) -> str:
        """The p-value as "= 0.0312" or "< 0.0001"."""
        said = chance(self.p_value)
        return said if said.startswith("<") else f"= {said}"

    def _money(self, price: Price) -> str:
        """Say the price of the prompts, here and in the baseline."""
        if self.noun != "tokens":
            return "no price: this counter counts characters"
        costs = [price.cost(p.per_query["n_tokens"]).mean() for p in (self.packed, self.baseline)]
        if np.isnan(costs).any():
            return f"no price of input tokens in {price.name}"
        digits = 2 if 1000 * min(costs) >= 0.1 or not min(costs) else 4
        here, base = (f"{1000 * c:,.{digits}f}" for c in costs)
        return f"{here} of {base} USD per 1,000 queries ({price.name}, input)"

    @cached_property
    def pins(self) -> pd.DataFrame:
        """Each pinned setting against the baseline: index name.

        Columns words, n_tokens and quality (means), delta, ci_low, ci_high, n.
        """
        name, rows = self.quality, {}
        base = self.baseline.per_query[name]
        for letter, packed in self.pinned.items():
            cost, here = packed.per_query["n_tokens"], packed.per_query[name]
            d = stats.paired_bootstrap(base, here)
            told = {
                "words": config_words(packed.config, self.noun),
                "n_tokens": cost.mean(),
                "quality": here.mean(),
            }
            rows[letter] = {**told, "delta": d.delta, "ci_low": d.low, "ci_high": d.high, "n": d.n}
        columns = ["words", "n_tokens", "quality", "delta", "ci_low", "ci_high", "n"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("pin")

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
        return self.foot(f"bar and band: {INTERVAL} of the difference to {self.against}")

    def foot(self, note: str) -> str:
        """Give n, counter, settings and what is drawn, for the foot of a figure."""
        row = self.row(self.quality)
        parts = [
            f"n = {row['n']:,} of {row['N']:,} queries",
            self.prepared.run.name,
            self.prepared.counter.name,
            order_words(self.config.order),
        ]
        return " · ".join(parts) + "\n" + " · ".join([*setting_words(self.config, self.noun), note])

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
        figure.update(
            self.curve,
            self.here,
            self.title,
            self.subtitle,
            self.caption,
            self.noun,
            self.pins if self.pinned else None,
        )

    def figure(self, width: str = "page") -> Any:
        """Draw this view as a figure of its own."""
        drawn = TradeOffFigure(self.quality, width)
        self.draw(drawn)
        return drawn.figure

    def to_dict(self) -> dict[str, Any]:
        """Give what reproduces this view."""
        return {
            "packtools": __version__,
            "run": self.prepared.run.name,
            "counter": self.prepared.counter.name,
            "quality": self.quality,
            "against": self.against,
            "baseline": self.baseline.config.to_dict(),
            "settings": self.config.to_dict(),
            "pinned": {name: packed.config.to_dict() for name, packed in self.pinned.items()},
            "price": None if self.price is None else asdict(self.price),
        }

    def export(self, folder: str | Path, **options: Any) -> list[Path]:
        """Write figure, tables, setting and packed predictions: see `export_view`."""
        return export_view(self, folder, **options)


def same_texts(one: PackedRun, other: PackedRun) -> bool:
    """Whether two packs of the same chunks in the same order read the same."""
    joined = one.config.separator == other.config.separator
    if not joined and (one.per_query["n_chunks"] > 1).any():
        return False
    if one.trims != other.trims:
        return False
    rank, query = one.layout.rank, one.layout.query
    left = [packed.prepared.left(packed.config) for packed in (one, other)]
    if one.prepared is other.prepared:
        cut = (left[0].slot[rank, query] >= 0) | (left[1].slot[rank, query] >= 0)
        rank, query = rank[cut], query[cut]
    return left[0].texts(rank, query) == left[1].texts(rank, query)


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
