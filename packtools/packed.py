"""What one setting did to a whole run: per-query metrics, their summary, every decision."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from packtools import kernels, metrics, plan
from packtools.arrays import Bools, Longs
from packtools.config import PackerConfig
from packtools.filling import Trim
from packtools.ledger import ABSENT, KEPT, OVER_BUDGET, REASONS, Ledger, ledger
from packtools.measured import Kept, fill_unsure, lost_facts, measure_run, trim_run
from packtools.packer import ContextPacker
from packtools.schema import Decision, PackedContext

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
    trims : dict of (rank, query) to Trim
        Chunks that were cut to what was left of the budget.
    per_query : DataFrame, index qid
        One column a metric; NaN is "not scored".
    """

    prepared: PreparedRun
    config: PackerConfig
    keep: Bools
    layout: kernels.Layout
    given_up: dict[tuple[int, int], int]
    trims: dict[tuple[int, int], Trim]
    per_query: pd.DataFrame

    @classmethod
    def build(cls, prepared: PreparedRun, config: PackerConfig, keep: Bools, crossing: Longs) -> PackedRun:
        """Cut and order what was kept, decide unsure queries on their text, compute the metrics."""
        filled = fill_unsure(prepared, config)
        for query, one in filled.items():
            keep[:, query], crossing[query] = False, -1
            keep[one.ranks, query] = True
        trims = trim_run(prepared, config, keep, crossing)
        trims |= {(rank, query): cut for query, one in filled.items() for rank, cut in one.trims.items()}
        layout = plan.lay_out(keep, config, prepared.course(config))
        given_up = {(rank, query): n for query, one in filled.items() for rank, n in one.over.items()}
        used = {query: one.used for query, one in filled.items()}
        per_query = measure_run(prepared, config, Kept(layout, trims, used))
        return cls(prepared, config, keep, layout, given_up, trims, per_query)

    def deepened(self, prepared: PreparedRun) -> PackedRun:
        """Give the same pack over all ranks of the run, of which only the first were looked at."""
        keep = np.zeros(prepared.passage.shape, dtype=bool)
        keep[: len(self.keep)] = self.keep
        return replace(self, prepared=prepared, keep=keep)

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
        config, prepared, book = self.config, self.prepared, self._book
        size = prepared.sizes(config).size
        whole = prepared.whole_sizes(config.unit)
        for cell, (_, n) in self.trims.items():
            size = size.copy() if size is prepared.sizes(config).size else size
            size[cell] = n
        frame = prepared.run.candidates
        rank, query = frame["rank"].to_numpy() - 1, frame["qid"].cat.codes.to_numpy()
        reasons = np.array([r or "" for r in REASONS], dtype=object)
        reasons[KEPT], reasons[ABSENT] = "kept", "no_text"
        code, of = book.reason[rank, query], book.of[rank, query]
        keepers = prepared.passage[np.maximum(of, 0), query]
        names = np.array([*prepared.docids, ""], dtype=object)
        return pd.DataFrame(
            {
                "qid": frame["qid"],
                "docid": frame["docid"],
                "rank": frame["rank"],
                "score": frame["score"],
                f"n_{config.unit}": size[rank, query],
                f"n_{config.unit}_whole": whole[rank, query],
                "decision": reasons[code],
                "of": np.where(of >= 0, names[keepers], ""),
                "similarity": book.similarity[rank, query],
                "over_by": np.where(code == OVER_BUDGET, book.over_by[rank, query], 0),
            }
        )

    @cached_property
    def _book(self) -> Ledger:
        config, prepared = self.config, self.prepared
        return ledger(
            prepared.candidates(config),
            prepared.sizes(config),
            prepared.survivors(config),
            self.keep,
            config,
            prepared.course(config),
            self.given_up,
            self.trims,
        )

    @cached_property
    def lost(self) -> pd.DataFrame:
        """List the numbers and names of kept passages that the packed text no longer holds.

        Columns qid, kind ("number" or "name"), lost; empty where nothing was cut.
        """
        found = lost_facts(self.prepared, self.config, Kept(self.layout, self.trims, {}))
        return pd.DataFrame(found, columns=["qid", "kind", "lost"])

    @property
    def n_held_back(self) -> int:
        """Near-duplicates kept only because they differ in a number, a date or a negation."""
        return plan.held_back(self.prepared.survivors(self.config), self.config)

    def context(self, qid: str) -> PackedContext:
        """Pack one query and show everything about it: text, spans, every decision, conflicts.

        Candidates without text in the collection stand in the ledger at their own rank.
        """
        config, prepared, run = self.config, self.prepared, self.prepared.run
        query = run.number(qid)
        packer = ContextPacker(config, prepared.counter, weights=prepared.weights)
        packed = packer.pack_sync(None, run.chunks(qid), query=run.queries["text"].iloc[query])
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

    def save_predictions(self, path: str | Path, predictions: Mapping[str, str | None] | None = None) -> Path:
        """Write what a reader is shown, and what it answered, as a predictions file.

        Parameters
        ----------
        path : str or Path
            Of a JSONL file, which is overwritten; its folder is made if it is not there.
        predictions : mapping of qid to str or None, default None
            What a reader answered from these contexts; None takes ``run.predictions``.

        Returns
        -------
        Path

        Raises
        ------
        SettingError
            If a prediction is of no query of the run, or the name ends in .gz or .zst.
        RunFormatError
            If a text can't be written as UTF-8.

        Notes
        -----
        One line a query: query_id, query, top_doc_ids and passages (what was packed, in prompt
        order), prediction (null where there is none), references, retrieval_source (the run's name)
        and context_packing. The latter has the keys of `CharacterPack.to_dict`, with the same values
        for the settings of `PackerConfig.characters`. For all others `config` is that of the packer,
        and counter, original_context_tokens, packed_context_tokens and dropped (each with its reason)
        follow; characters and spans are those of the text joined by the separator, or by a blank line
        without one. A candidate without text counts as an empty one.

        `load_predictions` reads it, and `packing_report` compares two. The same bytes every time.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> import packtools as pt
        >>> packed = pt.prepare(pt.load_sample()).evaluate(pt.PackerConfig(budget=500))
        >>> with TemporaryDirectory() as folder:
        ...     len(pt.load_predictions(packed.save_predictions(f"{folder}/packed.jsonl")))
        72
        """
        from packtools.saving import save_predictions

        return save_predictions(self, path, predictions)

    def __repr__(self) -> str:
        mean = self.per_query["n_tokens"].mean()
        return f"PackedRun({self.prepared.run.name!r}, {self.config}: {mean:,.0f} tokens per query, mean)"

    def _repr_html_(self) -> str:
        why = "".join(f"<p>{html.escape(n)}: {html.escape(w)}</p>" for n, w in self.unavailable.items())
        head = f"{self.prepared.run.name}, {self.prepared.counter.name}, {self.config}"
        return f"<p>{html.escape(head)}</p>{self.summary.to_html()}{why}"
