"""How much worse can a candidate be? Non-inferiority: a loss above a margin, ruled out or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from packtools import stats
from packtools.arrays import Floats
from packtools.errors import SettingError, fail, is_number
from packtools.stats import OverPairs

__all__ = ["NonInferiority", "non_inferiority", "non_inferiority_tests"]

ROUNDING = 1e-9
"""How far a value may stand outside 0 to 1 by rounding."""


@dataclass(frozen=True)
class NonInferiority(OverPairs):
    """Hold the answer to: is the candidate at most `margin` worse?

    `p_value` is that of "it is worse by the margin or more": `passes` if it is at most 1 - `confidence`.
    `bound` is the worst difference (candidate - baseline) that the data leave open: a lower bound if
    higher is better, else an upper one. `smallest_margin` (0 or more) would just pass. Not testable:
    all three are NaN and `passes` is False.
    """

    passes: bool
    p_value: float
    bound: float
    smallest_margin: float
    margin: float
    delta: float
    n: int
    confidence: float
    higher_is_better: bool


def non_inferiority(
    baseline: npt.ArrayLike,
    candidate: npt.ArrayLike,
    margin: float,
    *,
    higher_is_better: bool = True,
    confidence: float = 0.95,
) -> NonInferiority:
    """Decide whether the candidate is at most `margin` worse than the baseline.

    "No measurable difference" is not "no loss"; here the data must show that a loss is small, and few
    queries never do, however equal they look. A score test: the spread is what it would be if the true
    loss were as large as the margin.

    1. d is the mean difference, positive if better; x = d + margin is how much better than the margin.
    2. If the true loss were the margin, with gains as seen, losses would have to sum to margin + gains.
       Losses are as large as those seen and one more, the worst there can be: 1 for values of 0 to 1,
       else the largest difference seen. The variance is that of such gains and losses, or of the
       differences seen if that is larger.
    3. p is the normal tail beyond x / sqrt(variance / (n - 1)), but not below the chance to see none of
       n queries lost if x were lost in losses of the worst size: (1 - x / worst) ** n, the rule of three.

    Parameters
    ----------
    baseline, candidate
        As in `paired_bootstrap`; pairs with a missing value are left out.
    margin : float
        Loss that is still accepted, in the metric's unit, 0 or more. Choose it before looking.
    higher_is_better : bool, default True
    confidence : float, default 0.95
        Of the one-sided bound, above 0.5.

    Raises
    ------
    SettingError
        If the lengths differ, a value is not a finite number, or a setting breaks its rule.

    Notes
    -----
    Differences within rounding of their sides are 0. No random draws. A larger margin never has a larger
    p. For a 0/1 metric without gains this is the score test of one share; where a loss or two decide, a
    loss as large as the margin may pass in up to 6.5 of 100 samples (at 95 %), on average in 4. With
    gains it is stricter than Tango's, which fits the gains too. Values that have no worst (tokens) can
    hide a loss larger than all that were seen.

    References
    ----------
    Tango (1998), Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design, Statistics in Medicine 17:891-908. Hanley, Lippman-Hand (1983), If nothing goes
    wrong, is everything all right?, JAMA 249. Piaggio et al. (2012), Reporting of noninferiority and
    equivalence randomized trials, JAMA 308.

    Examples
    --------
    >>> found = non_inferiority([1, 1, 1, 1], [1, 1, 1, 1], 0.01)
    >>> found.passes, round(found.smallest_margin, 2)
    (False, 0.53)
    """
    where = "non_inferiority"
    a, b = stats.numbers(where, baseline, candidate)
    return _judged(where, a[:, None], b[:, None], margin, higher_is_better, confidence)[0]


def non_inferiority_tests(
    baseline: npt.ArrayLike,
    candidates: npt.ArrayLike,
    margin: float,
    *,
    higher_is_better: bool = True,
    confidence: float = 0.95,
) -> tuple[NonInferiority, ...]:
    """Judge many candidates by one metric and margin, such as every setting of a sweep.

    Each column gives what `non_inferiority` gives for it, to the last bit. Of many that pass, some do by
    chance: correct the p-values with `holm`.

    Parameters
    ----------
    baseline, candidates : array-like of float, shape (n_queries, n_candidates)
        NaN where a query is not scored. Two DataFrames must have equal indexes and columns; a baseline
        that all share is `np.broadcast_to(values[:, None], shape)`.
    margin, higher_is_better, confidence
        As in `non_inferiority`.

    Returns
    -------
    tuple of NonInferiority
        One for each column.

    Raises
    ------
    SettingError
        As in `non_inferiority`.

    Examples
    --------
    >>> import numpy as np
    >>> same, one_lost = np.ones(500), np.arange(500) > 0
    >>> both = np.column_stack([same, one_lost])
    >>> [round(f.smallest_margin, 3) for f in non_inferiority_tests(np.ones((500, 2)), both, 0.01)]
    [0.006, 0.009]
    """
    where = "non_inferiority_tests"
    a, b = stats.numbers(where, baseline, candidates, axes=2, other="candidates")
    return tuple(_judged(where, a, b, margin, higher_is_better, confidence))


def check_asked(where: str, margin: float, confidence: float) -> None:
    """Refuse a margin or a confidence that breaks its rule."""
    stats.check_size(where, "margin", margin)
    if margin > stats.LARGEST:
        fail(SettingError, where, "margin", f"at most {stats.LARGEST:g}", margin)
    if not is_number(confidence) or not 0.5 < confidence < 1:
        fail(SettingError, where, "confidence", "above 0.5 and below 1", confidence)


def _judged(
    where: str, a: Floats, b: Floats, margin: float, higher_is_better: bool, confidence: float
) -> list[NonInferiority]:
    check_asked(where, margin, confidence)
    stats.check_flag(where, higher_is_better)
    margin, confidence, sign = float(margin), float(confidence), 1 if higher_is_better else -1
    found: dict[int, NonInferiority] = {}
    for columns, x, y in stats.in_groups(a, b):
        n = x.shape[1]
        delta = (y - x).mean(axis=1) if n else np.full(len(columns), np.nan)
        p_values, least = np.full((2, len(columns)), np.nan)
        if n >= 2:
            losses = _Losses(sign * stats.moved(x, y), _worst(x, y))
            p_values, least = losses.p_values(margin), losses.smallest(1 - confidence)
        each = zip(columns.tolist(), p_values.tolist(), least.tolist(), delta.tolist(), strict=True)
        for column, p_value, loss, mean in each:
            smallest = loss if math.isnan(loss) else max(0.0, loss)
            asked = margin, mean, n, confidence, bool(higher_is_better)
            found[column] = NonInferiority(loss <= margin, p_value, 0.0 - sign * loss, smallest, *asked)
    return [found[column] for column in range(a.shape[1])]


def _worst(a: Floats, b: Floats) -> Floats:
    """Give the largest loss that each row can have: 1 for values of 0 to 1, else the largest change."""
    low = np.minimum(a.min(axis=1), b.min(axis=1))
    high = np.maximum(a.max(axis=1), b.max(axis=1))
    bounded = (low >= -ROUNDING) & (high <= 1 + ROUNDING)
    return np.where(bounded, 1.0, np.abs(stats.moved(a, b)).max(axis=1))


class _Losses:
    """Rows of differences, positive if better, and what a hypothesised true loss makes of them."""

    def __init__(self, difference: Floats, worst: Floats) -> None:
        gain, loss = np.maximum(difference, 0), np.maximum(-difference, 0)
        self.n, self.worst = difference.shape[1], worst
        self.mean, self.variance = difference.mean(axis=1), difference.var(axis=1)
        self.gain, self.gain_squares = gain.mean(axis=1), (gain**2).mean(axis=1)
        total = loss.sum(axis=1) + worst
        squares = (loss**2).sum(axis=1) + worst**2
        self.size = np.divide(squares, total, out=np.zeros_like(total), where=total > 0)

    def p_values(self, margin: float) -> Floats:
        """Give the chance of a mean as good as this if the true loss were the margin."""
        better = self.mean + margin
        supposed = self.gain_squares + (self.gain + margin) * self.size - margin**2
        error = np.sqrt(np.maximum(self.variance, supposed) / (self.n - 1))
        surely = np.where(better < 0, -math.inf, math.inf)
        z = np.divide(better, error, out=surely.copy(), where=error > 0)
        tail = np.array([math.erfc(value / math.sqrt(2)) / 2 for value in z.tolist()])
        share = np.divide(better, self.worst, out=surely, where=self.worst > 0)
        return np.asarray(np.maximum(tail, (1 - np.clip(share, 0, 1)) ** self.n))

    def smallest(self, alpha: float) -> Floats:
        """Give the margin at which p is alpha; below 0 if even a gain can be claimed.

        Each of the three parts of p gives a margin that is large enough for it; the second is the larger
        root of (n - 1) (mean + m)**2 = z**2 x the variance supposed at m.
        """
        z, free = NormalDist().inv_cdf(1 - alpha), self.n - 1
        seen = z * np.sqrt(self.variance / free) - self.mean
        square, half = free + z**2, free * self.mean - z**2 * self.size / 2
        rest = free * self.mean**2 - z**2 * (self.gain_squares + self.gain * self.size)
        supposed = (np.sqrt(np.maximum(half**2 - square * rest, 0)) - half) / square
        unseen = self.worst * (1 - alpha ** (1 / self.n)) - self.mean
        return np.asarray(np.maximum.reduce([seen, supposed, unseen]))
