"""What a sweep has worked out so far: values by setting and query, in memory and in a folder.

A piece is some settings over the queries of one source: the whole run, or one part of it.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from glob import escape
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pandas as pd

from packtools.arrays import Floats
from packtools.errors import SettingError, fail
from packtools.runs.model import Run
from packtools.runs.write import write_whole

__all__ = ["Piece", "Shelf", "fingerprint_of_files", "fingerprint_of_run", "mark_of"]


DAMAGED = (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile)
"""What reading a torn or altered file raises."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Hold the metrics of some settings over some queries.

    Parameters
    ----------
    source : str
        Name of the part of the run; "run" is all of it.
    ids : tuple of str
        Of the settings.
    qids : tuple of str
    values : mapping of metric to ndarray of float64, shape (settings, queries)
        NaN is "not scored".
    unavailable : mapping of metric to str
        Why the source can't give it.
    """

    source: str
    ids: tuple[str, ...]
    qids: tuple[str, ...]
    values: Mapping[str, Floats]
    unavailable: Mapping[str, str]

    @classmethod
    def of(
        cls, source: str, ids: Sequence[str], frames: Sequence[pd.DataFrame], unavailable: Mapping[str, str]
    ) -> Piece:
        """Stack the per-query tables of some settings."""
        first = frames[0]
        values = {
            str(name): np.stack([frame[name].to_numpy(np.float64) for frame in frames]) for name in first
        }
        return cls(source, tuple(ids), tuple(first.index), values, dict(unavailable))

    @classmethod
    def join(cls, pieces: Sequence[Piece]) -> Piece:
        """Put settings of one source together."""
        first = pieces[0]
        values = {name: np.concatenate([p.values[name] for p in pieces]) for name in first.values}
        ids = tuple(i for p in pieces for i in p.ids)
        return cls(first.source, ids, first.qids, values, first.unavailable)


class Shelf:
    """Keep finished pieces in a folder, so that a sweep that ended early goes on where it was.

    Parameters
    ----------
    folder : path or None
        None keeps nothing.
    marks : mapping
        What a value depends on beside the setting and the source: counter, version.
    """

    def __init__(self, folder: str | Path | None, marks: Mapping[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        self.marks = dict(marks)
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError:
                fail(SettingError, "sweep", "checkpoint", "a folder", str(folder))

    def _stem(self, source: str, fingerprint: str) -> str:
        known = json.dumps({**self.marks, "source": source, "data": fingerprint}, sort_keys=True)
        return f"{source.replace('/', '.')}-{hashlib.sha256(known.encode()).hexdigest()[:12]}"

    def find(self, source: str, fingerprint: str) -> list[Piece]:
        """Read the finished pieces of a source; a file that is not whole counts as none."""
        if self.folder is None:
            return []
        paths = sorted(self.folder.glob(f"{escape(self._stem(source, fingerprint))}-*.npz"))
        return [piece for piece in map(_read, paths) if piece is not None]

    def put(self, piece: Piece, fingerprint: str) -> None:
        """Write a piece, whole or not at all."""
        if self.folder is None:
            return
        told: dict[str, Any] = {"source": piece.source, "ids": piece.ids, "qids": piece.qids}
        told |= {"unavailable": dict(piece.unavailable), "metrics": list(piece.values)}
        words = np.frombuffer(json.dumps(told).encode("utf-8", "surrogatepass"), dtype=np.uint8)
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {"/told": words, **piece.values}
        np.savez(buffer, allow_pickle=False, **arrays)
        name = hashlib.sha256(" ".join(piece.ids).encode()).hexdigest()[:12]
        path = self.folder / f"{self._stem(piece.source, fingerprint)}-{name}.npz"
        write_whole(path, buffer.getvalue(), "sweep")


def _read(path: Path) -> Piece | None:
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as found:
            told = json.loads(found["/told"].tobytes().decode("utf-8", "surrogatepass"))
            values = {name: found[name] for name in found.files if name != "/told"}
    except DAMAGED:
        return None
    shape = len(told["ids"]), len(told["qids"])
    if list(values) != told["metrics"] or any(v.shape != shape for v in values.values()):
        return None
    return Piece(told["source"], tuple(told["ids"]), tuple(told["qids"]), values, told["unavailable"])


def fingerprint_of_files(paths: Iterable[Path]) -> str:
    """Tell files apart by their names and bytes."""
    seen = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            seen.update(f"{path.name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\0".encode())
    return seen.hexdigest()


def fingerprint_of_run(run: Run) -> str:
    """Tell runs apart by all that a metric depends on."""
    seen = hashlib.sha256()
    frame = run.candidates
    seen.update(np.ascontiguousarray(frame["rank"].to_numpy(np.int64)).tobytes())
    seen.update(np.ascontiguousarray(frame["score"].to_numpy(np.float64)).tobytes())
    for name in ("qid", "docid"):
        seen.update(np.ascontiguousarray(frame[name].cat.codes.to_numpy(np.int64)).tobytes())
    texts: list[Any] = [list(frame["docid"].cat.categories), run.queries.index.tolist()]
    texts += [run.queries["text"].tolist(), run.passages.index.tolist(), run.passages["text"].tolist()]
    texts.append(None if run.answers is None else run.answers.tolist())
    texts.append(None if run.qrels is None else run.qrels.astype(str).to_numpy().tolist())
    weights = getattr(run, "weights_file", None)
    if weights is not None:
        texts.append(fingerprint_of_files([weights]))
    for part in texts:
        seen.update(json.dumps(part).encode("ascii"))
    return seen.hexdigest()


def mark_of(value: object) -> str:
    """Tell functions apart by what they do: their code, constants and what they enclose; other values
    by what they print, without addresses."""
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {[mark_of(c) for c in value.co_consts]}"
    code = getattr(value, "__code__", None)
    if code is not None:
        cells = [mark_of(cell.cell_contents) for cell in getattr(value, "__closure__", None) or ()]
        return f"{mark_of(code)} {cells} {getattr(value, '__defaults__', None)!r}"
    if is_dataclass(value) and not isinstance(value, type):
        return str([mark_of(getattr(value, f.name)) for f in fields(value)])
    shown = repr(value)
    return type(value).__qualname__ if " at 0x" in shown else shown
