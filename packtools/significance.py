"""Tests of a paired difference, their correction for many settings, and the pairing by query id."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from packtools import stats
from packtools.arrays import Floats
from packtools.errors import SettingError, check_count, fail, is_number
from packtools.stats import OverPairs, as_floats, scored

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "McNemarTest",
    "NonInferiority",
    "PairedValues",
    "PermutationTest",
    "average_repetitions",
    "holm",
    "mcnemar",
    "non_inferiority",
    "pair_by_id",
    "permutation_test",
]

ENUMERATED = 13  # differences that are not 0, up to which all signs are tried


@dataclass(frozen=True)
class PermutationTest(OverPairs):
    """Hold a sign-flip test over `n` queries scored on both sides; `p_value` is NaN if not testable.

    `n_resamples` counts the sign patterns tried; `exact` says that they were all there are.
    """

    delta: float
    p_value: float
    n: int
    n_resamples: int
    exact: bool


@dataclass(frozen=True)
class McNemarTest(OverPairs):
    """Hold the flips of a 0/1 metric: `b` queries lost (1 to 0), `c` gained (0 to 1), of `n`.

    `delta` is (c - b) / n; `p_value` is NaN if not testable.
    """

    b: int
    c: int
    delta: float
    p_value: float
    n: int


@dataclass(frozen=True)
class NonInferiority(OverPairs):
    """Hold the answer to: is the candidate at most `margin` worse?

    `bound` is the worst difference (candidate - baseline) that the data leave open: a lower bound if
    higher is better, else an upper one. `smallest_margin` (0 or more) would just pass. Not testable:
    both are NaN and `passes` is False.
    """

    passes: bool
    bound: float
    smallest_margin: float
    margin: float
    delta: float
    n: int
    confidence: float
    higher_is_better: bool


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


def permutation_test(
    baseline: npt.ArrayLike, candidate: npt.ArrayLike, *, n_resamples: int = 9999, rng: int = 0
) -> PermutationTest:
    """Test whether a mean difference could be chance: the paired sign-flip test, two-sided.

    1. If the two runs were the same, each difference could as well have the other sign. With at most
       13 differences that are not 0, all signs are tried; else `n_resamples` random ones.
    2. p is the share of signs with a mean at least as far from 0; drawn signs count the observed ones
       as one more draw (the +1 rule), so p is never 0.

    Parameters
    ----------
    baseline, candidate, n_resamples, rng
        As in `paired_bootstrap`, but 9,999 draws; pairs with a missing value are left out.

    Raises
    ------
    SettingError
        As in `paired_bootstrap`.

    Notes
    -----
    Fewer than two pairs are not testable (p is NaN); runs that never differ have p = 1. Differences
    within rounding of their sides are 0. No p is below 1 / (n_resamples + 1): Holm over 20 settings
    at 0.05 needs 399 draws or more. Cost: n_resamples x n signs.

    References
    ----------
    Smucker, Allan, Carterette (2007), A comparison of statistical significance tests for information
    retrieval evaluation, CIKM. Phipson, Smyth (2010), Permutation p-values should never be zero.

    Examples
    --------
    >>> permutation_test([0, 0, 0, 0], [1, 1, 1, 1]).p_value
    0.125
    """
    check_count(SettingError, "permutation_test", "n_resamples", n_resamples, "draw")
    stats.check_rng("permutation_test", rng)
    a, b = scored("permutation_test", baseline, candidate)
    delta = float((b - a).mean()) if len(a) else math.nan
    if len(a) < 2:
        return PermutationTest(delta, math.nan, len(a), 0, exact=False)
    difference = (b - a)[np.abs(b - a) > stats.rounding(a, b)]
    exact = len(difference) <= ENUMERATED
    total, least = difference.sum(), abs(difference.sum()) - 1e-12 * np.abs(difference).sum()
    extreme = tried = 0
    for flips in _flips(len(difference), n_resamples, rng):
        extreme += int(np.count_nonzero(np.abs(total - 2 * (flips @ difference)) >= least))
        tried += len(flips)
    p_value = extreme / tried if exact else (extreme + 1) / (tried + 1)
    return PermutationTest(delta, p_value, len(a), tried, exact)


def _flips(n: int, n_resamples: int, rng: int) -> Iterator[Floats]:
    """Give every pattern of n flips (1) if n is small; else random ones, some at a time."""
    if n <= ENUMERATED:
        yield ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(np.float64)
        return
    generator = np.random.default_rng(rng)
    rows = max(stats.BLOCK // n, 1)
    for begin in range(0, n_resamples, rows):
        size = (min(rows, n_resamples - begin), -(-n // 32))
        words = generator.integers(0, 1 << 32, size, dtype=np.uint32)
        yield np.unpackbits(words.view(np.uint8), axis=1, count=n).astype(np.float64)


def mcnemar(baseline: npt.ArrayLike, candidate: npt.ArrayLike) -> McNemarTest:
    """Test a 0/1 metric, such as exact match, by its flips: McNemar's test, exact and two-sided.

    Under equal runs a flip is a gain or a loss with equal chance: p is binomial, over all splits at
    least as uneven.

    Parameters
    ----------
    baseline, candidate : array-like of 0 and 1 (or bool), shape (n_queries,)
        In the same order; NaN where not scored.

    Raises
    ------
    SettingError
        If the lengths differ or a value is neither 0 nor 1.

    Notes
    -----
    Fewer than two pairs are not testable (p is NaN); no flips have p = 1; p is never 0.

    References
    ----------
    McNemar (1947), Note on the sampling error of the difference between correlated proportions.

    Examples
    --------
    >>> found = mcnemar([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0])
    >>> found.b, found.c, found.p_value
    (5, 0, 0.0625)
    """
    a, b = scored("mcnemar", baseline, candidate)
    for parameter, values in (("baseline", a), ("candidate", b)):
        if (other := values[(values != 0) & (values != 1)]).size:
            fail(SettingError, "mcnemar", parameter, "0 or 1 (or NaN: not scored)", float(other[0]))
    lost, gained = int((a > b).sum()), int((b > a).sum())
    p_value = _even_split(lost, gained) if len(a) >= 2 else math.nan
    delta = (gained - lost) / len(a) if len(a) else math.nan
    return McNemarTest(lost, gained, delta, p_value, len(a))


def _even_split(b: int, c: int) -> float:
    """Give the two-sided binomial p of b and c flips, if both are equally likely."""
    few, flips = min(b, c), b + c
    steps = np.arange(few, 0, -1)
    tail = 1 + float(np.cumprod(steps / (flips - steps + 1)).sum())
    p_value = 2 * tail * (math.comb(flips, few) / 2**flips)
    return float(min(1.0, max(p_value, sys.float_info.min)))


def holm(p_values: npt.ArrayLike | Sequence[float | None]) -> Floats:
    """Correct p-values for testing many settings: Holm's step-down method.

    1. Missing p-values (the baseline's own, say) are no tests: left out and left missing.
    2. The smallest of m is multiplied by m, the next by m - 1, ...; none falls below the one before it.

    Parameters
    ----------
    p_values : array-like of float (0 to 1) or None, shape (n_tests,)
        NaN or None is missing.

    Returns
    -------
    ndarray of float, shape (n_tests,)
        In the order given. The chance that any false one is at most alpha is at most alpha, however
        the tests depend on each other.

    Raises
    ------
    SettingError
        If a p-value is not between 0 and 1.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> holm([None, 0.02, 0.04]).tolist()
    [nan, 0.04, 0.04]
    """
    found = as_floats("holm", "p_values", p_values)
    if found.ndim != 1:
        fail(SettingError, "holm", "p_values", "of shape (n_tests,)", found.shape)
    if (outside := found[(found < 0) | (found > 1)]).size:
        fail(SettingError, "holm", "p_values", "between 0 and 1, or missing", float(outside[0]))
    given = np.flatnonzero(~np.isnan(found))
    order = given[np.argsort(found[given], kind="stable")]
    adjusted = np.full(len(found), np.nan)
    stepped = np.maximum.accumulate(found[order] * np.arange(len(order), 0, -1))
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def non_inferiority(
    baseline: npt.ArrayLike,
    candidate: npt.ArrayLike,
    margin: float,
    *,
    higher_is_better: bool = True,
    n_resamples: int = stats.RESAMPLES,
    confidence: float = 0.95,
    rng: int = 0,
) -> NonInferiority:
    """Decide whether the candidate is at most `margin` worse than the baseline.

    "No measurable difference" is not "no loss"; here the data must show that a loss is small. The bound
    is one end of the paired bootstrap interval of confidence 2 x `confidence` - 1; it may be as bad as
    the margin.

    Parameters
    ----------
    baseline, candidate, n_resamples, rng
        As in `paired_bootstrap`.
    margin : float
        Loss that is still accepted, in the metric's unit, 0 or more. Choose it before looking.
    higher_is_better : bool, default True
    confidence : float, default 0.95
        Of the one-sided bound, above 0.5.

    Raises
    ------
    SettingError
        As in `paired_bootstrap`.

    References
    ----------
    Piaggio et al. (2012), Reporting of noninferiority and equivalence randomized trials, JAMA 308.

    Examples
    --------
    >>> found = non_inferiority([1, 1, 1, 1], [1, 1, 1, 1], 0.01)
    >>> found.passes, found.bound, found.smallest_margin
    (True, 0.0, 0.0)
    """
    where = "non_inferiority"
    stats.check_size(where, "margin", margin)
    stats.check_flag(where, higher_is_better)
    if not is_number(confidence) or not 0.5 < confidence < 1:
        fail(SettingError, where, "confidence", "above 0.5 and below 1", confidence)
    a, b = scored(where, baseline, candidate)
    d = stats.paired_bootstrap(a, b, n_resamples=n_resamples, confidence=2 * confidence - 1, rng=rng)
    end = d.low if higher_is_better else d.high
    bound = d.delta if d.testable and stats.constant(a, b) else end
    loss = -bound if higher_is_better else bound
    smallest = max(0.0, loss) if d.testable else math.nan
    asked = float(margin), d.delta, d.n, float(confidence), bool(higher_is_better)
    return NonInferiority(loss <= margin, bound, smallest, *asked)


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
