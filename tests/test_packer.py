"""What one pack promises: budget, ledger, spans, order, errors, the span of telemetry."""

from __future__ import annotations

import asyncio
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt
from packtools import packer as packer_module


class Words:
    """Count words; promises nothing about joins."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def chunk(name: str, n: int, score: float = 1.0) -> pt.Chunk:
    return pt.Chunk(name, f"text of {name}", score, token_count=n)


def pack(chunks, counter=None, **settings):
    return pt.ContextPacker(pt.PackerConfig(**settings), counter).pack_sync(None, chunks)


def words(*names: str) -> list[str]:
    return list(names)


def test_pack_skips_a_chunk_too_big_and_takes_the_next():
    packed = pack([chunk("a", 500, 3), chunk("b", 20, 2), chunk("c", 20, 1)], budget=100)  # P23
    assert [c.id for c in packed.chunks] == ["b", "c"]
    assert [str(d) for d in packed.decisions] == ["dropped: over budget by 400 tokens", "kept", "kept"]


def test_the_edges_of_a_budget():
    chunks = [chunk("a", 3, 2), chunk("b", 4, 1)]  # P28
    assert len(pack(chunks, budget=7).chunks) == 2
    assert [c.id for c in pack(chunks, budget=6).chunks] == ["a"]
    assert pack(chunks, budget=1).chunks == ()
    assert pack(chunks, budget=None).n_used == 7


@pytest.mark.parametrize("order", list(pt.ORDERINGS))
def test_a_budget_of_exactly_the_rendered_text_keeps_all(order):
    texts = ["First, a sentence.", "Then 3.14 of them", "and the last one!", "x"]
    chunks = [pt.Chunk(str(i), t, -i) for i, t in enumerate(texts)]
    full = pack(chunks, separator="\n\n", order=order, budget=None)
    assert len(pack(chunks, separator="\n\n", order=order, budget=full.n_used).chunks) == 4
    assert len(pack(chunks, separator="\n\n", order=order, budget=full.n_used - 1).chunks) == 3


def test_two_passages_under_a_limit_return_at_once_with_little_left():
    text = "word " * 40 + "end"
    packed = pack([pt.Chunk("a", text, 2), pt.Chunk("b", text + " b", 1)], budget=60)  # P26
    assert [c.id for c in packed.chunks] == ["a"]
    assert 60 - packed.n_used < packed.decisions[1].size


def test_the_passage_that_crosses_the_limit_is_not_kept():
    assert len(pack([chunk("a", 60, 2), chunk("b", 60, 1)], budget=100).chunks) == 1  # P29


def test_empty_texts_cost_nothing_and_are_named_empty():
    packed = pack([pt.Chunk("a", ""), pt.Chunk("b", "  ")], budget=10)  # P22
    assert (packed.text, packed.n_used, packed.chunks) == ("", 0, ())
    assert [str(d) for d in packed.decisions] == ["dropped: empty", "dropped: empty"]


def test_equal_scores_keep_retrieval_order():
    packed = pack([chunk(str(i), 1) for i in range(1, 6)], budget=10)  # P31
    assert [c.id for c in packed.chunks] == ["1", "3", "5", "4", "2"]


def test_text_comes_out_unchanged():
    text = "see <|endoftext|> here\u2028\x00 é🧠  "
    packed = pack([pt.Chunk("a", text)], budget=50, separator="\n\n")
    assert packed.text == text  # P1


def test_metadata_and_ids_survive_every_stage():
    page = pt.Chunk("a", "some text", 1.0, metadata={"page": 3})  # P77
    twin = pt.Chunk("b", "Some text!", 0.5, metadata={"page": 4})
    packed = pack([twin, page], budget=50)
    assert packed.chunks[0].metadata == {"page": 3}
    assert packed.spans[0].also == ("b",)  # P52: one kept, both ids recorded


def test_same_id_with_two_texts_keeps_both():
    packed = pack([pt.Chunk("f", "one text"), pt.Chunk("f", "another")], budget=50)  # P52
    assert len(packed.chunks) == 2


@pytest.mark.parametrize(
    ("a", "b"),
    [("Pi is 3.14 here", "Pi is 314 here"), ("Road 1506 (FM 1506) is located in Lamar County in Texas.",
                                              "Road 1507 (FM 1507) is located in Lamar County in Texas.")],
)  # fmt: skip
def test_chunks_that_differ_in_a_number_are_both_kept(a, b):
    chunks = [pt.Chunk("a", a, 2), pt.Chunk("b", b, 1)]
    assert len(pack(chunks, budget=100, jaccard_threshold=0.05).chunks) == 2  # P43
    assert len(pack(chunks, budget=100, jaccard_threshold=0.05, protect_differences=False).chunks) == 1


def test_a_near_duplicate_is_named_with_its_keeper_and_similarity():
    text = " ".join(f"word{chr(97 + i)}" for i in range(24))
    packed = pack(
        [pt.Chunk("a", text, 2), pt.Chunk("b", text + " more", 1)], budget=500, jaccard_threshold=0.9
    )
    assert str(packed.decisions[1]) == "dropped: near-duplicate of a at 0.95"  # 20 of 21 shingles
    assert packed.decisions[1].similarity == pytest.approx(20 / 21)


def test_a_custom_counter_is_used_and_rendered_text_never_exceeds_the_budget():
    chunks = [pt.Chunk(str(i), "one two three", -i) for i in range(5)]
    packed = pack(chunks, Words(), budget=7, separator=" and ", deduplicate=False)
    assert (packed.counter, packed.n_used) == ("words", 7)
    assert packed.text == "one two three and one two three"


def test_a_counter_that_merges_across_joins_makes_the_pack_back_off():
    class Greedy(Words):
        """Charge 10 more for any text with a separator between two blocks."""

        def count(self, text: str) -> int:
            return len(text.split()) + 10 * max(text.count(" | ") - text.endswith(" | "), 0)

    chunks = [pt.Chunk(str(i), "one two", -i) for i in range(3)]
    packed = pack(chunks, Greedy(), budget=9, separator=" | ", deduplicate=False)
    assert packed.n_used <= 9
    assert [d.kept for d in packed.decisions] == [True, False, False]
    assert packed.decisions[1].over_by > 0
    assert packed.decisions[2].over_by > 0


def test_a_registered_ordering_can_be_used_by_name():
    pt.register_ordering("best_second", lambda items: [*items[1:2], *items[:1], *items[2:]])
    try:
        packed = pack([chunk(c, 1, -i) for i, c in enumerate("abcd")], budget=9, order="best_second")
        assert [c.id for c in packed.chunks] == ["b", "a", "c", "d"]
    finally:
        del pt.ORDERINGS["best_second"]


def test_an_ordering_that_loses_items_is_refused():
    with pytest.raises(
        pt.PackerError, match="register_ordering: 'bad' must be a permutation of 2 items; got"
    ):
        pt.register_ordering("bad", lambda items: items[:1])
    assert "bad" not in pt.ORDERINGS


def test_an_unknown_ordering_lists_the_known_ones():
    with pytest.raises(pt.PackerError) as error:
        pt.ContextPacker(pt.PackerConfig(order="lost_in_midle"))
    assert str(error.value) == (
        "PackerConfig: order 'lost_in_midle' is unknown; known: 'lost_in_middle', 'descending', 'ascending', "
        "'fill', 'document'. Did you mean 'lost_in_middle'?"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 0}, "PackerConfig: 'budget' must be at least 1 token; got 0."),
        ({"budget": -3, "unit": "chars"}, "PackerConfig: 'budget' must be at least 1 char; got -3."),
        ({"budget": 10.5}, "PackerConfig: 'budget' must be a whole number of tokens; got 10.5."),
        ({"budget": True}, "PackerConfig: 'budget' must be a whole number of tokens; got True."),
        ({"jaccard_threshold": 0}, "PackerConfig: 'jaccard_threshold' must be above 0 and at most 1; got 0."),
        ({"unit": "words"}, "PackerConfig: unit 'words' is unknown; known: 'tokens', 'chars'."),
        ({"separator": 3}, "PackerConfig: 'separator' must be a string or None; got 3."),
        (
            {"budget": 8192, "reserve": 8192},
            "PackerConfig: 'reserve' must be less than the budget; got reserve 8,192 of budget 8,192 tokens, "
            "which leaves 0 for chunks. Lower the reserve or raise the budget.",
        ),  # P19
    ],
)
def test_a_setting_out_of_its_rule_is_one_clear_error(settings, message):
    with pytest.raises(pt.PackerError) as error:
        pt.PackerConfig(**settings)
    assert str(error.value) == message


def test_budgets_of_the_call_are_checked_too():
    with pytest.raises(pt.PackerError) as error:
        pt.ContextPacker().pack_sync(None, [], budget=0)
    assert str(error.value) == "pack: 'budget' must be at least 1 token; got 0."
    with pytest.raises(pt.PackerError) as error:
        pt.fit_to_budget([], 0)
    assert str(error.value) == "fit_to_budget: 'budget' must be at least 1 token; got 0."


def test_tenants_must_agree():
    mine, theirs = pt.Chunk("a", "x", tenant_id="t1"), pt.Chunk("b", "y", tenant_id="t2")
    packer = pt.ContextPacker()
    with pytest.raises(pt.PackerError, match="chunk 'b' belongs to 't2'"):
        packer.pack_sync(pt.RequestContext(tenant_id="t1"), [mine, theirs], budget=9)
    with pytest.raises(pt.PackerError, match=r"several tenants \('t1', 't2'\)"):
        packer.pack_sync(None, [mine, theirs], budget=9)
    assert packer.pack_sync(None, [mine], budget=9).chunks == (mine,)


def test_a_content_ref_can_be_packed_but_not_rendered():
    ref = pt.Chunk("a", content_ref="blob:1", token_count=3)
    assert pack([ref], budget=9).n_used == 3
    with pytest.raises(pt.PackerError, match="a separator is set, so its text must be rendered"):
        pack([ref], budget=9, separator="\n\n")


def test_async_gives_the_same_as_sync():
    packer = pt.ContextPacker(pt.PackerConfig(budget=5))
    chunks = [chunk("a", 3, 2), chunk("b", 3, 1)]
    assert asyncio.run(packer.pack(None, chunks)) == packer.pack_sync(None, chunks)


def test_a_failing_detector_never_fails_a_pack(monkeypatch, caplog):
    def broken(chunks):
        raise RuntimeError("boom")

    monkeypatch.setattr(packer_module, "detect_conflicts", broken)
    with caplog.at_level(logging.ERROR):
        packed = pack([chunk("a", 1)], budget=5)
    assert packed.conflicts == ()
    assert "packer.conflicts_failed" in caplog.text


def test_conflicts_can_be_post_processed_by_the_caller():
    a = pt.Chunk("a", "The tower is 300 metres tall today.", 2)
    b = pt.Chunk("b", "The tower is 324 metres tall today.", 1)
    packed = pack([a, b], budget=100)
    assert [(c.value_a, c.value_b) for c in packed.conflicts] == [("300", "324")]
    assert pack([a, b], budget=100, detect_conflicts=False).conflicts == ()


def test_one_span_with_its_figures():
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    original = packer_module._tracer
    packer_module._tracer = lambda: provider.get_tracer("packtools")
    try:
        pack([chunk("a", 3, 3), chunk("a2", 9, 2), pt.Chunk("b", "TEXT of a!", 1, token_count=1)], budget=5)
    finally:
        packer_module._tracer = original
    (span,) = exporter.get_finished_spans()
    assert span.name == "pack"
    assert dict(span.attributes) == {
        "packtools.chunks_in": 3, "packtools.chunks_out": 1, "packtools.tokens_used": 3,
        "packtools.tokens_budget": 5, "packtools.conflicts": 0, "packtools.order": "lost_in_middle",
        "packtools.tokenizer": "cl100k_base", "packtools.dropped.duplicate_of": 1,
        "packtools.dropped.near_duplicate_of": 0, "packtools.dropped.over_budget": 1, "packtools.dropped.empty": 0,
            "packtools.dropped.not_selected": 0,
    }  # fmt: skip
    assert trace.get_tracer_provider() is not provider


TEXTS = st.sampled_from(
    ["alpha beta gamma", "Alpha, beta gamma!", " leads", "/slash", "tail \n", "3.14 of it", "314 of it", "", "…",
     "one two three four five six seven", "one two three four five six seven eight", "中文文本在这里", "🧠🧠"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    texts=st.lists(st.tuples(TEXTS, st.sampled_from([0.5, 0.2, None, -1.0])), max_size=8),
    budget=st.one_of(st.none(), st.integers(1, 30)),
    separator=st.sampled_from([None, "\n\n", " ", "", "\n--\n"]),
    order=st.sampled_from(["lost_in_middle", "descending", "ascending"]),
    fill=st.sampled_from(list(pt.FILLS)),
    threshold=st.sampled_from([None, 0.5]),
    unit=st.sampled_from(["tokens", "chars"]),
)
def test_every_pack_keeps_its_promises(texts, budget, separator, order, fill, threshold, unit):
    chunks = [pt.Chunk(f"c{i}", t, s) for i, (t, s) in enumerate(texts)]
    config = pt.PackerConfig(
        budget=budget, separator=separator, order=order, fill=fill, jaccard_threshold=threshold, unit=unit
    )
    packer = pt.ContextPacker(config)
    packed = packer.pack_sync(None, chunks)
    count = len if unit == "chars" else packer.token_counter.count
    if separator is not None:
        assert packed.n_used == count(packed.text)
        assert packed.text == separator.join(c.text for c in packed.chunks)
    assert budget is None or packed.n_used <= budget
    assert sorted(d.docid for d in packed.decisions) == sorted(c.id for c in chunks)
    kept = [d for d in packed.decisions if d.kept]
    best_first = [c for d in kept for c in packed.chunks if c.id == d.docid]
    assert pt.ORDERINGS[order].function(best_first) == list(packed.chunks)
    for span, item in zip(packed.spans, packed.chunks, strict=True):
        assert (
            packed.text[span.start : span.end] == item.text[span.source_start : span.source_end] == item.text
        )
        assert packed.decisions[span.rank - 1].docid == item.id
    merged = [i for span in packed.spans for i in span.also]
    assert len(merged) == len(set(merged))
    again = packer.pack_sync(None, list(packed.chunks))
    assert {c.id for c in again.chunks} == {c.id for c in packed.chunks}


def test_huge_cached_counts_add_up():
    big = [pt.Chunk("a", "t", token_count=2**30), pt.Chunk("b", "u", token_count=2**30)]
    assert pack(big).n_used == 2**31
    assert str(pack(big, budget=100).decisions[0]) == "dropped: over budget by 1,073,741,724 tokens"
    assert len(pt.fit_to_budget([pt.Chunk("a", token_count=2**31)], 2**33)) == 1
    with pytest.raises(pt.PackerError, match="'token_count' must be at most"):
        pt.Chunk("a", "t", token_count=2**50)


def test_any_iterable_of_chunks_will_do():
    assert len(pt.ContextPacker().pack_sync(None, (chunk(c, 1) for c in "ab"), budget=5).chunks) == 2


@pytest.mark.parametrize("score", ["0.9", float("nan"), True, [1]])
def test_a_score_that_is_no_number_is_refused(score):
    with pytest.raises(pt.PackerError, match="Chunk: 'score' must be a number or None; got"):
        pt.Chunk("a", "t", score)


def test_an_ordering_that_fails_is_refused_with_its_error():
    with pytest.raises(pt.PackerError, match="register_ordering: 'broken' failed on 1 items"):
        pt.register_ordering("broken", lambda items: 1 / 0)
    with pytest.raises(
        pt.PackerError, match="register_ordering: 'none' must be a function of a sequence; got 3"
    ):
        pt.register_ordering("none", 3)


@pytest.mark.parametrize(
    ("function", "rule"),
    [(list, "new"), (lambda i: list(i)[::-1], "first"), (lambda i: [*i[::2], *i[1::2][::-1]], "second"),
     (lambda i: [*i[1:2], *i[:1], *i[2:]], "any")],
)  # fmt: skip
def test_the_last_chunk_of_a_registered_ordering_is_found_by_trying(function, rule):
    pt.register_ordering("mine", function)
    assert pt.ORDERINGS.pop("mine").ends_with == rule


def test_a_registered_ordering_fits_exactly_the_rendered_total():
    pt.register_ordering("best_second", lambda items: [*items[1:2], *items[:1], *items[2:]])
    try:
        chunks = [pt.Chunk(str(i), t, -i) for i, t in enumerate(["One.", "two 2", "three!", "four", "five,"])]
        full = pack(chunks, separator="\n\n", order="best_second")
        assert len(pack(chunks, separator="\n\n", order="best_second", budget=full.n_used).chunks) == 5
        assert len(pack(chunks, separator="\n\n", order="best_second", budget=full.n_used - 1).chunks) == 4
    finally:
        del pt.ORDERINGS["best_second"]


@pytest.mark.parametrize("order", list(pt.ORDERINGS))
@pytest.mark.parametrize("n", [0, 1, 2])
def test_none_one_and_two_chunks_in_every_order(order, n):
    packed = pack([chunk(str(i), 1, -i) for i in range(n)], order=order, budget=9)  # P37
    assert sorted(c.id for c in packed.chunks) == [str(i) for i in range(n)]


def test_a_table_of_numbers_is_counted_exactly():
    table = "\n".join(f"{i} | {i * 37 % 1000}.{i % 7} | {i * i}" for i in range(40))  # P25: no factor
    counter = pt.counter_for("cl100k_base")
    packed = pack([pt.Chunk("t", table)], separator="\n\n", budget=2000)
    assert packed.n_used == counter.count(table) > 2 * len(table.split())


SIZES = [pt.Chunk("doc10", "a b c d", 9.0), pt.Chunk("doc2", "a b", 6.0), pt.Chunk("doc1", "x", 1.0),
         pt.Chunk("doc3", "l m n", 6.0)]  # fmt: skip


@pytest.mark.parametrize(
    ("fill", "budget", "kept"),
    [
        ("score", 6, ["doc10", "doc2"]),
        ("rank", 6, ["doc10", "doc2"]),
        ("shorter_first", 6, ["doc1", "doc2", "doc3"]),
        # per word: 9/4, 6/2, 1/1, 6/3 → doc2, doc10, doc3 (too big), doc1 (too big)
        ("value_per_token", 6, ["doc2", "doc10"]),
        ("shorter_first", 3, ["doc1", "doc2"]),
    ],
)
def test_fills_say_who_gets_the_budget_first(fill, budget, kept):
    packed = pack(SIZES, Words(), fill=fill, budget=budget, order="fill")
    assert [c.id for c in packed.chunks] == kept
    assert [d.docid for d in packed.decisions] == [
        c.id for c in (SIZES if fill == "rank" else sorted(SIZES, key=lambda c: -c.score))
    ]


def test_the_rank_fill_takes_chunks_as_they_come():
    chunks = [chunk("a", 3, 1.0), chunk("b", 3, 2.0)]
    assert [c.id for c in pack(chunks, budget=3, fill="rank").chunks] == ["a"]
    assert [c.id for c in pack(chunks, budget=3, fill="score").chunks] == ["b"]


def test_value_per_token_raises_negative_scores():
    # Logits: -1 over 1 word must come before -9 over 8 words, though -1/1 < -9/8 is false by value alone.
    chunks = [
        pt.Chunk("long", "a b c d e f g h", -1.0),
        pt.Chunk("short", "x", -9.0),
        pt.Chunk("mid", "y z", -2.0),
    ]
    packed = pack(chunks, Words(), fill="value_per_token", order="fill")
    # raised by 9: 8/8, 0/1, 7/2
    assert [c.id for c in packed.chunks] == ["mid", "long", "short"]


def test_document_order_is_natural_order_of_ids():
    packed = pack(SIZES, Words(), order="document", budget=99)
    assert [c.id for c in packed.chunks] == ["doc1", "doc2", "doc3", "doc10"]


def test_an_unknown_fill_lists_the_known_ones():
    with pytest.raises(
        pt.PackerError,
        match="fill 'shortest' is unknown; known: 'score', 'rank', 'shorter_first', 'value_per_token'",
    ):
        pt.ContextPacker(pt.PackerConfig(fill="shortest"))


def test_an_own_fill_can_be_put_into_the_table():
    pt.FILLS["longer_first"] = lambda score, size: size.astype(float)
    try:
        packed = pack(SIZES, Words(), fill="longer_first", order="fill", budget=7)
        assert [c.id for c in packed.chunks] == ["doc10", "doc3"]
    finally:
        del pt.FILLS["longer_first"]


def test_a_registered_ordering_whose_end_moves_late_is_filled_on_its_own_terms():
    pt.register_ordering("late", lambda items: list(items) if len(items) <= 8 else list(items)[::-1])
    try:
        assert pt.ORDERINGS["late"].ends_with == "any"
    finally:
        del pt.ORDERINGS["late"]
    pt.register_ordering("later", lambda items: list(items) if len(items) <= 200 else list(items)[::-1])
    try:
        chunks = [chunk(str(i), 1, -i) for i in range(201)]
        with pytest.raises(pt.PackerError, match="'later' must end 201 items as it ends up to 200"):
            pack(chunks, order="later", budget=500)
    finally:
        del pt.ORDERINGS["later"]


def test_a_counter_with_a_cost_for_each_text_fills_the_budget():
    class Padded(Words):
        name = "padded"

        def count(self, text: str) -> int:
            return 5 + len(text.split())

    chunks = [pt.Chunk(str(i), f"a b c{i}", -i) for i in range(12)]
    assert len(pack(chunks, Padded(), separator="\n", budget=41).chunks) == 12
    assert len(pack(chunks, Padded(), separator="\n", budget=40).chunks) == 11
