"""Open plain, gzip and zstandard files as bytes or numbered lines; decode and parse with a place.

Lines end at "\\n" only: U+2028, U+2029 and U+0085 inside a text are text.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packtools.errors import RunFileMissing, RunFormatError, missing_extra, shown
from packtools.progress import byte_progress
from packtools.runs.report import LoadReport

DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
BOM = b"\xef\xbb\xbf"
PACKED = (".gz", ".zst")
MIB = 1 << 20
BLOCK = MIB // 8
ID_KEYS = (
    "_id", "id", "docid", "doc_id", "pid", "passage_id", "qid", "query_id", "top_doc_ids",
    "retrieved_context_ids",
)  # fmt: skip
DEPTH = 100
"""How deep a JSON value may be nested: Python itself gives up at some hundreds."""


def existing(path: Path) -> Path:
    """Give the path if something is there."""
    try:
        if path.exists():
            return path
    except (OSError, ValueError):
        pass  # too long or not a path at all: nothing can be there
    raise RunFileMissing(f"load_run: {shown(str(path))} does not exist. Check the path.")


def open_bytes(path: Path) -> io.BufferedIOBase:
    """Open a file for reading, unpacked if its name ends in .gz or .zst."""
    if existing(path).is_dir():
        raise RunFormatError(f"load_run: {shown(str(path))} is a folder where a file is wanted.")
    packed = path.suffix.lower()
    if packed == ".gz":
        return gzip.open(path, "rb")
    if packed == ".zst":
        return io.BufferedReader(_Zstandard(path), MIB)
    return path.open("rb")


class _Zstandard(io.RawIOBase):
    """Read a zstandard file of any number of frames; a damaged or cut one raises EOFError."""

    def __init__(self, path: Path) -> None:
        try:
            import zstandard
        except ImportError as error:
            missing_extra("load_run", "zstandard", "zst", error)
        self._library = zstandard
        self._file = path.open("rb")
        self._frame: Any = None
        self._held = self._packed = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._held:
            self._packed = self._packed or self._file.read(MIB)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError("zstandard frame ended before its end mark")
                return 0
            self._unpack()
        n = min(len(buffer), len(self._held))
        buffer[:n] = self._held[:n]
        self._held = self._held[n:]
        return n

    def _unpack(self) -> None:
        self._frame = self._frame or self._library.ZstdDecompressor().decompressobj()
        try:
            self._held = self._frame.decompress(self._packed)
        except self._library.ZstdError as error:
            raise EOFError(str(error)) from error
        self._packed = b""
        if self._frame.eof:
            self._packed, self._frame = self._frame.unused_data, None

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def line_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Give many whole lines at a time without the last line's end, and the number of the first.

    A byte-order mark is dropped.
    """
    number, held = 1, [b""]
    try:
        with open_bytes(path) as stream:
            reads = iter(lambda: stream.read1(BLOCK), b"")
            size = None if path.suffix.lower() in PACKED else path.stat().st_size
            for read in byte_progress(reads, f"read {path.name}", size):
                lines, end, rest = read.rpartition(b"\n")
                held.append(lines if end else rest)
                if end:
                    block, held = b"".join(held), [rest]
                    yield number, block.removeprefix(BOM) if number == 1 else block
                    number += block.count(b"\n") + 1
    except DAMAGED as error:
        raise RunFormatError(
            f"load_run: {path.name} is damaged after line {number - 1:,}: {error}. Get the file again."
        ) from error
    if any(held):
        block = b"".join(held)
        yield number, block.removeprefix(BOM) if number == 1 else block


def text_lines(path: Path, report: LoadReport) -> Iterator[tuple[int, str]]:
    """Give numbered, decoded lines without their end; blank ones are counted and left out."""
    for first, block in line_blocks(path):
        yield from _plain_lines(first, block) or _odd_lines(first, block, path, report)


def _plain_lines(first: int, block: bytes) -> Iterable[tuple[int, str]] | None:
    """Give the lines of a block; None if any asks for a closer look."""
    try:
        lines = block.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    return enumerate(lines, first) if b"\r" not in block and all(map(str.strip, lines)) else None


def _odd_lines(first: int, block: bytes, path: Path, report: LoadReport) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(block.split(b"\n"), first):
        if not raw.strip():
            report.ignored(path.name, "blank line", number)
            continue
        try:
            yield number, raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            report.bad(path.name, number, f"is not UTF-8 (byte {error.start + 1})", repr(raw[:60]))


def json_records(path: Path, report: LoadReport) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give numbered JSON objects, one a line."""
    for number, line in text_lines(path, report):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            report.bad(path.name, number, f"is not JSON ({error.msg} at column {error.colno})", line)
            continue
        except (ValueError, RecursionError) as error:
            report.bad(path.name, number, f"is JSON that can't be read ({error})", line)
            continue
        if line.count("[") + line.count("{") > DEPTH and is_deep(record):
            report.bad(path.name, number, f"is JSON nested more than {DEPTH} deep", line)
            continue
        if "\\ud" in line.lower():
            record = _mended(record, path, number, report)
        if not isinstance(record, dict):
            report.bad(path.name, number, "is JSON but not an object", line)
            continue
        yield number, record


def is_deep(value: Any) -> bool:
    """Whether a JSON value is nested more than `DEPTH` deep."""
    level = [value]
    for _ in range(DEPTH + 1):
        lists = [v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)]
        level = [item for one in lists for item in one]
        if not level:
            return False
    return True


def _mended(value: Any, path: Path, number: int, report: LoadReport) -> Any:
    """Replace lone surrogates, which no file can hold, in texts; ids are left to `id_of`."""
    if isinstance(value, str) and not is_text(value):
        report.repaired(path.name, "lone surrogate replaced by U+FFFD", number)
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mended(v, path, number, report) for v in value]
    if isinstance(value, dict):
        return {k: v if k in ID_KEYS else _mended(v, path, number, report) for k, v in value.items()}
    return value


def first_line(path: Path) -> str:
    """Give the first line that is not blank, cut at one MiB; "" for an empty file."""
    try:
        with open_bytes(path) as stream:
            for _ in range(1000):
                raw = stream.readline(MIB)
                if not raw or raw.strip():
                    return raw.removeprefix(BOM).decode("utf-8", "replace").strip("\r\n")
    except DAMAGED:
        pass  # said with its place by whoever reads the file whole
    return ""


def id_of(
    record: dict[str, Any], keys: tuple[str, ...], path: Path, number: int, report: LoadReport
) -> str | None:
    """Take an id as text; a number is written out and reported, anything else is a bad line."""
    for key in keys:
        value = record.get(key)
        if isinstance(value, str) and value and is_text(value):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            report.ignored(path.name, f"numeric {key!r} read as text", number)
            return str(value)
    return None


def has_odd_id(record: dict[str, Any], keys: tuple[str, ...]) -> bool:
    """Whether a record without an id has a field for one, with a value that can't be an id."""
    return any(record.get(key) not in (None, "") for key in keys)


def text_of(record: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    """Take the first of some text fields."""
    for key in keys:
        value = record.get(key)
        if isinstance(value, str):
            return value
    return None


def is_text(value: str) -> bool:
    """Whether a string can be written down: no lone surrogates, as JSON escapes may leave."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
