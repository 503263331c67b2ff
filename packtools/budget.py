"""What a chunk costs, and the budget fit as a primitive on chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from packtools import kernels
from packtools.counters import TokenCounter, counter_for
from packtools.errors import PackerError, check_count, unknown
from packtools.schema import Chunk

__all__ = ["FILLS", "fit_to_budget"]

DEFAULT_COUNTER = "cl100k_base"

Fill = Callable[[npt.NDArray[np.float64], npt.NDArray[Any]], npt.NDArray[np.float64]]


def _shorter_first(score: npt.NDArray[np.float64], size: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return -size.astype(np.float64)


def _value_per_token(score: npt.NDArray[np.float64], size: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    floor = np.minimum(np.nanmin(score, axis=0, initial=0.0), 0.0)
    return np.asarray((score - floor) / np.maximum(size, 1))


FILLS: dict[str, Fill | None] = {
    "score": None,
    "rank": None,
    "shorter_first": _shorter_first,
    "value_per_token": _value_per_token,
}
"""Who gets the budget first: ``function(score, size)``, both of shape (ranks, queries), gives a
preference, larger first; ties keep rank order. None keeps rank order: "score" sorts the chunks of a
pack by score, "rank" takes them as they come. "value_per_token" is score / size, scores raised so
that none of a query is negative."""


def get_fill(name: str) -> Fill | None:
    """Give the fill of that name, or one error that lists them all."""
    if name not in FILLS:
        unknown(PackerError, "PackerConfig", "fill", name, FILLS)
    return FILLS[name]


def chunk_size(chunk: Chunk, counter: TokenCounter) -> int:
    """Give the tokens of a chunk: its cached count if it has one, else the count of its text."""
    if chunk.token_count is not None:
        return chunk.token_count
    if not chunk.text and chunk.content_ref is not None:
        raise PackerError(
            f"pack: chunk {chunk.id!r} has only content_ref {chunk.content_ref!r} and no token_count. "
            "Give token_count, or resolve the text first."
        )
    return counter.count(chunk.text)


def fit_to_budget(
    chunks: Sequence[Chunk], budget: int, token_counter: TokenCounter | str | None = None
) -> list[Chunk]:
    """Take chunks, best first, while they fit; skip one that is too big and try the next.

    1. A chunk that exactly fills what is left fits; a chunk of 0 tokens always fits.
    2. Sizes are cached counts where a chunk has one, else counts of its text. Separators are not
       charged: see ``PackerConfig(separator=)`` for a fit on the rendered text.

    Parameters
    ----------
    chunks : sequence of Chunk
        Best first.
    budget : int
        Tokens; at least 1.
    token_counter : TokenCounter, str or None, default None
        None is cl100k_base; it is loaded only if a chunk must be counted.

    Returns
    -------
    list of Chunk

    Raises
    ------
    PackerError
        If `budget` is below 1, or a chunk has neither text nor a count.

    Notes
    -----
    Greedy, not optimal: sizes 6, 5, 5 under 10 give the 6.

    Examples
    --------
    >>> a, b = Chunk("a", token_count=50), Chunk("b", token_count=20)
    >>> [c.id for c in fit_to_budget([a, b], 30)]
    ['b']
    """
    budget = check_count(PackerError, "fit_to_budget", "budget", budget, "token")
    counter = token_counter
    if counter is None and any(c.token_count is None for c in chunks):
        counter = DEFAULT_COUNTER
    counting = counter_for("chars" if counter is None else counter)
    sizes = [chunk_size(c, counting) for c in chunks]
    size = np.array(sizes, dtype=np.int64).reshape(len(chunks), 1)
    limit = min(budget, kernels.no_budget(size.dtype) - 1)
    keep, _ = kernels.greedy_fit(size, size, np.ones_like(size, dtype=bool), [limit], "new")
    return [chunk for chunk, stays in zip(chunks, keep[:, 0, 0], strict=True) if stays]
