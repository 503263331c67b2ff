"""Exports: what is in the files, that they repeat byte for byte, and that they are written whole or not at all."""

from __future__ import annotations

import base64
import errno
import html
import json
import os
import re
import struct
import subprocess
import sys
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import unquote

import mistune
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt
from packtools import exporting, markup
from packtools.exporting import export_view, links_html, slug, table_caption
from packtools.table_words import delta_cells, latex_table, latex_text, markdown_table, markdown_text, number

FILES = [
    "trade_off.png", "trade_off.svg", "trade_off.pdf", "comparison.csv", "comparison.md", "comparison.tex",
    "per_query.csv", "curve.csv", "settings.json", "packed.jsonl",
]  # fmt: skip
TABLE = ["table"]


@pytest.fixture(scope="module")
def view():
    return pt.ExplorerModel(pt.load_sample()).view()


@pytest.fixture(scope="module")
def written(view, tmp_path_factory):
    """The files of one full export, by name."""
    paths = export_view(view, tmp_path_factory.mktemp("full"))
    assert [p.name for p in paths] == FILES
    return {p.name: p for p in paths}


class Cells(HTMLParser):
    """The cells of a page's tables, as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows, self.inside = [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        self.inside = tag in ("td", "th")
        if self.inside:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def rendered(markdown: str) -> str:
    return mistune.create_markdown(plugins=["table", "strikethrough"])(markdown)


def odd_view(query: str = "what", name: str = "run", against: str = "everything"):
    """Two queries, one of them with a text of our choice."""
    rows = [("q1", "a", 1), ("q1", "b", 2), ("q2", "a", 1)]
    run = pt.Run.from_frames(
        pd.DataFrame(rows, columns=["qid", "docid", "rank"]),
        {"a": "the answer is here", "b": "another text"},
        queries={"q1": query, "q2": "plain"},
        answers={"q1": ["answer"], "q2": ["answer"]},
        name=name,
    )
    return replace(pt.ExplorerModel(run, counter="chars").view(), against=against)


# --- numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "signed", "words"),
    [
        (0.98611, "share", False, "98.6 %"),
        (-0.013889, "share", True, "−1.4"),
        (0.00004, "share", True, "0.0"),
        (-0.00004, "share", True, "0.0"),
        (1112.8194, "tokens", False, "1,113"),
        (-2756.81, "tokens", True, "−2,757"),
        (6.3472, "chunks", False, "6.3"),
        (float("nan"), "share", True, "n/a"),
    ],
)
def test_a_number_is_rounded_in_its_unit(value, unit, signed, words):
    assert number(value, unit, signed) == words


def test_the_markdown_table_has_the_cells_of_the_screen(view, written):
    screen = Cells(markup.delta_table(view)).rows
    filed = Cells(rendered(written["comparison.md"].read_text("utf-8"))).rows
    assert len(screen) == len(view.table) + 1
    assert filed == screen


def test_the_latex_table_has_the_cells_of_the_screen(view, written):
    lines = written["comparison.tex"].read_text("utf-8").splitlines()
    body = [line.removesuffix(r" \\") for line in lines if line.endswith(r" \\")]
    cells = [[c.replace("$-$", "−").replace(r"\%", "%") for c in line.split(" & ")] for line in body]
    assert cells == Cells(markup.delta_table(view)).rows


def test_the_csv_has_the_full_numbers(view, written):
    table = pd.read_csv(written["comparison.csv"], index_col="metric")
    for name in ("baseline", "candidate", "delta", "ci_low", "ci_high"):
        np.testing.assert_allclose(table[name], view.table[name], rtol=1e-9, atol=0)
    counted = view.packed.per_query["n_tokens"].sum() / 72  # the sample has 72 queries
    assert table.loc["n_tokens", "candidate"] == pytest.approx(counted, rel=1e-9)
    assert table[["n", "N"]].equals(view.table[["n", "N"]])


def test_the_other_tables_have_a_line_a_query_and_a_line_a_budget(view, written):
    queries = pd.read_csv(written["per_query.csv"], index_col="qid")
    assert list(queries.index) == list(view.per_query.index)
    assert queries["query"].to_dict() == view.prepared.run.queries["text"].to_dict()
    assert queries["n_tokens"].to_dict() == view.packed.per_query["n_tokens"].to_dict()
    curve = pd.read_csv(written["curve.csv"], index_col="setting", thousands=None)
    assert list(curve.index) == list(view.curve.index)
    assert curve["n_tokens"].tolist() == pytest.approx(view.curve["n_tokens"].tolist(), rel=1e-9)


def test_characters_are_not_written_twice():
    heads, rows = delta_cells(odd_view().table, "everything", "characters")
    assert heads == ["metric", "everything", "here", "delta", "95 % interval", "n"]
    assert rows[0][0] == "characters"
    assert "tokens" not in [row[0] for row in rows]


def test_one_scored_query_is_not_testable():
    row = {"baseline": 1.0, "candidate": 0.0, "delta": -1.0, "ci_low": np.nan, "ci_high": np.nan}
    table = pd.DataFrame({"answer_retention": row | {"n": 1, "N": 2000, "unit": "share"}}).T
    assert delta_cells(table, "everything")[1] == [
        ["answer kept, points", "100.0 %", "0.0 %", "−100.0", "not testable", "1 of 2,000"]
    ]


# --- words ------------------------------------------------------------------------------------------


def test_both_tables_say_what_they_are_of(view, written):
    said = [
        "means per query, n = 72 of 72 queries",
        "sample/bm25",
        "cl100k_base",
        f"{view.config.budget:,} tokens",
        "lost in the middle",
        "near-duplicates dropped from 0.85",
        "baseline: everything",
        "95 % paired bootstrap",
    ]
    assert table_caption(view) == " · ".join(said)
    page = html.unescape(rendered(written["comparison.md"].read_text("utf-8")))
    assert f"<p>{' · '.join(said)}</p>" in page
    tex = written["comparison.tex"].read_text("utf-8")
    assert r"\caption{means per query, n = 72 of 72 queries $\cdot$ sample/bm25 $\cdot$ cl100k\_base" in tex
    assert r"$\cdot$ 95 \% paired bootstrap}" in tex


def test_markdown_says_what_is_not_available(tmp_path):
    view = odd_view()
    assert view.missing[0].startswith("relevant passages kept: ")  # the run has no judgements
    export_view(view, tmp_path, what=TABLE)
    page = html.unescape(rendered((tmp_path / "comparison.md").read_text("utf-8")))
    for note in view.missing:
        assert f"<p>{note}</p>" in page


ODD = [
    "a|b", r"a\|b", r"\\", "*x* _y_ __z__", "`code`", "<b>bold</b>", "&lt;", "~~gone~~", "[text](https://x.y)",
    "![i](j)", "line\none", "$1 + 2$", "# head", "Ünï 検索",
]  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_markdown_shows_odd_names_as_they_are(text):
    page = rendered(markdown_table(["metric", text], [["m", text]]) + f"\nsaid: {markdown_text(text)}\n")
    shown = " ".join(text.split())
    assert Cells(page).rows == [["metric", shown], ["m", shown]]
    assert html.unescape(page.split("</table>")[1].strip()) == f"<p>said: {shown}</p>"


def test_latex_prints_odd_names_as_they_are():
    pairs = {
        "a & b": r"a \& b",
        "50 %": r"50 \%",
        "run_2": r"run\_2",
        "#1": r"\#1",
        "$x": r"\$x",
        "{y}": r"\{y\}",
        "~^": r"\textasciitilde{}\textasciicircum{}",
        "\\input": r"\textbackslash{}input",
        "<|>": r"$<$\textbar{}$>$",
        "bm25--new": "bm25-{}-new",
        "---": "-{}-{}-",
        "two\nlines": "two lines",
        "−1 · x": r"$-$1 $\cdot$ x",
    }
    assert {text: latex_text(text) for text in pairs} == pairs


def test_the_latex_table_is_whole_and_needs_no_package():
    text = latex_table(["metric", "a & b"], [["tokens", "1,012"], ["answer kept", "98.6 %"]], "50 % of {it}")
    assert text.splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{50 \% of \{it\}}",
        r"\begin{tabular}{lr}",
        r"\hline",
        r"metric & a \& b \\",
        r"\hline",
        r"tokens & 1,012 \\",
        r"answer kept & 98.6 \% \\",
        r"\hline",
        r"\end{tabular}",
        r"\end{table}",
    ]


@pytest.mark.parametrize("text", ["a\rb", "a\nb", "a\r\nb", 'a,"b"', "=1+1"])
def test_a_query_of_several_lines_stays_one_row(text, tmp_path):
    view = odd_view(query=text)
    export_view(view, tmp_path, what=TABLE)
    stream = (tmp_path / "per_query.csv").open(encoding="utf-8", newline="")
    with stream:
        frame = pd.read_csv(stream, index_col="qid")
    assert frame["query"].to_dict() == {"q1": view.prepared.run.queries["text"]["q1"], "q2": "plain"}
    assert len(frame) == 2


# --- figures, setting, packs --------------------------------------------------------------------------


def png_facts(path):
    """Width in pixels, and pixels a metre, as the PNG specification places them."""
    data = path.read_bytes()
    at = data.index(b"pHYs") + 4
    return struct.unpack(">I", data[16:20])[0], struct.unpack(">I", data[at : at + 4])[0]


def test_figures_have_300_dots_an_inch_at_both_widths(view, written, tmp_path):
    column = export_view(view, tmp_path, what=["figure"], formats=["png"], width="column")
    assert [p.name for p in column] == ["trade_off_column.png"]
    assert png_facts(written["trade_off.png"]) == (2070, 11811)  # 6.9 in; 300 / 0.0254
    assert png_facts(column[0]) == (990, 11811)  # 3.3 in


def test_the_figures_given_are_those_written(view, tmp_path):
    figures = {"budget curve": view.figure(), "spread": view.figure()}
    paths = export_view(view, tmp_path, what=["figure"], formats=["svg"], figures=figures)
    assert [p.name for p in paths] == [f"{slug('budget curve')}.svg", "spread.svg"]
    assert all(p.read_text("utf-8").count("<svg") == 1 for p in paths)


def test_choices_come_in_the_same_order_however_they_are_given(view, tmp_path):
    paths = export_view(view, tmp_path, what={"setting", "figure"}, formats=["svg", "png"])
    assert [p.name for p in paths] == ["trade_off.png", "trade_off.svg", "settings.json"]


def test_the_setting_can_be_read_back(view, written):
    told = json.loads(written["settings.json"].read_text("utf-8"))
    assert pt.PackerConfig.from_dict(told["settings"]) == view.config
    assert pt.PackerConfig.from_dict(told["baseline"]) == view.baseline.config
    assert (told["run"], told["counter"], told["quality"]) == ("sample/bm25", "cl100k_base", view.quality)


def test_the_packs_can_be_read_back(view, written):
    read = pt.load_predictions(written["packed.jsonl"])
    assert len(read) == 72
    for line in written["packed.jsonl"].read_text("utf-8").splitlines()[::12]:
        row = json.loads(line)
        assert view.config.separator.join(row["passages"]) == view.packed.context(row["query_id"]).text


# --- the same bytes; whole or not at all ----------------------------------------------------------------

SCRIPT = """
import locale, sys
from dataclasses import replace
import packtools as pt
from packtools.exporting import export_view
try:
    locale.setlocale(locale.LC_ALL, "")
except locale.Error:
    pass
run = replace(pt.load_sample(), name="\\u043f\\u0440/\\xe9")
view = pt.ExplorerModel(run, counter="chars").view()
export_view(view, sys.argv[1], width="column")
"""


def test_files_repeat_byte_for_byte_in_another_process_folder_zone_and_locale(tmp_path):
    worlds = [
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8"},
        {
            "PYTHONHASHSEED": "77", "TZ": "America/Lima", "LC_ALL": "POSIX", "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
        },
    ]  # fmt: skip
    running = []
    for i, world in enumerate(worlds):
        here = tmp_path / f"place {i}"
        here.mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "TZ"))} | world
        running.append(subprocess.Popen([sys.executable, "-c", SCRIPT, "out"], env=env, cwd=here))
    assert [process.wait() for process in running] == [0, 0]
    seen = [{p.name: p.read_bytes() for p in path.iterdir()} for path in sorted(tmp_path.glob("*/out"))]
    assert sorted(seen[0]) == sorted(name.replace("trade_off", "trade_off_column") for name in FILES)
    assert seen[0] == seen[1]


def test_files_repeat_byte_for_byte_over_the_old_ones(view, written, tmp_path):
    once = export_view(view, tmp_path)
    before = {p.name: p.read_bytes() for p in once}
    again = export_view(view, tmp_path)
    assert {p.name: p.read_bytes() for p in again} == before
    assert {name: p.read_bytes() for name, p in written.items()} == before


def test_other_files_of_the_folder_stay(view, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "sub").mkdir()
    export_view(view, tmp_path, what=["setting"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "settings.json", "sub"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


class FullDisk:
    """A view whose last file finds no room."""

    def __init__(self, view) -> None:
        self.view = view
        self.packed = SimpleNamespace(save_predictions=self.save)

    def __getattr__(self, name):
        return getattr(self.view, name)

    def save(self, path):
        path.write_text('{"half')
        raise OSError(errno.ENOSPC, "No space left on device", str(path))


def test_a_full_disk_changes_no_file_and_leaves_none_half_written(view, tmp_path):
    (tmp_path / "comparison.csv").write_text("old")
    with pytest.raises(pt.SettingError) as caught:
        export_view(FullDisk(view), tmp_path, what=["table", "packs"])
    assert str(caught.value) == (
        f"export_view: 'folder' must be a folder that can be written; got {str(tmp_path)!r} "
        "(No space left on device). Choose another folder, or free this one."
    )
    assert [p.name for p in tmp_path.iterdir()] == ["comparison.csv"]
    assert (tmp_path / "comparison.csv").read_text() == "old"


def test_a_file_in_the_place_of_the_folder_is_one_clear_error(view, tmp_path):
    at = tmp_path / ("long" * 30)
    at.write_text("mine")
    with pytest.raises(pt.SettingError, match=f"got {str(at)!r} \\(File exists\\)"):
        export_view(view, at, what=["setting"])
    with pytest.raises(pt.SettingError, match="Not a directory"):
        export_view(view, at / "below", what=["setting"])
    assert at.read_text() == "mine"


def test_a_folder_in_the_place_of_a_file_is_one_clear_error(view, tmp_path):
    (tmp_path / "settings.json").mkdir()
    with pytest.raises(pt.SettingError, match=r"settings\.json: Is a directory"):
        export_view(view, tmp_path, what=["setting"])
    assert [p.name for p in tmp_path.iterdir()] == ["settings.json"]


def test_a_read_only_folder_is_one_clear_error(view, tmp_path, monkeypatch):
    def refused(prefix, dir):
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr("packtools.exporting.TemporaryDirectory", refused)  # root may write anywhere
    with pytest.raises(pt.SettingError, match="Permission denied"):
        export_view(view, tmp_path, what=["setting"])


def test_a_text_that_no_file_can_hold_is_an_error_of_the_run(tmp_path):
    view = odd_view(name="\ud800")
    with pytest.raises(pt.RunFormatError, match="UTF-8"):
        export_view(view, tmp_path, what=["setting"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"what": "table"}, "export_view: 'what' must be a list; got 'table'."),
        ({"what": 3}, "export_view: 'what' must be a list; got 3."),
        ({"what": []}, "export_view: 'what' must be at least one of figure, table, setting, packs; got []."),
        (
            {"what": ["tables"]},
            "export_view: what 'tables' is unknown; known: 'figure', 'table', 'setting', 'packs'. "
            "Did you mean 'table'?",
        ),
        ({"formats": "png"}, "export_view: 'formats' must be a list; got 'png'."),
        (
            {"formats": ["pngs"]},
            "export_view: formats 'pngs' is unknown; known: 'png', 'svg', 'pdf'. Did you mean 'png'?",
        ),
        ({"width": "wide"}, "export_view: width 'wide' is unknown; known: 'page', 'column'."),
    ],
)
def test_a_bad_choice_is_one_clear_error_and_makes_no_folder(view, tmp_path, options, message):
    with pytest.raises(pt.SettingError) as caught:
        export_view(view, tmp_path / "new", **options)
    assert str(caught.value) == message
    assert not (tmp_path / "new").exists()


# --- names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["bm25", "run_2.b-c", "Запрос", "検索", "हिन्दी", "a" * 60, "console", "com10"]
)
def test_a_good_name_stays(name):
    assert slug(name) == name


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a/b", "a-b-"), ("../../etc", "etc-"), ("a b", "a-b-"), ('a:*?"<>|\\', "a-"), ("", "run-"), ("...", "run-"),
        ("😀", "run-"), (".hidden", "hidden-"), ("dot.", "dot-"), ("CON", "run-CON-"), ("nul.txt", "run-nul.txt-"),
        ("com1", "run-com1-"), ("LPT³", "run-LPT³-"), ("x" * 61, "x" * 51 + "-"), ("a\0b\n", "a-b-"), ("\ud800", "run-"),
    ],
)  # fmt: skip
def test_another_name_becomes_safe_and_ends_in_a_hash(name, start):
    assert re.fullmatch(re.escape(start) + "[0-9a-f]{8}", slug(name))


def test_names_that_look_alike_stay_apart():
    names = [
        "a/b",
        "a b",
        "a-b",
        "a:b",
        "a-b-",
        "e\u0301",
        "\u00e9",
        "x" * 61,
        "x" * 62,
        "",
        "run",
        "con",
        "run-con",
    ]
    assert len({unicodedata.normalize("NFC", slug(name)) for name in names}) == len(names)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=90), st.text(max_size=90))
def test_every_name_is_safe_and_no_two_meet(one, two):
    made = slug(one)
    assert 1 <= len(made) <= 60
    assert not set(made) & set('/\\:*?"<>| \0\n')
    assert made[0] not in ".-"
    assert made[-1] != "."
    assert slug(made) == made
    assert (made == slug(two)) == (one == two)


# --- links ----------------------------------------------------------------------------------------------


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        assert tag in ("div", "b", "ul", "li", "a"), tag
        if tag == "a":
            self.found.append(dict(attrs))

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A kernel that no Jupyter server started."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("JPY_PARENT_PID", "4321")
    (tmp_path / "runtime").mkdir()
    return tmp_path.resolve()


@pytest.fixture
def server(nowhere):
    """A kernel of a Jupyter server below /user/me/ that shows `work`."""
    root = nowhere / "work"
    told = {"root_dir": str(root), "base_url": "/user/me/", "token": "secret"}
    (nowhere / "runtime" / "jpserver-4321.json").write_text(json.dumps(told))
    root.mkdir()
    return root


def test_below_the_server_s_root_a_link_is_an_address_of_the_server(server):
    at = server / "my exports" / "a&b#é.csv"
    at.parent.mkdir()
    at.write_text("x")
    page = links_html([at])
    link = Links(page).found[0]
    assert link["download"] == "a&b#é.csv"
    assert re.fullmatch("[!-~]+", link["href"])
    assert "#" not in link["href"]
    assert unquote(link["href"]) == "/user/me/files/my exports/a&b#é.csv"
    assert "secret" not in page


@pytest.mark.parametrize("folder", ["outside", "work/.hidden"])
def test_what_the_server_does_not_show_is_in_the_link_itself(server, folder):
    at = server.parent / folder / "a.csv"
    at.parent.mkdir()
    at.write_bytes(b"x\0\xff")
    head, _, data = Links(links_html([at])).found[0]["href"].partition(",")
    assert head == "data:application/octet-stream;base64"
    assert base64.b64decode(data) == b"x\0\xff"


def test_a_root_given_counts_more_than_the_server_s(server):
    at = server.parent / "outside" / "a.csv"
    at.parent.mkdir()
    at.write_text("x")
    assert Links(links_html([at], root=at.parent)).found[0]["href"] == "/user/me/files/a.csv"


def test_without_a_server_a_large_file_is_named_below_its_folder(nowhere):
    small, large = nowhere / "s", nowhere / "large <b>.jsonl"
    small.write_bytes(b"x" * exporting.INSIDE)
    large.write_bytes(b"x" * (exporting.INSIDE + 1))
    links = Links(links_html([small, large]))
    assert [link["download"] for link in links.found] == ["s"]
    assert links.text == f"Written to {nowhere}:slarge <b>.jsonl"


def test_links_show_each_folder_once_and_escape_it(nowhere, monkeypatch):
    folder = nowhere / "<img onerror=x>"
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text(name)
    monkeypatch.chdir(folder)
    page = links_html(["a", "b"])
    assert page.count("Written to") == 1
    assert f"Written to {folder}:ab" == Links(page).text
    assert links_html([]) == ""
