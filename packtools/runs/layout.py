"""Where the parts of a partitioned run are: the manifest, and the folders that it lists.

The layout is in the notes of `packtools.partition`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packtools.errors import RunFormatError, fail, shown
from packtools.runs.files import existing

FORMAT, VERSION = "packtools-parts", 1
MANIFEST, UNFINISHED, WEIGHTS = "manifest.json", "unfinished", "weights.parquet"
TABLES = ("candidates", "queries", "passages", "qrels", "answers")
NEEDED = TABLES[:3]
PLACE = "_place"
OWN_COLUMNS = ("qid", "docid", "rank", "score", PLACE)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Read what a folder of parts holds; None if it is no such folder, or not a finished one."""
    try:
        found = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        return None
    listed = found.get("parts", [])
    if not isinstance(listed, list) or not all(
        isinstance(part, dict) and isinstance(part.get("name"), str) for part in listed
    ):
        where, rule = f"load_run: {folder.name}/{MANIFEST}", 'a list of objects with a "name"'
        fail(
            RunFormatError, where, "parts", rule, found["parts"], "Leave it out to take all parts there are."
        )
    if not isinstance(found.get("run", ""), str):
        fail(RunFormatError, f"load_run: {folder.name}/{MANIFEST}", "run", "a name", found["run"])
    if found.get("version") != VERSION:
        where = f"load_run: {folder.name}/{MANIFEST}"
        fail(RunFormatError, where, "version", str(VERSION), found.get("version"), "Update packtools.")
    return found


def parts_of(path: str | Path) -> list[Path]:
    """List the parts of a partitioned run.

    Parameters
    ----------
    path : str or Path
        A folder made by `partition`, a folder of such folders (found however deep they lie, sorted
        by path), or one part.

    Returns
    -------
    list of Path
        Folders that `load_run` reads, each alone or all together.

    Raises
    ------
    RunFileMissing
        If there is no such folder.
    RunFormatError
        If it holds no parts, a partition is unfinished, or a part is missing.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from packtools import load_sample
    >>> from packtools.runs.parts import partition
    >>> with TemporaryDirectory() as folder:
    ...     made = partition(load_sample(), folder, parts=3)
    ...     parts_of(folder) == made, [part.name for part in made]
    (True, ['part-00000', 'part-00001', 'part-00002'])
    """
    folder = existing(Path(path))
    found = find_parts(folder)
    if not found:
        raise RunFormatError(
            f"parts_of: {shown(str(folder))} holds no parts of a run. Make them with packtools.partition."
        )
    return found


def find_parts(folder: Path) -> list[Path]:
    """Find the parts in a folder; none is no error, an unfinished partition is."""
    if is_part(folder):
        return [folder]
    inside = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    manifest = read_manifest(folder)
    here = [path.name for path in inside if _has_table(path)]
    if manifest is not None:
        return [folder / name for name in _listed(folder, manifest, here)]
    if here or (folder / UNFINISHED).exists():
        raise RunFormatError(
            f"load_run: {shown(str(folder))} is an unfinished partition: it has no {MANIFEST}, which is "
            "written last. Run packtools.partition again; parts written by other means need a "
            f'{MANIFEST} of {{"format": "{FORMAT}", "version": {VERSION}}}.'
        )
    return [part for path in inside for part in find_parts(path)]


def part_files(part: Path) -> list[Path]:
    """List the files that decide what a part gives: its tables, and the weights of its run."""
    tables = [part / f"{table}.parquet" for table in TABLES]
    found = [path for path in tables if path.exists()]
    files = [f for path in found for f in (sorted(path.rglob("*.parquet")) if path.is_dir() else [path])]
    weights = part.parent / WEIGHTS
    return [*files, weights] if weights.exists() and read_manifest(part.parent) is not None else files


def _has_table(folder: Path) -> bool:
    return any((folder / f"{table}.parquet").exists() for table in TABLES)


def is_part(folder: Path) -> bool:
    """Whether a folder is a part: by its tables, or by the manifest above it."""
    if all((folder / f"{table}.parquet").exists() for table in NEEDED):
        return True
    return _has_table(folder) and read_manifest(folder.parent) is not None


def _listed(folder: Path, manifest: Mapping[str, Any], here: Sequence[str]) -> list[str]:
    """Give the names of the parts: those that the manifest lists, which must be there, or all."""
    if "parts" not in manifest:
        return list(here)
    names = _names(manifest)
    for name in (*names, *here):
        if name not in here or name not in names:
            why = "is missing" if name not in here else f"is not in its {MANIFEST}"
            raise RunFormatError(
                f"load_run: {shown(str(folder))}: {name} {why}. Run packtools.partition again."
            )
    return names


def _names(manifest: Mapping[str, Any]) -> list[str]:
    return [str(part["name"]) for part in manifest["parts"]]


def is_whole(folders: Sequence[Path]) -> bool:
    """Whether nothing is missing of the partitions that some parts are from."""
    for home in {folder.parent for folder in folders}:
        manifest = read_manifest(home)
        if manifest is None:
            return False
        mine = {folder.name for folder in folders if folder.parent == home}
        names = _names(manifest) if "parts" in manifest else [p.name for p in home.iterdir() if _has_table(p)]
        if not mine.issuperset(names):
            return False
    return True
