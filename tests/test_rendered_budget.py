"""With a separator, the rendered text never exceeds the budget, counted again from scratch."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import packtools as pt

BUDGETS = np.unique(np.geomspace(20, 6000, 50).astype(int)).tolist()


def squad(path) -> pt.Run:
    """Make a run of SQuAD-style files: each question with the paragraphs of its article."""
    rows, texts, queries = [], {}, {}
    for article in json.loads(path.read_text("utf-8"))["data"]:
        ids = []
        for paragraph in article["paragraphs"]:
            texts[paragraph["id"]] = paragraph["context"]
            ids.append(paragraph["id"])
        question = article["paragraphs"][0]["qas"][0]
        queries[question["id"]] = question["question"]
        rows += [(question["id"], d, r) for r, d in enumerate(ids, 1)]
    return pt.Run.from_frames(pd.DataFrame(rows, columns=["qid", "docid", "rank"]), texts, queries=queries)


def listed(records) -> pt.Run:
    """Make a run of (query, texts) records."""
    rows, texts = [], {}
    for number, passages in enumerate(records):
        for rank, text in enumerate(passages, 1):
            docid = f"{number}-{rank}"
            texts[docid] = text
            rows.append((str(number), docid, rank))
    return pt.Run.from_frames(pd.DataFrame(rows, columns=["qid", "docid", "rank"]), texts)


def jsonl(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def arabic(real) -> pt.Run:
    texts = [row["text"] for row in jsonl(real / "arcd_ar" / "corpus.jsonl")]
    return listed([texts[i : i + 20] for i in range(0, len(texts), 20)])


def pdf_text(real) -> pt.Run:
    """All nine Haystack runs, one after the other."""
    import ast

    paths = sorted((real / "haystack_aragog").glob("detailed_*.csv"))
    assert len(paths) == 9
    return listed([ast.literal_eval(c) for path in paths for c in pd.read_csv(path)["contexts"]])


def autorag(real) -> pt.Run:
    frame = pd.read_parquet(real / "autorag" / "passage_reranker_best_0.parquet")
    return listed([list(contents) for contents in frame["retrieved_contents"]])


def rag24(real) -> pt.Run:
    rows = jsonl(real / "trec_rag" / "rerank_candidates_rag24_sample.jsonl")
    return listed([[c["doc"]["segment"] for c in row["candidates"]] for row in rows])


def hotpot(real) -> pt.Run:
    rows = json.loads((real / "hotpotqa" / "hotpotqa_sample.json").read_text("utf-8"))
    return listed([["".join(sentences) for _, sentences in row["context"]] for row in rows])


def ragchecker(real) -> pt.Run:
    path = real / "tool_outputs" / "ragchecker_checking_inputs.json"
    rows = json.loads(path.read_text("utf-8"))["results"]
    return listed([[c["text"] for c in row["retrieved_context"]] for row in rows])


SOURCES = {
    "dl19": lambda real: pt.load_run(real / "msmarco_dl19"),
    "dl19 dense": lambda real: pt.load_run(real / "msmarco_dl19", run="tasb"),
    "dl19 sparse": lambda real: pt.load_run(real / "msmarco_dl19", run="splade"),
    "dl19 ada": lambda real: pt.load_run(real / "msmarco_dl19", run="ada2"),
    "nq gold first": lambda real: pt.load_run(real / "nq_multidoc", run="at_0"),
    "nq gold middle": lambda real: pt.load_run(real / "nq_multidoc", run="at_9"),
    "nq gold last": lambda real: pt.load_run(real / "nq_multidoc", run="at_19"),
    "autorag": autorag,
    "nq oracle": lambda real: pt.load_run(real / "nq_oracle"),
    "ramdocs": lambda real: listed(
        [[d["text"] for d in row["documents"]] for row in jsonl(real / "ramdocs" / "RAMDocs_test.jsonl")]
    ),
    "hotpotqa": hotpot,
    "drcd": lambda real: squad(real / "drcd_zh_hant" / "DRCD_dev.json"),
    "arcd": arabic,
    "haystack pdf": pdf_text,
    "trec rag": rag24,
    "ragchecker": ragchecker,
}  # fmt: skip


@pytest.mark.parametrize("source", list(SOURCES))
def test_rendered_text_never_exceeds_the_budget(real, source):
    prepared = pt.prepare(SOURCES[source](real))
    count = prepared.counter.count
    texts = dict(zip(prepared.docids, prepared.corpus.texts, strict=True))
    seen: dict[str, int] = {}
    step = max(len(prepared.qids) // 12, 1)
    for order in ("lost_in_middle", "ascending"):
        config = pt.PackerConfig(separator="\n\n", order=order, jaccard_threshold=0.85)
        for budget, packed in zip(BUDGETS, prepared.evaluate_budgets(config, BUDGETS), strict=True):
            assert (packed.per_query["n_tokens"] <= budget).all()
            for qid in prepared.qids[budget % step :: step]:
                text = "\n\n".join(texts[d] for d in packed.kept(qid))
                if text not in seen:
                    seen[text] = count(text)
                assert packed.per_query.at[qid, "n_tokens"] == seen[text] <= budget


@pytest.mark.parametrize("separator", ["\n\n", " ", "", "\n---\n", "</doc>\n<doc>"])
def test_a_budget_of_the_exact_total_keeps_all_under_any_separator(separator):
    # P28, also where counts of parts don't add up
    run = pt.load_sample()
    packer = pt.ContextPacker(pt.PackerConfig(separator=separator, order="descending", deduplicate=False))
    count = packer.token_counter.count
    for qid in run.queries.index[::9]:
        chunks = run.chunks(qid)[:8]
        total = count(separator.join(c.text for c in chunks))
        assert len(packer.pack_sync(None, chunks, budget=total).chunks) == 8
        less = packer.pack_sync(None, chunks, budget=total - 1)
        assert len(less.chunks) == 7
        assert 0 < next(d for d in less.decisions if not d.kept).over_by <= 12
