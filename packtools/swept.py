"""What a sweep found: values by setting and query, their table, the Pareto front, the recommendation."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from packtools import frontier, metrics
from packtools.arrays import Floats
from packtools.config import PackerConfig
from packtools.errors import MetricUnavailable, SettingError, fail, unknown
from packtools.grids import setting_id, varied
from packtools.inference import against_first, means
from packtools.metrics import Metric
from packtools.recommending import Candidates, Recommendation, recommend
from packtools.runs.parquet import arrow
from packtools.words import label

__all__ = ["SweepResult"]


@dataclass(frozen=True, eq=False, repr=False)
class SweepResult:
    """Hold every setting of a grid, query by query.

    Parameters
    ----------
    name, counter : str
        Of the run, and of what counted its tokens.
    baseline : PackerConfig
    configs : tuple of PackerConfig
        In the order of the grid.
    qids : tuple of str
    values : mapping of metric to ndarray of float64, shape (1 + n_settings, n_queries)
        The baseline first; NaN is "not scored".
    unavailable : mapping of metric to str
        Metrics that the run can't give, and why.
    metrics : mapping of str to Metric
        What is known of the metrics.
    missing : str, default ""
        What a sweep that ended early did not do.
    rng : int, default 0
    """

    name: str
    counter: str
    baseline: PackerConfig
    configs: tuple[PackerConfig, ...]
    qids: tuple[str, ...]
    values: Mapping[str, Floats]
    unavailable: Mapping[str, str]
    metrics: Mapping[str, Metric]
    missing: str = ""
    rng: int = 0

    # --- settings ---------------------------------------------------------------------------

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the settings, in the order of the grid: the same in every grid that holds them."""
        return [setting_id(c) for c in self.configs]

    @cached_property
    def varied(self) -> list[str]:
        """Names of the settings that the grid varies."""
        return varied(self.configs)

    @property
    def _axes(self) -> dict[str, list[Any]]:
        """Values of what varies: of the baseline, then of each setting."""
        return {name: [getattr(c, name) for c in (self.baseline, *self.configs)] for name in self.varied}

    def config(self, setting: str) -> PackerConfig:
        """Give the settings of an id."""
        return self.configs[self._place(setting) - 1] if setting != BASELINE else self.baseline

    def label(self, setting: str) -> str:
        """Name a setting in words, by what the grid varies."""
        return "the baseline" if setting == BASELINE else label(self.config(setting), self.varied)

    def find(self, **settings: object) -> list[str]:
        """Give the ids of the settings that have all these values."""
        for name in settings:
            if name not in PackerConfig.__dataclass_fields__:
                unknown(SettingError, "find", "setting", name, PackerConfig.__dataclass_fields__)
        return [
            setting
            for setting, config in zip(self.ids, self.configs, strict=True)
            if all(getattr(config, name) == value for name, value in settings.items())
        ]

    def _place(self, setting: str) -> int:
        if setting == BASELINE:
            return 0
        if setting not in self.ids:
            unknown(SettingError, "SweepResult", "setting", setting, [BASELINE, *self.ids[:8]], "See ids.")
        return self.ids.index(setting) + 1

    # --- values -----------------------------------------------------------------------------

    def per_query(self, setting: str = "baseline") -> pd.DataFrame:
        """Give the metrics of one setting: index qid, a column a metric."""
        place = self._place(setting)
        index = pd.Index(self.qids, dtype=object, name="qid")
        return pd.DataFrame({name: values[place] for name, values in self.values.items()}, index=index)

    def per_setting(self, metric: str) -> pd.DataFrame:
        """Give one metric of all settings: index qid, a column a setting, the baseline first."""
        index = pd.Index(self.qids, dtype=object, name="qid")
        return pd.DataFrame(self._values(metric).T, index=index, columns=[BASELINE, *self.ids])

    def _values(self, metric: str) -> Floats:
        if metric not in self.values:
            why = self.unavailable.get(metric)
            known = ", ".join(self.values)
            raise MetricUnavailable(
                f"SweepResult: {metric!r} is not available: {why}."
                if why
                else f"SweepResult: metric {metric!r} is unknown; known: {known}."
            )
        return self.values[metric]

    def with_metric(
        self,
        name: str,
        function: Callable[[pd.DataFrame], pd.Series[Any]],
        *,
        higher_is_better: bool | None = None,
        unit: str = "",
    ) -> SweepResult:
        """Give the same sweep with one more metric, worked out of the others.

        Parameters
        ----------
        name : str
        function : callable
            Takes the per-query table of a setting and gives a number for each query, in its order.
        higher_is_better : bool or None, default None
            None is what is known of a metric of that name, else True.
        unit : str, default ""
            Of a metric that is not known: "share" for 0 to 1, "tokens", "USD", ….

        Raises
        ------
        SettingError
            If the name is taken, or the function gives other than one number a query.

        Examples
        --------
        >>> from packtools import expected_quality, load_sample, prepare, sweep
        >>> found = sweep(prepare(load_sample(), counter="chars"), budget=[4000])
        >>> "expected_quality" in found.with_metric("expected_quality", expected_quality).table
        True
        """
        taken = {f"{m}{part}" for m in self.values for part in ("", *PARTS)} | {"N", *self.varied}
        if not isinstance(name, str) or name in taken:
            fail(SettingError, "with_metric", "name", "the name of no column that is there", name)
        rows = [
            _numbers(name, function(self.per_query(setting)), len(self.qids))
            for setting in [BASELINE, *self.ids]
        ]
        known = metrics.DERIVED.get(name)
        if known is None or higher_is_better is not None:
            better = True if higher_is_better is None else higher_is_better
            words = name.replace("_", " ")
            known = Metric(name, words, unit, "retention", better, None, None, (), "worked out on request")
        return replace(
            self, values={**self.values, name: np.stack(rows)}, metrics={**self.metrics, name: known}
        )

    # --- what it comes to -------------------------------------------------------------------

    @cached_property
    def table(self) -> pd.DataFrame:
        """Tabulate cost and quality, a row a setting, the baseline first.

        Index setting (an id); a column for each setting that the grid varies; N (queries); then for
        each metric its mean, and with the suffixes _delta, _ci_low, _ci_high (the paired difference to
        the baseline with its 95 % bootstrap interval), _p_value (exact McNemar for a metric of 0 and 1,
        else a paired permutation test), _p_holm (corrected over the settings) and _n (queries scored).

        Notes
        -----
        Settings that do the same to every query share their numbers, and are one test.
        """
        columns: dict[str, Any] = {**self._axes, "N": len(self.qids)}
        found = against_first(self.values, rng=self.rng)
        for name, values in self.values.items():
            columns[name] = means(values)
            columns |= {f"{name}_{part}": column for part, column in found[name].items()}
            columns[f"{name}_n"] = (~np.isnan(values)).sum(axis=1)
        return pd.DataFrame(columns, index=pd.Index([BASELINE, *self.ids], name="setting"))

    def select(self, **settings: object) -> SweepResult:
        """Give the same sweep with only the settings that have all these values."""
        chosen = self.find(**settings)
        if not chosen:
            fail(SettingError, "select", "settings", "those of some setting of the grid", settings)
        places = [self._place(setting) for setting in chosen]
        values = {name: rows[[0, *places]] for name, rows in self.values.items()}
        return replace(self, configs=tuple(self.config(i) for i in chosen), values=values)

    def curves(self, by: str) -> dict[str, pd.DataFrame]:
        """Give the table as one curve for each value of a setting, for `curves_figure`.

        Parameters
        ----------
        by : str
            A setting that the grid varies; one more may vary along each curve, such as the budget.

        Returns
        -------
        dict of str to DataFrame
            By the value in words; each with the baseline first, as `trade_off` gives it.

        Raises
        ------
        SettingError
            If the grid does not vary `by`, or more than one other setting: `select` some first.
        """
        if by not in self.varied:
            unknown(SettingError, "curves", "by", by, self.varied)
        if len(self.varied) > 2:
            others = [name for name in self.varied if name != by]
            hint = "Choose a value of the others first: sweep.select(name=value)."
            fail(SettingError, "curves", "by", "one of at most two settings that vary", others, hint)
        values = dict.fromkeys(getattr(config, by) for config in self.configs)
        groups = [self.find(**{by: value}) for value in values]
        return {label(self.config(ids[0]), [by]): self.table.loc[[BASELINE, *ids]] for ids in groups}

    def pareto(self, cost: str = "n_tokens", quality: str = "answer_retention") -> pd.DataFrame:
        """Give the settings that no other one beats in both cost and quality, the baseline among them.

        Parameters
        ----------
        cost, quality : str
            Metrics of the sweep; means over the queries scored.

        Returns
        -------
        DataFrame, index setting, cheapest first
            One column each for cost and quality, on_front (of the means), front_share: the share of
            2,000 resamples of the queries in which the setting is on the front; then what the grid
            varies.

        Notes
        -----
        All settings are listed; ``found[found.on_front]`` is the front. Equal settings are on it
        together. A setting whose cost is not known for every query is not on it. A front of means
        always looks sharper than it is: read front_share.
        """
        sides = self._oriented(cost, "lower"), self._oriented(quality, "higher")
        averages = [sides[0].mean(axis=1), means(sides[1])]
        frame = pd.DataFrame(
            {
                cost: means(self._values(cost)),
                quality: means(self._values(quality)),
                "on_front": frontier.front(*averages),
                "front_share": frontier.front_share(*sides, rng=self.rng),
                **self._axes,
            },
            index=pd.Index([BASELINE, *self.ids], name="setting"),
        )
        order = np.lexsort((-averages[1], averages[0]))
        return frame.iloc[order]

    def _oriented(self, metric: str, better: str) -> Floats:
        """Give the values of a metric so that better is as asked."""
        values = self._values(metric)
        return values if self.metric(metric).higher_is_better == (better == "higher") else -values

    def recommend(
        self,
        metric: str = "answer_retention",
        margin: float = 0.01,
        *,
        cost: str = "n_tokens",
        confidence: float = 0.95,
    ) -> Recommendation:
        """Choose the cheapest setting that is shown to lose at most `margin`, or say that none is.

        1. Settings that cost less than the baseline are candidates; those that do the same to every
           query by the metric are one.
        2. For each, `non_inferiority` gives the loss that is ruled out, at a level at which the bounds
           of all candidates hold at once (Bonferroni), because the cheapest of many is chosen.
        3. Of those whose bound is within the margin, the cheapest is recommended; equal costs go by the
           metric.

        Parameters
        ----------
        metric : str
        margin : float
            Loss that is still accepted, in the unit of the metric: 0.01 is one point of a share.
            Choose it before looking.
        cost : str, default "n_tokens"
        confidence : float, default 0.95
            That all bounds hold; so, too, that no setting which loses more than the margin is
            recommended.

        Returns
        -------
        Recommendation

        Raises
        ------
        SettingError
            If the margin is no number from 0 on, or more of the cost is better.
        MetricUnavailable
            If the sweep has no such metric.
        """
        ids = [BASELINE, *self.ids]
        labels = [self.label(i) for i in ids]
        sides = self._values(cost), self._values(metric)
        given = Candidates(ids, labels, *sides, self.metric(cost), self.metric(metric))
        return recommend(given, margin, confidence)

    def metric(self, name: str) -> Metric:
        """Say what is known of a metric of the sweep."""
        self._values(name)
        if name in self.metrics:
            return self.metrics[name]
        return Metric(name, name.replace("_", " "), "", "retention", True, None, None, (), "")

    # --- out --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Give the settings and what they were tried on as plain values."""
        return {
            "run": self.name,
            "counter": self.counter,
            "n_queries": len(self.qids),
            "rng": self.rng,
            "baseline": self.baseline.to_dict(),
            "settings": {i: c.to_dict() for i, c in zip(self.ids, self.configs, strict=True)},
            "unavailable": dict(self.unavailable),
            "missing": self.missing,
        }

    def save(self, folder: str | Path, *, parquet: bool = False) -> list[Path]:
        """Write sweep.csv and settings.json; the same bytes every time.

        Parameters
        ----------
        folder : path
        parquet : bool, default False
            Write sweep.parquet, and every value of every query as per_query.parquet, too.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / "sweep.csv", folder / "settings.json"]
        table = self.table.assign(**{n: self.table[n].map(repr) for n in self.varied if n == "separator"})
        table.to_csv(paths[0], lineterminator="\n", float_format="%.10g")
        paths[1].write_text(json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n", "utf-8")
        if parquet:
            paths += [folder / "sweep.parquet", folder / "per_query.parquet"]
            _write_parquet(self.table.reset_index(), paths[2])
            frames = {i: self.per_query(i) for i in [BASELINE, *self.ids]}
            _write_parquet(pd.concat(frames, names=["setting"]).reset_index(), paths[3])
        return paths

    def __repr__(self) -> str:
        n = len(self.configs)
        missing = f"; {self.missing}" if self.missing else ""
        return f"SweepResult({self.name!r}: {n:,} settings × {len(self.qids):,} queries{missing})"

    def _repr_html_(self) -> str:
        shown = [*self.varied, *(name for name in self.values if not name.endswith("s_kept"))]
        table = self.table[shown].head(30)
        more = f"<p>and {len(self.table) - 30:,} more</p>" if len(self.table) > 30 else ""
        return f"<p>{html.escape(repr(self))}</p>{table.to_html(float_format=lambda v: f'{v:,.4g}')}{more}"


BASELINE = "baseline"
PARTS = ("_delta", "_ci_low", "_ci_high", "_p_value", "_p_holm", "_n")


def _numbers(name: str, given: object, n: int) -> Floats:
    """Check what a metric of one's own gave."""
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != (n,) or np.isinf(found).any():
        fail(SettingError, "with_metric", name, f"{n} numbers, one a query (NaN: not scored)", given)
    return found


def _write_parquet(frame: pd.DataFrame, path: Path) -> None:
    pa = arrow()
    pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
