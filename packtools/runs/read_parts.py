"""Read parts of a partitioned run, some of them or all, as one run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from packtools.errors import PackerError, RunFormatError, fail, shown
from packtools.progress import progress
from packtools.runs.layout import (
    MANIFEST,
    OWN_COLUMNS,
    PLACE,
    UNFINISHED,
    WEIGHTS,
    find_parts,
    is_part,
    is_whole,
    read_manifest,
)
from packtools.runs.model import Run
from packtools.runs.parquet import ParquetTable
from packtools.runs.report import LoadReport

Table = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, repr=False)
class Part(Run):
    """Hold some parts of a run, and where the TF-IDF weights of the whole run are.

    Parameters
    ----------
    home : Path or None
        The folder of the whole run; None if there is no one such folder.
    """

    home: Path | None = None

    def terms(self) -> tuple[list[str], npt.NDArray[np.float64]]:
        """Read the terms of the whole run and the weight of each (idf).

        Raises
        ------
        PackerError
            If they are not there: weights of one part would not be those of the run.
        """
        if self.home is None or not self.has_terms:
            why = f"there is no {WEIGHTS} (term, idf) beside it"
            if self.home is None:
                why = f"its parts have no {MANIFEST} beside them, or are of several partitions"
            raise PackerError(
                f"prepare: {self.name} is a part of a run, and the sentence selections 'tfidf' and 'mmr' "
                f"need the TF-IDF weights of the whole run; {why}. "
                "Partition the whole run with packtools.partition, or select by 'query_overlap'."
            )
        table = ParquetTable(self.home / WEIGHTS, WEIGHTS, LoadReport(), ("term", "idf"))
        terms = table.texts("term")
        twice = np.flatnonzero(pd.Index(terms).duplicated())
        if len(twice):
            table.refuse("term", int(twice[0]), "a word, each once", terms[twice[0]])
        return terms.tolist(), table.numbers("idf", "a number in every row").astype(np.float64)

    @property
    def weights_file(self) -> Path | None:
        """Where the weights of the whole run are; None if they are not there."""
        return self.home / WEIGHTS if self.home is not None and self.has_terms else None

    @property
    def has_query_text(self) -> bool:
        """Whether a query of the whole run has text, as its manifest says."""
        told = None if self.home is None else (read_manifest(self.home) or {}).get("query_text")
        return super().has_query_text if told is None else bool(told)

    @property
    def has_terms(self) -> bool:
        """Whether the weights of the whole run are there."""
        return self.home is not None and (self.home / WEIGHTS).exists()


def load_parts(
    paths: object, report: LoadReport, ties: str, run: str | None = None, nested: bool = False
) -> Run | None:
    """Read parts as one run; None if these are no parts.

    Parameters
    ----------
    paths : path or list of paths
        Partitions and parts, told by what is in them.
    report : LoadReport
    ties : str
    run : str or None, default None
        Must be None, as parts are of one run.
    nested : bool, default False
        Look into folders of partitions too.
    """
    listed = [paths] if isinstance(paths, str | Path) else paths
    if not isinstance(listed, Sequence) or not all(isinstance(p, str | Path) for p in listed):
        return None
    given = [Path(p) for p in listed]
    known = [
        os.path.isdir(p)
        and (nested or is_part(p) or read_manifest(p) is not None or (p / UNFINISHED).exists())
        for p in given
    ]
    if not any(known):
        return None
    if not all(known):
        other = given[known.index(False)]
        raise RunFormatError(
            f"load_run: parts of a run can be joined with nothing else; {shown(str(other))} is no part. "
            "Load it alone."
        )
    folders = [part for path in given for part in find_parts(path)]
    if folders and run is not None:
        fail(RunFormatError, "load_run", "run", "None where parts of a run are read", run)
    return _join(folders, report, ties) if folders else None


def _join(folders: Sequence[Path], report: LoadReport, ties: str) -> Run:
    homes = {folder.parent for folder in folders}
    label = {f: f.name if len(homes) == 1 else f"{f.parent.name}/{f.name}" for f in folders}
    read = [_read_part(f, label[f], report) for f in progress(folders, "read parts", len(folders))]
    for table in ("qrels", "answers"):
        without = [p["label"] for p in read if table not in p]
        if 0 < len(without) < len(read):
            having = next(p["label"] for p in read if table in p)
            raise RunFormatError(
                f"load_run: {without[0]} has no {table}.parquet, and {having} has one. Write it for all "
                "parts (with no rows, if there are none), or for none."
            )
    queries: dict[str, str] = {}
    asked: dict[str, str] = {}
    for part in read:
        for qid in part["queries"]:
            if qid in asked:
                raise RunFormatError(
                    f"load_run: query {shown(qid)} is in {asked[qid]} and in {part['label']}. All candidates "
                    "of a query belong in one part."
                )
        asked |= dict.fromkeys(part["queries"], part["label"])
        queries |= part["queries"]
    placed = len(homes) == 1
    run = Part.from_frames(
        _join_candidates([p["candidates"] for p in read], placed),
        _join_passages([p["passages"] for p in read], [str(p["label"]) for p in read], placed),
        queries=queries,
        qrels=_in_place(pd.concat([p["qrels"] for p in read]), placed) if "qrels" in read[0] else None,
        answers={q: a for p in read for q, a in p["answers"].items()} if "answers" in read[0] else None,
        ties=ties,
        name=name_of(folders),
        report=report,
    )
    values = {field.name: getattr(run, field.name) for field in fields(Run)}
    weighed = [home for home in homes if (home / WEIGHTS).exists()]
    if is_whole(folders) and not weighed:
        return Run(**values)
    home = folders[0].parent
    return Part(**values, home=home if placed and read_manifest(home) is not None else None)


def name_of(folders: Sequence[Path]) -> str:
    """Name the run as it was when it was parted; a single part of it with its own name too."""
    homes = {folder.parent for folder in folders}
    names = {str((read_manifest(home) or {}).get("run", home.resolve().name)) for home in homes}
    if len(names) > 1:
        return Path(os.path.commonpath([home.resolve() for home in homes])).name
    name = names.pop()
    return f"{name}/{folders[0].name}" if len(folders) == 1 and not is_whole(folders) else name


def _read_part(folder: Path, label: str, report: LoadReport) -> dict[str, Any]:
    def table(name: str, *needed: str, optional: Sequence[str] | None = (PLACE,)) -> ParquetTable:
        file = f"{name}.parquet"
        return ParquetTable(folder / file, f"{label}/{file}", report, needed, optional)

    queries = table("queries", "qid", "text")
    asked = pd.Index(np.asarray(queries.ids("qid"), dtype=object))
    twice = np.flatnonzero(asked.duplicated())
    if len(twice):
        queries.refuse("qid", int(twice[0]), "a query, each once", asked[twice[0]])
    candidates = _candidates(table("candidates", "qid", "docid", "rank", optional=None), asked)
    out = {
        "label": label,
        "candidates": candidates,
        "queries": dict(zip(asked, queries.texts("text"), strict=True)),
        "passages": _passages(table("passages", "docid", "text", optional=("title", PLACE)), candidates),
    }
    if (folder / "qrels.parquet").exists():
        judged = table("qrels", "qid", "docid", "label")
        ids = {c: np.asarray(judged.ids(c), dtype=object) for c in ("qid", "docid")}
        labels = judged.numbers("label", "a number in every row")
        out["qrels"] = pd.DataFrame({**ids, "label": labels, **_place(judged)})
    if (folder / "answers.parquet").exists():
        told = table("answers", "qid", "answers")
        qids = np.asarray(told.ids("qid"), dtype=object)
        out["answers"] = dict(zip(qids, told.text_lists("answers"), strict=True))
    report.read(label, f"{len(candidates):,} rows, {candidates['qid'].nunique():,} queries")
    return out


def _place(table: ParquetTable) -> Table:
    return {PLACE: table.numbers(PLACE, "a whole number in every row")} if PLACE in table else {}


def _candidates(table: ParquetTable, asked: pd.Index[Any]) -> pd.DataFrame:
    """Take the rows of a part; each must be of one of its queries."""
    qid = table.ids("qid")
    stray = np.flatnonzero(~np.asarray(qid.categories.isin(asked))[qid.codes])
    if len(stray):
        hint = "Write all queries of a part, '' for one without a text."
        table.refuse("qid", int(stray[0]), "a query in queries.parquet of the part", qid[stray[0]], hint)
    ranks = table.numbers("rank", "a whole number in every row")
    columns: dict[str, Any] = {"qid": qid, "docid": table.ids("docid"), "rank": ranks}
    if "score" in table:
        columns["score"] = table.scores("score")
    more = table.rest([c for c in table.table.column_names if c not in OWN_COLUMNS])
    return pd.DataFrame({**columns, **_place(table), **more})


def _passages(table: ParquetTable, candidates: pd.DataFrame) -> pd.DataFrame:
    """Take the passages that the candidates of a part name."""
    docids = np.asarray(table.ids("docid"), dtype=object)
    titles = table.texts("title", nothing="") if "title" in table else np.full(len(docids), "", dtype=object)
    columns = {"docid": docids, "title": titles, "text": table.texts("text")}
    frame = pd.DataFrame(columns, dtype=object).assign(**_place(table))
    first, unlike = _repeats(frame)
    if unlike is not None:
        rule = f"a passage with one text; the text of row {first[unlike] + 1:,} is another"
        table.refuse("docid", unlike, rule, docids[unlike])
    again = int((first < np.arange(len(first))).sum())
    if again:
        table.report.ignored(table.label, "id repeated with the same text", n=again)
    named = np.asarray(pd.Index(docids).isin(candidates["docid"].cat.categories))
    if not named.all():
        table.report.ignored(table.label, "passage that no candidate names", n=int((~named).sum()))
    kept: pd.DataFrame = frame[named & (first == np.arange(len(first)))]
    return kept


def _repeats(frame: pd.DataFrame) -> tuple[npt.NDArray[np.int64], int | None]:
    """Give the first row of each row's docid, and one row that has another text than that."""
    codes, found = pd.factorize(frame["docid"].to_numpy())
    first = np.zeros(len(found), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    first = first[codes]
    later = np.flatnonzero(first < np.arange(len(first)))
    unlike = np.zeros(len(later), dtype=bool)
    for column in ("title", "text"):
        values = frame[column].to_numpy(dtype=object)
        unlike |= values[later] != values[first[later]]
    return first, int(later[unlike][0]) if unlike.any() else None


def _join_passages(frames: Sequence[pd.DataFrame], labels: Sequence[str], placed: bool) -> pd.DataFrame:
    frame = pd.concat(frames, ignore_index=True)
    first, unlike = _repeats(frame)
    if unlike is not None:
        part = np.repeat(np.array(labels, dtype=object), [len(f) for f in frames])
        fail(
            RunFormatError,
            f"load_run: {part[unlike]}/passages.parquet",
            "docid",
            f"a passage with one text; {part[first[unlike]]}/passages.parquet has another",
            frame["docid"].iloc[unlike],
        )
    frame = _in_place(frame[first == np.arange(len(first))], placed)
    frame.index = pd.Index(frame.pop("docid").to_numpy(dtype=object), dtype=object, name="docid")
    return frame


def _in_place(frame: pd.DataFrame, placed: bool) -> pd.DataFrame:
    """Put rows where they were in the whole run, if all parts say so."""
    if PLACE in frame:
        if placed and not frame[PLACE].isna().any():
            frame = frame.sort_values(PLACE, kind="stable")
        frame = frame.drop(columns=PLACE)
    return frame.reset_index(drop=True)


def _join_candidates(frames: Sequence[pd.DataFrame], placed: bool) -> pd.DataFrame:
    """Put candidates together, and number the documents as the whole run did, if all parts say so."""
    ids = {c: pd.api.types.union_categoricals([f[c] for f in frames]) for c in ("qid", "docid")}
    rest = pd.concat([f.drop(columns=["qid", "docid"]) for f in frames], ignore_index=True)
    docid = ids["docid"]
    if PLACE in rest:
        place = rest.pop(PLACE).to_numpy(dtype=np.float64)
        if placed and not np.isnan(place).any():
            number = np.zeros(len(docid.categories))
            number[docid.codes] = place
            ids["docid"] = docid.reorder_categories(docid.categories[np.argsort(number, kind="stable")])
    return pd.DataFrame({**ids, **rest})
