"""A sweep in words and files: the front as a table, the recommendation, the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from packtools.drawing import export_figure
from packtools.metrics import Metric
from packtools.recommending import Recommendation
from packtools.sweep_figures import front_figure
from packtools.swept import BASELINE, SweepResult
from packtools.words import amount, chance, points

__all__ = ["printed_sweep", "write_sweep"]


def printed_sweep(found: SweepResult, best: Recommendation) -> str:
    """Write the front of a sweep as aligned text, then what is recommended.

    Parameters
    ----------
    found : SweepResult
    best : Recommendation
        Says which cost and metric count.

    Returns
    -------
    str
    """
    cost, metric = found.metric(best.cost), found.metric(best.metric)
    front = found.pareto(best.cost, best.metric)
    known = front["on_front"] | front.index.isin([BASELINE, best.setting])
    alike: dict[tuple[str, str], list[str]] = {}
    for setting, row in front[known].iterrows():
        alike.setdefault((repr(row[best.cost]), repr(row[best.metric])), []).append(str(setting))
    shown = [best.setting if best.setting in same else same[0] for same in alike.values()]
    others = [len(same) - 1 for same in alike.values()]
    head = [
        "setting",
        "id",
        cost.words,
        metric.words,
        "n of N",
        "difference [95 % interval]",
        "p (Holm)",
        "front",
    ]
    rows = [head]
    for setting, n in zip(shown, others, strict=True):
        rows.append(_row(found, cost, metric, front, str(setting)))
        rows[-1][0] += f" (and {n:,} alike)" if n else ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(n) for c, n in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    title = (
        f"{found.name} · {len(found.configs):,} settings × {len(found.qids):,} queries · {found.counter}\n"
        "settings that no other one beats; front: share of resamples in which that is so"
    )
    missing = [found.missing] if found.missing else []
    return "\n".join([title, "", lines[0], "-" * len(lines[0]), *lines[1:], "", *best.sentences, *missing])


def _row(found: SweepResult, cost: Metric, metric: Metric, front: pd.DataFrame, setting: str) -> list[str]:
    row: dict[Any, Any] = found.table.loc[setting].to_dict()
    delta, low, high, p_value = (
        row[f"{metric.name}_{part}"] for part in ("delta", "ci_low", "ci_high", "p_holm")
    )
    tested = not np.isnan(delta)
    return [
        found.label(setting),
        "" if setting == BASELINE else setting,
        amount(cost, row[cost.name]),
        amount(metric, row[metric.name]),
        f"{int(row[f'{metric.name}_n']):,} of {len(found.qids):,}",
        f"{points(metric, delta)} [{points(metric, low)}, {points(metric, high)}]" if tested else "",
        chance(p_value) if tested else "",
        f"{front['front_share'][setting]:.0%}",
    ]


def write_sweep(
    found: SweepResult, best: Recommendation, folder: str | Path, *, parquet: bool = False
) -> list[Path]:
    """Write the table, the settings with the recommendation, and the figure of the front.

    Parameters
    ----------
    found : SweepResult
    best : Recommendation
    folder : path
    parquet : bool, default False
        See `SweepResult.save`.

    Returns
    -------
    list of Path
        The same bytes every time.
    """
    folder = Path(folder)
    paths = found.save(folder, parquet=parquet)
    told = found.to_dict() | {"recommended": best.to_dict()}
    paths[1].write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", "utf-8")
    path = folder / "recommendation.csv"
    best.table.to_csv(path, lineterminator="\n", float_format="%.10g")
    figure = front_figure(
        found,
        best.cost,
        best.metric,
        title=best.headline,
        subtitle=" ".join(best.sentences[1:2]) if best.setting is None else found.label(best.setting),
        caption=f"{found.name} · {found.counter} · n = {len(found.qids):,} queries\nbars: 95 % paired "
        "bootstrap of the difference to the baseline; larger marks are on the front in more resamples",
        recommended=best,
    )
    settings = {"run": found.name, "counter": found.counter, "recommended": best.to_dict()}
    return [*paths, path, *export_figure(figure, folder / "front", settings=settings)]
