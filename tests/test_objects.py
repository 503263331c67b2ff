"""Documents in memory: each kind is told by its attributes, nothing of it is lost or changed.

The frameworks are not needed: the classes here have the names and defaults of theirs (LangChain
`Document`, LlamaIndex `TextNode` and `NodeWithScore`, Haystack `Document`).
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

import packtools as pt
from packtools.runs.objects import to_chunks, to_run


class LangChainDocument:
    """A pydantic model: it can be iterated, over its fields."""

    def __init__(self, page_content: str, *, id: str | None = None, metadata: dict | None = None) -> None:
        self.page_content, self.id, self.metadata = page_content, id, metadata or {}
        self.type = "Document"

    def __iter__(self):
        yield from vars(self).items()


class TextNode:
    def __init__(self, text: str, id_: str, metadata: dict | None = None) -> None:
        self.text, self.id_, self.metadata = text, id_, metadata or {}

    @property
    def node_id(self) -> str:
        return self.id_

    def get_content(self, metadata_mode: str = "none") -> str:
        return self.text if metadata_mode == "none" else f"{self.metadata} {self.text}"


class NodeWithScore:
    """It passes some names on to its node, and raises for a node that is no text."""

    def __init__(self, node: Any, score: float | None = None) -> None:
        self.node, self.score = node, score

    @property
    def text(self) -> str:
        if not isinstance(self.node, TextNode):
            raise ValueError("Node must be a TextNode to get text.")
        return self.node.text

    def get_content(self, metadata_mode: str = "none") -> str:
        return self.node.get_content(metadata_mode)


class Node:
    """The node of several media: no `text`, only `get_content`."""

    def __init__(self, text: str, id_: str) -> None:
        self.id_ = self.node_id = id_
        self.text_resource, self.metadata = text, {}

    def get_content(self, metadata_mode: str = "none") -> str:
        return self.text_resource


@dataclass
class HaystackDocument:
    id: str = ""
    content: str | None = None
    blob: Any = None
    meta: dict = field(default_factory=dict)
    score: float | None = None
    embedding: list | None = None


Hit = namedtuple("Hit", ["score", "docid", "contents", "lucene_docid"])
TEXT = "Steel is an alloy."
KINDS = {
    "langchain": (LangChainDocument(TEXT, id="d1", metadata={"source": "a.pdf", "title": "T"}), None),
    "langchain with score": ((LangChainDocument(TEXT, id="d1", metadata={"source": "a.pdf", "title": "T"}), 0.5), 0.5),
    "llama_index": (NodeWithScore(TextNode(TEXT, "d1", {"source": "a.pdf", "title": "T"}), 0.5), 0.5),
    "llama_index node": (TextNode(TEXT, "d1", {"source": "a.pdf", "title": "T"}), None),
    "haystack": (HaystackDocument("d1", TEXT, meta={"source": "a.pdf", "title": "T"}, score=0.5), 0.5),
    "mapping": ({"id": "d1", "text": TEXT, "score": 0.5, "title": "T", "source": "a.pdf"}, 0.5),
    "mapping, metadata apart": (
        {"_id": "d1", "page_content": TEXT, "score": np.float32(0.5), "metadata": {"title": "T", "source": "a.pdf"}}, 0.5,
    ),
    "chunk": (pt.Chunk("d1", TEXT, 0.5, metadata={"source": "a.pdf", "title": "T"}), 0.5),
}  # fmt: skip


# --- chunks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_becomes_the_same_chunk(kind):
    document, score = KINDS[kind]
    assert to_chunks([document]) == [pt.Chunk("d1", TEXT, score, metadata={"source": "a.pdf", "title": "T"})]


@pytest.mark.parametrize("key", ["text", "contents", "page_content", "content"])
@pytest.mark.parametrize("name", ["id", "_id", "docid", "doc_id"])
def test_a_mapping_has_its_text_and_id_under_the_usual_names(key, name):
    assert to_chunks([{name: "d1", key: TEXT}]) == [pt.Chunk("d1", TEXT)]


def test_tuples_texts_and_nodes_without_text_attribute():
    hit = Hit(2.5, "d9", "Iron.", 17)
    documents = [("d1", TEXT, 3), hit, NodeWithScore(Node("Tin.", "n1"), 1.0), (TextNode("Zinc.", "n2"), 0.5)]
    assert to_chunks(documents) == [
        pt.Chunk("d1", TEXT, 3.0),
        pt.Chunk("d9", "Iron.", 2.5, metadata={"lucene_docid": 17}),
        pt.Chunk("n1", "Tin.", 1.0),
        pt.Chunk("n2", "Zinc.", 0.5),
    ]


def test_a_second_id_stays_in_the_metadata():
    (chunk,) = to_chunks([{"id": "c1", "doc_id": "parent", "text": TEXT}])
    assert (chunk.id, dict(chunk.metadata)) == ("c1", {"doc_id": "parent"})


@pytest.mark.parametrize(
    ("given", "id"), [(7, "7"), (np.int64(7), "7"), ("007", "007"), (UUID(int=1), "00000000-0000-0000-0000-000000000001")]
)  # fmt: skip
def test_ids_become_text(given, id):
    assert to_chunks([(given, TEXT, 1.0)])[0].id == id


def test_without_scores_the_order_of_the_list_counts():
    documents = [LangChainDocument(f"text {i}", id=f"d{i}") for i in range(4)]
    chunks = to_chunks(documents)
    assert [c.score for c in chunks] == [None] * 4
    packed = pt.ContextPacker(pt.PackerConfig(order="descending"), "chars").pack_sync(None, chunks)
    assert [c.id for c in packed.chunks] == ["d0", "d1", "d2", "d3"]


@pytest.mark.parametrize("missing", [None, math.nan, np.float64("nan"), -math.inf])
def test_a_missing_score_is_that_of_the_one_above(missing):
    scores = [missing, -1.0, missing, -2.0, missing]
    chunks = to_chunks([NodeWithScore(TextNode(str(i), f"n{i}"), s) for i, s in enumerate(scores)])
    assert [c.score for c in chunks] == [-1.0, -1.0, -1.0, -2.0, -2.0]


def test_a_chunk_stays_as_it_is():
    chunk = pt.Chunk("d1", TEXT, 0.5, token_count=9, trust="untrusted", tenant_id="t", must_keep=((0, 5),))
    assert to_chunks([chunk])[0] is chunk
    assert to_chunks(iter([])) == []


def test_documents_are_not_changed():
    metadata = {"a": 1}
    (chunk,) = to_chunks([LangChainDocument(TEXT, metadata=metadata)])
    assert metadata == {"a": 1}
    assert dict(chunk.metadata) == metadata
    assert chunk.metadata is not metadata


# --- runs -----------------------------------------------------------------------------------------

QUERIES = {"q1": "What is steel?", "q2": "What is tin?"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_becomes_the_same_run(kind):
    document, score = KINDS[kind]
    run = to_run({"q1": "What is steel?"}, {"q1": [document]})
    assert run.candidates[["qid", "docid", "rank"]].values.tolist() == [["q1", "d1", 1]]
    assert run.candidates["score"].tolist() == [1.0 if score is None else score]
    assert run.passages.loc["d1"].to_dict() == {"title": "T", "text": TEXT}
    assert list(run.candidates) == ["qid", "docid", "rank", "score"]
    assert "metadata other than the title: not taken (1, first at retrieved:1)" in str(run.report)


def test_a_run_is_that_of_a_file_of_the_same_contexts(tmp_path):
    found = {
        "q1": [("d1", TEXT, 9.0), ("d2", "Iron.", 8.5), ("d1", TEXT, 8.0)],
        "q2": [("d2", "Iron, again.", 0.5), ("d3", "Tin.", 0.25)],
    }
    answers = {"q1": ["an alloy"], "q2": ["a metal", "an element"]}
    rows = [
        {"id": qid, "question": QUERIES[qid], "answers": answers[qid],
         "ctxs": [{"id": d, "text": t, "score": s} for d, t, s in found[qid]]}
        for qid in QUERIES
    ]  # fmt: skip
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ours, theirs = to_run(QUERIES, found, answers=answers), pt.load_run(tmp_path / "x.jsonl")
    columns = ["qid", "docid", "rank", "score"]
    pd.testing.assert_frame_equal(ours.candidates, theirs.candidates[columns])
    pd.testing.assert_frame_equal(ours.queries, theirs.queries)
    pd.testing.assert_frame_equal(ours.passages, theirs.passages)
    pd.testing.assert_series_equal(ours.answers, theirs.answers)
    assert ours.candidates["docid"].tolist() == ["d1", "d2", "d2~2", "d3"]


def test_distances_keep_the_order_of_the_list_and_the_report_says_so():
    run = to_run(
        {"q1": "?"},
        {"q1": [(LangChainDocument("near", id="a"), 0.1), (LangChainDocument("far", id="b"), 0.9)]},
    )
    assert run.candidates["docid"].tolist() == ["a", "b"]
    assert run.candidates["score"].tolist() == [1.0, 0.5]
    assert "list that is not sorted by score: its order counts" in str(run.report)


def test_documents_without_an_id_are_named_by_their_text_in_runs_and_chunks_alike():
    documents = ["Iron.", {"text": "Iron.", "title": "T"}, LangChainDocument("Iron.")]
    run, chunks = to_run({"q1": "?"}, {"q1": documents}), to_chunks(documents)
    assert [c.id for c in chunks] == [chunks[0].id, chunks[1].id, chunks[0].id]
    assert run.candidates["docid"].tolist() == [chunks[0].id, chunks[1].id]  # the repeat is left out


def test_judgements_answers_and_predictions_go_with_the_questions():
    run = to_run(
        {1: "a?", "02": "b?"},
        {"1": ["x"], "02": [{"id": 7, "text": "y"}]},
        answers={1: "one", "other": ["none"]},
        qrels={"02": {7: 2, "8": 0}, np.int64(1): {"z": 1}},
        predictions={"02": "b.", 1: None},
        name="mine",
    )
    assert run.answers.to_dict() == {"1": ("one",), "02": ()}
    assert run.predictions.to_dict() == {"1": None, "02": "b."}
    assert run.qrels.values.tolist() == [["02", "7", 2], ["02", "8", 0], ["1", "z", 1]]
    assert run.name == "mine"
    frame = pd.DataFrame({"qid": ["02"], "docid": ["7"], "label": [1]})
    assert to_run({"02": "b?"}, {"02": [(7, "y", 1)]}, qrels=frame).qrels.values.tolist() == [["02", "7", 1]]


def test_a_question_without_documents_is_left_out_and_reported():
    run = to_run(QUERIES, {"q1": ["x"]})
    assert list(run.queries.index) == ["q1"]
    assert "question without contexts: not in the run" in str(run.report)


def test_a_run_from_objects_is_prepared_and_saved_as_any_other(tmp_path):
    run = to_run(QUERIES, {q: [KINDS["haystack"][0], KINDS["llama_index"][0]] for q in QUERIES})
    assert pt.prepare(run, counter="chars").evaluate(pt.PackerConfig(budget=50)).kept("q1") == ["d1"]
    back = pt.load_run(run.save(tmp_path / "saved"))
    pd.testing.assert_frame_equal(back.queries, run.queries)


# --- what is refused ------------------------------------------------------------------------------


class Unknown:
    pass


def test_an_unknown_object_is_named_with_what_is_accepted():
    with pytest.raises(pt.SettingError) as told:
        to_run({"q1": "?"}, {"q1": ["fine", Unknown()]})
    assert str(told.value) == (
        "to_run: query 'q1', document 2 is of type test_objects.Unknown, which has no text; accepted are a "
        "LangChain, LlamaIndex or Haystack document, a mapping or object with one of text, contents, passage, "
        "body, page_content, content, (docid, text, score), (document, score), a text, or a Chunk."
    )


@pytest.mark.parametrize(
    "document", [None, 5, b"text", HaystackDocument("d1"), {"id": "d1"}, ["d1", TEXT, 1]]
)
def test_a_document_without_a_text_is_refused(document):
    with pytest.raises(
        pt.SettingError, match="to_chunks: document 1 is of type .* has no text; accepted are"
    ):
        to_chunks([document])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"text": 5}, "to_chunks: 'text' must be a text; got 5. Document 1."),
        (("d1", TEXT, "high"), "to_chunks: 'score' must be a number or None; got 'high'. It is of document 1."),
        (("d1", TEXT, True), "to_chunks: 'score' must be a number or None; got True. It is of document 1."),
        (("", TEXT, 1), "to_chunks: 'id' must be a text that is not empty, or a whole number; got ''. It is of document 1."),
        ((1.5, TEXT, 1), "to_chunks: 'id' must be a text that is not empty, or a whole number; got 1.5. It is of document 1."),
        ((1, 2, 3, 4), "to_chunks: 'document 1' must be a tuple (docid, text, score) or (document, score); got (1, 2, 3, 4)."),
        (("d1", 5, 1), "to_chunks: 'document 1' must be a tuple (docid, text, score); got ('d1', 5, 1)."),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_type_is_told(document, message):
    with pytest.raises(pt.SettingError) as told:
        to_chunks([document])
    assert str(told.value) == message


@pytest.mark.parametrize(
    "documents",
    [TEXT, None, 5, LangChainDocument(TEXT), KINDS["haystack"][0], {"documents": []}, pd.DataFrame({"text": [TEXT]})],
)  # fmt: skip
def test_what_is_no_list_of_documents_is_refused(documents):
    with pytest.raises(pt.SettingError, match="to_chunks: 'documents' must be a list of documents; got"):
        to_chunks(documents)
    with pytest.raises(
        pt.SettingError, match=r"to_run: 'retrieved\['q1'\]' must be a list of documents; got"
    ):
        to_run({"q1": "?"}, {"q1": documents})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"q1": "?"}, {"q9": ["x"]}), "to_run: 'retrieved' must be of queries that are in 'queries'; got 'q9'. There are ['q1']."),
        (({"q1": None}, {"q1": ["x"]}), "to_run: 'queries' must be texts; got None. Query 'q1'."),
        ((["?"], {"q1": ["x"]}), "to_run: 'queries' must be a mapping by query id; got ['?']."),
        (({1: "?", "1": "!"}, {}), "to_run: 'queries' must be a mapping with each query once, as text; got '1'."),
        (({"q1": "?"}, {"q1": []}), "to_run: 'retrieved' must be documents of at least one query; got {'q1': []}."),
    ],
)  # fmt: skip
def test_mappings_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(pt.SettingError) as told:
        to_run(*arguments)
    assert str(told.value) == message


def test_predictions_and_judgements_of_the_wrong_kind_are_refused():
    found = {"q1": "?"}, {"q1": ["x"]}
    with pytest.raises(pt.SettingError, match="to_run: 'predictions' must be texts; got 5. Query 'q1'."):
        to_run(*found, predictions={"q1": 5})
    with pytest.raises(
        pt.SettingError, match="to_run: 'predictions' must be of queries that are in 'queries'"
    ):
        to_run(*found, predictions={"q2": "x"})
    with pytest.raises(pt.SettingError, match=r"to_run: 'qrels\['q1'\]' must be a mapping of docid to label"):
        to_run(*found, qrels={"q1": ["x"]})
    with pytest.raises(pt.SettingError, match="to_run: 'retrieved' must be documents with their texts"):
        to_run({"q1": "?"}, {"q1": [pt.Chunk("d1", token_count=5, content_ref="s3://x")]})


def test_no_framework_is_imported():
    code = (
        "import sys\nfrom packtools.runs.objects import to_chunks\nto_chunks(['x'])\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('langchain', 'langchain_core', 'llama_index', 'haystack')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
