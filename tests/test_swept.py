"""What a sweep says: its table against `compare`, the recommendation against known truth, its files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import packtools as pt
from packtools.inference import against_first, distinct_rows
from packtools.metrics import METRICS
from packtools.swept import BASELINE, SweepResult

GRID = {"budget": [250, 500, 1000], "order": ["descending", "lost_in_middle"], "jaccard_threshold": 0.85}


@pytest.fixture(scope="module")
def found():
    return pt.sweep(pt.prepare(pt.load_sample()), **GRID)


def made_of(cost, quality, metric="answer_retention"):
    """Make a sweep of given values: a row a setting, the baseline first."""
    cost, quality = np.asarray(cost, float), np.asarray(quality, float)
    configs = tuple(pt.PackerConfig(budget=100 * (i + 1)) for i in range(len(cost) - 1))
    qids = tuple(f"q{i}" for i in range(cost.shape[1]))
    values = {"n_tokens": cost, metric: quality}
    return SweepResult("made", "chars", pt.PackerConfig(), configs, qids, values, {}, METRICS)


# --- the table ------------------------------------------------------------------------------------


def test_the_table_says_what_compare_says(found):
    for setting in found.ids:
        theirs = pt.compare(found.per_query(), found.per_query(setting)).table
        row = found.table.loc[setting]
        for metric in found.values:
            for ours, name in (("delta",) * 2, ("ci_low",) * 2, ("ci_high",) * 2, ("p_value",) * 2):
                assert row[f"{metric}_{ours}"] == theirs.loc[metric, name], (setting, metric, name)


def test_the_table_has_the_means_and_the_counts(found):
    for setting in [BASELINE, *found.ids]:
        frame = found.per_query(setting)
        for metric in frame:
            assert found.table.at[setting, metric] == pytest.approx(frame[metric].mean(), rel=1e-12)
            assert found.table.at[setting, f"{metric}_n"] == frame[metric].count()
    assert found.table.loc[BASELINE].filter(regex="_(delta|p_value|p_holm)$").isna().all()


def test_holm_counts_each_distinct_outcome_once(found):
    # The order changes no cost and no retention: three budgets, not six settings, are tested.
    p = found.table["gold_retention_p_value"].drop(BASELINE)
    assert p.nunique() <= 3
    for budget in GRID["budget"]:
        same = found.find(budget=budget)
        assert found.table.loc[same, "gold_retention_p_holm"].nunique() == 1
    by_budget = [found.table.at[found.find(budget=b)[0], "gold_retention_p_value"] for b in GRID["budget"]]
    expected = pt.holm(by_budget)
    got = [found.table.at[found.find(budget=b)[0], "gold_retention_p_holm"] for b in GRID["budget"]]
    assert got == expected.tolist()


def test_distinct_rows_are_told_by_their_bits():
    firsts, kind = distinct_rows(np.array([[1.0, np.nan], [1.0, 2.0], [1.0, np.nan], [1.0, 2.0]]))
    assert firsts.tolist() == [0, 1]
    assert kind.tolist() == [0, 1, 0, 1]


def test_noise_has_about_no_winners():  # P115: 20 settings that differ from the baseline by chance alone
    winners = 0
    for seed in range(60):
        values = np.random.default_rng(seed).normal(size=(21, 40))
        winners += bool((against_first({"noise": values}, rng=seed)["noise"]["p_holm"][1:] < 0.05).any())
    assert winners <= 8  # 3 expected at most; 9 or more has a chance below 0.5 %


def test_an_empty_answer_set_is_not_testable():
    table = made_of([[9, 9], [1, 1]], [[np.nan, np.nan], [np.nan, np.nan]]).table
    row = table.iloc[1]
    assert np.isnan(row["answer_retention_p_value"])
    assert np.isnan(row["answer_retention"])
    assert row["answer_retention_n"] == 0


# --- settings and values --------------------------------------------------------------------------


def test_settings_are_found_by_what_they_are(found):
    ids = found.find(budget=500, order="descending")
    assert [found.config(i).budget for i in ids] == [500]
    assert found.label(ids[0]) == "500 tokens · descending"
    assert found.label(BASELINE) == "the baseline"
    assert found.find(budget=7) == []
    with pytest.raises(pt.SettingError, match="find: setting 'budgets' is unknown"):
        found.find(budgets=500)
    with pytest.raises(pt.SettingError, match="setting 'x' is unknown; known: 'baseline'"):
        found.per_query("x")


def test_one_metric_of_all_settings(found):
    frame = found.per_setting("n_tokens")
    assert list(frame.columns) == [BASELINE, *found.ids]
    assert frame[found.ids[0]].tolist() == found.per_query(found.ids[0])["n_tokens"].tolist()
    with pytest.raises(pt.MetricUnavailable, match="metric 'tokens' is unknown; known: n_tokens"):
        found.per_setting("tokens")


def test_a_metric_that_the_run_lacks_says_why():
    run = pt.load_sample()
    bare = pt.Run.from_frames(run.candidates, run.passages)
    found = pt.sweep(bare, counter="chars", budget=4000)
    with pytest.raises(
        pt.MetricUnavailable, match="'answer_retention' is not available: no answers in this run"
    ):
        found.recommend()


def test_a_metric_of_ones_own_joins_the_others(found):
    price = pt.Price("mine", 2.5)
    more = found.with_metric("cost_usd", lambda frame: pt.cost_usd(frame, price))
    for setting in found.ids:
        tokens = found.table.at[setting, "n_tokens"]
        assert more.table.at[setting, "cost_usd"] == pytest.approx(tokens * 2.5e-6)
    assert more.recommend(cost="cost_usd", margin=0.2).setting == found.recommend(margin=0.2).setting
    short = more.with_metric("short", lambda frame: frame["n_tokens"] < 400, higher_is_better=False)
    assert set(short.values["short"].ravel()) == {0.0, 1.0}
    assert short.metric("short").higher_is_better is False
    flat = found.with_metric("flat", lambda frame: frame["answer_retention"], unit="share")
    drawn = pt.curves_figure(flat.curves("order"), quality=flat.metric("flat"), title="Flat")
    assert drawn.axes[0].get_ylabel() == "flat, mean %"
    with pytest.raises(
        pt.SettingError, match="'name' must be the name of no column that is there; got 'n_tokens'"
    ):
        found.with_metric("n_tokens", lambda frame: frame["n_tokens"])
    with pytest.raises(pt.SettingError, match="'bad' must be 72 numbers, one a query"):
        found.with_metric("bad", lambda frame: frame["n_tokens"].iloc[1:])


def test_the_flat_curve_gives_the_table_of_answer_retention(found):
    more = found.with_metric("expected_quality", lambda frame: pt.expected_quality(frame, "flat"))
    a, b = (more.table.filter(regex=f"^{m}(_|$)") for m in ("expected_quality", "answer_retention"))
    assert a.equals(b.set_axis(a.columns, axis=1))


def test_some_settings_of_a_sweep_are_a_sweep(found):
    some = found.select(order="descending")
    assert some.ids == found.find(order="descending")
    assert some.varied == ["budget"]
    assert some.per_query(some.ids[2]).equals(found.per_query(some.ids[2]))
    assert some.table["n_tokens_delta"].equals(found.table.loc[some.table.index, "n_tokens_delta"])
    with pytest.raises(pt.SettingError, match="select: 'settings' must be those of some setting of the grid"):
        found.select(order="ascending")


def test_curves_are_the_table_by_a_setting(found):
    curves = found.curves("order")
    assert list(curves) == ["descending", "lost in the middle"]
    for name, curve in curves.items():
        assert curve.index[0] == BASELINE
        assert curve["budget"].tolist()[1:] == [250, 500, 1000], name
    assert pt.curves_figure(curves, title="Order").axes
    with pytest.raises(pt.SettingError, match="curves: by 'fill' is unknown; known: 'budget', 'order'"):
        found.curves("fill")
    wide = pt.sweep(
        pt.prepare(pt.load_sample(), counter="chars"),
        budget=[900, 2000],
        order=["fill", "document"],
        reserve=[0, 9],
    )
    with pytest.raises(
        pt.SettingError, match=r"one of at most two settings that vary; got \['budget', 'reserve'\]"
    ):
        wide.curves("order")


# --- the front ------------------------------------------------------------------------------------


def test_the_front_is_sorted_and_holds_the_baseline():
    found = made_of(
        [[9, 9], [1, 1], [5, 5], [4, 4]],
        [[1, 1], [0, 1], [0, 1], [1, 1]],
    )
    front = found.pareto()
    assert front.index.tolist() == [found.ids[0], found.ids[2], found.ids[1], BASELINE]
    assert front["on_front"].tolist() == [True, True, False, False]
    # Setting 3 loses nothing against setting 1 but its cost where query 0 is never drawn: 1 in 4.
    assert front.loc[found.ids[2], "front_share"] == pytest.approx(0.75, abs=0.03)
    assert front["budget"].iloc[0] == 100


def test_a_front_knows_what_is_better(found):
    front = found.pareto("n_tokens", "answer_position")  # the lower the better
    best = front[front["on_front"]]
    assert (np.diff(best["n_tokens"]) >= 0).all()
    assert (np.diff(best["answer_position"]) <= 0).all()


# --- the recommendation ---------------------------------------------------------------------------

CHUNK, REPEATS, QUERIES = 19, 200, 500


def simulated(keeps, seed):
    """Sweep a run in which keeping k chunks keeps an answer with the chance `keeps[k - 1]`.

    The answer of each query is in one of six chunks of equal length, drawn by those chances.
    """
    rng = np.random.default_rng(seed)
    n = REPEATS * QUERIES
    holder = np.searchsorted(keeps, rng.random(n), side="right")
    words = [f"chunk {i} holds {what}" for what in ("chaff", "wheat") for i in range(6)]
    place = np.tile(np.arange(6), (n, 1))
    place[np.arange(n), holder] += 6
    qids = np.array([f"q{i}" for i in range(n)], dtype=object)
    frame = pd.DataFrame(
        {
            "qid": np.repeat(qids, 6),
            "docid": np.array([f"d{i}" for i in range(12)], dtype=object)[place.ravel()],
            "rank": np.tile(np.arange(1, 7), n),
        }
    )
    texts = {f"d{i}": text for i, text in enumerate(words)}
    run = pt.Run.from_frames(frame, texts, answers={q: ["wheat"] for q in qids})
    base = pt.PackerConfig(unit="chars", order="descending", deduplicate=False, detect_conflicts=False)
    assert {len(w) for w in words} == {CHUNK}
    return pt.sweep(run, base=base, counter="chars", budget=[CHUNK * k for k in range(1, 7)])


def chosen(found, margin):
    """Give for each repetition of 500 queries how many chunks the recommended setting keeps."""
    out = []
    for start in range(0, len(found.qids), QUERIES):
        part = slice(start, start + QUERIES)
        one = replace(found, qids=found.qids[part], values={m: v[:, part] for m, v in found.values.items()})
        best = one.recommend("answer_retention", margin)
        out.append(0 if best.setting is None else one.config(best.setting).budget // CHUNK)
    return np.array(out)


@pytest.mark.parametrize(
    ("keeps", "right"),
    [
        ((0.60, 0.75, 0.88, 0.93, 0.99, 1.00), 5),
        ((0.60, 0.75, 0.85, 0.945, 0.985, 1.00), 5),  # four chunks lose just more than the margin
        ((0.70, 0.995, 0.997, 0.999, 1.00, 1.00), 2),
    ],
)
def test_the_right_setting_is_recommended(keeps, right):
    found = chosen(simulated(np.array(keeps), seed=11), margin=0.05)
    assert (found == right).mean() >= 0.95
    lost = 1 - np.array([1.0, *keeps])[found]  # none recommended loses nothing
    assert (lost > 0.05).mean() <= 0.05
    assert lost.max() <= 0.10  # never one that is worse by twice the margin


def test_a_recommendation_by_hand():
    # 400 queries: setting 1 loses 200, setting 2 loses 2, setting 3 none; the baseline costs 9.
    lost = np.arange(400)
    found = made_of(
        np.repeat([[9.0], [1.0], [3.0], [6.0]], 400, axis=1),
        [np.ones(400), lost >= 200, lost >= 2, np.ones(400)],
    )
    best = found.recommend(margin=0.03)
    assert best.setting == found.ids[1]
    assert best.runner_up == found.ids[2]
    assert best.table.index.tolist() == found.ids
    assert best.table["saving"].tolist() == pytest.approx([8 / 9, 6 / 9, 3 / 9])
    assert best.table["delta"].tolist() == pytest.approx([-0.5, -0.005, 0.0])
    assert best.table["passes"].tolist() == [False, True, True]
    # Three bounds that hold at once: each at 5 % / 3.
    level = 1 - 0.05 / 3
    bounds = [
        pt.non_inferiority(np.ones(400), lost >= n, 0.03, confidence=level).smallest_margin
        for n in (200, 2, 0)
    ]
    assert best.table["at_most"].tolist() == bounds
    assert best.at_most == bounds[1] <= 0.03
    assert best.headline.startswith("67 % fewer tokens, “answer kept” at most ")
    assert best.sentences[0] == (
        "Recommended: 200 tokens: 67 % fewer tokens (3.0 of 9.0 per query), “answer kept” −0.5 points."
    )
    assert best.sentences[2].startswith("Runner-up: 300 tokens: 33 % fewer tokens")


def test_none_is_said_plainly():
    lost = np.arange(50)
    found = made_of([[9.0] * 50, [1.0] * 50, [2.0] * 50], [np.ones(50), lost >= 25, np.ones(50)])
    best = found.recommend(margin=0.01)
    assert (best.setting, best.runner_up) == (None, None)
    assert best.sentences[0] == "No setting is shown to lose at most 1 points of “answer kept”."
    # Without a loss, the smallest margin of 50 queries at 5 % / 2 settings.
    least = pt.non_inferiority(np.ones(50), np.ones(50), 0, confidence=0.975).smallest_margin
    assert best.at_most == least
    assert (
        best.sentences[1]
        == f"The nearest is 200 tokens: it would be at a margin of {100 * least:.1f} points."
    )
    assert best.sentences[2] == (
        f"With n = 50 queries and 2 distinct settings no margin below {100 * least:.1f} points can be shown, "
        "even without a loss."
    )
    assert not found.recommend(margin=np.nextafter(least, 0)).setting
    assert found.recommend(margin=least).setting == found.ids[1]


def test_nothing_cheaper_and_nothing_scored():
    dear = made_of([[1.0] * 5, [2.0] * 5], np.ones((2, 5)))
    assert dear.recommend().sentences == ("No setting costs less than the baseline.",)
    unscored = made_of([[2.0] * 5, [1.0] * 5], np.full((2, 5), np.nan)).recommend()
    assert unscored.setting is None
    assert unscored.sentences[1] == (
        "“answer kept” is scored on 0 of 5 queries of the baseline; it takes two that are scored on both sides."
    )
    assert json.loads(json.dumps(unscored.to_dict()))["at_most"] is None


def test_the_cheapest_of_the_grid_says_so():
    found = made_of([[9.0] * 500, [1.0] * 500], np.ones((2, 500)))
    assert found.recommend().sentences[-1] == (
        "It is the cheapest setting of the grid: a still cheaper one may do, too."
    )


def test_settings_that_are_not_testable_are_no_test():
    # Setting 1 is never scored: one bound, for setting 2 alone.
    lost = np.arange(1000)
    found = made_of(
        [[9.0] * 1000, [1.0] * 1000, [2.0] * 1000], [np.ones(1000), np.full(1000, np.nan), lost >= 12]
    )
    best = found.recommend(margin=0.02)
    assert best.at_most == pt.non_inferiority(np.ones(1000), lost >= 12, 0.02).smallest_margin
    assert "for the one setting that costs less, n = 1,000." in best.sentences[1]


def test_bounds_hold_at_once():
    # Two settings that lose 5 % and 2 %; the bound told must hold in 95 % of the repetitions.
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(400):
        lost = rng.random(500) >= np.array([[0.05], [0.02]])
        best = made_of([[9.0] * 500, [1.0] * 500, [2.0] * 500], np.vstack([np.ones(500), lost])).recommend(
            margin=0.05
        )
        true = {None: 0.0, "1": 0.05, "2": 0.02}
        at = None if best.setting is None else str(list(best.table.index).index(best.setting) + 1)
        wrong += at is not None and best.at_most < true[at]
    assert wrong <= 32  # 20 expected at most; 33 or more has a chance below 0.5 %


def test_a_cost_that_is_not_known_is_no_saving():
    # Setting 1 costs twice as much wherever both costs are known.
    cost = np.array([[1.0] * 50 + [100.0] * 50, [2.0] * 50 + [np.nan] * 50])
    found = made_of(cost, np.ones((2, 100)))
    assert found.recommend(margin=0.2).sentences == ("No setting costs less than the baseline.",)
    assert found.pareto()["on_front"].tolist() == [True, False]
    assert found.pareto()["front_share"].tolist() == [1.0, 0.0]
    unknown = made_of(cost[::-1], np.ones((2, 100))).recommend(margin=0.2)
    assert unknown.sentences == ("The tokens of the baseline are not known for every query.",)


def test_words_of_other_costs_and_metrics(found):
    best = found.recommend(margin=0.2, cost="compression_ratio", confidence=0.999)
    assert " less cost (" in best.sentences[0] or best.setting is None
    assert "at 99.9 % confidence" in best.sentences[1] or best.setting is None
    with pytest.raises(
        pt.SettingError, match="'cost' must be a metric of which less is better; got 'gold_ret"
    ):
        found.recommend(cost="gold_retention")
    clean = made_of([[9.0] * 20_000, [0.01] * 20_000], np.ones((2, 20_000))).recommend(margin=0.01)
    assert clean.headline == "99.9 % fewer tokens, “answer kept” at most 0.015 points worse"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"margin": 1e300}, "'margin' must be at most 1e\\+30; got 1e\\+300"),
        ({"margin": -0.1}, "'margin' must be a number from 0 on; got -0.1"),
        ({"confidence": 0.4}, "'confidence' must be above 0.5 and below 1; got 0.4"),
    ],
)
def test_a_bad_margin_is_one_error(found, given, message):
    with pytest.raises(pt.SettingError, match=message):
        found.recommend(**given)


# --- files ----------------------------------------------------------------------------------------


def test_files_hold_the_table_and_are_the_same_every_time(found, tmp_path):
    first, second = (found.save(tmp_path / name, parquet=True) for name in ("a", "b"))
    assert [p.name for p in first] == ["sweep.csv", "settings.json", "sweep.parquet", "per_query.parquet"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    table = pd.read_csv(first[0], index_col="setting")
    assert table.index.tolist() == [BASELINE, *found.ids]
    assert table["n_tokens"].tolist() == pytest.approx(found.table["n_tokens"].tolist(), rel=1e-9)
    told = json.loads(first[1].read_text("utf-8"))
    assert pt.PackerConfig.from_dict(told["settings"][found.ids[1]]) == found.configs[1]
    long = pd.read_parquet(first[3])
    assert len(long) == 7 * 72
    one = long[long["setting"] == found.ids[0]].set_index("qid")["n_tokens"]
    assert one.tolist() == found.per_query(found.ids[0])["n_tokens"].tolist()


def test_a_sweep_shows_itself(found):
    shown = found._repr_html_()
    assert "6 settings × 72 queries" in shown
    assert found.ids[-1] in shown
    assert "Recommended" in found.recommend(margin=0.2)._repr_html_()


def test_a_setting_that_costs_nothing_has_no_place_on_a_log_axis():
    found = pt.sweep(pt.prepare(pt.load_sample(), counter="chars"), budget=[1, 900, 2000])
    drawn = pt.front_figure(found, title="Nothing", recommended=found.recommend(margin=1.0))
    assert drawn._repr_png_()
    lines = [line.get_xdata() for line in drawn.axes[0].lines]
    assert all((np.asarray(x) > 0).all() for x in lines)
    assert pt.curves_figure({"a": found.table, "b": found.table}, title="Nothing")._repr_png_()


def test_thresholds_that_round_alike_are_curves_of_their_own():
    prepared = pt.prepare(pt.load_sample(), counter="chars")
    found = pt.sweep(prepared, budget=[900, 2000], jaccard_threshold=[0.801, 0.804])
    names = [f"near-duplicates dropped from {t}" for t in (0.801, 0.804)]
    assert list(found.curves("jaccard_threshold")) == names


def test_figures_for_a_column_keep_their_labels_inside(found):
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from packtools.drawing import STYLE

    for drawn in (
        pt.front_figure(found, title="A column", width="column"),
        pt.headroom_figure(
            pt.headroom(pt.prepare(pt.load_sample()), found.configs[0], [250, 500]), title="B", width="column"
        ),
    ):
        with rc_context(STYLE):
            FigureCanvasAgg(drawn).draw()
        assert drawn.axes[0].yaxis.get_label().get_window_extent().x0 >= 0


def test_a_report_where_nothing_is_cheaper_or_scored(tmp_path):
    from packtools.sweep_report import printed_sweep, write_sweep

    run = pt.load_sample()
    prepared = pt.prepare(run, counter="chars")
    same_cost = pt.sweep(prepared, order=["descending", "lost_in_middle"])
    best = same_cost.recommend()
    assert "No setting costs less than the baseline." in printed_sweep(same_cost, best)
    assert (tmp_path / "front.png") in write_sweep(same_cost, best, tmp_path)
    odd = pt.Run.from_frames(run.candidates, run.passages, answers=dict.fromkeys(run.queries.index, "qqqq"))
    unscored = pt.sweep(pt.prepare(odd, counter="chars"), budget=[900])
    assert "the baseline" in printed_sweep(unscored, unscored.recommend())
