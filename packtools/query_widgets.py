"""Controls to find a query and look at it: ipywidgets that show a `QueryList` and nothing more."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import ipywidgets as w

from packtools.query_list import FILTERS, SORTS, QueryList
from packtools.view import View

__all__ = ["QueryPanel"]

Handler = Callable[[Any], Any]

NOTHING = '<div class="quiet">No query is listed. Clear the search or show all.</div>'
KEYS = "In JupyterLab, Alt or Ctrl with ↑ and ↓ moves the choice: the arrows alone move between cells."
DETAIL = '<div data-lm-suppress-shortcuts="true">{}</div>'
"""Keys pressed in the query scroll it and are no commands to JupyterLab, where D twice deletes a cell."""


class QueryPanel:
    """Search, filter, sort and page through the queries, and show the chosen one.

    One move of a control asks `show` for a query once at most, and not at all where the chosen query
    stays the same. Widgets are made once; the browser gets the 50 entries of a page at most.

    Parameters
    ----------
    show : function of str to str
        Takes an id, gives the HTML of that query. Nothing of it is escaped here.
    guard : function of a handler to a handler, optional
        Wraps what is called with each event, to show its errors.

    Attributes
    ----------
    widget : ipywidgets.VBox
    """

    def __init__(self, show: Callable[[str], str], *, guard: Callable[[Handler], Handler] = lambda f: f):
        self._show = show
        self._active = False
        self._filling = False
        self._view: View | None = None
        self._listed: QueryList | None = None
        self._shown: tuple[View, str] | None = None
        self._controls()
        self._observe(guard)
        self.widget = self._arrange()

    @property
    def active(self) -> bool:
        """Whether the panel is on screen; what it missed is made up for once it is."""
        return self._active

    @active.setter
    def active(self, value: bool) -> None:
        self._active = value
        self._catch_up()

    @property
    def chosen(self) -> str | None:
        """Id of the query that is shown; None where none is listed."""
        return None if self._listed is None else self._listed.chosen

    def update(self, view: View) -> None:
        """Take another setting; search, filter, sort, page and the chosen query stay."""
        self._view = view
        self._catch_up()

    # --- building -----------------------------------------------------------------------------

    def _controls(self) -> None:
        whole = {"style": {"description_width": "initial"}}
        self.search = w.Text(
            description="Search",
            placeholder="id or words of a query",
            layout=w.Layout(flex="1 1 220px"),
            **whole,
        )
        self.filter = w.Dropdown(options=FILTERS, description="Show", layout=w.Layout(width="170px"), **whole)
        self.sort = w.Dropdown(options=SORTS, description="Sort by", layout=w.Layout(width="210px"), **whole)
        self.list = w.Select(
            description="Queries", rows=10, tooltip=KEYS, layout=w.Layout(width="auto"), **whole
        )
        fit = {"layout": w.Layout(width="auto")}
        self.previous_page = w.Button(description="Previous page", **fit)
        self.next_page = w.Button(description="Next page", **fit)
        self.previous_changed = w.Button(description="Previous changed", **fit)
        self.next_changed = w.Button(description="Next changed", **fit)
        self.place = w.HTML()
        self.detail = w.HTML()
        for name in (
            "search",
            "filter",
            "sort",
            "list",
            "previous_page",
            "next_page",
            "previous_changed",
            "next_changed",
            "place",
            "detail",
        ):
            getattr(self, name).add_class(f"packtools-query-{name.replace('_', '-')}")

    def _observe(self, guard: Callable[[Handler], Handler]) -> None:
        for control in (self.search, self.filter, self.sort):
            control.observe(guard(self._catch_up), "value")
        self.list.observe(guard(self._choose), "value")
        self.previous_page.on_click(guard(lambda event: self._turn(-1)))
        self.next_page.on_click(guard(lambda event: self._turn(1)))
        self.previous_changed.on_click(guard(lambda event: self._go(QueryList.previous_changed)))
        self.next_changed.on_click(guard(lambda event: self._go(QueryList.next_changed)))

    def _arrange(self) -> w.VBox:
        row = {"display": "flex", "flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 12px"}
        above = w.Box([self.search, self.filter, self.sort], layout=w.Layout(**row))
        below = w.Box(
            [self.previous_page, self.next_page, self.previous_changed, self.next_changed, self.place],
            layout=w.Layout(**row),
        )
        whole = w.VBox([above, self.list, below, self.detail])
        whole.add_class("packtools-query")
        return whole

    # --- events -------------------------------------------------------------------------------

    def _catch_up(self, event: Any = None) -> None:
        """Bring list and detail to what view and controls say, if anybody sees them."""
        del event
        if not self._active or self._view is None:
            return
        if self._listed is None:
            self._listed = QueryList(self._view)
        elif self._listed.view is not self._view:
            self._listed.update(self._view)
        self._listed.find(search=self.search.value, filter=self.filter.value, sort=self.sort.value)
        self._refresh(self._listed)

    def _choose(self, event: Any) -> None:
        if not self._filling and self._listed is not None and event["new"] is not None:
            self._listed.choose(event["new"])
            self._refresh(self._listed)

    def _turn(self, step: int) -> None:
        if self._listed is not None:
            self._listed.turn(step)
            self._refresh(self._listed)

    def _go(self, find: Callable[[QueryList, str], str | None]) -> None:
        if self._listed is None or self._listed.chosen is None:
            return
        qid = find(self._listed, self._listed.chosen)
        if qid is not None:
            self._listed.choose(qid)
            self._refresh(self._listed)

    # --- showing ------------------------------------------------------------------------------

    def _refresh(self, listed: QueryList) -> None:
        """Show the page; then the chosen query, unless it is shown already."""
        self._fill(listed)
        qid = listed.chosen
        self.place.value = f'<span class="quiet" role="status">{html.escape(listed.place_words)}</span>'
        self.previous_page.disabled = listed.page == 1
        self.next_page.disabled = listed.page == listed.n_pages
        self.previous_changed.disabled = qid is None or listed.previous_changed(qid) is None
        self.next_changed.disabled = qid is None or listed.next_changed(qid) is None
        if qid is None:
            self.detail.value, self._shown = NOTHING, None
        elif self._shown is None or self._shown[0] is not listed.view or self._shown[1] != qid:
            self.detail.value = DETAIL.format(self._show(qid))
            self._shown = (listed.view, qid)

    def _fill(self, listed: QueryList) -> None:
        """Put the page into the list in one message; the list choosing its first entry is no move."""
        self._filling = True
        try:
            with self.list.hold_sync():
                self.list.options = tuple(listed.entries)
                self.list.index = listed.index
        finally:
            self._filling = False
