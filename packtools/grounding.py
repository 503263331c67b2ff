"""How much of an answer stands in its passages: shares of words and of word runs, no model call.

A passage is reduced once to its words: lower case, one space between tokens and at both ends. To look
for a run of tokens in any number of passages is then to look for a substring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral

import numpy as np

from packtools.arrays import Bools, Floats
from packtools.errors import PacktoolsError, SettingError, check_count, fail
from packtools.progress import progress

__all__ = [
    "ContextWords",
    "Grounding",
    "PassageWords",
    "content_tokens",
    "context_relevance",
    "ground_many",
    "lexical_grounding",
    "ngram_grounding",
    "tokens",
]

Passages = str | Iterable[str | None] | None

NGRAM = 3
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789'")
# All other bytes become a space; "?", which stands for all of non-ASCII, is one of them.
_TOKEN_TABLE = bytes(b if b in _LETTERS else ord(" ") for b in range(256))


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """Give scikit-learn's English stop list; it loads on first use."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)


def tokens(text: str) -> list[str]:
    """Cut a text into tokens: the runs of ``[a-z0-9']`` of the lower-cased text.

    Everything else parts tokens, letters outside ASCII too: "café" is "caf", and a text in another
    script has no tokens.

    Examples
    --------
    >>> tokens("It isn't snake_case, café!")
    ['it', "isn't", 'snake', 'case', 'caf']
    """
    return text.lower().encode("ascii", "replace").translate(_TOKEN_TABLE).decode("ascii").split()


def content_tokens(text: str) -> frozenset[str]:
    """Give the distinct tokens of a text that are not English stop words.

    The list is scikit-learn's ``ENGLISH_STOP_WORDS``. It has no contractions: "isn't" is content.

    Examples
    --------
    >>> sorted(content_tokens("Is it the capital? It isn't the capital."))
    ['capital', "isn't"]
    """
    return frozenset(tokens(text)) - stop_words()


@dataclass(frozen=True)
class ContextWords:
    """Hold the words of all passages of one context.

    Parameters
    ----------
    text : str
        Their words. Two spaces stand between passages, so that no run of tokens crosses; "" without any.
    tokens : frozenset of str
        The distinct tokens.
    """

    text: str
    tokens: frozenset[str]

    def lexical(self, content: Set[str]) -> float:
        """Give the share of these tokens that the context has; 1.0 without any."""
        return len(content & self.tokens) / len(content) if content else 1.0

    def ngram(self, found: Sequence[str], n: int) -> float:
        """Give the share of the distinct runs of n tokens that the context has; 1.0 without any."""
        if len(found) < n:
            return 1.0
        grams = {tuple(found[i : i + n]) for i in range(len(found) - n + 1)}
        likely = [gram for gram in grams if self.tokens.issuperset(gram)]
        return sum(f" {' '.join(gram)} " in self.text for gram in likely) / len(grams)


class PassageWords(dict[str, str]):
    """Remember the words of each distinct passage; pass one object around to read each only once.

    ``words[text]`` is the text reduced to its tokens, one space between them and at both ends; ""
    if there are none. It holds about as many bytes as the passages; drop it to free them.

    Examples
    --------
    >>> words = PassageWords()
    >>> words["Prices fall."], len(words)
    (' prices fall ', 1)
    """

    def __missing__(self, text: str) -> str:
        found = tokens(text)
        words = f" {' '.join(found)} " if found else ""
        self[text] = words
        return words

    def context(self, passages: Passages) -> ContextWords:
        """Put the words of all passages of one context together.

        Examples
        --------
        >>> PassageWords().context(["Prices fall.", None, "Wind rises"]).text
        ' prices fall  wind rises '
        """
        text = "".join([self[one] for one in as_passages(passages)])
        return ContextWords(text, frozenset(text.split()))


def as_passages(
    passages: object,
    where: str = "grounding",
    parameter: str = "passages",
    error: type[PacktoolsError] = SettingError,
) -> list[str]:
    """Give passages as a list of strings: a string is one passage, None is an empty one."""
    if passages is None or isinstance(passages, str):
        return [passages] if passages else []
    if isinstance(passages, Mapping | Set | bytes) or not isinstance(passages, Iterable):
        fail(error, where, parameter, "a list of strings", passages)
    given = ["" if text is None else text for text in passages]
    for text in given:
        if not isinstance(text, str):
            fail(error, where, parameter, "a list of strings", text)
    return given


def _text(where: str, parameter: str, value: object) -> str:
    if value is not None and not isinstance(value, str):
        fail(SettingError, where, parameter, "a string or None", value)
    return value or ""


def lexical_grounding(
    prediction: str | None, passages: Passages, *, words: PassageWords | None = None
) -> float:
    """Give the share of an answer's content words that stand in its passages.

    Use it to find answers that name what their context does not; a high value proves nothing, as
    order and meaning are not looked at. The rule: of the distinct content tokens of the prediction
    (see `content_tokens`), the share that is a token of any passage.

    Parameters
    ----------
    prediction : str or None
        None is an empty answer.
    passages : iterable of str or None, or str
        A string is one passage; None is an empty one.
    words : PassageWords, optional
        Give the same object to many calls to read each passage only once.

    Returns
    -------
    float
        0 to 1. Without content tokens 1.0 (vacuous); else, without passage tokens, 0.0.

    Raises
    ------
    SettingError
        If a text is no string.

    References
    ----------
    A lexical stand-in for groundedness: TruLens,
    https://www.trulens.org/getting_started/core_concepts/rag_triad/

    Examples
    --------
    >>> lexical_grounding("Sydney is the capital", ["Canberra is the capital of Australia."])
    0.5
    >>> lexical_grounding("it is", [])
    1.0
    """
    content = content_tokens(_text("lexical_grounding", "prediction", prediction))
    return (PassageWords() if words is None else words).context(passages).lexical(content)


def ngram_grounding(
    prediction: str | None, passages: Passages, *, n: int = NGRAM, words: PassageWords | None = None
) -> float:
    """Give the share of an answer's runs of n words that stand inside one passage.

    Use it to tell an answer that quotes its context from one that only uses the same words. The rule: of
    the distinct runs of n tokens of the prediction, stop words included, the share that stands inside
    one passage.

    Parameters
    ----------
    prediction : str or None
        None is an empty answer.
    passages : iterable of str or None, or str
        A string is one passage; None is an empty one.
    n : int, default 3
        Tokens in a run.
    words : PassageWords, optional
        Give the same object to many calls to read each passage only once.

    Returns
    -------
    float
        0 to 1. With fewer than n tokens 1.0 (vacuous); else, if no passage has n tokens, 0.0.

    Raises
    ------
    SettingError
        If a text is no string or `n` is below 1.

    References
    ----------
    Clipped n-gram precision without repeats: Papineni et al. (2002), BLEU, sec. 2.1; as the copied
    share of a summary: See, Liu, Manning (2017), Get To The Point, sec. 6.

    Examples
    --------
    >>> ngram_grounding("Sydney is the capital", ["Canberra is the capital of Australia."])
    0.5
    >>> ngram_grounding("one two three four", ["one two", "three four"])
    0.0
    """
    check_count(SettingError, "ngram_grounding", "n", n, "token")
    found = tokens(_text("ngram_grounding", "prediction", prediction))
    return (PassageWords() if words is None else words).context(passages).ngram(found, n)


def context_relevance(
    query: str | None,
    passages: Passages,
    *,
    shown_ids: Iterable[object] | None = None,
    relevant: Iterable[object] | None = None,
    words: PassageWords | None = None,
) -> float:
    """Say whether a context fits its query: by judgements where there are any, else by shared words.

    1. With `relevant`: 1.0 if one of the shown ids is among them, else 0.0.
    2. Without: `lexical_grounding` of the query in the passages.

    Parameters
    ----------
    query : str or None
    passages : iterable of str or None, or str
        The passages shown.
    shown_ids : iterable of str or int, optional
        Ids of the passages shown; needed with `relevant`.
    relevant : iterable of str or int, optional
        Ids judged relevant to the query. Empty means judged, with none relevant: the result is 0.0.
    words : PassageWords, optional

    Returns
    -------
    float, 0 to 1

    Raises
    ------
    SettingError
        If `relevant` is given without `shown_ids`, or a text or an id is of the wrong type.

    Notes
    -----
    The two ways measure different things: never average or compare one with the other. Ids are
    compared as text, so 4 is "4".

    References
    ----------
    Context relevance of the RAG triad: TruLens,
    https://www.trulens.org/getting_started/core_concepts/rag_triad/; with judgements it is the hit
    rate (success at k) of TREC.

    Examples
    --------
    >>> context_relevance("capital of Australia", ["Canberra is the capital."])
    0.5
    >>> context_relevance("capital of Australia", [""], shown_ids=[4], relevant=["4"])
    1.0
    """
    if relevant is None:
        return lexical_grounding(_text("context_relevance", "query", query), passages, words=words)
    if shown_ids is None:
        hint = "Without judgements leave 'relevant' out."
        fail(SettingError, "context_relevance", "shown_ids", "given with 'relevant'", shown_ids, hint)
    shown = as_ids("context_relevance", "shown_ids", shown_ids)
    return float(not set(as_ids("context_relevance", "relevant", relevant)).isdisjoint(shown))


def as_ids(
    where: str, parameter: str, value: object, error: type[PacktoolsError] = SettingError
) -> list[str]:
    """Give ids as text: a single id is a list of one, whole numbers become text."""
    ids = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
    for one in ids:
        if not is_id(one):
            fail(error, where, parameter, "a list of ids (strings or whole numbers)", one)
    return [str(one) for one in ids]


def is_id(value: object) -> bool:
    """Whether a value can be an id: a string that is not empty, or a whole number."""
    return (
        bool(value) if isinstance(value, str) else isinstance(value, Integral) and not isinstance(value, bool)
    )


@dataclass(frozen=True, eq=False)
class Grounding:
    """Hold the grounding of many answers, one value a row.

    Parameters
    ----------
    lexical, ngram : ndarray of float, shape (rows,)
        See `lexical_grounding` and `ngram_grounding`.
    vacuous_lexical, vacuous_ngram : ndarray of bool, shape (rows,)
        Where the value is 1.0 only because the answer has nothing to look for.
    """

    lexical: Floats
    ngram: Floats
    vacuous_lexical: Bools
    vacuous_ngram: Bools


def ground_many(
    predictions: Iterable[str | None],
    contexts: Iterable[Passages],
    *,
    n: int = NGRAM,
    words: PassageWords | None = None,
) -> Grounding:
    """Ground many answers, each in its own passages; each distinct passage is read once.

    Gives what `lexical_grounding` and `ngram_grounding` give row by row.

    Parameters
    ----------
    predictions : iterable of str or None, length rows
    contexts : iterable of passages, length rows
    n : int, default 3
    words : PassageWords, optional
        Give the same object to several runs over the same passages.

    Returns
    -------
    Grounding

    Raises
    ------
    SettingError
        If the lengths differ, a text is no string, or `n` is below 1.

    Notes
    -----
    Cost: one pass over each distinct passage, and one set of tokens a row.

    Examples
    --------
    >>> g = ground_many(["Sydney", "the"], [["Canberra"], ["Canberra"]])
    >>> g.lexical.tolist(), g.vacuous_lexical.tolist()
    ([0.0, 1.0], [False, True])
    """
    check_count(SettingError, "ground_many", "n", n, "token")
    for name, given in (("predictions", predictions), ("contexts", contexts)):
        if isinstance(given, str):
            fail(SettingError, "ground_many", name, "a list with one entry a row", given)
    words = PassageWords() if words is None else words
    answers, shown = list(predictions), list(contexts)
    if len(answers) != len(shown):
        fail(SettingError, "ground_many", "contexts", f"of length {len(answers)}", len(shown))
    values = np.ones((4, len(answers)))
    pairs = progress(zip(answers, shown, strict=True), "ground answers", len(answers))
    for row, (answer, passages) in enumerate(pairs):
        found, context = tokens(_text("ground_many", "predictions", answer)), words.context(passages)
        content = frozenset(found) - stop_words()
        values[:, row] = context.lexical(content), context.ngram(found, n), not content, len(found) < n
    return Grounding(values[0], values[1], values[2] > 0, values[3] > 0)
