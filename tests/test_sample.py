"""The sample run is what its README says, and its runs can be made again."""

from __future__ import annotations

import json
import runpy
import shutil
import sys
from collections import Counter

import pytest
from conftest import ROOT

import packtools as pt
from packtools.dedup import similar_pairs
from packtools.text import shingles

SAMPLE = ROOT / "data" / "sample"


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (SAMPLE / name).read_text("utf-8").split("\n") if line]


@pytest.fixture(scope="module")
def corpus() -> dict[str, str]:
    return {row["_id"]: row["text"] for row in rows("corpus.jsonl")}


def test_it_has_the_size_that_is_said(corpus):
    assert len(corpus) == 384
    assert len(rows("queries.jsonl")) == len(rows("answers.jsonl")) == 72
    languages = Counter(row["metadata"]["lang"] for row in rows("corpus.jsonl"))
    assert sum(languages.values()) - languages["en"] == 24
    words = sorted(len(text.split()) for text in corpus.values())
    assert words[30] < 40
    assert words[-40] > 180


def test_every_question_has_relevant_and_tempting_passages_and_its_answer_in_one(corpus):
    run = pt.load_sample()
    for qid, judged in run.qrels.groupby("qid"):
        labels = Counter(judged["label"])
        assert labels[2] >= 1
        assert labels[1] + labels[2] >= 3
        assert labels[0] >= 3
        stating = judged[judged["label"] == 2]["docid"]
        assert any(pt.find_answer(corpus[d], run.answers[qid]) >= 0 for d in stating), qid
        assert set(judged["docid"]) <= set(corpus)


def test_it_holds_near_duplicates_of_every_kind(corpus):
    texts = list(corpus.values())
    pairs = similar_pairs(shingles(texts), 0.4)
    assert (pairs.jaccard >= 0.85).sum() >= 35
    assert (pairs.jaccard < 0.85).sum() >= 14
    near = zip(pairs.first[pairs.jaccard >= 0.85], pairs.second[pairs.jaccard >= 0.85], strict=True)
    differing = sum(pt.differences(texts[a]) != pt.differences(texts[b]) for a, b in near)
    assert 16 <= differing < 40


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_runs_are_what_the_retrievers_give(tmp_path, monkeypatch):
    for name in ("corpus.jsonl", "queries.jsonl"):
        shutil.copy(SAMPLE / name, tmp_path)
    monkeypatch.setattr(sys, "argv", ["build_sample.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "data" / "build_sample.py"), run_name="__main__")
    for name in ("bm25.run", "tfidf.run", "fusion.run"):
        made = [line.split() for line in (tmp_path / name).read_text().splitlines()]
        kept = [line.split() for line in (SAMPLE / name).read_text().splitlines()]
        assert [line[:4] for line in made] == [line[:4] for line in kept]
        assert [float(line[4]) for line in made] == pytest.approx([float(line[4]) for line in kept], abs=1e-5)


def test_no_passage_starts_where_tokens_could_merge(corpus):
    # So that a slider move on the sample never counts a text.
    assert not any(text[:1].isspace() or text[:1] == "/" for text in corpus.values())


def test_the_predictions_can_be_made_again(tmp_path):
    made = runpy.run_path(str(ROOT / "data" / "build_predictions.py"))
    made["main"].__globals__["OUT"] = tmp_path
    made["main"]()
    for name in ("plain.jsonl", "packed.jsonl"):
        assert (tmp_path / name).read_bytes() == (SAMPLE / "predictions" / name).read_bytes()
