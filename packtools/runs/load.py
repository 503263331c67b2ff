"""`load_run`: tell what each path is, read the parts, join them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from packtools.errors import RunFileMissing, RunFormatError, fail, shown, unknown
from packtools.runs import dpr, tables, trec
from packtools.runs.files import existing, first_line
from packtools.runs.model import TIES, Run
from packtools.runs.read_parts import load_parts
from packtools.runs.report import LoadReport

ROLES = ("run", "collection", "queries", "qrels", "answers", "dpr")
_FORMAT_ROLE = {"trec": "run", "beir": "collection", "dpr": "dpr"}
_PACKED = (".gz", ".zst")
_COLLECTION = ("corpus", "collection", "passages", "docs", "documents")
_QUERIES = ("queries", "topics", "questions")
_NO_DATA = (
    ".md", ".csv", ".parquet", ".py", ".ipynb", ".html", ".pdf", ".png", ".svg", ".yaml", ".yml", ".toml",
    ".log",    ".bak", ".tmp", ".orig",
)  # fmt: skip
_SUBFOLDERS = ("runs", "qrels", "beir")
_SPLITS = ("test", "dev", "train")

Paths = str | Path | Sequence[str | Path] | Mapping[str, str | Path]


def load_run(
    paths: Paths,
    *,
    format: str | None = None,
    run: str | None = None,
    ties: str = "rank",
    strict: bool = False,
    bad_lines: str = "raise",
) -> Run:
    """Read a saved run from files of the usual formats.

    1. A folder loads whole: its run, collection, queries, qrels and answers are told by their
       usual names (``corpus.jsonl``, ``queries.tsv``, ``qrels.txt`` or ``qrels/test.tsv``,
       ``answers.jsonl``, ``*.run``, ``runs/``). Of several runs the first by name is read, unless
       `run` names one; the report says so.
    2. Several paths are joined; a file named outright goes before one found in a folder.
    3. A mapping names each part: run, collection, queries, qrels, answers.
    4. A file of questions with their contexts (DPR, lost-in-the-middle) is a run by itself.
    5. A folder made by `partition` is a run; so is each part in it, and any list of parts.

    Ids are text, whatever they look like. Plain, ``.gz`` and ``.zst`` files.

    Parameters
    ----------
    paths : path, sequence of paths, or mapping of part to path
    format : {"trec", "beir", "dpr"} or None, default None
        What a file named outright is, where its name and first line don't tell.
    run : str or None, default None
        Which run of a folder to read: a part of its file name.
    ties : {"rank", "trec_eval"}, default "rank"
        Equal scores keep the file's rank, or go by docid descending as trec_eval does.
    strict : bool, default False
        Raise at the first repair.
    bad_lines : {"raise", "skip"}, default "raise"

    Returns
    -------
    Run
        ``run.report`` says what was read, repaired and skipped, with file and line.

    Raises
    ------
    RunFileMissing
        If a path does not exist.
    RunFormatError
        If a line can't be read, a part is missing or named twice, or no passage has text.

    Examples
    --------
    >>> load_run(sample_path()).n_queries
    72
    """
    if format is not None and format not in _FORMAT_ROLE:
        unknown(RunFormatError, "load_run", "format", format, _FORMAT_ROLE)
    if bad_lines not in ("raise", "skip"):
        unknown(RunFormatError, "load_run", "bad_lines", bad_lines, ("raise", "skip"))
    report = LoadReport(strict=strict, bad_lines=bad_lines)
    if ties not in TIES:
        unknown(RunFormatError, "load_run", "ties", ties, TIES)
    parted = load_parts(paths, report, ties, run)
    if parted is not None:
        return parted
    parts = _find_parts(paths, format, run, report)
    qrels = trec.read_qrels(parts["qrels"], report) if "qrels" in parts else None
    answers = tables.read_answers(parts["answers"], report) if "answers" in parts else None
    if "dpr" in parts:
        _check_alone(parts)
        return dpr.read_dpr(parts["dpr"], report, _run_name(parts["dpr"]), qrels, answers, ties)
    if "run" not in parts:
        parted = load_parts(paths, report, ties, run, nested=True)
        if parted is not None:
            return parted
        raise RunFormatError(
            f"load_run: {shown(str(paths))} holds no run, {_held(parts)}. "
            "Give a run file too: load_run([folder, 'run.txt'])."
        )
    candidates = trec.read_run(parts["run"], report)
    if "collection" not in parts:
        raise RunFormatError(
            f"load_run: {parts['run'].name} came without passage text. "
            "Give the collection too: load_run([run, 'collection.tsv'])."
        )
    wanted = set(candidates["docid"].cat.categories)
    passages = tables.read_collection(parts["collection"], wanted, report)
    return Run.from_frames(
        candidates,
        passages,
        queries=tables.read_queries(parts["queries"], report) if "queries" in parts else None,
        qrels=qrels,
        answers=answers,
        ties=ties,
        name=_run_name(parts["run"]),
        report=report,
    )


def sample_path() -> Path:
    """Give the folder of the sample run that comes with packtools."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_sample", package.parent / "data" / "sample"):
        if folder.is_dir():
            return folder
    raise RunFileMissing(f"sample_path: no sample run beside {package}. Install rag-packtools again.")


def load_sample(run: str | None = None) -> Run:
    """Load the sample run.

    Parameters
    ----------
    run : {"bm25", "fusion", "tfidf"} or None, default None
        None is bm25.
    """
    return load_run(sample_path(), run=run)


def _find_parts(paths: Paths, format: str | None, run: str | None, report: LoadReport) -> dict[str, Path]:
    if not isinstance(paths, str | Path | Mapping | Sequence) or isinstance(paths, bytes):
        fail(
            RunFormatError, "load_run", "paths", "a path, a list of paths or a mapping of part to path", paths
        )
    if isinstance(paths, Mapping):
        for role in paths:
            if role not in ROLES:
                unknown(RunFormatError, "load_run", "part", role, ROLES)
        if run is not None:
            fail(
                RunFormatError,
                "load_run",
                "run",
                "None where the parts are named",
                run,
                "Name the run's path.",
            )
        return {role: existing(_path(path)) for role, path in paths.items()}
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    named: dict[str, list[Path]] = {}
    found: dict[str, list[Path]] = {}
    for path in (existing(_path(p)) for p in listed):
        if path.is_dir():
            _search(path, found)
        else:
            role = _FORMAT_ROLE.get(format or "") or str(_role(path, outright=True))
            named.setdefault(role, []).append(path)
    for role in ("run", "dpr"):
        if len(named.get(role, ())) > 1 and run is None:
            _twice(role, named[role])
    return {role: _one(role, files, run, report) for role, files in {**found, **named}.items()}


def _path(given: object) -> Path:
    if not isinstance(given, str | Path):
        fail(RunFormatError, "load_run", "paths", "made of paths", given)
    return Path(given)


def _twice(role: str, files: list[Path]) -> NoReturn:
    listed = ", ".join(str(f.name) for f in files)
    raise RunFormatError(
        f"load_run: {len(files)} files could be the {role}: {listed}. "
        "Name the one to use as a path of its own."
    )


def _held(parts: dict[str, Path]) -> str:
    return f"only {', '.join(parts)}" if parts else "and no file of a format that packtools reads"


def _check_alone(parts: dict[str, Path]) -> None:
    """A file of questions with their contexts brings its own run, texts and queries."""
    for role in ("run", "collection", "queries"):
        if role in parts:
            raise RunFormatError(
                f"load_run: {parts['dpr'].name} is a run by itself, with its own texts; {parts[role].name} "
                f"was given as the {role} too. Load one or the other."
            )


def _search(folder: Path, found: dict[str, list[Path]]) -> None:
    """Tell the files of a folder, and of its subfolders of the usual names, by their names."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if path.name in _SUBFOLDERS:
                _search(path, found)
            continue
        role = _role(path, outright=False)
        if role is not None:
            found.setdefault(role, []).append(path)


def holds_run(folder: Path) -> bool:
    """Whether a folder has a run in one of the formats that are told by file names."""
    found: dict[str, list[Path]] = {}
    _search(folder, found)
    return "run" in found or "dpr" in found


def _stem(path: Path) -> str:
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
    ):
        name = Path(name).stem
    return name


def _role(path: Path, outright: bool) -> str | None:
    """Say what a file is by its name, else by its first line; None if it is nothing known."""
    stem = _stem(path).lower()
    plain = path.name.lower()
    for packed in _PACKED:
        plain = plain.removesuffix(packed)
    if not outright and (plain.endswith("~") or Path(plain).suffix in _NO_DATA):
        return None
    if plain.endswith((".run", ".trec")):
        return "run"
    if stem.startswith("qrels") or path.parent.name == "qrels":
        return "qrels"
    if stem.startswith(_COLLECTION):
        return "collection"
    if stem.startswith(_QUERIES):
        return "queries"
    if stem.startswith("answers"):
        return "answers"
    if stem.startswith(("run.", "results.")):
        return "run"
    if tables.is_jsonl(path):
        return _json_role(path, outright)
    looked_at = outright or path.parent.name == "runs" or plain.endswith((".txt", ".tsv"))
    line = first_line(path) if looked_at else ""
    if _is_run_line(line, path.parent.name == "runs"):
        return "run"
    if outright:
        raise RunFormatError(
            f"load_run: can't tell what {path.name} is; its first line is {shown(line)}. "
            "Name the parts: load_run({'run': …, 'collection': …, 'queries': …, 'qrels': …})."
        )
    return None


def _is_run_line(line: str, among_runs: bool) -> bool:
    """Whether a line is qid Q0 docid rank score tag, or, in a folder of runs, qid docid rank."""
    fields = [f.strip() for f in (line.split("\t") if line.count("\t") in (2, 5) else line.split())]
    if len(fields) >= 6:
        return fields[3].isdecimal() and trec.is_number(fields[4])
    return among_runs and len(fields) == 3 and fields[2].isdecimal()


def _json_role(path: Path, outright: bool) -> str | None:
    line = first_line(path)
    if '"ctxs"' in line:
        return "dpr"
    if outright:
        raise RunFormatError(
            f"load_run: can't tell what {path.name} is; its first line is {shown(line)}. "
            "A file of questions with contexts has the fields question and ctxs; name other parts: "
            "load_run({'run': …, 'collection': …})."
        )
    return None


def _one(role: str, files: list[Path], run: str | None, report: LoadReport) -> Path:
    """Choose one file for a role: by the name asked for, the usual split, or an error."""
    if role in ("run", "dpr"):
        chosen = [f for f in files if run is None or run == _stem(f)]
        chosen = chosen or [f for f in files if run is not None and run in f.name]
        if not chosen:
            unknown(RunFormatError, "load_run", "run", run, [_stem(f) for f in files])
        if len(files) > 1:
            names = ", ".join(_stem(f) for f in files)
            report.joined(
                f"{len(files)} runs found ({names}); read {_stem(chosen[0])}; name another with run="
            )
        return chosen[0]
    if len(files) > 1 and role == "qrels":
        for split in _SPLITS:
            for path in files:
                if _stem(path) == split:
                    return path
    if len(files) > 1:
        _twice(role, files)
    return files[0]


def _run_name(path: Path) -> str:
    folder = path.parent.parent if path.parent.name in _SUBFOLDERS else path.parent
    stem = _stem(path).removeprefix("run.")
    return f"{folder.name}/{stem}" if folder.name else stem
