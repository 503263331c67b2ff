"""Every exception of packtools and the wording of every check; no other logic lives here.

::

    PacktoolsError
    ├── RetrievalError
    │   └── PackerError        (ValueError)         a setting or a chunk that can't be packed
    ├── CounterError           (ValueError)         an unknown counter, or text it can't count
    ├── CounterDataMissing     (FileNotFoundError)  rank data or a tokenizer file is not here
    ├── RunFormatError         (ValueError)         a file that breaks its format
    ├── RunFileMissing         (FileNotFoundError)  a path that is not there
    ├── MetricUnavailable      (LookupError)        this run can't give that metric
    ├── SettingError           (ValueError)         any other argument out of its rule
    └── MissingExtra           (ImportError)        an optional package is not installed

A message reads ``function: 'parameter' must be RULE; got VALUE. What to do.``
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn

__all__ = [
    "CounterDataMissing",
    "CounterError",
    "MetricUnavailable",
    "MissingExtra",
    "PackerError",
    "PacktoolsError",
    "RetrievalError",
    "RunFileMissing",
    "RunFormatError",
    "SettingError",
]


class PacktoolsError(Exception):
    """Base of every error that packtools raises on purpose."""


class RetrievalError(PacktoolsError):
    """Something went wrong between retrieval and the prompt."""


class PackerError(RetrievalError, ValueError):
    """A setting or a chunk that can't be packed."""


class CounterError(PacktoolsError, ValueError):
    """An unknown token counter, or a text that it can't count."""


class CounterDataMissing(PacktoolsError, FileNotFoundError):
    """The data of a token counter is not on this machine."""


class RunFormatError(PacktoolsError, ValueError):
    """A run file that breaks the rules of its format."""


class RunFileMissing(PacktoolsError, FileNotFoundError):
    """A run path that does not exist."""


class MetricUnavailable(PacktoolsError, LookupError):
    """A metric that this run can't give; the message says what is missing."""


class SettingError(PacktoolsError, ValueError):
    """An argument that breaks its rule."""


class MissingExtra(PacktoolsError, ImportError):
    """An optional dependency that is not installed; the message has the pip line."""


def shown(value: object, limit: int = 60) -> str:
    """Write a value for a message, cut at `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def fail(
    error: type[PacktoolsError], where: str, parameter: str, rule: str, value: object, hint: str = ""
) -> NoReturn:
    """Raise `error` in the house form."""
    tail = f" {hint}" if hint else ""
    raise error(f"{where}: '{parameter}' must be {rule}; got {shown(value)}.{tail}")


def unknown(
    error: type[PacktoolsError], where: str, what: str, value: object, known: Iterable[str], hint: str = ""
) -> NoReturn:
    """Raise `error` for a name that is not among `known`; suggest the nearest one."""
    names = list(known)
    near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.6)
    guess = f" Did you mean {near[0]!r}?" if near else (f" {hint}" if hint else "")
    listed = ", ".join(repr(name) for name in names)
    raise error(f"{where}: {what} {shown(value)} is unknown; known: {listed}.{guess}")


def check_count(
    error: type[PacktoolsError], where: str, parameter: str, value: object, unit: str, least: int = 1
) -> int:
    """Return `value` as an int of at least `least`, or raise in the house form."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and hasattr(value, "__index__") and not isinstance(value, bool):
        value, whole = value.__index__(), True
    if not whole:
        fail(error, where, parameter, f"a whole number of {unit}s", value)
    if value < least:  # type: ignore[operator]
        fail(error, where, parameter, f"at least {least} {unit}{'' if least == 1 else 's'}", value)
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_share(
    error: type[PacktoolsError], where: str, parameter: str, value: object, *, above_zero: bool = True
) -> float:
    """Return `value` as a float in (0, 1] (or [0, 1]), or raise in the house form."""
    number = (isinstance(value, int | float) and not isinstance(value, bool)) or hasattr(value, "dtype")
    if number:
        share = float(value)  # type: ignore[arg-type]
        if (0 < share <= 1) or (share == 0 and not above_zero):
            return share
    rule = "above 0 and at most 1" if above_zero else "from 0 to 1"
    fail(error, where, parameter, rule, value)


def missing_extra(where: str, package: str, extra: str, cause: BaseException | None = None) -> NoReturn:
    """Raise `MissingExtra` with the pip line that mends it."""
    raise MissingExtra(
        f"{where}: needs the package '{package}', which is not installed. "
        f"Run: pip install 'rag-packtools[{extra}]'"
    ) from cause
