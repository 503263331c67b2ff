"""The most any packer could keep, found by trying everything; and to which step the rest is lost."""

from __future__ import annotations

import random
from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_select_equivalence import SNIPPETS, configs

import packtools as pt
from packtools.oracle import NEVER, _most, headroom, headroom_per_query
from packtools.plan import Sizes
from packtools.stats import paired_bootstrap

ANSWER, GOLD = METRICS = ["answer_retention", "gold_retention"]
LOSSES = ["lost_to_budget", "lost_to_selection", "lost_to_dedup", "lost_to_fill"]
# Ends differ in what a separator costs behind them: ".\n\n" and ")\n\n" are one token, "e\n\n" is two.
SENTENCES = [
    "Copper rusts green.",
    "The oldest lighthouse stands in Galicia (rebuilt in 1791)",
    "Why do otters hold hands while they sleep on the open water?",
    "Tin melts at 232 degrees",
    "Bees dance!",
    "The zanzibar ferry leaves at nine.",
    "Zanzibar exports cloves, which were its wealth for a hundred years.",
    "Few have seen it",
]


def run_of(texts, relevant=(), answers=(), *, shuffled=None):
    """A run of one query for each list of texts; relevant are numbers of texts in it."""
    rows = [(f"q{q}", f"q{q}d{i}", i + 1) for q, some in enumerate(texts) for i in range(len(some))]
    frame = pd.DataFrame(rows, columns=["qid", "docid", "rank"])
    gold = [(f"q{q}", f"q{q}d{i}", 1) for q, some in enumerate(relevant) for i in some]
    qrels = pd.DataFrame(gold, columns=["qid", "docid", "label"]) if gold else None
    if shuffled is not None:
        frame, qrels = (f.sample(frac=1, random_state=shuffled) for f in (frame, qrels))
    return pt.Run.from_frames(
        frame,
        {f"q{q}d{i}": text for q, some in enumerate(texts) for i, text in enumerate(some)},
        queries={f"q{q}": "zanzibar copper otters" for q in range(len(texts))},
        qrels=qrels,
        answers={f"q{q}": list(some) for q, some in enumerate(answers)} or None,
    )


def random_parts(seed, n_queries=6, n_chunks=5):
    """Chunks as lists of sentences, and which are relevant; the answer of every query is "zanzibar"."""
    rng = random.Random(seed)
    parts = [[rng.sample(SENTENCES, rng.randint(1, 3)) for _ in range(n_chunks)] for _ in range(n_queries)]
    return parts, [rng.sample(range(n_chunks), rng.randint(1, n_chunks)) for _ in parts]


def most_that_fit(options, limit, separator, count):
    """Try every subset of chunks, each in every form, in every order, and count what is rendered."""

    def cost(chosen):
        if separator is None:
            return sum(count(text) for text in chosen)
        return min(count(separator.join(order)) for order in permutations(chosen))

    best = 0
    for forms in product(*([None, *some] for some in options)):
        chosen = [text for text in forms if text is not None]
        if len(chosen) > best and cost(chosen) <= limit:
            best = len(chosen)
    return best


def answer_fits(options, limit, count):
    """Try every form of every chunk on its own."""
    return any("zanzibar" in text.lower() and count(text) <= limit for some in options for text in some)


def whole(parts):
    return [[" ".join(sentences)] for sentences in parts]


# --- against enumeration --------------------------------------------------------------------------


@pytest.mark.parametrize("counter", ["chars", "cl100k_base"])
@pytest.mark.parametrize("separator", [None, "\n\n"])
def test_best_of_whole_chunks_against_enumeration(counter, separator):
    parts, relevant = random_parts(1)
    texts = [[text for (text,) in whole(some)] for some in parts]
    prepared = pt.prepare(run_of(texts, relevant, [["zanzibar"]] * len(parts)), counter=counter)
    count = prepared.counter.count
    config = pt.PackerConfig(separator=separator)
    for budget in (8, 14, 20, 29, 45, 70) if counter != "chars" else (30, 60, 90, 130, 190, 300):
        gold = headroom_per_query(prepared, config, budget, metric=GOLD)["best"]
        answer = headroom_per_query(prepared, config, budget, metric=ANSWER)["best"]
        for q, some in enumerate(parts):
            wanted = [whole(some)[i] for i in relevant[q]]
            assert gold.iloc[q] == most_that_fit(wanted, budget, separator, count) / len(wanted)
            if any("zanzibar" in text.lower() for text in texts[q]):
                assert answer.iloc[q] == answer_fits(whole(some), budget, count)
            else:
                assert np.isnan(answer.iloc[q])


@pytest.mark.parametrize("counter", ["chars", "cl100k_base"])
@pytest.mark.parametrize("overflow", ["skip", "truncate"])
def test_best_of_a_setting_that_cuts_against_enumeration_over_sentences(counter, overflow):
    parts, relevant = random_parts(2, n_chunks=4)
    for some in parts:  # each sentence ends so that the splitter tells it apart
        some[:] = [[s if s[-1] in ".?!" else s + "." for s in sentences] for sentences in some]
    texts = [[text for (text,) in whole(some)] for some in parts]
    relevant = [some[:3] for some in relevant]
    prepared = pt.prepare(run_of(texts, relevant, [["zanzibar"]] * len(parts)), counter=counter)
    count = prepared.counter.count
    # No sentence is longer than the passage budget, so that none is cut.
    config = pt.PackerConfig(
        separator="\n\n", overflow=overflow, passage_budget=80, sentence_selection="head"
    )
    for budget in (4, 7, 11, 16, 24) if counter != "chars" else (12, 25, 45, 70, 100):
        gold = headroom_per_query(prepared, config, budget, metric=GOLD)
        answer = headroom_per_query(prepared, config, budget, metric=ANSWER)
        for q, some in enumerate(parts):
            forms = [[*sentences, " ".join(sentences)] for sentences in some]
            wanted = [forms[i] for i in relevant[q]]
            found = most_that_fit(wanted, budget, "\n\n", count) / len(wanted)
            # A chunk that is cut to what is left may keep less than a sentence.
            floor = gold["kept"].iloc[q] if overflow == "truncate" else 0.0
            assert gold["best"].iloc[q] == max(found, floor)
            if not np.isnan(answer["best"].iloc[q]):
                floor = answer["kept"].iloc[q] if overflow == "truncate" else 0.0
                assert answer["best"].iloc[q] == max(answer_fits(forms, budget, count), floor)


@pytest.mark.parametrize("passage_budget", [None, 60])
def test_every_loss_against_enumeration_over_what_each_step_leaves(passage_budget):
    """What a step leaves is read from packs without a budget, with the later steps off."""
    parts, relevant = random_parts(3)
    texts = [[text for (text,) in whole(some)] for some in parts]
    for some, gold in zip(texts, relevant, strict=True):
        some[4] = some[1].upper()  # equal to a better one, and at times relevant on its own
        gold.append(4) if 4 not in gold else None
    prepared = pt.prepare(run_of(texts, relevant, [["zanzibar"]] * len(parts)), counter="chars")
    config = pt.PackerConfig(
        unit="chars", separator=" | ", passage_budget=passage_budget, sentence_selection="tfidf"
    )
    stages = [
        pt.PackerConfig(budget=None, unit="chars", separator=" | "),
        config.replace(budget=None, deduplicate=False),
        config.replace(budget=None, deduplicate=True),
    ]
    left = [prepared.evaluate(stage) for stage in stages]
    lost = dict.fromkeys(LOSSES, 0.0)
    for budget in (20, 80, 150, 240):
        found = headroom_per_query(prepared, config, budget, metric=GOLD)
        kept = prepared.evaluate(config.replace(budget=budget)).per_query[GOLD]
        for q, gold in enumerate(relevant):
            reached = [1.0]
            for number, packed in enumerate(left):
                one = packed.context(f"q{q}")
                chunks = dict(zip((c.id for c in one.chunks), one.text.split(" | "), strict=True))
                names = [f"q{q}d{i}" for i in gold]
                forms = [[chunks[name]] for name in names if name in chunks]
                if number == 0 and passage_budget:
                    split = [pt.split_sentences(text, config.splitter) for (text,) in forms]
                    forms = [
                        [text, *(text[a:b] for a, b in spans)]
                        for (text,), spans in zip(forms, split, strict=True)
                    ]
                reached.append(most_that_fit(forms, budget, " | ", len) / len(gold))
            reached.append(kept.iloc[q])
            losses = -np.diff(reached)
            assert (losses >= 0).all()  # else the floor of an oracle is tested, not the oracle
            assert found[LOSSES].iloc[q].to_numpy() == pytest.approx(losses, abs=1e-12)
            for name, loss in zip(LOSSES, losses, strict=True):
                lost[name] += loss
    assert lost["lost_to_selection"] > 0 or passage_budget is None
    assert min(lost["lost_to_budget"], lost["lost_to_dedup"], lost["lost_to_fill"]) > 0


@pytest.mark.parametrize("seed", range(40))
def test_the_most_cells_that_fit_against_every_subset_and_every_last_one(seed):
    """Separators here cost up to as much as chunks, so that the best last chunk is often a large one."""
    rng = np.random.default_rng(seed)
    size, gap = rng.integers(0, 9, (6, 3)), rng.integers(0, 9, (6, 3))
    there = rng.random((6, 3)) < 0.8
    prices = Sizes(*(np.where(there, v, NEVER) for v in (size, size + gap)))
    limits = np.array([0, 3, 7, 12, 18, 25, 40, 99])
    found = _most(prices, limits[:, None])
    for query in range(3):
        cells = np.flatnonzero(there[:, query]).tolist()
        for limit, most in zip(limits.tolist(), found[:, query].tolist(), strict=True):
            fitting = [0]
            for n in range(1, len(cells) + 1):
                for some in combinations(cells, n):
                    total = (size + gap)[list(some), query].sum()
                    if min(total - gap[last, query] for last in some) <= limit:
                        fitting.append(n)
            assert most == max(fitting)


# --- by hand --------------------------------------------------------------------------------------


def losses(table):
    """Name the steps to which one query loses something, and how much."""
    row = table[LOSSES].iloc[0]
    return {name: share for name, share in row.items() if share}


@pytest.mark.parametrize(
    ("passage_budget", "overflow", "budget", "expected"),
    [
        (33, "truncate", 18, {"lost_to_budget": 1}),  # the sentence alone has 19 characters
        (33, "truncate", 19, {"lost_to_fill": 1}),  # it is left, but the cut keeps the start
        (33, "truncate", 32, {}),
        (33, "skip", 19, {"lost_to_selection": 1}),  # it is left among others, 32 in all
        (33, "skip", 32, {}),
        (15, "truncate", 40, {"lost_to_selection": 1}),  # only "Red fox one." is left
        (15, "skip", 40, {"lost_to_selection": 1}),
        (None, "truncate", 19, {"lost_to_fill": 1}),
        (None, "skip", 41, {"lost_to_budget": 1}),  # without cutting only the whole chunk, 42, counts
        (None, "skip", 42, {}),
    ],
)
def test_an_answer_in_a_sentence_is_lost_to_the_step_that_loses_it(
    passage_budget, overflow, budget, expected
):
    text = "Red fox one. The answer is gold. Blue sky."
    prepared = pt.prepare(run_of([[text]], [[0]], [["gold"]]), counter="chars")
    config = pt.PackerConfig(
        passage_budget=passage_budget,
        sentence_selection="head" if passage_budget else None,
        overflow=overflow,
    )
    assert losses(headroom_per_query(prepared, config, budget)) == expected


def test_a_sentence_within_a_cut_start_may_still_be_kept_alone():
    text = "Red fox one. The answer is gold. Blue sky."
    prepared = pt.prepare(run_of([[text]], [[0]], [["gold"]]), counter="chars")
    config = pt.PackerConfig(passage_budget=38, overflow="truncate")  # leaves all but "sky."
    assert losses(headroom_per_query(prepared, config, 19)) == {"lost_to_fill": 1}
    config = config.replace(passage_budget=31)  # the sentence is cut before its last word
    assert losses(headroom_per_query(prepared, config, 100)) == {"lost_to_selection": 1}


def test_a_relevant_chunk_of_which_select_leaves_nothing_is_lost_to_selection():
    """A row of a table is never cut, so that nothing of this one is left."""
    table = "| Name of the metal | Degrees |\n|---|---|\n| Tin | 232 |"
    prepared = pt.prepare(run_of([[table]], [[0]]), counter="chars")
    config = pt.PackerConfig(passage_budget=12, sentence_selection="head")
    assert losses(headroom_per_query(prepared, config, 100, metric=GOLD)) == {"lost_to_selection": 1}


def test_an_answer_that_straddles_two_sentences_needs_the_whole_chunk():
    text = "It flows by Mt. Etna. Sicily is near."
    assert len(pt.split_sentences(text, "prose")) == 2
    prepared = pt.prepare(run_of([[text]], [[0]], [["Etna. Sicily"]]), counter="chars")
    config = pt.PackerConfig(passage_budget=len("It flows by Mt. Etna."), sentence_selection="head")
    table = headroom(prepared, config, [len(text) - 1, len(text)])
    assert table["best"].tolist() == [0, 1]
    assert table["kept"].tolist() == [0, 0]


def test_an_oracle_counts_what_a_cut_start_keeps_though_no_sentence_fits():
    prepared = pt.prepare(
        run_of([["Gold is what glitters on the hill."]], [[0]], [["gold"]]), counter="chars"
    )
    table = headroom_per_query(prepared, pt.PackerConfig(overflow="truncate"), 10)
    assert table["kept"].tolist() == table["best"].tolist() == [1]


def test_a_relevant_duplicate_is_lost_to_dedup_and_its_answer_is_not():
    prepared = pt.prepare(
        run_of([["The gold mine.", "the gold mine"]], [[0, 1]], [["gold"]]), counter="chars"
    )
    gold, answer = (headroom_per_query(prepared, pt.PackerConfig(), 100, metric=m) for m in (GOLD, ANSWER))
    assert losses(gold) == {"lost_to_dedup": 0.5}
    assert losses(answer) == {}


def test_an_answer_that_only_the_dropped_near_duplicate_holds_is_lost_to_dedup():
    start = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    prepared = pt.prepare(run_of([[start, start + " gold"]], [[0]], [["gold"]]), counter="chars")
    config = pt.PackerConfig(jaccard_threshold=0.8)
    assert losses(headroom_per_query(prepared, config, 1000)) == {"lost_to_dedup": 1}


def test_the_last_chunk_pays_no_separator_whichever_it_is():
    """ "e\\n\\n" is a token more than ".\\n\\n": the chunk without a full stop must stand last."""
    texts = ["Copper rusts green.", "Copper rusts green here"]
    prepared = pt.prepare(run_of([texts], [[0, 1]]), counter="cl100k_base")
    count = prepared.counter.count
    good, bad = count("\n\n".join(texts)), count("\n\n".join(texts[::-1]))
    assert good < bad
    for order in ("descending", "ascending"):
        for passage_budget in (None, 100):
            config = pt.PackerConfig(separator="\n\n", order=order, passage_budget=passage_budget)
            assert headroom(prepared, config, [good - 1, good], metric=GOLD)["best"].tolist() == [0.5, 1]


@pytest.mark.parametrize("passage_budget", [None, 100])  # priced whole, and by the sentence
@pytest.mark.parametrize("unit", ["tokens", "chars"])
def test_a_chunk_before_another_pays_its_separator(passage_budget, unit):
    texts = ["Copper rusts green here", "Tin melts at 232 degrees"]
    prepared = pt.prepare(run_of([texts], [[0, 1]]), counter="cl100k_base")
    count = prepared.counter.count if unit == "tokens" else len
    needed = count("\n\n".join(texts))
    assert needed > sum(map(count, texts))
    config = pt.PackerConfig(unit=unit, separator="\n\n", passage_budget=passage_budget)
    assert headroom(prepared, config, [needed - 1, needed], metric=GOLD)["best"].tolist() == [0.5, 1]


def test_white_space_is_collapsed_before_anything_is_priced():
    texts = ["Silver is here.", "Gold   is \n here."]
    prepared = pt.prepare(run_of([texts], [[1]], [["gold"]]), counter="chars")
    for white_space, step in (("keep", "lost_to_budget"), ("collapse", "lost_to_fill")):
        config = pt.PackerConfig(white_space=white_space)
        for metric in METRICS:
            assert losses(headroom_per_query(prepared, config, len(texts[0]), metric=metric)) == {step: 1}


def test_the_reserve_is_taken_off_each_budget():
    prepared = pt.prepare(run_of([["Gold."]], [[0]], [["gold"]]), counter="chars")
    table = headroom(prepared, pt.PackerConfig(reserve=10), [14, 15])
    assert table["best"].tolist() == [0, 1]


def test_a_relevant_passage_without_text_is_lost_to_the_budget():
    prepared = pt.prepare(run_of([["Gold.", " "]], [[0, 1]], [["gold"]]), counter="chars")
    assert losses(headroom_per_query(prepared, pt.PackerConfig(), 100, metric=GOLD)) == {
        "lost_to_budget": 0.5
    }


def test_a_run_whose_answers_nobody_retrieved_scores_no_query():
    prepared = pt.prepare(run_of([["Copper.", "Tin."]], [[0]], [["gold"]]), counter="chars")
    table = headroom(prepared, pt.PackerConfig(), [100])
    assert table[["n", "N"]].iloc[0].tolist() == [0, 1]
    assert table.drop(columns=["n", "N"]).isna().all(axis=None)


# --- what always holds ----------------------------------------------------------------------------


def snippets(counter):
    """Texts with every oddity, empty ones too, some of them relevant and some with an answer."""
    rng = random.Random(4)
    texts = [rng.sample(SNIPPETS, 7) for _ in range(4)]
    relevant = [rng.sample(range(7), 3) for _ in texts]
    run = run_of(texts, relevant, [["beta", "safe", "end", "大阪"]] * 4)
    return pt.prepare(run, counter=counter, min_jaccard=0.5)


@pytest.fixture(scope="module")
def odd():
    return {"tokens": snippets("cl100k_base"), "chars": snippets("chars")}


def checked(prepared, config, budgets, metric):
    """Check what holds for any setting; give the table."""
    table = headroom(prepared, config, budgets, metric=metric)
    before = -np.inf
    for budget in budgets:
        found = headroom_per_query(prepared, config, budget, metric=metric)
        packed = prepared.evaluate(config.replace(budget=budget))
        pd.testing.assert_series_equal(found["kept"], packed.per_query[metric], check_names=False)
        assert table.at[budget, "kept"] == pytest.approx(packed.summary.at[metric, "mean"], abs=1e-12)
        assert table.at[budget, "n"] == packed.summary.at[metric, "n"]
        some = found.dropna()
        assert some[LOSSES].to_numpy().min() >= 0
        assert np.allclose(some[LOSSES].sum(axis=1) + some["kept"], 1, rtol=0, atol=1e-12)
        assert np.allclose(some["best"], 1 - some["lost_to_budget"], rtol=0, atol=1e-12)
        pd.testing.assert_series_equal(table.loc[budget, found.columns], found.mean(), check_names=False)
        assert (some["best"] >= before).all()
        before = some["best"]
    return table


@settings(max_examples=20, deadline=None)
@given(
    config=configs(st.none()), counter=st.sampled_from(["tokens", "chars"]), metric=st.sampled_from(METRICS)
)
def test_losses_add_up_and_the_best_grows_with_the_budget_for_any_setting(odd, config, counter, metric):
    checked(odd[counter], config, [1, 5, 12, 30, 70, 300], metric)


def test_the_order_of_rows_does_not_matter():
    parts, relevant = random_parts(5)
    texts = [[text for (text,) in whole(some)] for some in parts]
    config = pt.PackerConfig(separator="\n\n")
    tables = [
        headroom(
            pt.prepare(run_of(texts, relevant, shuffled=seed), counter="chars"),
            config,
            [60, 150],
            metric=GOLD,
        )
        for seed in (None, 1, 2)
    ]
    pd.testing.assert_frame_equal(tables[0], tables[1])
    pd.testing.assert_frame_equal(tables[0], tables[2])


def test_each_budget_is_on_its_own():
    parts, relevant = random_parts(6)
    texts = [[text for (text,) in whole(some)] for some in parts]
    prepared = pt.prepare(run_of(texts, relevant), counter="chars")
    config = pt.PackerConfig(separator="\n\n", budget=7, reserve=3)  # its own budget is not used
    together = headroom(prepared, config, [200, 60, 10**15], metric=GOLD)
    alone = [headroom(prepared, config, [b], metric=GOLD) for b in together.index]
    pd.testing.assert_frame_equal(together, pd.concat(alone))
    assert together.index.name == "budget"
    assert together.at[10**15, "best"] == 1


@pytest.fixture(scope="module")
def sample():
    return pt.prepare(pt.load_sample())


@pytest.mark.parametrize("metric", METRICS)
def test_the_sample_at_the_usual_budgets(sample, metric):
    config = pt.PackerConfig(separator="\n\n", jaccard_threshold=0.85)
    table = checked(sample, config, [250, 500, 1000, 2000, 4000], metric)
    assert (table["best"] >= table["kept"]).all()
    assert (table["lost_to_selection"] == 0).all()  # nothing is cut


def test_room_is_the_paired_bootstrap_of_best_over_kept(sample):
    config = pt.PackerConfig(separator="\n\n")
    table = headroom(sample, config, [250, 400], metric=GOLD, rng=3)
    for budget, row in table.iterrows():
        found = headroom_per_query(sample, config, budget, metric=GOLD)
        pair = paired_bootstrap(found["kept"], found["best"], rng=3)
        expected = [pair.delta, pair.low, pair.high, pair.n, len(found)]
        columns = ["room", "room_ci_low", "room_ci_high", "n", "N"]
        assert row[columns].tolist() == pytest.approx(expected, abs=1e-12)


def test_on_real_questions_the_rank_of_the_gold_changes_what_is_kept_and_not_what_could_be(real):
    tables = {}
    for place in (0, 9, 19):
        name = f"nq-open-20_total_documents_gold_at_{place}.jsonl.gz"
        prepared = pt.prepare(real / "nq_multidoc" / name)
        tables[place] = headroom(prepared, pt.PackerConfig(separator="\n\n"), [400, 4000], metric=GOLD)
    first, middle, last = (tables[place].loc[400] for place in (0, 9, 19))
    assert first["best"] == middle["best"] == last["best"] > 0.9
    assert first["kept"] > middle["kept"] >= last["kept"]
    assert last["lost_to_fill"] > 0.8 > 0.1 > last["lost_to_budget"]
    assert (tables[19].loc[4000, ["kept", "best"]] == 1).all()


# --- bad input ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain():
    return pt.prepare(run_of([["Gold."]], [[0]], [["gold"]]), counter="chars")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"budgets": []}, pt.SettingError, "headroom: 'budgets' must be at least one budget; got []."),
        (
            {"budgets": 500},
            pt.SettingError,
            "headroom: 'budgets' must be a list of whole numbers; got 500. Write [1000].",
        ),
        (
            {"budgets": [None]},
            pt.SettingError,
            "headroom: 'budgets' must be a whole number of tokens; got None.",
        ),
        ({"budgets": [5, 0]}, pt.SettingError, "headroom: 'budgets' must be at least 1 token; got 0."),
        (
            {"config": pt.PackerConfig(reserve=100), "budgets": [500, 100]},
            pt.PackerError,
            "PackerConfig: 'reserve' must be less than the budget; got reserve 100 of budget 100 tokens, which "
            "leaves 0 for chunks. Lower the reserve or raise the budget.",
        ),
        (
            {"metric": "n_tokens"},
            pt.SettingError,
            "headroom: metric 'n_tokens' is unknown; known: 'answer_retention', 'gold_retention'.",
        ),
        ({"config": None}, pt.SettingError, "headroom: 'config' must be a PackerConfig; got None."),
        (
            {"prepared": "run"},
            pt.SettingError,
            "headroom: 'prepared' must be a PreparedRun; got 'run'. Make one with prepare(run).",
        ),
    ],
)
def test_what_is_refused(plain, changes, error, message):
    given = {"prepared": plain, "config": pt.PackerConfig(), "budgets": [500], "metric": ANSWER} | changes
    with pytest.raises(error) as caught:
        headroom(given["prepared"], given["config"], given["budgets"], metric=given["metric"])
    assert str(caught.value) == message


def test_an_unknown_name_in_the_setting_is_refused(plain):
    with pytest.raises(pt.PackerError, match="nowhere"):
        headroom(plain, pt.PackerConfig(order="nowhere"), [500])


@pytest.mark.parametrize(("metric", "missing"), [(ANSWER, "answers"), (GOLD, "qrels")])
def test_a_run_that_lacks_what_a_metric_needs_says_so(metric, missing):
    prepared = pt.prepare(run_of([["Gold."]]), counter="chars")
    with pytest.raises(pt.MetricUnavailable) as caught:
        headroom(prepared, pt.PackerConfig(), [500], metric=metric)
    assert str(caught.value) == f"{metric}: not available: no {missing} in this run."
