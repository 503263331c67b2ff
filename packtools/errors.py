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
    ├── WorkersDied            (RuntimeError)       worker processes that died again and again
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
    "PairingError",
    "RetrievalError",
    "RunFileMissing",
    "RunFormatError",
    "SettingError",
    "WorkersDied",
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


class PairingError(PacktoolsError, ValueError):
    """Two files of predictions that can't be compared."""


class MetricUnavailable(PacktoolsError, LookupError):
    """A metric that this run can't give; the message says what is missing."""


class SettingError(PacktoolsError, ValueError):
    """An argument that breaks its rule."""


class WorkersDied(PacktoolsError, RuntimeError):
    """Worker processes that died again and again."""


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


def is_number(value: object) -> bool:
    """Whether a value is one real number and not NaN; booleans are none."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return False
    if not isinstance(value, int | float) and not (
        hasattr(value, "dtype") and getattr(value, "shape", 1) == ()
    ):
        return False
    try:
        return float(value) == float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def check_count(
    error: type[PacktoolsError], where: str, parameter: str, value: object, unit: str, least: int = 1
) -> int:
    """Return `value` as an int of at least `least`, or raise in the house form."""
    if not is_number(value) or not hasattr(value, "__index__"):
        fail(error, where, parameter, f"a whole number of {unit}s", value)
    whole = int(value.__index__())
    if whole < least:
        fail(error, where, parameter, f"at least {least} {unit}{'' if least == 1 else 's'}", value)
    return whole


def check_share(error: type[PacktoolsError], where: str, parameter: str, value: object) -> float:
    """Return `value` as a float above 0 and at most 1, or raise in the house form."""
    if is_number(value) and 0 < float(value) <= 1:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    fail(error, where, parameter, "above 0 and at most 1", value)


def missing_extra(where: str, package: str, extra: str, cause: BaseException | None = None) -> NoReturn:
    """Raise `MissingExtra` with the pip line that mends it."""
    raise MissingExtra(
        f"{where}: needs the package '{package}', which is not installed. "
        f"Run: pip install 'rag-packtools[{extra}]'"
    ) from cause
