"""How settings and differences are said in words, the same in the panel, the tables and the reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from packtools.config import PackerConfig
from packtools.metrics import Metric

__all__ = [
    "amount",
    "chance",
    "config_words",
    "label",
    "order_words",
    "points",
    "quality_words",
    "setting_words",
]

SELECTION_WORDS = {"head": "place", "tfidf": "TF-IDF", "mmr": "MMR"}
SAID = (
    "budget", "unit", "reserve", "order", "overflow", "jaccard_threshold", "passage_budget",
    "sentence_selection", "detect_conflicts",
)  # fmt: skip
"""Settings that a line of words says anyway, or that pack nothing otherwise."""
USUAL = PackerConfig(separator="\n\n")


def order_words(name: str) -> str:
    """Say the name of an ordering: "lost in the middle"."""
    words = {"lost_in_middle": "lost in the middle", "fill": "as filled", "document": "document order"}
    return words.get(name, name.replace("_", " "))


def selection_words(name: str) -> str:
    """Say the name of a selector: "query overlap", "TF-IDF"."""
    return SELECTION_WORDS.get(name, name.replace("_", " "))


def setting_words(config: PackerConfig, noun: str = "tokens") -> list[str]:
    """Say what a setting does to duplicates and long passages: "near-duplicates dropped from 0.85".

    `noun` is what the counter counts, as in `counted`.
    """
    out = [_duplicate_words(config.jaccard_threshold)]
    if config.passage_budget is not None:
        how = config.sentence_selection
        by = "" if how is None else f", sentences by {selection_words(how)}"
        out.append(f"passages cut to {count_words(config.passage_budget, _nouns(config.unit, noun))}{by}")
    if config.overflow == "truncate" and config.budget is not None:
        out.append("the last passage cut to fit")
    return out


def config_words(config: PackerConfig, noun: str = "tokens") -> str:
    """Say a whole setting in a line: "1,000 tokens · lost in the middle · near-duplicates …".

    What is said nowhere else, and is not as it usually is, follows: two settings have two lines.
    """
    first = [_said(config, "budget", noun), *([f"{config.reserve:,} reserved"] if config.reserve else [])]
    rest = (name for name in USUAL.to_dict() if name not in SAID)
    more = [_said(config, name, noun) for name in rest if getattr(config, name) != getattr(USUAL, name)]
    return " · ".join([*first, order_words(config.order), *setting_words(config, noun), *more])


def count_words(n: int, nouns: str) -> str:
    """Say a number of tokens or characters: "1 token", "1,000 characters"."""
    return f"{n:,} {nouns[:-1] if n == 1 else nouns}"


def is_testable(row: pd.Series[Any]) -> bool:
    return bool(row["n"] >= 2)


def change(metric: Metric, delta: float) -> str:
    scale, unit = (100, " points") if metric.unit == "share" else (1, "")
    return signed(delta * scale) + unit


def quality_words(metric: Metric, row: pd.Series[Any]) -> str:
    """Say the change of a metric with its interval, or that none can be measured."""
    n = int(row["n"])
    if n == 0:
        return f"{metric.words}: not scored (n = 0)"
    delta = change(metric, row["delta"])
    scale = 100 if metric.unit == "share" else 1
    if not is_testable(row):
        return f"{metric.words} {delta}, not testable (n = {n})"
    interval = f"[{signed(row['ci_low'] * scale)}, {signed(row['ci_high'] * scale)}]"
    if row["ci_low"] <= 0 <= row["ci_high"]:
        return f"no measurable change in “{metric.words}”: {delta} {interval}, n = {n:,}"
    return f"{metric.words} {delta} {interval}, n = {n:,}"


def signed(value: float) -> str:
    """Write a number with a real minus sign, one decimal."""
    text = f"{value:+,.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "\N{MINUS SIGN}")


def queries(n: int) -> str:
    return f"{n:,} {'query' if n == 1 else 'queries'}"


def their(n: int) -> str:
    return "its" if n == 1 else "their"


def amount(metric: Metric, value: float) -> str:
    """Write a mean of a metric: "98.6 %", "1,012", "0.004310 USD"."""
    if np.isnan(value):
        return "n/a"
    if metric.unit == "share":
        return f"{value:.1%}".replace("%", " %")
    return f"{value:,.6f} USD" if metric.unit == "USD" else f"{value:,.{0 if abs(value) >= 100 else 1}f}"


def points(metric: Metric, value: float) -> str:
    """Write a difference: in points for shares, else in the metric's unit."""
    if np.isnan(value):
        return "n/a"
    return (
        f"{value:+,.6f}" if metric.unit == "USD" else signed(value * (100 if metric.unit == "share" else 1))
    )


def chance(p_value: float) -> str:
    """Write a p-value: "0.0312", "< 0.0001"."""
    if np.isnan(p_value):
        return "n/a"
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def label(config: PackerConfig, varied: Sequence[str], noun: str = "tokens") -> str:
    """Name a setting by what varies in its grid: "1,000 tokens · descending"."""
    return " · ".join(_said(config, name, noun) for name in varied) or "this setting"


def _said(config: PackerConfig, name: str, noun: str) -> str:
    value = getattr(config, name)
    if name == "budget":
        return "no budget" if value is None else count_words(value, _nouns(config.unit, noun))
    if name == "order":
        return order_words(value)
    if name == "jaccard_threshold":
        return _duplicate_words(value)
    if name == "passage_budget":
        if value is None:
            return "passages whole"
        return f"passages to {count_words(value, _nouns(config.unit, noun))}"
    if name == "protect_differences":
        return "differences protected" if value else "differences not protected"
    return f"{name.replace('_', ' ')} {value!r}"


def _duplicate_words(threshold: float | None) -> str:
    if threshold is None:
        return "near-duplicates kept"
    shown = f"{threshold:.2f}" if round(threshold, 2) == threshold else repr(threshold)
    return f"near-duplicates dropped from {shown}"


def _nouns(unit: str, noun: str) -> str:
    return "characters" if unit == "chars" else noun
