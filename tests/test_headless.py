"""Notebooks with the panel run without a browser: what they leave in the file, and that they run at all."""

from __future__ import annotations

import base64
import shutil

import pytest
from conftest import ROOT

from packtools.cli import main

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
MOVES = """\
import sys

for budget in range(300, 3300, 100):
    explorer.settings.budget.value = budget
sys.modules["matplotlib.pyplot"].get_fignums() if "matplotlib.pyplot" in sys.modules else []"""


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Give the notebook of `packtools explore PATH`, run by nbclient, with 30 moves in a last cell."""
    folder = tmp_path_factory.mktemp("headless")
    data = folder / "it's 実験 run №1"
    shutil.copytree(ROOT / "data" / "sample", data)
    path = folder / "my 'first' 探索.ipynb"
    assert main(["explore", str(data), "--notebook", str(path), "--no-start"]) == 0
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    book.cells.append(nbformat.v4.new_code_cell(MOVES))
    nbclient.NotebookClient(book, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    nbformat.write(book, folder / "run.ipynb")
    return nbformat.read(folder / "run.ipynb", as_version=4)


def outputs(book, call: str) -> list:
    """Give what the cell that ends in a line left."""
    (cell,) = (c for c in book.cells if c.cell_type == "code" and c.source.splitlines()[-1] == call)
    return cell.outputs


def test_the_generated_notebook_names_the_default_kernel(book):
    assert book.metadata.kernelspec.name == "python3"  # P131


def test_the_panel_leaves_a_picture_and_words_in_the_file(book):
    (panel,) = outputs(book, "explorer")  # P121: one output, which holds one picture
    assert WIDGET in panel.data
    assert base64.b64decode(panel.data["image/png"]).startswith(b"\x89PNG")
    assert "fewer tokens" in panel.data["text/plain"]  # P128


def test_a_figure_and_a_table_stay_that_need_no_widgets(book):
    (still,) = outputs(book, "explorer.snapshot()")  # P127
    assert set(still.data) == {"text/html", "image/png", "text/plain"}
    page = still.data["text/html"]
    assert page.count("<img") == page.count("<table") == 1
    assert ">answer kept" in page


def test_thirty_moves_leave_one_picture_no_open_figures_and_no_warnings(book):
    assert outputs(book, MOVES.splitlines()[-1])[0].data["text/plain"] == "[]"  # P122
    kinds = {o.output_type for c in book.cells if c.cell_type == "code" for o in c.outputs}
    assert kinds == {"execute_result"}  # nothing on stderr, no second display
    models = book.metadata.widgets[STATE].state.values()
    pictures = [m.state.value.count("<img") for m in models if "<img" in str(m.state.get("value", ""))]
    assert pictures == [1]  # P121
