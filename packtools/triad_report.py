"""The triad over one or more predictions files: scores, low-score cases, movement, written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from packtools import __version__
from packtools.comparison import one_line
from packtools.errors import PacktoolsError, RunFormatError, SettingError, fail, unknown
from packtools.grounding import PassageWords
from packtools.packed_plain import json_text
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
        out["movement"] = {
            name: {
                **moved.counts,
                "n_only_baseline": len(moved.only_before),
                "n_only_config": len(moved.only_after),
            }
            for name, moved in self.movements.items()
        }
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
            cells = " | ".join(_mean(report.means[s]) for s in scores)
            n_low = len(report.low_scores)
            lines.append(f"| {one_line(name)} | {len(report.per_query):,} | {cells} | {n_low:,} |")
        told = [report.means[s] for report in self.reports.values() for s in scores]
        if any(mean["n_judged"] != mean["n"] for mean in told):
            lines += ["", "In brackets: rows with something behind the score, where not all have."]
        for name, moved in self.movements.items():
            lines += ["", f"## {one_line(self.baseline)} → {one_line(name)}", ""]
            first, second = len(moved.only_before), len(moved.only_after)
            if first or second:
                lines += [
                    f"Left out: {first:,} queries only in the first, {second:,} only in the second.",
                    "",
                ]
            lines += ["| score | improved | worsened | unchanged |"]
            lines.append("|---|---|---|---|")
            for score in scores:
                counts = moved.counts[score]
                shown = " | ".join(f"{counts[b]:,}" for b in ("improved", "worsened", "unchanged"))
                lines.append(f"| {score.replace('_', ' ')} | {shown} |")
            worst = moved.buckets["triad"]["worsened"][:10]
            lines += ["", f"Fell most: {', '.join(map(one_line, worst))}"] if worst else []
        return "\n".join(lines) + "\n"

    def save(self, folder: str | Path) -> list[Path]:
        """Write metrics.json, the rows, the low-score cases and report.md; the same bytes every time."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name in FILES]
        texts = [json_text(self.to_dict(), indent=1) + "\n"]
        for low in (False, True):
            rows = (
                {"config": name, **row}
                for name, report in self.reports.items()
                for row in (report.low_scores if low else report.per_query)
            )
            texts.append("".join(json_text(row) + "\n" for row in rows))
        for path, text in zip(paths, [*texts, self.to_markdown()], strict=True):
            path.write_text(text, "utf-8", newline="\n")
        return paths


def _mean(told: Mapping[str, float | None]) -> str:
    """Write a mean, and over how many rows it says something."""
    if told["mean"] is None:
        return "n/a"
    few = f" ({told['n_judged']:,})" if told["n_judged"] != told["n"] else ""
    return f"{told['mean']:.3f}{few}"


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

    Notes
    -----
    A row needs `query_id`; any other field that it lacks counts as empty.
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
        reports[name] = _scored(name, Path(path), judged, context_top_k, words)
    return TriadFiles(reports, first)


def _scored(
    name: str, path: Path, judged: dict[str, dict[str, int]] | None, top_k: int | None, words: PassageWords
) -> TriadReport:
    """Score one file; a field that a row lacks counts as null."""
    fields = ("query", "passages", "prediction", "references")
    rows = [dict.fromkeys(fields) | record for _, record in json_records(path, LoadReport())]
    if not rows:
        raise RunFormatError(f"triad: {path.name} ({name}) holds no prediction.")
    try:
        return triad(rows, judged, context_top_k=top_k, words=words)
    except PacktoolsError as error:
        raise type(error)(f"{path.name} ({name}): {error}") from error


def _judged(path: Path) -> dict[str, dict[str, int]]:
    frame = read_qrels(path, LoadReport())
    out: dict[str, dict[str, int]] = {}
    for qid, docid, label in zip(frame["qid"], frame["docid"], frame["label"], strict=True):
        out.setdefault(str(qid), {})[str(docid)] = int(label)
    return out
