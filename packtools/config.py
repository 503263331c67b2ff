"""Every setting of a pack, checked when it is made; `schema` holds the other records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from packtools.errors import PackerError, check_count, check_share, fail, unknown

__all__ = ["PackerConfig"]

CHOICES = {
    "unit": ("tokens", "chars"),
    "overflow": ("skip", "truncate"),
    "white_space": ("keep", "collapse"),
    "same_text": ("normalised", "lowercase"),
}
WHERE = "PackerConfig"


@dataclass(frozen=True, kw_only=True, repr=False)
class PackerConfig:
    """Hold every setting of a pack; the defaults are the published token packer.

    Parameters
    ----------
    budget : int or None, default None
        The most that may be used, in `unit`; None drops nothing for its size.
    unit : {"tokens", "chars"}, default "tokens"
        What `budget`, `passage_budget` and `reserve` count.
    passage_budget : int or None, default None
        The most that one chunk may take, in `unit`; a longer one is cut to it. None cuts nothing.
    sentence_selection : str or None, default None
        Which sentences of a longer chunk stay: a name in `packtools.SELECTORS`. None takes no
        sentences apart: the chunk is cut at a word boundary.
    splitter : str, default "prose"
        How sentences are told apart: a name in `packtools.SPLITTERS`.
    min_sentence_chars : int, default 1
        Shorter sentences are not selected; if none is long enough, the chunk is one sentence.
    white_space : {"keep", "collapse"}, default "keep"
        "collapse" packs runs of white space, and U+FFFD, as one space.
    deduplicate : bool or None, default None
        Drop chunks whose normalised text equals that of a better one. None means: whenever a
        budget or a threshold is set, so that ``PackerConfig(budget=None)`` keeps everything.
    same_text : {"normalised", "lowercase"}, default "normalised"
        When two texts are equal: in their normal form (see `normalise`), or in lower case.
    jaccard_threshold : float or None, default None
        Drop near-duplicates whose Jaccard of shingles is at or above it; None is off.
    protect_differences : bool, default True
        Keep both chunks of a pair that differs in a number, a date or a negation.
    fill : str, default "score"
        Who gets the budget first: a name in `packtools.FILLS`.
    overflow : {"skip", "truncate"}, default "skip"
        What a chunk does that does not fit: "skip" leaves it out and tries the next; "truncate"
        cuts it to what is left, at a word boundary (in scripts without spaces at a character), and
        stops.
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
    passage_budget: int | None = None
    sentence_selection: str | None = None
    splitter: str = "prose"
    min_sentence_chars: int = 1
    white_space: Literal["keep", "collapse"] = "keep"
    deduplicate: bool | None = None
    same_text: Literal["normalised", "lowercase"] = "normalised"
    jaccard_threshold: float | None = None
    protect_differences: bool = True
    fill: str = "score"
    overflow: Literal["skip", "truncate"] = "skip"
    order: str = "lost_in_middle"
    separator: str | None = None
    reserve: int = 0
    detect_conflicts: bool = True

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                unknown(PackerError, WHERE, name, getattr(self, name), known)
        self._check_counts()
        if self.jaccard_threshold is not None:
            share = check_share(PackerError, WHERE, "jaccard_threshold", self.jaccard_threshold)
            object.__setattr__(self, "jaccard_threshold", share)
        tables = {"fill": "FILLS", "order": "ORDERINGS", "splitter": "SPLITTERS"}
        for name, table in tables.items():
            if not isinstance(getattr(self, name), str):
                fail(PackerError, WHERE, name, f"a name in packtools.{table}", getattr(self, name))
        if self.sentence_selection is not None and not isinstance(self.sentence_selection, str):
            rule = "a name in packtools.SELECTORS or None"
            fail(PackerError, WHERE, "sentence_selection", rule, self.sentence_selection)
        if self.separator is not None and not isinstance(self.separator, str):
            fail(PackerError, WHERE, "separator", "a string or None", self.separator)
        if self.deduplicate is not None and not isinstance(self.deduplicate, bool):
            fail(PackerError, WHERE, "deduplicate", "True, False or None", self.deduplicate)
        for name in ("protect_differences", "detect_conflicts"):
            if not isinstance(getattr(self, name), bool):
                fail(PackerError, WHERE, name, "True or False", getattr(self, name))

    def _check_counts(self) -> None:
        """Check the whole numbers, and that the reserve leaves room."""
        unit = self.unit[:-1]
        counts = {"budget": (unit, 1), "passage_budget": (unit, 1), "reserve": (unit, 0)}
        for name, (what, least) in {**counts, "min_sentence_chars": ("character", 1)}.items():
            value = getattr(self, name)
            if value is not None or name in ("reserve", "min_sentence_chars"):
                whole = check_count(PackerError, WHERE, name, value, what, least)
                object.__setattr__(self, name, whole)
        if self.budget is not None and self.budget <= self.reserve:
            raise PackerError(
                f"{WHERE}: 'reserve' must be less than the budget; got reserve {self.reserve:,} of "
                f"budget {self.budget:,} {self.unit}, which leaves {self.budget - self.reserve:,} for "
                "chunks. Lower the reserve or raise the budget."
            )

    @classmethod
    def characters(
        cls,
        max_context_chars: int | None = None,
        max_passage_chars: int | None = None,
        *,
        sentence_selection: str = "query_overlap",
        deduplicate: bool = True,
        ordering: str = "rank",
        min_sentence_chars: int = 1,
        **others: Any,
    ) -> PackerConfig:
        """Give the settings of the published character packer.

        Parameters
        ----------
        max_context_chars, max_passage_chars : int or None
            Become `budget` and `passage_budget`, in characters.
        sentence_selection, deduplicate, min_sentence_chars
            As in `PackerConfig`; a `min_sentence_chars` below 1 means 1.
        ordering : str, default "rank"
            Becomes `fill`: "rank" or "shorter_first".
        **others
            Any other setting, instead of the preset's.

        Examples
        --------
        >>> preset = PackerConfig.characters(900, 320)
        >>> preset.unit, preset.overflow, preset.separator, preset.order
        ('chars', 'truncate', ' ', 'fill')
        """
        least = -(1 << 62)  # anything below 1 means 1
        check_count(PackerError, WHERE, "min_sentence_chars", min_sentence_chars, "character", least)
        preset: dict[str, Any] = {
            "budget": max_context_chars,
            "unit": "chars",
            "passage_budget": max_passage_chars,
            "sentence_selection": sentence_selection,
            "splitter": "simple",
            "min_sentence_chars": max(min_sentence_chars, 1),
            "white_space": "collapse",
            "deduplicate": deduplicate,
            "same_text": "lowercase",
            "fill": ordering,
            "overflow": "truncate",
            "order": "fill",
            "separator": " ",
            "detect_conflicts": False,
        }
        return cls.from_dict({**preset, **others})

    @property
    def limit(self) -> int | None:
        """Units that chunks may use: `budget` less `reserve`; None without a budget."""
        return None if self.budget is None else self.budget - self.reserve

    @property
    def cuts(self) -> bool:
        """Whether a chunk may be packed in part."""
        return self.passage_budget is not None or (self.overflow == "truncate" and self.budget is not None)

    @property
    def deduplicates(self) -> bool:
        """Whether exact duplicates are dropped under these settings."""
        if self.deduplicate is None:
            return self.budget is not None or self.jaccard_threshold is not None
        return self.deduplicate

    def __repr__(self) -> str:
        """Show what differs from the defaults."""
        told = (f.name for f in fields(self) if getattr(self, f.name) != f.default)
        return f"PackerConfig({', '.join(f'{name}={getattr(self, name)!r}' for name in told)})"

    def to_dict(self) -> dict[str, Any]:
        """Give the settings as plain values, in the order of the fields."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PackerConfig:
        """Build settings from a mapping; an unknown key is an error that lists the known ones."""
        known = [f.name for f in fields(cls)]
        if not isinstance(values, Mapping):
            fail(PackerError, "PackerConfig.from_dict", "values", "a mapping of settings", values)
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
        except (TypeError, ValueError, RecursionError) as error:
            raise PackerError(f"PackerConfig.from_json: not JSON: {error}.") from error
        if not isinstance(values, dict):
            fail(PackerError, "PackerConfig.from_json", "text", "one JSON object", text)
        return cls.from_dict(values)

    def replace(self, **changes: Any) -> PackerConfig:
        """Give the same settings with some of them changed; an unknown name is an error."""
        for name in changes:
            if name not in self.__dataclass_fields__:
                unknown(PackerError, "PackerConfig.replace", "setting", name, self.__dataclass_fields__)
        return replace(self, **changes)
