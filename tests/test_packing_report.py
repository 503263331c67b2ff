"""The packed-versus-plain report: the recorded content, its errors, gates, and files that repeat."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import SHARED, vectors

import packtools as pt

FOLDER = SHARED / "vectors" / "packing_report"
needs_vectors = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="../shared/vectors is not here: recorded reports"
)


def recorded():
    names = ("baseline_predictions.jsonl", "compressed_predictions.jsonl")
    sides = [pt.load_predictions(FOLDER / name) for name in names]
    return pt.packing_report(*sides, names=("reranked", "reranked_packed"))


def assert_holds(expected, found, where="report"):
    """Check that everything recorded is there; more may stand beside it."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in found, f"{where}.{key}"
            assert_holds(value, found[key], f"{where}.{key}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-9), where
    else:
        assert found == expected, where


@needs_vectors
def test_the_report_has_the_recorded_content(tmp_path):
    paths = recorded().save(tmp_path)
    assert [p.name for p in paths] == ["comparison.json", "per_query.jsonl", "report.md"]
    assert_holds(
        json.loads((FOLDER / "comparison.json").read_text("utf-8")), json.loads(paths[0].read_text("utf-8"))
    )
    rows = [json.loads(line) for line in paths[1].read_text("utf-8").splitlines()]
    wanted = [json.loads(line) for line in (FOLDER / "per_query.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == len(wanted) == 14
    for row, expected in zip(rows, wanted, strict=True):
        assert_holds(expected, row, expected["query_id"])


@needs_vectors
def test_what_stands_beside_the_recorded_content_adds_up():
    report = recorded()
    told, rows = report.to_dict(), list(report.per_query())
    counter = pt.counter_for("cl100k_base")
    for row in rows:
        plain = report.baseline.rows[row["query_id"]]
        assert row["baseline"]["context_tokens"] == counter.count(plain.context)
    statistics = told["statistics"]
    for metric in ("exact_match", "token_f1", "context_chars", "context_tokens"):
        mean = np.mean([r["compressed"][metric] - r["baseline"][metric] for r in rows])
        assert statistics[metric]["delta"] == pytest.approx(mean)
        assert statistics[metric]["ci_low"] <= mean <= statistics[metric]["ci_high"]
    lost = [r["query_id"] for r in rows if r["compressed"]["exact_match"] < r["baseline"]["exact_match"]]
    assert told["flips"]["exact_match"]["lost"] == lost
    plain, packed = (sum(r[s]["context_chars"] for r in rows) for s in ("baseline", "compressed"))
    assert told["saving"]["context_chars"]["total_share"] == pytest.approx(1 - packed / plain)
    for qid in lost:
        assert qid in report.to_markdown()


@pytest.mark.parametrize("case", vectors("packing_report/errors.jsonl"), ids=lambda c: c["name"])
def test_the_recorded_errors(case, tmp_path):
    for side in ("baseline", "compressed"):
        (tmp_path / f"{side}.jsonl").write_text("\n".join(case[f"{side}_lines"]) + "\n", "utf-8")
    kind = pt.PairingError if case["expected_error"] == "pairing_error" else pt.RunFormatError
    with pytest.raises(kind) as caught:
        pt.packing_report(*(pt.load_predictions(tmp_path / f"{s}.jsonl") for s in ("baseline", "compressed")))
    if kind is pt.RunFormatError:
        assert ".jsonl:" in str(caught.value)


def written(tmp_path, name, rows):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


ROWS = [
    {"query_id": f"q{i}", "query": "?", "prediction": "Rome" if i % 4 else "Paris", "references": ["Rome"],
     "passages": ["It is Rome.", "Or not."]}
    for i in range(20)
]  # fmt: skip


def test_the_same_file_twice_changes_nothing_and_rows_may_be_shuffled(tmp_path):
    a = pt.load_predictions(written(tmp_path, "a.jsonl", ROWS))
    b = pt.load_predictions(written(tmp_path, "b.jsonl", ROWS[::-1]))
    table = pt.packing_report(a, b).comparison.table
    assert (table[["delta", "ci_low", "ci_high"]] == 0).all().all()
    assert (table["p_value"] == 1).all()


def test_gates_speak_of_the_difference(tmp_path):
    worse = [{**row, "prediction": "Oslo"} for row in ROWS]
    report = pt.packing_report(
        pt.load_predictions(written(tmp_path, "a.jsonl", ROWS)),
        pt.load_predictions(written(tmp_path, "b.jsonl", worse)),
    )
    assert report.missed(["exact_match < -0.8", "context_tokens > 0"]) == []
    assert report.missed(["exact_match < -0.01"]) == ["exact_match: -0.75 < -0.01"]
    assert len(report.missed(["exact_match <= -0.75", "token_f1<0"])) == 2
    with pytest.raises(pt.SettingError, match="'fail_if' must be such as 'exact_match < -0.01'; got 'worse'"):
        report.missed(["worse"])
    with pytest.raises(pt.SettingError, match="metric 'exact' is unknown; known: 'exact_match'"):
        report.missed(["exact < 0"])


def test_files_repeat_byte_for_byte(tmp_path):
    report = pt.packing_report(
        *[pt.load_predictions(written(tmp_path, n, ROWS)) for n in ("a.jsonl", "b.jsonl")]
    )
    first, second = report.save(tmp_path / "1"), report.save(tmp_path / "2")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query_id": "q", "prediction": 5}, r"x.jsonl:1: 'prediction' must be a text; got 5"),
        ({"query_id": "q", "references": [1]}, r"x.jsonl:1: 'references' must be a list of texts"),
        ({"query_id": None}, r"x.jsonl:1: 'query_id' must be a text that is not empty; got None"),
        ({"query_id": "q", "context_packing": "no"}, r"x.jsonl:1: 'context_packing' must be an object"),
    ],
)
def test_a_bad_row_is_named_with_file_and_line(row, message, tmp_path):
    with pytest.raises(pt.RunFormatError, match=message):
        pt.load_predictions(written(tmp_path, "x.jsonl", [row]))


def test_an_empty_file_is_an_error(tmp_path):
    with pytest.raises(pt.RunFormatError, match="holds no prediction"):
        pt.load_predictions(written(tmp_path, "x.jsonl", []))


def test_the_command_writes_the_report_and_gates(tmp_path, capsys):
    from packtools.cli import main

    plain = written(tmp_path, "plain.jsonl", ROWS)
    packed = written(
        tmp_path, "packed.jsonl", [{**row, "prediction": "Oslo", "passages": ["Or not."]} for row in ROWS]
    )
    command = ["compare", "--baseline-predictions", str(plain), "--compressed-predictions", str(packed),
               "--compressed-name", "tight", "--output-dir", str(tmp_path / "out")]  # fmt: skip
    assert main(command) == 0
    out = capsys.readouterr().out
    assert out.startswith("# baseline against tight\n")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "comparison.json",
        "per_query.jsonl",
        "report.md",
    }
    assert main([*command, "--fail-if", "exact_match < -0.01", "--fail-if", "context_tokens > 0"]) == 1
    assert capsys.readouterr().err == "packtools: gate missed: exact_match: -0.75 < -0.01\n"
    assert main([*command, "--fail-if", "nonsense"]) == 2
    assert (
        main(["compare", "--baseline-predictions", "none.jsonl", "--compressed-predictions", str(packed)])
        == 2
    )


def test_the_files_are_strict_json_whatever_the_input(tmp_path):
    row = {"query_id": 1, "references": ["x"], "prediction": "x"}
    line = json.dumps({**row, "context_packing": {"r": 1, "id": "?"}})
    odd = tmp_path / "b.jsonl"
    odd.write_text(line.replace('"r": 1', '"r": NaN').replace("?", "\\udfff") + "\n", "utf-8")
    report = pt.packing_report(
        pt.load_predictions(written(tmp_path, "a.jsonl", [row])), pt.load_predictions(odd)
    )
    paths = report.save(tmp_path / "out")

    def never(name):
        raise AssertionError(name)

    told = json.loads(paths[0].read_text("utf-8"), parse_constant=never)
    assert told["saving"]["context_tokens"] == {"total_share": None, "median_share": None}
    (written_row,) = paths[1].read_text("utf-8").splitlines()
    assert json.loads(written_row, parse_constant=never)["compressed"]["context_packing"]["r"] is None


def test_a_gate_is_not_tripped_by_rounding(tmp_path):
    answers = ["a1 b1 c1", "a1 z", "a1"]
    rows = [
        {"query_id": str(i), "references": ["a1 b1 c1 d1"], "prediction": a} for i, a in enumerate(answers)
    ]
    other = [{**row, "prediction": a} for row, a in zip(rows, [answers[2], *answers[:2]], strict=True)]
    sides = [pt.load_predictions(written(tmp_path, n, r)) for n, r in (("a.jsonl", rows), ("b.jsonl", other))]
    report = pt.packing_report(*sides)
    assert report.missed(["token_f1 < 0", "token_f1 > 0", "token_f1 < .0"]) == []
    assert len(report.missed(["token_f1 <= 0"])) == 1


@pytest.mark.parametrize("names", [("m", "m"), ("delta", "m"), ("m",), "ab", (1, 2), ("", "m")])
def test_names_that_would_hide_a_side_are_refused(names, tmp_path):
    side = pt.load_predictions(written(tmp_path, "a.jsonl", ROWS))
    with pytest.raises(pt.SettingError, match="packing_report: 'names' must be two"):
        pt.packing_report(side, side, names=names)


@pytest.mark.parametrize("ids", [5, True, "abc", [None], [{"a": 1}]])
def test_wrong_document_ids_are_named(ids, tmp_path):
    with pytest.raises(pt.RunFormatError, match="x.jsonl:1: 'top_doc_ids' must be a list of ids"):
        pt.load_predictions(written(tmp_path, "x.jsonl", [{"query_id": "q", "top_doc_ids": ids}]))


def test_rows_without_answer_or_references_are_counted(tmp_path):
    rows = [*ROWS, {"query_id": "z", "prediction": None, "references": [None]}]
    side = pt.load_predictions(written(tmp_path, "a.jsonl", rows))
    told = pt.packing_report(side, side).to_dict()["scored_as_empty"]
    assert told == {"n_rows_without_prediction": 2, "n_rows_without_references": 2}


def test_retention_is_scored_where_the_plain_context_holds_the_answer(tmp_path):
    shown = [["It is Rome."], ["It is Rome."], ["No."]]
    packed = [["It is Rome."], ["No."], ["It is Rome."]]
    sides = [
        pt.load_predictions(
            written(
                tmp_path,
                name,
                [{**ROWS[i], "query_id": f"q{i}", "passages": p} for i, p in enumerate(passages)],
            )
        )
        for name, passages in (("a.jsonl", shown), ("b.jsonl", packed))
    ]
    report = pt.packing_report(*sides)
    row = report.comparison.table.loc["answer_retention"]
    assert (row["baseline"], row["candidate"], row["n_queries"], row["N_queries"]) == (1.0, 0.5, 2, 3)
    assert report.missed(["answer_retention < -0.01"]) == ["answer_retention: -0.5 < -0.01"]


def test_the_answer_rule_is_chosen_and_named(tmp_path, capsys):
    from packtools.cli import main

    rows = [{"query_id": "q", "prediction": "(3.14)", "references": ["3.14"], "passages": ["x"]}]
    path = str(written(tmp_path, "a.jsonl", rows))
    command = ["compare", "--baseline-predictions", path, "--compressed-predictions", path, "--answer-rule"]
    assert main([*command, "unicode"]) == 0
    assert "by the rule 'unicode'" in capsys.readouterr().out
    assert main([*command, "exact"]) == 2
    assert "'exact' is unknown; known: 'msmarco'" in capsys.readouterr().err
