"""Prepare a run once, evaluate any setting at once.

`prepare` reads, counts and compares each distinct passage; `PreparedRun.evaluate` only moves
arrays, through the same `select` and `plan` that `ContextPacker` uses for one query.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from packtools import cells, metrics, plan
from packtools.arrays import Bools, Ints, Longs
from packtools.budget import get_fill
from packtools.config import PackerConfig
from packtools.corpus import REMEMBERED, Corpus
from packtools.counters import TokenCounter, counter_for
from packtools.errors import SettingError, check_share, fail
from packtools.ordering import ANY_END, get_ordering
from packtools.packed import PackedRun
from packtools.runs.model import Run
from packtools.runs.read_parts import Part
from packtools.selected import repeats, untouched
from packtools.selecting import check_names
from packtools.selection import Weights
from packtools.stages import Stages, select_key

__all__ = ["PreparedRun", "prepare"]

MIN_JACCARD = 0.5
SEPARATORS = ("\n\n",)
FIRST_DEPTH = 8
"""Ranks that are looked at first, where packing may end early."""


def prepare(
    run: Run | str | Path,
    *,
    counter: str | TokenCounter = "cl100k_base",
    min_jaccard: float = MIN_JACCARD,
    separators: Sequence[str] = SEPARATORS,
    splitters: Sequence[str] = (),
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
    splitters : sequence of str, default ()
        Names in `SPLITTERS` by which sentences are told apart now, and numbers and names found, for
        settings that cut passages; otherwise that is done when it is first needed.

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
    for name, given in (("separators", separators), ("splitters", splitters)):
        if isinstance(given, str):
            fail(SettingError, "prepare", name, "a list of strings", given, f"Write [{given!r}].")
        if not isinstance(given, Sequence) or not all(isinstance(g, str) for g in given):
            fail(SettingError, "prepare", name, "a list of strings", given)
    prepared = PreparedRun(run, counter_for(counter), floor)
    for separator in separators:
        prepared.corpus.behind(separator)
    for splitter in splitters:
        for corpus in {prepared.corpus, prepared.collapsed.corpus}:
            corpus.table(splitter).words  # noqa: B018
            corpus.facts  # noqa: B018
    return prepared


class PreparedRun(Stages):
    """Hold a run as arrays ``[rank, query]``, ready for any setting.

    Made by `prepare`. Sizes, pairs and answers are kept for each distinct passage; every
    evaluation works from them.
    """

    def __init__(self, run: Run, counter: TokenCounter, min_jaccard: float) -> None:
        self.run, self.min_jaccard = run, min_jaccard
        self.qids: list[str] = list(run.queries.index)
        self.passage, self.docids, texts = cells.lay_out(run)
        self.corpus = Corpus(texts, counter)
        if isinstance(run, Part):
            self.corpus.weights = Weights(texts, run.terms)
        self.corpus.n_tokens  # noqa: B018
        self.cells = cells.find_candidates(run, self.passage, self.docids, texts, min_jaccard)
        self.relevant = cells.find_relevant(run, self.passage, self.docids)
        self.n_relevant = None if self.relevant is None else self.relevant.sum(axis=0)
        self._kept: dict[str, dict[Any, Any]] = {}
        self._lock = RLock()
        self._deep: PreparedRun | None = None
        self.answer_at = self._find_answers()
        self.answered = None if self.answer_at is None else np.asarray((self.answer_at >= 0).any(axis=0))

    @property
    def counter(self) -> TokenCounter:
        """The token counter in use."""
        return self.corpus.counter

    # --- what is done once ------------------------------------------------------------------

    def _find_answers(self) -> Ints | None:
        """Find where each candidate holds an answer of its query; None without answers."""
        if self.run.answers is None:
            return None
        return metrics.find_answers(self.corpus.texts, self.passage, list(self.run.answers))

    @property
    def weights(self) -> Weights:
        """TF-IDF weights of the run's passages; for a part of a run, those of the whole."""
        return self.corpus.weights

    def with_counter(self, counter: str | TokenCounter) -> PreparedRun:
        """Give the same run counted by another counter; nothing is compared or split again."""
        other = self._with(self.corpus.with_counter(counter_for(counter)))
        twin = self.__dict__.get("collapsed")
        if twin is not None:
            other.collapsed = other if twin is self else twin._with(other.corpus.collapsed)
        for separator in self.corpus.separators:
            other.corpus.behind(separator)
        return other

    def _with(self, corpus: Corpus) -> PreparedRun:
        other = copy.copy(self)
        other.corpus, other._kept = corpus, {}
        other.__dict__.pop("collapsed", None)
        other.corpus.n_tokens  # noqa: B018
        return other

    @cached_property
    def collapsed(self) -> PreparedRun:
        """The same run with white space collapsed; this very one if that changes no passage."""
        corpus = self.corpus.collapsed
        if corpus is self.corpus:
            return self
        if isinstance(self.run, Part):  # the words of a text are the same with white space collapsed
            corpus.weights = self.corpus.weights
        other = self._with(corpus)
        other.collapsed = other
        empty = cells.find_empty(corpus.texts, self.passage)
        whole = untouched(corpus, self.passage, PackerConfig())
        plain, guarded = repeats(whole, (self.passage >= 0) & ~empty, "normalised")
        other.cells = replace(self.cells, empty=empty, plain=plain, guarded=guarded)
        other.answer_at = other._find_answers()  # `answered` stays that of the untouched passages
        return other

    def answer_in(self, query: int, text: str) -> int:
        """Find the first answer of a query in a text; remembered, -1 if none is there."""
        key = (query, text)
        known = self._kept.setdefault("answers", {})
        found = known.get(key)
        if found is None:
            if len(known) >= REMEMBERED:
                known.clear()
            given = () if self.run.answers is None else self.run.answers.iloc[query]
            found = known[key] = metrics.find_answer(text, given)
        return int(found)

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
            If an ordering, a fill, a selection or a splitter is unknown, or the selection needs
            query text and the run has none.
        SettingError
            If the threshold is below `min_jaccard`.

        Notes
        -----
        Equal to `ContextPacker.pack_sync` query by query. Splits and compares nothing again. Counts
        no text, except where it must, and remembers the count: sentences that are packed for the
        first time, what a passage is cut to, queries in which a passage starts with white space or
        "/" (near the limit), and everything rendered for counters that don't promise that counts
        add up.
        """
        if not isinstance(config, PackerConfig):
            fail(SettingError, "evaluate", "config", "a PackerConfig", config)
        check_names(config)
        return self.evaluate_budgets(config, [config.budget])[0]

    def evaluate_budgets(self, config: PackerConfig, budgets: Sequence[int | None]) -> list[PackedRun]:
        """Pack every query under several budgets at once; one `PackedRun` each, in that order."""
        return list(self.each_budget(config, budgets))

    def each_budget(self, config: PackerConfig, budgets: Sequence[int | None]) -> Iterator[PackedRun]:
        """Fit several budgets at once, and give their `PackedRun`s one by one."""
        if config.white_space == "collapse" and self.collapsed is not self:
            yield from self.collapsed.each_budget(config, budgets)
            return
        configs = [config.replace(budget=b) for b in budgets]
        if not configs:
            return
        for depth in self._depths(configs):
            top = self.top(depth)
            fitted = top._fit(configs)
            if fitted:
                self._kept.setdefault("depth", {})[select_key(config)] = depth
                for one, keep, crossing in fitted:
                    yield PackedRun.build(top, one, keep, crossing).deepened(self)
                return
        for one, keep, crossing in self._fit(configs):
            yield PackedRun.build(self, one, keep, crossing)

    def _fit(self, configs: Sequence[PackerConfig]) -> list[tuple[PackerConfig, Bools, Longs]]:
        """Fill settings that differ in the budget; nothing if the top is not deep enough.

        Gives for each what `plan.fit` does.
        """
        found: dict[int, tuple[PackerConfig, Bools, Longs]] = {}
        for deduplicates in {c.deduplicates for c in configs}:
            chosen = [i for i, c in enumerate(configs) if c.deduplicates == deduplicates]
            some = configs[chosen[0]]
            survivors, sizes, way = self.survivors(some), self.sizes(some), self.course(some)
            limits = [configs[i].limit for i in chosen]
            keep, crossing = plan.fit(survivors, sizes, some, limits, way)
            if self._deep is not None and not self._settled(some, crossing):
                return []
            for place, i in enumerate(chosen):
                found[i] = configs[i], keep[:, place], crossing[place]
        return [found[i] for i in range(len(configs))]

    def top(self, depth: int) -> PreparedRun:
        """Give the first ranks of every query; totals stay those of the whole run."""

        def work() -> PreparedRun:
            other = copy.copy(self)
            other._kept, other._deep = {}, self
            other.passage, other.cells = self.passage[:depth], self.cells.top(depth)
            other.relevant = None if self.relevant is None else self.relevant[:depth]
            other.answer_at = None if self.answer_at is None else self.answer_at[:depth]
            return other

        return self._once("top", depth, work)

    def _depths(self, configs: Sequence[PackerConfig]) -> Iterator[int]:
        """Give depths that may be enough, where packing ends at the first chunk that does not fit."""
        some = configs[0]
        ends = some.overflow == "truncate" and all(c.budget is not None for c in configs)
        if not ends or get_fill(some.fill) is not None or get_ordering(some.order).ends_with == ANY_END:
            return
        depth = self._kept.get("depth", {}).get(select_key(some), FIRST_DEPTH)
        while depth < len(self.passage):
            yield depth
            depth *= 2

    def _settled(self, config: PackerConfig, crossing: Longs) -> bool:
        """Whether no query needs more ranks than the top has."""
        assert self._deep is not None
        if config.unit == "tokens" and config.separator is not None and self.unsure(config).any():
            return False
        all_here = (self._deep.passage[len(self.passage) :] < 0).all(axis=0)
        return bool(((crossing >= 0) | all_here).all())

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

        if self._deep is not None:
            return self._deep.full(unit, separator)

        if unit == "chars":
            return self._once("full", (unit, separator), lambda: self._full_chars(separator))

        def work() -> npt.NDArray[Any]:
            everything = PackerConfig(budget=None, unit=unit, separator=separator, order="descending")  # type: ignore[arg-type]
            per_query = self.evaluate(everything).per_query
            return per_query["n_tokens" if unit == "tokens" else "n_chars"].to_numpy()

        return self._once("full", (unit, separator), work)

    def _full_chars(self, separator: str | None) -> Longs:
        some = self.cells.there & ~self.cells.empty
        total = np.where(some, self.whole_sizes("chars"), 0).sum(axis=0, dtype=np.int64)
        gaps: Longs = total + len(separator or "") * np.maximum(some.sum(axis=0) - 1, 0)
        return gaps

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be worked out again."""
        return {**self.__dict__, "_kept": {}, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    def __repr__(self) -> str:
        return (
            f"PreparedRun({self.run.name!r}: {len(self.qids):,} queries, {len(self.docids):,} distinct "
            f"passages, {self.counter.name})"
        )
