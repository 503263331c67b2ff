"""What prompts cost while they are filled, over arrays: who pays a separator, and who does not."""

from __future__ import annotations

import numpy as np

from packtools.arrays import Bools, Ints


class Bill:
    """Add up rendered prompts: every chunk pays the separator behind it, except the last."""

    def __init__(self, size: Ints, joined: Ints, shape: tuple[int, int], ends_with: str) -> None:
        self._size, self._joined = size, joined
        self._gap = None if joined is size else joined - size
        self._takes = {"new": 0, "first": 1, "second": 2}[ends_with if self._gap is not None else "new"]
        self._used = np.zeros(shape, dtype=size.dtype)  # with the separator behind every chunk
        self._unpaid = np.zeros(shape, dtype=size.dtype)  # the one behind the last
        self._trial = np.empty(shape, dtype=size.dtype)
        self._n = np.zeros(shape, dtype=np.int8)  # kept so far, counted up to `takes`
        self._settled = False

    def with_chunk(self, rank: int) -> Ints:
        """Give what each prompt would cost with one chunk more."""
        if not self._takes or self._gap is None:  # the new chunk is the last
            np.add(self._used, self._size[rank], out=self._trial)
            return self._trial
        np.add(self._used, self._joined[rank], out=self._trial)
        if self._settled:
            self._trial -= self._unpaid
        else:
            self._trial -= np.where(self._n >= self._takes, self._unpaid, self._gap[rank])
        return self._trial

    def add(self, rank: int, fits: Bools) -> None:
        """Take the chunk into the prompts that it fits."""
        self._used += self._joined[rank] * fits
        if self._gap is None or self._settled:
            return
        if not self._takes:
            np.copyto(self._unpaid, self._gap[rank], where=fits)
            return
        np.copyto(self._unpaid, self._gap[rank], where=fits & (self._n < self._takes))
        np.minimum(self._n + fits, self._takes, out=self._n, casting="unsafe")
        self._settled = bool((self._n == self._takes).all())

    def total(self) -> Ints:
        """Give what each prompt costs."""
        total: Ints = self._used - self._unpaid
        return total


class KeyedBill:
    """Add up rendered prompts whose last chunk is told by a key, not by the order of filling."""

    def __init__(self, size: Ints, joined: Ints, shape: tuple[int, int], ends_with: str, key: Ints) -> None:
        self._joined, self._gap, self._key = joined, joined - size, key
        self._nth = {"new": 0, "first": 1, "second": 2}[ends_with]
        self._used = np.zeros(shape, dtype=size.dtype)
        nobody = -1 if self._nth == 0 else np.iinfo(np.int64).max
        self._edge = np.full((2, *shape), nobody, dtype=np.int64)  # keys of the last, or of the two first
        self._unpaid = np.zeros((2, *shape), dtype=size.dtype)  # and the separators behind them

    def _ends(self, rank: int) -> tuple[Ints, Ints]:
        """Give, with one chunk more, the two keys and separators that may end the prompt."""
        key, gap = self._key[rank], self._gap[rank]
        (edge, second), (unpaid, behind) = self._edge, self._unpaid
        beats = key > edge if self._nth == 0 else key < edge
        ends = np.where(beats, key, edge), np.where(beats, edge, np.minimum(second, key))
        paid = np.where(beats, gap, unpaid), np.where(beats, unpaid, np.where(key < second, gap, behind))
        return np.stack(ends), np.stack(paid)

    def _last(self, ends: Ints, unpaid: Ints) -> Ints:
        if self._nth < 2:
            return np.asarray(unpaid[0])
        return np.asarray(np.where(ends[1] == np.iinfo(np.int64).max, unpaid[0], unpaid[1]))

    def with_chunk(self, rank: int) -> Ints:
        """Give what each prompt would cost with one chunk more."""
        total: Ints = self._used + self._joined[rank] - self._last(*self._ends(rank))
        return total

    def add(self, rank: int, fits: Bools) -> None:
        """Take the chunk into the prompts that it fits."""
        ends, unpaid = self._ends(rank)
        np.copyto(self._edge, ends, where=fits)
        np.copyto(self._unpaid, unpaid, where=fits)
        self._used += self._joined[rank] * fits

    def total(self) -> Ints:
        """Give what each prompt costs."""
        total: Ints = self._used - self._last(self._edge, self._unpaid)
        return total


def bill_for(
    size: Ints, joined: Ints, shape: tuple[int, int], ends_with: str, key: Ints | None
) -> Bill | KeyedBill:
    if key is None or joined is size:
        return Bill(size, joined, shape, ends_with)
    return KeyedBill(size, joined, shape, ends_with, key)
