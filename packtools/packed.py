"""What one setting did to a whole run: per-query metrics, their summary, every decision."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from packtools import kernels, metrics, plan
from packtools.packer import ContextPacker
from packtools.schema import Decision, PackedContext, PackerConfig

if TYPE_CHECKING:
    from packtools.prepared import PreparedRun

__all__ = ["PackedRun"]


@dataclass(frozen=True, eq=False)
class PackedRun:
    """Hold every query of a run packed under one setting.

    Parameters
    ----------
    prepared : PreparedRun
    config : PackerConfig
    keep : ndarray of bool, shape (ranks, queries)
    layout : Layout
        Kept cells in prompt order.
    given_up : dict of (rank, query) to int
        Chunks dropped by the count of the rendered text, and by how much it was over.
    per_query : DataFrame, index qid
        One column a metric; NaN is "not scored".
    """

    prepared: PreparedRun
    config: PackerConfig
    keep: kernels.Bools
    layout: kernels.Layout
    given_up: dict[tuple[int, int], int]
    per_query: pd.DataFrame

    @classmethod
    def build(
        cls, prepared: PreparedRun, config: PackerConfig, left: plan.Survivors, keep: kernels.Bools
    ) -> PackedRun:
        """Order what was kept, decide unsure queries on their text, and compute the metrics."""
        filled = prepared.fill_unsure(config, left)
        for query, one in filled.items():
            keep[:, query] = False
            keep[one.ranks, query] = True
        layout = plan.lay_out(keep, config, prepared.course(config))
        given_up = {(rank, query): n for query, one in filled.items() for rank, n in one.over.items()}
        used = {query: one.used for query, one in filled.items()}
        return cls(prepared, config, keep, layout, given_up, _per_query(prepared, config, layout, used))

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Mean, median and total of each metric, with n of N queries scored."""
        rows = {}
        for name, values in self.per_query.items():
            metric = metrics.METRICS[str(name)]
            scored = values.dropna()
            rows[name] = {
                "mean": scored.mean() if len(scored) else np.nan,
                "median": scored.median() if len(scored) else np.nan,
                "total": scored.sum() if metric.unit != "share" else np.nan,
                "n": len(scored),
                "N": len(values),
                "unit": metric.unit,
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")

    @property
    def unavailable(self) -> dict[str, str]:
        """Metrics that this run can't give, and why."""
        return self.prepared.unavailable

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """Say of every candidate of every query what became of it."""
        config, prepared = self.config, self.prepared
        sizes, left = prepared.sizes(config.unit, config.separator), prepared.survivors(config)
        way = prepared.course(config)
        book = plan.ledger(prepared.cells, sizes, left, self.keep, config, way, self.given_up)
        frame = prepared.run.candidates
        rank, query = frame["rank"].to_numpy() - 1, frame["qid"].cat.codes.to_numpy()
        reasons = np.array([r or "" for r in plan.REASONS], dtype=object)
        reasons[plan.KEPT], reasons[plan.ABSENT] = "kept", "no_text"
        code, of = book.reason[rank, query], book.of[rank, query]
        keepers = prepared.passage[np.maximum(of, 0), query]
        names = np.array([*prepared.docids, ""], dtype=object)
        return pd.DataFrame(
            {
                "qid": frame["qid"],
                "docid": frame["docid"],
                "rank": frame["rank"],
                "score": frame["score"],
                f"n_{config.unit}": sizes.size[rank, query],
                "decision": reasons[code],
                "of": np.where(of >= 0, names[keepers], ""),
                "similarity": book.similarity[rank, query],
                "over_by": np.where(code == plan.OVER_BUDGET, book.over_by[rank, query], 0),
            }
        )

    @property
    def n_held_back(self) -> int:
        """Near-duplicates kept only because they differ in a number, a date or a negation."""
        return plan.held_back(self.prepared.survivors(self.config), self.config)

    def context(self, qid: str) -> PackedContext:
        """Pack one query and show everything about it: text, spans, every decision, conflicts.

        Candidates without text in the collection stand in the ledger at their own rank.
        """
        config, prepared, run = self.config, self.prepared, self.prepared.run
        packed = ContextPacker(config, prepared.counter).pack_sync(None, run.chunks(qid))
        query = run.number(qid)
        rows = run.candidates["qid"].cat.codes.to_numpy() == query
        mine = run.candidates[rows]
        if len(mine) == len(packed.decisions):
            return packed
        known = prepared.passage[: len(mine), query] >= 0
        ranks = np.flatnonzero(known) + 1
        left = iter(packed.decisions)
        decisions = [
            replace(next(left), rank=rank)
            if there
            else Decision(docid, rank, float(score), 0, False, "no_text", unit=config.unit)
            for rank, (docid, score, there) in enumerate(
                zip(mine["docid"], mine["score"], known, strict=True), 1
            )
        ]
        spans = tuple(replace(s, rank=int(ranks[s.rank - 1])) for s in packed.spans)
        return replace(packed, decisions=tuple(decisions), spans=spans)

    def kept(self, qid: str) -> list[str]:
        """Give the ids kept for one query, in prompt order."""
        query = self.prepared.run.number(qid)
        start, end = self.layout.start[query], self.layout.start[query + 1]
        passages = self.prepared.passage[self.layout.rank[start:end], query]
        return [self.prepared.docids[p] for p in passages]

    def to_dict(self) -> dict[str, Any]:
        """Give settings, counter and summary as plain values."""
        table = json.loads(self.summary.to_json(orient="index"))
        return {
            "run": self.prepared.run.name,
            "counter": self.prepared.counter.name,
            "settings": self.config.to_dict(),
            "summary": table,
            "unavailable": self.unavailable,
        }

    def save(self, folder: str | Path) -> list[Path]:
        """Write per_query.csv, decisions.csv and settings.json; the same bytes every time."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name in ("per_query.csv", "decisions.csv", "settings.json")]
        self.per_query.to_csv(paths[0], lineterminator="\n", float_format="%.10g")
        self.decisions.to_csv(paths[1], index=False, lineterminator="\n", float_format="%.10g")
        paths[2].write_text(json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n", "utf-8")
        return paths

    def __repr__(self) -> str:
        mean = self.per_query["n_tokens"].mean()
        return f"PackedRun({self.prepared.run.name!r}, {self.config}: {mean:,.0f} tokens per query, mean)"

    def _repr_html_(self) -> str:
        why = "".join(f"<p>{html.escape(n)}: {html.escape(w)}</p>" for n, w in self.unavailable.items())
        head = f"{self.prepared.run.name}, {self.prepared.counter.name}, {self.config}"
        return f"<p>{html.escape(head)}</p>{self.summary.to_html()}{why}"


def _per_query(
    prepared: PreparedRun, config: PackerConfig, layout: kernels.Layout, recounted: dict[int, int]
) -> pd.DataFrame:
    """Compute every metric that the run can give."""
    separator = config.separator
    n_tokens = _rendered(prepared.sizes("tokens", separator), layout)
    if config.unit == "tokens":
        for query, count in recounted.items():
            n_tokens[query] = count
    else:
        n_tokens = prepared.recount_tokens(config, layout, n_tokens)
    chars = prepared.sizes("chars", separator)
    n_chars = _rendered(chars, layout)
    values: dict[str, Any] = {"n_tokens": n_tokens, "n_chars": n_chars, "n_chunks": np.diff(layout.start)}
    used = n_tokens if config.unit == "tokens" else n_chars
    everything = config.budget is None and not config.deduplicates and config.jaccard_threshold is None
    original = used if everything else prepared.full(config.unit, separator)
    values["compression_ratio"] = metrics.share(used, original)
    if prepared.relevant is not None:
        gold = prepared.relevant
        kept = kernels.group_sum(gold[layout.rank, layout.query], layout.start)
        values["gold_retention"] = metrics.share(kept, gold.sum(axis=0))
    if prepared.answer_at is not None:
        at = prepared.answer_at
        here = at[layout.rank, layout.query]
        found = kernels.group_sum(here >= 0, layout.start) > 0
        values["answer_retention"] = metrics.answer_retention(found, (at >= 0).any(axis=0))
        values["answer_position"] = _position(layout, chars, here, found, n_chars, len(separator or ""))
    return pd.DataFrame(values, index=prepared.run.queries.index)


def _rendered(sizes: plan.Sizes, layout: kernels.Layout) -> kernels.Longs:
    """Sum the kept cells as rendered: all but the last with their separator."""
    total = kernels.group_sum(sizes.joined[layout.rank, layout.query], layout.start)
    if sizes.joined is sizes.size:
        return total
    some = np.flatnonzero(np.diff(layout.start))
    last = layout.start[some + 1] - 1
    rank, query = layout.rank[last], layout.query[last]
    total[some] -= sizes.joined[rank, query] - sizes.size[rank, query]
    return total


def _position(
    layout: kernels.Layout,
    chars: plan.Sizes,
    here: kernels.Ints,
    found: kernels.Bools,
    n_chars: kernels.Longs,
    gap: int,
) -> kernels.Floats:
    """Give the share of the packed text that stands before the first answer."""
    size = chars.size[layout.rank, layout.query].astype(np.int64)
    offset = kernels.running_starts(layout, size, gap) + here
    first = np.zeros(len(found), dtype=np.int64)
    places = np.flatnonzero(here >= 0)[::-1]  # the first in the prompt is written last and stays
    first[layout.query[places]] = offset[places]
    return np.where(found, metrics.share(first, n_chars), np.nan)
