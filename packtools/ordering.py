"""Where kept chunks stand in the prompt: the orderings, and the table that names them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from packtools.errors import PackerError, fail, unknown

__all__ = [
    "ORDERINGS",
    "Ordering",
    "ascending_order",
    "descending_order",
    "lost_in_middle_order",
    "register_ordering",
]

T = TypeVar("T")
_DIGITS = re.compile("([0-9]+)")
ANY_END = "any"
_LAST: dict[str, Callable[[int], int]] = {
    "new": lambda n: n - 1,
    "first": lambda n: 0,
    "second": lambda n: min(n - 1, 1),
}
TRIED = 200


def lost_in_middle_order(items: Sequence[T]) -> list[T]:
    """Put the best items at both ends and the weakest in the middle.

    Readers use the start and the end of a long context best. Items 1, 3, 5, … come first, then
    the even ones backwards, so that rank 1 is first whatever the count.

    Parameters
    ----------
    items : sequence
        Best first.

    Returns
    -------
    list

    References
    ----------
    Liu et al. (2024), Lost in the Middle: How Language Models Use Long Contexts, TACL 12, sec. 2.

    Examples
    --------
    >>> lost_in_middle_order([1, 2, 3, 4, 5])
    [1, 3, 5, 4, 2]
    """
    return [*items[::2], *items[1::2][::-1]]


def descending_order(items: Sequence[T]) -> list[T]:
    """Keep the best item first.

    Examples
    --------
    >>> descending_order([1, 2, 3])
    [1, 2, 3]
    """
    return list(items)


def ascending_order(items: Sequence[T]) -> list[T]:
    """Put the best item last, next to the question: the exact reverse of `descending_order`.

    Examples
    --------
    >>> ascending_order([1, 2, 3])
    [3, 2, 1]
    """
    return list(items)[::-1]


@dataclass(frozen=True)
class Ordering:
    """Hold one ordering: its function and which kept chunk ends the prompt.

    Parameters
    ----------
    function : callable
        Takes a sequence, best first, and gives a list with the same members.
    ends_with : {"new", "first", "second", "any"}
        The chunk at the end, by its place among the kept: the last, the first, the second, or
        another one. The budget needs it, because the last chunk pays no separator.
    by : {"rank", "fill", "document"}, default "rank"
        What "best first" means to the function: by rank, as the budget was filled, or by id in
        natural order ("doc2" before "doc10"), which puts the pieces of a document into its order.
    """

    function: Callable[[Sequence[Any]], list[Any]]
    ends_with: str
    by: str = "rank"


ORDERINGS: dict[str, Ordering] = {
    "lost_in_middle": Ordering(lost_in_middle_order, "second"),
    "descending": Ordering(descending_order, "new"),
    "ascending": Ordering(ascending_order, "first"),
    "fill": Ordering(descending_order, "new", "fill"),
    "document": Ordering(descending_order, "new", "document"),
}


def register_ordering(name: str, function: Callable[[Sequence[Any]], list[Any]]) -> None:
    """Add an ordering under a name that `PackerConfig(order=name)` then takes.

    The function is called with places ``range(n)``, best first, so that it decides by rank alone;
    it must give each of them back once.

    Parameters
    ----------
    name : str
    function : callable

    Raises
    ------
    PackerError
        If the function loses, repeats or invents an item (tried for up to 200 items).

    Notes
    -----
    Which chunk ends the prompt is found by trying. Where it is neither the best, the second nor
    the weakest, a pack with a separator is filled query by query, which is slower.

    Examples
    --------
    >>> register_ordering("best_second", lambda items: [*items[1:2], *items[:1], *items[2:]])
    >>> ORDERINGS.pop("best_second").ends_with
    'any'
    """
    if not callable(function):
        fail(PackerError, "register_ordering", name, "a function of a sequence", function)
    last = {n: int(_permutation(name, function, n)[-1]) for n in range(1, TRIED + 1)}
    ends_with = next((rule for rule in _LAST if all(_LAST[rule](n) == last[n] for n in last)), ANY_END)
    ORDERINGS[name] = Ordering(function, ends_with)
    arrangement.cache_clear()


def get_ordering(name: str) -> Ordering:
    """Give the ordering of that name, or one error that lists them all."""
    if name not in ORDERINGS:
        unknown(PackerError, "PackerConfig", "order", name, ORDERINGS)
    return ORDERINGS[name]


def document_order(ids: Sequence[str]) -> npt.NDArray[np.int64]:
    """Give the place of each id in natural order; equal ids keep their order."""
    keys = [[(int(p), "") if p.isdecimal() else (-1, p) for p in _DIGITS.split(i)] for i in ids]
    places = np.empty(len(ids), dtype=np.int64)
    places[sorted(range(len(ids)), key=keys.__getitem__)] = np.arange(len(ids))
    return places


@lru_cache(maxsize=4096)
def arrangement(name: str, n: int) -> npt.NDArray[np.int64]:
    """Give, for n kept chunks, the place among them of each place in the prompt."""
    ordering = get_ordering(name)
    places = _permutation(name, ordering.function, n)
    if n and ordering.ends_with != ANY_END and places[-1] != _LAST[ordering.ends_with](n):
        raise PackerError(
            f"register_ordering: {name!r} must end {n} items as it ends up to {TRIED}: with item "
            f"{_LAST[ordering.ends_with](n)}; got {places[-1]}. Make its last place follow one rule."
        )
    return places


def _permutation(name: str, function: Callable[[Sequence[Any]], list[Any]], n: int) -> npt.NDArray[np.int64]:
    try:
        places = list(function(list(range(n))))
    except Exception as error:
        raise PackerError(f"register_ordering: {name!r} failed on {n} items: {error}.") from error
    if sorted(places) != list(range(n)):
        fail(PackerError, "register_ordering", name, f"a permutation of {n} items", places)
    return np.asarray(places, dtype=np.int64)
