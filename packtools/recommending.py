"""The cheapest setting that is shown to lose little, chosen among many, or a plain "none is"."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from packtools.arrays import Floats, Longs
from packtools.errors import SettingError, fail
from packtools.inference import distinct_rows, means
from packtools.margins import NonInferiority, check_asked, non_inferiority, non_inferiority_tests
from packtools.metrics import Metric
from packtools.words import amount, points

__all__ = ["Recommendation"]

TOLD = 12


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation:
    """Hold the cheapest setting that is shown to lose at most `margin`, and the evidence.

    Parameters
    ----------
    setting : str or None
        Id of the setting; None where none is shown to.
    runner_up : str or None
        Id of the next cheapest that is, and that does otherwise by the metric.
    metric, cost : str
    margin : float
        In the unit of the metric.
    confidence : float
    at_most : float
        Losses of `setting` above this are ruled out, in the unit of the metric; where there is none,
        the smallest margin at which one would be recommended.
    table : DataFrame, index setting
        Every setting that costs less than the baseline, cheapest first: the cost, saving (share of the
        baseline's), the metric, its delta, at_most (the loss that is ruled out), passes, n (queries).
    headline : str
    sentences : tuple of str
    """

    setting: str | None
    runner_up: str | None
    metric: str
    cost: str
    margin: float
    confidence: float
    at_most: float
    table: pd.DataFrame
    headline: str
    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give all but the table as plain values; what is not known is None."""
        told = asdict(self)
        told.pop("table")
        return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in told.items()}

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{html.escape(s)}</p>" for s in self.sentences)
        return words + self.table.head(TOLD).to_html(float_format=lambda v: f"{v:,.4g}")


@dataclass(frozen=True)
class Candidates:
    """Hold what is compared: the baseline first, then every setting.

    Parameters
    ----------
    ids, labels : sequence of str
    cost, quality : ndarray of float64, shape (1 + n_settings, n_queries)
    price, metric : Metric
        Of cost and quality.
    """

    ids: Sequence[str]
    labels: Sequence[str]
    cost: Floats
    quality: Floats
    price: Metric
    metric: Metric

    def cheaper(self) -> Longs:
        """Places of the settings that cost less than the baseline, cheapest first, then best.

        A cost that is not known for every query is none.
        """
        cost, quality = self.cost.mean(axis=1), means(self.quality)
        better = -quality if self.metric.higher_is_better else quality
        order = np.lexsort((better, cost))
        return np.asarray(order[cost[order] < cost[0]])

    def judge(self, places: Longs, margin: float, confidence: float) -> list[NonInferiority]:
        """Test some settings against the margin."""
        sides = np.broadcast_to(self.quality[0][:, None], (self.quality.shape[1], len(places)))
        higher = self.metric.higher_is_better
        rows = self.quality[places].T
        return list(
            non_inferiority_tests(sides, rows, margin, higher_is_better=higher, confidence=confidence)
        )


def recommend(given: Candidates, margin: float, confidence: float) -> Recommendation:
    """Choose the cheapest setting that passes; see `SweepResult.recommend`."""
    check_asked("recommend", margin, confidence)
    if given.price.higher_is_better:
        fail(SettingError, "recommend", "cost", "a metric of which less is better", given.price.name)
    places = given.cheaper()
    firsts, kind = distinct_rows(given.quality[places])
    scored = ~(np.isnan(given.quality[0]) | np.isnan(given.quality[places[firsts]]))
    m = int((scored.sum(axis=1) >= 2).sum())
    level = 1 - (1 - confidence) / max(m, 1)
    distinct = given.judge(places[firsts], margin, level)
    tests = [distinct[k] for k in kind]
    table = _table(given, places, tests)
    asked = _Asked(given, places, table, float(margin), confidence, level, m)
    chosen = np.flatnonzero(table["passes"])
    if not len(chosen):
        return asked.none()
    best = int(chosen[0])
    others = chosen[kind[chosen] != kind[best]]
    return asked.found(best, int(others[0]) if len(others) else None)


def _table(given: Candidates, places: Longs, tests: Sequence[NonInferiority]) -> pd.DataFrame:
    cost = given.cost.mean(axis=1)
    bounds = np.array([t.smallest_margin for t in tests], dtype=np.float64)
    if given.metric.unit == "share":
        bounds = np.minimum(bounds, 1.0)  # no more than all can be lost
    return pd.DataFrame(
        {
            given.price.name: cost[places],
            "saving": 1 - cost[places] / cost[0] if len(places) else [],
            given.metric.name: means(given.quality)[places],
            "delta": [t.delta for t in tests],
            "at_most": bounds,
            "passes": bounds <= tests[0].margin if tests else bounds.astype(bool),
            "n": [t.n for t in tests],
        },
        index=pd.Index([given.ids[p] for p in places], name="setting", dtype=object),
    )


@dataclass(frozen=True)
class _Asked:
    """Put what was found into words.

    Parameters
    ----------
    level : float
        Confidence of each bound, so that all `m` hold at once at `confidence`.
    """

    given: Candidates
    places: Longs
    table: pd.DataFrame
    margin: float
    confidence: float
    level: float
    m: int

    def found(self, best: int, runner_up: int | None) -> Recommendation:
        """Recommend a row of the table."""
        row, metric = self.table.iloc[best], self.given.metric
        lost = f"“{metric.words}” at most {_bound(metric, row['at_most'])} worse"
        sentences = [
            f"Recommended: {self._row(best)}.",
            f"At most {_bound(metric, row['at_most'])} worse, at {100 * self.confidence:g} % confidence for "
            f"{self._tried()}, n = {int(row['n']):,}.",
        ]
        if runner_up is not None:
            sentences.append(f"Runner-up: {self._row(runner_up)}.")
        if best == 0:
            sentences.append("It is the cheapest setting of the grid: a still cheaper one may do, too.")
        headline = f"{_saved(self.given.price, row['saving'])}, {lost}"
        second = None if runner_up is None else str(self.table.index[runner_up])
        return self._made(str(self.table.index[best]), second, row["at_most"], headline, sentences)

    def none(self) -> Recommendation:
        """Say that no setting is shown to lose so little, and what could be shown."""
        metric, words = self.given.metric, self.given.metric.words
        bounds = self.table["at_most"].to_numpy(float)
        at_most = float(np.nanmin(bounds)) if self.m else np.nan
        sentences = [f"No setting is shown to lose at most {_asked(metric, self.margin)} of “{words}”."]
        if np.isnan(self.given.cost[0]).any():
            sentences = [f"The {self.given.price.words} of the baseline are not known for every query."]
        elif not len(self.table):
            sentences = ["No setting costs less than the baseline."]
        elif not self.m:
            n = int((~np.isnan(self.given.quality[0])).sum())
            scored = (
                f"“{words}” is scored on {n:,} of {self.given.quality.shape[1]:,} queries of the baseline"
            )
            sentences.append(f"{scored}; it takes two that are scored on both sides.")
        else:
            sentences += self._nearest(int(np.nanargmin(bounds)), at_most)
        return self._made(None, None, at_most, sentences[0].rstrip("."), sentences)

    def _nearest(self, best: int, at_most: float) -> list[str]:
        metric, n = self.given.metric, int(self.table["n"].iloc[best])
        label = self.given.labels[self.places[best]]
        out = [f"The nearest is {label}: it would be at a margin of {_bound(metric, at_most)}."]
        least = non_inferiority(np.ones(n), np.ones(n), 0.0, confidence=self.level).smallest_margin
        if metric.unit == "share" and self.margin < least <= at_most:
            out.append(
                f"With n = {n:,} queries and {_settings(self.m)} no margin below {_bound(metric, least)} can "
                "be shown, even without a loss."
            )
        return out

    def _made(
        self, setting: str | None, second: str | None, at_most: float, headline: str, sentences: list[str]
    ) -> Recommendation:
        return Recommendation(
            setting,
            second,
            self.given.metric.name,
            self.given.price.name,
            self.margin,
            self.confidence,
            float(at_most),
            self.table,
            headline,
            tuple(sentences),
        )

    def _tried(self) -> str:
        return (
            "the one setting that costs less"
            if self.m == 1
            else f"all {_settings(self.m)} that cost less at once"
        )

    def _row(self, best: int) -> str:
        row, price, metric = self.table.iloc[best], self.given.price, self.given.metric
        base = self.given.cost[0].mean()
        costs = f"{amount(price, row[price.name])} of {amount(price, base)} per query"
        change = points(metric, row["delta"]) + (" points" if metric.unit == "share" else "")
        saved = _saved(price, row["saving"])
        return f"{self.given.labels[self.places[best]]}: {saved} ({costs}), “{metric.words}” {change}"


def _saved(price: Metric, share: float) -> str:
    what = "less cost" if price.unit in ("USD", "share") else f"fewer {price.words}"
    digits = 0 if 0.01 <= share <= 0.99 else 1
    return f"{100 * share:.{digits}f} % {what}"


def _asked(metric: Metric, margin: float) -> str:
    return f"{100 * margin:g} points" if metric.unit == "share" else f"{margin:,.4g}"


def _bound(metric: Metric, value: float) -> str:
    """Write a bound, rounded up."""
    if metric.unit != "share":
        return f"{value:,.4g}"
    digits = 1 if value >= 0.001 else 3
    return f"{math.ceil(100 * value * 10**digits - 1e-9) / 10**digits:.{digits}f} points"


def _settings(n: int) -> str:
    return "one distinct setting" if n == 1 else f"{n:,} distinct settings"
