"""The array kernels against the plain loops that they replace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packtools import kernels
from packtools.ordering import ORDERINGS, arrangement


def plain_fit(sizes: list[int], joined: list[int], there: list[bool], budget: int, order: str) -> list[int]:
    """Fill one budget by rendering the order again for every candidate."""

    def cost(kept: list[int]) -> int:
        placed = [kept[i] for i in ORDERINGS[order].function(list(range(len(kept))))]
        return sum(joined[r] for r in placed[:-1]) + (sizes[placed[-1]] if placed else 0)

    kept: list[int] = []
    for rank, present in enumerate(there):
        if present and cost([*kept, rank]) <= budget:
            kept.append(rank)
    return kept


CELLS = st.tuples(st.integers(0, 12), st.integers(0, 3), st.booleans())


@settings(max_examples=300)
@given(
    table=st.lists(st.lists(CELLS, min_size=6, max_size=6), min_size=1, max_size=5),
    budgets=st.lists(st.integers(1, 50), min_size=1, max_size=4),
    order=st.sampled_from(["lost_in_middle", "descending", "ascending"]),
)
def test_fit_against_a_plain_loop(table, budgets, order):
    size = np.array([[c[0] for c in q] for q in table], dtype=np.int32).T.copy()
    joined = size + np.array([[c[1] for c in q] for q in table], dtype=np.int32).T
    there = np.array([[c[2] for c in q] for q in table], dtype=bool).T
    keep, used = kernels.greedy_fit(size, joined, there, budgets, ORDERINGS[order].ends_with)
    for q in range(len(table)):
        columns = [a[:, q].tolist() for a in (size, joined, there)]
        for b, budget in enumerate(budgets):
            expected = plain_fit(*columns, budget, order)
            assert np.flatnonzero(keep[:, b, q]).tolist() == expected
            placed = [expected[i] for i in arrangement(order, len(expected))]
            total = sum(columns[1][r] for r in placed[:-1]) + (columns[0][placed[-1]] if placed else 0)
            assert used[b, q] == total <= budget


@settings(max_examples=300)
@given(
    table=st.lists(
        st.permutations(range(6)).flatmap(
            lambda keys: st.tuples(st.just(keys), st.lists(CELLS, min_size=6, max_size=6))
        ),
        min_size=1,
        max_size=4,
    ),
    budgets=st.lists(st.integers(1, 50), min_size=1, max_size=3),
    order=st.sampled_from(["lost_in_middle", "descending", "ascending"]),
)
def test_fit_and_overshoot_against_a_plain_loop_where_a_key_sorts_the_prompt(table, budgets, order):
    size, gap, there = (np.array([[c[i] for c in cells] for _, cells in table]).T for i in range(3))
    size = size.astype(np.int32)
    joined = size + gap.astype(np.int32)
    key = np.array([keys for keys, _ in table], dtype=np.int64).T
    ends_with = ORDERINGS[order].ends_with
    keep, used = kernels.greedy_fit(size, joined, there.astype(bool), budgets, ends_with, key)

    def cost(kept: list[int], q: int) -> int:
        placed = ORDERINGS[order].function(sorted(kept, key=lambda r: key[r, q]))
        return int(sum(joined[r, q] for r in placed[:-1]) + (size[placed[-1], q] if placed else 0))

    for b, budget in enumerate(budgets):
        over = kernels.overshoot(size, joined, keep[:, b], budget, ends_with, key)
        for q in range(len(table)):
            kept: list[int] = []
            for row in range(6):
                assert over[row, q] == cost([*kept, row], q) - budget
                if there[row, q] and cost([*kept, row], q) <= budget:
                    kept.append(row)
            assert np.flatnonzero(keep[:, b, q]).tolist() == kept
            assert used[b, q] == cost(kept, q) <= budget


@settings(max_examples=200)
@given(
    cells=st.lists(CELLS, min_size=1, max_size=8),
    budget=st.integers(1, 40),
    order=st.sampled_from(["lost_in_middle", "descending", "ascending"]),
)
def test_overshoot_is_what_a_chunk_would_have_added_too_much(cells, budget, order):
    size = np.array([[c[0]] for c in cells], dtype=np.int32)
    joined = size + np.array([[c[1]] for c in cells], dtype=np.int32)
    there = np.array([[c[2]] for c in cells], dtype=bool)
    ends_with = ORDERINGS[order].ends_with
    keep, _ = kernels.greedy_fit(size, joined, there, [budget], ends_with)
    over = kernels.overshoot(size, joined, keep[:, 0], budget, ends_with)[:, 0]
    kept: list[int] = []
    for rank in range(len(cells)):
        trial = [*kept, rank]
        placed = [trial[i] for i in arrangement(order, len(trial))]
        total = sum(int(joined[r, 0]) for r in placed[:-1]) + int(size[placed[-1], 0])
        assert over[rank] == total - budget
        if keep[rank, 0, 0]:
            kept.append(rank)


@settings(max_examples=200)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=5, max_size=5), min_size=1, max_size=4
    )
)
def test_keep_first_against_a_dictionary(table):
    key = np.array([[c[0] for c in q] for q in table], dtype=np.int64).T
    present = np.array([[c[1] for c in q] for q in table], dtype=bool).T
    first = kernels.keep_first(key, present)
    for q, column in enumerate(table):
        seen: dict[int, int] = {}
        for rank, (k, there) in enumerate(column):
            assert first[rank, q] == (seen.get(k, -1) if there else -1)
            if there:
                seen.setdefault(k, rank)


@settings(max_examples=300)
@given(
    available=st.lists(st.booleans(), min_size=6, max_size=6),
    found=st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda p: p[0] < p[1]),
        st.tuples(st.sampled_from([0.5, 0.8, 0.9, 1.0]), st.booleans()),
    ),
    protect=st.booleans(),
    threshold=st.sampled_from([0.5, 0.8, 0.85, 1.0]),
)
def test_drop_near_against_a_plain_loop(available, found, protect, threshold):
    # Pairs of query 1; query 0 has none and must stay untouched.
    near = kernels.NearPairs.build(
        [1] * len(found), [p[0] for p in found], [p[1] for p in found],
        [v[0] for v in found.values()], [v[1] for v in found.values()],
    ).at(threshold)  # fmt: skip
    cells = np.array([[True, a] for a in available])
    kept, used = kernels.drop_near(cells, near, protect)
    expected, reasons = list(available), {}
    for low in range(6):
        rivals = [
            (-found[up, low][0], up)
            for up in range(low)
            if (up, low) in found and expected[up] and found[up, low][0] >= threshold
            and not (protect and found[up, low][1])
        ]  # fmt: skip
        if expected[low] and rivals:
            expected[low] = False
            reasons[low] = min(rivals)[1]
    assert kept[:, 0].all()
    assert kept[:, 1].tolist() == expected
    assert {int(near.lower[u]): int(near.upper[u]) for u in used} == reasons


def test_chunks_are_compared_with_kept_ones_only():
    # P46: A~B, B~C, A unlike C: B goes, C stays.
    near = kernels.NearPairs.build([0, 0], [0, 1], [1, 2], [0.9, 0.9], [False, False])
    kept, _ = kernels.drop_near(np.ones((3, 1), bool), near, protect=True)
    assert kept[:, 0].tolist() == [True, False, True]


@pytest.mark.parametrize("order", ["lost_in_middle", "descending", "ascending"])
@settings(max_examples=60)
@given(keep=st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=1, max_size=5))
def test_layout_against_the_ordering_on_lists(order, keep):
    layout = kernels.lay_out(np.array(keep).T, lambda n: arrangement(order, n))
    for q, column in enumerate(keep):
        ranks = [r for r, kept in enumerate(column) if kept]
        assert layout.rank[layout.start[q] : layout.start[q + 1]].tolist() == ORDERINGS[order].function(ranks)


def test_running_starts_count_the_gaps_within_a_query():
    layout = kernels.Layout(np.array([0, 0, 2]), np.array([0, 1, 0]), np.array([0, 2, 2, 3]))
    assert kernels.running_starts(layout, np.array([5, 7, 3]), 2).tolist() == [0, 7, 0]
    assert kernels.group_sum(np.array([5, 7, 3]), layout.start).tolist() == [12, 0, 3]


def test_distinct_sorts_and_drops_repeats():
    assert kernels.distinct(np.array([3, 1, 3, 2, 1])).tolist() == [1, 2, 3]
    assert kernels.distinct(np.zeros(0, np.int64)).tolist() == []
