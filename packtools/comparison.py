"""Two runs, query by query: what changed, how sure that is, and which queries flipped."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from packtools import significance, stats
from packtools.errors import MetricUnavailable, SettingError, fail, unknown
from packtools.inference import p_values
from packtools.metrics import METRICS, Metric
from packtools.packed import PackedRun
from packtools.table_words import latex_text
from packtools.words import chance

__all__ = ["Comparison", "compare"]

FLIP = "answer_retention"
FILES = ("comparison.csv", "comparison.md", "comparison.tex", "per_query.csv")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Hold the comparison of two runs over the queries that both have.

    Parameters
    ----------
    names : (str, str)
        Of baseline and candidate.
    baseline, candidate : DataFrame, index qid
        A column a metric, the same queries in the same order.
    only_baseline, only_candidate : tuple of str
        Queries that one side lacks; they are left out.
    metrics : mapping of str to Metric
        What is known of the columns.
    rng : int
    method : str
        See `paired_bootstrap`.
    """

    names: tuple[str, str]
    baseline: pd.DataFrame
    candidate: pd.DataFrame
    only_baseline: tuple[str, ...]
    only_candidate: tuple[str, ...]
    metrics: Mapping[str, Metric]
    rng: int = 0
    method: str = "percentile"

    @cached_property
    def table(self) -> pd.DataFrame:
        """Say for each metric what changed.

        Index metric; columns baseline, candidate, delta (means over the queries scored on both sides,
        in `unit`), ci_low, ci_high (95 % paired bootstrap), p_value (exact McNemar for a metric of 0
        and 1, else a paired permutation test), p_holm (corrected over the metrics), wins, ties,
        losses (queries), n_queries, N_queries, unit. NaN in an interval or p is "not testable".
        """
        deltas = stats.paired_bootstrap_many(self.baseline, self.candidate, rng=self.rng, method=self.method)
        sides = self.baseline.to_numpy(np.float64), self.candidate.to_numpy(np.float64)
        chances = p_values(*sides, self.rng)
        told = zip(self.baseline.columns, deltas, chances.tolist(), significance.holm(chances), strict=True)
        rows = {name: self._row(name, delta, p, p_holm) for name, delta, p, p_holm in told}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")

    def _row(self, name: str, delta: stats.PairedDelta, p_value: float, p_holm: float) -> dict[str, Any]:
        a, b = self.baseline[name], self.candidate[name]
        metric = self.metrics.get(name)
        better = metric is None or metric.higher_is_better
        count = stats.win_tie_loss(a, b, higher_is_better=better)
        return {
            "baseline": delta.baseline,
            "candidate": delta.candidate,
            "delta": delta.delta,
            "ci_low": delta.low,
            "ci_high": delta.high,
            "p_value": p_value,
            "p_holm": p_holm,
            "wins": count.wins,
            "ties": count.ties,
            "losses": count.losses,
            "n_queries": delta.n,
            "N_queries": len(a),
            "unit": "" if metric is None else metric.unit,
        }

    @cached_property
    def per_query(self) -> pd.DataFrame:
        """Give for each query and metric both values and the difference; index qid."""
        a, b = self.baseline, self.candidate
        parts = {}
        for name in a.columns:
            parts[f"{name}_baseline"], parts[f"{name}_candidate"] = a[name], b[name]
            parts[f"{name}_delta"] = b[name] - a[name]
        return pd.DataFrame(parts, index=a.index)

    def flips(self, metric: str = FLIP) -> tuple[list[str], list[str]]:
        """Give the ids of the queries on which a metric got worse, and of those on which it got better.

        Raises
        ------
        MetricUnavailable
            If the two runs don't both have the metric.
        """
        a, b = self._both(metric)
        left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        same = np.abs(right - left) <= stats.rounding(left, right)
        delta = (b - a).where(~same, 0.0)
        if metric in self.metrics and not self.metrics[metric].higher_is_better:
            delta = -delta
        return list(delta.index[delta < 0]), list(delta.index[delta > 0])

    def saving(self, cost: str = "n_tokens") -> dict[str, float]:
        """Give what the candidate saves of a cost: over all queries, and for the median query.

        Returns
        -------
        dict
            total_share: 1 - sum of the candidate / sum of the baseline, so that long prompts weigh
            more; median_share: median over queries of 1 - candidate / baseline; NaN where the
            baseline costs nothing.
        """
        a, b = self._both(cost)
        some = a > 0
        total = 1 - b.sum() / a.sum() if a.sum() else np.nan
        return {"total_share": float(total), "median_share": float((1 - b[some] / a[some]).median())}

    def _both(self, metric: str) -> tuple[pd.Series[float], pd.Series[float]]:
        """Give the two sides of a metric, over the queries scored on both."""
        if metric not in self.baseline:
            known = ", ".join(self.baseline.columns)
            raise MetricUnavailable(f"{metric}: not in both runs; known: {known}.")
        both = self.baseline[metric].notna() & self.candidate[metric].notna()
        return self.baseline.loc[both, metric], self.candidate.loc[both, metric]

    def __repr__(self) -> str:
        left, right = self.names
        return f"Comparison({left!r} → {right!r}: {len(self.baseline):,} queries, {len(self.table)} metrics)"

    def _written(self) -> pd.DataFrame:
        """Write the numbers as they are read: three decimals for shares, one else, signs on deltas."""
        rows = {}
        for name, row in self.table.iterrows():
            digits = 3 if row["unit"] in ("share", "") else 1
            value = {c: _number(row[c], digits) for c in ("baseline", "candidate")}
            signed = {c: _number(row[c], digits, sign=True) for c in ("delta", "ci_low", "ci_high")}
            chances = {c: chance(row[c]) for c in ("p_value", "p_holm")}
            counts = {c: f"{row[c]:,.0f}" for c in ("wins", "ties", "losses", "n_queries", "N_queries")}
            rows[name] = {**value, **signed, **chances, **counts, "unit": row["unit"]}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")

    def _repr_html_(self) -> str:
        left, right = (html.escape(name) for name in self.names)
        dropped = len(self.only_baseline) + len(self.only_candidate)
        note = f"; {dropped:,} queries that one side lacks are left out" if dropped else ""
        head = f"<p><b>{left} → {right}</b>, {len(self.baseline):,} queries{note}</p>"
        return head + self._written().to_html()

    def to_markdown(self) -> str:
        """Write the table as Markdown."""
        frame = self._written().reset_index()
        lines = ["| " + " | ".join(frame.columns) + " |", "|" + "---|" * len(frame.columns)]
        cells = ([one_line(str(v)) for v in row] for row in frame.to_numpy())
        lines += [f"| {' | '.join(row)} |" for row in cells]
        return "\n".join(lines) + "\n"

    def to_latex(self) -> str:
        """Write the table as a LaTeX tabular with booktabs rules."""
        frame = self._written().reset_index()
        rows = [" & ".join(latex_text(str(v)) for v in row) + r" \\" for row in frame.to_numpy()]
        head = " & ".join(latex_text(c) for c in frame.columns) + r" \\"
        form = "l" + "r" * (len(frame.columns) - 2) + "l"
        body = [rf"\begin{{tabular}}{{{form}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
        return "\n".join([*body, r"\end{tabular}"]) + "\n"

    def save(self, folder: str | Path) -> list[Path]:
        """Write the table (CSV, Markdown, LaTeX) and per_query.csv; the same bytes every time."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name in FILES]
        self.table.to_csv(paths[0], lineterminator="\n", float_format="%.10g")
        paths[1].write_text(self.to_markdown(), "utf-8")
        paths[2].write_text(self.to_latex(), "utf-8")
        self.per_query.to_csv(paths[3], lineterminator="\n", float_format="%.10g")
        return paths


def compare(
    baseline: PackedRun | pd.DataFrame,
    candidate: PackedRun | pd.DataFrame,
    *,
    names: tuple[str, str] = ("baseline", "candidate"),
    metrics: Mapping[str, Metric] | None = None,
    rng: int = 0,
    method: str = "percentile",
) -> Comparison:
    """Compare two runs query by query, whoever packed them.

    1. Queries are paired by id, never by place; those that one side lacks are left out and listed.
    2. Metrics that both have are compared; a query counts for a metric if both sides are scored.

    Parameters
    ----------
    baseline, candidate : PackedRun or DataFrame
        A DataFrame has the query id as index and a column of numbers for each metric; repetitions of
        a query are averaged first.
    names : (str, str), default ("baseline", "candidate")
    metrics : mapping of str to Metric, or None, default None
        What is known of the columns; None is `METRICS`. A column that is not in it counts as "higher
        is better", without a unit.
    rng : int, default 0
    method : {"percentile", "bca"}, default "percentile"

    Returns
    -------
    Comparison

    Raises
    ------
    SettingError
        If a side is no run or table of numbers, or the two share no query or no metric.

    Examples
    --------
    >>> import pandas as pd
    >>> before = pd.DataFrame({"answer_retention": [1.0, 1.0, 0.0]}, index=["q1", "q2", "q3"])
    >>> after = pd.DataFrame({"answer_retention": [0.0, 1.0, 1.0]}, index=["q3", "q2", "q1"])
    >>> compare(before, after).table.loc["answer_retention", ["delta", "p_value"]].tolist()
    [0.0, 1.0]
    """
    check_names("compare", names)
    stats.check_rng("compare", rng)
    if method not in stats.METHODS:
        unknown(SettingError, "compare", "method", method, stats.METHODS)
    left, right = (_frame(side, given) for side, given in (("baseline", baseline), ("candidate", candidate)))
    shared = [c for c in left.columns if c in right.columns]
    if not shared:
        what = f"{', '.join(left.columns) or 'none'} against {', '.join(right.columns) or 'none'}"
        fail(SettingError, "compare", "candidate", "a run with a metric of the baseline", what)
    both = left.index.drop_duplicates().intersection(right.index, sort=False)
    if not len(both):
        what = f"{list(left.index[:3])} against {list(right.index[:3])}"
        fail(SettingError, "compare", "candidate", "a run with a query of the baseline", what)
    return Comparison(
        names,
        _numbers("baseline", left[shared]).loc[both],
        _numbers("candidate", right[shared]).loc[both],
        tuple(left.index.difference(both, sort=False)),
        tuple(right.index.difference(both, sort=False)),
        METRICS if metrics is None else metrics,
        rng,
        method,
    )


def check_names(where: str, names: object) -> None:
    """Refuse what are no two names."""
    given = list(names) if isinstance(names, tuple | list) else []
    if len(given) != 2 or not all(isinstance(n, str) and n for n in given):
        fail(SettingError, where, "names", "two texts", names)


def _frame(side: str, given: PackedRun | pd.DataFrame) -> pd.DataFrame:
    """Give the table of one side, with query ids as texts."""
    frame = given.per_query if isinstance(given, PackedRun) else given
    if not isinstance(frame, pd.DataFrame):
        fail(SettingError, "compare", side, "a PackedRun or a DataFrame indexed by query id", given)
    if not frame.columns.is_unique or not all(isinstance(c, str) for c in frame.columns):
        rule = "a table whose columns have names, each once"
        fail(SettingError, "compare", side, rule, list(frame.columns))
    ids = list(frame.index)
    wrong = [q for q in ids if not isinstance(q, str | int | np.integer) or isinstance(q, bool)]
    if wrong:
        fail(SettingError, "compare", side, "indexed by query ids (texts or whole numbers)", wrong[0])
    if len({str(q) for q in ids}) < len(set(ids)):
        fail(SettingError, "compare", side, "indexed by ids that stay different as text", ids)
    return frame.set_axis(pd.Index([str(q) for q in ids], dtype=object, name="qid"))


def _numbers(side: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Give the columns as floats, with one row a query: repetitions are averaged."""
    out = {}
    for name, column in frame.items():
        hint = f"Column {str(name)!r} of the {side} is none."
        try:
            values = pd.to_numeric(column)
            if values.dtype.kind == "c":
                raise TypeError("complex")
            out[name] = values.to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            fail(SettingError, "compare", side, "a table of numbers", column.iloc[:1].tolist(), hint)
        if np.isinf(out[name]).any():
            fail(SettingError, "compare", side, "a table of finite numbers", np.inf, hint)
    numbers = pd.DataFrame(out, index=frame.index)
    return numbers if numbers.index.is_unique else numbers.groupby(level=0, sort=False).mean()


def _number(value: float, digits: int, *, sign: bool = False) -> str:
    if np.isnan(value):
        return "n/a"
    text = f"{value:{'+' if sign else ''},.{digits}f}"
    return text.lstrip("+-") if not text.strip("+-0.,") else text


def one_line(text: str) -> str:
    """Write a text so that it stays in one cell, or one line, of Markdown."""
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;")
