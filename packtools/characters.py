"""The published character packer: its settings and its report, on the shared pipeline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from packtools.config import PackerConfig
from packtools.errors import PackerError, check_count, fail, unknown
from packtools.packer import ContextPacker
from packtools.schema import Chunk, PackedContext
from packtools.text import collapse

__all__ = ["CharacterPack", "ContextPackingConfig", "pack_context"]

WHERE = "ContextPackingConfig"
KNOWN = {"sentence_selection": ("query_overlap", "head"), "ordering": ("rank", "shorter_first")}


@dataclass(frozen=True, kw_only=True)
class ContextPackingConfig:
    """Hold the settings of the character packer, under the names its YAML files use.

    Parameters
    ----------
    enabled : bool, default False
        If False, every passage that is not empty is joined, nothing is dropped or cut.
    max_context_chars : int or None, default None
        The most characters of the packed context; the passage that crosses it is cut.
    max_passage_chars : int or None, default None
        The most characters of one passage; longer ones keep some of their sentences.
    sentence_selection : {"query_overlap", "head"}, default "query_overlap"
    deduplicate : bool, default True
        Drop a passage whose selected text equals an earlier one's but for case.
    ordering : {"rank", "shorter_first"}, default "rank"
        Who is packed first, and stands first.
    min_sentence_chars : int, default 1
        Shorter sentences are not selected; below 1 means 1.

    Raises
    ------
    PackerError
        If a setting breaks its rule.

    Examples
    --------
    >>> config = ContextPackingConfig.from_mapping({"enabled": True, "max_context_chars": 900})
    >>> config.to_packer_config().budget
    900
    """

    enabled: bool = False
    max_context_chars: int | None = None
    max_passage_chars: int | None = None
    sentence_selection: str = "query_overlap"
    deduplicate: bool = True
    ordering: str = "rank"
    min_sentence_chars: int = 1

    def __post_init__(self) -> None:
        for name, names in KNOWN.items():
            if getattr(self, name) not in names:
                unknown(PackerError, WHERE, name, getattr(self, name), names)
        for name in ("max_context_chars", "max_passage_chars"):
            if getattr(self, name) is not None:
                self._count(name, 1)
        self._count("min_sentence_chars", -(1 << 62))  # anything below 1 means 1
        for name in ("enabled", "deduplicate"):
            if not isinstance(getattr(self, name), bool):
                fail(PackerError, WHERE, name, "true or false", getattr(self, name))

    def _count(self, name: str, least: int) -> None:
        value = check_count(PackerError, WHERE, name, getattr(self, name), "character", least)
        object.__setattr__(self, name, value)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any] | None) -> ContextPackingConfig:
        """Build settings from a mapping, such as the section of a YAML file; None is the defaults.

        An unknown key is an error that lists the known ones.
        """
        values = {} if values is None else values
        if not isinstance(values, Mapping):
            fail(PackerError, f"{WHERE}.from_mapping", "values", "a mapping of settings", values)
        known = [f.name for f in fields(cls)]
        for key in values:
            if key not in known:
                unknown(PackerError, f"{WHERE}.from_mapping", "setting", key, known)
        return cls(**values)

    def to_packer_config(self) -> PackerConfig:
        """Give the same settings in the terms of the shared pipeline."""
        if not self.enabled:
            return PackerConfig.characters(deduplicate=False)
        return PackerConfig.characters(
            self.max_context_chars,
            self.max_passage_chars,
            sentence_selection=self.sentence_selection,
            deduplicate=self.deduplicate,
            ordering=self.ordering,
            min_sentence_chars=self.min_sentence_chars,
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the settings as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class CharacterPack:
    """Hold one packed query in the terms of the character packer.

    Parameters
    ----------
    config : ContextPackingConfig
    packed : PackedContext
        The same in the terms of the shared pipeline: decisions, spans with source offsets.
    original_doc_ids, retained_doc_ids, dropped_doc_ids : tuple of str
        As given; in packed order; the empty and repeated ones in rank order, then those that the
        budget left out, each once.
    original_context_chars, packed_context_chars : int
        Code points of the passages with white space collapsed, joined by one space; of `context`.
    """

    config: ContextPackingConfig
    packed: PackedContext
    original_doc_ids: tuple[str, ...]
    retained_doc_ids: tuple[str, ...]
    dropped_doc_ids: tuple[str, ...]
    original_context_chars: int
    packed_context_chars: int
    spans: tuple[dict[str, Any], ...]

    @property
    def context(self) -> str:
        """The packed text."""
        return self.packed.text

    @property
    def passages(self) -> tuple[str, ...]:
        """The packed passages; `context` is these joined by one space."""
        return self.packed.passages

    @property
    def compression_ratio(self) -> float:
        """Packed / original characters; 0.0 if the original is empty."""
        return self.packed_context_chars / self.original_context_chars if self.original_context_chars else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Give the `context_packing` metadata of a predictions file as plain values."""
        return {
            "config": self.config.to_dict(),
            "original_doc_ids": list(self.original_doc_ids),
            "retained_doc_ids": list(self.retained_doc_ids),
            "dropped_doc_ids": list(self.dropped_doc_ids),
            "original_context_chars": self.original_context_chars,
            "packed_context_chars": self.packed_context_chars,
            "compression_ratio": self.compression_ratio,
            "spans": [dict(s) for s in self.spans],
        }

    def to_json(self) -> str:
        """Give `to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


def pack_context(
    *,
    query: str,
    doc_ids: Sequence[object],
    passages: Sequence[str | None],
    config: ContextPackingConfig | None = None,
) -> CharacterPack:
    """Pack one query's passages under character budgets, as the published generation pipeline does.

    1. U+FFFD becomes a space, runs of white space become one; empty passages are dropped.
    2. A passage over `max_passage_chars` keeps the sentences that overlap the query most.
    3. Repeats of an earlier passage, case aside, are dropped.
    4. Passages are joined by one space until one does not fit; that one is cut at a word boundary,
       and nothing is tried after it.

    Parameters
    ----------
    query : str
    doc_ids : sequence
        Ids become strings; an id may stand there twice.
    passages : sequence of (str or None)
        In rank order, as many as `doc_ids`; None counts as empty.
    config : ContextPackingConfig or None, default None
        None, like the default settings, packs everything.

    Returns
    -------
    CharacterPack

    Raises
    ------
    PackerError
        If the lengths differ or a passage is not text.

    Examples
    --------
    >>> settings = ContextPackingConfig(enabled=True, max_context_chars=24)
    >>> pack_context(query="greek", doc_ids=[7, 8], passages=["alpha  beta gamma", "delta epsilon"],
    ...              config=settings).passages
    ('alpha beta gamma', 'delta')
    """
    config = ContextPackingConfig() if config is None else config
    if not isinstance(config, ContextPackingConfig):
        hint = "See ContextPackingConfig.from_mapping."
        fail(PackerError, "pack_context", "config", "a ContextPackingConfig", config, hint)
    if not isinstance(query, str):
        fail(PackerError, "pack_context", "query", "a string", query)
    for name, given in (("doc_ids", doc_ids), ("passages", passages)):
        if isinstance(given, str) or not isinstance(given, Sequence):
            fail(PackerError, "pack_context", name, "a list", given)
    ids = [str(d) for d in doc_ids]
    if len(ids) != len(passages):
        raise PackerError(
            f"pack_context: doc_ids and passages must be of one length; got {len(ids)} ids and "
            f"{len(passages)} passages. Give one id a passage."
        )
    chunks = [Chunk(docid, "" if text is None else text) for docid, text in zip(ids, passages, strict=True)]
    settings = config.to_packer_config()
    packed = ContextPacker(settings).pack_sync(None, chunks, query=query)
    retained = tuple(s.docid for s in packed.spans)
    lengths = [len(collapse(c.text)) for c in chunks]
    some = [n for n in lengths if n]
    return CharacterPack(
        config,
        packed,
        tuple(ids),
        retained,
        _dropped(packed) if config.enabled else (),
        sum(some) + max(len(some) - 1, 0),
        len(packed.text),
        _spans(packed, lengths, config.enabled),
    )


def _dropped(packed: PackedContext) -> tuple[str, ...]:
    """List the empty and repeated ids, then what the budget left out, unless it is there already."""
    early = [d.docid for d in packed.decisions if d.reason in ("empty", "duplicate_of")]
    seen = {s.docid for s in packed.spans} | set(early)
    late = dict.fromkeys(d.docid for d in packed.decisions if d.docid not in seen)
    return (*early, *late)


def _spans(packed: PackedContext, lengths: Sequence[int], enabled: bool) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "doc_id": s.docid,
            "source_rank": s.rank,
            "packed_index": index,
            "start_char": s.start,
            "end_char": s.end,
            "original_char_count": lengths[s.rank - 1],
            "selected_char_count": s.end - s.start,
            "truncated": s.truncated,
            "selected_sentence_count": s.n_sentences if enabled else 0,
        }
        for index, s in enumerate(packed.spans, 1)
    )
