"""The cost-versus-quality table in words, for a terminal and for files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from packtools import metrics
from packtools.config import PackerConfig
from packtools.counters import counted
from packtools.prepared import PreparedRun
from packtools.view import View
from packtools.words import order_words, setting_words

__all__ = ["printed", "write_report"]

SHOWN_QUALITIES = ("answer_retention", "gold_retention", "n_chunks")
HEADS = {"gold_retention": "relevant kept"}


def printed(prepared: PreparedRun, config: PackerConfig, table: pd.DataFrame) -> str:
    """Write a `trade_off` table as aligned text, with n of N beside every mean.

    Parameters
    ----------
    prepared : PreparedRun
    config : PackerConfig
    table : DataFrame
        As `trade_off` gives it.

    Returns
    -------
    str
    """
    names = [n for n in SHOWN_QUALITIES if f"{n}_n" in table.columns]
    head = ["budget", counted(prepared.counter), "of full"]
    for name in names:
        head += [HEADS.get(name, metrics.METRICS[name].words), "n of N", "points [95 % interval]"]
    rows = [head]
    for setting, row in table.iterrows():
        cells = [str(setting), f"{row['n_tokens']:,.0f}", f"{row['compression_ratio']:.1%}"]
        for name in names:
            cells += _cells(name, row, first=setting == table.index[0])
        rows.append(cells)
    widths = [max(len(r[i]) for r in rows) for i in range(len(head))]
    aligned = [[c.rjust(n) for c, n in zip(row, widths, strict=True)] for row in rows]
    lines = ["  ".join([row[0].strip().ljust(widths[0]), *row[1:]]) for row in aligned]
    run = prepared.run
    title = (
        f"{run.name} · {run.n_queries:,} queries × up to {run.depth} passages · {prepared.counter.name} · "
        f"{' · '.join([order_words(config.order), *setting_words(config)])}\n"
        "means per query; points: difference to everything, paired bootstrap"
    )
    missing = [f"{metrics.METRICS[n].words}: {why}" for n, why in prepared.unavailable.items()]
    return "\n".join([title, "", lines[0], "-" * len(lines[0]), *lines[1:], *missing])


def _cells(name: str, row: pd.Series, first: bool) -> list[str]:
    n = int(row[f"{name}_n"])
    share = metrics.METRICS[name].unit == "share"
    value = "n/a" if n == 0 else f"{row[name]:.1%}" if share else f"{row[name]:,.1f}"
    scale = 100 if share else 1
    ends = [row[f"{name}_{part}"] * scale for part in ("delta", "ci_low", "ci_high")]
    delta = "" if first else f"{ends[0]:+.1f} [{ends[1]:+.1f}, {ends[2]:+.1f}]"
    return [value, f"{n:,} of {int(row['N']):,}", delta.replace("+0.0", "0.0").replace("-0.0", "0.0")]


def write_report(view: View, table: pd.DataFrame, folder: Path) -> list[Path]:
    """Write the table as trade_off.csv beside the figure, tables and settings of one view."""
    paths = view.export(folder)
    path = folder / "trade_off.csv"
    table.to_csv(path, lineterminator="\n", float_format="%.10g")
    return [*paths, path]
