"""The command line: output, exit codes, messages."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import packtools as pt
from packtools.cli import main


def run(capsys, *argv: str) -> tuple[int, list[str], str]:
    code = main(list(argv))
    out = capsys.readouterr()
    return code, out.out.splitlines(), out.err


def test_pack_prints_its_figures_then_a_line_a_chunk(capsys):
    code, lines, _ = run(
        capsys, "pack", "space-q2", "--budget", "600", "-k", "10", "--jaccard-threshold", "0.85"
    )
    assert code == 0
    figures = dict(line.split(": ", 1) for line in lines[:12])
    assert list(figures) == [
        "query", "candidates", "tenant", "order", "budget", "tokenizer", "chunks_in", "chunks_out", "tokens_used",
        "dropped_dedup", "dropped_budget", "conflicts",
    ]  # fmt: skip
    assert figures["chunks_in"] == "10"
    assert figures["budget"] == "600"
    assert int(figures["tokens_used"]) <= 600
    chunks = [line.split("\t") for line in lines[12:] if "\t" in line]
    assert len(chunks) == int(figures["chunks_out"])
    assert int(figures["chunks_out"]) + int(figures["dropped_dedup"]) + int(figures["dropped_budget"]) == 10
    rank, score, trust, docid, text = chunks[0]
    assert (rank, trust) == ("1", "trusted")
    assert float(score) > 0
    assert docid.startswith("space-")
    assert text


def test_pack_finds_a_query_by_its_text_and_searches_for_any_other(capsys):
    _, lines, _ = run(capsys, "pack", "who devised india's pin code", "--counter", "chars")
    assert lines[1] == "candidates: saved candidates of time-q8"
    _, lines, _ = run(capsys, "pack", "volcanic lakes", "--counter", "chars", "--no-conflicts")
    assert lines[1].startswith("candidates: TF-IDF over the run's passages")
    assert int(lines[6].split(": ")[1]) > 3


def test_report_prints_the_baseline_first_and_writes_files(capsys, tmp_path):
    code, lines, _ = run(
        capsys, "report", "--budget", "1000", "500", "2000", "250", "--output-dir", str(tmp_path)
    )
    assert code == 0
    table = [line for line in lines if line.startswith(("everything", "250", "500", "1,000", "2,000"))]
    assert [line.split()[0] for line in table] == ["everything", "250", "500", "1,000", "2,000"]
    assert table[0].split()[1:3] == ["3,870", "100.0%"]
    assert all("72 of 72" in line for line in table)
    names = {p.name for p in tmp_path.iterdir()}
    assert {"trade_off.csv", "trade_off.png", "trade_off.svg", "trade_off.pdf", "settings.json"} <= names
    assert json.loads((tmp_path / "settings.json").read_text())["settings"]["jaccard_threshold"] == 0.85


def test_explore_writes_a_notebook_for_a_run(capsys, tmp_path):
    (tmp_path / "x.run").write_text("q1 Q0 d1 1 2 t\n")
    (tmp_path / "collection.tsv").write_text("d1\ttext\n")
    path = tmp_path / "nb.ipynb"
    code, _, _ = run(capsys, "explore", str(tmp_path), "--notebook", str(path), "--no-start")
    assert code == 0
    book = json.loads(path.read_text("utf-8"))
    assert str(tmp_path) in "".join(book["cells"][1]["source"])
    import nbformat

    nbformat.validate(nbformat.reads(path.read_text("utf-8"), 4))
    book["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "my note"})
    path.write_text(json.dumps(book), "utf-8")
    code, lines, _ = run(capsys, "explore", str(tmp_path), "--notebook", str(path), "--no-start")
    assert code == 0
    assert lines == [f"opened as it is: {path}"]
    assert "my note" in path.read_text("utf-8")  # the user's work is never overwritten
    code, _, err = run(capsys, "explore", "--notebook", str(path), "--no-start")
    assert code == 2  # the same file for another run
    path.write_text("{}")
    code, _, err = run(capsys, "explore", str(tmp_path), "--notebook", str(path), "--no-start")
    assert code == 2
    assert "exists and does not load this run" in err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["pack", "x", "--budget", "0"], "pack: 'budget' must be at least 1 token; got 0."),
        (["pack", "x", "-k", "0"], "packtools pack: '--top-k' must be at least 1 candidate; got 0."),
        (["pack", "x", "--order", "up"], "PackerConfig: order 'up' is unknown; known: 'lost_in_middle'"),
        (["pack", "x", "--counter", "gpt"], "counter_for: encoding 'gpt' is unknown"),
        (["pack", "x", "--run", "nowhere"], "load_run: 'nowhere' does not exist. Check the path."),
        (
            ["pack", "x", "--jaccard-threshold", "2"],
            "'jaccard_threshold' must be above 0 and at most 1; got 2.0.",
        ),
        (["report", "nowhere"], "load_run: 'nowhere' does not exist. Check the path."),
        (["report", "--budget", "0"], "packtools report: '--budget' must be at least 1 token; got 0."),
        (["explore", "nowhere", "--no-start"], "load_run: 'nowhere' does not exist. Check the path."),
        (["explore", "--notebook", "x.txt", "--no-start"], "'--notebook' must end in .ipynb; got 'x.txt'."),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, argv, message):
    code, lines, err = run(capsys, *argv)
    assert (code, lines) == (2, [])
    assert message in err
    assert err.startswith("packtools: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["pack", "report", "explore"])
def test_every_command_has_help_with_an_example(capsys, command):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"example:\n  packtools {command}" in capsys.readouterr().out


def test_an_unknown_command_is_exit_code_2(capsys):
    with pytest.raises(SystemExit) as end:
        main(["paint"])
    assert end.value.code == 2


def test_the_module_runs_as_a_program():
    out = subprocess.run(
        [sys.executable, "-m", "packtools.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert out.stdout.startswith("packtools 0.")


def test_the_lab_command_is_loopback_with_a_token_and_root_only_for_root(monkeypatch):
    import os
    from pathlib import Path

    from packtools import notebook

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    command = notebook.lab_command(Path("x.ipynb"))
    assert "--ServerApp.ip=127.0.0.1" in command
    assert "--LabApp.default_url=/lab/tree/x.ipynb" in command
    assert "--LabApp.default_url=/lab/tree/a%20b.ipynb" in notebook.lab_command(Path("/elsewhere/a b.ipynb"))
    assert "--allow-root" not in command
    assert not any("token" in part for part in command)  # Jupyter makes its own
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "--allow-root" in notebook.lab_command(Path("x.ipynb"))


def test_output_that_cannot_be_written_is_exit_code_2(capsys, tmp_path):
    (tmp_path / "file").write_text("x")
    code, _, err = run(
        capsys, "report", "--budget", "900", "--counter", "chars", "--output-dir", str(tmp_path / "file")
    )
    assert code == 2
    assert "File exists" in err
    (tmp_path / "d.ipynb").mkdir()
    code, _, err = run(capsys, "explore", "--no-start", "--notebook", str(tmp_path / "d.ipynb"))
    assert code == 2


def test_a_terminal_without_the_characters_gets_question_marks():
    out = subprocess.run(
        [sys.executable, "-m", "packtools.cli", "report", "--counter", "chars", "--budget", "900"],
        capture_output=True, env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"},
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    assert b"sample/bm25 ? 72 queries" in out.stdout


def test_the_readme_shows_what_the_report_prints(capsys):
    from conftest import ROOT

    _, lines, _ = run(capsys, "report")
    readme = (ROOT / "README.md").read_text("utf-8").splitlines()
    shown = [line for line in readme if "72 of 72" in line]
    assert len(shown) == 4
    printed = {line.split()[0]: line.split() for line in lines if "72 of 72" in line}
    for line in shown:
        assert line.split() == printed[line.split()[0]][: len(line.split())]


def test_the_examples_of_the_readme_run(tmp_path, monkeypatch):
    import re

    from conftest import ROOT

    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.S)
    assert len(blocks) == 6
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    del pt.ORDERINGS["best_last_but_one"]


def test_help_tells_the_true_defaults(capsys):
    for command, default in (("pack", "off"), ("report", "0.85")):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert f"(default: {default})" in " ".join(capsys.readouterr().out.split())
    _, lines, _ = run(capsys, "report", "--counter", "chars", "--budget", "900")
    assert "near-duplicates dropped from 0.85" in lines[0]
    _, lines, _ = run(capsys, "report", "--counter", "chars", "--budget", "900", "--jaccard-threshold", "off")
    assert "near-duplicates kept" in lines[0]


def test_pack_and_report_cut_passages(capsys):
    asked = ("--passage-budget", "40", "--sentence-selection", "query_overlap", "--overflow", "truncate")
    code, lines, _ = run(capsys, "pack", "space-q2", "--budget", "200", *asked)
    assert code == 0
    figures = dict(line.split(": ", 1) for line in lines[:12])
    assert 180 <= int(figures["tokens_used"]) <= 200
    assert int(figures["chunks_out"]) >= 5
    code, lines, _ = run(capsys, "report", "--budget", "500", *asked)
    assert code == 0
    assert "passages cut to 40 tokens, sentences by query overlap" in lines[0]
    code, _, error = run(capsys, "report", "--passage-budget", "40", "--sentence-selection", "first")
    assert code == 2
    assert "sentence_selection 'first' is unknown; known: 'head'" in error
