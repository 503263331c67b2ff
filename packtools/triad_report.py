"""The triad over one or more predictions files: scores, low-score cases, movement, written down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from packtools import __version__
from packtools.errors import SettingError, fail, unknown
from packtools.grounding import PassageWords
from packtools.runs.files import json_records
from packtools.runs.report import LoadReport
from packtools.runs.trec import read_qrels
from packtools.triads import DIMENSIONS, Movement, TriadReport, movement, triad

__all__ = ["TriadFiles", "triad_files"]

FILES = ("metrics.json", "per_query_triad.jsonl", "low_score_cases.jsonl", "report.md")


@dataclass(frozen=True, eq=False)
class TriadFiles:
    """Hold the triad of some predictions files.

    Parameters
    ----------
    reports : mapping of str to TriadReport
        By the name of the configuration, in the order given.
    baseline : str
        The configuration that the others are compared with.
    """

    reports: Mapping[str, TriadReport]
    baseline: str

    @cached_property
    def movements(self) -> dict[str, Movement]:
        """How the queries of each other configuration moved against the baseline."""
        before = self.reports[self.baseline]
        return {
            name: movement(before, after) for name, after in self.reports.items() if name != self.baseline
        }

    def to_dict(self) -> dict[str, Any]:
        """Give the content of metrics.json."""
        out: dict[str, Any] = {"packtools": __version__, "baseline_config": self.baseline, "configs": {}}
        for name, report in self.reports.items():
            told = report.to_dict()
            told.pop("per_query")
            out["configs"][name] = told
        out["movement"] = {name: moved.counts for name, moved in self.movements.items()}
        return out

    def to_markdown(self) -> str:
        """Write the report for people."""
        scores = [*DIMENSIONS, "triad"]
        lines = [
            "# Context relevance, groundedness, answer relevance",
            "",
            f"| configuration | queries | {' | '.join(scores).replace('_', ' ')} | low-score cases |",
            "|---|" + "---|" * (len(scores) + 2),
        ]
        for name, report in self.reports.items():
            means = (report.means[s]["mean"] for s in scores)
            cells = " | ".join("n/a" if mean is None else f"{mean:.3f}" for mean in means)
            n_low = len(report.low_scores)
            lines.append(f"| {name} | {len(report.per_query):,} | {cells} | {n_low:,} |")
        for name, moved in self.movements.items():
            lines += ["", f"## {self.baseline} → {name}", "", "| score | improved | worsened | unchanged |"]
            lines.append("|---|---|---|---|")
            for score in scores:
                counts = moved.counts[score]
                shown = " | ".join(f"{counts[b]:,}" for b in ("improved", "worsened", "unchanged"))
                lines.append(f"| {score.replace('_', ' ')} | {shown} |")
            worst = moved.buckets["triad"]["worsened"][:10]
            lines += ["", f"Fell most: {', '.join(worst)}"] if worst else []
        return "\n".join(lines) + "\n"

    def save(self, folder: str | Path) -> list[Path]:
        """Write metrics.json, the rows, the low-score cases and report.md; the same bytes every time."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name in FILES]
        paths[0].write_text(_json(self.to_dict(), indent=1) + "\n", "utf-8")
        for path, low in ((paths[1], False), (paths[2], True)):
            with path.open("w", encoding="utf-8", newline="\n") as stream:
                for name, report in self.reports.items():
                    for row in report.low_scores if low else report.per_query:
                        stream.write(_json({"config": name, **row}) + "\n")
        paths[3].write_text(self.to_markdown(), "utf-8")
        return paths


def triad_files(
    predictions: Mapping[str, str | Path],
    *,
    qrels: str | Path | None = None,
    baseline: str | None = None,
    context_top_k: int | None = None,
) -> TriadFiles:
    """Score the predictions files of one or more configurations.

    Parameters
    ----------
    predictions : mapping of str to path
        The file of each configuration: JSONL as in `load_predictions`.
    qrels : path or None, default None
        TREC or BEIR; with it, context relevance is a hit among the shown ids.
    baseline : str or None, default None
        Which configuration the others are compared with; None is the first.
    context_top_k : int or None, default None
        Passages shown that count; None or 0 is all.

    Returns
    -------
    TriadFiles

    Raises
    ------
    SettingError
        If no file is given, the baseline is none of them, or a row lacks what is scored.
    RunFormatError, RunFileMissing
        If a file can't be read; with file and line.
    """
    if not predictions:
        fail(SettingError, "triad", "predictions", "at least one NAME=FILE", dict(predictions))
    first = next(iter(predictions)) if baseline is None else baseline
    if first not in predictions:
        unknown(SettingError, "triad", "baseline_config", first, predictions)
    judged = None if qrels is None else _judged(Path(qrels))
    words = PassageWords()
    reports = {}
    for name, path in predictions.items():
        rows = [record for _, record in json_records(Path(path), LoadReport())]
        reports[name] = triad(rows, judged, context_top_k=context_top_k, words=words)
    return TriadFiles(reports, first)


def _judged(path: Path) -> dict[str, dict[str, int]]:
    frame = read_qrels(path, LoadReport())
    out: dict[str, dict[str, int]] = {}
    for qid, docid, label in zip(frame["qid"], frame["docid"], frame["label"], strict=True):
        out.setdefault(str(qid), {})[str(docid)] = int(label)
    return out


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=indent)
