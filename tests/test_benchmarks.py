"""The benchmarks run and their checks hold, on a run too small to time."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from conftest import ROOT


def test_the_benchmarks_run_on_a_small_run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import loading
    import make_run
    import run

    make_run.write(tmp_path, 20, 12, 120)
    rows, size = run.in_process_rows(tmp_path, 1)
    assert size.startswith("20 queries, 240 rows")
    others = [name for name in loading.OTHERS if find_spec(name) is not None]
    assert len(rows) == 17 + len(others)
    for name in ("make_run", "run", "rivals", "plain_packer", "sweeps", "timing", "loading"):
        sys.modules.pop(name, None)
