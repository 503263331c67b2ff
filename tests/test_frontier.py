"""The Pareto front against enumeration and theory."""

from __future__ import annotations

import numpy as np
import pytest

from packtools.frontier import front, front_share


def front_by_pairs(cost, quality):
    """Compare every two settings."""
    n = len(cost)
    return [
        not any(
            cost[j] <= cost[i] and quality[j] >= quality[i] and (cost[j] < cost[i] or quality[j] > quality[i])
            for j in range(n)
        )
        for i in range(n)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_front_against_all_pairs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    cost, quality = rng.integers(0, 4, (2, n))  # few values, so that many are equal
    assert front(cost, quality).tolist() == front_by_pairs(cost, quality)


def test_fronts_of_many_resamples_are_those_of_each():
    rng = np.random.default_rng(3)
    cost, quality = rng.integers(0, 5, (2, 50, 7)).astype(float)
    together = front(cost, quality)
    assert together.shape == (50, 7)
    for one, c, q in zip(together, cost, quality, strict=True):
        assert one.tolist() == front_by_pairs(c, q)


def test_what_is_not_scored_is_not_on_the_front():
    assert front([1, np.nan, 3], [np.nan, 1, 0.5]).tolist() == [False, False, True]
    assert front([np.nan], [np.nan]).tolist() == [False]


def test_share_of_resamples_against_theory():
    # Of two queries drawn twice, B is better where the first is drawn twice: 1 in 4.
    cost = np.array([[1.0, 1.0], [2.0, 2.0]])
    quality = np.array([[0.0, 1.0], [1.0, 0.0]])
    share = front_share(cost, quality, n_resamples=20_000)
    assert share[0] == 1.0
    assert share[1] == pytest.approx(0.25, abs=0.01)


def test_a_setting_that_others_always_beat_is_never_on_the_front():
    cost = np.array([[1.0] * 6, [2.0] * 6, [1.0] * 6])
    quality = np.array([[1.0] * 6, [0.9] * 6, [1.0] * 6])
    assert front_share(cost, quality).tolist() == [1.0, 0.0, 1.0]  # equal ones are on it together


def test_queries_that_are_not_scored_count_for_their_cost_alone():
    # Quality is scored for query 0 only; a resample without it leaves nothing to compare: (1/2)**2.
    quality = np.array([[1.0, np.nan], [0.5, np.nan]])
    share = front_share(np.array([[1.0, 3.0], [2.0, 2.0]]), quality, n_resamples=20_000)
    assert share[0] == pytest.approx(0.75, abs=0.01)
    assert share[1] == pytest.approx(0.0, abs=0.01)  # dearer where query 0 is drawn twice, never cheaper else


def test_settings_that_differ_by_rounding_are_equal():
    # Thirds and sixths that sum to the same: 2 x 2/3 = 1/3 + 1, in exact numbers.
    cost = np.ones((2, 72))
    quality = np.ones((2, 72))
    quality[0, 0] = 1 / 3
    quality[1, :2] = 2 / 3
    assert front(cost.mean(axis=1), quality.mean(axis=1)).tolist() == [True, True]
    # Of the draws, A is beaten where query 0 is drawn more often than query 1 ...; equal where as often.
    counts = np.random.default_rng(0).multinomial(72, np.full(72, 1 / 72), size=20_000)[:, :2]
    loss = np.array([2 * counts[:, 0], counts[:, 0] + counts[:, 1]])  # in thirds
    expected = [(loss[0] <= loss[1]).mean(), (loss[1] <= loss[0]).mean()]
    assert front_share(cost, quality, n_resamples=20_000).tolist() == pytest.approx(expected, abs=0.015)
