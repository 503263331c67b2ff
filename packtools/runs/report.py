"""The report of a load: what was read, repaired, ignored and skipped, and where."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from packtools.errors import RunFormatError, shown

__all__ = ["LoadReport", "Note"]


@dataclass
class Note:
    """Count one kind of event in one file, with the first place it happened."""

    kind: str
    file: str
    what: str
    first_line: int | None = None
    n: int = 0
    unit: str = "line"

    def __str__(self) -> str:
        if self.kind in ("read", "joined"):
            return f"{self.file}: {self.what}" if self.file else self.what
        place = (
            "" if self.first_line is None else f", first at {_place(self.file, self.first_line, self.unit)}"
        )
        return f"{self.file}: {self.what} ({self.n:,}{place})"


@dataclass
class LoadReport:
    """Say what was read, repaired and skipped, and where.

    Parameters
    ----------
    strict : bool, default False
        Raise at the first repair instead of noting it.
    bad_lines : {"raise", "skip"}, default "raise"
        What to do with a line that can't be read.
    """

    strict: bool = False
    bad_lines: str = "raise"
    notes: list[Note] = field(default_factory=list)
    _known: dict[tuple[str, str, str], Note] = field(default_factory=dict, repr=False, compare=False)
    _units: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def counts(self, file: str, unit: str) -> None:
        """Say what the numbers of a file count: "line", or "record" of one JSON value or of a table."""
        self._units[file] = unit

    def read(self, file: str, what: str) -> None:
        """Note what a file held."""
        self.notes.append(Note("read", file, what))

    def joined(self, what: str) -> None:
        """Note how the files fit together."""
        self.notes.append(Note("joined", "", what))

    def repaired(self, file: str, what: str, line: int | None = None, n: int = 1) -> None:
        """Note something that was mended; an error in strict mode."""
        if self.strict:
            place = file if line is None else _place(file, line, self._units.get(file, "line"))
            raise RunFormatError(
                f"load_run: {place}: {what}. strict=True allows no repair; use strict=False."
            )
        self._count("repaired", file, what, line, n)

    def ignored(self, file: str, what: str, line: int | None = None, n: int = 1) -> None:
        """Note something that carries no data, such as a blank line."""
        self._count("ignored", file, what, line, n)

    def bad(self, file: str, line: int, why: str, text: str) -> None:
        """Raise for a line that can't be read, or count it if the caller asked to skip."""
        if self.bad_lines == "raise":
            unit = self._units.get(file, "line")
            got = f"the line is {shown(text)}" if unit == "line" else f"got {shown(text)}"
            place = f"{file}:{line}" if unit == "line" else f"{file}: {unit} {line}"
            hint = f"Mend the {unit}, or load with bad_lines='skip' to leave it out."
            raise RunFormatError(f"load_run: {place} {why}; {got}. {hint}")
        self._count("skipped", file, "line that can't be read: " + why, line, 1)

    def _count(self, kind: str, file: str, what: str, line: int | None, n: int) -> None:
        note = self._known.get((kind, file, what))
        if note is None:
            note = self._known[kind, file, what] = Note(
                kind, file, what, line, unit=self._units.get(file, "line")
            )
            self.notes.append(note)
        note.n += n

    def of(self, kind: str) -> list[Note]:
        """Give the notes of one kind: read, joined, repaired, ignored or skipped."""
        return [note for note in self.notes if note.kind == kind]

    def to_dict(self) -> list[dict[str, Any]]:
        """Give the notes as plain values."""
        return [vars(note).copy() for note in self.notes]

    def __str__(self) -> str:
        return "\n".join(f"{note.kind}: {note}" for note in self.notes)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{n.kind}</td><td style='text-align:left'>{html.escape(str(n))}</td></tr>"
            for n in self.notes
        )
        return f"<table><tbody>{rows}</tbody></table>"


def _place(file: str, number: int, unit: str) -> str:
    return f"{file}:{number}" if unit == "line" else f"{unit} {number} of {file}"
