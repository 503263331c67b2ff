"""The Pareto front of cost and quality, and how often a setting is on it when the queries are drawn anew.

Works on arrays of per-query values; knows nothing of packs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from packtools import stats
from packtools.arrays import Bools, Floats
from packtools.resampling import resampled_sums

__all__ = ["front", "front_share"]


def front(cost: npt.ArrayLike, quality: npt.ArrayLike) -> Bools:
    """Mark the settings that no other one beats: at most as costly, at least as good, one of them truly.

    Parameters
    ----------
    cost, quality : array-like of float, shape (..., n_settings)
        Lower cost and higher quality are better; NaN is never on the front.

    Returns
    -------
    ndarray of bool, same shape
        Equal settings are on the front together; equal is within 1e-9 of the largest value.

    Notes
    -----
    Cost: one sort of the settings.

    Examples
    --------
    >>> front([1, 2, 3, 3], [0.5, 0.9, 0.8, 0.9]).tolist()
    [True, True, False, False]
    """
    c, q = np.broadcast_arrays(np.asarray(cost, np.float64), np.asarray(quality, np.float64))
    scored = ~(np.isnan(c) | np.isnan(q))
    c, q = (_levels(np.where(scored, side, 0.0)) for side in (c, q))
    c, q = np.where(scored, c, np.inf), np.where(scored, q, -np.inf)
    order = np.lexsort((-q, c), axis=-1)
    c, q = np.take_along_axis(c, order, -1), np.take_along_axis(q, order, -1)
    before = np.concatenate(
        [np.full((*q.shape[:-1], 1), -np.inf), np.maximum.accumulate(q, -1)[..., :-1]], -1
    )
    opens = np.ones(c.shape, dtype=bool)  # the best of those that cost the same
    opens[..., 1:] = c[..., 1:] != c[..., :-1]
    best = np.maximum.accumulate(np.where(opens, np.arange(c.shape[-1]), 0), -1)
    good = (q > before) & opens
    good = np.take_along_axis(good, best, -1) & (q == np.take_along_axis(q, best, -1))
    out = np.zeros(c.shape, dtype=bool)
    np.put_along_axis(out, order, good, -1)
    return np.asarray(out & scored)


def _levels(values: Floats) -> Floats:
    """Round values, so that those which differ by rounding alone are equal."""
    scale = np.abs(values).max(initial=0.0)
    return np.asarray(np.round(values * (1e9 / scale)) if scale > 0 else values)


def front_share(cost: Floats, quality: Floats, *, n_resamples: int = stats.RESAMPLES, rng: int = 0) -> Floats:
    """Give the share of resamples of the queries in which each setting is on the front.

    Parameters
    ----------
    cost, quality : ndarray of float64, shape (n_settings, n_queries)
        Oriented as in `front`; NaN where a query is not scored. A cost that is not known for every
        query is none.
    n_resamples : int, default 2000
    rng : int, default 0

    Returns
    -------
    ndarray of float64, shape (n_settings,)

    Notes
    -----
    Queries are drawn with both their cost and their quality, the same draws for all settings; means
    are over the drawn queries that are scored.
    """
    unknown = np.isnan(cost).any(axis=1)
    means = [_resampled_means(values, n_resamples, rng) for values in (cost, quality)]
    means[0][:, unknown] = np.nan
    return np.asarray(front(*means).mean(axis=0))


def _resampled_means(values: Floats, n_resamples: int, rng: int) -> Floats:
    """Give the mean of each setting in each resample: shape (n_resamples, n_settings)."""
    scored = ~np.isnan(values)
    total = resampled_sums(np.where(scored, values, 0.0).T, n_resamples, rng)
    if scored.all():
        return np.asarray(total.T / values.shape[1])
    count = resampled_sums(scored.T.astype(np.float64), n_resamples, rng)
    return np.asarray(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0).T)
