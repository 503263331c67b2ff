"""Presets: settings with a name."""

from __future__ import annotations

import pytest

import packtools as pt
from packtools.presets import PRESETS, preset


@pytest.fixture(scope="module")
def prepared():
    return pt.prepare(pt.load_sample(), min_jaccard=0.9)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_packs_a_run_prepared_from_a_high_similarity(prepared, name):
    config = preset(name, budget=900, min_jaccard=prepared.min_jaccard)
    assert len(prepared.evaluate(config).per_query) == 72


def test_the_published_packers_are_presets():
    assert preset("token packer, as published", budget=4000) == pt.PackerConfig(budget=4000)
    assert preset("character packer, 900 / 320", budget=1) == pt.PackerConfig(
        budget=900,
        unit="chars",
        passage_budget=320,
        sentence_selection="query_overlap",
        splitter="simple",
        white_space="collapse",
        deduplicate=True,
        same_text="lowercase",
        fill="rank",
        overflow="truncate",
        order="fill",
        separator=" ",
        detect_conflicts=False,
    )


def test_everything_drops_nothing(prepared):
    packed = prepared.evaluate(preset("everything, as retrieved", budget=1))
    assert set(packed.decisions["decision"]) == {"kept"}


def test_near_duplicates_only_drops_nothing_for_its_size(prepared):
    packed = prepared.evaluate(preset("near-duplicates only", budget=1, min_jaccard=0.9))
    assert set(packed.decisions["decision"]) == {"kept", "duplicate_of", "near_duplicate_of"}


def test_the_panel_starts_at_a_preset():
    model = pt.ExplorerModel(pt.load_sample())
    assert preset("start of the panel", budget=model.config.budget) == model.config


@pytest.mark.parametrize("budget", [1, 9, 10, 4000])
def test_every_budget_makes_every_preset(budget):
    for name in PRESETS:
        assert preset(name, budget=budget).budget in (None, 900, budget)


def test_errors_list_the_names_and_give_the_rule():
    names = ", ".join(repr(name) for name in PRESETS)
    with pytest.raises(pt.SettingError) as unknown:
        preset("everything", budget=1)
    assert str(unknown.value) == (f"preset: name 'everything' is unknown; known: {names}.")
    with pytest.raises(pt.PackerError) as small:
        preset("token packer, as published", budget=0)
    assert str(small.value) == "PackerConfig: 'budget' must be at least 1 token; got 0."
