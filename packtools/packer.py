"""Pack one query's chunks: `ContextPacker`, the object face of the shared pipeline."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from packtools import kernels, plan
from packtools.budget import DEFAULT_COUNTER, chunk_size, get_fill
from packtools.conflicts import detect_conflicts
from packtools.counters import CharCounter, TokenCounter, adds_up, counter_for, join_slack, separator_cost
from packtools.dedup import exact_groups, similar_pairs
from packtools.errors import PackerError, check_count
from packtools.ordering import ANY_END, document_order, get_ordering
from packtools.schema import (
    Chunk,
    ConflictAnnotation,
    Decision,
    PackedContext,
    PackerConfig,
    RequestContext,
    Span,
)
from packtools.text import differences, shingles, text_key

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer

__all__ = ["ContextPacker"]

logger = logging.getLogger(__name__)
READING_SEPARATOR = "\n\n"
"""Joins `PackedContext.text` for reading when the config has no separator."""


class ContextPacker:
    """Decide which retrieved chunks go into the prompt, in what order, under what budget.

    The stages, each by its own setting of `PackerConfig`:

    1. Sort by score, highest first; None counts as 0.0; ties keep input order. ``fill="rank"``
       takes the chunks as they come.
    2. Drop empty chunks, exact duplicates, then near-duplicates.
    3. Fill the budget, by `fill`; a chunk too big is skipped and the next one tried.
    4. Order what was kept.
    5. With a separator: count the rendered text and back off while it is over the budget.
    6. Look for conflicts among the chunks kept.

    Parameters
    ----------
    config : PackerConfig, default PackerConfig()
    token_counter : TokenCounter, str or None, default None
        An object with `name` and `count(text)`, or a name for `counter_for`; None is cl100k_base.

    Raises
    ------
    PackerError
        If the ordering is unknown.

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
        self, config: PackerConfig | None = None, token_counter: TokenCounter | str | None = None
    ) -> None:
        self.config = PackerConfig() if config is None else config
        self._counter = token_counter
        get_ordering(self.config.order)
        get_fill(self.config.fill)

    @property
    def token_counter(self) -> TokenCounter:
        """The counter in use; built when first needed."""
        self._counter = counter_for(DEFAULT_COUNTER if self._counter is None else self._counter)
        return self._counter

    async def pack(
        self, ctx: RequestContext | None, chunks: Sequence[Chunk], *, budget: int | None = None
    ) -> PackedContext:
        """Pack in an async caller; the same as `pack_sync`, which waits for nothing."""
        return self.pack_sync(ctx, chunks, budget=budget)

    def pack_sync(
        self, ctx: RequestContext | None, chunks: Sequence[Chunk], *, budget: int | None = None
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

        Returns
        -------
        PackedContext

        Raises
        ------
        PackerError
            If the budget is below 1, a chunk belongs to another tenant, or a chunk has neither
            text nor a count.
        """
        config, chunks = self._with_budget(budget), list(chunks)
        _check_tenants(ctx, chunks)
        if config.separator is not None:
            _check_texts(chunks)
        with _tracer().start_as_current_span("pack") as span:
            if config.fill != "rank":
                chunks = sorted(chunks, key=_score, reverse=True)
            packed = self._pack(config, chunks)
            _describe(span, packed, len(chunks))
        return packed

    def _with_budget(self, budget: int | None) -> PackerConfig:
        if budget is None:
            return self.config
        unit = self.config.unit[:-1]
        check_count(PackerError, "pack", "budget", budget, unit)
        return self.config.replace(budget=budget)

    def _pack(self, config: PackerConfig, chunks: list[Chunk]) -> PackedContext:
        counter = CharCounter() if config.unit == "chars" else self.token_counter
        cells = _cells(chunks, config)
        sizes = _sizes(chunks, counter, config)
        left = plan.dedup(cells, config)
        way = plan.course(cells, sizes, config)
        filled = _fill(chunks, counter, left, sizes, config, way)
        keep = np.zeros((len(chunks), 1), dtype=bool)
        keep[filled.ranks, 0] = True
        given_up = {(rank, 0): over for rank, over in filled.over.items()}
        book = plan.ledger(cells, sizes, left, keep, config, way, given_up)
        decisions = _decisions(chunks, sizes, book, config)
        text, spans = _render(chunks, filled.ranks, book, config)
        conflicts = _conflicts([chunks[r] for r in filled.ranks]) if config.detect_conflicts else ()
        return PackedContext(
            text,
            tuple(chunks[r] for r in filled.ranks),
            spans,
            decisions,
            conflicts,
            filled.used,
            config,
            counter.name,
        )


def _fill(
    chunks: list[Chunk], counter: TokenCounter, left: plan.Survivors, sizes: plan.Sizes,
    config: PackerConfig, way: plan.Course,
) -> plan.Filled:  # fmt: skip
    """Fill the budget; with a separator the rendered text is counted last, whatever the sums say."""
    separator = config.separator
    if separator is None:
        keep, used = plan.fit(left, sizes, config, [config.limit], way)
        kept = way.filled(keep[:, 0, 0], 0)
        return plan.settle(kept, 0, config, way, None, lambda _: int(used[0, 0]))

    def measure(ranks: list[int]) -> int:
        return counter.count(separator.join(chunks[r].text for r in ranks))

    sure = adds_up(counter, separator, [c.text for c in chunks])
    sure = sure and (config.unit == "chars" or all(c.token_count is None for c in chunks))
    if sure and get_ordering(config.order).ends_with != ANY_END:
        keep, _ = plan.fit(left, sizes, config, [config.limit], way)
        return plan.settle(way.filled(keep[:, 0, 0], 0), 0, config, way, config.limit, measure)
    return plan.fill(
        way.filled(left.kept[:, 0], 0),
        sizes,
        0,
        config,
        way,
        measure,
        slack=0 if sure else join_slack(counter),
    )


def _score(chunk: Chunk) -> float:
    return 0.0 if chunk.score is None else chunk.score


def _check_tenants(ctx: RequestContext | None, chunks: Sequence[Chunk]) -> None:
    named = {c.tenant_id: c.id for c in reversed(chunks) if c.tenant_id is not None}
    if ctx is not None:
        for tenant, docid in named.items():
            if tenant != ctx.tenant_id:
                raise PackerError(
                    f"pack: every chunk must belong to tenant {ctx.tenant_id!r}; chunk {docid!r} belongs "
                    f"to {tenant!r}. Filter the chunks by tenant before packing."
                )
    elif len(named) > 1:
        listed = ", ".join(map(repr, sorted(named)))
        raise PackerError(
            f"pack: chunks of several tenants ({listed}) came without a request context. "
            "Pass RequestContext(tenant_id=…) and only that tenant's chunks."
        )


def _check_texts(chunks: Sequence[Chunk]) -> None:
    for chunk in chunks:
        if not chunk.text and chunk.content_ref is not None:
            raise PackerError(
                f"pack: chunk {chunk.id!r} has only content_ref {chunk.content_ref!r}, but a separator "
                "is set, so its text must be rendered. Resolve the text, or use separator=None."
            )


def _cells(chunks: list[Chunk], config: PackerConfig) -> plan.Candidates:
    """Build the dedup arrays of one query: shape (n_chunks, 1)."""
    n = len(chunks)
    texts = [c.text for c in chunks]
    there = np.ones((n, 1), dtype=bool)
    empty = np.array([not c.text.strip() and c.content_ref is None for c in chunks], dtype=bool).reshape(n, 1)
    with_text = np.array([bool(t.strip()) for t in texts], dtype=bool).reshape(n, 1)
    plain = guarded = np.full((n, 1), -1, dtype=np.int32)
    if config.deduplicates:
        by_text, by_both = exact_groups(texts, [text_key(t) for t in texts])
        plain = kernels.keep_first(by_text.reshape(n, 1), with_text)
        guarded = kernels.keep_first(by_both.reshape(n, 1), with_text)
    near = NO_PAIRS
    if config.jaccard_threshold is not None:
        pairs = similar_pairs(shingles(texts), config.jaccard_threshold)
        marks = {
            int(i): differences(texts[i])
            for i in kernels.distinct(np.concatenate([pairs.first, pairs.second]))
        }
        differs = [marks[int(a)] != marks[int(b)] for a, b in zip(pairs.first, pairs.second, strict=True)]
        near = kernels.NearPairs.build(
            np.zeros(len(differs)), pairs.first, pairs.second, pairs.jaccard, differs
        )
    score = np.array([_score(c) for c in chunks], dtype=np.float64).reshape(n, 1)

    def document() -> kernels.Longs:
        return document_order([c.id for c in chunks]).reshape(n, 1)

    return plan.Candidates(there, empty, plain, guarded, near, score, document)


NO_PAIRS = kernels.NearPairs.build([], [], [], [], [])


def _sizes(chunks: list[Chunk], counter: TokenCounter, config: PackerConfig) -> plan.Sizes:
    def column(values: list[int]) -> kernels.Ints:
        return np.array(values, dtype=np.int64).reshape(len(chunks), 1)

    if config.unit == "chars":
        alone = [len(c.text) for c in chunks]
    else:
        alone = [chunk_size(c, counter) for c in chunks]
    size = column(alone)
    if config.separator is None:
        return plan.Sizes(size, size)
    gap = counter.count(config.separator)
    joined = [
        n + (gap if c.token_count is not None else separator_cost(counter, c.text, config.separator, n))
        for c, n in zip(chunks, alone, strict=True)
    ]
    return plan.Sizes(size, column(joined))


def _decisions(
    chunks: list[Chunk], sizes: plan.Sizes, book: plan.Ledger, config: PackerConfig
) -> tuple[Decision, ...]:
    out = []
    for rank, chunk in enumerate(chunks):
        code = int(book.reason[rank, 0])
        of = int(book.of[rank, 0])
        out.append(
            Decision(
                chunk.id,
                rank + 1,
                chunk.score,
                int(sizes.size[rank, 0]),
                code == plan.KEPT,
                plan.REASONS[code],
                chunks[of].id if of >= 0 else None,
                float(book.similarity[rank, 0]) if of >= 0 else None,
                int(book.over_by[rank, 0]) if code == plan.OVER_BUDGET else None,
                config.unit,
            )
        )
    return tuple(out)


def _render(
    chunks: list[Chunk], ranks: list[int], book: plan.Ledger, config: PackerConfig
) -> tuple[str, tuple[Span, ...]]:
    separator = READING_SEPARATOR if config.separator is None else config.separator
    repeats: dict[int, list[str]] = {}
    for rank, chunk in enumerate(chunks):
        keeper = plan.keeper(book, rank, 0)
        if keeper != rank:
            repeats.setdefault(keeper, []).append(chunk.id)
    spans = []
    at = 0
    for rank in ranks:
        chunk = chunks[rank]
        also = tuple(repeats.get(rank, ()))
        spans.append(Span(chunk.id, rank + 1, at, at + len(chunk.text), 0, len(chunk.text), also))
        at += len(chunk.text) + len(separator)
    return separator.join(chunks[r].text for r in ranks), tuple(spans)


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
        **{f"packtools.dropped.{name}": reasons.count(name) for name in plan.REASONS if name},
    }
    span.set_attributes({name: value for name, value in values.items() if value is not None})
