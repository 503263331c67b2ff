"""Rows of the benchmark table for loading: against pandas on the same files, and other run readers."""

from __future__ import annotations

import csv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
from timing import Row, alternate

from packtools import load_run

TIMES = 2
"""How often pandas may read the files while `load_run` reads and joins them once."""


def with_pandas(folder: Path, ids_as_text: bool) -> list[pd.DataFrame]:
    """Read the run and the collection as tables; without more said, pandas takes ids for numbers."""
    tables = []
    for name, separator, ids in (("bench.run", " ", (0, 2)), ("collection.tsv", "\t", (0, 1))):
        options = {"dtype": dict.fromkeys(ids, str), "na_filter": False} if ids_as_text else {}
        path, literal = folder / name, csv.QUOTE_NONE
        tables.append(pd.read_csv(path, sep=separator, header=None, quoting=literal, **options))
    return tables


def with_ranx(folder: Path) -> object:
    """Read the run with ranx."""
    from ranx import Run

    return Run.from_file(str(folder / "bench.run"), kind="trec")


def with_ir_measures(folder: Path) -> object:
    """Read the run with ir_measures."""
    import ir_measures

    return list(ir_measures.read_trec_run(str(folder / "bench.run")))


OTHERS: dict[str, Callable[[Path], object]] = {"ranx": with_ranx, "ir_measures": with_ir_measures}


def loading_rows(folder: Path, repeat: int) -> list[Row]:
    """Time `load_run` on a run and its collection; others that are installed read the run alone."""
    files = [folder / "bench.run", folder / "collection.tsv"]
    rows = []
    for ids_as_text, words in (
        (False, "pandas.read_csv, ids guessed"),
        (True, "pandas.read_csv, ids as text"),
    ):
        pairs = alternate(
            lambda _: load_run(files), lambda _, text=ids_as_text: with_pandas(folder, text), repeat, TIMES
        )
        rows.append(Row("load a run and its collection", f"{TIMES} × {words}", pairs, 1))
    for name, other in OTHERS.items():
        if find_spec(name) is None:
            continue
        other(folder)  # ranx compiles at its first run
        pairs = alternate(lambda _: load_run(files), lambda _, read=other: read(folder), repeat)
        rows.append(Row("load a run and its collection", f"{name}, the run alone", pairs, 2, faster=True))
    return rows
