"""Write a notebook that explores a run, and open JupyterLab on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from packtools.errors import SettingError

__all__ = ["open_lab", "write_notebook"]


def write_notebook(path: Path, runs: list[str], name: str) -> bool:
    """Write a notebook of three cells: load, explore, and a figure that stays without a kernel.

    A notebook that is already there and loads the same run is left as it is.

    Parameters
    ----------
    path : Path
    runs : list of str
        Paths for `load_run`; empty for the sample run.
    name : str
        Of the run, for the title.

    Returns
    -------
    bool
        Whether it was written.

    Raises
    ------
    SettingError
        If the path does not end in .ipynb, or a file is there that does not load this run.
    """
    if path.suffix != ".ipynb":
        raise SettingError(f"packtools explore: '--notebook' must end in .ipynb; got {str(path)!r}.")
    paths = json.dumps(runs[0] if len(runs) == 1 else runs, ensure_ascii=False)
    source = f"load_run({paths})" if runs else "load_sample()"
    if path.exists():
        _check_ours(path, f"run = pt.{source}")
        return False
    cells = [
        _markdown(
            f"# What does packing {name} cost?\n\nMove the controls; the figure and the numbers follow."
        ),
        _code(f"import packtools as pt\n\nrun = pt.{source}\nrun"),
        _code("explorer = pt.Explorer(run)\nexplorer"),
        _markdown("What the panel shows, as a picture and a table that stay when the kernel is gone."),
        _code("explorer.snapshot()"),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"explore-{number}"
    book = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "packtools_explore": True,
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(book, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return True


def _check_ours(path: Path, load: str) -> None:
    """Raise unless a notebook that is already there loads the same run: it may hold the user's work."""
    try:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        known = any(load in "".join(cell["source"]) for cell in cells)
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise SettingError(
            f"packtools explore: {str(path)!r} exists and does not load this run. Give another --notebook."
        )


def _markdown(text: str) -> dict[str, object]:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _code(text: str) -> dict[str, object]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text}


def lab_command(path: Path, browser: bool = True) -> list[str]:
    """Give the command that opens JupyterLab on a notebook: loopback only, with a token.

    The folder served is the current one if the notebook is in it, else that of the notebook. Root
    is allowed only where the user is root; nothing is asked of the network.
    """
    path, here = path.resolve(), Path.cwd()
    root = here if path.is_relative_to(here) else path.parent
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url=/lab/tree/{quote(path.relative_to(root).as_posix())}",
        "--ServerApp.ip=127.0.0.1",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=",
        *as_root,
        *([] if browser else ["--no-browser"]),
    ]


def open_lab(path: Path, browser: bool = True) -> int:
    """Run JupyterLab on a notebook until it is stopped; give its exit code."""
    try:
        return subprocess.call(lab_command(path, browser))
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(open_lab(Path(sys.argv[1]), browser="--no-browser" not in sys.argv[2:]))
