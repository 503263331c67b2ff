"""The queries of a run as a list to search, filter, sort and page through.

Plain Python without widgets: `query_widgets` only shows it.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from packtools import metrics
from packtools.arrays import Bools, Ints
from packtools.errors import SettingError, fail, unknown
from packtools.view import View
from packtools.words import queries

__all__ = ["FILTERS", "PAGE", "SORTS", "QueryList"]

PAGE = 50
"""Queries on a page."""
FILTERS = ("all", "changed", "lost", "gained", "not scored")
SORTS = ("largest loss", "largest gain", "largest saving", "file order", "id")
LINE = 100
BEYOND = sys.maxsize
ID_WIDTH = 32
JOINERS = "\u200c\u200d"
"""Not printable, but Persian, Indic scripts and emoji are written with them."""


class QueryList:
    """List the queries of a view, so that one can be found and looked at.

    1. The filter keeps the queries whose quality changed, was lost, gained or is not scored.
    2. The search keeps those with the words in their id or text; case and white space don't count.
    3. What is left is sorted; queries whose id is just what was searched come first.
    4. A page shows 50 of them.

    The chosen query stays the same as long as it is listed, also when it is on another page; else the
    first of the page is chosen.

    Parameters
    ----------
    view : View
        Its `per_query` is what is listed.

    Attributes
    ----------
    view : View
    search : str
    filter : str
        One of `FILTERS`.
    sort : str
        One of `SORTS`. Queries not scored come last in "largest loss" and "largest gain"; among equals
        there the largest saving comes first, then the order of the file. "id" counts figures as
        numbers: q9 before q10.
    page : int
        From 1.
    chosen : str or None
        Id of the chosen query; None where nothing is listed.

    Notes
    -----
    Lost and gained are meant for the view's quality metric, so more is lost where lower is better.
    """

    def __init__(self, view: View) -> None:
        self.search, self.filter, self.sort, self.page = "", FILTERS[0], SORTS[0], 1
        self.chosen: str | None = None
        self._texts = _Texts(view.prepared.run.queries)
        self.update(view)

    def update(self, view: View) -> None:
        """Take another setting; search, filter, sort, page and choice stay."""
        self.view = view
        listed = view.prepared.run.queries
        if not self._texts.same(listed):
            self._texts = _Texts(listed)
        frame = view.per_query.loc[listed.index]
        self._noun = view.noun
        self._before = frame["n_tokens_baseline"].to_numpy(np.float64)
        self._here = frame["n_tokens"].to_numpy(np.float64)
        delta = frame["delta"].to_numpy(np.float64)
        self._gain = delta if metrics.METRICS[view.quality].higher_is_better else -delta
        lost, gained = self._gain < 0, self._gain > 0
        self._kept = {
            "all": np.ones(len(frame), np.bool_),
            "changed": lost | gained,
            "lost": lost,
            "gained": gained,
            "not scored": np.isnan(self._gain),
        }
        self._orders: dict[str, Ints] = {}
        self._list()

    def find(self, *, search: str | None = None, filter: str | None = None, sort: str | None = None) -> None:
        """Search, filter or sort otherwise and go to the first page; None leaves one as it is.

        Raises
        ------
        SettingError
            If the filter or the sort is unknown.
        """
        asked = (
            self.search if search is None else search,
            self.filter if filter is None else filter,
            self.sort if sort is None else sort,
        )
        for what, value, known in zip(("filter", "sort"), asked[1:], (FILTERS, SORTS), strict=True):
            if value not in known:
                unknown(SettingError, "find", what, value, known)
        if asked != (self.search, self.filter, self.sort):
            self.search, self.filter, self.sort = asked
            self.page = 1
            self._list()

    def turn(self, step: int) -> None:
        """Go some pages on, or back; not beyond the first and the last."""
        self.page = min(max(self.page + step, 1), self.n_pages)

    def choose(self, qid: str) -> None:
        """Choose a listed query and go to its page.

        Raises
        ------
        SettingError
            If the query is not listed.
        """
        self.page = self._place(qid, "choose") // PAGE + 1
        self.chosen = qid

    def next_changed(self, qid: str) -> str | None:
        """Give the next listed query whose quality changed; None after the last.

        Raises
        ------
        SettingError
            If the query is not listed.
        """
        later = self._changed[self._changed > self._place(qid, "next_changed")]
        return self._id(self._rows[later[0]]) if len(later) else None

    def previous_changed(self, qid: str) -> str | None:
        """Give the listed query before this one whose quality changed; None before the first.

        Raises
        ------
        SettingError
            If the query is not listed.
        """
        earlier = self._changed[self._changed < self._place(qid, "previous_changed")]
        return self._id(self._rows[earlier[-1]]) if len(earlier) else None

    @property
    def n_listed(self) -> int:
        """Number of queries that search and filter leave."""
        return len(self._rows)

    @property
    def n_pages(self) -> int:
        """Number of pages, at least 1."""
        return max(-(-self.n_listed // PAGE), 1)

    @property
    def entries(self) -> list[tuple[str, str]]:
        """The words and the id of each query on the page.

        The words are one line: "q17 · lost · 3,870 → 958 tokens · what is an index".
        """
        return [(self._words(row), self._id(row)) for row in self._on_page]

    @property
    def index(self) -> int | None:
        """Where on the page the chosen query is, from 0; None if it is on another page."""
        on_page = [self._id(row) for row in self._on_page]
        return on_page.index(self.chosen) if self.chosen in on_page else None

    @property
    def place_words(self) -> str:
        """Say which page it is and how many queries are listed."""
        total = len(self._kept["all"])
        if not self.n_listed:
            return f"none of {queries(total)}"
        listed = queries(total) if self.n_listed == total else f"{self.n_listed:,} of {queries(total)}"
        words = f"page {self.page:,} of {self.n_pages:,} · {listed}"
        if self.chosen is None or self.index is not None:
            return words
        page = self._places(self.chosen)[0] // PAGE + 1
        return f"{words} · chosen: {_short(self.chosen)}, page {page:,}"

    @property
    def _on_page(self) -> Ints:
        return self._rows[(self.page - 1) * PAGE : self.page * PAGE]

    def _id(self, row: int) -> str:
        return self._texts.ids[row]

    def _place(self, qid: str, where: str) -> int:
        """Find a query among those listed."""
        places = self._places(qid)
        if not len(places):
            hint = "Clear the search and the filter."
            fail(SettingError, where, "qid", "the id of a listed query", qid, hint)
        return int(places[0])

    def _places(self, qid: str | None) -> Ints:
        row = -1 if qid is None else self._texts.rows.get(qid, -1)
        return np.flatnonzero(self._rows == row)

    def _list(self) -> None:
        """Filter, search and sort; keep the choice if it is listed."""
        kept, texts, needle = self._kept[self.filter], self._texts, _folded(self.search)
        if needle:
            kept = kept & texts.contain(needle)
        order = self._order()
        rows = order[kept[order]]
        if needle:
            exact = np.isin(rows, texts.with_id(needle))
            rows = np.concatenate([rows[exact], rows[~exact]])
        self._rows: Ints = rows
        self._changed = np.flatnonzero(self._kept["changed"][rows])
        self.page = min(self.page, self.n_pages)
        if not len(self._places(self.chosen)):
            self.chosen = self._id(self._on_page[0]) if len(rows) else None

    def _order(self) -> Ints:
        if self.sort not in self._orders:
            self._orders[self.sort] = self._sorted()
        return self._orders[self.sort]

    def _sorted(self) -> Ints:
        """Give all rows in the order asked for; NaN sorts last."""
        saved = self._before - self._here
        if self.sort == "id":
            return self._texts.by_id
        if self.sort == "file order":
            return np.arange(len(saved))
        if self.sort == "largest saving":
            return np.argsort(-saved, kind="stable")
        return np.lexsort((-saved, self._gain if self.sort == "largest loss" else -self._gain))

    def _words(self, row: int) -> str:
        state = next((name for name in ("lost", "gained", "not scored") if self._kept[name][row]), "same")
        size = f"{self._before[row]:,.0f} → {self._here[row]:,.0f} {self._noun}"
        text = _plain(self._texts.texts[row])
        words = " · ".join([_short(self._id(row)), state, size, *([text] if text else [])])
        return words if len(words) <= LINE else words[: LINE - 1].rstrip() + "…"


class _Texts:
    """Ids and texts of the queries, made ready for search once."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.ids: Sequence[str] = frame.index.tolist()
        self.texts: Sequence[str] = frame["text"].tolist()

    def same(self, frame: pd.DataFrame) -> bool:
        return frame is self.frame or (
            frame.index.equals(self.frame.index) and frame["text"].equals(self.frame["text"])
        )

    @cached_property
    def rows(self) -> dict[str, int]:
        return {qid: row for row, qid in enumerate(self.ids)}

    @cached_property
    def _ids(self) -> list[str]:
        return [_folded(qid) for qid in self.ids]

    @cached_property
    def _sought(self) -> list[str]:
        """Id and text in one, with a line break between that no search can hold."""
        return [f"{qid}\n{_folded(text)}" for qid, text in zip(self._ids, self.texts, strict=True)]

    def contain(self, needle: str) -> Bools:
        return np.fromiter((needle in text for text in self._sought), np.bool_, len(self._sought))

    def with_id(self, needle: str) -> list[int]:
        return [row for row, qid in enumerate(self._ids) if qid == needle]

    @cached_property
    def by_id(self) -> Ints:
        keys = [(_natural(qid), self.ids[row]) for row, qid in enumerate(self._ids)]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def _folded(text: str) -> str:
    """Write a text as the search compares it: no case, no differing forms, single spaces."""
    plain = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return " ".join(plain.split())


def _natural(text: str) -> list[tuple[int, str]]:
    """Give a key by which figures sort as numbers, and before letters."""
    parts = [(figures.lstrip("0"), other) for figures, other in re.findall("([0-9]+)|([^0-9]+)", text)]
    return [(BEYOND, other) if other else (len(figures), figures) for figures, other in parts]


def _plain(text: str) -> str:
    """Write the start of a text on one line, without control characters."""
    start = text[: 4 * LINE]
    return " ".join("".join(c if c.isprintable() or c in JOINERS else " " for c in start).split())


def _short(qid: str) -> str:
    """Write an id; of a long one both ends, for many share their start."""
    plain = _plain(qid)
    half = ID_WIDTH // 2
    return plain if len(plain) <= ID_WIDTH else f"{plain[: half - 1]}…{plain[-half:]}"
