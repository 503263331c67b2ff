"""Tests of a paired difference, and their correction for many settings."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from packtools import resampling, stats
from packtools.arrays import Floats, Longs
from packtools.errors import SettingError, check_count, fail
from packtools.stats import OverPairs, as_floats, scored

__all__ = ["McNemarTest", "PermutationTest", "holm", "mcnemar", "permutation_test", "permutation_tests"]

EXACT_FLIPS = 1000  # up to which the chance of a split is a ratio of whole numbers
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
    at 0.05 needs 399 draws or more. Cost: n_resamples x n_queries signs; the sums are exact.

    References
    ----------
    Smucker, Allan, Carterette (2007), A comparison of statistical significance tests for information
    retrieval evaluation, CIKM. Phipson, Smyth (2010), Permutation p-values should never be zero.

    Examples
    --------
    >>> permutation_test([0, 0, 0, 0], [1, 1, 1, 1]).p_value
    0.125
    """
    where = "permutation_test"
    a, b = stats.numbers(where, baseline, candidate)
    return _permuted(where, a[:, None], b[:, None], n_resamples, rng)[0]


def permutation_tests(
    baseline: npt.ArrayLike, candidates: npt.ArrayLike, *, n_resamples: int = 9999, rng: int = 0
) -> tuple[PermutationTest, ...]:
    """Test many differences at once: metrics, or one metric under every setting of a sweep.

    Each column gives what `permutation_test` gives for it, to the last bit. Correct the p-values with
    `holm`.

    Parameters
    ----------
    baseline, candidates : array-like of float, shape (n_queries, n_columns)
        NaN where a query is not scored. Two DataFrames must have equal indexes and columns; a baseline
        that all columns share is `np.broadcast_to(values[:, None], shape)`.
    n_resamples, rng
        As in `permutation_test`.

    Returns
    -------
    tuple of PermutationTest
        One for each column.

    Raises
    ------
    SettingError
        As in `paired_bootstrap_many`.

    Notes
    -----
    Cost: n_resamples x n_queries signs, and their product with all columns.

    Examples
    --------
    >>> [found.p_value for found in permutation_tests([[0, 0], [0, 0]], [[1, 1], [1, 0]])]
    [0.5, 1.0]
    """
    where = "permutation_tests"
    a, b = stats.numbers(where, baseline, candidates, axes=2, other="candidates")
    return tuple(_permuted(where, a, b, n_resamples, rng))


def _permuted(where: str, a: Floats, b: Floats, n_resamples: int, rng: int) -> list[PermutationTest]:
    """Test each column; all share their flips, a missing pair being a difference of 0."""
    check_count(SettingError, where, "n_resamples", n_resamples, "draw")
    stats.check_rng(where, rng)
    both = ~(np.isnan(a) | np.isnan(b))
    n = np.count_nonzero(both, axis=0)
    tests: list[PermutationTest] = []
    width = max(resampling.GROUP // max(len(a), 1), 1)
    for begin in range(0, a.shape[1], width):
        some = slice(begin, begin + width)
        x, y = (np.where(both[:, some], side[:, some], 0.0).T.copy() for side in (a, b))
        total = (y - x).sum(axis=1)
        for pairs, change, (p_value, tried, exact) in zip(
            n[some].tolist(), total.tolist(), _two_sided(stats.moved(x, y), n_resamples, rng), strict=True
        ):
            delta = change / pairs if pairs else math.nan
            found = (p_value, pairs, tried, exact) if pairs >= 2 else (math.nan, pairs, 0, False)
            tests.append(PermutationTest(delta, *found))
    return tests


def _two_sided(difference: Floats, n_resamples: int, rng: int) -> list[tuple[float, int, bool]]:
    """Give for each row of differences p, how many sign patterns were tried, and whether these are all."""
    n = difference.shape[1]
    exact = np.count_nonzero(difference, axis=1) <= ENUMERATED
    p_values, tried = np.empty(len(exact)), np.full(len(exact), n_resamples)
    for i in np.flatnonzero(exact):
        some = difference[i][difference[i] != 0]
        tried[i] = 1 << len(some)
        p_values[i] = _extreme(some[None], [resampling.all_flips(len(some))])[0] / tried[i]
    if not exact.all():
        extreme = _extreme(difference[~exact], resampling.flips(n, n_resamples, rng))
        p_values[~exact] = (extreme + 1) / (n_resamples + 1)
    return list(zip(p_values.tolist(), tried.tolist(), exact.tolist(), strict=True))


def _extreme(difference: Floats, blocks: Iterable[resampling.Draws]) -> Longs:
    """Count for each row the sign patterns whose sum is at least as far from 0.

    A sum is a tie within what rounding the differences to whole numbers, and to floats, can do.
    """
    whole, _ = resampling.whole_numbers(difference)
    total, size = whole.sum(axis=1, keepdims=True), np.abs(whole)
    slack = np.count_nonzero(whole, axis=1, keepdims=True) + 1e-12 * size.sum(axis=1, keepdims=True)
    extreme = np.zeros(len(whole), np.int64)
    for flipped in resampling.products(whole, blocks):
        extreme += np.count_nonzero(np.abs(total - 2 * flipped) >= np.abs(total) - slack, axis=1)
    return extreme


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
    if flips <= EXACT_FLIPS:
        share = math.comb(flips, few) / 2**flips
    else:
        logs = [math.lgamma(n + 1) for n in (flips, few, flips - few)]
        share = math.exp(logs[0] - logs[1] - logs[2] - flips * math.log(2))
    return float(min(1.0, max(2 * tail * share, sys.float_info.min)))


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
