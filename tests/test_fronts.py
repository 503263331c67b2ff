"""The panel in Notebook 7 and Voila, after a restart of Lab, and under many fast moves."""

from __future__ import annotations

import json
import shutil

import pytest
from conftest import ROOT
from lab import CHROMIUM, FRONTS, KERNEL_IS_IDLE, Panel, lab_server, open_notebook

import packtools as pt

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
BOOK = "notebooks/01_explore_packing.ipynb"
STEP = 0.01  # of the budget slider, in decades
# Notebook 7 takes an arrow key before what has the focus can (jupyter/notebook#7716), but not with Shift.
KEYS = {"notebook": "Shift+ArrowLeft", "voila": "ArrowLeft"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fronts")
    root = folder / "project"
    root.mkdir()
    shutil.copytree(ROOT / "notebooks", root / "notebooks")
    with lab_server(root, folder / "home") as url:
        yield url, root


@pytest.mark.parametrize("front", KEYS)
def test_a_key_on_the_slider_moves_figure_and_numbers(server, front):
    with open_notebook(server[0], BOOK, front=front) as page:
        panel = Panel(page)
        assert panel.tokens() == 958
        before = panel.picture()
        panel.handle.focus()
        panel.handle.press(KEYS[front])
        panel.changed(before)
        assert panel.budget() == pytest.approx(1000 * 10**-STEP, rel=0.02)
        assert panel.tokens() < 958
        assert page.locator(".jupyter-widgets.packtools img").count() == 1
        panel.shot(front)


@pytest.fixture(scope="module")
def panel(server):
    with open_notebook(server[0], BOOK) as page:
        yield Panel(page)


@pytest.fixture(scope="module")
def prepared():
    return pt.prepare(pt.load_sample())


def is_at_rest(panel, prepared) -> bool:
    """Whether box and picture are those of the budget in the field, worked out here without a panel."""
    config = pt.PackerConfig(separator="\n\n", jaccard_threshold=0.85, budget=panel.budget())
    tokens = prepared.evaluate(config).per_query["n_tokens"].mean()
    alt = panel.page.locator(".packtools-picture img").get_attribute("alt")
    return f"{tokens:,.0f} of 3,870" in alt and panel.tokens() == round(tokens)


def start_at(panel, budget: int) -> None:
    before = panel.picture()
    field = panel.page.locator(".packtools-budget input")
    field.fill(str(budget))
    field.press("Enter")
    panel.changed(before)


def test_forty_moves_at_once_are_two_computations_and_end_on_the_last(panel, prepared):
    # All moves fall into one task of the page: the first is sent, the others wait, the last of them goes.
    start_at(panel, 2000)
    before = panel.picture()
    panel.page.evaluate(
        "() => { window.pictures = new Set();"
        " new MutationObserver(() => window.pictures.add(document.querySelector('.packtools-picture img').src))"
        "  .observe(document.querySelector('.packtools-picture'), {subtree: true, childList: true});"
        " const handle = document.querySelector('.packtools-budget-slider .noUi-handle');"
        " for (let i = 0; i < 40; i++)"
        "  handle.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true, cancelable: true})); }"
    )
    panel.page.wait_for_function(
        "() => Number(document.querySelector('.packtools-budget input').value) < 1000"
    )
    panel.changed(before)
    assert panel.budget() == pytest.approx(2000 * 10 ** (-40 * STEP), rel=0.03)
    assert is_at_rest(panel, prepared)
    assert 1 <= panel.page.evaluate("() => window.pictures.size") <= 2


def test_a_held_key_ends_on_the_last_value(panel, prepared):
    start_at(panel, 2100)
    before = panel.picture()
    panel.handle.focus()
    for _ in range(40):
        panel.handle.press("ArrowLeft")
    low = 2100 * 10 ** (-40 * STEP) * 1.03
    panel.page.wait_for_function(
        "low => Number(document.querySelector('.packtools-budget input').value) <= low", arg=low
    )
    panel.changed(before)
    assert panel.budget() == pytest.approx(2100 * 10 ** (-40 * STEP), rel=0.03)
    assert is_at_rest(panel, prepared)


def test_a_drag_across_ends_where_the_handle_was_let_go(panel, prepared):
    start_at(panel, 200)
    before = panel.picture()
    box = panel.handle.bounding_box()
    track = panel.page.locator(".packtools-budget-slider .noUi-base").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    panel.page.mouse.move(x, y)
    panel.page.mouse.down()
    panel.page.mouse.move(track["x"] + track["width"] + 30, y, steps=60)
    panel.page.mouse.up()
    largest = int(prepared.full("tokens", "\n\n").max())
    panel.page.wait_for_function(
        "most => Number(document.querySelector('.packtools-budget input').value) >= most", arg=0.97 * largest
    )
    panel.changed(before)
    assert panel.budget() == pytest.approx(largest, rel=0.03)
    assert is_at_rest(panel, prepared)
    assert panel.page.locator(".jupyter-widgets.packtools img").count() == 1  # P121


def test_a_saved_notebook_shows_figure_and_table_without_its_kernel(server, panel):
    url, root = server
    page = panel.page
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.evaluate("() => window.jupyterapp.commands.execute('kernelmenu:shutdown')")
    page.wait_for_function(
        "() => !window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel"
        " && !window.jupyterapp.shell.currentWidget.context.model.dirty"
    )
    page.goto(f"{url}{FRONTS['lab']}{BOOK}?token=browser-test&reset")
    page.wait_for_function(KERNEL_IS_IDLE)
    page.wait_for_selector("text=model not found", state="attached")  # P127: the widget itself is gone
    assert page.locator(".packtools-picture img").count() == 0
    picture = page.locator(".jp-OutputArea-output img").last
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("element => element.naturalWidth") > 600
    table = page.locator(".jp-OutputArea-output table", has_text="answer_retention").last
    table.scroll_into_view_if_needed()
    assert "n_tokens" in table.inner_text()
    saved = json.loads((root / BOOK).read_text("utf-8"))
    kinds = [set(o.get("data", {})) for c in saved["cells"] for o in c.get("outputs", [])]
    assert {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"} <= set.union(*kinds)
