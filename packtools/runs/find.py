"""What each path given to `load_run` is: told by its name, else by its first line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from packtools.errors import RunFormatError, fail, shown, unknown
from packtools.runs import tables, tool_outputs, trec
from packtools.runs.files import existing, first_line
from packtools.runs.formats import FORMATS, runs_inside, tell
from packtools.runs.records import head_of
from packtools.runs.report import LoadReport
from packtools.runs.rows import fields_of

ROLES = ("run", "collection", "queries", "qrels", "answers")
CASES = "cases"
"""The role of a file that is a run by itself, in whichever of `FORMATS`."""
FORMAT_ROLE = {"trec": "run", "ranx": "run", "beir": "collection"}
_PACKED = (".gz", ".zst")
_NAMES = {
    "collection": ("corpus", "collection", "passages", "docs", "documents"),
    "queries": ("queries", "topics", "questions"),
    "answers": ("answers",),
}
_NO_DATA = (
    ".md", ".py", ".ipynb", ".html", ".pdf", ".png", ".svg", ".yaml", ".yml", ".toml",
    ".log",    ".bak", ".tmp", ".orig",
)  # fmt: skip
_TABLES = (".csv", ".parquet", ".pq")
SUBFOLDERS = ("runs", "qrels", "beir")
_SPLITS = ("test", "dev", "train")

Paths = str | Path | Sequence[str | Path] | Mapping[str, str | Path]


def find_files(paths: Paths, format: str | None, run: str | None, report: LoadReport) -> dict[str, Path]:
    """Give the file of each part: those that `ROLES` names, and `CASES`."""
    if not isinstance(paths, str | Path | Mapping | Sequence) or isinstance(paths, bytes):
        fail(
            RunFormatError, "load_run", "paths", "a path, a list of paths or a mapping of part to path", paths
        )
    if isinstance(paths, Mapping):
        for role in paths:
            if role not in ROLES and role not in FORMATS:
                unknown(RunFormatError, "load_run", "part", role, [*ROLES, *FORMATS])
        if run is not None and not any(r in FORMATS and FORMATS[r].runs for r in paths):
            rule = "None where the parts are named"
            fail(RunFormatError, "load_run", "run", rule, run, "Name the run's path.")
        return {CASES if r in FORMATS else r: existing(path_of(path)) for r, path in paths.items()}
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    named: dict[str, list[Path]] = {}
    found: dict[str, list[Path]] = {}
    for path in (existing(path_of(p)) for p in listed):
        if path.is_dir():
            _search(path, found)
        else:
            told = CASES if format in FORMATS else FORMAT_ROLE.get(format or "")
            named.setdefault(told or str(_role(path, outright=True)), []).append(path)
    for role in ("run", CASES):
        if len(named.get(role, ())) > 1 and run is None:
            _twice(role, named[role])
    if "run" in {**found, **named} and CASES not in named:
        for path in found.pop(CASES, ()):
            report.joined(f"{path.name} is a run by itself: left out beside the run of the folder")
    return {role: _one(role, files, run, report, format) for role, files in {**found, **named}.items()}


def path_of(given: object) -> Path:
    """Take a path, or a text that is one."""
    if not isinstance(given, str | Path):
        fail(RunFormatError, "load_run", "paths", "made of paths", given)
    return Path(given)


def _twice(role: str, files: list[Path]) -> NoReturn:
    listed = ", ".join(str(f.name) for f in files)
    raise RunFormatError(
        f"load_run: {len(files)} files could be the {role}: {listed}. "
        "Name the one to use as a path of its own."
    )


def _search(folder: Path, found: dict[str, list[Path]]) -> None:
    """Tell the files of a folder, and of its subfolders of the usual names, by their names."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if path.name in SUBFOLDERS:
                _search(path, found)
            continue
        role = _role(path, outright=False)
        if role is not None:
            found.setdefault(role, []).append(path)


def holds_run(folder: Path) -> bool:
    """Whether a folder has a run in one of the formats that are told by file names."""
    found: dict[str, list[Path]] = {}
    _search(folder, found)
    return "run" in found or CASES in found


def stem(path: Path) -> str:
    """Give a file's name without the endings that say what it is."""
    name = path.name
    while Path(name).suffix.lower() in (
        *_PACKED,
        ".tsv",
        ".txt",
        ".jsonl",
        ".json",
        ".ndjson",
        ".run",
        ".trec",
        *_TABLES,
    ):
        name = Path(name).stem
    return name


def _role(path: Path, outright: bool) -> str | None:
    """Say what a file is by its name, else by its first line; None if it is nothing known."""
    name = stem(path).lower()
    plain = path.name.lower()
    for packed in _PACKED:
        plain = plain.removesuffix(packed)
    if not outright and (plain.endswith("~") or Path(plain).suffix in _NO_DATA):
        return None
    if plain.endswith(_TABLES):
        return _table_role(path, outright)
    if plain.endswith((".run", ".trec")):
        return "run"
    if name.startswith("qrels") or path.parent.name == "qrels":
        return "qrels"
    for role, starts in _NAMES.items():
        if name.startswith(starts):
            return role
    if tell(path) is not None:
        return CASES
    if name.startswith(("run.", "results.")):
        return "run"
    if tables.is_jsonl(path):
        if (outright or path.parent.name == "runs") and tool_outputs.looks_ranx(head_of(path)):
            return "run"
        return _not_told(path) if outright else None
    among_runs = path.parent.name == "runs"
    looked_at = outright or among_runs or plain.endswith((".txt", ".tsv"))
    if looked_at and _is_run_line(first_line(path), among_runs):
        return "run"
    return _not_told(path) if outright else None


def _table_role(path: Path, outright: bool) -> str | None:
    """A CSV or a Parquet file is a run by itself, or needs a map of its columns."""
    if tell(path) is not None:
        return CASES
    return _not_told(path) if outright else None


def _not_told(path: Path) -> NoReturn:
    fields = fields_of(path)
    if fields:
        raise RunFormatError(
            f"load_run: {path.name} has no contexts in a format that is known; it has the fields "
            f"{shown(fields, 300)}. If they hold a run, say which is what: load_run(path, columns="
            "{'query': …, 'text': …}); or name the part that it is: load_run({'queries': …})."
        )
    formats = ", ".join(repr(name) for name in FORMATS)
    raise RunFormatError(
        f"load_run: can't tell what {path.name} is; its first line is {shown(first_line(path))}. "
        "Name the parts: load_run({'run': …, 'collection': …, 'queries': …, 'qrels': …}), or the format "
        f"of a file that is a run by itself: load_run(path, format=…) with {formats}."
    )


def _is_run_line(line: str, among_runs: bool) -> bool:
    """Whether a line is qid Q0 docid rank score tag, or, in a folder of runs, qid docid rank."""
    fields = [f.strip() for f in (line.split("\t") if line.count("\t") in (2, 5) else line.split())]
    if len(fields) >= 6:
        return fields[3].isdecimal() and trec.is_number(fields[4])
    return among_runs and len(fields) == 3 and fields[2].isdecimal()


def _one(role: str, files: list[Path], run: str | None, report: LoadReport, format: str | None) -> Path:
    """Choose one file for a role: by the name asked for, the usual split, or an error."""
    if role in ("run", CASES):
        inside = {f: runs_inside(f, format) if role == CASES else None for f in files}
        return _one_run(inside, run, report)
    if len(files) > 1 and role == "qrels":
        for split in _SPLITS:
            for path in files:
                if stem(path) == split:
                    return path
    if len(files) > 1:
        _twice(role, files)
    return files[0]


def _one_run(inside: Mapping[Path, list[str] | None], run: str | None, report: LoadReport) -> Path:
    """Choose one of some runs; `inside` is what each holds if it can hold several."""
    files = list(inside)
    chosen = [f for f in files if run is None or run == stem(f)]
    chosen = chosen or [f for f in files if run is not None and run in f.name]
    chosen = chosen or [f for f in files if run in (inside[f] or ())]
    if not chosen:
        known = [*map(stem, files), *(name for runs in inside.values() for name in runs or () if name)]
        unknown(RunFormatError, "load_run", "run", run, dict.fromkeys(known))
    if len(files) > 1:
        names = ", ".join(stem(f) for f in files)
        if run is None and any(runs is not None for runs in inside.values()):
            raise RunFormatError(
                f"load_run: {len(files)} files could be the run: {names}. They are stages of one pipeline: "
                "name the one to read with run=."
            )
        report.joined(f"{len(files)} runs found ({names}); read {stem(chosen[0])}; name another with run=")
    return chosen[0]
