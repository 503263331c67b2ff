"""The explorer as an analyst uses it: a real JupyterLab in headless Chromium."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import ROOT
from lab import CHROMIUM, Panel, lab_server, open_notebook

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    root = folder / "project"
    root.mkdir()
    shutil.copytree(ROOT / "notebooks", root / "notebooks")
    with lab_server(root, folder / "home") as url:
        yield url, root


@pytest.fixture(scope="module")
def panel(server):
    url, _ = server
    with open_notebook(url, "notebooks/01_explore_packing.ipynb") as page:
        yield Panel(page)


def test_the_panel_opens_on_the_answer(panel):
    assert panel.text("head").startswith("packtools · sample/bm25 · 72 queries")
    assert "75 % fewer tokens (958 of 3,870 per query)" in panel.text("answer")
    assert panel.page.locator(".packtools-picture img").count() == 1
    panel.shot("explorer")


def test_the_budget_slider_moves_figure_and_numbers_by_keyboard(panel):
    before, tokens = panel.picture(), panel.tokens()
    handle = panel.page.locator(".packtools-budget-slider .noUi-handle")
    handle.focus()
    for _ in range(3):
        before = panel.picture()
        handle.press("ArrowLeft")
        panel.changed(before)
    assert panel.tokens() < tokens
    budget = int(panel.page.locator(".packtools-budget input").input_value())
    assert panel.tokens() <= budget < 1000
    assert f"{panel.tokens():,} of 3,870" in panel.page.locator(".packtools-picture img").get_attribute("alt")


def test_the_budget_slider_moves_figure_and_numbers_by_drag(panel):
    before, tokens = panel.picture(), panel.tokens()
    handle = panel.page.locator(".packtools-budget-slider .noUi-handle")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    panel.page.mouse.move(x, y)
    panel.page.mouse.down()
    for step in range(1, 9):
        panel.page.mouse.move(x + 6 * step, y)
    panel.page.mouse.up()
    panel.changed(before)
    panel.page.wait_for_function(
        "old => Number(document.querySelector('.packtools-budget input').value) > old", arg=tokens
    )
    assert panel.tokens() > tokens
    panel.shot("explorer_dragged")


def test_typing_a_budget_and_choosing_an_order_change_the_panel(panel):
    before = panel.picture()
    field = panel.page.locator(".packtools-budget input")
    field.fill("500")
    field.press("Enter")
    panel.changed(before)
    assert panel.tokens() == 465
    assert "lost their answer" in panel.text("answer")
    before = panel.picture()
    panel.page.locator(".packtools-order select").select_option("ascending")
    panel.changed(before)
    assert "ascending" not in panel.text("answer")  # the order moves no tokens, only places
    before = panel.picture()
    panel.page.locator(".packtools-threshold select").select_option("off")
    panel.changed(before)
    assert "held back" not in panel.text("answer")
    assert panel.page.locator(".packtools-picture img").count() == 1
    panel.shot("explorer_500")


def test_a_pinned_setting_can_be_compared_with(panel):
    before, tokens = panel.picture(), panel.tokens()
    panel.page.locator(".packtools-pin").first.click()
    panel.page.wait_for_selector(".packtools-pins >> text=Pinned settings, against everything")
    panel.changed(before)  # the pinned point is drawn
    before = panel.picture()
    panel.page.locator(".packtools-budget input").fill("1000")
    panel.page.locator(".packtools-budget input").press("Enter")
    panel.changed(before)
    pinned = "A: 500 tokens · ascending · near-duplicates kept"
    panel.page.locator(".packtools-against select").select_option(pinned)
    panel.page.wait_for_selector(".packtools-deltas th:text-is('A')")
    assert "more tokens" in panel.text("answer")
    panel.shot("explorer_pinned")
    for _ in range(2):
        before = panel.text("answer")
        panel.page.locator(".packtools-undo").first.click()
        panel.page.wait_for_function(
            "old => document.querySelector('.packtools-answer').innerText !== old", arg=before
        )
    assert panel.tokens() == tokens


def test_export_writes_what_is_on_the_screen(panel, server):
    _, root = server
    panel.page.locator(".packtools-export").first.click()
    panel.page.wait_for_selector(".packtools-exported >> text=packed.jsonl")
    (folder,) = (root / "notebooks" / "packtools_exports").iterdir()
    assert folder.name.startswith("sample-bm25")
    settings = json.loads((folder / "settings.json").read_text("utf-8"))
    assert settings["settings"]["budget"] == 500
    assert settings["settings"]["jaccard_threshold"] is None
    table = (folder / "comparison.csv").read_text("utf-8").splitlines()
    mean = next(line for line in table if line.startswith("n_tokens,")).split(",")[2]
    assert round(float(mean)) == panel.tokens()
    for name, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert (folder / f"trade_off.{name}").read_bytes().startswith(magic)
    with panel.page.expect_download() as started:  # P134 is told by the bytes, this by the link
        panel.page.locator(".packtools-exported a", has_text="comparison.md").click()
    assert Path(started.value.path()).read_bytes() == (folder / "comparison.md").read_bytes()


def test_each_view_shows_one_picture_of_its_own(panel):
    seen = {panel.picture()}
    for name in ("Budget curve", "Per-query changes", "Place of evidence"):
        before = panel.picture()
        panel.page.locator(".packtools-screen button", has_text=name).click()
        panel.changed(before)
        assert panel.page.locator(".packtools-picture img").count() == 1  # P121
        panel.shot("view_" + name.lower().replace(" ", "_"))
        seen.add(panel.picture())
    assert len(seen) == 4


def test_a_query_is_found_and_shown_with_what_was_dropped(panel):
    panel.page.locator(".packtools-screen button", has_text="Queries").click()
    panel.page.wait_for_selector(".packtools-query-detail >> text=The packed text as it is sent")
    panel.page.locator(".packtools-query-search input").fill("Speke")
    panel.page.wait_for_selector(".packtools-query-place >> text=1 of 72")
    detail = panel.page.locator(".packtools-query-detail")
    detail.locator("text=When did Speke first see Lake Victoria?").first.wait_for()
    assert "over budget by" in detail.inner_text()
    assert detail.locator("mark").count() > 0
    panel.shot("query")
    panel.page.locator(".packtools-query-search input").fill("")
    panel.page.wait_for_selector(".packtools-query-place >> text=page 1 of 2")
    entries = panel.page.locator(".packtools-query-list select")
    entries.focus()
    first = entries.input_value()
    entries.press("Alt+ArrowDown")
    panel.page.wait_for_function(
        "old => document.querySelector('.packtools-query-list select').value !== old", arg=first
    )


def test_the_panel_can_be_read_in_the_dark_theme(panel):
    change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
    panel.page.evaluate(change, "JupyterLab Dark")
    panel.page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    panel.shot("query_dark")
    light = """element => {
      const shades = name => { let e = element, c; do { c = getComputedStyle(e)[name]; e = e.parentElement; }
        while (e && /^rgba.*, 0\\)$/.test(c)); return c.match(/[0-9.]+/g).slice(0, 3).map(Number); };
      const shine = c => { const [r, g, b] = c.map(v => (v /= 255, v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const [a, b] = [shine(shades('color')), shine(shades('backgroundColor'))];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }"""
    for place in (".packtools-answer .answer", ".packtools-query-detail h4", ".packtools-query-detail mark"):
        ratio = panel.page.locator(place).first.evaluate(light)
        assert ratio >= 4.5, place  # WCAG 2.2, 1.4.3
    before = panel.picture()
    panel.page.locator(".packtools-screen button", has_text="Trade-off").click()
    panel.changed(before)
    panel.shot("explorer_dark")
    panel.page.evaluate(change, "JupyterLab Light")


def test_an_error_in_a_callback_is_seen_and_the_last_good_figure_stays(panel):
    before = panel.picture()  # P119
    panel.page.locator(".packtools-more >> text=Budget").first.click()
    reserve = panel.page.locator(".packtools-reserve input")
    reserve.fill("900")
    reserve.press("Enter")
    panel.page.wait_for_selector(
        ".packtools-error [role=alert] >> text='reserve' must be less than the budget"
    )
    assert panel.picture() == before
    panel.shot("explorer_error")
    reserve.fill("0")
    reserve.press("Enter")
    panel.page.wait_for_function("() => document.querySelector('.packtools-error').innerText.trim() === ''")
