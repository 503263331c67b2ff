"""How much any packer could keep under a budget, and to which step of ours the rest is lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from packtools import metrics, stats
from packtools.arrays import Bools, Floats, Longs
from packtools.config import PackerConfig
from packtools.counters import separator_cost
from packtools.errors import SettingError, check_count, fail, unknown
from packtools.picking import spread
from packtools.plan import Sizes
from packtools.prepared import PreparedRun
from packtools.selected import Selected
from packtools.selecting import check_names

__all__ = ["headroom", "headroom_per_query"]

ANSWER, GOLD = MEASURED = ("answer_retention", "gold_retention")
LOSSES = ("lost_to_budget", "lost_to_selection", "lost_to_dedup", "lost_to_fill")
NEVER = 1 << 40
"""The price of what can't be had; more than any budget, and sums of it stay within 64 bits."""


def headroom(
    prepared: PreparedRun,
    config: PackerConfig,
    budgets: Sequence[int],
    *,
    metric: str = ANSWER,
    rng: int = 0,
) -> pd.DataFrame:
    """Compare what a setting keeps with the most that any packer could, budget by budget.

    Use it before tuning: where `best` is low the budget is the limit and no setting helps; where
    `lost_to_fill` is large, a better order of filling would.

    1. `best` is an oracle that knows what is wanted. It keeps an answer if the cheapest whole chunk
       that holds one is within the budget, and the most judged-relevant chunks that fit together,
       each but the last paying for the separator behind it. Under a setting that cuts passages it
       may keep a single sentence of a chunk instead.
    2. The same oracle is asked again with only what the select step leaves of each chunk, and once
       more with only the chunks that survive dedup.
    3. What it can do less each time is lost to that step; what the setting keeps less than the last
       oracle is lost to the fill: the budget went to other chunks.

    Parameters
    ----------
    prepared : PreparedRun
    config : PackerConfig
        Its own budget is not used. `reserve` is taken off each budget.
    budgets : sequence of int
        In the unit of `config`.
    metric : {"answer_retention", "gold_retention"}, default "answer_retention"
    rng : int, default 0
        Seed of the bootstrap.

    Returns
    -------
    DataFrame, index budget
        Means over the queries scored, as shares: best, kept (what `evaluate` gives), lost_to_budget,
        lost_to_selection, lost_to_dedup, lost_to_fill; kept and the four losses add up to 1. Then
        room (best - kept) with room_ci_low and room_ci_high, its 95 % paired bootstrap interval;
        n of N queries scored.

    Raises
    ------
    SettingError
        If the metric is another one, or `budgets` holds anything but whole numbers.
    PackerError
        If the reserve leaves no room in a budget, or a name in `config` is unknown.
    MetricUnavailable
        If the run has no answers, or no qrels.

    Notes
    -----
    An oracle can do at least what was done, so no loss is below 0: where a cut start of a chunk keeps
    more than the cheapest unit would, the oracle counts it too.

    An answer in a dropped duplicate is usually still in its keeper, so little is lost to dedup. A
    relevant passage with an empty text can't be kept and is lost to the budget; one that is not in
    the collection does not count. Between chunks, counts are added up, which is exact where the
    counter promises it.

    Cost: that of `evaluate_budgets`, and one sort of ranks x queries for each oracle; the budgets are
    an axis. For a setting that cuts, sentences of the wanted chunks alone are counted.

    Examples
    --------
    The chunk with the answer would fit, but a longer one that ranks higher takes the budget:

    >>> import pandas as pd
    >>> from packtools import PackerConfig, Run, prepare
    >>> run = Run.from_frames(
    ...     pd.DataFrame({"qid": "q", "docid": ["long", "short"], "rank": [1, 2]}),
    ...     {"long": "It rains in Spain.", "short": "Paris."},
    ...     answers={"q": ["Paris"]},
    ... )
    >>> table = headroom(prepare(run, counter="chars"), PackerConfig(), [5, 20, 30])
    >>> table[["best", "kept", "lost_to_budget", "lost_to_fill"]].to_numpy().tolist()
    [[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
    """
    configs = _checked("headroom", prepared, config, budgets, metric)
    parts = _parts(prepared, configs, metric)
    best, kept = (pd.DataFrame(parts[name].T) for name in ("best", "kept"))
    pairs = stats.paired_bootstrap_many(kept, best, rng=rng)
    columns: dict[str, Any] = {name: pd.DataFrame(values.T).mean() for name, values in parts.items()}
    columns |= {
        "room": (best - kept).mean(),
        "room_ci_low": [pair.low for pair in pairs],
        "room_ci_high": [pair.high for pair in pairs],
        "n": [pair.n for pair in pairs],
        "N": len(prepared.qids),
    }
    return pd.DataFrame(columns).set_axis(pd.Index([c.budget for c in configs], name="budget"))


def headroom_per_query(
    prepared: PreparedRun, config: PackerConfig, budget: int, *, metric: str = ANSWER
) -> pd.DataFrame:
    """Say for each query what could be kept under a budget, what is, and to which step the rest is lost.

    Parameters
    ----------
    prepared, config, metric
        As in `headroom`.
    budget : int
        In the unit of `config`.

    Returns
    -------
    DataFrame, index qid
        Shares best, kept, lost_to_budget, lost_to_selection, lost_to_dedup, lost_to_fill; NaN where a
        query is not scored.

    Raises
    ------
    SettingError, PackerError, MetricUnavailable
        As in `headroom`.

    Examples
    --------
    >>> from packtools import PackerConfig, load_sample, prepare
    >>> table = headroom_per_query(prepare(load_sample(), counter="chars"), PackerConfig(), 1000)
    >>> bool((table["best"] >= table["kept"])[table["best"].notna()].all())
    True
    """
    configs = _checked("headroom_per_query", prepared, config, [budget], metric)
    parts = _parts(prepared, configs, metric)
    return pd.DataFrame({name: v[0] for name, v in parts.items()}, index=prepared.run.queries.index)


def _checked(
    where: str, prepared: PreparedRun, config: PackerConfig, budgets: Iterable[int], metric: str
) -> list[PackerConfig]:
    """Give the setting under each budget."""
    if not isinstance(prepared, PreparedRun):
        fail(SettingError, where, "prepared", "a PreparedRun", prepared, "Make one with prepare(run).")
    if not isinstance(config, PackerConfig):
        fail(SettingError, where, "config", "a PackerConfig", config)
    if not isinstance(metric, str) or metric not in MEASURED:
        unknown(SettingError, where, "metric", metric, MEASURED)
    if isinstance(budgets, str) or not isinstance(budgets, Iterable):
        fail(SettingError, where, "budgets", "a list of whole numbers", budgets, "Write [1000].")
    unit = config.unit[:-1]
    whole = [check_count(SettingError, where, "budgets", b, unit) for b in budgets]
    if not whole:
        fail(SettingError, where, "budgets", "at least one budget", [])
    check_names(config)
    metrics.need(metric, prepared.unavailable)
    return [config.replace(budget=b) for b in whole]


def _parts(prepared: PreparedRun, configs: Sequence[PackerConfig], metric: str) -> dict[str, Floats]:
    """Give each column by budget and query; NaN is not scored."""
    config = configs[0]
    if config.white_space == "collapse":
        prepared = prepared.collapsed
    packed = prepared.evaluate_budgets(config, [c.budget for c in configs])
    kept = np.stack([p.per_query[metric].to_numpy(np.float64) for p in packed])
    limits = np.array([min(c.limit or 0, NEVER - 1) for c in configs])[:, None]
    reached = [kept]
    for prices in reversed(_prices(prepared, config, metric)):
        reached.append(np.maximum(_retained(prepared, prices, limits, metric), reached[-1]))
    reached.append(np.ones_like(kept))
    lost = [more - less for less, more in pairwise(reached)]
    return {"best": reached[-2], "kept": kept, **dict(zip(LOSSES, reversed(lost), strict=True))}


# --- the oracle -----------------------------------------------------------------------------------


def _retained(prepared: PreparedRun, prices: Sizes, limits: Longs, metric: str) -> Floats:
    """Give what an oracle retains under each limit: shape (limits, queries)."""
    if metric == ANSWER:
        assert prepared.answered is not None
        cheapest = prices.size.min(axis=0, initial=NEVER)
        return metrics.answer_retention(cheapest <= limits, prepared.answered)
    assert prepared.n_relevant is not None
    return metrics.share(_most(prices, limits), prepared.n_relevant)


def _most(prices: Sizes, limits: Longs) -> Longs:
    """Count the most cells of each query that fit together: shape (limits, queries).

    The cheapest prompt of k chunks ends with a chunk of the k that are cheapest with a separator, the
    one whose separator costs most, or with the smallest chunk behind the first k - 1 of them.
    """
    n = int((prices.joined < NEVER).sum(axis=0).max(initial=0))
    order = np.argsort(prices.joined, axis=0, kind="stable")[:n]
    joined = np.take_along_axis(prices.joined, order, axis=0)
    size = np.take_along_axis(prices.size, order, axis=0)
    total = np.cumsum(joined, axis=0)
    one_of_them = total - np.maximum.accumulate(joined - size, axis=0)
    another = total - joined + np.minimum.accumulate(size[::-1], axis=0)[::-1]
    cost = np.minimum(one_of_them, another)
    return np.stack([(cost <= limit).sum(axis=0) for limit in limits])


# --- what it may keep, and for how much -----------------------------------------------------------


def _prices(prepared: PreparedRun, config: PackerConfig, metric: str) -> list[Sizes]:
    """Price the cells that an oracle wants: of all candidates, after select, after dedup."""
    if metric == ANSWER:
        config = config.replace(separator=None)  # a chunk alone pays none
        assert prepared.answer_at is not None
        wanted = prepared.answer_at >= 0
    else:
        assert prepared.relevant is not None
        wanted = prepared.relevant & ~prepared.cells.empty
    left = prepared.left(config)
    everything = _priced(prepared.sizes(config.replace(passage_budget=None)), wanted)
    selected = _priced(prepared.sizes(config), _still_there(prepared, left, wanted, metric))
    if config.cuts:
        sentences = _sentences(prepared, config, wanted, metric)
        everything = sentences.cheapen(everything)
        if config.overflow == "truncate":  # what is left may be cut once more
            selected = sentences.within(left).cheapen(selected)
    survivors = prepared.survivors(config).kept
    after = Sizes(*(np.where(survivors, v, NEVER) for v in (selected.size, selected.joined)))
    return [everything, selected, after]


def _priced(sizes: Sizes, wanted: Bools) -> Sizes:
    return Sizes(*(np.where(wanted, v, np.int64(NEVER)) for v in (sizes.size, sizes.joined)))


def _still_there(prepared: PreparedRun, left: Selected, wanted: Bools, metric: str) -> Bools:
    """Mark the wanted cells of which the select step leaves what is wanted."""
    if metric == GOLD:
        return wanted & ~left.nothing
    out = wanted.copy()
    rank, query = np.nonzero(wanted & (left.slot >= 0))
    out[rank, query] = _hold(prepared, query, np.arange(len(rank)), left.texts(rank, query))
    return out


@dataclass(frozen=True)
class _Sentences:
    """Hold sentences that an oracle may keep of a cell, and their price without and with a separator."""

    rank: Longs
    query: Longs
    sentence: Longs
    size: Longs
    joined: Longs

    def take(self, some: Bools) -> _Sentences:
        """Give some of them."""
        return _Sentences(*(getattr(self, name)[some] for name in self.__dataclass_fields__))

    def within(self, left: Selected) -> _Sentences:
        """Give those that stand whole in what is left of their cell."""
        slot = left.slot[self.rank, self.query].astype(np.int64)
        if not left.n_slots:
            return self
        table, cut = left.corpus.table(left.config.splitter), left.cut[slot]
        inside = (cut[:, 0] <= table.begin[self.sentence]) & (table.end[self.sentence] <= cut[:, 1])
        width = len(table.begin)
        owner = np.repeat(np.arange(left.n_slots), np.diff(left.start))
        taken = np.isin(slot * width + self.sentence, owner * width + left.sentence)
        return self.take((slot < 0) | inside | taken)

    def cheapen(self, prices: Sizes) -> Sizes:
        """Lower the price of each cell to that of its cheapest sentence."""
        size, joined = prices.size.copy(), prices.joined.copy()
        np.minimum.at(size, (self.rank, self.query), self.size)
        np.minimum.at(joined, (self.rank, self.query), self.joined)
        return Sizes(size, joined)


def _sentences(prepared: PreparedRun, config: PackerConfig, wanted: Bools, metric: str) -> _Sentences:
    """Give the sentences of the wanted cells, of an answer those that hold one."""
    corpus, table = prepared.corpus, prepared.corpus.table(config.splitter)
    rank, query = np.nonzero(wanted)
    sentence, begin = spread(table.start, prepared.passage[rank, query].astype(np.int64))
    rank, query = np.repeat(rank, np.diff(begin)), np.repeat(query, np.diff(begin))
    distinct, number = np.unique(sentence, return_inverse=True)
    texts = [table.text(i) for i in distinct.tolist()]
    if metric == ANSWER:
        some = _hold(prepared, query, number, texts)
        rank, query, sentence = rank[some], query[some], sentence[some]
    size = corpus.costs(config.splitter, config.unit).of(sentence).alone[sentence]
    if config.separator is None:
        return _Sentences(rank, query, sentence, size, size)
    if config.unit == "chars":
        return _Sentences(rank, query, sentence, size, size + len(config.separator))
    gap = [separator_cost(corpus.counter, text, config.separator) for text in texts]
    return _Sentences(rank, query, sentence, size, size + np.array(gap, dtype=np.int64)[number])


def _hold(prepared: PreparedRun, query: Longs, number: Longs, texts: Sequence[str]) -> Bools:
    """Say of texts by number whether they hold an answer of the query beside them."""
    order = np.argsort(query, kind="stable")
    start = np.searchsorted(query[order], np.arange(len(prepared.qids)))
    nth = np.empty(len(query), dtype=np.int64)
    nth[order] = np.arange(len(query)) - start[query[order]]
    column = np.full((int(nth.max(initial=-1)) + 1, len(prepared.qids)), -1, dtype=np.int32)
    column[nth, query] = number
    given = [] if prepared.run.answers is None else list(prepared.run.answers)
    return np.asarray(metrics.find_answers(texts, column, given)[nth, query] >= 0)
