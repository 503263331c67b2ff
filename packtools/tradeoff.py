"""Cost against quality: settings compared with the unpacked baseline, query by query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from packtools import metrics, stats
from packtools.config import PackerConfig
from packtools.errors import SettingError, check_count, fail, unknown
from packtools.packed import PackedRun
from packtools.prepared import PreparedRun

__all__ = ["delta_table", "trade_off", "unpacked"]

VARIED = ("budget", "passage_budget")
SHOWN = PackerConfig(separator="\n\n", detect_conflicts=False)
"""Where the panel, the demo and the notebooks start: what they show is what is paid."""


def unpacked(config: PackerConfig) -> PackerConfig:
    """Give the baseline of a setting: every candidate, as retrieved, rendered the same way."""
    return PackerConfig(
        budget=None,
        unit=config.unit,
        deduplicate=False,
        order="descending",
        separator=config.separator,
        detect_conflicts=False,
    )


def baseline_name(config: PackerConfig) -> str:
    """Say what a baseline is: "everything" if it is the unpacked run."""
    return "everything" if config == unpacked(config) else "baseline"


def available(prepared: PreparedRun, kind: str | None = None) -> list[str]:
    """Name the metrics that a run can give."""
    chosen = (m for m in metrics.METRICS.values() if kind is None or m.kind == kind)
    return [m.name for m in chosen if m.name not in prepared.unavailable]


def delta_table(baseline: PackedRun, candidate: PackedRun, *, rng: int = 0) -> pd.DataFrame:
    """Compare two settings of one run, metric by metric.

    Parameters
    ----------
    baseline, candidate : PackedRun
    rng : int, default 0
        Seed of the bootstrap.

    Returns
    -------
    DataFrame, index metric
        Columns baseline, candidate, delta, ci_low, ci_high (means over the queries scored on both
        sides, and the 95 % paired bootstrap interval of the difference), n, N, unit.
    """
    names = list(candidate.per_query.columns)
    _check_baseline("delta_table", baseline, candidate.prepared.qids, names)
    deltas = stats.paired_bootstrap_many(baseline.per_query[names], candidate.per_query, rng=rng)
    rows = {
        name: {
            "baseline": d.baseline,
            "candidate": d.candidate,
            "delta": d.delta,
            "ci_low": d.low,
            "ci_high": d.high,
            "n": d.n,
            "N": len(candidate.per_query),
            "unit": metrics.METRICS[name].unit,
        }
        for name, d in zip(names, deltas, strict=True)
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")


def _check_baseline(where: str, baseline: object, qids: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse a baseline that is no pack of the same queries with the metrics needed."""
    if not isinstance(baseline, PackedRun):
        fail(SettingError, where, "baseline", "a PackedRun", baseline)
    if list(baseline.per_query.index) != list(qids):
        hint = "Pairs are by query: use pt.compare for another run."
        fail(SettingError, where, "baseline", "of the same queries in the same order", baseline, hint)
    missing = [name for name in needed if name not in baseline.per_query]
    if missing:
        fail(SettingError, where, "baseline", f"a pack with the metric {missing[0]!r}", baseline)


def trade_off(
    prepared: PreparedRun,
    config: PackerConfig,
    budgets: Sequence[int],
    *,
    vary: str = "budget",
    quality: Sequence[str] | None = None,
    baseline: PackedRun | None = None,
    rng: int = 0,
) -> pd.DataFrame:
    """Tabulate cost and quality of one setting under several budgets, the baseline first.

    Parameters
    ----------
    prepared : PreparedRun
    config : PackerConfig
        Its own value of what varies is not used.
    budgets : sequence of int
        In the unit of `config`.
    vary : {"budget", "passage_budget"}, default "budget"
        Which budget they are.
    quality : sequence of str or None, default None
        Quality metrics to compare; None is all that the run can give.
    baseline : PackedRun or None, default None
        What is compared with; None is the unpacked run.
    rng : int, default 0

    Returns
    -------
    DataFrame, index setting ("everything" or "baseline", then one a budget)
        Columns budget or passage_budget, n_tokens, compression_ratio (means), N; then for each quality
        metric that the run can give: its mean, and with the suffixes _delta, _ci_low, _ci_high the
        paired difference to the baseline, and _n, the queries scored.

    Examples
    --------
    >>> from packtools import load_sample, prepare
    >>> table = trade_off(prepare(load_sample(), counter="chars"), SHOWN, [4000, 8000])
    >>> table.index.tolist()
    ['everything', '4,000', '8,000']
    """
    if vary not in VARIED:
        unknown(SettingError, "trade_off", "vary", vary, VARIED)
    if isinstance(quality, str) or isinstance(budgets, str) or not isinstance(budgets, Iterable):
        given = ("quality", quality) if isinstance(quality, str) else ("budgets", budgets)
        fail(SettingError, "trade_off", given[0], "a list", given[1])
    for budget in budgets:
        check_count(SettingError, "trade_off", "budgets", budget, config.unit[:-1])
    if quality is None:
        quality = available(prepared, "retention") or ["n_chunks"]
    for name in quality:
        metrics.need(name, prepared.unavailable)
    base = prepared.evaluate(unpacked(config)) if baseline is None else baseline
    _check_baseline("trade_off", base, prepared.qids, quality)
    if vary == "budget":
        runs = [base, *prepared.evaluate_budgets(config, list(budgets))]
    else:
        runs = [base, *(prepared.evaluate(config.replace(passage_budget=b)) for b in budgets)]
    names = [baseline_name(base.config), *(f"{b:,}" for b in budgets)]
    chosen = list(quality)
    sides = [
        np.concatenate([p.per_query[chosen] for p in some], axis=1) for some in ([base] * len(runs), runs)
    ]
    deltas = iter(stats.paired_bootstrap_many(*sides, rng=rng))
    rows = []
    for packed in runs:
        means = packed.per_query[["n_tokens", "compression_ratio"]].mean()
        row: dict[str, float | int | None] = {
            vary: getattr(packed.config, vary),
            "n_tokens": means["n_tokens"],
            "compression_ratio": means["compression_ratio"],
            "N": len(packed.per_query),
        }
        for name, d in zip(chosen, deltas, strict=False):
            row |= {
                name: packed.per_query[name].mean(),
                f"{name}_delta": d.delta,
                f"{name}_ci_low": d.low,
                f"{name}_ci_high": d.high,
                f"{name}_n": int(packed.per_query[name].notna().sum()),
            }
        rows.append(row)
    return pd.DataFrame(rows, index=pd.Index(names, name="setting"), dtype=float)


def ladder(prepared: PreparedRun, config: PackerConfig, steps: int = 16) -> list[int]:
    """Choose round budgets, evenly spaced on a log scale, up to the largest full context."""
    full = prepared.full(config.unit, config.separator)
    most = max(int(full.max(initial=1)), 2)
    least = max(most // 32, 1)
    rounded = {round_budget(v) for v in np.geomspace(least, most, steps)}
    if max(rounded) < most:  # the last budget holds everything
        step = 5 * 10 ** (len(str(most)) - 3)
        rounded = rounded - {max(rounded)} | {-(-most // step) * step}
    return sorted(config.reserve + b for b in rounded)


def round_budget(value: float) -> int:
    """Round to two digits and a half: 137 → 135, 1,234 → 1,250, 87 → 87."""
    if value < 100:
        return max(round(value), 1)
    step = 5 * int(10 ** (len(str(int(value))) - 3))
    return max(round(value / step) * step, 1)
