"""The list of queries: search, filter, sort, pages, the chosen query."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import packtools as pt
from packtools.errors import SettingError
from packtools.query_list import FILTERS, SORTS, QueryList
from packtools.view import View

NAN = float("nan")
# id, text, tokens before, here, delta: in the order of the file. q10 before q9; two equal losses, of
# which q10 saves more; q2 and q9 change nothing and save the same.
ROWS = [
    ("q10", "What is the weather in Größenwahn?", 3870, 958, -1.0),
    ("q9", "capital of France", 1000, 500, 0.0),
    ("q2", "Capital of Peru", 900, 400, 0.0),
    ("Q1", "who wrote  the\nodyssey", 800, 790, 1.0),
    ("q100", "unanswered", 700, 100, NAN),
    ("q1b", "q9 is a postcode", 600, 590, -1.0),
]


def view(rows, quality="answer_retention", noun="tokens"):
    """Give what `QueryList` reads of a view; its table is not in the order of the file."""
    ids = pd.Index([row[0] for row in rows], name="qid", dtype=object)
    texts, before, here, delta = (list(column) for column in zip(*(row[1:] for row in rows), strict=True))
    texts = pd.Series(texts, ids, dtype=object)  # a lone surrogate is no text to pyarrow
    frame = pd.DataFrame(
        {"query": texts, "n_tokens_baseline": before, "n_tokens": here, "delta": delta}, index=ids
    )
    run = SimpleNamespace(queries=texts.to_frame("text"))
    return SimpleNamespace(
        per_query=frame.iloc[::-1], quality=quality, noun=noun, prepared=SimpleNamespace(run=run)
    )


def many(n, delta=0.0):
    return [(f"q{i}", f"text of number {i}", 100, 50, delta) for i in range(n)]


def listed(queries):
    """Ids of all pages."""
    page, out = queries.page, []
    for number in range(1, queries.n_pages + 1):
        queries.page = number
        out += [qid for _, qid in queries.entries]
    queries.page = page
    return out


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        ("largest loss", ["q10", "q1b", "q9", "q2", "Q1", "q100"]),
        ("largest gain", ["Q1", "q9", "q2", "q10", "q1b", "q100"]),
        ("largest saving", ["q10", "q100", "q9", "q2", "Q1", "q1b"]),
        ("file order", ["q10", "q9", "q2", "Q1", "q100", "q1b"]),
        ("id", ["Q1", "q1b", "q2", "q9", "q10", "q100"]),
    ],
)
def test_queries_are_sorted(sort, ids):
    queries = QueryList(view(ROWS))
    queries.find(sort=sort)
    assert listed(queries) == ids


@pytest.mark.parametrize(
    ("kept", "ids"),
    [
        ("all", {"q10", "q9", "q2", "Q1", "q100", "q1b"}),
        ("changed", {"q10", "Q1", "q1b"}),
        ("lost", {"q10", "q1b"}),
        ("gained", {"Q1"}),
        ("not scored", {"q100"}),
    ],
)
def test_queries_are_filtered(kept, ids):
    queries = QueryList(view(ROWS))
    queries.find(filter=kept)
    assert set(listed(queries)) == ids
    assert queries.n_listed == len(ids)


def test_more_is_lost_where_lower_is_better():
    queries = QueryList(view(ROWS, quality="answer_position"))
    queries.find(filter="lost")
    assert listed(queries) == ["Q1"]
    queries.find(filter="all", sort="largest loss")
    assert listed(queries)[0] == "Q1"


@pytest.mark.parametrize(
    ("search", "ids"),
    [
        ("CAPITAL of", ["q9", "q2"]),
        ("grössenwahn", ["q10"]),  # the casefold of ß is ss
        ("gro\N{COMBINING DIAERESIS}ß", ["q10"]),  # the same letter, written in two code points
        ("  capital   of ", ["q9", "q2"]),
        ("the odyssey", ["Q1"]),  # across the line break of the file
        ("q1", ["Q1", "q10", "q100", "q1b"]),  # the id itself comes first, whatever its case
        ("q9", ["q9", "q1b"]),  # before a text that has it
        ("9 capital", []),  # an id and a text are not one text
        ("nowhere", []),
        ("   ", ["q10", "q9", "q2", "Q1", "q100", "q1b"]),
        (".*", []),
    ],
)
def test_search_takes_words_of_id_and_text(search, ids):
    queries = QueryList(view(ROWS))
    queries.find(search=search, sort="file order")
    assert listed(queries) == ids


def test_search_and_filter_go_together():
    queries = QueryList(view(ROWS))
    queries.find(search="q1", filter="lost", sort="file order")
    assert listed(queries) == ["q10", "q1b"]
    assert queries.place_words == "page 1 of 1 · 2 of 6 queries"


def test_entries_say_what_happened_in_one_line():
    queries = QueryList(view(ROWS))
    queries.find(sort="file order")
    words = [words for words, _ in queries.entries]
    assert words[0] == "q10 · lost · 3,870 → 958 tokens · What is the weather in Größenwahn?"
    assert words[1] == "q9 · same · 1,000 → 500 tokens · capital of France"
    assert words[3] == "Q1 · gained · 800 → 790 tokens · who wrote the odyssey"
    assert words[4] == "q100 · not scored · 700 → 100 tokens · unanswered"


def test_characters_are_called_so():
    queries = QueryList(view(ROWS[1:2], noun="characters"))
    assert queries.entries == [("q9 · same · 1,000 → 500 characters · capital of France", "q9")]


def test_a_query_without_text_ends_with_its_size():
    assert QueryList(view([("q1", "", 2, 1, 0.0)])).entries == [("q1 · same · 2 → 1 tokens", "q1")]


def test_control_characters_break_no_line():
    odd = "a\nb\r\u2028c\x00\x1b[31m\u202ed\ud800 e\tf\u3000g"
    ((words, qid),) = QueryList(view([("q\n1", odd, 2, 1, 0.0)])).entries
    assert words == "q 1 · same · 2 → 1 tokens · a b c [31m d e f g"
    assert qid == "q\n1"
    words.encode("utf-8")  # no lone surrogate is left


def test_joiners_inside_words_stay():
    persian = "می\u200cخواهم"
    assert QueryList(view([("1", persian, 2, 1, 0.0)])).entries[0][0].endswith(persian)


def test_long_texts_and_ids_are_cut():
    one = "https://example.org/collection/" + "x" * 50
    rows = [(one + "1", "word " * 3000, 2, 1, 0.0), (one + "2", "", 2, 1, 0.0)]
    (first, _), (second, _) = QueryList(view(rows)).entries
    assert len(first) <= 100
    assert first.endswith("wo…")
    assert "tokens · word word" in first
    assert first.startswith("https://example…xxxxxxxxxxxxxxx1 · same")
    assert second.startswith("https://example…xxxxxxxxxxxxxxx2 · same")  # told apart by the end


def test_pages_hold_fifty():
    queries = QueryList(view(many(120)))
    queries.find(sort="file order")
    assert [qid for _, qid in queries.entries] == [f"q{i}" for i in range(50)]
    assert queries.place_words == "page 1 of 3 · 120 queries"
    queries.turn(1)
    queries.turn(1)
    assert [qid for _, qid in queries.entries] == [f"q{i}" for i in range(100, 120)]
    queries.turn(1)
    assert queries.page == 3
    queries.turn(-5)
    assert queries.page == 1


@pytest.mark.parametrize(("n", "pages"), [(1, 1), (49, 1), (50, 1), (51, 2), (100, 2), (101, 3)])
def test_the_last_page_may_be_short(n, pages):
    queries = QueryList(view(many(n)))
    assert queries.n_pages == pages
    assert len(listed(queries)) == n


def test_the_first_query_is_chosen_at_first():
    queries = QueryList(view(ROWS))
    assert (queries.chosen, queries.index) == ("q10", 0)


def test_the_chosen_query_stays_while_it_is_listed():
    queries = QueryList(view(ROWS))
    queries.choose("q2")
    queries.find(search="capital")
    queries.find(sort="id")
    assert (queries.chosen, queries.index) == ("q2", 0)
    queries.find(filter="lost", search="")
    assert (queries.chosen, queries.index) == ("q1b", 0)  # the first of the lost by id
    queries.find(search="nowhere")
    assert (queries.chosen, queries.index, queries.entries) == (None, None, [])
    assert queries.place_words == "none of 6 queries"
    queries.find(search="", filter="all")
    assert queries.chosen == "Q1"  # the first by id


def test_the_chosen_query_stays_on_another_page():
    queries = QueryList(view(many(120)))
    queries.find(sort="file order")
    queries.choose("q70")
    assert (queries.page, queries.index) == (2, 20)
    queries.turn(1)
    assert (queries.chosen, queries.index) == ("q70", None)
    assert queries.place_words == "page 3 of 3 · 120 queries · chosen: q70, page 2"


def test_what_is_asked_for_starts_on_the_first_page():
    queries = QueryList(view(many(120)))
    queries.turn(2)
    queries.find(sort="id")
    assert queries.page == 1
    queries.turn(1)
    queries.find(sort="id")  # as before: nothing is asked for
    assert queries.page == 2


def test_another_setting_keeps_what_was_asked_for():
    queries = QueryList(view(many(230)))
    queries.find(search="number", filter="all", sort="id")
    queries.choose("q170")
    queries.turn(1)
    queries.update(view(many(230, delta=-1.0), noun="characters"))
    assert (queries.search, queries.sort, queries.page, queries.chosen) == ("number", "id", 5, "q170")
    assert queries.entries[0] == ("q200 · lost · 100 → 50 characters · text of number 200", "q200")


def test_another_setting_with_fewer_listed_stays_on_a_page_that_is_there():
    queries = QueryList(view(many(230, delta=-1.0)))
    queries.find(filter="lost", sort="file order")
    queries.turn(4)
    queries.choose("q229")
    queries.update(view(many(60, delta=-1.0) + [(f"q{i}", "", 1, 1, 0.0) for i in range(60, 230)]))
    assert (queries.page, queries.n_pages) == (2, 2)
    assert queries.chosen == "q50"  # the first of the page


def test_texts_of_another_run_are_searched():
    queries = QueryList(view(ROWS))
    queries.find(search="capital")
    queries.update(view([("q9", "river", 1, 1, 0.0), ("q3", "Capital", 1, 1, 0.0)]))
    assert listed(queries) == ["q3"]


def test_one_goes_from_change_to_change_in_the_order_of_the_list():
    queries = QueryList(view(ROWS))
    queries.find(sort="file order")
    assert [queries.next_changed(q) for q in listed(queries)] == ["Q1", "Q1", "Q1", "q1b", "q1b", None]
    assert [queries.previous_changed(q) for q in listed(queries)] == [None, "q10", "q10", "q10", "Q1", "Q1"]


def test_no_change_leads_nowhere():
    queries = QueryList(view(many(3)))
    assert queries.next_changed("q0") is None
    assert queries.previous_changed("q2") is None


def test_errors_say_what_to_do():
    queries = QueryList(view(ROWS))
    queries.find(filter="lost")
    with pytest.raises(SettingError) as error:
        queries.choose("q9")
    assert str(error.value) == (
        "choose: 'qid' must be the id of a listed query; got 'q9'. Clear the search and the filter."
    )
    with pytest.raises(SettingError, match=r"^next_changed: 'qid' must be the id of a listed query; got 'x'"):
        queries.next_changed("x")
    with pytest.raises(SettingError) as error:
        queries.find(sort="largest lost")
    assert str(error.value) == (
        "find: sort 'largest lost' is unknown; known: 'largest loss', 'largest gain', 'largest saving', "
        "'file order', 'id'. Did you mean 'largest loss'?"
    )
    assert queries.sort == "largest loss"


def test_23_000_queries_give_a_page_at_a_time():
    # P124. Every seventh query is lost; the ids that hold "17" are counted one by one.
    rows = [(f"q{i}", f"text {i}", 100, 50, -1.0 if i % 7 == 0 else 0.0) for i in range(23_000)]
    queries = QueryList(view(rows))
    assert queries.place_words == "page 1 of 460 · 23,000 queries"
    assert len(queries.entries) == 50
    for search in ("17", "q1717", "text 22999"):
        for kept in FILTERS:
            for sort in SORTS:
                queries.find(search=search, filter=kept, sort=sort)
                assert len(queries.entries) <= 50
    queries.find(search="17", filter="lost", sort="file order")
    assert listed(queries) == [f"q{i}" for i in range(0, 23_000, 7) if "17" in str(i)]


def test_figures_of_any_length_sort_as_numbers():
    ids = ["9" * 5000, "2", "10", "010", "1" + "0" * 5000, "a", "10a"]
    queries = QueryList(view([(qid, "", 1, 1, 0.0) for qid in ids]))
    queries.find(sort="id")
    assert listed(queries) == ["2", "010", "10", "10a", "9" * 5000, "1" + "0" * 5000, "a"]


def test_a_view_of_the_sample_is_listed_as_it_stands():
    prepared = pt.prepare(pt.load_sample())
    base, packed = (prepared.evaluate(pt.PackerConfig(budget=budget)) for budget in (None, 500))
    sample = View(base, packed, "answer_retention", pd.DataFrame())
    queries = QueryList(sample)
    assert listed(queries) == list(sample.per_query.index)
    queries.find(filter="lost")
    assert len(sample.flips[0]) == queries.n_listed > 0
    assert set(listed(queries)) == set(sample.flips[0])
    queries.find(filter="all", sort="file order")
    assert listed(queries) == list(prepared.run.queries.index)
    saved = base.per_query["n_tokens"] - packed.per_query["n_tokens"]
    queries.find(sort="largest saving")
    assert (np.diff(saved[listed(queries)]) <= 0).all()
