"""Cut a text to a limit, at a word boundary, without ever cutting a character."""

from __future__ import annotations

from collections.abc import Callable

from packtools.counters import TokenCounter, counter_for
from packtools.errors import SettingError, check_count
from packtools.text import NO_SPACES

__all__ = ["truncate_to_tokens"]


def truncate_to_tokens(text: str, limit: int, counter: TokenCounter | str) -> str:
    """Give the start of a text that has at most `limit` tokens when it is counted again.

    Parameters
    ----------
    text : str
    limit : int
    counter : TokenCounter or str
        See `counter_for`.

    Returns
    -------
    str
        A prefix of `text`; it ends between two characters, not always between two words.

    Examples
    --------
    >>> truncate_to_tokens("hello 🧠 world", 3, "cl100k_base")
    'hello '
    """
    limit = check_count(SettingError, "truncate_to_tokens", "limit", limit, "token", least=0)
    counter = counter_for(counter)
    return text[: _head(text, limit, counter.count, getattr(counter, "head", None))]


def cut_length(
    text: str,
    limit: int,
    measure: Callable[[str], int],
    head: Callable[[str, int], int] | None = None,
    *,
    spaceless: bool = True,
) -> int:
    """Give how many characters of a text stay under a limit, cut at a word boundary.

    1. What fits is taken, then its last word is removed, even where the cut falls just behind a
       word; a first word that is too long is cut inside.
    2. With `spaceless`, a cut inside a run of a script without spaces stays where it is.
    3. A row of a pipe table is not cut where a line stands before it.

    Parameters
    ----------
    text : str
    limit : int
    measure : callable
        Gives the size of a text.
    head : callable or None
        ``head(text, limit)`` guesses how many characters make up the first `limit` units.
    spaceless : bool, default True
    """
    n = _head(text, limit, measure, head)
    if n == len(text):
        return n
    row = _row_start(text, n)
    if row is not None:
        n = row
    elif not (spaceless and n and NO_SPACES.match(text[n - 1])):
        n = _word_end(text, n)
    while n and measure(text[:n]) > limit:  # a shorter text may have more tokens
        n = min(_word_end(text, n), n - 1)
    return n


def _word_end(text: str, n: int) -> int:
    """Step back before the last word of a start; inside it, if it is the only one."""
    start = text[:n].rstrip()
    words = start.rsplit(None, 1)
    return len(words[0]) if len(words) == 2 else len(start)


def _row_start(text: str, n: int) -> int | None:
    """Give where the line above a row of a pipe table ends, if a cut falls into the row."""
    line = text.rfind("\n", 0, n)
    if line <= 0 or not text[line + 1 : n].lstrip().startswith("|"):
        return None
    return len(text[:line].rstrip())


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
