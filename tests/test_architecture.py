"""The house keeps its shape: layers, sizes, light import, documented public names."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import packtools as pt

PACKAGE = ROOT / "packtools"
# Each module may import lower layers only. DESIGN's order; `plan`, `selected` and their like (the array
# pipeline that packer and prepared share) stand between the stages and the packer.
LAYERS = [
    ["arrays", "errors", "progress"],
    ["config", "money", "resampling", "terms"],
    ["schema", "grids", "prices"],
    ["bills", "text", "counters"],
    ["kernels", "matching", "sentences", "cutting", "spans", "checks"],
    [
        "picking",
        "dedup",
        "budget",
        "ordering",
        "conflicts",
        "facts",
        "runs",
        "metrics",
        "stats",
        "answers",
        "grounding",
    ],
    [
        "selection",
        "plan",
        "significance",
        "margins",
        "pairing",
        "triads",
        "words",
        "table_words",
        "marking",
        "frontier",
    ],
    ["corpus", "filling", "inference"],
    ["selected", "ledger", "cells", "recommending"],
    ["selecting"],
    ["packer", "stages"],
    ["measured", "characters"],
    ["saving"],
    ["packed"],
    ["prepared"],
    ["tradeoff", "drawing", "comparison", "oracle", "position", "pieces"],
    ["packed_plain", "figures", "swept", "exporting", "presets", "query_notes"],
    ["triad_report", "joining", "sweep_figures", "panel_figures", "spread_figure", "drilldown"],
    ["view", "sweeping"],
    ["explorer"],
    [
        "report",
        "notebook",
        "markup",
        "sweep_report",
        "screens",
        "query_list",
        "query_markup",
        "control_widgets",
    ],
    ["query_widgets", "controls"],
    ["widgets", "cli_compare", "cli_sweep"],
    ["cli"],
]
# Modules of the array pipeline, which has no public names.
ARRAYS = {
    "bills", "kernels", "picking", "plan", "corpus", "filling", "selected", "ledger", "cells", "selecting",
    "measured", "facts", "joining",
}  # fmt: skip
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
HEAVY = [
    "matplotlib",
    "ipywidgets",
    "sklearn",
    "scipy",
    "IPython",
    "jupyterlab",
    "pandas",
    "numpy",
    "tiktoken",
]


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    """Name the layer unit of a file: the module, or the sub-package it is in."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> list[tuple[str, bool]]:
    """Modules of packtools that a tree imports, and whether only for type checking."""
    guarded = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "packtools":
            names = (
                [node.module] if node.module != "packtools" else [f"packtools.{a.name}" for a in node.names]
            )
            found += [(name.split(".")[1], id(node) in guarded) for name in names if "." in name]
    return [(name, only) for name, only in found if name in LEVEL]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_each_module_imports_lower_layers_only(path):
    me = part(path)
    if me == "__init__":
        return
    assert me in LEVEL, f"{me} has no layer"
    for name, for_types in imports(ast.parse(path.read_text("utf-8"))):
        if not for_types and name != me:
            assert LEVEL[name] < LEVEL[me], f"{me} (layer {LEVEL[me]}) imports {name} (layer {LEVEL[name]})"


def test_kernels_import_only_numpy_and_the_standard_library():
    roots = set()
    trees = [
        ast.parse((PACKAGE / f"{name}.py").read_text("utf-8"))
        for name in ("arrays", "bills", "kernels", "picking")
    ]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            roots.add(str(node.module).split(".")[0])
    assert roots - set(sys.stdlib_module_names) - {"__future__"} == {"numpy", "packtools"}
    assert {name for tree in trees for name, _ in imports(tree)} == {"arrays", "bills"}


def test_metrics_and_stats_know_no_packer():
    for name in ("metrics", "stats", "significance", "margins", "pairing", "answers", "grounding", "triads"):
        used = {n for n, _ in imports(ast.parse((PACKAGE / f"{name}.py").read_text("utf-8")))}
        assert used <= {
            "resampling",
            "arrays",
            "errors",
            "progress",
            "text",
            "matching",
            "stats",
            "answers",
            "grounding",
        }


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_stay_short(path):
    source = path.read_text("utf-8")
    assert source.count("\n") < 400
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length < 60, f"{node.name} has {length} lines"


def test_importing_packtools_loads_nothing_heavy():
    code = f"import packtools, sys; print([m for m in {HEAVY} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_help_loads_nothing_heavy():
    code = (
        "import sys, packtools.cli\ntry: packtools.cli.main(['--help'])\nexcept SystemExit: pass\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip().splitlines()[-1] == "[]"


def test_packing_and_evaluating_load_no_drawing_or_notebook_library():
    code = (
        "import sys, packtools as pt\np = pt.prepare(pt.load_sample())\np.evaluate(pt.PackerConfig(budget=500))\n"
        "print([m for m in ['matplotlib', 'ipywidgets', 'sklearn', 'IPython', 'jupyterlab'] if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_loads_and_is_documented():
    for name in pt.__all__:
        value = getattr(pt, name)
        if callable(value):
            assert inspect.getdoc(value), name
            assert not inspect.getdoc(value).startswith(f"{name}("), f"{name} has no docstring of its own"


def test_public_methods_are_documented():
    for name in pt.__all__:
        value = getattr(pt, name)
        if inspect.isclass(value):
            for method, function in vars(value).items():
                if not method.startswith("_") and (
                    inspect.isfunction(function) or isinstance(function, property)
                ):
                    assert inspect.getdoc(function), f"{name}.{method}"


def test_every_module_lists_its_public_names():
    for path in modules():
        if (
            path.name in ("__init__.py", "progress.py", "cli.py", "text.py")
            or part(path) == "runs"
            or part(path) in ARRAYS
        ):
            continue
        module = importlib.import_module(f"packtools.{path.stem}")
        assert module.__all__, path.name
        assert all(hasattr(module, name) for name in module.__all__)


def test_the_readme_names_every_command_and_make_target():
    readme = (ROOT / "README.md").read_text("utf-8")
    for command in ("pack", "report", "sweep", "partition", "compare", "triad", "explore"):
        assert f"packtools {command}" in readme
    targets = re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text("utf-8"), flags=re.M)
    assert {"lab", "demo", "test", "check", "bench"} <= set(targets)
    for target in targets:
        assert f"make {target}" in readme


def test_no_file_speaks_of_this_machine():
    needles = [f"/{name}/" for name in ("work", "root", "home")]
    for path in [*modules(), *ROOT.glob("*.md"), *ROOT.glob("notebooks/*.ipynb"), ROOT / "Makefile"]:
        text = path.read_text("utf-8")
        assert not any(needle in text for needle in needles), path.name


def test_the_main_job_needs_no_package_that_only_the_tests_install(tmp_path):
    code = (
        "import sys\n"
        "for name in ('scipy.stats', 'zstandard', 'tokenizers', 'bm25s', 'hypothesis'): sys.modules[name] = None\n"
        "import packtools as pt\n"
        "view = pt.ExplorerModel(pt.load_sample()).view()\n"
        "view.export(sys.argv[1])\n"
        "view.packed.decisions, view.packed.context('time-q8'), pt.Explorer(view.prepared)\n"
        "print(view.sentences[0])"
    )
    out = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert out.stdout.strip() == "71 % fewer tokens (1,113 of 3,870 per query)", out.stderr


def test_no_public_name_is_that_of_a_module():
    """A module of the same name would take its place as soon as it is imported."""
    assert not set(pt.__all__) & {path.stem for path in PACKAGE.glob("*.py")}
