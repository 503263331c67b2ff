"""Cut a text to a limit, at a word boundary, without ever cutting a character."""

from __future__ import annotations

from collections.abc import Callable

from packtools.counters import TokenCounter

__all__ = ["truncate_to_tokens"]


def truncate_to_tokens(text: str, limit: int, counter: TokenCounter) -> str:
    """Give the start of a text that has at most `limit` tokens when it is counted again.

    Parameters
    ----------
    text : str
    limit : int
    counter : TokenCounter

    Returns
    -------
    str
        A prefix of `text`; it ends between two characters, not always between two words.

    Examples
    --------
    >>> from packtools import counter_for
    >>> truncate_to_tokens("hello 🧠 world", 3, counter_for("cl100k_base"))
    'hello '
    """
    return text[: _head(text, limit, counter.count, getattr(counter, "head", None))]


def cut_length(
    text: str,
    limit: int,
    measure: Callable[[str], int],
    head: Callable[[str, int], int] | None = None,
) -> int:
    """Give how many characters of a text stay under a limit, cut at a word boundary.

    What fits is taken, then its last word is removed, even where the cut falls just behind a word; a
    first word that is too long is cut inside.

    Parameters
    ----------
    text : str
    limit : int
    measure : callable
        Gives the size of a text.
    head : callable or None
        ``head(text, limit)`` guesses how many characters make up the first `limit` units.
    """
    n = _head(text, limit, measure, head)
    if n == len(text):
        return n
    start = text[:n].rstrip()
    words = start.rsplit(None, 1)
    return len(words[0]) if len(words) == 2 else len(start)


def _head(
    text: str, limit: int, measure: Callable[[str], int], head: Callable[[str, int], int] | None
) -> int:
    if limit <= 0 or not text:
        return 0
    if measure is len:
        return min(limit, len(text))
    n = _bisect(text, limit, measure) if head is None else head(text, limit)
    while n and measure(text[:n]) > limit:
        n -= 1
    return n


def _bisect(text: str, limit: int, measure: Callable[[str], int]) -> int:
    """Find the longest start within a limit, as if sizes grew with every character."""
    if measure(text) <= limit:
        return len(text)
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if measure(text[:middle]) <= limit:
            low = middle
        else:
            high = middle
    return low
