"""Two views of the order of a prompt: what a reader makes of it, and what a prompt cache reuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from packtools.arrays import Bools, Floats, Longs
from packtools.errors import MetricUnavailable, SettingError, check_count, fail, is_number, unknown
from packtools.kernels import Layout
from packtools.measured import Kept
from packtools.packed import PackedRun

__all__ = ["POSITION_CURVES", "PositionCurve", "expected_quality", "shared_prefix"]

NEEDED = ("answer_retention", "answer_chunk")
PAPER = "Liu et al. (2024), Lost in the Middle: How Language Models Use Long Contexts, TACL 12"


# --- quality by position --------------------------------------------------------------------------


@dataclass(frozen=True)
class PositionCurve:
    """Hold how often a reader answers right, by where in the prompt the answer stands.

    Parameters
    ----------
    name : str
    positions : sequence of float
        Places among the documents, ascending: index / (documents - 1), so 0 is the first and 1 the
        last.
    values : sequence of float
        The quality at each of them, as a share.
    absent : float
        The quality where no document holds an answer, as a share: closed-book accuracy.
    source : str
        Where the numbers are from.

    Raises
    ------
    SettingError
        If a number is not in 0 to 1, the positions don't ascend, or the lengths differ.

    Examples
    --------
    >>> edges = PositionCurve("edges", [0, 0.5, 1], [0.8, 0.4, 0.6], 0.1, "made up")
    >>> round(float(edges.at(0.75)), 3)
    0.5
    """

    name: str
    positions: Sequence[float]
    values: Sequence[float]
    absent: float
    source: str

    def __post_init__(self) -> None:
        for name in ("name", "source"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                fail(SettingError, "PositionCurve", name, "a string that is not empty", getattr(self, name))
        for name in ("positions", "values"):
            object.__setattr__(self, name, _shares(name, getattr(self, name)))
        if not is_number(self.absent) or not 0 <= self.absent <= 1:
            fail(SettingError, "PositionCurve", "absent", "a share from 0 to 1", self.absent)
        object.__setattr__(self, "absent", float(self.absent))
        if any(a >= b for a, b in zip(self.positions[:-1], self.positions[1:], strict=True)):
            fail(SettingError, "PositionCurve", "positions", "ascending", self.positions)
        if len(self.values) != len(self.positions):
            rule = f"as long as positions ({len(self.positions)})"
            fail(SettingError, "PositionCurve", "values", rule, self.values)

    def at(self, position: npt.ArrayLike) -> Floats:
        """Give the quality at some places, on straight lines between the points.

        Parameters
        ----------
        position : array_like of float
            0 is the first document and 1 the last; NaN gives NaN.

        Returns
        -------
        ndarray of float64, same shape
            Before the first and behind the last point, the value there.
        """
        place = np.asarray(position, dtype=np.float64)
        known = np.interp(place, self.positions, self.values)
        return np.asarray(np.where(np.isnan(place), np.nan, known), dtype=np.float64)


def _shares(name: str, given: Sequence[float]) -> tuple[float, ...]:
    """Take a list of shares as a tuple."""
    rule = "a list of shares from 0 to 1"
    if isinstance(given, str) or not isinstance(given, Iterable):
        fail(SettingError, "PositionCurve", name, rule, given)
    listed = tuple(given)
    if not listed or not all(is_number(v) and 0 <= v <= 1 for v in listed):
        fail(SettingError, "PositionCurve", name, rule, given)
    return tuple(float(v) for v in listed)


def _published(name: str, documents: int, percent: Sequence[float], absent: float) -> PositionCurve:
    """Take a row of the paper: the answer is in document 0, 4, 9, 14, … of so many."""
    index = [0, *range(4, documents, 5)]
    table = {10: 5, 20: 6, 30: 7}[documents]
    return PositionCurve(
        name,
        [i / (documents - 1) for i in index],
        [round(p / 100, 3) for p in percent],
        round(absent / 100, 3),
        f"{PAPER}: app. G, table {table} ({documents} documents); absent: table 1, closed-book",
    )


POSITION_CURVES: dict[str, PositionCurve] = {
    curve.name: curve
    for curve in (
        _published("gpt-3.5-turbo-10", 10, [76.8, 61.2, 62.4], 56.1),
        _published("gpt-3.5-turbo-20", 20, [75.8, 57.2, 53.8, 55.4, 63.2], 56.1),
        _published("gpt-3.5-turbo-16k-30", 30, [73.4, 55.1, 50.5, 50.9, 51.8, 54.9, 63.7], 56.0),
        _published("claude-1.3-20", 20, [59.9, 55.9, 56.8, 57.2, 60.1], 48.3),
        _published("mpt-30b-instruct-20", 20, [53.7, 51.8, 52.2, 52.7, 56.3], 31.5),
        _published("longchat-13b-16k-20", 20, [68.6, 57.4, 55.3, 52.5, 55.0], 35.0),
        PositionCurve("flat", [0, 1], [1, 1], 0, "no experiment: the place does not matter"),
    )
}
"""Published curves by model and number of documents, and "flat" as the control.

GPT-3.5-Turbo with the short window was not run on 30 documents; the 16K version was.
"""


def expected_quality(
    per_query: pd.DataFrame, curve: str | PositionCurve = "gpt-3.5-turbo-20"
) -> pd.Series[float]:
    """Expect of each query the quality that a position curve gives at the place of its answer.

    The curve at the place of the first chunk that holds an answer; `absent` of the curve where no
    answer is kept.

    Parameters
    ----------
    per_query : DataFrame
        One row a query with the columns answer_retention (1, 0, NaN) and answer_chunk (0 to 1), as
        `PackedRun.per_query` has them.
    curve : str or PositionCurve, default "gpt-3.5-turbo-20"
        A name in `POSITION_CURVES`, or a curve of your own.

    Returns
    -------
    Series of float64 named "expected_quality", the index of `per_query`
        NaN where answer_retention is NaN.

    Raises
    ------
    MetricUnavailable
        If a column is missing: the run has no answers.
    SettingError
        If the curve is unknown.

    Notes
    -----
    An expectation from one published experiment, not a measurement: other models, questions and
    lengths have other curves, and the curve of so many documents is stretched over any number of
    chunks. `absent` was measured without any document, and a curve may lie below it: GPT-3.5-Turbo
    answers 53.8 % with the answer in the middle of 20 documents and 56.1 % without any. So losing an
    answer can look like a gain; read it next to answer_retention.

    With "flat" it equals answer_retention.

    References
    ----------
    Liu et al. (2024), Lost in the Middle: How Language Models Use Long Contexts, TACL 12, table 1
    and app. G.

    Examples
    --------
    The first of 20 chunks, the tenth, and an answer that was dropped:

    >>> columns = ["answer_retention", "answer_chunk"]
    >>> table = pd.DataFrame([(1, 0, ), (1, 9 / 19), (0, np.nan)], columns=columns)
    >>> expected_quality(table).tolist()
    [0.758, 0.538, 0.561]
    """
    if not isinstance(per_query, pd.DataFrame):
        fail(
            SettingError, "expected_quality", "per_query", "a DataFrame", per_query, "Give packed.per_query."
        )
    missing = [name for name in NEEDED if name not in per_query]
    if missing:
        raise MetricUnavailable(
            f"expected_quality: needs the columns {', '.join(NEEDED)}; missing: {', '.join(missing)}. "
            "Evaluate a run with answers."
        )
    if not isinstance(curve, PositionCurve):
        if not isinstance(curve, str) or curve not in POSITION_CURVES:
            unknown(SettingError, "expected_quality", "curve", curve, POSITION_CURVES)
        curve = POSITION_CURVES[curve]
    retained, place = (per_query[name].to_numpy(np.float64) for name in NEEDED)
    quality = np.where(retained > 0, curve.at(place), curve.absent)
    quality[np.isnan(retained)] = np.nan
    return pd.Series(quality, index=per_query.index, name="expected_quality")


# --- shared prefixes ------------------------------------------------------------------------------


def shared_prefix(
    packed: PackedRun, *, before: str = "", sequence: Sequence[str] | None = None, least: int = 0
) -> pd.Series[int]:
    """Count the tokens at the start of each prompt that the prompt before it has too.

    That is what the prompt cache of a provider could reuse. Whole chunks are compared, in prompt
    order: the shared prefix ends where the text of the two differs for the first time, at the start
    of that chunk.

    Parameters
    ----------
    packed : PackedRun
    before : str, default ""
        Fixed instructions before every context; end them with a line break.
    sequence : sequence of str or None, default None
        The qids in the order in which they are asked, some more than once if they are; None is the
        order of the run.
    least : int, default 0
        Shared prefixes below so many tokens count as 0: providers keep only those of some length.

    Returns
    -------
    Series of int64 named "shared_prefix", index qid
        In the order of asking; 0 for the first.

    Raises
    ------
    SettingError
        If a qid is unknown, or an argument breaks its rule.

    Notes
    -----
    A lower bound: of the first chunk that differs nothing is counted, though two cuts of a passage
    may start alike; and a cache may also hold prompts from further back. It is told by the text, so
    a passage under two ids is shared. With ``separator=None`` the joins, which the caller renders,
    are taken as equal and cost nothing.

    Tokens are added up where counts of parts are exact (see `prepare`); elsewhere the shared text is
    rendered and counted. The tokens of `before` are those of that text alone.

    Cost: one step for each place in the prompt, over the queries that still agree. Cut chunks are
    compared, and shared ones counted, by their text.

    Examples
    --------
    >>> from packtools import PackerConfig, Run, prepare
    >>> rows = [("q1", "a", 1), ("q1", "b", 2), ("q2", "a", 1), ("q2", "c", 2)]
    >>> run = Run.from_frames(
    ...     pd.DataFrame(rows, columns=["qid", "docid", "rank"]), {"a": "one", "b": "two", "c": "three"}
    ... )
    >>> config = PackerConfig(order="descending", separator="\\n\\n")
    >>> shared_prefix(prepare(run, counter="chars").evaluate(config)).to_dict()
    {'q1': 0, 'q2': 5}
    """
    if not isinstance(packed, PackedRun):
        fail(SettingError, "shared_prefix", "packed", "a PackedRun", packed)
    if not isinstance(before, str):
        fail(SettingError, "shared_prefix", "before", "a string", before)
    least = check_count(SettingError, "shared_prefix", "least", least, "token", 0)
    asked = _numbers(packed, sequence)
    shared = np.zeros(len(asked), dtype=np.int64)
    if len(asked) > 1:
        kept = Kept(packed.layout, packed.trims, {})
        alike = _chunks_alike(packed, kept, asked[1:], asked[:-1])
        size = np.diff(packed.layout.start)
        ends = alike == np.minimum(size[asked[1:]], size[asked[:-1]])
        shared[1:] = _prefix_tokens(packed, kept, asked[1:], alike, ends)
        shared[1:] += packed.prepared.corpus.count(before)
        shared[shared < least] = 0
    return pd.Series(shared, index=packed.per_query.index[asked], name="shared_prefix")


def _numbers(packed: PackedRun, sequence: Sequence[str] | None) -> Longs:
    """Give the numbers of the queries in the order in which they are asked."""
    index = packed.per_query.index
    if sequence is None:
        return np.arange(len(index))
    if isinstance(sequence, str) or not isinstance(sequence, Iterable):
        fail(SettingError, "shared_prefix", "sequence", "a list of qids", sequence)
    asked = list(sequence)
    number = index.get_indexer(pd.Index(asked, dtype=object))
    if (number < 0).any():
        packed.prepared.run.number(asked[int(np.argmin(number))])
    return number.astype(np.int64)


def _chunks_alike(packed: PackedRun, kept: Kept, query: Longs, previous: Longs) -> Longs:
    """Count the chunks at the start of each context whose text the previous one has too."""
    layout, prepared = packed.layout, packed.prepared
    left = prepared.left(packed.config)
    cut, passage = kept.cut(left), prepared.passage[layout.rank, layout.query]
    first, other = layout.start[query], layout.start[previous]
    most = np.minimum(layout.start[query + 1] - first, layout.start[previous + 1] - other)
    alike = np.zeros(len(query), dtype=np.int64)
    active = np.flatnonzero(most > 0)
    while len(active):
        nth = alike[active]
        a, b = first[active] + nth, other[active] + nth
        same = (a == b) | ((passage[a] == passage[b]) & ~cut[a] & ~cut[b])
        doubt = np.flatnonzero(~same)
        texts = zip(kept.texts(left, a[doubt]), kept.texts(left, b[doubt]), strict=True)
        same[doubt] = [one == two for one, two in texts]
        active = active[same]
        alike[active] += 1
        active = active[alike[active] < most[active]]
    return alike


def _prefix_tokens(packed: PackedRun, kept: Kept, query: Longs, n_chunks: Longs, ends: Bools) -> Longs:
    """Count the tokens of the first chunks of some contexts, a separator behind them unless one `ends`."""
    start, separator = packed.layout.start, packed.config.separator
    size, joined = _chunk_tokens(packed, kept, _first_places(packed.layout, query, n_chunks))
    total = np.concatenate([[0], np.cumsum(joined)])
    begin, end = start[query], start[query] + n_chunks
    tokens: Longs = total[end] - total[begin]
    closed = np.flatnonzero(ends & (n_chunks > 0))
    tokens[closed] -= (joined - size)[end[closed] - 1]
    if separator is None:
        return tokens
    left = packed.prepared.left(packed.config)
    for i in np.flatnonzero(_inexact(packed, begin, end)).tolist():
        text = separator.join(kept.texts(left, np.arange(begin[i], end[i])))
        tokens[i] = packed.prepared.corpus.count(text if ends[i] else text + separator)
    return tokens


def _first_places(layout: Layout, query: Longs, n_chunks: Longs) -> Longs:
    """Give the places of the first chunks of some contexts, each place once."""
    most = np.zeros(len(layout.start) - 1, dtype=np.int64)
    np.maximum.at(most, query, n_chunks)
    nth = np.arange(len(layout.query)) - layout.start[layout.query]
    return np.flatnonzero(nth < most[layout.query])


def _chunk_tokens(packed: PackedRun, kept: Kept, places: Longs) -> tuple[Longs, Longs]:
    """Count the tokens of the chunks at some places, alone and with the separator; 0 elsewhere."""
    layout, corpus, separator = packed.layout, packed.prepared.corpus, packed.config.separator
    left = packed.prepared.left(packed.config)
    number = packed.prepared.passage[layout.rank[places], layout.query[places]]
    size, joined = np.zeros((2, len(layout.rank)), dtype=np.int64)
    size[places] = joined[places] = corpus.n_tokens[number]
    if separator is not None:
        joined[places] += corpus.behind(separator)[number]
    cut = places[kept.cut(left)[places]]
    for place, text in zip(cut.tolist(), kept.texts(left, cut), strict=True):
        size[place], joined[place] = corpus.count(text), corpus.count(text + (separator or ""))
    return size, joined


def _inexact(packed: PackedRun, begin: Longs, end: Longs) -> Bools:
    """Mark the stretches of the layout in which counts of chunks may not add up."""
    unsure = packed.prepared.unsure(packed.config)[packed.layout.rank, packed.layout.query]
    total = np.concatenate([[0], np.cumsum(unsure)])
    return np.asarray(total[end] > total[np.minimum(begin + 1, end)], dtype=bool)
