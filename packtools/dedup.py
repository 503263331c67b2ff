"""Which texts repeat others: exact keys, near-duplicate pairs, and the two primitives on chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from packtools import kernels
from packtools.arrays import Bools, Longs
from packtools.errors import PackerError, check_share
from packtools.schema import Chunk
from packtools.text import Shingles, differences, normalise, shingles

__all__ = ["hash_dedup", "jaccard", "jaccard_dedup"]

LIGHT = 64
"""A shingle in more texts than this is looked at within queries, not across the collection."""
STEP = 2_000_000
"""How many pairs or postings are held at a time."""


def hash_dedup(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Drop chunks whose normalised text equals that of an earlier one.

    1. Text is normalised: NFC, lower case, punctuation deleted, white space collapsed.
    2. Of equal normal forms the first stays. Chunks without any text take no part if they carry a
       `content_ref`.

    This is the published rule; `ContextPacker` also protects chunks that differ in a number.

    Parameters
    ----------
    chunks : sequence of Chunk
        Best first.

    Returns
    -------
    list of Chunk

    Examples
    --------
    >>> [c.id for c in hash_dedup([Chunk("a", "Alpha, beta!"), Chunk("b", "alpha  beta")])]
    ['a']
    """
    seen: set[str] = set()
    kept = []
    for chunk in chunks:
        normal = normalise(chunk.text)
        if _no_content(chunk) or normal not in seen:
            kept.append(chunk)
        if not _no_content(chunk):
            seen.add(normal)
    return kept


def jaccard_dedup(chunks: Sequence[Chunk], threshold: float) -> list[Chunk]:
    """Drop chunks that share most of their shingles with a better chunk that stays.

    1. Shingles are runs of 5 words of the normal form (3 characters in scripts without spaces); a
       shorter text is one shingle.
    2. Best first, a chunk is dropped when its Jaccard with a kept chunk is at or above the
       threshold. Dropped chunks are not compared with.
    3. A text without shingles is never a near-duplicate.

    This is the published rule; `ContextPacker` also protects chunks that differ in a number.

    Parameters
    ----------
    chunks : sequence of Chunk
        Best first.
    threshold : float
        Above 0, at most 1; at or above counts.

    Returns
    -------
    list of Chunk

    Raises
    ------
    PackerError
        If `threshold` breaks its rule.

    References
    ----------
    Broder (1997), On the resemblance and containment of documents, sec. 2.

    Examples
    --------
    >>> a, b = Chunk("a", "one two three four five six"), Chunk("b", "one two three four five")
    >>> [c.id for c in jaccard_dedup([a, b], 0.5)], [c.id for c in jaccard_dedup([a, b], 0.51)]
    (['a'], ['a', 'b'])
    """
    threshold = check_share(PackerError, "jaccard_dedup", "threshold", threshold)
    pairs = similar_pairs(shingles([c.text for c in chunks]), threshold)
    near = kernels.NearPairs.build(
        np.zeros(len(pairs.first)), pairs.first, pairs.second, pairs.jaccard, np.zeros(len(pairs.first))
    )
    kept, _ = kernels.drop_near(np.ones((len(chunks), 1), dtype=bool), near, protect=False)
    return [chunk for chunk, stays in zip(chunks, kept[:, 0], strict=True) if stays]


def jaccard(text_a: str, text_b: str) -> float:
    """Give the Jaccard similarity of two texts' shingles; 0.0 if either has none.

    Examples
    --------
    >>> jaccard("One, two three four five SIX!", "one two three four five six")
    1.0
    """
    found = similar_pairs(shingles([text_a, text_b]), 1e-9)
    return float(found.jaccard[0]) if len(found.jaccard) else 0.0


def _no_content(chunk: Chunk) -> bool:
    return not chunk.text and chunk.content_ref is not None


def exact_groups(texts: Sequence[str], keys: Sequence[bytes]) -> tuple[Longs, Longs]:
    """Number texts by equality: by the normal form, and by that and `differences` together.

    Parameters
    ----------
    texts : sequence of str
    keys : sequence of bytes
        The `text_key` of each.

    Returns
    -------
    plain, guarded : ndarray of int64, shape (n_texts,)
        Equal numbers are exact duplicates, without and with `protect_differences`.
    """
    number: dict[object, int] = {}
    plain = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
    guarded = plain.copy()
    spellings: dict[int, set[str]] = {}
    for group, text in zip(plain.tolist(), texts, strict=True):
        spellings.setdefault(group, set()).add(text)
    told_apart: dict[object, int] = {}
    for i in [i for i, group in enumerate(plain.tolist()) if len(spellings[group]) > 1]:
        key = (int(plain[i]), differences(texts[i]))
        fresh = len(number) + len(told_apart)
        guarded[i] = told_apart.setdefault(key, fresh)
    return plain, guarded


# --- near-duplicate pairs -----------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """Hold pairs of texts ``first < second`` and their Jaccard."""

    first: Longs
    second: Longs
    jaccard: npt.NDArray[np.float64]

    def take(self, chosen: Bools) -> Pairs:
        """Give some of the pairs."""
        return Pairs(self.first[chosen], self.second[chosen], self.jaccard[chosen])


def similar_pairs(found: Shingles, floor: float, together: tuple[Longs, Longs] | None = None) -> Pairs:
    """Find every pair of texts whose Jaccard is at or above `floor`, exactly.

    1. Prefix filter: two sets with Jaccard >= t share one of the rarest
       ``n - ceil(t n) + 1`` members of each, so only those are posted.
    2. Postings of a shingle give candidate pairs. A shingle in more than `LIGHT` texts gives only
       pairs that are retrieved together.
    3. Each candidate's intersection is counted on the full sets.

    Parameters
    ----------
    found : Shingles
    floor : float
    together : (query, text) ndarrays of int64 or None
        Which texts are retrieved for which query; None means all for one. Pairs that no query has
        together may be left out.

    Returns
    -------
    Pairs
        Sorted by first, then second.

    References
    ----------
    Bayardo, Ma, Srikant (2007), Scaling up all pairs similarity search, sec. 3 (prefix filter).
    """
    n_texts = len(found.size)
    posted, owner = _postings(found, floor)
    members = np.bincount(posted, minlength=1)[posted] if len(posted) else posted
    light = members <= LIGHT
    keys = [_pairs_in_groups(posted[light], owner[light], n_texts)]
    if not light.all():
        keys += _pairs_within_queries(posted[~light], owner[~light], n_texts, together)
    candidates = kernels.distinct(np.concatenate(keys))
    first, second = np.divmod(candidates, max(n_texts, 1))
    return _verified(found, first, second, floor)


def _postings(found: Shingles, floor: float) -> tuple[Longs, Longs]:
    """Post the rarest shingles of each text, sorted by shingle; singletons make no pair."""
    size = found.size
    prefix = size - np.ceil(floor * size - 1e-9).astype(np.int64) + 1
    posted = found.n_occurs[found.ids] > 1
    owner = np.repeat(np.arange(len(size), dtype=np.int32), size)[posted]
    place = np.flatnonzero(posted) - found.start[owner]
    first = place < prefix[owner]
    ids, owner = found.ids[posted][first], owner[first]
    order = np.argsort(ids, kind="stable")
    return ids[order].astype(np.int64), owner[order].astype(np.int64)


def _pairs_in_groups(group: Longs, member: Longs, base: int) -> Longs:
    """Pair all members of each run of equal `group` values; give distinct ``a * base + b``."""
    keys: list[Longs] = [np.zeros(0, np.int64)]
    held = 0
    alive = np.arange(len(group))
    step = 1
    while len(alive):
        alive = alive[alive + step < len(group)]
        alive = alive[group[alive] == group[alive + step]]
        a, b = member[alive], member[alive + step]
        keys.append(np.minimum(a, b) * base + np.maximum(a, b))
        held += len(alive)
        if held > STEP:
            keys, held = [kernels.distinct(np.concatenate(keys))], 0
        step += 1
    found: Longs = kernels.distinct(np.concatenate(keys))
    unlike: Longs = found[found // max(base, 1) != found % max(base, 1)]
    return unlike


def _pairs_within_queries(
    posted: Longs, owner: Longs, n_texts: int, together: tuple[Longs, Longs] | None
) -> list[Longs]:
    """Pair texts that share a frequent shingle and are retrieved for one query."""
    if together is None:
        together = (np.zeros(n_texts, np.int64), np.arange(n_texts))
    query, text = together
    order = np.argsort(text, kind="stable")
    query_of = query[order]
    start = np.searchsorted(text[order], np.arange(n_texts + 1))
    occurs = np.diff(start)
    n_queries = int(query.max(initial=0)) + 1
    total = np.cumsum(occurs[owner])
    keys = []
    edges = np.r_[np.flatnonzero(np.r_[True, posted[1:] != posted[:-1]]), len(posted)]
    begin = 0
    while begin < len(edges) - 1:  # as many whole shingles as fit in one step
        done = total[edges[begin] - 1] if edges[begin] else 0
        end = max(int(np.searchsorted(total[edges[1:] - 1], done + STEP, "right")), begin + 1)
        part = slice(edges[begin], edges[end])
        times = occurs[owner[part]]
        who = np.repeat(owner[part], times)
        within = np.arange(len(who)) - np.repeat(np.cumsum(times) - times, times)
        group = np.repeat(posted[part], times) * n_queries + query_of[start[who] + within]
        by_group = np.argsort(group, kind="stable")
        keys.append(_pairs_in_groups(group[by_group], who[by_group], n_texts))
        begin = end
    return keys


def _verified(found: Shingles, first: Longs, second: Longs, floor: float) -> Pairs:
    """Count the intersections of candidate pairs and keep those at or above `floor`."""
    size = found.size
    small = np.where(size[first] <= size[second], first, second)
    large = first + second - small
    may = size[small] >= math.floor(1e9 * floor) / 1e9 * size[large] - 1e-6
    first, second, small, large = first[may], second[may], small[may], large[may]
    n_ids = max(len(found.n_occurs), 1)
    every = np.repeat(np.arange(len(size)), size) * n_ids + found.ids
    shared = np.zeros(len(small), dtype=np.int64)
    ends = np.cumsum(size[small])
    begin = 0
    while begin < len(small):
        done = ends[begin] - size[small[begin]]
        end = max(int(np.searchsorted(ends, done + STEP, "right")), begin + 1)
        part = slice(begin, end)
        times = size[small[part]]
        pair = np.repeat(np.arange(len(times)), times)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(times) - times, times)
        wanted = large[part][pair] * n_ids + found.ids[found.start[small[part]][pair] + within]
        at = np.searchsorted(every, wanted)
        hit = every[np.minimum(at, len(every) - 1)] == wanted
        shared[part] = np.bincount(pair[hit], minlength=len(times))
        begin = end
    jaccard_of = shared / np.maximum(size[first] + size[second] - shared, 1)
    good = jaccard_of >= floor
    return Pairs(first[good], second[good], jaccard_of[good])


def retrieved_together(
    rank: Longs,
    query: Longs,
    passage: Longs,
    n: int,
    pairs: Pairs,
    unlike: Bools,
) -> kernels.NearPairs:
    """Find the queries in which both passages of a pair stand, and their ranks."""
    order = np.lexsort((query, passage))
    query_of, rank_of = query[order], rank[order]
    start = np.searchsorted(passage[order], np.arange(n + 1))
    times = np.diff(start)
    rare = (
        np.where(times[pairs.first] <= times[pairs.second], pairs.first, pairs.second) if n else pairs.first
    )
    other = pairs.first + pairs.second - rare
    pair = np.repeat(np.arange(len(rare)), times[rare]) if n else rare
    within = (
        np.arange(len(pair)) - np.repeat(np.cumsum(times[rare]) - times[rare], times[rare]) if n else rare
    )
    cell = start[rare[pair]] + within if n else rare
    n_queries = int(query.max(initial=0)) + 1
    every = passage[order] * n_queries + query_of
    wanted = other[pair] * n_queries + query_of[cell] if n else rare
    at = np.minimum(np.searchsorted(every, wanted), max(len(every) - 1, 0))
    hit = every[at] == wanted if len(every) else np.zeros(0, bool)
    pair, cell, at = pair[hit], cell[hit], at[hit]
    return kernels.NearPairs.build(
        query_of[cell], rank_of[cell], rank_of[at], pairs.jaccard[pair], unlike[pair]
    )
