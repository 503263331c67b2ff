"""The packed-versus-plain report: two predictions files over the same queries, compared and written down."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from packtools import __version__
from packtools.answers import exact_match, token_f1
from packtools.comparison import Comparison, check_names, compare, one_line
from packtools.corpus import Corpus
from packtools.counters import TokenCounter, counter_for
from packtools.errors import PairingError, SettingError, fail, shown, unknown
from packtools.metrics import METRICS, Metric, find_answer
from packtools.runs.predictions import Prediction, Predictions

__all__ = ["PackingReport", "packing_report"]

RULE = "msmarco"
FLIPPED = ("exact_match", "answer_in_context")
_GATE = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*")
_HOLDS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _metric(name: str, words: str, unit: str, higher: bool, source: str) -> Metric:
    kind = "answer" if higher else "cost"
    return Metric(name, words, unit, kind, higher, 0.0, 1.0 if unit == "share" else None, (), source)


REPORTED: dict[str, Metric] = {
    m.name: m
    for m in (
        _metric("exact_match", "exact match", "share", True, "best over the references, by the rule named"),
        _metric("token_f1", "token F1", "share", True, "best over the references, by the rule named"),
        _metric(
            "answer_in_context", "answer in context", "share", True, "1 if a passage shown holds a reference"
        ),
        _metric("context_chars", "characters", "chars", False, "the passages shown, joined by one space"),
        _metric("context_tokens", "tokens", "tokens", False, "count of the same text"),
    )
}


@dataclass(frozen=True, eq=False)
class PackingReport:
    """Hold the comparison of two predictions files.

    Parameters
    ----------
    names : (str, str)
        Of the plain and the packed side.
    baseline, compressed : Predictions
    comparison : Comparison
        Over the shared queries, sorted by id as text.
    counter : str
        Name of the token counter.
    rule : str
        By which answers are judged.
    """

    names: tuple[str, str]
    baseline: Predictions
    compressed: Predictions
    comparison: Comparison
    counter: str
    rule: str = RULE

    @cached_property
    def qids(self) -> list[str]:
        """The queries that both files have, sorted as text."""
        return list(self.comparison.baseline.index)

    @cached_property
    def ratio(self) -> pd.Series[float]:
        """Packed / plain characters of each query; 0.0 where the plain context is empty."""
        plain, packed = (s["context_chars"] for s in (self.comparison.baseline, self.comparison.candidate))
        return (packed / plain.where(plain > 0)).fillna(0.0)

    def to_dict(self) -> dict[str, Any]:
        """Give the content of comparison.json.

        The keys of the published report, and beside them: packtools, rule, tokens, statistics, flips.
        """
        left, right = self.comparison.baseline, self.comparison.candidate
        recorded = ("exact_match", "token_f1", "context_chars")
        delta = {f"mean_{m}": float((right[m] - left[m]).mean()) for m in recorded}
        delta["mean_context_compression_ratio"] = float(self.ratio.mean())
        table = json.loads(self.comparison.table.to_json(orient="index", double_precision=15))
        saved = {cost: self.comparison.saving(cost) for cost in ("context_tokens", "context_chars")}
        rows = [side.rows[qid] for side in (self.baseline, self.compressed) for qid in self.qids]
        return {
            "baseline_name": self.names[0],
            "compressed_name": self.names[1],
            "inputs": {
                "baseline_predictions": self.baseline.name,
                "compressed_predictions": self.compressed.name,
            },
            "coverage": {
                "n_baseline_qids": len(self.baseline),
                "n_compressed_qids": len(self.compressed),
                "n_matched_qids": len(self.qids),
                "n_baseline_only_qids": len(self.baseline) - len(self.qids),
                "n_compressed_only_qids": len(self.compressed) - len(self.qids),
            },
            "metrics": {
                self.names[0]: {f"mean_{m}": float(left[m].mean()) for m in recorded},
                self.names[1]: {f"mean_{m}": float(right[m].mean()) for m in recorded},
                "delta": delta,
            },
            "packtools": __version__,
            "scored_as_empty": {
                "n_rows_without_prediction": sum(row.prediction is None for row in rows),
                "n_rows_without_references": sum(not row.references for row in rows),
            },
            "rule": self.rule,
            "counter": self.counter,
            "saving": saved,
            "statistics": table,
            "flips": {name: self._flips(name) for name in FLIPPED},
        }

    def _flips(self, metric: str) -> dict[str, list[str]]:
        lost, gained = self.comparison.flips(metric)
        return {"lost": lost, "gained": gained}

    def per_query(self) -> Iterable[dict[str, Any]]:
        """Give the rows of per_query.jsonl."""
        left, right = (
            frame.to_dict("index") for frame in (self.comparison.baseline, self.comparison.candidate)
        )
        ratio = self.ratio.to_dict()
        for qid in self.qids:
            plain, packed = self.baseline.rows[qid], self.compressed.rows[qid]
            a, b = left[qid], right[qid]
            yield {
                "query_id": qid,
                "query": plain.query or packed.query,
                "references": list(plain.references),
                "baseline": self._side(0, plain, a),
                "compressed": {**self._side(1, packed, b), "context_packing": packed.context_packing},
                "deltas": {
                    "context_chars": int(b["context_chars"] - a["context_chars"]),
                    "context_tokens": int(b["context_tokens"] - a["context_tokens"]),
                    "context_compression_ratio": float(ratio[qid]),
                    "exact_match": float(b["exact_match"] - a["exact_match"]),
                    "token_f1": float(b["token_f1"] - a["token_f1"]),
                },
            }

    def _side(self, side: int, row: Prediction, values: Mapping[Hashable, Any]) -> dict[str, Any]:
        held = values["answer_in_context"]
        return {
            "name": self.names[side],
            "prediction": row.prediction or "",
            "context_chars": int(values["context_chars"]),
            "context_tokens": int(values["context_tokens"]),
            "answer_in_context": None if np.isnan(held) else bool(held),
            "exact_match": float(values["exact_match"]),
            "token_f1": float(values["token_f1"]),
        }

    def to_markdown(self) -> str:
        """Write the report for people."""
        told = self.to_dict()
        cover, saved = told["coverage"], told["saving"]["context_tokens"]
        left, right = (one_line(name) for name in self.names)
        lines = [
            f"# {left} against {right}",
            "",
            f"{cover['n_matched_qids']:,} queries are in both files "
            f"({cover['n_baseline_only_qids']:,} only in {left}, {cover['n_compressed_only_qids']:,} only in "
            f"{right}). Answers are judged by the rule {self.rule!r}, tokens counted by {self.counter}.",
            "",
            f"The packed context has {_percent(saved['total_share'])} fewer tokens over all queries "
            f"({_percent(saved['median_share'])} for the median query); packed / plain characters: "
            f"{told['metrics']['delta']['mean_context_compression_ratio']:.3f}, mean of the queries.",
            "",
            self.comparison.to_markdown(),
        ]
        for metric, flips in told["flips"].items():
            words = REPORTED[metric].words
            for kind, found in flips.items():
                ids = [one_line(qid) for qid in found]
                listed = f": {', '.join(ids)}" if ids else ""
                lines.append(
                    f"- {words}, {kind}: {len(ids):,} {'query' if len(ids) == 1 else 'queries'}{listed}"
                )
        return "\n".join(lines) + "\n"

    def save(self, folder: str | Path) -> list[Path]:
        """Write comparison.json, per_query.jsonl and report.md; the same bytes every time."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name in ("comparison.json", "per_query.jsonl", "report.md")]
        texts = (
            json_text(self.to_dict(), indent=1) + "\n",
            "".join(json_text(row) + "\n" for row in self.per_query()),
            self.to_markdown(),
        )
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, "utf-8", newline="\n")
        return paths

    def missed(self, gates: Sequence[str]) -> list[str]:
        """Say which gates are missed.

        Parameters
        ----------
        gates : sequence of str
            Such as "exact_match < -0.01": a metric of the comparison, a sign, and a bound of the
            difference packed - plain.

        Raises
        ------
        SettingError
            If a gate can't be read or its metric is unknown.
        """
        out = []
        for gate in gates:
            found = _GATE.fullmatch(gate) if isinstance(gate, str) else None
            if not found:
                fail(SettingError, "compare", "fail_if", "such as 'exact_match < -0.01'", gate)
            name, sign, bound = found.groups()
            if name not in self.comparison.table.index:
                unknown(SettingError, "compare", "metric", name, self.comparison.table.index)
            delta = float(self.comparison.table["delta"].to_dict()[name])
            if math.isclose(delta, float(bound), rel_tol=1e-9, abs_tol=1e-12):
                delta = float(bound)  # the same, within rounding
            if np.isnan(delta) or _HOLDS[sign](delta, float(bound)):
                out.append(f"{name}: {delta:+.4g} {sign} {bound}")
        return out


def packing_report(
    baseline: Predictions,
    compressed: Predictions,
    *,
    names: tuple[str, str] = ("baseline", "compressed"),
    counter: str | TokenCounter = "cl100k_base",
    rule: str = RULE,
    rng: int = 0,
) -> PackingReport:
    """Compare the answers from plain and from packed contexts, query by query.

    Parameters
    ----------
    baseline, compressed : Predictions
        See `load_predictions`.
    names : (str, str), default ("baseline", "compressed")
    counter : str or TokenCounter, default "cl100k_base"
    rule : str, default "msmarco"
        By which answers are judged: a name in `RULES`. The default is that of the published report.
    rng : int, default 0

    Returns
    -------
    PackingReport

    Raises
    ------
    PairingError
        If the two share no query, or a shared query has other references.
    """
    check_names("packing_report", names)
    if "delta" in names or names[0] == names[1]:
        fail(SettingError, "packing_report", "names", "two different texts, none of them 'delta'", names)
    shared = sorted(set(baseline.rows) & set(compressed.rows))
    if not shared:
        ours, theirs = (", ".join(list(side.rows)[:3]) for side in (baseline, compressed))
        raise PairingError(
            f"packing_report: {baseline.name} ({ours}, …) and {compressed.name} ({theirs}, …) share no "
            "query_id. Give two files over the same queries."
        )
    for qid in shared:
        a, b = baseline.rows[qid], compressed.rows[qid]
        if a.references != b.references:
            raise PairingError(
                f"packing_report: query {qid!r} has the references {shown(list(a.references))} in "
                f"{baseline.name}:{a.line}, but {shown(list(b.references))} in {compressed.name}:{b.line}. "
                "Both files must be judged by the same references."
            )
    counting = counter_for(counter)
    left, right = (_scored(side, shared, counting, rule) for side in (baseline, compressed))
    held = left["answer_in_context"] > 0
    left["answer_retention"] = left["answer_in_context"].where(held)
    right["answer_retention"] = right["answer_in_context"].where(held)
    compared = compare(left, right, names=names, metrics={**METRICS, **REPORTED}, rng=rng)
    return PackingReport(names, baseline, compressed, compared, counting.name, rule)


def _scored(side: Predictions, qids: list[str], counter: TokenCounter, rule: str) -> pd.DataFrame:
    """Score the answers of one side; a metric a column."""
    rows = [side.rows[qid] for qid in qids]
    contexts = [row.context for row in rows]
    values = {
        "exact_match": [exact_match(row.prediction or "", row.references, rule=rule) for row in rows],
        "token_f1": [token_f1(row.prediction or "", row.references, rule=rule) for row in rows],
        "answer_in_context": [_held(row) for row in rows],
        "context_chars": [len(text) for text in contexts],
        "context_tokens": Corpus(contexts, counter).n_tokens,
    }
    index = pd.Index(np.array(qids, dtype=object), dtype=object, name="qid")
    return pd.DataFrame(values, index=index, dtype=np.float64)


def _held(row: Prediction) -> float:
    if not row.references:
        return np.nan
    return float(any(find_answer(passage, row.references) >= 0 for passage in row.passages))


def _percent(share: float) -> str:
    return "n/a" if np.isnan(share) else f"{share:.1%}".replace("%", " %")


def json_text(value: Any, indent: int | None = None) -> str:
    """Write strict JSON: NaN and infinities become null, lone surrogates U+FFFD."""
    return json.dumps(_plain(value), ensure_ascii=False, sort_keys=True, indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        mended = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value if value.isascii() else mended
    if isinstance(value, Mapping):
        return {_plain(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
