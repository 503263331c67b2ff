"""The explorer as an analyst uses it: a real JupyterLab in headless Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT
from lab import CHROMIUM, lab_server, open_notebook

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SHOTS = Path(os.environ.get("PACKTOOLS_SCREENSHOTS", ROOT / "build" / "screenshots"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    root = folder / "project"
    root.mkdir()
    shutil.copytree(ROOT / "notebooks", root / "notebooks")
    with lab_server(root, folder / "home") as url:
        yield url, root


class Panel:
    """Read and move the panel on a page."""

    def __init__(self, page) -> None:
        self.page = page
        page.wait_for_selector(".packtools-status >> text=ready", state="attached")
        page.locator(".packtools-picture img").scroll_into_view_if_needed()

    def text(self, name: str) -> str:
        return self.page.locator(f".packtools-{name}").first.inner_text()

    def picture(self) -> str:
        return self.page.locator(".packtools-picture img").get_attribute("src")

    def tokens(self) -> int:
        return int(re.search(r"\(([\d,]+) of", self.text("answer")).group(1).replace(",", ""))

    def changed(self, before: str) -> None:
        """Wait for another picture, then until the kernel has nothing more to do."""
        self.page.wait_for_function(
            "old => document.querySelector('.packtools-picture img')?.src !== old", arg=before
        )
        self.page.wait_for_function(
            "() => { const k = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;"
            " const alt = document.querySelector('.packtools-picture img').alt;"
            " const words = document.querySelector('.packtools-answer').innerText;"
            " const n = words.match(/[(]([0-9,]+) of/);"
            " return k.status === 'idle' && n && alt.includes(n[1] + ' of'); }"
        )

    def shot(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")


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


def test_export_writes_what_is_on_the_screen(panel, server):
    _, root = server
    panel.page.locator(".packtools-export").click()
    panel.page.wait_for_selector(".packtools-exported >> text=settings.json")
    folder = root / "notebooks" / "packtools_exports" / "sample-bm25"
    settings = json.loads((folder / "settings.json").read_text("utf-8"))
    assert settings["settings"]["budget"] == 500
    assert settings["settings"]["jaccard_threshold"] is None
    table = (folder / "comparison.csv").read_text("utf-8").splitlines()
    mean = next(line for line in table if line.startswith("n_tokens,")).split(",")[2]
    assert round(float(mean)) == panel.tokens()
    for name, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert (folder / f"trade_off.{name}").read_bytes().startswith(magic)
