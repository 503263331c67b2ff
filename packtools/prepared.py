"""Prepare a run once, evaluate any setting at once.

`prepare` reads, counts and compares each distinct passage; `PreparedRun.evaluate` only moves
arrays, through the same `plan` that `ContextPacker` uses for one query.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtools import kernels, metrics, plan
from packtools.budget import get_fill
from packtools.counters import (
    CharCounter,
    TokenCounter,
    additive,
    counter_for,
    join_slack,
    separator_cost,
    starts_loosely,
)
from packtools.dedup import exact_groups, retrieved_together, similar_pairs
from packtools.errors import SettingError, check_share, fail
from packtools.ordering import ANY_END, document_order, get_ordering
from packtools.packed import PackedRun
from packtools.progress import progress
from packtools.runs.model import Run
from packtools.schema import PackerConfig
from packtools.text import Shingles, compare, differences

__all__ = ["PreparedRun", "prepare"]

MIN_JACCARD = 0.5
SEPARATORS = ("\n\n",)
REMEMBERED = 200_000
"""Counts of rendered texts that are kept."""


def prepare(
    run: Run | str | Path,
    *,
    counter: str | TokenCounter = "cl100k_base",
    min_jaccard: float = MIN_JACCARD,
    separators: Sequence[str] = SEPARATORS,
) -> PreparedRun:
    """Do everything slow once: count tokens, find near-duplicates, find the answers.

    Parameters
    ----------
    run : Run or path
        A path goes through `load_run`.
    counter : str or TokenCounter, default "cl100k_base"
        See `counter_for`.
    min_jaccard : float, default 0.5
        The lowest `jaccard_threshold` that can be evaluated later.
    separators : sequence of str, default ("\\n\\n",)
        Separators whose cost is counted now; another one is counted when it is first used.

    Returns
    -------
    PreparedRun

    Notes
    -----
    Cost: each distinct passage is counted, cut into shingles and folded once, however many
    queries retrieve it.

    Examples
    --------
    >>> from packtools import load_sample
    >>> prepared = prepare(load_sample(), counter="chars")
    >>> prepared.evaluate(PackerConfig(budget=None)).per_query["compression_ratio"].unique().tolist()
    [1.0]
    """
    if not isinstance(run, Run):
        from packtools.runs import load_run

        run = load_run(run)
    floor = check_share(SettingError, "prepare", "min_jaccard", min_jaccard)
    if isinstance(separators, str):
        fail(
            SettingError, "prepare", "separators", "a list of strings", separators, f"Write [{separators!r}]."
        )
    return PreparedRun(run, counter_for(counter), floor, tuple(separators))


class PreparedRun:
    """Hold a run as arrays ``[rank, query]``, ready for any setting.

    Made by `prepare`. Sizes, pairs and answers are kept for each distinct passage; every
    evaluation works from them.
    """

    def __init__(
        self, run: Run, counter: TokenCounter, min_jaccard: float, separators: tuple[str, ...]
    ) -> None:
        self.run, self.counter, self.min_jaccard = run, counter, min_jaccard
        self.qids: list[str] = list(run.queries.index)
        self._lay_out_cells()
        self._sizes: dict[tuple[str, str | None], plan.Sizes] = {}
        self._courses: dict[tuple[Any, ...], plan.Course] = {}
        self._left: dict[tuple[bool, float | None, bool], plan.Survivors] = {}
        self._full: dict[tuple[str, str | None], npt.NDArray[Any]] = {}
        self._unsure: dict[str | None, kernels.Bools] = {}
        self._recounts: dict[tuple[str, str, tuple[int, ...]], int] = {}
        self._n_tokens = self._count(self._texts)
        self._n_chars = np.array([len(t) for t in self._texts], dtype=np.int64)
        self.cells = self._find_repeats()
        self.relevant = self._find_relevant()
        self.answer_at = self._find_answers()
        for separator in separators:
            self.sizes("tokens", separator)

    # --- what is done once ------------------------------------------------------------------

    def _lay_out_cells(self) -> None:
        """Number the distinct passages and put them where they were retrieved."""
        frame = self.run.candidates
        query, docid = frame["qid"].cat.codes.to_numpy(), frame["docid"].cat.codes.to_numpy()
        rank = frame["rank"].to_numpy() - 1
        docids = frame["docid"].cat.categories
        row = self.run.passages.index.get_indexer(docids)
        number = np.full(len(docids), -1, dtype=np.int32)
        number[row >= 0] = np.arange((row >= 0).sum())
        shape = (int(rank.max(initial=-1)) + 1, len(self.qids))
        self.passage = np.full(shape, -1, dtype=np.int32)
        self.passage[rank, query] = number[docid]
        self.docids: list[str] = list(docids[row >= 0])
        self._texts: list[str] = self.run.passages["text"].to_numpy()[row[row >= 0]].tolist()

    def _count(self, texts: list[str]) -> kernels.Ints:
        """Count each distinct text once."""
        known: dict[str, int] = dict.fromkeys(texts, 0)
        count = self.counter.count
        for text in progress(known, f"count tokens ({self.counter.name})", len(known)):
            known[text] = count(text)
        return np.array([known[t] for t in texts], dtype=np.int64)

    def _find_repeats(self) -> plan.Candidates:
        """Find exact and near-duplicates among passages retrieved together."""
        texts, there = self._texts, self.passage >= 0
        empty_text = np.array([not t.strip() for t in texts], dtype=bool)
        empty = there & empty_text[self.passage] if len(texts) else there
        found = compare(texts)
        by_text, by_both = exact_groups(texts, found.keys)
        some = there & ~empty
        plain = self._first_equal(by_text, some)
        guarded = plain if np.array_equal(by_text, by_both) else self._first_equal(by_both, some)
        pairs = self._find_pairs(there, found.shingles)

        def document() -> kernels.Longs:
            return np.where(there, document_order(self.docids)[self.passage], -1)

        return plan.Candidates(there, empty, plain, guarded, pairs, self._scores(there), document)

    def _scores(self, there: kernels.Bools) -> kernels.Floats:
        """Give the score of every cell as `Run.chunks` does; NaN is padding."""
        frame = self.run.candidates
        score = np.full(there.shape, np.inf)
        at = frame["rank"].to_numpy() - 1, frame["qid"].cat.codes.to_numpy()
        given = frame["score"].to_numpy(np.float64)
        score[at] = np.where(np.isfinite(given), given, np.inf)
        score = np.minimum.accumulate(score, axis=0)
        score[np.isinf(score)] = 0.0
        return np.where(there, score, np.nan)

    def _first_equal(self, group: kernels.Longs, some: kernels.Bools) -> kernels.Ints:
        """Find the first cell of each query whose passage is in the same group."""
        if not len(group):
            return self.passage
        shared = np.bincount(group)[group] > 1
        return kernels.keep_first(group[self.passage], some & shared[self.passage])

    def _find_pairs(self, there: kernels.Bools, cut: Shingles) -> kernels.NearPairs:
        rank, query = np.nonzero(there)
        passage = self.passage[rank, query].astype(np.int64)
        pairs = similar_pairs(cut, self.min_jaccard, (query, passage))
        involved = kernels.distinct(np.concatenate([pairs.first, pairs.second]))
        marks = {int(i): differences(self._texts[i]) for i in involved}
        unlike = [marks[int(a)] != marks[int(b)] for a, b in zip(pairs.first, pairs.second, strict=True)]
        return retrieved_together(rank, query, passage, len(self._texts), pairs, np.array(unlike, dtype=bool))

    def _find_relevant(self) -> kernels.Bools | None:
        """Mark the judged-relevant candidates; None without qrels."""
        qrels = self.run.qrels
        if qrels is None:
            return None
        good = qrels[qrels["label"] > 0]
        place = {docid: i for i, docid in enumerate(self.docids)}
        number = {qid: i for i, qid in enumerate(self.qids)}
        q = good["qid"].map(number)
        d = good["docid"].map(place)
        known = (q.notna() & d.notna()).to_numpy()
        width = len(self.docids)
        pair = q[known].to_numpy(np.int64) * width + d[known].to_numpy(np.int64)
        cell = np.arange(len(self.qids)) * width + self.passage.astype(np.int64)
        return np.asarray(np.isin(cell, pair) & (self.passage >= 0), dtype=bool)

    def _find_answers(self) -> kernels.Ints | None:
        """Find where each candidate holds an answer of its query; None without answers."""
        if self.run.answers is None:
            return None
        return metrics.find_answers(self._texts, self.passage, list(self.run.answers))

    def with_counter(self, counter: str | TokenCounter) -> PreparedRun:
        """Give the same run counted by another counter; nothing is compared again."""
        other = copy.copy(self)
        other.counter = counter_for(counter)
        other._sizes, other._full, other._recounts, other._unsure, other._courses = {}, {}, {}, {}, {}
        other._n_tokens = other._count(self._texts)
        for unit, separator in self._sizes:
            other.sizes(unit, separator)
        return other

    # --- sizes ------------------------------------------------------------------------------

    def sizes(self, unit: str, separator: str | None) -> plan.Sizes:
        """Give the cost of every cell in a unit under a separator; counted once."""
        key = (unit, separator)
        if key not in self._sizes:
            alone = self._n_tokens if unit == "tokens" else self._n_chars
            size = self._spread(alone)
            if separator is None:
                self._sizes[key] = plan.Sizes(size, size)
            elif unit == "chars":
                self._sizes[key] = plan.Sizes(size, self._spread(alone + len(separator)))
            else:
                extra = [
                    separator_cost(self.counter, text, separator, int(n))
                    for text, n in zip(self._texts, alone, strict=True)
                ]
                self._sizes[key] = plan.Sizes(size, self._spread(alone + np.array(extra, dtype=np.int64)))
        return self._sizes[key]

    def _spread(self, values: kernels.Ints) -> kernels.Ints:
        """Put a value of each passage into its cells; 0 elsewhere. 32 bits, where sums stay within."""
        if not len(values):
            return np.zeros(self.passage.shape, dtype=np.int32)
        small = int(values.max()) * len(self.passage) < kernels.no_budget(np.int32)
        values = values.astype(np.int32 if small else np.int64)
        return np.where(self.passage >= 0, values[self.passage], values.dtype.type(0))

    def unsure(self, separator: str | None) -> kernels.Bools:
        """Mark the passages before which token counts may not add up across a separator.

        All of them where the counter promises nothing; else those that start with white space or
        "/", where tokens may merge across the line break.
        """
        if separator not in self._unsure:
            n = len(self._texts)
            if separator is None or isinstance(self.counter, CharCounter):
                found = np.zeros(n, dtype=bool)
            elif not additive(self.counter, separator):
                found = np.ones(n, dtype=bool)
            else:
                found = np.array([starts_loosely(t) for t in self._texts], dtype=bool)
            self._unsure[separator] = found
        return self._unsure[separator]

    def course(self, config: PackerConfig) -> plan.Course:
        """Give the order of filling and of the prompt; found once for each kind."""
        key = (get_fill(config.fill), get_ordering(config.order).by, config.unit, config.separator)
        if key not in self._courses:
            self._courses[key] = plan.course(self.cells, self.sizes(config.unit, config.separator), config)
        return self._courses[key]

    def fill_unsure(self, config: PackerConfig, left: plan.Survivors) -> dict[int, plan.Filled]:
        """Fill on their rendered text the queries for which sums of counts don't decide."""
        separator = config.separator
        if separator is None:
            return {}
        counts = self.unsure(separator) if config.unit == "tokens" else np.zeros(len(self._texts), dtype=bool)
        any_end = get_ordering(config.order).ends_with == ANY_END
        if not counts.any() and not any_end:
            return {}
        marked = left.kept & counts[self.passage]
        sizes = self.sizes(config.unit, separator)
        out, way = {}, self.course(config)
        for query in range(len(self.qids)) if any_end else np.flatnonzero(marked.any(axis=0)).tolist():
            ranks = way.filled(left.kept[:, query], query)
            measure = partial(self._measure, separator, config.unit, query)
            slack = join_slack(self.counter) if marked[:, query].any() else 0
            out[query] = plan.fill(ranks, sizes, query, config, way, measure, slack=slack)
        return out

    def _measure(self, separator: str, unit: str, query: int, ranks: Sequence[int]) -> int:
        """Count a rendered text; remembered."""
        passages = tuple(self.passage[list(ranks), query].tolist())
        key = (separator, unit, passages)
        if key not in self._recounts:
            if len(self._recounts) > REMEMBERED:
                self._recounts.clear()
            text = separator.join(self._texts[p] for p in passages)
            self._recounts[key] = len(text) if unit == "chars" else self.counter.count(text)
        return self._recounts[key]

    def recount_tokens(self, config: PackerConfig, layout: kernels.Layout, n: kernels.Longs) -> kernels.Longs:
        """Count the text of queries whose token counts don't add up, when characters were packed."""
        counts = self.unsure(config.separator)
        if config.separator is None or not counts.any():
            return n
        for query in np.unique(layout.query[counts[self.passage[layout.rank, layout.query]]]).tolist():
            ranks = layout.rank[layout.start[query] : layout.start[query + 1]]
            n[query] = self._measure(config.separator, "tokens", query, ranks.tolist())
        return n

    # --- what a setting costs ---------------------------------------------------------------

    def survivors(self, config: PackerConfig) -> plan.Survivors:
        """Give what is left after dedup; a look-up for every threshold seen before."""
        threshold = config.jaccard_threshold
        if threshold is not None and threshold < self.min_jaccard:
            fail(
                SettingError,
                "evaluate",
                "jaccard_threshold",
                f"at least {self.min_jaccard}",
                threshold,
                f"Pairs were kept from there on; use prepare(run, min_jaccard={threshold}).",
            )
        key = (config.deduplicates, threshold, config.protect_differences)
        if key not in self._left:
            if len(self._left) >= 64:
                self._left.pop(next(iter(self._left)))
            self._left[key] = plan.dedup(self.cells, config)
        return self._left[key]

    def evaluate(self, config: PackerConfig) -> PackedRun:
        """Pack every query under one setting and compute all available metrics.

        Parameters
        ----------
        config : PackerConfig

        Returns
        -------
        PackedRun

        Raises
        ------
        PackerError
            If the ordering is unknown.
        SettingError
            If the threshold is below `min_jaccard`.

        Notes
        -----
        Equal to `ContextPacker.pack_sync` query by query. Counts no text, except for queries in
        which a passage starts with white space or "/", and for counters that don't promise that
        counts add up: there the rendered text is counted near the limit, and remembered.
        """
        return self.evaluate_budgets(config, [config.budget])[0]

    def evaluate_budgets(self, config: PackerConfig, budgets: Sequence[int | None]) -> list[PackedRun]:
        """Pack every query under several budgets at once; one `PackedRun` each, in that order."""
        configs = [config.replace(budget=b) for b in budgets]
        out: list[PackedRun | None] = [None] * len(configs)
        for deduplicates in {c.deduplicates for c in configs}:
            chosen = [i for i, c in enumerate(configs) if c.deduplicates == deduplicates]
            some = configs[chosen[0]]
            left = self.survivors(some)
            sizes = self.sizes(some.unit, some.separator)
            keep, _ = plan.fit(left, sizes, some, [configs[i].limit for i in chosen], self.course(some))
            for place, i in enumerate(chosen):
                out[i] = PackedRun.build(self, configs[i], left, keep[:, place])
        return [packed for packed in out if packed is not None]

    @cached_property
    def unavailable(self) -> dict[str, str]:
        """Say which metrics this run can't give, and why."""
        has = {"qrels": self.relevant is not None, "answers": self.answer_at is not None}
        out = {}
        for metric in metrics.METRICS.values():
            missing = [part for part in metric.needs if not has[part]]
            if missing:
                out[metric.name] = f"no {' and no '.join(missing)} in this run"
        return out

    def full(self, unit: str, separator: str | None) -> npt.NDArray[Any]:
        """Give the size of each query's full context: every candidate with text, as rendered."""
        key = (unit, separator)
        if key not in self._full:
            everything = PackerConfig(budget=None, unit=unit, separator=separator, order="descending")  # type: ignore[arg-type]
            per_query = self.evaluate(everything).per_query
            self._full[key] = per_query["n_tokens" if unit == "tokens" else "n_chars"].to_numpy()
        return self._full[key]

    def __repr__(self) -> str:
        return (
            f"PreparedRun({self.run.name!r}: {len(self.qids):,} queries, {len(self.docids):,} distinct "
            f"passages, {self.counter.name})"
        )
