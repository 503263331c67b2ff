"""Write a run as files that `load_run` reads back: JSONL, TREC with its tables, or one Parquet part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from packtools.errors import RunFormatError, SettingError, fail, shown, unknown
from packtools.progress import progress
from packtools.runs.model import Run
from packtools.runs.parts import partition
from packtools.runs.write import write_whole
from packtools.schema import CANDIDATE_COLUMNS

__all__ = ["SAVED", "save_run"]

WHERE = "Run.save"
SAVED = ("jsonl", "trec", "parquet")
"""The formats that a run is saved in."""
HASANSWER = "hasanswer"
_OTHER_ROLES = (
    "qrels", "corpus", "collection", "passages", "docs", "documents", "queries", "topics", "questions",
    "answers", "run.", "results.",
)  # fmt: skip
_MAX_LABEL = 10**9


def save_run(run: Run, folder: str | Path, format: str = "jsonl", *, lossy: bool = False) -> list[Path]:
    """Write a run as files that `load_run` reads back as the same run.

    Parameters
    ----------
    run : Run
    folder : str or Path
        Made if it is not there. "trec" and "parquet" want it to hold nothing else, so that no file of
        another run is taken for one of this.
    format : {"jsonl", "trec", "parquet"}, default "jsonl"
        "jsonl" is one file of questions with their contexts, in the shape of DPR: ``<name>.jsonl``.
        "trec" is ``<name>.run``, ``corpus.jsonl``, ``queries.jsonl`` and, where the run has them,
        ``qrels.txt`` and ``answers.jsonl``. "parquet" is a partition of one part: see `partition`.
    lossy : bool, default False
        Leave out what the format can't hold, instead of refusing.

    Returns
    -------
    list of Path
        ``load_run(run.save(folder))`` is the run again.

    Raises
    ------
    SettingError
        If the format can't hold all of the run (see Notes; every loss is named, and the formats that
        have none), or the folder holds other files.
    RunFormatError
        If an id or a text can't be written at all, whatever `lossy` says.

    Notes
    -----
    What is held (with ``lossy=True`` the rest is left out, or as said):

    =======================================  =============  ==========  =======
    part of the run                          jsonl          trec        parquet
    =======================================  =============  ==========  =======
    scores, query texts, titles, answers     yes            yes         yes
    missing scores                           the one above  yes         yes
    candidates without text                  no             yes         yes
    columns of the candidates                `hasanswer`    no          yes
    columns of the passages                  no             no          no
    labels other than 1                      as yes or no   whole ones  yes
    judged passages that were not retrieved  no             yes         yes
    judged queries that are not in the run   no             yes         no
    a pair judged twice                      once           once        yes
    predictions                              yes            no          no
    ids with tabs or line ends               yes            refused     yes
    =======================================  =============  ==========  =======

    Passages that no candidate names are left out by all three, as `load_run` leaves them out. The
    report is not saved. The name is that of the file, after the last "/"; read back it has the name
    of the folder before it (in "parquet" it is whole). In "jsonl" passages and judgements come back in
    the order of the candidates.

    Scores are written so that they read back equal; the same run gives the same bytes. Cost: one pass,
    a query at a time.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from packtools import load_run, load_sample
    >>> with TemporaryDirectory() as folder:
    ...     files = save_run(load_sample().only(["time-q8"]), folder, "trec")
    ...     [file.name for file in files], load_run(files).n_queries
    (['bm25.run', 'corpus.jsonl', 'queries.jsonl', 'qrels.txt', 'answers.jsonl'], 1)
    """
    if format not in SAVED:
        unknown(SettingError, WHERE, "format", format, SAVED)
    home = _folder(folder)
    run = _own_passages(run)
    lost = find_lost(run, format)
    if lost and lossy is not True:
        whole = [f"'{other}'" for other in SAVED if not find_lost(run, other)]
        other_way = f"Save it as {' or '.join(whole)}, or leave" if whole else "Leave"
        raise SettingError(
            f"{WHERE}: format {format!r} can't hold {'; '.join(lost)}. {other_way} that out with lossy=True."
        )
    if format == "parquet":
        return partition(run, home, parts=1)
    stem = _stem(run.name)
    return _save_trec(run, home, stem) if format == "trec" else [_save_jsonl(run, home, stem)]


def _folder(folder: str | Path) -> Path:
    home = Path(folder)
    if home.exists() and not home.is_dir():
        fail(SettingError, WHERE, "folder", "a folder", str(home))
    if home.name == "qrels":
        fail(SettingError, WHERE, "folder", "called something else; load_run takes it for qrels", str(home))
    return home


def _stem(name: str) -> str:
    """Name the files of a run: what stands after the last slash, without what file names can't hold."""
    last = re.sub(r'[\\:*?"<>|\x00-\x1f]+', "-", name.rsplit("/", 1)[-1]).strip(" .")
    return last or "run"


def _own_passages(run: Run) -> Run:
    """Give the run with the passages that its candidates name, and "" for a title that is missing."""
    named = run.candidates["docid"].cat.remove_unused_categories().cat.categories
    frame = run.passages[np.asarray(run.passages.index.isin(named))]
    titles = ["" if title is None or title != title else title for title in frame["title"]]
    for docid, title in zip(frame.index, titles, strict=True):
        if not isinstance(title, str):
            fail(RunFormatError, WHERE, "title", "a text in every row", title, f"Passage {docid!r}.")
    column = pd.Series(titles, index=frame.index, dtype=object)
    return replace(run, passages=frame.assign(title=column))


def count_run(run: Run) -> dict[str, int | None]:
    """Count what a run holds; None for a table that it does not have."""
    return {
        "n_queries": run.n_queries,
        "n_candidates": len(run.candidates),
        "n_passages": len(run.passages),
        "n_judgements": None if run.qrels is None else len(run.qrels),
        "n_answered": None if run.answers is None else int(run.answers.map(bool).sum()),
        "n_predictions": None if run.predictions is None else int(run.predictions.notna().sum()),
    }


# --- what a format can't hold ---------------------------------------------------------------------


def find_lost(run: Run, format: str) -> list[str]:
    """Name what a format can't hold of a run; empty if it holds it all."""
    found = [*_lost_columns(run, format)]
    if format == "jsonl":
        found += _lost_rows(run)
    if format != "jsonl" and run.predictions is not None and run.predictions.notna().any():
        found.append(f"what a reader answered ({int(run.predictions.notna().sum()):,} predictions)")
    if run.qrels is not None:
        found += _lost_judgements(run, run.qrels, format)
    return found


def _lost_columns(run: Run, format: str) -> Iterator[str]:
    extra = [c for c in run.candidates if c not in CANDIDATE_COLUMNS]
    if format == "jsonl":
        extra = [c for c in extra if c != HASANSWER or not _is_yes_or_no(run.candidates[c])]
    more = [c for c in run.passages if c not in ("title", "text")]
    for table, columns in (("candidates", [] if format == "parquet" else extra), ("passages", more)):
        if columns:
            yield f"the columns {', '.join(map(repr, columns))} of the {table}"


def _is_yes_or_no(column: pd.Series[Any]) -> bool:
    return all(value is None or isinstance(value, bool) for value in column.tolist())


def _lost_rows(run: Run) -> Iterator[str]:
    docid = run.candidates["docid"].cat
    bare = ~np.asarray(docid.categories.isin(run.passages.index))[docid.codes.to_numpy()]
    if bare.any():
        some = run.candidates["docid"].iloc[int(np.flatnonzero(bare)[0])]
        yield f"{int(bare.sum()):,} candidates without passage text, such as {shown(some)}"
    missing = int(run.candidates["score"].isna().sum())
    if missing:
        yield f"{missing:,} candidates without a score"


def _lost_judgements(run: Run, qrels: pd.DataFrame, format: str) -> Iterator[str]:
    if format == "parquet":
        outside = sorted(set(qrels["qid"]) - set(run.queries.index))
        if outside:
            yield f"{len(outside):,} judged queries that are not in the run, such as {shown(outside[0])}"
        return
    twice = int(qrels.duplicated(["qid", "docid"]).sum())
    if twice:
        yield f"{twice:,} judgements of a pair that was judged before"
    if format == "trec":
        return
    graded = int((qrels["label"] != 1).sum())
    if graded:
        yield f"{graded:,} judgements with a label other than 1"
    missed = qrels[(qrels["label"] >= 1).to_numpy() & ~_retrieved(run, qrels)]
    if len(missed):
        pair = f"{shown(missed['docid'].iloc[0])} for {shown(missed['qid'].iloc[0])}"
        yield f"{len(missed):,} relevant passages that were not retrieved, such as {pair}"


def _retrieved(run: Run, qrels: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether each judged pair is among the candidates."""
    frame = run.candidates
    docids = frame["docid"].cat.categories
    query = run.queries.index.get_indexer(pd.Index(qrels["qid"], dtype=object)).astype(np.int64)
    passage = docids.get_indexer(pd.Index(qrels["docid"], dtype=object))
    there = frame["qid"].cat.codes.to_numpy().astype(np.int64) * len(docids) + frame["docid"].cat.codes
    found = np.isin(query * len(docids) + passage, there)
    return np.asarray(found & (query >= 0) & (passage >= 0))


# --- JSONL ----------------------------------------------------------------------------------------


def _save_jsonl(run: Run, home: Path, stem: str) -> Path:
    if stem.lower().startswith(_OTHER_ROLES):
        stem = f"run-{stem}"
    return write_whole(home / f"{stem}.jsonl", map(_json, _records(run)), WHERE)


def _records(run: Run) -> Iterator[dict[str, Any]]:
    """Give one question a record, in the shape of DPR."""
    columns = ["docid", "score", *([HASANSWER] if HASANSWER in run.candidates else [])]
    texts = dict(
        zip(run.passages.index, zip(run.passages["title"], run.passages["text"], strict=True), strict=True)
    )
    gold = None if run.qrels is None else _gold(run.qrels)
    for number, (qid, rows) in enumerate(_by_query(run, columns)):
        record: dict[str, Any] = {"id": qid, "question": run.queries["text"].iloc[number]}
        if run.answers is not None:
            record["answers"] = list(run.answers.iloc[number])
        if run.predictions is not None:
            said = run.predictions.iloc[number]
            record["prediction"] = said if isinstance(said, str) else None
        record["ctxs"] = [_context(qid, row, texts[row[0]], gold) for row in rows if row[0] in texts]
        yield record


def _context(
    qid: str, row: tuple[Any, ...], passage: tuple[str, str], gold: set[tuple[str, str]] | None
) -> dict[str, Any]:
    docid, score, *held = row
    title, text = passage
    out = {"id": docid, "title": title, "text": text, "score": score if score == score else None}
    if held and isinstance(held[0], bool):
        out[HASANSWER] = held[0]
    return out if gold is None else {**out, "isgold": (qid, docid) in gold}


def _gold(qrels: pd.DataFrame) -> set[tuple[str, str]]:
    relevant = qrels[qrels["label"] >= 1]
    return set(zip(relevant["qid"], relevant["docid"], strict=True))


# --- TREC -----------------------------------------------------------------------------------------


def _save_trec(run: Run, home: Path, stem: str) -> list[Path]:
    separator = _separator(run)
    lines = {f"{stem}.run": _run_lines(run, separator, re.sub(r"\s+", "-", stem))}
    tables = zip(run.passages.index, run.passages["title"], run.passages["text"], strict=True)
    lines["corpus.jsonl"] = (_json({"_id": d, "title": title, "text": text}) for d, title, text in tables)
    asked = run.queries["text"].items()
    lines["queries.jsonl"] = (_json({"_id": qid, "text": text}) for qid, text in asked)
    if run.qrels is not None:
        lines["qrels.txt"] = iter(_qrel_lines(run.qrels, separator))
    if run.answers is not None:
        told = run.answers.items()
        lines["answers.jsonl"] = (_json({"_id": qid, "answers": list(given)}) for qid, given in told)
    _check_empty(home, lines)
    return [write_whole(home / name, rows, WHERE) for name, rows in lines.items()]


def _check_empty(home: Path, names: Iterable[str]) -> None:
    """Refuse a folder with files that would be taken for parts of this run, or whose texts would go."""
    for path in sorted(home.iterdir()) if home.exists() else []:
        if path.name not in names and not path.name.startswith("."):
            rule, hint = "a folder with nothing else in it", f"It holds {shown(path.name)}; give another."
            fail(SettingError, WHERE, "folder", rule, str(home), hint)


def _separator(run: Run) -> str:
    """Choose what parts the fields of TREC lines: tabs where an id holds a space."""
    ids = {"qid": set(run.queries.index), "docid": set(run.candidates["docid"].cat.categories)}
    if run.qrels is not None:
        ids = {name: known | set(run.qrels[name]) for name, known in ids.items()}
    for name, known in ids.items():
        for one in sorted(known):
            odd = re.search("[\t\n\r]", one) or one != one.strip(" ")
            if odd or (name == "qid" and one.startswith(("#", "\ufeff"))):
                rule = "an id without tabs, line ends, outer spaces or a leading '#', for a TREC file"
                fail(RunFormatError, WHERE, name, rule, one, "Save it as 'jsonl' or 'parquet'.")
    return "\t" if any(" " in one for known in ids.values() for one in known) else " "


def _run_lines(run: Run, separator: str, tag: str) -> Iterator[str]:
    for qid, rows in _by_query(run, ["docid", "rank", "score"]):
        for docid, rank, score in rows:
            yield separator.join((qid, "Q0", docid, str(rank), repr(score), tag)) + "\n"


def _qrel_lines(qrels: pd.DataFrame, separator: str) -> list[str]:
    labels = qrels["label"].tolist()
    best: dict[tuple[str, str], int] = {}
    for qid, docid, label in zip(qrels["qid"], qrels["docid"], labels, strict=True):
        if label != label or int(label) != label or abs(label) >= _MAX_LABEL:
            rule = "a whole number below 1,000,000,000 in every row, for a TREC file"
            fail(RunFormatError, WHERE, "label", rule, label, "Save it as 'parquet'.")
        best[qid, docid] = max(int(label), best.get((qid, docid), int(label)))
    return [separator.join((qid, "0", docid, str(label))) + "\n" for (qid, docid), label in best.items()]


# --- shared ---------------------------------------------------------------------------------------


def _by_query(run: Run, columns: list[str]) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Give each query with its rows, best first."""
    codes = run.candidates["qid"].cat.codes.to_numpy()
    start = np.searchsorted(codes, np.arange(run.n_queries + 1)).tolist()
    for number, qid in enumerate(progress(run.queries.index, "write queries", run.n_queries)):
        rows = run.candidates.iloc[start[number] : start[number + 1]]
        yield qid, list(zip(*(rows[c].tolist() for c in columns), strict=True))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
