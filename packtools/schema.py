"""The plain records that every layer passes around: chunks, settings, spans, decisions, results.

Nothing here computes: the stages live in `dedup`, `budget`, `ordering` and `conflicts`.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from packtools.errors import PackerError, check_count, check_share, fail, is_number, unknown

__all__ = [
    "Chunk",
    "ConflictAnnotation",
    "Decision",
    "PackedContext",
    "PackerConfig",
    "RequestContext",
    "Span",
]

UNITS = ("tokens", "chars")
MOST = 1 << 40
"""The largest count of one chunk; sums stay within 64 bits."""
CANDIDATE_COLUMNS = ("qid", "docid", "rank", "score")
QREL_COLUMNS = ("qid", "docid", "label")


@dataclass(frozen=True)
class RequestContext:
    """Say on whose behalf a pack is made.

    Parameters
    ----------
    tenant_id : str
        Every chunk that names a tenant must name this one.
    """

    tenant_id: str


@dataclass(frozen=True)
class Chunk:
    """Hold one retrieved piece of text, the unit that is packed.

    Parameters
    ----------
    id : str
        Document or passage id; always text.
    text : str, default ""
        The text as stored; never changed by packing.
    score : float or None, default None
        Relevance; higher is better. None counts as 0.0.
    token_count : int or None, default None
        A cached count in tokens. It is trusted: the text is not counted again.
    trust : str, default "trusted"
        A label such as "trusted" or "untrusted"; conflicts compare it.
    tenant_id : str or None, default None
        None means the tenant of the request.
    content_ref : str or None, default None
        Where the text is kept, for a chunk that carries none; it needs `token_count`.
    metadata : dict, default {}
        Carried through every step untouched.

    Examples
    --------
    >>> Chunk("7", "Steel is an alloy.", 0.9).token_count is None
    True
    """

    id: str
    text: str = ""
    score: float | None = None
    # The design ends the positional arguments here; the rest is by keyword.
    token_count: int | None = field(default=None, kw_only=True)
    trust: str = field(default="trusted", kw_only=True)
    tenant_id: str | None = field(default=None, kw_only=True)
    content_ref: str | None = field(default=None, kw_only=True)
    metadata: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str):
            fail(PackerError, "Chunk", "id", "a string", self.id, f"Write {str(self.id)!r}.")
        if not isinstance(self.text, str):
            fail(PackerError, "Chunk", "text", "a string", self.text, 'Use "" with content_ref.')
        if self.score is not None and not is_number(self.score):
            fail(PackerError, "Chunk", "score", "a number or None", self.score, f"Chunk {self.id!r}.")
        if self.token_count is not None:
            count = check_count(PackerError, "Chunk", "token_count", self.token_count, "token", least=0)
            if count > MOST:
                fail(PackerError, "Chunk", "token_count", f"at most {MOST:,}", count, f"Chunk {self.id!r}.")
            object.__setattr__(self, "token_count", count)


@dataclass(frozen=True, kw_only=True)
class PackerConfig:
    """Hold every setting of a pack; the defaults are the published token packer.

    Parameters
    ----------
    budget : int or None, default None
        The most that may be used, in `unit`; None drops nothing for its size.
    unit : {"tokens", "chars"}, default "tokens"
        What `budget` and `reserve` count.
    deduplicate : bool or None, default None
        Drop chunks whose normalised text equals that of a better one. None means: whenever a
        budget or a threshold is set, so that ``PackerConfig(budget=None)`` keeps everything.
    jaccard_threshold : float or None, default None
        Drop near-duplicates whose Jaccard of shingles is at or above it; None is off.
    protect_differences : bool, default True
        Keep both chunks of a pair that differs in a number, a date or a negation.
    fill : str, default "score"
        Who gets the budget first: a name in `packtools.FILLS`.
    order : str, default "lost_in_middle"
        Place in the prompt: a name in `packtools.ORDERINGS`.
    separator : str or None, default None
        Text between chunks. A string is rendered and charged; with None the sizes of the chunks
        alone are charged and the caller renders.
    reserve : int, default 0
        Units of `budget` kept free for instructions, question and output.
    detect_conflicts : bool, default True
        Look for chunks that contradict each other.

    Raises
    ------
    PackerError
        If a setting breaks its rule, or the reserve leaves no room.

    Examples
    --------
    >>> PackerConfig(budget=4000, reserve=500).limit
    3500
    >>> PackerConfig(budget=None).deduplicates
    False
    """

    budget: int | None = None
    unit: Literal["tokens", "chars"] = "tokens"
    deduplicate: bool | None = None
    jaccard_threshold: float | None = None
    protect_differences: bool = True
    fill: str = "score"
    order: str = "lost_in_middle"
    separator: str | None = None
    reserve: int = 0
    detect_conflicts: bool = True

    def __post_init__(self) -> None:
        where = "PackerConfig"
        if self.unit not in UNITS:
            unknown(PackerError, where, "unit", self.unit, UNITS)
        unit = self.unit[:-1]
        reserve = check_count(PackerError, where, "reserve", self.reserve, unit, least=0)
        object.__setattr__(self, "reserve", reserve)
        if self.budget is not None:
            budget = check_count(PackerError, where, "budget", self.budget, unit)
            object.__setattr__(self, "budget", budget)
            if budget <= reserve:
                raise PackerError(
                    f"{where}: 'reserve' must be less than the budget; got reserve {reserve:,} of "
                    f"budget {budget:,} {self.unit}, which leaves {budget - reserve:,} for chunks. "
                    "Lower the reserve or raise the budget."
                )
        if self.jaccard_threshold is not None:
            share = check_share(PackerError, where, "jaccard_threshold", self.jaccard_threshold)
            object.__setattr__(self, "jaccard_threshold", share)
        for name, table in (("fill", "FILLS"), ("order", "ORDERINGS")):
            if not isinstance(getattr(self, name), str):
                fail(PackerError, where, name, f"a name in packtools.{table}", getattr(self, name))
        if self.separator is not None and not isinstance(self.separator, str):
            fail(PackerError, where, "separator", "a string or None", self.separator)
        if self.deduplicate is not None and not isinstance(self.deduplicate, bool):
            fail(PackerError, where, "deduplicate", "True, False or None", self.deduplicate)
        for name in ("protect_differences", "detect_conflicts"):
            if not isinstance(getattr(self, name), bool):
                fail(PackerError, where, name, "True or False", getattr(self, name))

    @property
    def limit(self) -> int | None:
        """Units that chunks may use: `budget` less `reserve`; None without a budget."""
        return None if self.budget is None else self.budget - self.reserve

    @property
    def deduplicates(self) -> bool:
        """Whether exact duplicates are dropped under these settings."""
        if self.deduplicate is None:
            return self.budget is not None or self.jaccard_threshold is not None
        return self.deduplicate

    def to_dict(self) -> dict[str, Any]:
        """Give the settings as plain values, in the order of the fields."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PackerConfig:
        """Build settings from a mapping; an unknown key is an error that lists the known ones."""
        known = [f.name for f in fields(cls)]
        for key in values:
            if key not in known:
                unknown(PackerError, "PackerConfig.from_dict", "setting", key, known)
        return cls(**values)

    def to_json(self) -> str:
        """Give the settings as one JSON object."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> PackerConfig:
        """Read settings that `to_json` wrote."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PackerError(f"PackerConfig.from_json: not JSON: {error}.") from error
        if not isinstance(values, dict):
            fail(PackerError, "PackerConfig.from_json", "text", "one JSON object", text)
        return cls.from_dict(values)

    def replace(self, **changes: Any) -> PackerConfig:
        """Give the same settings with some of them changed."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Span:
    """Say where a kept piece stands, in the packed text and in its untouched source.

    All offsets are half-open and count characters (code points), never bytes.

    Parameters
    ----------
    docid : str
        The chunk it was cut from.
    rank : int
        1-based place of the chunk in retrieval order.
    start, end : int
        ``packed.text[start:end]`` is the piece.
    source_start, source_end : int
        ``chunk.text[source_start:source_end]`` is the same piece.
    also : tuple of str, default ()
        Ids of chunks that were dropped as (near-)duplicates of this one.
    """

    docid: str
    rank: int
    start: int
    end: int
    source_start: int
    source_end: int
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """Say what became of one candidate, and why.

    Parameters
    ----------
    docid : str
    rank : int
        1-based place in retrieval order.
    score : float or None
    size : int
        In the unit of the budget, without separators.
    kept : bool
    reason : str or None
        None if kept, else "duplicate_of", "near_duplicate_of", "over_budget", "empty" or "no_text".
    of : str or None
        The better chunk that this one repeats.
    similarity : float or None
        Jaccard with `of`.
    over_by : int or None
        Units by which the budget would have been exceeded.
    unit : str
    """

    docid: str
    rank: int
    score: float | None
    size: int
    kept: bool
    reason: str | None = None
    of: str | None = None
    similarity: float | None = None
    over_by: int | None = None
    unit: str = "tokens"

    def __str__(self) -> str:
        if self.kept:
            return "kept"
        if self.reason == "duplicate_of":
            return f"dropped: duplicate of {self.of}"
        if self.reason == "near_duplicate_of":
            return f"dropped: near-duplicate of {self.of} at {self.similarity:.2f}"
        if self.reason == "over_budget":
            unit = self.unit if self.over_by != 1 else self.unit[:-1]
            return f"dropped: over budget by {self.over_by:,} {unit}"
        return {"empty": "dropped: empty", "no_text": "dropped: its text is not in the collection"}[
            str(self.reason)
        ]


@dataclass(frozen=True)
class ConflictAnnotation:
    """Point at two chunks that contradict each other, with both quotes and both values.

    Parameters
    ----------
    kind : {"numeric_disagreement", "trust_mismatch"}
    docid_a, docid_b : str
    quote_a, quote_b : str
        Exact slices of the two texts.
    value_a, value_b : str
        What differs: the two numbers, or the two trust labels.
    """

    kind: str
    docid_a: str
    docid_b: str
    quote_a: str
    quote_b: str
    value_a: str
    value_b: str

    def __str__(self) -> str:
        return (
            f"{self.kind}: {self.docid_a} says {self.value_a} ({self.quote_a!r}), "
            f"{self.docid_b} says {self.value_b} ({self.quote_b!r})"
        )


@dataclass(frozen=True)
class PackedContext:
    """Hold what one query's pack came to: text, kept chunks, spans, ledger, conflicts.

    Parameters
    ----------
    text : str
        The kept chunks joined by the separator, as sent. With ``separator=None`` the caller
        renders; `text` then joins by a blank line, for reading only, and is not charged.
    chunks : tuple of Chunk
        Kept chunks in prompt order.
    spans : tuple of Span
        One for each kept chunk, in prompt order.
    decisions : tuple of Decision
        One for each candidate, in retrieval order: nothing vanishes.
    conflicts : tuple of ConflictAnnotation
    n_used : int
        Units of `config.unit` used: the count of `text` if a separator is set, else the sum of
        the chunk sizes.
    config : PackerConfig
    counter : str
        Name of the token counter.
    """

    text: str
    chunks: tuple[Chunk, ...]
    spans: tuple[Span, ...]
    decisions: tuple[Decision, ...]
    conflicts: tuple[ConflictAnnotation, ...]
    n_used: int
    config: PackerConfig
    counter: str

    @property
    def tokens_used(self) -> int:
        """Units used; the published name of `n_used`."""
        return self.n_used

    @property
    def dropped_dedup(self) -> tuple[str, ...]:
        """Ids dropped as duplicates or near-duplicates, best first."""
        wanted = ("duplicate_of", "near_duplicate_of")
        return tuple(d.docid for d in self.decisions if d.reason in wanted)

    @property
    def dropped_budget(self) -> tuple[str, ...]:
        """Ids dropped because they did not fit, best first."""
        return tuple(d.docid for d in self.decisions if d.reason == "over_budget")

    def _repr_html_(self) -> str:
        esc = html.escape
        unit = self.config.unit
        limit = "no budget" if self.config.budget is None else f"of {self.config.budget:,}"
        rows = "".join(
            f"<tr><td>{d.rank}</td><td>{esc(d.docid)}</td><td>{d.size:,}</td><td>{esc(str(d))}</td></tr>"
            for d in self.decisions
        )
        flags = "".join(f"<li>{esc(str(c))}</li>" for c in self.conflicts)
        return (
            f"<p><b>{self.n_used:,} {unit}</b> {limit}: {len(self.chunks)} of "
            f"{len(self.decisions)} chunks kept ({esc(self.config.order)}, {esc(self.counter)})</p>"
            f"<pre style='white-space:pre-wrap'>{esc(self.text)}</pre>"
            f"<table><thead><tr><th>rank</th><th>id</th><th>{unit}</th><th>decision</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>" + (f"<ul>{flags}</ul>" if flags else "")
        )
