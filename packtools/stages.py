"""What each stage of the pipeline comes to under a setting, kept for the settings seen before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import RLock
from typing import Any, TypeVar

from packtools import plan
from packtools.arrays import Bools, Ints
from packtools.budget import get_fill
from packtools.config import PackerConfig
from packtools.corpus import Corpus
from packtools.errors import SettingError, fail
from packtools.ordering import get_ordering
from packtools.picking import Pairs
from packtools.runs.model import Run
from packtools.selected import Selected, repeats
from packtools.selecting import check_queries, scored_pairs, select
from packtools.selection import get_selector
from packtools.sentences import get_splitter

__all__ = ["Stages"]

SETTINGS = 64
"""Settings of one stage whose outcome is kept; fewer where they would hold more than `CELLS`."""
CELLS = 8_000_000
T = TypeVar("T")


class Stages:
    """Give the outcome of each stage for any setting, each worked out once.

    Parameters
    ----------
    run : Run
    passage : ndarray of int32, shape (ranks, queries)
        Number of the passage in each cell; -1 is none.
    corpus : Corpus
        Of the passages.
    cells : Candidates
    min_jaccard : float
        The lowest threshold that `cells` has pairs for.
    """

    run: Run
    passage: Ints
    corpus: Corpus
    cells: plan.Candidates
    min_jaccard: float
    _kept: dict[str, dict[Any, Any]]
    _lock: RLock

    def _once(self, stage: str, key: object, work: Callable[[], T]) -> T:
        """Give what a stage came to under a setting; worked out once, the oldest forgotten."""
        with self._lock:
            known = self._kept.setdefault(stage, {})
            if key not in known:
                if len(known) >= min(SETTINGS, max(CELLS // max(self.passage.size, 1), 4)):
                    known.pop(next(iter(known)))
                known[key] = work()
            found: T = known[key]
            return found

    def pairs(self, config: PackerConfig) -> Pairs:
        """Give the sentences of every candidate, scored and ranked; depends on no budget."""
        queries = self.run.queries["text"].tolist()
        check_queries(config, self.run.has_query_text)
        return self._once(
            "pairs",
            _sentence_key(config),
            lambda: scored_pairs(self.corpus, self.passage, queries, config, self.corpus.weights),
        )

    def left(self, config: PackerConfig) -> Selected:
        """Give what the select step leaves of every candidate."""
        return self._once(
            "left",
            select_key(config),
            lambda: select(self.corpus, self.passage, config, lambda: self.pairs(config)),
        )

    def sizes(self, config: PackerConfig) -> plan.Sizes:
        """Give the cost of every cell under a setting."""
        key = (config.separator, select_key(config))
        return self._once("sizes", key, lambda: self.left(config).sizes(config.separator))

    def whole_sizes(self, unit: str) -> Ints:
        """Give the size of every cell before anything is cut."""
        whole = PackerConfig(unit=unit)  # type: ignore[arg-type]
        return self._once("whole", unit, lambda: self.left(whole).sizes(None).size)

    def unsure(self, config: PackerConfig) -> Bools:
        """Mark cells before which token counts may not add up across the separator."""
        separator = str(config.separator)
        return self._once(
            "unsure", (separator, select_key(config)), lambda: self.left(config).unsure(separator)
        )

    def candidates(self, config: PackerConfig) -> plan.Candidates:
        """Give what dedup needs to know, of the texts as the select step leaves them."""
        if config.passage_budget is None and config.same_text == "normalised":
            return self.cells
        key = (select_key(config), config.same_text, config.deduplicates)
        return self._once("candidates", key, lambda: self._candidates(config))

    def _candidates(self, config: PackerConfig) -> plan.Candidates:
        left = self.left(config)
        found = replace(self.cells, unselected=left.nothing)
        if config.deduplicates:
            some = found.there & ~found.empty & ~left.nothing
            plain, guarded = repeats(left, some, config.same_text)
            found = replace(found, plain=plain, guarded=guarded)
        return found

    def course(self, config: PackerConfig) -> plan.Course:
        """Give the order of filling and of the prompt."""
        by = get_ordering(config.order).by
        key = (get_fill(config.fill), by, config.separator, select_key(config))
        return self._once("course", key, lambda: plan.course(self.cells, self.sizes(config), config))

    def check_threshold(self, config: PackerConfig) -> None:
        """Refuse a threshold below the lowest that there are pairs for."""
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

    def survivors(self, config: PackerConfig) -> plan.Survivors:
        """Give what is left after dedup; a look-up for every threshold seen before."""
        self.check_threshold(config)
        same = config.same_text if config.deduplicates else None
        key = (same, config.jaccard_threshold, config.protect_differences, select_key(config))
        return self._once("survivors", key, lambda: plan.dedup(self.candidates(config), config))


def select_key(config: PackerConfig) -> tuple[object, ...]:
    """Tell settings apart by what the select step makes of them."""
    if config.passage_budget is None:
        return (config.unit, config.white_space)
    how = None if config.sentence_selection is None else _sentence_key(config)
    return (config.unit, config.white_space, config.passage_budget, how)


def _sentence_key(config: PackerConfig) -> tuple[object, ...]:
    """Tell settings apart by how sentences are ranked; a function registered anew is another."""
    selector, splitter = get_selector(str(config.sentence_selection)), get_splitter(config.splitter)
    return (selector, splitter, config.min_sentence_chars)
