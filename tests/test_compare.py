"""Comparisons: pairing by id, what is tested, flips, savings, and the written tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import packtools as pt


@pytest.fixture(scope="module")
def sides():
    prepared = pt.prepare(pt.load_sample())
    config = pt.PackerConfig(separator="\n\n", jaccard_threshold=0.85, detect_conflicts=False)
    return prepared.evaluate(pt.unpacked(config)), prepared.evaluate(config.replace(budget=500))


def frame(**columns):
    return pd.DataFrame(columns, index=[f"q{i}" for i in range(len(next(iter(columns.values()))))])


def test_a_run_against_itself_changes_nothing(sides):
    full, _ = sides
    for other in (full, full.per_query.sample(frac=1, random_state=3)):
        table = pt.compare(full, other).table
        assert (table[["delta", "ci_low", "ci_high"]] == 0).all().all()
        assert (table[["p_value", "p_holm"]] == 1).all().all()
        assert (table["ties"] == table["n_queries"]).all()


def test_deltas_are_means_of_paired_differences(sides):
    full, tight = sides
    compared = pt.compare(full, tight)
    for name, row in compared.table.iterrows():
        difference = (tight.per_query[name] - full.per_query[name]).dropna()
        assert row["delta"] == pytest.approx(difference.mean())
        assert row["n_queries"] == len(difference)
        assert row["wins"] + row["ties"] + row["losses"] == len(difference)
        assert row["ci_low"] <= row["delta"] <= row["ci_high"]
        assert row["unit"] == pt.METRICS[name].unit
    pd.testing.assert_series_equal(
        compared.per_query["n_tokens_delta"], tight.per_query["n_tokens"] - full.per_query["n_tokens"],
        check_names=False, check_dtype=False,
    )  # fmt: skip


def test_flips_are_the_queries_whose_answer_went_or_came(sides):
    full, tight = sides
    lost, gained = pt.compare(full, tight).flips()
    change = tight.per_query["answer_retention"] - full.per_query["answer_retention"]
    assert lost == list(change.index[change == -1])
    assert len(lost) == 9
    assert gained == []
    back_lost, back_gained = pt.compare(tight, full).flips()
    assert (back_lost, back_gained) == (gained, lost)


def test_nine_flips_one_way_have_the_sign_tests_p(sides):
    row = pt.compare(*sides).table.loc["answer_retention"]
    assert (row["wins"], row["losses"]) == (0, 9)
    assert row["p_value"] == pytest.approx(2 * 0.5**9)
    assert row["p_holm"] >= row["p_value"]


def test_savings_weigh_tokens_and_queries_apart():
    before = frame(n_tokens=[1000.0, 10.0, 10.0])
    after = frame(n_tokens=[100.0, 10.0, 10.0])
    saving = pt.compare(before, after).saving()
    assert saving["total_share"] == pytest.approx(900 / 1020)
    assert saving["median_share"] == 0.0
    assert np.isnan(
        pt.compare(frame(n_tokens=[0.0, 0.0]), frame(n_tokens=[0.0, 0.0])).saving()["total_share"]
    )


def test_queries_of_one_side_are_left_out_and_listed():
    a = pd.DataFrame({"m": [1.0, 0.0, 1.0]}, index=["x", "y", "z"])
    b = pd.DataFrame({"m": [0.0, 1.0]}, index=["w", "x"])
    compared = pt.compare(a, b)
    assert (compared.only_baseline, compared.only_candidate) == (("y", "z"), ("w",))
    assert compared.table.loc["m", "n_queries"] == 1
    assert np.isnan(compared.table.loc["m", "p_value"])
    assert "3 queries that one side lacks are left out" in compared._repr_html_()


def test_repetitions_of_a_query_are_averaged_before_pairing():
    a = pd.DataFrame({"m": [0.0, 1.0, 0.5]}, index=["x", "x", "y"])
    b = pd.DataFrame({"m": [1.0, 1.0]}, index=["x", "y"])
    assert pt.compare(a, b).baseline["m"].tolist() == [0.5, 0.5]


def test_a_query_counts_for_a_metric_if_both_sides_are_scored():
    compared = pt.compare(frame(m=[1.0, np.nan, 0.0, 1.0]), frame(m=[1.0, 1.0, np.nan, 0.0]))
    row = compared.table.loc["m"]
    assert (row["n_queries"], row["N_queries"], row["delta"]) == (2, 4, -0.5)


def test_lower_is_better_for_costs():
    row = pt.compare(frame(n_tokens=[10.0, 20.0, 30.0]), frame(n_tokens=[5.0, 20.0, 40.0])).table.loc[
        "n_tokens"
    ]
    assert (row["wins"], row["ties"], row["losses"]) == (1, 1, 1)


def test_the_written_tables_hold_the_same_numbers(sides, tmp_path):
    compared = pt.compare(*sides, names=("all & sundry", "500 tokens"))
    lines = compared.to_markdown().splitlines()
    assert lines[0].split("|")[1:5] == [" metric ", " baseline ", " candidate ", " delta "]
    cells = next(line for line in lines if line.startswith("| answer_retention")).split("|")
    assert [c.strip() for c in cells[2:5]] == ["1.000", "0.875", "-0.125"]
    latex = compared.to_latex()
    assert r"answer\_retention & 1.000 & 0.875 & -0.125" in latex
    assert latex.count(r"\\") == len(compared.table) + 1
    page = compared._repr_html_()
    assert "all &amp; sundry → 500 tokens" in page
    first, second = (
        compared.save(tmp_path / "a"),
        pt.compare(*sides, names=("all & sundry", "500 tokens")).save(tmp_path / "b"),
    )
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (3, frame(m=[1.0]), "'baseline' must be a PackedRun or a DataFrame"),
        (
            frame(m=[1.0]),
            frame(k=[1.0]),
            "'candidate' must be a run with a metric of the baseline; got 'm against k'",
        ),
        (
            frame(m=[1.0]),
            frame(m=[1.0]).set_axis(["z"]),
            "'candidate' must be a run with a query of the baseline",
        ),
        (frame(m=["a"]), frame(m=[1.0]), "'baseline' must be a table of numbers"),
    ],
)
def test_what_can_not_be_compared_is_one_clear_error(a, b, message):
    with pytest.raises(pt.SettingError, match=message):
        pt.compare(a, b)


def test_a_metric_that_is_not_there_lists_what_is():
    with pytest.raises(pt.MetricUnavailable, match="answer_retention: not in both runs; known: m"):
        pt.compare(frame(m=[1.0]), frame(m=[1.0])).flips()


def aragog(path):
    """Scores of one run of the haystack_aragog files, a question a row: theirs, and ours of the answers."""
    import ast

    table = pd.read_csv(path)
    shown = [ast.literal_eval(contexts) for contexts in table["contexts"]]
    predicted = table["predicted_answers"].fillna("").tolist()
    references = [[answer] for answer in table["true_answers"]]
    ours = pt.score_answers(predicted, references, ["token_f1"], rule="unicode")
    ground = pt.ground_many(predicted, shown)
    values = {
        "sas": table["sas"],
        "faithfulness": table["faithfulness"],
        **ours,
        "lexical_grounding": ground.lexical,
    }
    counter = pt.counter_for("cl100k_base")
    values["context_tokens"] = [counter.count("\n\n".join(texts)) for texts in shown]
    return pd.DataFrame({k: np.asarray(v, float) for k, v in values.items()}).set_axis(table["questions"])


def test_nine_runs_of_other_people_are_compared_pairwise(real):
    paths = sorted((real / "haystack_aragog").glob("detailed_*.csv"))
    runs = {path.stem.partition("__")[2]: aragog(path) for path in paths}
    assert len(runs) == 9
    base = runs["top_k-1__chunk_size-64"]
    for name, run in runs.items():
        compared = pt.compare(
            base, run.sample(frac=1, random_state=1), names=("top_k-1__chunk_size-64", name)
        )
        assert compared.table["N_queries"].tolist() == [base.index.nunique()] * 5
        for metric, row in compared.table.iterrows():
            both = pd.concat(
                [base[metric].groupby(level=0).mean(), run[metric].groupby(level=0).mean()], axis=1
            )
            assert row["delta"] == pytest.approx(
                both.dropna().pipe(lambda d: d.iloc[:, 1] - d.iloc[:, 0]).mean()
            )
            assert 0 < row["p_value"] <= row["p_holm"] <= 1
    assert (pt.compare(base, base).table["p_value"] == 1).all()


def test_savings_and_tests_look_at_complete_pairs_only():
    a, b = frame(n_tokens=[100.0, 100.0]), frame(n_tokens=[np.nan, 50.0])
    assert pt.compare(a, b).saving() == {"total_share": 0.5, "median_share": 0.5}
    ones, zeros = frame(m=[1.0] * 30 + [np.nan]), frame(m=[0.0] * 30 + [0.5])
    assert pt.compare(ones, zeros).table.loc["m", "p_value"] == pytest.approx(2 * 0.5**30)


def test_rounding_is_no_flip():
    compared = pt.compare(frame(m=[0.3]), frame(m=[0.1 + 0.2]))
    assert compared.flips("m") == ([], [])
    assert compared.table.loc["m", "ties"] == 1


@pytest.mark.parametrize("index", [[1, "1"], [None, "a"], [np.nan, "a"], [1.0, 2.0], [True, "a"]])
def test_ids_that_are_none_or_collide_are_refused(index):
    good = pd.DataFrame({"m": [1.0, 2.0]}, index=["1", "a"])
    with pytest.raises(pt.SettingError, match="compare: 'candidate' must be indexed by"):
        pt.compare(good, pd.DataFrame({"m": [1.0, 3.0]}, index=pd.Index(index, dtype=object)))


def test_columns_of_one_side_may_hold_words_and_objects_are_read_as_numbers():
    a = pd.DataFrame({"m": pd.Series([1.0, None], dtype=object), "query": ["x", "y"]})
    b = pd.DataFrame({"m": [1.0, 2.0]})
    assert pt.compare(a, b).table.loc["m", "n_queries"] == 1


@pytest.mark.parametrize(("columns", "message"), [(["m", "m"], "each once"), ([1, 2], "columns have names")])
def test_odd_columns_are_one_clear_error(columns, message):
    odd = pd.DataFrame([[1.0, 2.0]], columns=columns, index=["q0"])
    with pytest.raises(pt.SettingError, match=message):
        pt.compare(odd, frame(m=[1.0]))


def test_odd_names_stay_in_their_cell():
    name = "a|b\n<i>~^"
    compared = pt.compare(frame(**{name: [1.0, 0.0]}), frame(**{name: [0.0, 0.0]}))
    assert compared.to_markdown().splitlines()[2].startswith(r"| a\|b &lt;i>~^ | ")
    latex = compared.to_latex().splitlines()
    assert latex[4].startswith(r"a\textbar{}b $<$i$>$\textasciitilde{}\textasciicircum{} & ")
