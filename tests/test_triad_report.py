"""The triad of predictions files: files written, movement against a baseline, and the command."""

from __future__ import annotations

import json

import pytest

import packtools as pt
from packtools.cli import main

ROWS = [
    {"query_id": f"q{i}", "query": "Who built the Alma dam?", "prediction": "Otto Frick", "references": ["Otto Frick"],
     "top_doc_ids": [f"d{i}"], "passages": ["The Alma dam was built by Otto Frick."]}
    for i in range(4)
]  # fmt: skip


def written(folder, name, rows):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def files(tmp_path):
    worse = [dict(row) for row in ROWS]
    worse[2] = {**ROWS[2], "passages": ["Nothing of use."], "top_doc_ids": ["x"]}
    return {
        "plain": written(tmp_path, "plain.jsonl", ROWS),
        "packed": written(tmp_path, "packed.jsonl", worse[::-1]),
    }


def test_each_configuration_is_scored_and_compared_with_the_baseline(files, tmp_path):
    report = pt.triad_files(files)
    paths = report.save(tmp_path / "out")
    assert [p.name for p in paths] == [
        "metrics.json",
        "per_query_triad.jsonl",
        "low_score_cases.jsonl",
        "report.md",
    ]
    told = json.loads(paths[0].read_text("utf-8"))
    assert told["baseline_config"] == "plain"
    assert told["configs"]["plain"]["means"]["groundedness"]["mean"] == 1.0
    assert told["configs"]["packed"]["means"]["groundedness"]["mean"] == 0.75
    assert told["movement"]["packed"]["groundedness"] == {"improved": 0, "worsened": 1, "unchanged": 3}
    rows = [json.loads(line) for line in paths[1].read_text("utf-8").splitlines()]
    assert [(row["config"], row["query_id"]) for row in rows[:1] + rows[-1:]] == [
        ("plain", "q0"),
        ("packed", "q0"),
    ]
    low = [json.loads(line) for line in paths[2].read_text("utf-8").splitlines()]
    assert [(row["config"], row["query_id"]) for row in low] == [("packed", "q2")]
    assert "Fell most: q2" in paths[3].read_text("utf-8")
    again = report.save(tmp_path / "again")
    assert [p.read_bytes() for p in paths] == [p.read_bytes() for p in again]


def test_with_qrels_the_context_is_relevant_if_a_judged_passage_is_shown(files, tmp_path):
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(4)), "utf-8")
    report = pt.triad_files(files, qrels=qrels)
    assert report.reports["plain"].means["context_relevance"]["mean"] == 1.0
    assert report.reports["packed"].means["context_relevance"]["mean"] == 0.75


def test_the_command_prints_a_table_and_writes(files, tmp_path, capsys):
    pairs = [f"{name}={path}" for name, path in files.items()]
    out = tmp_path / "out"
    assert (
        main(["triad", "--predictions", *pairs, "--baseline-config", "packed", "--output-dir", str(out)]) == 0
    )
    printed = capsys.readouterr().out
    assert "| plain | 4 | 1.000 | 1.000 | 1.000 | 1.000 | 0 |" in printed
    assert "In brackets" not in printed
    assert "## packed → plain" in printed
    assert len(list(out.iterdir())) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plain"], "'--predictions' must be NAME=FILE, each name once; got 'plain'"),
        (["a={plain}", "a={packed}"], "each name once"),
        (["a={plain}", "--baseline-config", "b"], "baseline_config 'b' is unknown; known: 'a'"),
        (["a=nowhere.jsonl"], "nowhere.jsonl' does not exist"),
    ],
)
def test_wrong_arguments_are_one_clear_error(arguments, message, files, capsys):
    assert main(["triad", "--predictions", *(a.format(**files) for a in arguments)]) == 2
    assert message in capsys.readouterr().err


def test_a_wrong_row_is_named_with_its_file(tmp_path):
    path = written(tmp_path, "x.jsonl", [{"query_id": "q9", "passages": 5}])
    with pytest.raises(pt.PacktoolsError, match="x.jsonl .x.: triad: query 'q9': 'passages' must be"):
        pt.triad_files({"x": path})


def test_what_a_row_lacks_counts_as_empty_and_an_empty_file_is_an_error(tmp_path):
    report = pt.triad_files({"x": written(tmp_path, "x.jsonl", [{"query_id": "q9"}])})
    assert report.reports["x"].flags["empty_context"] == 1
    with pytest.raises(pt.RunFormatError, match="holds no prediction"):
        pt.triad_files({"x": written(tmp_path, "y.jsonl", [])})


def test_queries_of_one_file_are_counted_and_names_stay_in_their_cell(tmp_path):
    one, two = written(tmp_path, "1.jsonl", ROWS[:3]), written(tmp_path, "2.jsonl", ROWS[1:])
    report = pt.triad_files({"a|b": one, "c": two})
    assert report.to_dict()["movement"]["c"]["n_only_baseline"] == 1
    text = report.to_markdown()
    assert "Left out: 1 queries only in the first, 1 only in the second." in text
    assert r"| a\|b | 3 |" in text


def test_without_anything_judged_the_mean_says_so(tmp_path, files):
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("other 0 d0 1\n", "utf-8")
    text = pt.triad_files(files, qrels=qrels).to_markdown()
    assert "| plain | 4 | 0.000 (0) |" in text
    assert "In brackets: rows with something behind the score" in text
