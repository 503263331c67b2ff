"""Write a packed run as a predictions file: what each question's reader is shown, and how it was packed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from packtools.characters import KNOWN, ContextPackingConfig
from packtools.config import PackerConfig
from packtools.errors import RunFormatError, SettingError, fail, unknown
from packtools.measured import Kept
from packtools.progress import progress
from packtools.runs.write import write_whole
from packtools.spans import READING_SEPARATOR

if TYPE_CHECKING:
    from packtools.packed import PackedRun

__all__ = ["save_predictions"]

WHERE = "save_predictions"
EARLY = ("no_text", "empty", "duplicate_of", "near_duplicate_of")
"""Reasons of what is listed first among the dropped."""


def save_predictions(
    packed: PackedRun, path: str | Path, predictions: Mapping[str, str | None] | None = None
) -> Path:
    """Write a packed run as JSONL that `load_predictions` reads: see `PackedRun.save_predictions`."""
    target = Path(path)
    if target.suffix.lower() in (".gz", ".zst"):
        fail(SettingError, WHERE, "path", "a name without .gz or .zst; the file is plain JSONL", str(path))
    if target.is_dir():
        fail(SettingError, WHERE, "path", "a file", str(path))
    run = packed.prepared.run
    blank = [qid for qid in run.queries.index if not qid.strip()]
    if blank:
        fail(RunFormatError, WHERE, "qid", "a text that is not white space, for this format", blank[0])
    said = _said(packed, predictions)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(packed, said))
    return write_whole(target, lines, WHERE)


def _said(packed: PackedRun, predictions: Any) -> dict[str, str | None]:
    """Check the predictions; those of the run if none are given."""
    run = packed.prepared.run
    given: Any = run.predictions if predictions is None else predictions
    if given is None:
        return {}
    if not hasattr(given, "items"):
        fail(SettingError, WHERE, "predictions", "a mapping of qid to what a reader answered", given)
    said: dict[str, str | None] = {}
    for qid, text in given.items():
        if qid not in run.queries.index:
            unknown(SettingError, WHERE, "qid", qid, list(run.queries.index[:20]), "See run.queries.")
        if text is not None and text == text and not isinstance(text, str):
            fail(SettingError, WHERE, "predictions", "texts, or None", text, f"Query {qid!r}.")
        said[qid] = text if isinstance(text, str) else None
    return said


def _rows(packed: PackedRun, said: Mapping[str, str | None]) -> Iterator[dict[str, Any]]:
    run, ledger = packed.prepared.run, _Packing(packed)
    for query, qid in enumerate(progress(run.queries.index, "write predictions", run.n_queries)):
        texts, packing = ledger.of(query)
        yield {
            "query_id": qid,
            "query": run.queries["text"].iloc[query],
            "top_doc_ids": packing["retained_doc_ids"],
            "passages": texts,
            "prediction": said.get(qid),
            "references": [] if run.answers is None else list(run.answers.iloc[query]),
            "retrieval_source": run.name,
            "context_packing": packing,
        }


class _Packing:
    """Describe how each query was packed, in the keys of the published character packer."""

    def __init__(self, packed: PackedRun) -> None:
        prepared, config = packed.prepared, packed.config
        self.packed, self.published = packed, _published(config)
        self.settings = (self.published or config).to_dict()
        self.separator = READING_SEPARATOR if config.separator is None else config.separator
        self.kept = Kept(packed.layout, packed.trims, {})
        self.left = prepared.left(config)
        self.n_chars = prepared.full("chars", self.separator)
        self.n_tokens = None if self.published else prepared.full("tokens", config.separator)
        book = packed.decisions
        self.book = [
            book[column].to_numpy() for column in ("docid", "decision", "of", "similarity", "over_by")
        ]
        codes = book["qid"].cat.codes.to_numpy()
        self.start = np.searchsorted(codes, np.arange(len(prepared.qids) + 1)).tolist()

    def of(self, query: int) -> tuple[list[str], dict[str, Any]]:
        """Give the packed passages of a query, in prompt order, and what is to be told of them."""
        layout = self.packed.layout
        places = np.arange(layout.start[query], layout.start[query + 1])
        texts = self.kept.texts(self.left, places)
        book = [column[self.start[query] : self.start[query + 1]].tolist() for column in self.book]
        docids, decision = book[:2]
        spans = self._spans(query, layout.rank[places].tolist(), docids, texts)
        before = int(self.n_chars[query])
        after = sum(map(len, texts)) + len(self.separator) * max(len(texts) - 1, 0)
        early = [d for d, why in zip(docids, decision, strict=True) if why in EARLY]
        late = [d for d, why in zip(docids, decision, strict=True) if why not in (*EARLY, "kept")]
        told = {
            "config": self.settings,
            "original_doc_ids": docids,
            "retained_doc_ids": [span["doc_id"] for span in spans],
            "dropped_doc_ids": early + late,
            "original_context_chars": before,
            "packed_context_chars": after,
            "compression_ratio": after / before if before else 0.0,
            "spans": spans,
        }
        return texts, told if self.published else {**told, **self._more(query, book)}

    def _spans(
        self, query: int, ranks: list[int], docids: list[str], texts: list[str]
    ) -> list[dict[str, Any]]:
        prepared, config = self.packed.prepared, self.packed.config
        out, at = [], 0
        for index, (rank, text) in enumerate(zip(ranks, texts, strict=True), 1):
            whole = int(prepared.corpus.n_chars[prepared.passage[rank, query]])
            counted = config.sentence_selection is not None
            out.append(
                {
                    "doc_id": docids[rank],
                    "source_rank": rank + 1,
                    "packed_index": index,
                    "start_char": at,
                    "end_char": at + len(text),
                    "original_char_count": whole,
                    "selected_char_count": len(text),
                    "truncated": len(text) < whole,
                    "selected_sentence_count": self.left.n_sentences(rank, query) if counted else None,
                }
            )
            at += len(text) + len(self.separator)
        return out

    def _more(self, query: int, book: list[list[Any]]) -> dict[str, Any]:
        """Tell what the published packer has no words for: tokens, and why each chunk was dropped."""
        assert self.n_tokens is not None
        return {
            "counter": self.packed.prepared.counter.name,
            "original_context_tokens": int(self.n_tokens[query]),
            "packed_context_tokens": int(self.packed.per_query["n_tokens"].iloc[query]),
            "dropped": [_drop(*row) for row in zip(*book, strict=True) if row[1] != "kept"],
        }


def _drop(docid: str, reason: str, of: str, similarity: float, over_by: int) -> dict[str, Any]:
    """Say why one chunk was dropped, and what there is to say about that."""
    out: dict[str, Any] = {"doc_id": docid, "reason": reason}
    if of:
        out |= {"of": of, "similarity": similarity}
    if reason == "over_budget":
        out["over_by"] = over_by
    return out


def _published(config: PackerConfig) -> ContextPackingConfig | None:
    """Give the settings in the terms of the published character packer; None if they are others."""
    known = {"sentence_selection": config.sentence_selection, "ordering": config.fill}
    if any(value not in KNOWN[name] for name, value in known.items()):
        return None
    published = ContextPackingConfig(
        enabled=True,
        max_context_chars=config.budget,
        max_passage_chars=config.passage_budget,
        deduplicate=config.deduplicates,
        min_sentence_chars=config.min_sentence_chars,
        **known,  # type: ignore[arg-type]
    )
    return published if published.to_packer_config() == config else None
