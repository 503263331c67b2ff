"""What a prompt costs in US dollars: each class of tokens at its own dated price; unknown is never 0."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from packtools.arrays import Bools, Floats
from packtools.errors import SettingError, fail, is_number, shown

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Price", "cost_usd"]

Rate = float | Sequence[tuple[int, float]]
KINDS = ("input", "cached_input", "cache_write", "output")


@dataclass(frozen=True)
class Price:
    """Hold what a model charges for each class of tokens, in US dollars per million tokens.

    Use it for a price of your own (a contract, a local model); `price_of` gives the published ones.

    1. A rate is a number, or steps `(from_tokens, rate)` that begin at 0: a request with *more* than
       `from_tokens` input tokens pays that rate for all its tokens of the class, also those below
       the step. The steps of the output go by the input tokens too.
    2. None is unknown: what needs that rate costs NaN. 0 is free, and known.

    Parameters
    ----------
    name : str
    input : float, sequence of (int, float), or None
        Rate of input tokens that no cache has to do with.
    cached_input : float, sequence of (int, float), or None, default None
        Rate of input tokens read from the provider's cache.
    cache_write : float, sequence of (int, float), or None, default None
        Rate of input tokens written to that cache.
    output : float, sequence of (int, float), or None, default None
        Rate of the tokens of the answer.
    date : str or None, default None
        First day on which the price holds, as in "2025-06-10"; None is not known.
    source : str, default "own"
        Where the price comes from.

    Raises
    ------
    SettingError
        If a rate is negative, not finite, or its steps don't begin at 0 and rise.

    References
    ----------
    `calc_unit_price` of genai-prices, and its issues 241 (the step counts for all tokens) and 587
    (it is crossed by more than the threshold; a provider who counts from the threshold on has a
    threshold of one less).

    Examples
    --------
    A prompt of 100 plain, 500 cached and 20 written tokens, and an answer of 50:

    >>> price = Price("small", 3, cached_input=0.3, cache_write=3.75, output=15)
    >>> float(price.cost(620, cached=500, cache_write=20, output=50))
    0.001275
    >>> long = Price("long", [(0, 1), (200_000, 2)])
    >>> long.cost([200_000, 300_000]).tolist()
    [0.2, 0.6]
    >>> print(long)
    long (own): input 1 (above 200,000 tokens 2), output unknown; USD per million tokens
    """

    name: str
    input: Rate | None
    _: KW_ONLY
    cached_input: Rate | None = None
    cache_write: Rate | None = None
    output: Rate | None = None
    date: str | None = None
    source: str = "own"

    def __post_init__(self) -> None:
        for text in ("name", "source"):
            if not isinstance(getattr(self, text), str):
                fail(SettingError, "Price", text, "a string", getattr(self, text))
        for kind in KINDS:
            object.__setattr__(self, kind, _checked_rate(kind, getattr(self, kind)))
        if self.date is not None:
            object.__setattr__(self, "date", _checked_day(self.date))

    def __str__(self) -> str:
        since = f", since {self.date}" if self.date else ""
        rates = {kind: getattr(self, kind) for kind in KINDS}
        told = [
            f"{kind} {_rate_words(rate)}"
            for kind, rate in rates.items()
            if rate is not None or kind in ("input", "output")
        ]
        return f"{self.name} ({self.source}{since}): {', '.join(told)}; USD per million tokens"

    def cost(
        self,
        n_tokens: npt.ArrayLike,
        *,
        cached: npt.ArrayLike = 0,
        cache_write: npt.ArrayLike = 0,
        output: npt.ArrayLike = 0,
    ) -> Floats:
        """Compute what each request costs.

        Parameters
        ----------
        n_tokens : array-like of int
            All input tokens of a request, cached and written ones among them.
        cached, cache_write : array-like of int, default 0
            How many of `n_tokens` are read from a cache, or written to it.
        output : array-like of int, default 0
            Tokens of the answer.

        Returns
        -------
        ndarray of float64, shape of the arguments together
            US dollars; NaN where a class has tokens and no rate (`unknown` says which).

        Raises
        ------
        SettingError
            If a count is negative or no whole number, or the parts are more than `n_tokens`.

        Notes
        -----
        One pass over the requests per class and step. genai-prices charges a class without a rate of
        its own as plain input; here such a class is unknown. If your provider does so, write
        ``dataclasses.replace(price, cache_write=price.input)``.

        References
        ----------
        README of genai-prices, "Cached input tokens": the input tokens are the total, the cache
        tokens are parts of it.
        """
        return _cost(self, _classes("Price.cost", n_tokens, cached, cache_write, output))

    def unknown(
        self,
        n_tokens: npt.ArrayLike,
        *,
        cached: npt.ArrayLike = 0,
        cache_write: npt.ArrayLike = 0,
        output: npt.ArrayLike = 0,
    ) -> str:
        """Say which rates are missing to price these requests; "" if none is.

        Parameters
        ----------
        n_tokens, cached, cache_write, output : array-like of int
            As in `cost`.

        Returns
        -------
        str

        Examples
        --------
        >>> Price("small", 3).unknown([620, 0], output=[50, 0])
        "price 'small' (own) has no rate of output: the cost of 1 of 2 requests is unknown"
        """
        return _unknown(self, _classes("Price.unknown", n_tokens, cached, cache_write, output))


def cost_usd(
    per_query: pd.DataFrame,
    price: Price,
    *,
    fixed: int | pd.Series = 0,
    cached: int | pd.Series = 0,
    cache_write: int | pd.Series = 0,
    output: int | pd.Series = 0,
) -> pd.Series:
    """Compute what the prompt and the answer of each query cost.

    Parameters
    ----------
    per_query : DataFrame, index qid
        With a column n_tokens, the tokens of the context: `PackedRun.per_query`. Count them with the
        tokenizer of the model that is priced.
    price : Price
    fixed : int or Series by qid, default 0
        Tokens of instructions and question, which the context does not hold.
    cached, cache_write : int or Series by qid, default 0
        How many of n_tokens + `fixed` are read from the provider's cache, or written to it.
    output : int or Series by qid, default 0
        Tokens of the answer.

    Returns
    -------
    Series of float64, index qid, name "cost_usd"
        US dollars; NaN is unknown. Its mean leaves the unknown ones out.

    Warns
    -----
    UserWarning
        If the cost of a query is unknown; it says which rate is missing.

    Raises
    ------
    SettingError
        If the table has no n_tokens, a count breaks its rule, or a Series lacks a query.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"n_tokens": [1000, 0]}, index=pd.Index(["q1", "q2"], name="qid"))
    >>> cost_usd(table, Price("small", 2, output=8), fixed=100, output=50).to_dict()
    {'q1': 0.0026, 'q2': 0.0006}
    """
    import pandas as pd

    where = "cost_usd"
    if not isinstance(per_query, pd.DataFrame) or "n_tokens" not in per_query.columns:
        got = list(per_query.columns) if isinstance(per_query, pd.DataFrame) else per_query
        rule = "a table with a column n_tokens"
        fail(SettingError, where, "per_query", rule, got, "Pass packed.per_query.")
    if not isinstance(price, Price):
        fail(SettingError, where, "price", "a Price", price, "Write price_of(model) or Price(name, input=…).")
    given = {"fixed": fixed, "cached": cached, "cache_write": cache_write, "output": output}
    counts = {name: _by_query(where, name, value, per_query.index) for name, value in given.items()}
    context = _counts(where, "n_tokens", per_query["n_tokens"].to_numpy())
    classes = _classes(where, context + counts.pop("fixed"), **counts)
    if message := _unknown(price, classes, "queries"):
        warnings.warn(
            f"{where}: {message}. Add it: dataclasses.replace(price, …=USD per million tokens).", stacklevel=2
        )
    return pd.Series(_cost(price, classes), index=per_query.index, name="cost_usd")


# -- counts


def _counts(where: str, parameter: str, values: npt.ArrayLike) -> Floats:
    """Check counts of tokens."""
    rule = "whole numbers of tokens, 0 or more"
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iuf":
        fail(SettingError, where, parameter, rule, values)
    counts: Floats = given.astype(np.float64)
    wrong = ~(np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts)))
    if wrong.any():
        fail(SettingError, where, parameter, rule, given[wrong].item(0))
    return counts


def _by_query(where: str, parameter: str, value: object, qids: pd.Index) -> Floats:
    """Bring one number, or a Series in any order, to the order of the queries."""
    import pandas as pd

    if not isinstance(value, pd.Series):
        if not is_number(value):
            rule = "one number of tokens, or a Series by qid"
            fail(SettingError, where, parameter, rule, value, "A list has no qids to pair it by.")
        return _counts(where, parameter, np.asarray(value))
    if not value.index.is_unique:
        twice = value.index[value.index.duplicated()][0]
        rule = "a Series with one value a query"
        fail(SettingError, where, parameter, rule, twice, "It stands there twice.")
    lacking = qids.difference(value.index, sort=False)
    if len(lacking):
        raise SettingError(
            f"{where}: '{parameter}' must hold every query of the table; {len(lacking)} of {len(qids)} are "
            f"missing, as {shown(lacking[0])}. Give a Series with the same ids, or one number."
        )
    return _counts(where, parameter, value.loc[qids].to_numpy())


def _classes(
    where: str,
    n_tokens: npt.ArrayLike,
    cached: npt.ArrayLike,
    cache_write: npt.ArrayLike,
    output: npt.ArrayLike,
) -> dict[str, Floats]:
    """Split checked counts by class; "all" is the total of the input."""
    given = {"n_tokens": n_tokens, "cached": cached, "cache_write": cache_write, "output": output}
    checked = [_counts(where, name, values) for name, values in given.items()]
    try:
        total, read, written, answer = np.broadcast_arrays(*checked)
    except ValueError:
        shapes = ", ".join(f"{name} {counts.shape}" for name, counts in zip(given, checked, strict=True))
        raise SettingError(
            f"{where}: the counts must have one shape, or be one number; got {shapes}."
        ) from None
    plain = total - read - written
    if (plain < 0).any():
        i = np.argmax(plain < 0)
        raise SettingError(
            f"{where}: 'cached' and 'cache_write' are parts of the input and must not be more than it; got "
            f"{read.flat[i]:,.0f} + {written.flat[i]:,.0f} of {total.flat[i]:,.0f} tokens."
        )
    return {"all": total, "input": plain, "cached_input": read, "cache_write": written, "output": answer}


# -- rates


def _checked_day(given: object) -> str:
    try:
        return date.fromisoformat(str(given)).isoformat()
    except ValueError:
        fail(SettingError, "Price", "date", "a day, as in '2025-06-10', or None", given)


def _checked_rate(kind: str, rate: Any) -> float | tuple[tuple[int, float], ...] | None:
    """Give a rate as a float or a tuple of steps."""
    if rate is None or _is_rate(rate):
        return None if rate is None else float(rate)
    if not _are_steps(rate):
        rule = "US dollars per million tokens, 0 or more, or rising steps of them from 0 on"
        fail(SettingError, "Price", kind, rule, rate, "Write 3.0, or [(0, 3.0), (200_000, 6.0)].")
    return tuple((int(start), float(each)) for start, each in rate)


def _is_rate(value: object) -> bool:
    return is_number(value) and 0 <= float(value) < math.inf  # type: ignore[arg-type]


def _are_steps(rate: object) -> bool:
    if not isinstance(rate, list | tuple) or not rate:
        return False
    if not all(isinstance(step, list | tuple) and len(step) == 2 for step in rate):
        return False
    if not all(is_number(start) and hasattr(start, "__index__") and _is_rate(each) for start, each in rate):
        return False
    return rate[0][0] == 0 and all(a < b for (a, _), (b, _) in pairwise(rate))


def _rate_words(rate: float | tuple[tuple[int, float], ...] | None) -> str:
    if rate is None:
        return "unknown"
    if isinstance(rate, float):
        return f"{rate:g}"
    steps = ", ".join(f"above {start:,} tokens {each:g}" for start, each in rate[1:])
    return f"{rate[0][1]:g}" + (f" ({steps})" if steps else "")


def _rate_at(rate: Any, total: Floats) -> Floats | float:
    """Choose the step of each request: the last one that its input tokens are above."""
    if isinstance(rate, float):
        return rate
    starts, rates = (np.array(column) for column in zip(*rate, strict=True))
    chosen: Floats = rates[np.maximum(np.searchsorted(starts, total, side="left") - 1, 0)]
    return chosen


def _cost(price: Price, classes: dict[str, Floats]) -> Floats:
    millionths = np.zeros(classes["all"].shape)
    for kind in KINDS:
        rate, count = getattr(price, kind), classes[kind]
        if rate is None:
            millionths = np.where(count > 0, np.nan, millionths)
        else:
            millionths = millionths + count * _rate_at(rate, classes["all"])
    return np.asarray(millionths / 1e6)


def _unknown(price: Price, classes: dict[str, Floats], what: str = "requests") -> str:
    """Word which rates are missing, and for how many."""
    lacking: dict[str, Bools] = {
        kind: classes[kind] > 0
        for kind in KINDS
        if getattr(price, kind) is None and (classes[kind] > 0).any()
    }
    if not lacking:
        return ""
    hit = np.logical_or.reduce(list(lacking.values()))
    return (
        f"price {price.name!r} ({price.source}) has no rate of {' and '.join(lacking)}: the cost of "
        f"{hit.sum():,} of {hit.size:,} {what} is unknown"
    )
