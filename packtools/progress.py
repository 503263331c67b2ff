"""A progress bar for anything that takes over a second; silent before that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Pass items on, with a bar named `what` after one second."""
    from tqdm.auto import tqdm

    yield from tqdm(items, desc=what, total=total, delay=1.0, leave=False)


def byte_progress(blocks: Iterable[bytes], what: str, total: int | None = None) -> Iterator[bytes]:
    """Pass blocks on, with a bar of bytes named `what` after one second."""
    from tqdm.auto import tqdm

    with tqdm(desc=what, total=total, unit="B", unit_scale=True, delay=1.0, leave=False) as bar:
        for block in blocks:
            yield block
            bar.update(len(block))
