"""The notebooks keep their rules; that they run is nbmake's part."""

from __future__ import annotations

import ast
import json
import re
from itertools import pairwise

import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda p: p.stem)
def cells(request) -> list[dict]:
    return json.loads(request.param.read_text("utf-8"))["cells"]


def text(cell: dict) -> str:
    return "".join(cell["source"])


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_the_first_cell_asks_a_question_and_answers_it_with_a_number(cells):
    title, _, body = text(cells[0]).partition("\n")
    assert title.startswith("# ")
    assert title.endswith("?")
    assert re.search(r"\d", body)
    assert text(cells[-1]).startswith("## Limits")


def metrics_given(tree: ast.AST) -> list[ast.expr]:
    """Arguments of `with_metric`: the one place where a notebook may say what to work out."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return [argument for call in calls if call.func.attr == "with_metric" for argument in call.args]


def test_code_cells_are_short_plain_and_preceded_by_prose(cells):
    for before, cell in pairwise(cells):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse(text(cell))
        assert 1 <= len(text(cell).splitlines()) <= 8
        metrics = metrics_given(tree)
        for node in ast.walk(tree):
            assert not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.While)
            assert not isinstance(node, ast.Lambda) or node in metrics
        if before["cell_type"] == "code":
            assert "assert " in text(cell)
        else:
            assert 30 <= len(text(before).split()) <= 80, text(before)[:60]


ALLOWED = {"packtools", "numpy", "pandas"}
FILES, WORKERS = {"pathlib", "tempfile"}, {"dask", "joblib"}  # for notebooks about files, and about workers


def test_only_packtools_numpy_and_pandas_are_imported(cells):
    allowed = ALLOWED | (FILES if any("mkdtemp(" in text(c) for c in cells) else set())
    allowed |= WORKERS if any("parallel_config(" in text(c) for c in cells) else set()
    for cell in cells:
        if cell["cell_type"] == "code":
            for node in ast.walk(ast.parse(text(cell))):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                assert {str(n).split(".")[0] for n in names} <= allowed


def test_there_are_assertions(cells):
    assert sum("assert " in text(c) for c in cells if c["cell_type"] == "code") >= 3


def test_outputs_are_stripped(cells):
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def test_a_panel_is_preceded_by_a_figure_of_the_same_state(cells):
    sources = [text(c) for c in cells if c["cell_type"] == "code"]
    for place, source in enumerate(sources):
        if "pt.Explorer(" in source:
            assert any(".figure()" in s for s in sources[:place])


def test_the_default_kernel_is_named(cells):
    for path in NOTEBOOKS:
        assert json.loads(path.read_text("utf-8"))["metadata"]["kernelspec"]["name"] == "python3"
