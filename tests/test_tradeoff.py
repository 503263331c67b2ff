"""Tables of cost and quality against a baseline: paired by query, and what they refuse."""

from __future__ import annotations

import pytest

import packtools as pt
from packtools.tradeoff import delta_table, trade_off

CONFIG = pt.PackerConfig(separator="\n\n", detect_conflicts=False)


@pytest.fixture(scope="module")
def prepared():
    return pt.prepare(pt.load_sample(), counter="chars")


def test_each_row_is_a_paired_bootstrap(prepared):
    base = prepared.evaluate(pt.unpacked(CONFIG))
    table = trade_off(prepared, CONFIG, [2000, 4000])
    for budget in (2000, 4000):
        packed = prepared.evaluate(CONFIG.replace(budget=budget))
        deltas = delta_table(base, packed)
        for name in ("answer_retention", "gold_retention"):
            single = pt.paired_bootstrap(base.per_query[name], packed.per_query[name])
            row = table.loc[f"{budget:,}"]
            found = [row[f"{name}_{part}"] for part in ("delta", "ci_low", "ci_high")]
            assert found == [single.delta, single.low, single.high]
            assert deltas.loc[name, ["delta", "ci_low", "ci_high"]].tolist() == found


def test_a_baseline_of_other_queries_is_refused(prepared):
    run = pt.load_sample()
    turned = pt.Run.from_frames(
        run.candidates,
        run.passages,
        queries=dict(reversed(run.queries["text"].to_dict().items())),
        answers=run.answers.to_dict(),
    )
    other = pt.prepare(turned, counter="chars").evaluate(CONFIG)
    with pytest.raises(
        pt.SettingError, match="trade_off: 'baseline' must be of the same queries in the same"
    ):
        trade_off(prepared, CONFIG, [2000], baseline=other, quality=["answer_retention"])
    with pytest.raises(pt.SettingError, match="delta_table: 'baseline' must be of the same queries"):
        delta_table(other, prepared.evaluate(CONFIG))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budgets": 4000}, "'budgets' must be a list; got 4000"),
        ({"budgets": [None]}, "'budgets' must be a whole number of tokens; got None"),
        ({"quality": "answer_retention"}, "'quality' must be a list; got 'answer_retention'"),
        ({"quality": ["nope"]}, "metric: name 'nope' is unknown"),
        ({"vary": "order"}, "vary 'order' is unknown"),
        ({"baseline": 3}, "'baseline' must be a PackedRun; got 3"),
    ],
)
def test_bad_input_is_one_error(prepared, given, message):
    with pytest.raises(pt.PacktoolsError, match=message):
        trade_off(prepared, CONFIG, **{"budgets": [2000], **given})


def test_a_metric_that_the_run_lacks_says_why(prepared):
    run = pt.load_sample()
    bare = pt.prepare(pt.Run.from_frames(run.candidates, run.passages), counter="chars")
    with pytest.raises(pt.MetricUnavailable, match="answer_retention: not available: no answers in this run"):
        trade_off(bare, CONFIG, [2000], quality=["answer_retention"])
    full, part = prepared.evaluate(CONFIG), bare.evaluate(CONFIG)
    if list(full.per_query.index) == list(part.per_query.index):
        with pytest.raises(pt.SettingError, match="a pack with the metric 'gold_retention'"):
            delta_table(part, full)
