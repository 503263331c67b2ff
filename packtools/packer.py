"""Pack one query's chunks: `ContextPacker`, the object face of the shared pipeline."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from packtools import kernels, plan
from packtools.arrays import Longs
from packtools.budget import DEFAULT_COUNTER
from packtools.checks import check_call, check_kept, check_tenants, check_texts
from packtools.config import PackerConfig
from packtools.conflicts import detect_conflicts
from packtools.corpus import Corpus
from packtools.counters import CharCounter, TokenCounter, counter_for, join_slack
from packtools.dedup import similar_pairs
from packtools.errors import PackerError, check_count, fail
from packtools.filling import Filled, One, Trim, fill, settle
from packtools.ledger import KEPT, OVER_BUDGET, REASONS, Ledger, keeper, ledger
from packtools.ordering import ANY_END, document_order, get_ordering
from packtools.schema import Chunk, ConflictAnnotation, Decision, PackedContext, RequestContext, Span
from packtools.selected import Selected, Slices, repeats
from packtools.selecting import check_names, check_queries, scored_pairs, select
from packtools.selection import Weights
from packtools.spans import READING_SEPARATOR, collapsed_slice, pieces
from packtools.text import differences, shingles

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer

__all__ = ["ContextPacker"]

logger = logging.getLogger(__name__)


class ContextPacker:
    """Decide which retrieved chunks go into the prompt, in what order, under what budget.

    The stages, each by its own setting of `PackerConfig`:

    1. Sort by score, highest first; None counts as 0.0; ties keep input order. ``fill="rank"``
       takes the chunks as they come.
    2. Cut chunks over the passage budget: take their best sentences, by `sentence_selection`.
    3. Drop empty chunks, exact duplicates of what is left, then near-duplicates of the sources.
    4. Fill the budget, by `fill`; a chunk too big is skipped and the next one tried, or by
       `overflow` it is cut and is the last.
    5. Order what was kept.
    6. With a separator: count the rendered text and back off while it is over the budget.
    7. Look for conflicts among the texts kept.

    Parameters
    ----------
    config : PackerConfig, default PackerConfig()
    token_counter : TokenCounter, str or None, default None
        An object with `name` and `count(text)`, or a name for `counter_for`; None is cl100k_base.
    weights : Weights or None, default None
        TF-IDF weights for the selections "tfidf" and "mmr"; None fits them on the chunks of each
        pack. `PreparedRun.weights` are those of a whole run.

    Raises
    ------
    PackerError
        If an ordering, a fill, a selection or a splitter is unknown.

    Notes
    -----
    Each pack emits one OpenTelemetry span named "pack". Without an SDK that costs nothing.

    Examples
    --------
    >>> packer = ContextPacker(config=PackerConfig(order="descending"))
    >>> chunks = [Chunk("a", "Steel is an alloy.", 0.9), Chunk("b", "STEEL is an alloy!", 0.8)]
    >>> [str(d) for d in packer.pack_sync(None, chunks, budget=50).decisions]
    ['kept', 'dropped: duplicate of a']
    """

    def __init__(
        self,
        config: PackerConfig | None = None,
        token_counter: TokenCounter | str | None = None,
        *,
        weights: Weights | None = None,
    ) -> None:
        self.config = PackerConfig() if config is None else config
        if not isinstance(self.config, PackerConfig):
            fail(
                PackerError,
                "ContextPacker",
                "config",
                "a PackerConfig",
                config,
                "See PackerConfig.from_dict.",
            )
        self._counter = token_counter
        self.weights = weights
        check_names(self.config)

    @property
    def token_counter(self) -> TokenCounter:
        """The counter in use; built when first needed."""
        self._counter = counter_for(DEFAULT_COUNTER if self._counter is None else self._counter)
        return self._counter

    async def pack(
        self,
        ctx: RequestContext | None,
        chunks: Sequence[Chunk],
        *,
        budget: int | None = None,
        query: str | None = None,
    ) -> PackedContext:
        """Pack in an async caller; the same as `pack_sync`, which waits for nothing."""
        return self.pack_sync(ctx, chunks, budget=budget, query=query)

    def pack_sync(
        self,
        ctx: RequestContext | None,
        chunks: Sequence[Chunk],
        *,
        budget: int | None = None,
        query: str | None = None,
    ) -> PackedContext:
        """Pack the chunks of one query.

        Parameters
        ----------
        ctx : RequestContext or None
            Whose request this is; None for a single tenant.
        chunks : sequence of Chunk
            In any order; sorted by score.
        budget : int or None, default None
            Overrides the budget of the config.
        query : str or None, default None
            What was asked; most sentence selections need it.

        Returns
        -------
        PackedContext

        Raises
        ------
        PackerError
            If the budget is below 1, a chunk belongs to another tenant, or a chunk has neither
            text nor a count.
        """
        config, chunks = self._with_budget(budget), check_call(ctx, chunks, query)
        check_tenants(ctx, chunks)
        check_texts(chunks, config)
        check_queries(config, query is not None)
        with _tracer().start_as_current_span("pack") as span:
            if config.fill != "rank":
                chunks = sorted(chunks, key=_score, reverse=True)
            packed = self._pack(config, chunks, query or "")
            _describe(span, packed, len(chunks))
        return packed

    def _with_budget(self, budget: int | None) -> PackerConfig:
        if budget is None:
            return self.config
        unit = self.config.unit[:-1]
        check_count(PackerError, "pack", "budget", budget, unit)
        return self.config.replace(budget=budget)

    def _pack(self, config: PackerConfig, chunks: list[Chunk], query: str) -> PackedContext:
        counter = CharCounter() if config.unit == "chars" else self.token_counter
        known = None if config.unit == "chars" else [c.token_count for c in chunks]
        source = Corpus([c.text for c in chunks], counter, known)
        corpus = source.collapsed if config.white_space == "collapse" else source
        passage = np.arange(len(chunks), dtype=np.int32).reshape(-1, 1)
        weights = self.weights or Weights(corpus.texts)
        must = _must_keep(chunks, config)
        left = select(
            corpus, passage, config, lambda: scored_pairs(corpus, passage, [query], config, weights, must)
        )
        cells = _cells(chunks, left, config)
        sizes = left.sizes(config.separator)
        survivors = plan.dedup(cells, config)
        way = plan.course(cells, sizes, config)
        filled = _fill(left, survivors, sizes, config, way)
        keep = np.zeros((len(chunks), 1), dtype=bool)
        keep[filled.ranks, 0] = True
        given_up = {(rank, 0): over for rank, over in filled.over.items()}
        trims = {(rank, 0): cut for rank, cut in filled.trims.items()}
        book = ledger(cells, sizes, survivors, keep, config, way, given_up, trims)
        decisions = _decisions(chunks, left, sizes, book, config, filled.trims)
        text, spans = _render(chunks, left, filled, book, config)
        kept = tuple(chunks[r] for r in filled.ranks)
        conflicts: tuple[ConflictAnnotation, ...] = ()
        if config.detect_conflicts:
            parts = zip(kept, spans, strict=True)
            conflicts = _conflicts([replace(c, text=text[s.start : s.end], must_keep=()) for c, s in parts])
        packed = PackedContext(text, kept, spans, decisions, conflicts, filled.used, config, counter.name)
        check_kept(chunks, packed)
        return packed


def _fill(
    left: Selected, survivors: plan.Survivors, sizes: plan.Sizes, config: PackerConfig, way: plan.Course
) -> Filled:
    """Fill the budget; with a separator the rendered text is counted last, whatever the sums say."""
    separator, corpus = config.separator, left.corpus

    def measure(ranks: list[int], cut: dict[int, int]) -> int:
        if separator is None:
            n = {r: corpus.measure(left.text(r, 0)[:n], config.unit) for r, n in cut.items()}
            return sum(n.get(r, int(sizes.size[r, 0])) for r in ranks)
        return corpus.measure(separator.join(left.text(r, 0)[: cut.get(r)] for r in ranks), config.unit)

    def cutter(rank: int, room: int, last: bool) -> Trim:
        return left.trimmed(left.text(rank, 0), room, "" if last else separator or "")

    one = One(sizes, 0, config, way, measure, cutter)
    sure = separator is None or config.unit == "chars" or _adds_up(left, survivors, separator)
    if separator is None or (sure and get_ordering(config.order).ends_with != ANY_END):
        keep, crossing = plan.fit(survivors, sizes, config, [config.limit], way)
        return settle(one, way.filled(keep[:, 0, 0], 0), int(crossing[0, 0]))
    ranks = way.filled(survivors.kept[:, 0], 0)
    return fill(one, ranks, slack=0 if sure else join_slack(corpus.counter))


def _adds_up(left: Selected, survivors: plan.Survivors, separator: str) -> bool:
    """Whether the counts of what may be packed add up across a separator."""
    return not left.corpus.trusted and not (left.unsure(separator) & survivors.kept).any()


def _score(chunk: Chunk) -> float:
    return 0.0 if chunk.score is None else chunk.score


def _cells(chunks: list[Chunk], left: Selected, config: PackerConfig) -> plan.Candidates:
    """Build the dedup arrays of one query: shape (n_chunks, 1)."""
    n = len(chunks)
    texts = [c.text for c in chunks]
    there = np.ones((n, 1), dtype=bool)
    with_text = np.array([bool(t.strip()) for t in left.corpus.texts], dtype=bool).reshape(n, 1)
    empty = ~with_text & np.array([c.content_ref is None for c in chunks], dtype=bool).reshape(n, 1)
    plain = guarded = np.full((n, 1), -1, dtype=np.int32)
    must = np.array([bool(c.must_keep) for c in chunks], dtype=bool)
    if config.deduplicates:
        plain, guarded = repeats(left, with_text & ~left.nothing, config.same_text)
        plain[must], guarded[must] = -1, -1
    near = NO_PAIRS
    if config.jaccard_threshold is not None:
        pairs = similar_pairs(shingles(texts), config.jaccard_threshold)
        pairs = pairs.take(~must[pairs.second])
        marks = {
            int(i): differences(texts[i])
            for i in kernels.distinct(np.concatenate([pairs.first, pairs.second]))
        }
        differs = [marks[int(a)] != marks[int(b)] for a, b in zip(pairs.first, pairs.second, strict=True)]
        near = kernels.NearPairs.build(
            np.zeros(len(differs)), pairs.first, pairs.second, pairs.jaccard, differs
        )
    score = np.array([_score(c) for c in chunks], dtype=np.float64).reshape(n, 1)

    def document() -> Longs:
        return document_order([c.id for c in chunks]).reshape(n, 1)

    first = must.reshape(n, 1) if must.any() else None
    return plan.Candidates(there, empty, left.nothing, plain, guarded, near, score, document, first)


def _must_keep(chunks: list[Chunk], config: PackerConfig) -> dict[int, Slices]:
    """Give the slices that must be kept, of the text as it is packed."""
    given = {i: list(c.must_keep) for i, c in enumerate(chunks) if c.must_keep}
    if config.white_space == "keep":
        return given
    return {i: [collapsed_slice(chunks[i].text, a, b) for a, b in slices] for i, slices in given.items()}


NO_PAIRS = kernels.NearPairs.build([], [], [], [], [])


def _decisions(
    chunks: list[Chunk], left: Selected, sizes: plan.Sizes, book: Ledger, config: PackerConfig,
    trims: dict[int, Trim],
) -> tuple[Decision, ...]:  # fmt: skip
    out = []
    whole = left.corpus.size(config.unit)
    for rank, chunk in enumerate(chunks):
        code = int(book.reason[rank, 0])
        of = int(book.of[rank, 0])
        is_cut = left.slot[rank, 0] >= 0
        if rank in trims:
            is_cut = trims[rank][0] < int(left.corpus.n_chars[rank])
        out.append(
            Decision(
                chunk.id,
                rank + 1,
                chunk.score,
                trims[rank][1] if rank in trims else int(sizes.size[rank, 0]),
                code == KEPT,
                REASONS[code],
                chunks[of].id if of >= 0 else None,
                float(book.similarity[rank, 0]) if of >= 0 else None,
                int(book.over_by[rank, 0]) if code == OVER_BUDGET else None,
                config.unit,
                int(whole[rank]) if is_cut else None,
            )
        )
    return tuple(out)


def _render(
    chunks: list[Chunk], left: Selected, filled: Filled, book: Ledger, config: PackerConfig
) -> tuple[str, tuple[Span, ...]]:
    separator = READING_SEPARATOR if config.separator is None else config.separator
    repeated: dict[int, list[str]] = {}
    for rank, chunk in enumerate(chunks):
        first = keeper(book, rank, 0)
        if first != rank:
            repeated.setdefault(first, []).append(chunk.id)
    spans, parts = [], []
    at = 0
    for rank in filled.ranks:
        chunk = chunks[rank]
        slices = left.slices(rank, 0, filled.trims[rank][0] if rank in filled.trims else None)
        length = sum(b - a for a, b in slices)
        exact = pieces(chunk.text, slices, at, collapsed=config.white_space == "collapse")
        begin, end = (exact[0].source_start, exact[-1].source_end) if exact else (0, 0)
        also = tuple(repeated.get(rank, ()))
        cut = length < int(left.corpus.n_chars[rank])
        n = left.n_sentences(rank, 0) if config.sentence_selection is not None else None
        spans.append(Span(chunk.id, rank + 1, at, at + length, begin, end, also, exact, cut, n))
        text = left.corpus.texts[rank]
        parts.append("".join(text[a:b] for a, b in slices))
        at += length + len(separator)
    return separator.join(parts), tuple(spans)


def _conflicts(kept: list[Chunk]) -> tuple[ConflictAnnotation, ...]:
    """Conflicts are advice: a detector that fails is logged, never a failed pack."""
    try:
        return tuple(detect_conflicts(kept))
    except Exception:
        logger.exception("packer.conflicts_failed")
        return ()


def _tracer() -> Tracer:
    from opentelemetry import trace

    return trace.get_tracer("packtools")


def _describe(span: OtelSpan, packed: PackedContext, n_in: int) -> None:
    """Put the figures of a pack on its span."""
    if not span.is_recording():
        return
    reasons = [d.reason for d in packed.decisions if d.reason is not None]
    values = {
        "packtools.chunks_in": n_in,
        "packtools.chunks_out": len(packed.chunks),
        f"packtools.{packed.config.unit}_used": packed.n_used,
        f"packtools.{packed.config.unit}_budget": packed.config.budget,
        "packtools.conflicts": len(packed.conflicts),
        "packtools.order": packed.config.order,
        "packtools.tokenizer": packed.counter,
        **{f"packtools.dropped.{name}": reasons.count(name) for name in REASONS if name},
    }
    span.set_attributes({name: value for name, value in values.items() if value is not None})
