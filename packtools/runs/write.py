"""Write a file whole or not at all: beside its place first, then moved there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from packtools.errors import RunFormatError


def write_whole(path: Path, content: bytes | Iterable[str], where: str) -> Path:
    """Write bytes, or lines as UTF-8; `where` names the caller in errors.

    Raises
    ------
    RunFormatError
        If a text can't be stored as UTF-8.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if isinstance(content, bytes):
            hidden.write_bytes(content)
        else:
            with hidden.open("w", encoding="utf-8", newline="\n") as stream:
                stream.writelines(content)
        hidden.replace(path)
    except UnicodeEncodeError as error:
        raise RunFormatError(
            f"{where}: {path.name}: a text can't be stored as UTF-8: {error}. Mend it in the source."
        ) from error
    finally:
        hidden.unlink(missing_ok=True)
    return path
