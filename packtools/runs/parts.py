"""`partition`: store a run as a folder of Parquet parts, each with all that its queries need."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from packtools.errors import RunFormatError, SettingError, check_count, fail, shown
from packtools.progress import progress
from packtools.runs.layout import (
    FORMAT,
    MANIFEST,
    OWN_COLUMNS,
    PLACE,
    TABLES,
    UNFINISHED,
    VERSION,
    WEIGHTS,
    find_parts,
    is_part,
    part_files,
    parts_of,
    read_manifest,
)
from packtools.runs.model import Run
from packtools.runs.parquet import arrow, write
from packtools.runs.read_parts import Part
from packtools.runs.write import write_whole
from packtools.terms import fit_vectoriser

__all__ = ["is_partition", "part_files", "partition", "parts_of"]

ROWS = 1_000_000
_PART = re.compile(r"\.?part-[0-9]{5,}")

Columns = dict[str, Any]
Longs = npt.NDArray[np.int64]


def partition(
    run: Run | str | Path, folder: str | Path, *, parts: int | None = None, rows: int = ROWS
) -> list[Path]:
    """Store a run as a folder of parts, so that each can be read and swept by itself.

    A query and all its candidates are in one part. What `evaluate` gives for a part is what it
    gives for these queries in the whole run, bit for bit.

    Parameters
    ----------
    run : Run or path
        A path goes through `load_run`.
    folder : str or Path
        Made if it is not there. One that holds a partition already, finished or not, is
        overwritten; one with anything else in it is refused.
    parts : int or None, default None
        Number of parts, of about equal numbers of rows.
    rows : int, default 1,000,000
        Rows (candidates) in a part, about; without `parts`.

    Returns
    -------
    list of Path
        The folders of the parts, in the order of the run's queries. ``load_run(folder)`` reads them
        all, ``load_run(part)`` one.

    Raises
    ------
    SettingError
        If `parts` is more than there are queries, or the folder holds anything else.

    Notes
    -----
    The layout, which any other program may write::

        folder/manifest.json          {"format": "packtools-parts", "version": 1}, written last
        folder/weights.parquet        term, idf: the TF-IDF weights of the whole run   (optional)
        folder/part-00000/candidates.parquet   qid, docid, rank, score and any more    (score optional)
        folder/part-00000/queries.parquet      qid, text, in the order of the run
        folder/part-00000/passages.parquet     docid, title, text of its candidates    (title optional)
        folder/part-00000/qrels.parquet        qid, docid, label                       (optional)
        folder/part-00000/answers.parquet      qid, answers: a list of texts           (optional)

    Parts are read in the order that the manifest's list ``"parts": [{"name": …}]`` has, or by name
    without such a list. Ids are text; whole numbers are read as text. A table may be a folder of
    Parquet files. The column ``_place`` says where a row, or its docid, stood in the whole run, so
    that all parts together give the same tables in the same order; it may be absent.

    Left out are passages that no candidate names, judged queries that are not in the run, and
    columns of passages besides title and text. Judged documents that were not retrieved stay.

    Without weights.parquet a part can't be cut by the sentence selections "tfidf" and "mmr", which
    weigh words by the passages of the whole run; all else works. Of several partitions in one folder
    (`parts_of` finds them all) each has its own weights: their parts are weighed apart, and all
    together can't be.

    The same run and pyarrow give the same bytes. Cost: the run is in memory, and one part more.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from packtools import load_run, load_sample
    >>> with TemporaryDirectory() as folder:
    ...     first, *_ = partition(load_sample(), folder, parts=3)
    ...     load_run(first).n_queries, load_run(folder).n_queries
    (24, 72)
    """
    if not isinstance(run, Run):
        from packtools.runs.load import load_run

        run = load_run(run)
    source = _Source(run)
    wanted = None if parts is None else check_count(SettingError, "partition", "parts", parts, "part")
    if wanted is not None and wanted > run.n_queries:
        rule = f"at most the number of queries, {run.n_queries:,}"
        fail(SettingError, "partition", "parts", rule, parts, "A query is not divided.")
    whole = check_count(SettingError, "partition", "rows", rows, "row")
    n = wanted or min(-(-len(run.candidates) // whole), run.n_queries)
    bounds = blocks(source.start, n)
    terms = source.terms()
    home = Path(folder)
    _claim(home)
    if terms is not None:
        _write_weights(home, *terms)
    made = [
        source.write(home / f"part-{number:05d}", int(bounds[number]), int(bounds[number + 1]))
        for number in progress(range(n), "write parts", n)
    ]
    _write_manifest(home, run, made)
    return [home / part["name"] for part in made]


def is_partition(path: str | Path) -> bool:
    """Whether `load_run` reads a path as parts: a partition, a part, or a folder of partitions."""
    folder = Path(path)
    if not os.path.isdir(folder):
        return False
    if is_part(folder) or read_manifest(folder) is not None or (folder / UNFINISHED).exists():
        return True
    from packtools.runs.load import holds_run

    return not holds_run(folder) and bool(find_parts(folder))


def blocks(start: Longs, n: int) -> Longs:
    """Divide queries into contiguous blocks of about equal numbers of rows.

    Parameters
    ----------
    start : ndarray of int64, shape (n_queries + 1,)
        Rows ``start[i]:start[i + 1]`` are those of query i.
    n : int
        Number of blocks, at most that of the queries.

    Returns
    -------
    ndarray of int64, shape (n + 1,)
        Queries ``bounds[i]:bounds[i + 1]`` are those of block i; none is empty.

    Examples
    --------
    >>> blocks(np.array([0, 10, 20, 60, 70]), 2).tolist()
    [0, 2, 4]
    """
    last = len(start) - 1
    bounds = np.zeros(n + 1, dtype=np.int64)
    for block in range(1, n):
        target = start[-1] * block / n
        after = int(np.searchsorted(start, target))
        near = after if after == 0 or start[after] - target < target - start[after - 1] else after - 1
        bounds[block] = min(max(near, bounds[block - 1] + 1), last - (n - block))
    bounds[n] = last
    return bounds


class _Source:
    """Hold a run so that the rows of any block of queries are slices."""

    def __init__(self, run: Run) -> None:
        self.run, self.pa = run, arrow()
        frame = run.candidates
        query = frame["qid"].cat.codes.to_numpy()
        if list(frame["qid"].cat.categories) != list(run.queries.index) or (query[1:] < query[:-1]).any():
            hint = "Build the run with Run.from_frames."
            fail(RunFormatError, "partition", "run", "a run sorted by query", run.name, hint)
        self.start: Longs = np.searchsorted(query, np.arange(run.n_queries + 1)).astype(np.int64)
        self.docid = frame["docid"].cat.codes.to_numpy()
        self.docids = frame["docid"].cat.categories.to_numpy(dtype=object)
        self.row = run.passages.index.get_indexer(frame["docid"].cat.categories)
        self.more = self._more()
        self.judged, self.judged_start = self._judged()

    def _more(self) -> Any:
        """Convert the extra columns of the candidates as a whole, so that all parts have the same types."""
        extra = [c for c in self.run.candidates if c not in OWN_COLUMNS[:4]]
        if PLACE in extra or not all(isinstance(c, str) for c in extra):
            rule = f"a run whose extra columns have names, other than {PLACE!r}"
            fail(SettingError, "partition", "run", rule, extra)
        try:
            table = self.pa.Table.from_pandas(self.run.candidates[extra], preserve_index=False)
        except self.pa.ArrowException as error:
            raise SettingError(
                f"partition: an extra column of the candidates can't be stored: {error}. Give each one type."
            ) from error
        return table

    def _judged(self) -> tuple[Longs, Longs]:
        """Give the rows of the qrels by query, and where those of each query start."""
        if self.run.qrels is None:
            return np.zeros(0, dtype=np.int64), np.zeros(self.run.n_queries + 1, dtype=np.int64)
        query = self.run.queries.index.get_indexer(pd.Index(self.run.qrels["qid"].astype(object)))
        by = np.argsort(query, kind="stable")
        return by, np.searchsorted(query[by], np.arange(self.run.n_queries + 1)).astype(np.int64)

    def terms(self) -> tuple[list[str], npt.NDArray[np.float64]] | None:
        """Fit the weights of the whole run; None for a part of a run that has none."""
        if isinstance(self.run, Part):
            return self.run.terms() if self.run.has_terms else None
        found = fit_vectoriser(self.run.passages["text"].to_numpy()[self.row[self.row >= 0]].tolist())
        if found is None:
            return [], np.zeros(0)
        return found.get_feature_names_out().tolist(), np.asarray(found.idf_, dtype=np.float64)

    def write(self, part: Path, first: int, end: int) -> dict[str, Any]:
        """Write the queries from one to another as a part, whole or not at all; say what is in it."""
        rows = slice(int(self.start[first]), int(self.start[end]))
        numbers, code = np.unique(self.docid[rows].astype(np.int64), return_inverse=True)
        passages = np.sort(self.row[numbers][self.row[numbers] >= 0])
        hidden = part.with_name(f".{part.name}")
        hidden.mkdir()
        try:
            for name, columns in self._tables(first, end, rows, numbers, code, passages):
                write(columns, hidden / f"{name}.parquet")
        except UnicodeEncodeError as error:
            raise RunFormatError(
                f"partition: a text can't be stored as UTF-8: {error}. Mend it in the source."
            ) from error
        os.replace(hidden, part)
        return {
            "name": part.name,
            "n_queries": end - first,
            "n_rows": rows.stop - rows.start,
            "n_passages": len(passages),
        }

    def _tables(
        self, first: int, end: int, rows: slice, numbers: Longs, code: Longs, passages: Longs
    ) -> Iterator[tuple[str, Columns]]:
        run, text = self.run, self.pa.string()
        qids = run.queries.index.to_numpy(dtype=object)[first:end]
        query = np.repeat(np.arange(end - first), np.diff(self.start[first : end + 1]))
        yield (
            "candidates",
            {
                "qid": self._ids(query, qids),
                "docid": self._ids(code, self.docids[numbers]),
                "rank": self.pa.array(run.candidates["rank"].to_numpy()[rows]),
                "score": self.pa.array(run.candidates["score"].to_numpy()[rows]),
                **{c: self.more.column(c)[rows.start : rows.stop] for c in self.more.column_names},
                PLACE: self.pa.array(numbers[code].astype(np.int32)),
            },
        )
        yield (
            "queries",
            {
                "qid": self.pa.array(qids, text),
                "text": self.pa.array(run.queries["text"].to_numpy(dtype=object)[first:end], text),
            },
        )
        some = run.passages.iloc[passages]
        columns = {"docid": some.index, "title": some["title"], "text": some["text"]}
        kept = {name: self.pa.array(c.to_numpy(dtype=object), text) for name, c in columns.items()}
        yield "passages", {**kept, PLACE: self.pa.array(passages.astype(np.int64))}
        if run.qrels is not None:
            at = self.judged[self.judged_start[first] : self.judged_start[end]]
            mine = run.qrels.iloc[at]
            ids = {c: self.pa.array(mine[c].to_numpy(dtype=object), text) for c in ("qid", "docid")}
            label = self.pa.array(mine["label"].to_numpy())
            yield "qrels", {**ids, "label": label, PLACE: self.pa.array(at.astype(np.int64))}
        if run.answers is not None:
            told = [list(given) for given in run.answers.iloc[first:end]]
            yield (
                "answers",
                {"qid": self.pa.array(qids, text), "answers": self.pa.array(told, self.pa.list_(text))},
            )

    def _ids(self, code: Longs, names: npt.NDArray[np.object_]) -> Any:
        return self.pa.DictionaryArray.from_arrays(
            self.pa.array(code.astype(np.int32)), self.pa.array(names, self.pa.string())
        )


def _claim(home: Path) -> None:
    """Make the folder ready: mark it as unfinished and take away the parts that it had."""
    if home.exists() and not home.is_dir():
        fail(SettingError, "partition", "folder", "a folder", str(home))
    home.mkdir(parents=True, exist_ok=True)
    inside = sorted(home.iterdir())
    ours = (home / UNFINISHED).exists() or read_manifest(home) is not None
    if inside and not ours:
        hint = f"It holds {shown(inside[0].name)}; give another folder."
        fail(SettingError, "partition", "folder", "new, empty or a partition already", str(home), hint)
    names = {f"{table}.parquet" for table in TABLES}
    old = [path for path in inside if path.is_dir() and _PART.fullmatch(path.name)]
    for path in inside:
        if path not in old and path.name not in (MANIFEST, f".{MANIFEST}", UNFINISHED, WEIGHTS):
            _in_the_way(path)
    for path in (file for part in old for file in part.iterdir()):
        if path.name not in names or path.is_dir():
            _in_the_way(path)
    (home / UNFINISHED).touch()
    for name in (MANIFEST, WEIGHTS):
        (home / name).unlink(missing_ok=True)
    for part in old:
        for path in part.iterdir():
            path.unlink()
        part.rmdir()


def _in_the_way(path: Path) -> None:
    hint = "Move it away, or give another folder."
    fail(SettingError, "partition", "folder", "a partition with nothing else in it", str(path), hint)


def _write_weights(home: Path, terms: Sequence[str], idf: npt.NDArray[np.float64]) -> None:
    pa = arrow()
    write({"term": pa.array(terms, pa.string()), "idf": pa.array(idf, pa.float64())}, home / WEIGHTS)


def _write_manifest(home: Path, run: Run, made: Sequence[dict[str, Any]]) -> None:
    """Write what the folder holds, as the last thing: from here on it is a whole run."""
    told = {"qrels": run.qrels, "answers": run.answers}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "run": run.name,
        "tables": [table for table in TABLES if told.get(table, run) is not None],
        "query_text": run.has_query_text,
        "n_queries": run.n_queries,
        "n_rows": len(run.candidates),
        "n_passages": int(np.asarray(run.candidates["docid"].cat.categories.isin(run.passages.index)).sum()),
        "parts": list(made),
        "report": str(run.report).splitlines(),
    }
    write_whole(home / MANIFEST, [json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"], "partition")
    (home / UNFINISHED).unlink()
