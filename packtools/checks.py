"""What the chunks of one pack must fulfil, before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from packtools.config import PackerConfig
from packtools.errors import PackerError, fail, shown
from packtools.schema import Chunk, PackedContext, RequestContext

__all__ = ["check_call", "check_kept", "check_tenants", "check_texts"]


def check_call(ctx: object, chunks: Iterable[Chunk], query: object) -> list[Chunk]:
    """Refuse what is no call of `pack`; give the chunks as a list."""
    if ctx is not None and not isinstance(ctx, RequestContext):
        fail(PackerError, "pack", "ctx", "a RequestContext or None", ctx)
    if query is not None and not isinstance(query, str):
        fail(PackerError, "pack", "query", "a string or None", query)
    if isinstance(chunks, str | Mapping) or not isinstance(chunks, Iterable):
        fail(PackerError, "pack", "chunks", "a list of Chunk", chunks)
    given = list(chunks)
    for chunk in given:
        if not isinstance(chunk, Chunk):
            fail(PackerError, "pack", "chunks", "a list of Chunk", chunk, "Write Chunk(id, text, score).")
    return given


def check_tenants(ctx: RequestContext | None, chunks: Sequence[Chunk]) -> None:
    named = {c.tenant_id: c.id for c in reversed(chunks) if c.tenant_id is not None}
    if ctx is not None:
        for tenant, docid in named.items():
            if tenant != ctx.tenant_id:
                raise PackerError(
                    f"pack: every chunk must belong to tenant {ctx.tenant_id!r}; chunk {docid!r} belongs "
                    f"to {tenant!r}. Filter the chunks by tenant before packing."
                )
    elif len(named) > 1:
        listed = ", ".join(sorted(map(repr, named)))
        raise PackerError(
            f"pack: chunks of several tenants ({listed}) came without a request context. "
            "Pass RequestContext(tenant_id=…) and only that tenant's chunks."
        )


def check_texts(chunks: Sequence[Chunk], config: PackerConfig) -> None:
    """Refuse chunks whose text is elsewhere, where it is needed."""
    why = ""
    if config.cuts:
        why = "chunks may be cut, so its text is needed. Resolve the text, or let nothing be cut."
    if config.separator is not None:
        why = "a separator is set, so its text must be rendered. Resolve the text, or use separator=None."
    for chunk in chunks:
        if chunk.text or chunk.content_ref is None:
            continue
        has = f"pack: chunk {chunk.id!r} has only content_ref {chunk.content_ref!r}"
        if why:
            raise PackerError(f"{has}, but {why}")
        if config.unit == "tokens" and chunk.token_count is None:
            raise PackerError(f"{has} and no token_count. Give token_count, or resolve the text first.")


def check_kept(chunks: Sequence[Chunk], packed: PackedContext) -> None:
    """Refuse a pack that does not hold every `must_keep` slice verbatim."""
    places = {span.rank: span for span in packed.spans}
    for rank, chunk in enumerate(chunks, 1):
        for a, b in chunk.must_keep:
            pieces = places[rank].pieces if rank in places else ()
            if not any(p.source_start <= a and b <= p.source_end for p in pieces):
                config = packed.config
                limits = {"budget": config.budget, "passage_budget": config.passage_budget}
                told = [f"{k} {v:,} {config.unit}" for k, v in limits.items() if v is not None]
                told += ["white_space 'collapse'"] if config.white_space == "collapse" else []
                raise PackerError(
                    f"pack: chunk {chunk.id!r} must keep {shown(chunk.text[a:b])}, which is not packed "
                    f"verbatim under {', '.join(told) or 'these settings'}; the chunk was "
                    f"{packed.decisions[rank - 1]}. Raise the budgets, or keep less."
                )
