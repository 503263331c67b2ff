"""The controls of the query list without a browser: choice, calls, messages, widgets."""

from __future__ import annotations

import ipywidgets as w
import pytest
from ipywidgets.widgets.widget import _instances
from test_query_list import ROWS, many, view

from packtools.query_list import FILTERS, SORTS
from packtools.query_widgets import QueryPanel


class Shown:
    """Stands for the drill-down: takes ids, gives HTML."""

    def __init__(self) -> None:
        self.qids: list[str] = []

    def __call__(self, qid: str) -> str:
        self.qids.append(qid)
        return f"<p>{qid}</p>"

    def taken(self) -> list[str]:
        """Ids asked for since the last time."""
        taken, self.qids = self.qids, []
        return taken


class Wire:
    """Stands for the connection of a widget to the browser; keeps what is sent."""

    kernel = "there"

    def __init__(self, comm_id: str, sent: list[dict]) -> None:
        self.comm_id, self.sent = comm_id, sent

    def send(self, data=None, metadata=None, buffers=None):
        self.sent.append(data)

    def on_msg(self, callback):
        pass

    def close(self, *args, **kwargs):
        pass


def opened(rows, **kwargs):
    shown = Shown()
    panel = QueryPanel(shown, **kwargs)
    panel.update(view(rows))
    panel.active = True
    return panel, shown


def detail(panel):
    """What the drill-down gave, without the mark around it."""
    return panel.detail.value.removeprefix('<div data-lm-suppress-shortcuts="true">').removesuffix("</div>")


def wired(panel):
    """Connect all widgets of a panel; give what they send to the browser, echoes apart."""
    sent: list[dict] = []
    stack = [panel.widget]
    while stack:
        one = stack.pop()
        one.comm = Wire(one.comm.comm_id, sent)
        stack += getattr(one, "children", ())
    return sent


def updates(sent):
    return [message["state"] for message in sent if message["method"] == "update"]


def ids(panel):
    return [qid for _, qid in panel.list.options]


def test_the_first_query_is_shown_once_the_panel_is_opened():
    panel, shown = opened(ROWS)
    assert shown.taken() == ["q10"]
    assert panel.list.value == panel.chosen == "q10"
    # The keys are no shortcuts of JupyterLab there.
    assert panel.detail.value == '<div data-lm-suppress-shortcuts="true"><p>q10</p></div>'
    assert panel.list.label.startswith("q10 · lost · 3,870 → 958 tokens")


def test_nothing_is_worked_out_while_nobody_looks():
    shown = Shown()
    panel = QueryPanel(shown)
    panel.active = True  # before there is a run
    panel.active = False
    panel.update(view(ROWS))
    panel.search.value = "capital"
    panel.update(view(ROWS))
    assert (shown.taken(), panel.list.options, panel.chosen) == ([], (), None)
    panel.active = True  # what was missed is made up for, once
    assert shown.taken() == ["q9"]
    assert ids(panel) == ["q9", "q2"]
    panel.active = False
    panel.active = True
    assert shown.taken() == []


def test_filtering_keeps_the_chosen_query_and_asks_for_none():
    # P125: new options make the list fire and jump to its first entry.
    panel, shown = opened(many(30, delta=-1.0))
    panel.list.value = "q7"
    assert shown.taken() == ["q0", "q7"]
    panel.search.value = "7"
    assert ids(panel) == ["q7", "q17", "q27"]
    panel.filter.value = "lost"
    panel.sort.value = "id"
    panel.search.value = ""
    assert (panel.list.value, panel.list.index, shown.taken()) == ("q7", 7, [])


def test_a_query_no_longer_listed_gives_way_to_the_first():
    panel, shown = opened(ROWS)
    panel.list.value = "q1b"
    shown.taken()
    panel.search.value = "capital"
    assert (panel.list.value, detail(panel), shown.taken()) == ("q9", "<p>q9</p>", ["q9"])


def test_an_empty_list_says_so_and_fills_again():
    panel, shown = opened(ROWS)
    panel.search.value = "nowhere"
    assert (panel.list.options, panel.list.index, panel.chosen) == ((), None, None)
    assert "No query is listed" in panel.detail.value
    assert "none of 6 queries" in panel.place.value
    assert all(
        b.disabled for b in (panel.previous_page, panel.next_page, panel.previous_changed, panel.next_changed)
    )
    shown.taken()
    panel.search.value = ""
    assert (panel.list.value, shown.taken()) == ("q10", ["q10"])


def test_pages_turn_without_changing_the_choice():
    panel, shown = opened(many(120))
    shown.taken()
    assert (panel.previous_page.disabled, panel.next_page.disabled) == (True, False)
    panel.next_page.click()
    assert ids(panel) == [f"q{i}" for i in range(50, 100)]
    assert (panel.list.index, panel.chosen, shown.taken()) == (None, "q0", [])
    assert "page 2 of 3 · 120 queries · chosen: q0, page 1" in panel.place.value
    panel.next_page.click()
    assert (panel.previous_page.disabled, panel.next_page.disabled) == (False, True)
    panel.list.value = "q119"
    assert shown.taken() == ["q119"]
    panel.previous_page.click()
    panel.previous_page.click()
    panel.next_page.click()
    panel.next_page.click()
    assert (panel.list.value, shown.taken()) == ("q119", [])


def test_one_goes_from_change_to_change_across_pages():
    rows = many(120)
    rows[3] = ("q3", "", 9, 1, -1.0)
    rows[110] = ("q110", "", 9, 1, 1.0)
    panel, shown = opened(rows)
    panel.sort.value = "file order"
    assert panel.previous_changed.disabled  # q3 is chosen: the largest loss came first
    panel.next_changed.click()
    assert (panel.list.value, panel.list.index) == ("q110", 10)
    assert (panel.previous_changed.disabled, panel.next_changed.disabled) == (False, True)
    panel.previous_changed.click()
    assert (panel.list.value, panel.list.index) == ("q3", 3)
    assert shown.taken() == ["q3", "q110", "q3"]


def test_another_setting_is_followed_with_one_call():
    panel, shown = opened(many(120))
    panel.sort.value = "id"
    panel.next_page.click()
    panel.list.value = "q60"
    shown.taken()
    panel.update(view(many(120, delta=-1.0)))
    assert shown.taken() == ["q60"]
    assert panel.list.value == "q60"
    assert panel.list.label == "q60 · lost · 100 → 50 tokens · text of number 60"
    panel.filter.value = "lost"
    panel.update(view(many(120)))  # none is lost any more
    assert (panel.chosen, shown.taken()) == (None, [])
    panel.update(view(many(120, delta=-1.0)))
    assert shown.taken() == ["q0"]


@pytest.mark.parametrize("moves", ["browser", "kernel"])
def test_each_move_asks_once_at_most(moves):
    panel, shown = opened(many(60) + [(f"x{i}", f"other {i}", 9, 1, -1.0) for i in range(60)])

    def move(control, **state):
        if moves == "browser":
            control.set_state(state)
        else:
            for name, value in state.items():
                setattr(control, name, value)

    for control, state in [
        (panel.search, {"value": "other"}),
        (panel.search, {"value": "text"}),
        (panel.filter, {"index": FILTERS.index("lost")}),
        (panel.search, {"value": ""}),
        (panel.sort, {"index": SORTS.index("id")}),
        (panel.list, {"index": 5}),
        (panel.filter, {"index": 0}),
        (panel.list, {"index": 0}),
    ]:
        before = panel.chosen
        shown.taken()
        move(control, **state)
        assert shown.taken() == ([] if panel.chosen in (before, None) else [panel.chosen])
        assert panel.list.value in (panel.chosen, None)


def test_23_000_queries_send_a_page_at_a_time():
    # P124
    panel, _ = opened(many(23_000))
    sent = wired(panel)
    panel.search.set_state({"value": "number 17"})
    panel.next_page.click()
    panel.sort.set_state({"index": SORTS.index("id")})
    panel.update(view(many(23_000, delta=-1.0)))
    labels = [state["_options_labels"] for state in updates(sent) if "_options_labels" in state]
    assert len(labels) == 4
    assert all(len(page) == 50 for page in labels)
    assert all("index" in state for state in updates(sent) if "_options_labels" in state)
    assert max(len(str(state)) for state in updates(sent)) < 10_000


def test_a_search_sends_the_list_in_one_message():
    panel, _ = opened(many(120))
    panel.list.value = "q7"
    sent = wired(panel)
    panel.search.set_state({"value": "number 7"})
    first, *rest = updates(sent)
    assert (len(first["_options_labels"]), first["index"]) == (11, 0)
    assert not any("_options_labels" in state or "index" in state for state in rest)
    assert len(rest) <= 4  # words, buttons


def test_a_choice_sends_no_options():
    panel, _ = opened(many(120, delta=-1.0))
    sent = wired(panel)
    panel.list.set_state({"index": 7})
    states = updates(sent)
    assert {"value": panel.detail.value} in states
    assert detail(panel) == "<p>q7</p>"
    assert not any("_options_labels" in state for state in states)


def test_widgets_are_made_once():
    panel, _ = opened(many(500))
    panel.next_changed.click()
    before = len(_instances)
    for i in range(100):
        panel.update(view(many(500, delta=float(i % 3 - 1))))
        panel.search.value = f"number {i}"
        panel.filter.value = FILTERS[i % 5]
        panel.sort.value = SORTS[i % 5]
        panel.next_page.click()
        panel.next_changed.click()
    assert len(_instances) == before


def test_errors_go_through_the_guard_and_the_last_good_query_stays():
    errors = []

    def guard(handler):
        def guarded(event):
            try:
                return handler(event)
            except ZeroDivisionError as error:
                errors.append(str(error))

        return guarded

    broken = False

    def show(qid):
        return f"<p>{1 // (not broken)} {qid}</p>"

    panel = QueryPanel(show, guard=guard)
    panel.active = True
    panel.update(view(ROWS))
    broken = True
    panel.list.value = "q1b"
    panel.next_changed.click()
    panel.search.value = "capital"
    assert errors == ["integer division or modulo by zero"] * 3
    assert detail(panel) == "<p>1 q10</p>"
    broken = False
    panel.sort.value = "id"  # the next move shows what is due
    assert detail(panel) == f"<p>1 {panel.chosen}</p>"


def test_an_error_is_raised_where_there_is_no_guard():
    panel = QueryPanel(lambda qid: 1 / 0)
    panel.update(view(ROWS))
    with pytest.raises(ZeroDivisionError):
        panel.active = True


def test_what_comes_from_the_file_is_escaped():
    evil = "<img src=x onerror=alert(1)>"
    rows = [(f"{evil}{i}", evil, 9, 1, 0.0) for i in range(60)]
    panel, _ = opened(rows)
    panel.next_page.click()  # the chosen id is told beside the page
    assert "&lt;img src=x" in panel.place.value
    assert "<img" not in panel.place.value


def test_each_control_can_be_told_and_found():
    panel, _ = opened(ROWS)
    controls = {
        "search": "Search",
        "filter": "Show",
        "sort": "Sort by",
        "list": "Queries",
        "previous-page": "Previous page",
        "next-page": "Next page",
        "previous-changed": "Previous changed",
        "next-changed": "Next changed",
    }
    for name, words in controls.items():
        control = getattr(panel, name.replace("-", "_"))
        assert control.description == words
        assert f"packtools-query-{name}" in control._dom_classes
        assert control.tabbable is not False
    assert isinstance(panel.widget, w.VBox)
    assert 'role="status"' in panel.place.value
    assert "packtools-query-detail" in panel.detail._dom_classes
