"""Parquet files: written the same on every repeat; read by column name, each column checked."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd

from packtools.errors import RunFormatError, fail
from packtools.runs.report import LoadReport


def arrow() -> Any:
    """Give pyarrow with its Parquet part, loaded when a file is first touched."""
    importlib.import_module("pyarrow.parquet")
    return importlib.import_module("pyarrow")


def write(columns: dict[str, Any], path: Path) -> None:
    """Write arrow arrays by name; the same arrays give the same bytes."""
    pa = arrow()
    pa.parquet.write_table(pa.table(columns), path, compression="zstd")


class ParquetTable:
    """Hold the columns of one Parquet file, or of a folder of them; each is checked as it is taken.

    Parameters
    ----------
    path : Path
    label : str
        What messages call it.
    report : LoadReport
    needed : sequence of str
        Columns that must be there.
    optional : sequence of str or None
        Columns that are read if they are there; None reads all there are.
    """

    def __init__(
        self,
        path: Path,
        label: str,
        report: LoadReport,
        needed: Sequence[str],
        optional: Sequence[str] | None = (),
    ) -> None:
        self.pa, self.label, self.report = arrow(), label, report
        if not path.exists():
            raise RunFormatError(
                f"load_run: {label} is missing. A part is a folder with candidates.parquet, queries.parquet "
                "and passages.parquet."
            )
        with self._readable():
            data = self.pa.parquet.ParquetDataset(path, partitioning=None, pre_buffer=False)
            names = list(data.schema.names)
            for column in needed:
                if column not in names:
                    fail(RunFormatError, f"load_run: {label}", column, "one of the columns", names)
            wanted = names if optional is None else [n for n in names if n in (*needed, *optional)]
            self.table = data.read(columns=wanted, use_threads=False)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __contains__(self, column: str) -> bool:
        return column in self.table.column_names

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except RunFormatError:
            raise
        except (self.pa.ArrowException, OSError, UnicodeError) as error:
            raise RunFormatError(f"load_run: {self.label} can't be read: {error}. Write it again.") from error

    def refuse(self, column: str, row: int | None, rule: str, value: object, hint: str = "") -> NoReturn:
        """Raise for a column, or for one row of it (counted from 0)."""
        place = "" if row is None else f", row {row + 1:,}"
        fail(RunFormatError, f"load_run: {self.label}{place}", column, rule, value, hint)

    def _kind(self, column: str) -> Any:
        kind = self.table.column(column).type
        return kind.value_type if self.pa.types.is_dictionary(kind) else kind

    def _is_text(self, kind: Any) -> bool:
        types = self.pa.types
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))

    def _no_null(self, column: str, values: Any, rule: str, hint: str) -> None:
        if values.null_count:
            at = self.pa.compute.index(self.pa.compute.is_null(values), True).as_py()
            self.refuse(column, at, rule, None, hint)

    def ids(self, column: str) -> pd.Categorical:
        """Take ids: text; whole numbers are written out and reported."""
        kind = self._kind(column)
        rule = "an id (text) in every row"
        if self.pa.types.is_integer(kind):
            self.report.ignored(self.label, f"numeric {column!r} read as text", n=len(self))
        elif not self._is_text(kind):
            self.refuse(column, None, rule, str(kind), "Write the ids as text.")
        with self._readable():
            values = self._as_text(column)
            self._no_null(column, values, rule, "Leave the row out, or give it an id.")
            encoded = values.dictionary_encode().combine_chunks()
            if isinstance(encoded, self.pa.ChunkedArray):
                encoded = encoded.chunk(0)
            names = np.array(encoded.dictionary.to_pylist(), dtype=object)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        if "" in names:
            self.refuse(column, int(np.flatnonzero(names[codes] == "")[0]), rule, "")
        return pd.Categorical.from_codes(codes, pd.Index(names, dtype=object))

    def _as_text(self, column: str) -> Any:
        values = self.table.column(column)
        if self.pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        return values.cast(self.pa.large_string())

    def texts(self, column: str, nothing: str | None = None) -> npt.NDArray[np.object_]:
        """Take texts; a null counts as `nothing`, or is refused."""
        rule = "a text in every row"
        if not self._is_text(self._kind(column)) and not (nothing is not None and self._all_null(column)):
            self.refuse(column, None, rule, str(self._kind(column)))
        with self._readable():
            values = self._as_text(column)
            if nothing is None:
                self._no_null(column, values, rule, "Leave the row out, or write ''.")
            else:
                values = values.fill_null(nothing)
            found: npt.NDArray[np.object_] = values.to_numpy(zero_copy_only=False)
            return found.astype(object)

    def _all_null(self, column: str) -> bool:
        return bool(self.pa.types.is_null(self._kind(column)))

    def numbers(self, column: str, rule: str) -> npt.NDArray[Any]:
        """Take numbers as they are stored; a null is refused."""
        kind = self._kind(column)
        types = self.pa.types
        if not types.is_integer(kind) and not (types.is_floating(kind) and "whole" not in rule):
            self.refuse(column, None, rule, str(kind))
        values = self.table.column(column)
        self._no_null(column, values, rule, "Leave the row out, or give it a number.")
        return np.asarray(values.to_numpy(zero_copy_only=False))

    def scores(self, column: str) -> npt.NDArray[np.float64]:
        """Take numbers as float64; a null is NaN."""
        kind = self._kind(column)
        types = self.pa.types
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind)):
            self.refuse(column, None, "numbers", str(kind))
        with self._readable():
            values = self.table.column(column).cast(self.pa.float64(), safe=False)
            return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)

    def text_lists(self, column: str) -> list[tuple[str, ...]]:
        """Take lists of texts; a null list is empty."""
        types, kind = self.pa.types, self.table.column(column).type
        is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        rule = "a list of texts in every row"
        if not is_list or not (self._is_text(kind.value_type) or types.is_null(kind.value_type)):
            self.refuse(column, None, rule, str(kind))
        with self._readable():
            found = [tuple(given or ()) for given in self.table.column(column).to_pylist()]
        for row, given in enumerate(found):
            if None in given:
                self.refuse(column, row, rule, list(given))
        return found

    def rest(self, columns: Sequence[str]) -> pd.DataFrame:
        """Take columns as they are."""
        with self._readable():
            frame: pd.DataFrame = self.table.select(list(columns)).to_pandas(ignore_metadata=True)
            return frame
