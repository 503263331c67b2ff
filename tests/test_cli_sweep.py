"""`packtools sweep` and `packtools partition` as they are typed."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import packtools as pt
from packtools.cli import main

GRID = [
    "--budget",
    "500",
    "1000",
    "--order",
    "descending",
    "lost_in_middle",
    "--jaccard-threshold",
    "off",
    "0.85",
]


def test_a_sweep_prints_the_front_and_writes_its_files(tmp_path, capsys):
    assert main(["sweep", *GRID, "--margin", "0.1", "--output-dir", str(tmp_path), "--parquet"]) == 0
    shown = capsys.readouterr().out
    assert "sample/bm25 · 8 settings × 72 queries · cl100k_base" in shown
    assert (
        "Recommended: 1,000 tokens · near-duplicates dropped from 0.85 · descending: 75 % fewer tokens"
        in shown
    )
    names = [
        "front.pdf",
        "front.png",
        "front.svg",
        "per_query.parquet",
        "recommendation.csv",
        "settings.json",
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == [*names, "sweep.csv", "sweep.parquet"]
    told = json.loads((tmp_path / "settings.json").read_text("utf-8"))
    chosen = pt.PackerConfig.from_dict(told["settings"][told["recommended"]["setting"]])
    assert (chosen.budget, chosen.order, chosen.jaccard_threshold) == (1000, "descending", 0.85)
    table = pd.read_csv(tmp_path / "sweep.csv", index_col="setting")
    packed = pt.prepare(pt.load_sample()).evaluate(chosen)
    assert table.loc[told["recommended"]["setting"], "n_tokens"] == pytest.approx(
        packed.per_query["n_tokens"].mean()
    )


def test_files_are_the_same_every_time(tmp_path, capsys):
    for name in "ab":
        assert main(["sweep", "--budget", "500", "--output-dir", str(tmp_path / name)]) == 0
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_a_partition_sweeps_like_the_run(tmp_path, capsys):
    sample = str(pt.sample_path())
    assert main(["partition", sample, "--parts", "3", "--output-dir", str(tmp_path / "parts")]) == 0
    assert "part-00002" in capsys.readouterr().out
    for run, where in ((sample, "a"), (str(tmp_path / "parts"), "b")):
        assert (
            main(
                [
                    "sweep",
                    run,
                    *GRID,
                    "--checkpoint",
                    str(tmp_path / "kept"),
                    "--output-dir",
                    str(tmp_path / where),
                ]
            )
            == 0
        )
    assert (tmp_path / "a" / "sweep.csv").read_bytes() == (tmp_path / "b" / "sweep.csv").read_bytes()


def test_a_price_adds_its_cost(capsys):
    pytest.importorskip("genai_prices")
    given = ["--budget", "500", "--price", "gpt-4o", "--price-date", "2026-11-01", "--cost", "cost_usd"]
    assert main(["sweep", *given]) == 0
    shown = capsys.readouterr().out
    assert "price of 2026-11-01" in shown
    assert "cost in US dollars" in shown


def test_a_run_without_answers_is_judged_by_its_labels(tmp_path, capsys):
    run = pt.load_sample()
    bare = pt.Run.from_frames(run.candidates, run.passages, qrels=run.qrels)
    pt.partition(bare, tmp_path / "parts", parts=1)
    assert main(["sweep", str(tmp_path / "parts"), "--budget", "1000", "--counter", "chars"]) == 0
    assert "relevant passages kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "packtools sweep: '--budget' must be given, or another setting; got None. See --help."),
        (["--budget", "0"], "PackerConfig: 'budget' must be at least 1 token; got 0."),
        (["--order", "best"], "PackerConfig: order 'best' is unknown; known:"),
        (["--budget", "500", "--metric", "f1"], "metric: name 'f1' is unknown; known: 'n_tokens'"),
        (["--budget", "500", "--margin", "-1"], "'--margin' must be a number from 0 on; got -1.0"),
        (["no/such/run", "--budget", "500"], "no/such/run"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(given, message, capsys):
    assert main(["sweep", *given]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("packtools: ")
    assert len(error.strip().splitlines()) == 1
