"""One query looked at: exact segments, reasons, answers, differences; and its HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt
from packtools.drilldown import look
from packtools.errors import SettingError
from packtools.marking import difference_words, find_all, segments, telling, unlike
from packtools.metrics import find_answer, folded_answers
from packtools.query_markup import QUERY_CSS, query_html

SETTINGS = {
    "unguarded": pt.PackerConfig(
        budget=1000, jaccard_threshold=0.6, protect_differences=False, separator="\n\n"
    ),
    "sentences": pt.PackerConfig(
        budget=700,
        passage_budget=60,
        sentence_selection="query_overlap",
        overflow="truncate",
        jaccard_threshold=0.85,
    ),
    "characters": pt.PackerConfig.characters(900, 320),
}


@pytest.fixture(scope="module")
def prepared():
    return pt.prepare(pt.load_sample())


@pytest.fixture(scope="module", params=list(SETTINGS))
def looked(request, prepared):
    """A packed run, the contexts of its queries, and a look at each; every query is packed once."""
    packed = prepared.evaluate(SETTINGS[request.param])
    contexts = {qid: packed.context(qid) for qid in prepared.qids}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pt.PackedRun, "context", lambda self, qid: contexts[qid])
        return packed, contexts, [look(packed, qid) for qid in prepared.qids]


def run_of(texts, *, scores=None, answers=None, **others):
    """A run of one query "q" over named texts, best first; None is a candidate without text."""
    ids = list(texts)
    frame = pd.DataFrame(
        {
            "qid": "q",
            "docid": ids,
            "rank": range(1, len(ids) + 1),
            "score": scores or [float(len(ids) - i) for i in range(len(ids))],
        }
    )
    passages = {docid: text for docid, text in texts.items() if text is not None}
    answers = None if answers is None else {"q": answers}
    return pt.Run.from_frames(frame, passages, queries={"q": "what?"}, answers=answers, **others)


def look_at(texts, config, *, baseline=None, counter="chars", **others):
    prepared = pt.prepare(run_of(texts, **others), counter=counter)
    base = None if baseline is None else prepared.evaluate(baseline)
    return look(prepared.evaluate(config), "q", base)


def joined(parts):
    return "".join(segment.text for segment in parts)


def cards(seen):
    return {card.docid: card for card in seen.cards}


def marked(parts):
    return [(s.text, s.differs) for s in parts if s.differs]


# --- over every query of the sample ---------------------------------------------------------------


def test_segments_joined_are_the_source_and_the_packed_text(looked):
    packed, contexts, looks = looked
    text = packed.prepared.run.passages["text"]
    for seen in looks:
        assert seen.text == contexts[seen.qid].text
        for card in seen.cards:
            assert joined(card.segments) == text[card.docid]


def test_kept_segments_are_what_the_prompt_holds_of_a_chunk(looked):
    packed, _, looks = looked
    collapsed = packed.config.white_space == "collapse"
    for seen in looks:
        packed_of = {part.docid: joined(part.segments) for part in seen.parts if part.rank is not None}
        for card in seen.cards:
            kept = joined(s for s in card.segments if s.state == "kept")
            sent = packed_of.get(card.docid, "")
            assert "".join(kept.split()) == "".join(sent.split())
            assert collapsed or kept == sent
            states = {s.state for s in card.segments}
            assert states <= {"kept": {"kept"}, "cut": {"kept", "cut"}, "dropped": {"dropped"}}[card.state]


def test_states_sizes_and_places_agree_with_the_ledger_of_the_run(looked):
    packed, _, looks = looked
    frame, unit = packed.decisions, packed.config.unit
    for seen, (qid, rows) in zip(looks, frame.groupby("qid", observed=True), strict=True):
        assert seen.qid == qid
        assert [c.docid for c in seen.cards] == rows["docid"].tolist()
        assert [c.rank for c in seen.cards] == rows["rank"].tolist()
        kept = (rows["decision"] == "kept").tolist()
        assert [c.state != "dropped" for c in seen.cards] == kept
        sizes = [n if stays else 0 for n, stays in zip(rows[f"n_{unit}"], kept, strict=True)]
        assert [c.n_packed for c in seen.cards] == sizes
        assert [c.n_whole for c in seen.cards] == rows[f"n_{unit}_whole"].tolist()
        placed = sorted((c.place, c.docid) for c in seen.cards if c.place is not None)
        assert [docid for _, docid in placed] == packed.kept(seen.qid)
        assert [place for place, _ in placed] == list(range(1, seen.n_places + 1))


def test_answers_are_marked_where_answer_kept_says_so(looked):
    packed, _, looks = looked
    retention = packed.per_query["answer_retention"]
    for seen in looks:
        in_a_candidate = any(card.has_answer for card in seen.cards)
        assert in_a_candidate == bool(retention.notna()[seen.qid])
        assert seen.has_answer == (retention[seen.qid] == 1)


def test_each_near_duplicate_that_the_guard_holds_back_is_noted_on_both_sides(looked):
    packed, _, looks = looked
    notes = [note for seen in looks for card in seen.cards for note in card.notes]
    assert sum("held back" in note for note in notes) == 2 * packed.n_held_back


def test_what_is_marked_as_different_in_the_prompt_is_so_marked_in_the_source(looked):
    for seen in looked[2]:
        source = {card.docid: joined(s for s in card.segments if s.differs) for card in seen.cards}
        for part in seen.parts:
            here = joined(s for s in part.segments if s.differs)
            assert len(here) <= len(source.get(part.docid, ""))


# --- by hand --------------------------------------------------------------------------------------


def test_every_reason_is_said_in_words():
    texts = {
        "a": "alpha bravo charlie delta echo foxtrot",  # 38 characters
        "same": "Alpha bravo, charlie delta echo foxtrot!",
        "near": "alpha bravo charlie delta echo foxtrot golf",  # 2 of its 3 shingles are those of a
        "gone": None,
        "blank": " \n",
        "big": "x" * 100,
        "b": "short",
    }
    config = pt.PackerConfig(budget=50, unit="chars", separator="|", order="fill", jaccard_threshold=0.6)
    seen = look_at(texts, config)
    assert {docid: (card.state, card.reason) for docid, card in cards(seen).items()} == {
        "a": ("kept", ""),
        "same": ("dropped", "same text as a"),
        "near": ("dropped", "near-duplicate of a (0.67)"),
        "gone": ("dropped", "no text in the collection"),
        "blank": ("dropped", "empty"),
        "big": ("dropped", "over budget by 89 characters"),  # 38 + 1 + 100 of 50
        "b": ("kept", ""),
    }
    assert cards(seen)["a"].notes == ("stands for same, near",)
    assert seen.text == "alpha bravo charlie delta echo foxtrot|short"
    assert [part.rank for part in seen.parts] == [1, None, 7]
    assert seen.sentences == ["44 of 50 characters used", "2 of 7 chunks packed", "no reference answers"]


def test_a_chunk_cut_to_fit_shows_what_is_left_and_ends_the_packing():
    texts = {"a": "alpha beta gamma", "b": "delta"}
    config = pt.PackerConfig(budget=12, unit="chars", separator="|", order="fill", overflow="truncate")
    a, b = look_at(texts, config).cards
    assert (a.state, a.reason, a.n_packed) == ("cut", "cut to 10 of 16 characters", 10)
    assert [(s.text, s.state) for s in a.segments] == [("alpha beta", "kept"), (" gamma", "cut")]
    assert b.reason == "not tried: packing had ended at one that did not fit"


def test_one_unit_over_the_budget_is_said_in_the_singular():
    config = pt.PackerConfig(budget=5, unit="chars", separator="|", order="fill")
    assert look_at({"a": "alpha", "b": "", "c": "x"}, config).cards[2].reason == "over budget by 2 characters"
    assert look_at({"a": "sixsix"}, config).cards[0].reason == "over budget by 1 character"


def test_collapsed_white_space_counts_as_kept():
    config = pt.PackerConfig(unit="chars", white_space="collapse", separator=" ")
    (card,) = look_at({"a": " one \n two\ufffd"}, config).cards
    assert card.state == "kept"
    assert [(s.text, s.state) for s in card.segments] == [(" one \n two\ufffd", "kept")]


PI = "the value of the number that we know is 3.14 and it is not more"
NO_PI = "the value of the number that we know is 314 and it is not more"


def test_what_the_guard_holds_back_is_told_and_marked_in_both_and_in_the_prompt():
    config = pt.PackerConfig(separator="|", order="fill", deduplicate=True, detect_conflicts=False)
    seen = look_at({"a": PI, "b": NO_PI}, config)
    assert [card.notes for card in seen.cards] == [
        ("near-duplicate of b (1.00), held back: 3.14 here; 314 there",),
        ("near-duplicate of a (1.00), held back: 314 here; 3.14 there",),
    ]
    for shown in (seen.cards, [part for part in seen.parts if part.rank is not None]):
        assert [marked(one.segments) for one in shown] == [
            [("3.14", "differs from b")],
            [("314", "differs from a")],
        ]


def test_without_the_guard_the_difference_is_still_marked():
    config = pt.PackerConfig(unit="chars", separator="|", deduplicate=True, protect_differences=False)
    a, b = look_at({"a": PI, "b": NO_PI}, config).cards
    assert (b.state, b.reason) == ("dropped", "same text as a")
    assert a.notes == ("differs from b: 3.14 here; 314 there", "stands for b")
    assert marked(b.segments) == [("314", "differs from a")]


def test_a_conflict_names_the_other_chunk_and_marks_both_values():
    texts = {
        "a": "The tunnel under the strait is 50.5 km long.",
        "b": "Some say 52.  The tunnel under the strait is 52 km long.",
    }
    a, b = look_at(texts, pt.PackerConfig(unit="chars", separator="|", white_space="collapse")).cards
    said = "conflict with b, numbers disagree: 50.5 here; 52 there"
    assert a.notes == (said,)
    assert marked(a.segments) == [("50.5", said)]
    assert [s.text for s in b.segments if s.differs] == ["52"]
    assert joined(b.segments).index("52 km") == len("".join(s.text for s in b.segments[:1]))


def test_labels_and_predictions_are_those_of_the_run():
    qrels = pd.DataFrame({"qid": ["q", "q", "p"], "docid": ["a", "b", "c"], "label": [2, 0, 1]})
    texts = {"a": "one", "b": "two", "c": "three"}
    seen = look_at(texts, pt.PackerConfig(), qrels=qrels, predictions={"q": "four"}, answers=["one", "1"])
    assert [card.label for card in seen.cards] == [2, 0, None]
    assert (seen.prediction, seen.references) == ("four", ("one", "1"))


def test_the_baseline_is_counted_and_its_other_choices_are_noted():
    texts = {"a": "aaaaa", "b": "bbbbbbbb", "c": "ccc"}
    wide, narrow = (pt.PackerConfig(budget=n, unit="chars", separator="|", order="fill") for n in (14, 9))
    seen = look_at(texts, narrow, baseline=wide)
    assert seen.sentences[0] == "9 of 9 characters used; 14 in the baseline"
    assert [card.notes for card in seen.cards] == [
        (),
        ("kept in the baseline",),
        ("dropped in the baseline",),
    ]
    everything = look_at(texts, narrow, baseline=pt.PackerConfig(unit="chars", separator="|"))
    assert [card.notes for card in everything.cards] == [(), (), ()]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"a": "Paris", "b": "x"}, "the answer is in the packed text"),
        (
            {"a": "xxxxx", "b": "Paris"},
            "the answer is lost: it is in a candidate, but not in the packed text",
        ),
        ({"a": "Parisian", "b": "x"}, "no candidate holds the answer"),
    ],
)
def test_what_became_of_the_answer_is_said(texts, said):
    config = pt.PackerConfig(budget=9, unit="chars", separator="|", order="fill")
    assert look_at(texts, config, answers=["paris"]).sentences[2] == said


def test_the_notes_of_a_card_and_the_ids_in_them_are_counted_after_five():
    texts = {f"d{i}": "the same words again and again" for i in range(9)}
    first = look_at(texts, pt.PackerConfig(deduplicate=True)).cards[0]
    assert first.notes == ("stands for d1, d2, d3, d4, d5, and 3 more",)
    texts = {f"d{i}": f"the same words again and again {i}" for i in range(9)}
    config = pt.PackerConfig(jaccard_threshold=0.5, detect_conflicts=False)
    notes = look_at(texts, config).cards[0].notes
    assert len(notes) == 6
    assert notes[5] == "and 3 more"


def test_a_wrong_argument_is_an_error_that_says_what_to_give(prepared):
    packed = prepared.evaluate(pt.PackerConfig())
    with pytest.raises(SettingError, match=r"^look: 'packed' must be a PackedRun; got 3\. See PreparedRun\."):
        look(3, "q")
    with pytest.raises(SettingError, match=r"^look: 'baseline' must be a PackedRun; got 'x'\."):
        look(packed, "river-q1", "x")
    with pytest.raises(SettingError, match=r"^query: qid 'river-q0' is unknown"):
        look(packed, "river-q0")


# --- marking --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answers", "found"),
    [
        ("No, nobody. NO!", ["no"], ["No", "NO"]),
        ("15 and 5.2 and 5", ["5"], ["5"]),
        ("the \ufb01nal  score", ["final score"], ["\ufb01nal  score"]),  # a ligature, two spaces
        ("cafe\u0301 caf\u00e9", ["caf\u00e9"], ["cafe\u0301", "caf\u00e9"]),
        ("東京と東京", ["東京"], ["東京", "東京"]),
        ("some infor-\nmation", ["information"], ["infor-\nmation"]),
        ("drink Coca-\nCola", ["coca-cola"], ["Coca-\nCola"]),
        ("New York City", ["New York", "York City"], ["New York City"]),  # they overlap
        ("a soft\u00adhyphen here", ["softhyphen"], ["soft\u00adhyphen"]),
        ("", ["x"], []),
    ],
)
def test_every_place_of_an_answer_is_found(text, answers, found):
    assert [text[a:b] for a, b in find_all(text, folded_answers(answers))] == found


LETTERS = [
    "a",
    "B",
    "5",
    ".",
    ",",
    "\n",
    " ",
    "  ",
    "é",
    "e\u0301",
    "\ufb01",
    "\u00ad",
    "東",
    "が",
    "İ",
    "ß",
    "²",
]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(LETTERS), max_size=14),
    st.lists(st.sampled_from(LETTERS), min_size=1, max_size=3),
)
def test_the_first_place_is_that_of_find_answer(text, answer):
    text, answer = "".join(text), "".join(answer)
    found = find_all(text, folded_answers([answer]))
    assert (found[0][0] if found else -1) == find_answer(text, [answer])
    assert all(a < b for a, b in found)


@pytest.mark.parametrize(
    ("a", "b", "marks_a", "marks_b"),
    [
        ("It is (not) 5 % here", "It is 5 % here", ["not"], []),
        ("€5 in March 1999.", "$5 in May, 1999.", ["€", "March"], ["$", "May"]),
        ("1,000 and 2", "1000 and 3", ["2"], ["3"]),
        ("2020年に三人", "2020年に五人", ["三"], ["五"]),
        ("don't", "do", ["don't"], []),
        ("the same 7", "the same, 7", [], []),
    ],
)
def test_differences_are_marked_where_they_stand(a, b, marks_a, marks_b):
    here, there = unlike(telling(a), telling(b))
    assert [a[x:y] for x, y in here] == marks_a
    assert [b[x:y] for x, y in there] == marks_b


def test_difference_words_say_what_one_side_alone_has():
    assert difference_words(("not", "5"), ("5",)) == "not here only"
    assert difference_words((), tuple("123456789")) == "1, 2, 3, 4, 5, 6, … there only"


slices = st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda s: s[0] < s[1])


@given(st.lists(slices, max_size=4), st.lists(slices, max_size=4))
def test_segments_mark_each_character_as_its_slices_do(answers, marks):
    text = "abcdefghijkl"
    cut = segments(text, [(2, 7, "kept")], "cut", answers, [(a, b, "x") for a, b in marks])
    assert joined(cut) == text
    at = 0
    for segment in cut:
        for place in range(at, at + len(segment.text)):
            assert (segment.state == "kept") == (2 <= place < 7)
            assert segment.answer == any(a <= place < b for a, b in answers)
            assert bool(segment.differs) == any(a <= place < b for a, b in marks)
        at += len(segment.text)


# --- HTML -----------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Collect tags, ids, links, and the text in each element of the class "text"."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[dict] = []
        self.texts: list[str] = []
        self.depth: int | None = None
        self.all = ""
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes.append({"tag": tag, **dict(attrs)})
        if dict(attrs).get("class") == "text":
            self.depth = len(self.open)
            self.texts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if self.depth is not None and len(self.open) < self.depth:
            self.depth = None

    def handle_data(self, data):
        self.all += data
        if self.depth is not None:
            self.texts[-1] += data

    def having(self, name):
        return [a[name] for a in self.attributes if name in a]


TAGS = {"div", "h4", "h5", "p", "bdi", "mark", "del", "u", "span", "article", "section", "a", "style"}


def test_html_shows_every_source_and_the_packed_text_as_they_are(looked):
    for seen in looked[2]:
        page = Reader(query_html(seen))
        shown = [joined(one.segments) for one in (*seen.cards, *(p for p in seen.parts if p.rank))]
        assert page.texts == [text for text in shown if text]
        assert page.tags <= TAGS


def test_cards_and_parts_can_be_reached_and_link_to_each_other(looked):
    for seen in looked[2][:5]:
        page = Reader(query_html(seen))
        ids = page.having("id")
        assert len(ids) == len(set(ids)) == 1 + len(seen.cards) + seen.n_places
        assert {link[1:] for link in page.having("href")} <= set(ids)
        assert len(page.having("href")) == 2 * seen.n_places
        boxes = [a for a in page.attributes if a["tag"] in ("article", "section")]
        assert all(box["tabindex"] == "0" and box["aria-label"] for box in boxes)


EVIL = "\"><script>alert(1)</script>&amp;'<img src=x onerror=y>"


def test_nothing_from_a_file_becomes_a_tag_or_an_attribute():
    texts = {EVIL: f"{EVIL} 5 {EVIL}", "b": f"{EVIL} 6 {EVIL}"}
    passages = pd.DataFrame({"title": [EVIL, EVIL], "text": list(texts.values())}, index=list(texts))
    frame = pd.DataFrame({"qid": EVIL, "docid": list(texts), "rank": [1, 2], "score": [2.0, 1.0]})
    run = pt.Run.from_frames(
        frame, passages, queries={EVIL: EVIL}, answers={EVIL: [EVIL, "script"]}, predictions={EVIL: EVIL}
    )
    config = pt.PackerConfig(separator=EVIL, jaccard_threshold=0.5)
    packed = pt.prepare(run, counter="chars").evaluate(config)
    page = Reader(query_html(look(packed, EVIL, packed)))
    assert page.tags <= TAGS
    assert {name for a in page.attributes for name in a} <= {
        "tag", "class", "id", "role", "tabindex", "aria-label", "dir", "title", "href", "data-rank"
    }  # fmt: skip
    assert page.texts == [*texts.values()] * 2
    assert page.all.count(EVIL) > 12


def test_control_characters_and_lone_surrogates_are_shown_and_can_be_sent():
    source = "a\x00b\ud800c\x85d\te\r\nf\x7f \u202egh"
    written = query_html(look_at({"a": source}, pt.PackerConfig()))
    written.encode("utf-8")
    assert Reader(written).texts[0] == "a\u2400b\ufffdc\ufffdd\te\nf\u2421 \u202egh"


def test_texts_and_names_of_any_direction_stand_by_themselves():
    written = query_html(look_at({"שלום": "מגדל 330 tower", "b": "東京"}, pt.PackerConfig()))
    assert '<bdi dir="auto">שלום</bdi>' in written
    assert written.count('class="text" dir="auto"') == 4


def test_a_state_is_a_word_and_marks_are_elements():
    config = pt.PackerConfig(budget=12, unit="chars", separator="|", order="fill", overflow="truncate")
    written = query_html(look_at({"a": "alpha beta gamma", "b": "delta"}, config, answers=["beta"]))
    assert re.findall(r'class="state" title="[\w ]+">(\w+)<', written) == ["cut", "dropped"]
    assert "alpha <mark>beta</mark><del> gamma</del>" in written
    assert '<span class="gone">delta</span>' in written
    assert "1st of 1 in the prompt" in written


def test_places_are_said_as_ordinals():
    config = pt.PackerConfig(separator="|", order="fill")
    written = query_html(look_at({f"d{i}": f"text {i}" for i in range(23)}, config))
    said = re.findall(r">(\d+\w\w) of 23 in the prompt", written)
    assert [said[i - 1] for i in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23)] == (
        ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "23rd"]
    )


def test_a_pack_of_nothing_says_so():
    written = query_html(look_at({"a": "alpha"}, pt.PackerConfig(budget=1, unit="chars", separator="|")))
    assert "Nothing is packed." in written


def test_a_separator_that_the_caller_renders_is_said_to_be_free():
    texts = {"a": "alpha", "b": "beta"}
    free = query_html(look_at(texts, pt.PackerConfig()))
    paid = query_html(look_at(texts, pt.PackerConfig(separator=" | ")))
    assert "joined here for reading, not charged" in Reader(free).all
    assert "' | ' separator" in Reader(paid).all


def test_the_same_look_gives_the_same_html(prepared):
    packed = prepared.evaluate(SETTINGS["sentences"])
    assert query_html(look(packed, "river-q2")) == query_html(look(packed, "river-q2"))


def test_the_styles_touch_nothing_outside_the_panel():
    rules = re.sub(r"</?style>", "", QUERY_CSS)
    selectors = [
        part for rule in re.findall(r"([^{}]+)\{", rules) for part in re.split(r",(?![^(]*\))", rule)
    ]
    assert len(selectors) > 20
    assert all(selector.strip().startswith(".packtools .look") for selector in selectors)
