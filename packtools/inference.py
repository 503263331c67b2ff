"""Many settings against one baseline: means, intervals and corrected tests, each distinct one once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from packtools.arrays import Floats
from packtools.significance import holm, mcnemar, permutation_tests
from packtools.stats import paired_bootstrap_many

__all__ = ["against_first", "distinct_rows", "means", "p_values"]


def means(values: Floats) -> Floats:
    """Give the mean of each row over what is scored; NaN without any.

    Parameters
    ----------
    values : ndarray of float64, shape (n_settings, n_queries)
    """
    scored = ~np.isnan(values)
    count = scored.sum(axis=1)
    total = np.where(scored, values, 0.0).sum(axis=1)
    return np.asarray(np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0))


def distinct_rows(values: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Find rows with the same bits: the first of each kind, and of which kind each row is."""
    known: dict[bytes, int] = {}
    firsts: list[int] = []
    kind = np.empty(len(values), dtype=np.int64)
    for place, row in enumerate(values):
        key = row.tobytes()
        if key not in known:
            known[key] = len(firsts)
            firsts.append(place)
        kind[place] = known[key]
    return np.array(firsts, dtype=np.int64), kind


def against_first(values: Mapping[str, Floats], *, rng: int = 0) -> dict[str, dict[str, Floats]]:
    """Compare every row of each metric with the first one.

    Parameters
    ----------
    values : mapping of metric to ndarray of float64, shape (1 + n_settings, n_queries)
        The baseline first; NaN is "not scored".
    rng : int, default 0

    Returns
    -------
    dict of metric to dict of ndarray of float64, shape (1 + n_settings,)
        delta, ci_low, ci_high, p_value, p_holm; NaN for the baseline itself.

    Notes
    -----
    Each row gives what `compare` gives for it. Rows with the same values are one comparison and one
    test of Holm's family, which is the metric. All metrics share their draws.
    """
    kinds, rows, bases = {}, [], []
    for name, table in values.items():
        firsts, kinds[name] = distinct_rows(table[1:])
        rows.append(table[1:][firsts])
        bases.append(np.broadcast_to(table[0], rows[-1].shape))
    if not rows:
        return {}
    base, here = np.concatenate(bases).T, np.concatenate(rows).T
    deltas = paired_bootstrap_many(base, here, rng=rng)
    p_value = p_values(base, here, rng)
    ends = np.cumsum([len(r) for r in rows])[:-1]
    columns = [[d.delta for d in deltas], [d.low for d in deltas], [d.high for d in deltas], p_value]
    parts = [np.split(np.asarray(column), ends) for column in columns]
    out = {}
    for name, delta, low, high, p in zip(values, *parts, strict=True):
        found = {"delta": delta, "ci_low": low, "ci_high": high, "p_value": p, "p_holm": holm(p)}
        out[name] = {part: np.append(np.nan, column[kinds[name]]) for part, column in found.items()}
    return out


def p_values(base: Floats, here: Floats, rng: int) -> Floats:
    """Test each column: by its flips where both sides are 0 or 1, else by random signs.

    Parameters
    ----------
    base, here : ndarray of float64, shape (n_queries, n_columns)
        NaN is "not scored".
    rng : int
    """
    unscored = np.isnan(base) | np.isnan(here)
    binary = (((base == 0) | (base == 1)) & ((here == 0) | (here == 1)) | unscored).all(axis=0)
    out = np.full(len(binary), np.nan)
    for place in np.flatnonzero(binary).tolist():
        out[place] = mcnemar(base[:, place], here[:, place]).p_value
    other = np.flatnonzero(~binary)
    if len(other):
        out[other] = [t.p_value for t in permutation_tests(base[:, other], here[:, other], rng=rng)]
    return out
