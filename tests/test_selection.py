"""Sentence selection, truncation and spans on the inputs that broke other tools."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from test_sentences import real_texts

import packtools as pt


def pack(texts, query="", **settings):
    config = pt.PackerConfig(**{"fill": "rank", "order": "fill", "detect_conflicts": False, **settings})
    chunks = [t if isinstance(t, pt.Chunk) else pt.Chunk(f"d{i}", t) for i, t in enumerate(texts, 1)]
    packed = pt.ContextPacker(config).pack_sync(None, chunks, query=query)
    pt.verify_spans(packed)
    return packed


def chars(budget, selection="head", **more):
    return {"unit": "chars", "passage_budget": budget, "sentence_selection": selection, **more}


# --- which sentences ------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", [None, *pt.SELECTORS])
def test_one_sentence_over_the_passage_budget_is_cut_not_lost(selection):
    text = "One single sentence that is twice as long as it may be."
    packed = pack([text], "sentence", **chars(len(text) // 2, selection))
    assert packed.passages == ("One single sentence that",)
    assert packed.spans[0].truncated
    assert packed.spans[0].n_sentences == (None if selection is None else 1)
    assert str(packed.decisions[0]) == "kept: 24 of 55 chars"


def test_chosen_sentences_return_to_text_order():
    packed = pack(["Bar. Foo. Something else that is long."], "foo", **chars(9, "query_overlap"))
    assert packed.passages == ("Bar. Foo.",)


def test_a_passage_budget_of_nothing_is_an_error():
    with pytest.raises(pt.PackerError, match="'passage_budget' must be at least 1 token; got 0"):
        pt.PackerConfig(passage_budget=0)


def test_no_space_comes_between_sentences_that_had_none():
    text = "第一文です。第二文はとても長い文ですから入りません。第三文です。"
    assert pack([text], **chars(12)).passages == ("第一文です。第三文です。",)
    assert pack([text[:12]], **chars(40)).passages == ("第一文です。第二文はとて",)


def test_a_table_row_brings_its_header_and_stays_whole():
    table = "| Item | Sum |\n|---|---|\n| excl. | 5,120 |\n| incl. | 6,093 |"
    packed = pack([f"Costs follow.\n{table}"], "incl 6,093", **chars(48, "query_overlap"))
    assert packed.passages == ("| Item | Sum |\n|---|---|\n| incl. | 6,093 |",)
    rows = pack([f"Costs follow.\n{table}"], "excl", **chars(30, "query_overlap"))
    assert "5,1" not in rows.text.replace("5,120", "")


def test_a_code_block_is_taken_whole_or_not_at_all():
    text = "Use it.\n```\na = 1. \nb = 2. \n```\nThen stop."
    assert pack([text], "then", **chars(20, "query_overlap")).passages == ("Use it.\nThen stop.",)


def test_similarity_and_diversity_selections():
    text = "The dam is tall. The dam is tall indeed. Lake Alma lies behind it. Fish live there."
    similar = pack([text], "how tall is the dam", **chars(45, "tfidf"))
    assert similar.passages == ("The dam is tall. The dam is tall indeed.",)
    diverse = pack([text], "how tall is the dam", **chars(34, "mmr"))
    assert diverse.passages == ("The dam is tall. Fish live there.",)


def test_a_selection_that_needs_the_query_says_so():
    chunk = [pt.Chunk("a", "One. Two.")]
    packer = pt.ContextPacker(pt.PackerConfig(passage_budget=1, sentence_selection="query_overlap"))
    with pytest.raises(pt.PackerError, match="'query_overlap' needs the text of the query"):
        packer.pack_sync(None, chunk)
    run = pt.Run.from_frames(pd.DataFrame({"qid": ["1"], "docid": ["a"], "rank": [1]}), {"a": "One. Two."})
    with pytest.raises(pt.PackerError, match="query file"):
        pt.prepare(run, counter="chars").evaluate(packer.config)


@pytest.mark.parametrize(
    ("setting", "value", "known"),
    [("sentence_selection", "best", "'head'"), ("splitter", "nltk", "'prose'")],
)
def test_unknown_names_list_the_known_ones(setting, value, known):
    with pytest.raises(pt.PacktoolsError, match=f"{setting} '{value}' is unknown; known: .*{known}"):
        pt.ContextPacker(pt.PackerConfig(**{setting: value}))


def test_own_selectors():
    pt.register_selector("last", lambda query, sentences: list(range(len(sentences))))
    pt.register_selector("none", lambda query, sentences: [float("-inf")] * len(sentences))
    pt.register_selector("wrong", lambda query, sentences: [1.0])
    try:
        assert pack(["One. Two. Three."], **chars(11, "last")).passages == ("Two. Three.",)
        nothing = pack(["One. Two. Three.", "Four."], **chars(11, "none"))
        assert nothing.passages == ("Four.",)
        assert str(nothing.decisions[0]) == "dropped: nothing of it was selected"
        with pytest.raises(pt.PackerError, match="'wrong' must be one number for each of 3 sentences"):
            pack(["One. Two. Three."], **chars(11, "wrong"))
    finally:
        for name in ("last", "none", "wrong"):
            del pt.SELECTORS[name]


def test_what_must_stay_stays_verbatim_or_is_an_error():
    text = "Padding here. The dose is 5 mg. More padding, much more of it, follows."
    keep = (text.index("The dose"), text.index(" More"))
    packed = pack([pt.Chunk("a", text, must_keep=(keep,))], "padding", **chars(32, "query_overlap"))
    assert packed.passages == ("Padding here. The dose is 5 mg.",)
    with pytest.raises(
        pt.PackerError, match="chunk 'a' must keep 'The dose is 5 mg.'.*passage_budget 12 chars"
    ):
        pack([pt.Chunk("a", text, must_keep=(keep,))], "padding", **chars(12, "query_overlap"))
    chunks = [pt.Chunk("big", "x" * 30), pt.Chunk("a", text, must_keep=(keep,)), pt.Chunk("a2", text.upper())]
    first = pack(chunks, unit="chars", budget=len(text))
    assert first.passages == (text,)
    with pytest.raises(pt.PackerError, match="budget 40 chars"):
        pack(chunks, unit="chars", budget=40)
    with pytest.raises(pt.PackerError, match="'must_keep' must be a list of slices"):
        pt.Chunk("a", "text", must_keep=((2, 9),))


# --- truncation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [2, 3])
def test_a_cut_never_splits_a_character(limit):
    counter = pt.counter_for("cl100k_base")
    found = pt.truncate_to_tokens("hello 🧠 world", limit, counter)
    assert found == "hello "
    assert counter.count(found) <= limit


def test_a_replacement_character_of_the_source_stays():
    counter = pt.counter_for("cl100k_base")
    assert pt.truncate_to_tokens("a\ufffdb c d e f", 4, counter).startswith("a\ufffdb")


@pytest.mark.parametrize("counter", ["cl100k_base", "o200k_base", "chars"])
@pytest.mark.parametrize("text", ["naïve 🧠🧠 café 中文 e\u0301 " * 4, "x" * 90, "word " * 30])
def test_truncated_text_counts_within_the_limit_and_one_token_more_would_not(counter, text):
    count = pt.counter_for(counter)
    for limit in (1, 2, 5, 11, 29):
        found = pt.truncate_to_tokens(text, limit, count)
        assert text.startswith(found)
        assert count.count(found) <= limit
        assert found == text or count.count(text[: len(found) + 6]) >= limit


def test_truncation_without_a_shortcut_is_the_same_for_a_counter_of_words():
    class Words:
        name = "words"

        def count(self, text):
            return len(text.split())

    assert pt.truncate_to_tokens("one two three four", 2, Words()) == "one two "


def test_a_first_passage_over_the_budget_is_skipped_or_cut_by_the_setting():
    texts = ["long " * 500, "short " * 20, "brief " * 20]
    skip = pack(texts, budget=100, separator="\n\n")
    assert [c.id for c in skip.chunks] == ["d2", "d3"]
    assert skip.decisions[0].reason == "over_budget"
    cut = pack(texts, budget=100, separator="\n\n", overflow="truncate")
    assert [c.id for c in cut.chunks] == ["d1"]
    assert 95 <= cut.n_used <= 100
    assert cut.n_used == pt.counter_for("cl100k_base").count(cut.text)
    assert str(cut.decisions[0]) == f"kept: {cut.n_used} of 501 tokens"
    assert [d.reason for d in cut.decisions[1:]] == ["over_budget"] * 2


def test_two_long_passages_fill_the_budget_and_return_at_once():
    texts = ["alpha " * 41, "beta " * 41]
    packed = pack(texts, budget=60, separator="\n\n", overflow="truncate")
    assert len(packed.chunks) == 2
    assert 57 <= packed.n_used <= 60


@pytest.mark.parametrize("overflow", ["skip", "truncate"])
def test_the_edges_of_a_budget(overflow):
    texts, counter = ["One two three.", "Four five six seven."], pt.counter_for("cl100k_base")
    exact = counter.count("\n\n".join(texts))
    whole = pack(texts, budget=exact, separator="\n\n", overflow=overflow)
    assert whole.text == "\n\n".join(texts)
    less = pack(texts, budget=exact - 1, separator="\n\n", overflow=overflow)
    assert less.passages == ((texts[0],) if overflow == "skip" else (texts[0], "Four five six"))
    one = pack(texts, budget=1, separator="\n\n", overflow=overflow)
    assert one.n_used <= 1
    assert one.text in ("", "One")


def test_a_chinese_passage_is_cut_by_tokens_not_by_words():
    text = "东京是日本的首都人口很多" * 75
    skip = pack([text], budget=100)
    assert skip.text == ""
    assert int(skip.decisions[0].over_by) > 300
    cut = pack([text], budget=100, overflow="truncate", separator="\n\n")
    assert text.startswith(cut.text)
    assert 90 <= cut.n_used <= 100


def test_a_chunk_that_was_never_tried_says_so():
    packed = pack(
        ["alpha beta gamma", "delta epsilon", "z"],
        unit="chars",
        budget=20,
        separator=" ",
        overflow="truncate",
    )
    assert packed.text == "alpha beta gamma del"
    assert [str(d) for d in packed.decisions] == [
        "kept", "kept: 3 of 13 chars", "dropped: not tried, packing had ended at one that did not fit"
    ]  # fmt: skip
    nothing = pack(["🧠🧠", "a b"], budget=2, overflow="truncate")
    assert [str(d) for d in nothing.decisions][
        1
    ] == "dropped: not tried, packing had ended at one that did not fit"
    assert nothing.decisions[0].over_by > 0
    assert nothing.text == ""


def test_cached_counts_of_cut_chunks_are_counted_again():
    chunk = pt.Chunk("a", "One two three. Four five six. Seven.", token_count=500)
    packed = pack([chunk], passage_budget=5, sentence_selection="head")
    assert packed.passages == ("One two three.",)
    assert (packed.decisions[0].size, packed.decisions[0].full_size, packed.n_used) == (4, 500, 4)


def test_a_chunk_whose_text_is_elsewhere_can_not_be_cut():
    chunk = pt.Chunk("a", content_ref="s3://bucket/a", token_count=90)
    with pytest.raises(pt.PackerError, match="chunk 'a' has only content_ref .* chunks may be cut"):
        pack([chunk], passage_budget=50)


# --- spans ----------------------------------------------------------------------------------------


def test_repeated_sentences_have_rising_spans():
    text = "This is a test. " * 6
    packed = pack([text], **chars(40))
    starts = [p.source_start for p in packed.spans[0].pieces]
    assert starts == sorted(set(starts))
    assert packed.passages == ("This is a test. This is a test.",)
    many = pack([text, "Other. " + text], deduplicate=False, **chars(40))
    assert [s.start for s in many.spans] == [0, 33]


def test_offsets_count_characters_after_accents_and_emoji():
    text = "é🧠 first one here. Second one. Third one is too long for it."
    span = pack([text], "second", **chars(16, "query_overlap")).spans[0]
    assert text[span.source_start : span.source_end] == "Second one."
    assert (span.source_start, span.start, span.end) == (19, 0, 11)


@pytest.mark.parametrize("white_space", ["keep", "collapse"])
@pytest.mark.parametrize("budget", [None, 12, 25])
@pytest.mark.parametrize("overflow", ["skip", "truncate"])
def test_leading_space_and_blank_lines_hold_their_round_trip(white_space, budget, overflow):
    texts = ["  \n\n Hello  there. \n\n World is\u00a0big.  ", "\tTab.\r\nNext\ufffdline. "]
    for selection in [None, *pt.SELECTORS]:
        settings = {"unit": "chars", "budget": 40, "separator": " ", "white_space": white_space}
        packed = pack(
            texts, "world", **settings, overflow=overflow, passage_budget=budget, sentence_selection=selection
        )
        for span, chunk in zip(packed.spans, packed.chunks, strict=True):
            joined = " ".join(chunk.text[p.source_start : p.source_end] for p in span.pieces)
            assert joined.split() == packed.text[span.start : span.end].split()


def test_a_step_that_changes_text_says_edited():
    text = "infor-\nmation  retrieval is fun."
    kept = pack([text], unit="chars").spans[0]
    assert not kept.edited
    collapsed = pack([text], unit="chars", white_space="collapse")
    assert collapsed.passages == ("infor- mation retrieval is fun.",)
    assert collapsed.spans[0].edited
    assert [text[p.source_start : p.source_end] for p in collapsed.spans[0].pieces] == [
        "infor-", "mation", "retrieval is fun."
    ]  # fmt: skip


def test_ids_and_metadata_survive_every_step():
    chunks = [
        pt.Chunk("p1", "Dams hold water. They are tall. " * 2, metadata={"page": 3, "doc": "A"}),
        pt.Chunk("p2", "DAMS hold water. They are TALL. " * 2, metadata={"page": 4, "doc": "A"}),
        pt.Chunk("p3", "Lakes are wide. They hold water as well as dams.", metadata={"page": 9, "doc": "B"}),
    ]
    packed = pack(
        chunks, "tall dams", budget=60, overflow="truncate", separator=" ", **chars(33, "query_overlap")
    )
    found = {
        s.docid: (c.metadata["page"], c.metadata["doc"])
        for s, c in zip(packed.spans, packed.chunks, strict=True)
    }
    assert found == {"p1": (3, "A"), "p3": (9, "B")}
    assert packed.spans[0].also == ("p2",)
    assert all(c is chunks[s.rank - 1] for s, c in zip(packed.spans, packed.chunks, strict=True))


def test_markup_in_a_passage_is_escaped_and_the_mark_stays_on_its_word():
    text = "a <b>x</b> & y <script>alert(1)</script>"
    assert pt.mark_html(text, [(5, 6)]).startswith(
        "a &lt;b&gt;<mark>x</mark>&lt;/b&gt; &amp; y &lt;script&gt;"
    )
    packed = pack([text + ". Second <i>one</i>."], "second", **chars(25, "query_overlap"))
    page = packed._repr_html_()
    assert "<script" not in page
    assert "<mark>Second &lt;i&gt;one&lt;/i&gt;.</mark>" in page


def test_the_check_finds_a_span_that_is_wrong():
    from dataclasses import replace

    packed = pack(["One. Two. Three.", "Four."], **chars(9), separator=" ")
    span = packed.spans[0]
    moved = replace(span.pieces[0], source_start=1, source_end=10)
    for wrong in (
        replace(span, pieces=(moved,)),
        replace(span, end=span.end + 1),
        replace(span, docid="other"),
        replace(span, start=1, pieces=span.pieces),
    ):
        with pytest.raises(pt.PackerError, match="verify_spans"):
            pt.verify_spans(replace(packed, spans=(wrong, *packed.spans[1:])))
    with pytest.raises(pt.PackerError, match="1 spans for 2 chunks"):
        pt.verify_spans(replace(packed, spans=packed.spans[:1]))


def test_every_real_passage_packs_as_slices(real):
    settings = [
        {**chars(120, "query_overlap", overflow="truncate"), "budget": 900},
        chars(80, "head", white_space="collapse", splitter="simple"),
        chars(150, None, white_space="collapse"),
    ]
    packers = [pt.ContextPacker(pt.PackerConfig(**s, detect_conflicts=False)) for s in settings]
    texts = list(dict.fromkeys(real_texts(real)))
    for begin in range(0, len(texts), 20):
        chunks = [pt.Chunk(str(i), t) for i, t in enumerate(texts[begin : begin + 20])]
        for packer in packers:
            packed = packer.pack_sync(None, chunks, query="the of 2019 و 的")
            pt.verify_spans(packed)
            assert all(len(text) <= packer.config.passage_budget for text in packed.passages)
            if packer.config.white_space == "keep":
                for span, chunk in zip(packed.spans, packed.chunks, strict=True):
                    slices = [chunk.text[p.source_start : p.source_end] for p in span.pieces]
                    assert "".join(slices) == packed.text[span.start : span.end]
    assert len(texts) > 12_000


def test_settings_with_selection_go_through_json():
    config = pt.PackerConfig.characters(900, 320, ordering="shorter_first", min_sentence_chars=0)
    assert pt.PackerConfig.from_json(config.to_json()) == config
    assert json.loads(config.to_json())["passage_budget"] == 320


# --- what earlier versions got wrong --------------------------------------------------------------


def test_must_keep_survives_the_conflict_check():
    chunk = pt.Chunk("a", "Padding comes first here. Keep this.", must_keep=[(26, 36)])
    config = pt.PackerConfig(passage_budget=5, sentence_selection="head")
    assert pt.ContextPacker(config).pack_sync(None, [chunk]).passages == ("Keep this.",)
    assert chunk.must_keep == ((26, 36),)


def test_must_keep_goes_before_the_shortest_sentence_and_any_score():
    text = "Aaaa. Bbbb. Cccc. Dddd."
    chunks = [pt.Chunk("a", text, must_keep=((6, 16),)), pt.Chunk("b", "xxxx")]
    packed = pack(chunks, **chars(12, min_sentence_chars=90), budget=11)
    assert packed.passages == ("Bbbb. Cccc.",)
    assert (packed.n_used, packed.decisions[0].size) == (11, 11)
    pt.register_selector("all", lambda query, sentences: [float("inf")] * len(sentences))
    try:
        kept = pack([pt.Chunk("a", "One. Two. Three.", must_keep=((10, 16),))], **chars(11, "all"))
        assert kept.passages == ("One. Three.",)
    finally:
        del pt.SELECTORS["all"]


@pytest.mark.parametrize(
    "given", [(0, 2), 5, None, "ab", ((0.5, 2.0),), ((True, 2),), (("0", "2"),), ((0, 2, 3),)]
)
def test_a_wrong_must_keep_is_one_clear_error(given):
    with pytest.raises(pt.PackerError, match="Chunk: 'must_keep' must be a list of slices"):
        pt.Chunk("a", "text here", must_keep=given)


@pytest.mark.parametrize("text", ['say("Hi!!");\nreturn 0', 'f("a")){\n return 0; }'])
@pytest.mark.parametrize("selection", [None, "head"])
def test_a_cut_is_counted_again_where_a_shorter_text_has_more_tokens(text, selection):
    counter = pt.counter_for("cl100k_base")
    for budget in range(1, 8):
        packed = pack([text], passage_budget=budget, sentence_selection=selection)
        assert all(counter.count(t) <= budget for t in packed.passages)


def test_the_last_cut_keeps_the_passage_budget_too():
    counter = pt.counter_for("cl100k_base")
    packed = pack(
        ["b", "a" * 9], passage_budget=1, budget=4, overflow="truncate", separator="ness", order="ascending"
    )
    assert all(counter.count(t) <= 1 for t in packed.passages)


def test_a_table_row_without_room_for_its_header_gives_way_to_prose():
    table = "| Item | Sum |\n|---|---|\n| excl. | 5,120 |\n| incl. | 6,093 |"
    for budget in range(13, 42):
        packed = pack([f"Costs follow.\n{table}"], "excl 5,120", **chars(budget, "query_overlap"))
        assert packed.passages == ("Costs follow.",)
    packed = pack([f"Costs follow.\n{table}"], "excl 5,120", **chars(42, "query_overlap"))
    assert packed.passages == ("| Item | Sum |\n|---|---|\n| excl. | 5,120 |",)
    only = pack([table], "excl", **chars(20, "query_overlap"))
    assert str(only.decisions[0]) == "dropped: nothing of it was selected"
    cut = pack([f"Costs follow.\n{table}"], unit="chars", budget=50, overflow="truncate", separator="\n")
    assert cut.text == "Costs follow.\n| Item | Sum |\n|---|---|"


def test_a_cut_in_a_script_without_spaces_does_not_fall_back_to_a_heading():
    text = "标题： " + "东京是日本的首都人口很多。" * 75
    for settings in ({"budget": 400, "overflow": "truncate", "separator": "\n\n"}, {"passage_budget": 400}):
        assert pack([text], **settings).n_used >= 395
    assert len(pack([text], unit="chars", passage_budget=100).text) == 100


@pytest.mark.parametrize("fill", ["rank", "shorter_first", "value_per_token"])
def test_no_chunks_give_an_empty_pack(fill):
    packed = pack([], unit="chars", budget=9, overflow="truncate", fill=fill)
    assert (packed.text, packed.decisions) == ("", ())
    settings = pt.ContextPackingConfig(enabled=True, max_context_chars=9, ordering="shorter_first")
    assert pt.pack_context(query="q", doc_ids=[], passages=[], config=settings).passages == ()


def test_white_space_at_the_start_can_be_cut():
    packed = pack(["   Hello there."], unit="chars", budget=2, overflow="truncate")
    assert packed.text == ""
    assert pack(["   Hello there."], unit="chars", budget=9, overflow="truncate").text == "   Hello"


def test_lone_surrogates_are_split_like_any_letter():
    packed = pack(["\ud800 Lone. Two. Three."], **chars(12))
    assert packed.passages == ("\ud800 Lone. Two.",)


def test_combining_letters_that_are_equal_in_lower_case_are_duplicates():
    settings = pt.ContextPackingConfig(enabled=True)
    found = pt.pack_context(
        query="q", doc_ids=[1, 2], passages=["T\u0308ahir", "t\u0308ahir"], config=settings
    )
    assert found.dropped_doc_ids == ("2",)


def test_a_selector_registered_anew_is_another_one():
    frame = pd.DataFrame({"qid": ["q"], "docid": ["d"], "rank": [1]})
    run = pt.Run.from_frames(frame, {"d": "Alpha beta. Gamma delta here. Epsilon."}, queries={"q": "x"})
    prepared = pt.prepare(run, counter="chars")
    config = pt.PackerConfig(**chars(20, "mine"), separator="\n\n")
    try:
        for sign in (-1, 1, -1):
            pt.register_selector(
                "mine", lambda query, sentences, sign=sign: [sign * i for i in range(len(sentences))]
            )
            packed = prepared.evaluate(config)
            assert packed.per_query.at["q", "n_chars"] == len(packed.context("q").text)
    finally:
        del pt.SELECTORS["mine"]


@pytest.mark.parametrize(
    "given",
    [None, 3, "abc", ["a", "b", "c"], [[1], [2, 3], [4]], {1, 2}, [1, 2, float("nan")], [10**400, 1, 2]],
)
def test_a_selector_that_gives_no_numbers_is_named(given):
    pt.register_selector("odd", lambda query, sentences: given)
    try:
        with pytest.raises(
            pt.PackerError, match="register_selector: 'odd' must be one number for each of 3 sentences"
        ):
            pack(["One. Two. Three."], **chars(11, "odd"))
    finally:
        del pt.SELECTORS["odd"]


def test_a_selector_that_fails_is_named():
    pt.register_selector("bad", lambda query, sentences: [1 / 0])
    try:
        with pytest.raises(pt.PackerError, match="'bad' failed on 3 sentences: ZeroDivisionError"):
            pack(["One. Two. Three."], **chars(11, "bad"))
    finally:
        del pt.SELECTORS["bad"]
    for name, function in ((3, len), ("", len), ("x", 5)):
        with pytest.raises(pt.PackerError, match="register_selector"):
            pt.register_selector(name, function)


def test_diversity_of_a_long_passage_is_ranked_in_one_go():
    text = " ".join(f"Sentence number {i} speaks of dam {i % 7}." for i in range(600))
    packed = pack([text], "dam 3", **chars(400, "mmr"))
    assert 350 < len(packed.text) <= 400


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pt.PackerConfig.from_json(None), "from_json: not JSON"),
        (lambda: pt.PackerConfig.from_dict(None), "'values' must be a mapping"),
        (
            lambda: pt.PackerConfig.characters(min_sentence_chars="x"),
            "'min_sentence_chars' must be a whole number",
        ),
        (lambda: pt.PackerConfig.characters(foo=1), "setting 'foo' is unknown; known: 'budget'"),
        (lambda: pt.PackerConfig().replace(foo=1), "setting 'foo' is unknown; known: 'budget'"),
        (lambda: pt.PackerConfig(overflow=["skip"]), "overflow .* is unknown; known: 'skip', 'truncate'"),
        (lambda: pt.ContextPacker({"budget": 3}), "'config' must be a PackerConfig"),
        (lambda: pack(["a"], query=5), "'query' must be a string or None"),
        (lambda: pt.ContextPacker().pack_sync(None, ["text"]), "'chunks' must be a list of Chunk"),
        (lambda: pt.ContextPacker().pack_sync("tenant", []), "'ctx' must be a RequestContext"),
        (
            lambda: pt.pack_context(query="q", doc_ids=[1], passages=["a"], config={"enabled": True}),
            "from_mapping",
        ),
        (lambda: pt.pack_context(query="q", doc_ids="ab", passages=["a", "b"]), "'doc_ids' must be a list"),
        (lambda: pt.truncate_to_tokens("text", "3", "chars"), "'limit' must be a whole number of tokens"),
        (lambda: pt.prepare(pt.load_sample(), splitters=[None]), "'splitters' must be a list of strings"),
        (
            lambda: pt.prepare(pt.load_sample(), counter="chars").evaluate({}),
            "'config' must be a PackerConfig",
        ),
    ],
)
def test_wrong_calls_are_one_clear_error(call, message):
    with pytest.raises(pt.PacktoolsError, match=message):
        call()


def test_unknown_names_are_refused_before_anything_is_evaluated():
    prepared = pt.prepare(pt.load_sample(), counter="chars")
    for setting in ("sentence_selection", "splitter", "fill", "order"):
        with pytest.raises(pt.PackerError, match=f"{setting} 'bogus' is unknown"):
            prepared.evaluate(pt.PackerConfig(**{setting: "bogus"}))


def test_the_check_reads_ranks_flags_and_every_character():
    from dataclasses import replace

    packed = pack(
        ["One. Two. Three.", "ONE. TWO. THREE.", "Four."], **chars(9), separator=" ", deduplicate=True
    )
    span = packed.spans[0]
    assert span.also == ("d2",)
    wrong = [
        replace(span, source_end=12), replace(span, rank=2), replace(span, truncated=False),
        replace(span, also=("d3",)), replace(span, pieces=(replace(span.pieces[0], source_start=-16, source_end=-7),)),
    ]  # fmt: skip
    for one in wrong:
        with pytest.raises(pt.PackerError, match="verify_spans"):
            pt.verify_spans(replace(packed, spans=(one, *packed.spans[1:])))
    for text in (packed.text + "x", packed.text.replace(" F", "#F")):
        with pytest.raises(pt.PackerError, match="verify_spans"):
            pt.verify_spans(replace(packed, text=text))


def test_a_setting_shows_what_differs_from_the_defaults():
    assert repr(pt.PackerConfig()) == "PackerConfig()"
    assert (
        repr(pt.PackerConfig(budget=9, overflow="truncate")) == "PackerConfig(budget=9, overflow='truncate')"
    )
