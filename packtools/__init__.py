"""Pack saved RAG runs under a token budget and see what it costs in quality, without a model call.

The public names load on first use, so that ``import packtools`` stays as light as an empty module.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "packtools.budget": ["FILLS", "fit_to_budget"],
    "packtools.answers": [
        "ANSWER_METRICS",
        "RULES",
        "Rule",
        "bleu",
        "exact_match",
        "rouge_l",
        "score_answers",
        "token_f1",
    ],
    "packtools.characters": ["CharacterPack", "ContextPackingConfig", "pack_context"],
    "packtools.comparison": ["Comparison", "compare"],
    "packtools.config": ["PackerConfig"],
    "packtools.conflicts": ["detect_conflicts"],
    "packtools.counters": ["CharCounter", "HFCounter", "TiktokenCounter", "TokenCounter", "counter_for"],
    "packtools.cutting": ["truncate_to_tokens"],
    "packtools.dedup": ["hash_dedup", "jaccard", "jaccard_dedup"],
    "packtools.errors": [
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
    ],
    "packtools.explorer": ["ExplorerModel"],
    "packtools.drawing": ["export_figure"],
    "packtools.exporting": ["export_view"],
    "packtools.figures": ["TradeOffFigure", "curves_figure", "trade_off_figure"],
    "packtools.grids": ["setting_id"],
    "packtools.grounding": [
        "PassageWords",
        "context_relevance",
        "ground_many",
        "lexical_grounding",
        "ngram_grounding",
    ],
    "packtools.metrics": ["DERIVED", "METRICS", "Metric", "find_answer"],
    "packtools.money": ["Price", "cost_usd"],
    "packtools.oracle": ["headroom", "headroom_per_query"],
    "packtools.ordering": [
        "ORDERINGS",
        "Ordering",
        "ascending_order",
        "descending_order",
        "lost_in_middle_order",
        "register_ordering",
    ],
    "packtools.packed": ["PackedRun"],
    "packtools.packed_plain": ["PackingReport", "packing_report"],
    "packtools.packer": ["ContextPacker"],
    "packtools.position": ["POSITION_CURVES", "PositionCurve", "expected_quality", "shared_prefix"],
    "packtools.prepared": ["PreparedRun", "prepare"],
    "packtools.prices": ["price_of"],
    "packtools.presets": ["PRESETS", "preset"],
    "packtools.recommending": ["Recommendation"],
    "packtools.runs.objects": ["to_chunks", "to_run"],
    "packtools.runs.parts": ["partition", "parts_of"],
    "packtools.runs.predictions": ["Prediction", "Predictions", "load_predictions"],
    "packtools.runs": ["LoadReport", "Run", "load_run", "load_sample", "sample_path"],
    "packtools.schema": [
        "Chunk",
        "ConflictAnnotation",
        "Decision",
        "PackedContext",
        "Piece",
        "RequestContext",
        "Span",
        "mark_html",
    ],
    "packtools.selection": ["SELECTORS", "Selector", "Weights", "register_selector"],
    "packtools.spans": ["verify_spans"],
    "packtools.margins": ["NonInferiority", "non_inferiority", "non_inferiority_tests"],
    "packtools.pairing": ["PairedValues", "average_repetitions", "pair_by_id"],
    "packtools.significance": [
        "McNemarTest",
        "PermutationTest",
        "holm",
        "mcnemar",
        "permutation_test",
        "permutation_tests",
    ],
    "packtools.stats": [
        "PairedDelta",
        "WinTieLoss",
        "paired_bootstrap",
        "paired_bootstrap_many",
        "win_tie_loss",
    ],
    "packtools.triads": ["Movement", "TriadReport", "movement", "triad", "triad_row"],
    "packtools.triad_report": ["TriadFiles", "triad_files"],
    "packtools.tradeoff": ["delta_table", "trade_off", "unpacked"],
    "packtools.view": ["View"],
    "packtools.widgets": ["Explorer"],
    "packtools.sentences": ["SPLITTERS", "split_sentences"],
    "packtools.sweep_figures": ["front_figure", "headroom_figure"],
    "packtools.sweeping": ["sweep"],
    "packtools.swept": ["SweepResult"],
    "packtools.text": ["differences", "normalise", "shingle_rule", "text_key"],
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}
__all__ = sorted([*_MODULE, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'packtools' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
