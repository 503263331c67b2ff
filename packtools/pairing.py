"""Two sides of the same queries, paired by query id and never by place."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from packtools.arrays import Floats
from packtools.errors import SettingError, fail, is_number
from packtools.stats import OverPairs, as_floats

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PairedValues", "average_repetitions", "pair_by_id"]


@dataclass(frozen=True, eq=False)
class PairedValues(OverPairs):
    """Hold values aligned by query id: `a[i]` and `b[i]` are of query `ids[i]`.

    `only_a` and `only_b` count the ids of one side only; `rule` says whether these were left out
    ("intersection") or filled in ("union, 0.0 where missing"). `n` counts pairs with both values.
    """

    ids: tuple[str, ...]
    a: Floats
    b: Floats
    only_a: int
    only_b: int
    rule: str
    n: int


def average_repetitions(qids: Iterable[str], values: npt.ArrayLike) -> pd.Series[float]:
    """Average the repetitions of each query, by qid in order of first appearance: a query counts once.

    Parameters
    ----------
    qids : iterable of str
    values : array-like of float, shape (n_rows,)
        NaN where a repetition is not scored; a query with no score is NaN.

    Raises
    ------
    SettingError
        If an id is not a string or the lengths differ.

    Examples
    --------
    >>> average_repetitions(["q2", "q1", "q2"], [1, 1, 0]).to_dict()
    {'q2': 0.5, 'q1': 1.0}
    """
    import pandas as pd

    ids = _check_ids("average_repetitions", "qids", qids)
    found = as_floats("average_repetitions", "values", values)
    if found.shape != (len(ids),):
        fail(SettingError, "average_repetitions", "values", f"of shape ({len(ids)},)", found.shape)
    index = pd.Index(ids, dtype="str", name="qid")
    return pd.Series(found, index=index).groupby(level=0, sort=False).mean()


def pair_by_id(a: pd.Series[Any], b: pd.Series[Any], *, fill: float | None = None) -> PairedValues:
    """Align two series by query id, never by position; in the order of `a`, then of `b`.

    Parameters
    ----------
    a, b : Series, index query id
        The baseline's and the candidate's values.
    fill : float or None, default None
        None leaves out the queries of one side only; a number, such as 0, stands in for their value
        (a run that answers fewer queries then can't gain by it). Report both.

    Raises
    ------
    SettingError
        If an id occurs twice or is not a string.

    Examples
    --------
    >>> import pandas as pd
    >>> a, b = pd.Series({"q1": 1.0, "q2": 0.0, "q3": 1.0}), pd.Series({"q2": 0.0, "q1": 1.0})
    >>> pairs = pair_by_id(a, b)
    >>> pairs.ids, (pairs.b - pairs.a).tolist(), pairs.only_a
    (('q1', 'q2'), [0.0, 0.0], 1)
    """
    if fill is not None and (not is_number(fill) or math.isinf(fill)):
        fail(SettingError, "pair_by_id", "fill", "a finite number or None", fill)
    left, right = _by_id("a", a), _by_id("b", b)
    ids = [qid for qid in {**left, **right} if fill is not None or (qid in left and qid in right)]
    x = np.array([left.get(qid, fill) for qid in ids], np.float64)
    y = np.array([right.get(qid, fill) for qid in ids], np.float64)
    rule = "intersection" if fill is None else f"union, {float(fill)} where missing"
    n = int(np.count_nonzero(~np.isnan(x) & ~np.isnan(y)))
    only = len(left.keys() - right.keys()), len(right.keys() - left.keys())
    return PairedValues(tuple(ids), x, y, *only, rule, n)


def _by_id(parameter: str, series: Any) -> dict[str, float]:
    values = as_floats("pair_by_id", parameter, series)
    if not hasattr(getattr(series, "index", None), "tolist") or values.ndim != 1:
        fail(SettingError, "pair_by_id", parameter, "a Series with query ids as index", series)
    ids = _check_ids("pair_by_id", parameter, series.index.tolist())
    if twice := [qid for qid, count in Counter(ids).items() if count > 1]:
        hint = "Average its repetitions first: average_repetitions."
        fail(SettingError, "pair_by_id", parameter, "indexed by ids that occur once", twice[0], hint)
    return dict(zip(ids, values.tolist(), strict=True))


def _check_ids(where: str, parameter: str, ids: Iterable[object]) -> list[str]:
    given = list(ids)
    if other := [qid for qid in given if not isinstance(qid, str)]:
        hint = 'Read ids as text: "007" is not 7.'
        fail(SettingError, where, parameter, "query ids, each a string", other[0], hint)
    return [str(qid) for qid in given]
