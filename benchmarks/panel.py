"""How long a move of the panel takes in a real browser, against rendering its figure alone.

A slider key in headless Chromium on a real JupyterLab: from the key event to the new picture decoded
and painted. The rival is the PNG of the same figure, rendered again and again in a process of its own
on the same machine in the same minutes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

MOVES = 30
BOUNDS = {"sample": 1.6, "large": 3.0}
FIRST = 10.0
"""How many renders the first panel may take after `prepare`."""

WATCH = """() => {
  window.moves = []; let began = 0;
  document.addEventListener('keydown', () => { began = performance.now(); }, true);
  new MutationObserver(async () => {
    const picture = document.querySelector('.packtools-picture img');
    if (!began || !picture || picture.src === window.shown) return;
    window.shown = picture.src; const start = began; began = 0;
    await picture.decode();
    requestAnimationFrame(() => requestAnimationFrame(() => window.moves.push(performance.now() - start)));
  }).observe(document.querySelector('.packtools-picture'),
    {subtree: true, childList: true, attributes: true});
  window.shown = document.querySelector('.packtools-picture img').src;
}"""

IDLE = (
    "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
    " && document.querySelector('.packtools-status').innerText.includes('ready')"
)

RENDER = """
import json, statistics, sys, time
import packtools as pt
run = pt.load_sample() if sys.argv[1] == "sample" else pt.load_run(sys.argv[1])
prepared = pt.prepare(run)
began = time.perf_counter()
import ipywidgets, matplotlib.backends.backend_agg, matplotlib.figure
loaded = time.perf_counter() - began
began = time.perf_counter()
explorer = pt.Explorer(prepared)
first = time.perf_counter() - began
figure = explorer.view.figure()
times = []
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    figure._repr_png_()
    times.append(time.perf_counter() - began)
print(json.dumps({"first": first, "loaded": loaded, "render": statistics.median(times)}))
"""


def rendered(run: str) -> dict[str, float]:
    """Time the first panel and the figure alone, seconds."""
    out = subprocess.run(
        [sys.executable, "-c", RENDER, run, str(MOVES)], capture_output=True, text=True, check=True
    )
    return json.loads(out.stdout)


def moved(run: str) -> list[float]:
    """Time the moves of the budget slider in a browser, seconds."""
    from lab import lab_server, open_notebook

    load = "pt.load_sample()" if run == "sample" else f"pt.load_run({run!r})"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        root.mkdir()
        write_notebook(root / "panel.ipynb", f"import packtools as pt\npt.Explorer({load})")
        with lab_server(root, Path(folder) / "home") as url, open_notebook(url, "panel.ipynb") as page:
            page.wait_for_selector(".packtools-status >> text=ready", state="attached")
            page.evaluate(WATCH)
            handle = page.locator(".packtools-budget-slider .noUi-handle").first
            handle.focus()
            done = presses = 0
            while done < MOVES:  # a step within the same round budget changes nothing
                handle.press("ArrowLeft" if presses % 40 < 20 else "ArrowRight")
                presses += 1
                page.wait_for_function(IDLE)
                page.wait_for_timeout(100)
                done = page.evaluate("() => window.moves.length")
            return [ms / 1000 for ms in page.evaluate("() => window.moves")]


def write_notebook(path: Path, source: str) -> None:
    """Write a notebook of one cell."""
    import nbformat

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    book.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(book, path)


def main() -> None:
    """Measure both runs, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="of the large run, as benchmarks/run.py makes it")
    given = parser.parse_args()
    runs = {"sample": "sample"} | ({"large": str(given.folder.resolve())} if given.folder else {})
    print("| run | move, median of 30 | figure alone | ratio | wanted | first panel | wanted | libraries |")
    print("|---|---|---|---|---|---|---|---|")
    for name, run in runs.items():
        before, moves, after = rendered(run), moved(run), rendered(run)
        render = statistics.mean([before["render"], after["render"]])
        first = statistics.mean([before["first"], after["first"]]) / render
        move = statistics.median(moves)
        print(
            f"| {name} | {move * 1000:.0f} ms | {render * 1000:.0f} ms | {move / render:.2f} × | "
            f"≤ {BOUNDS[name]} × | {first:.1f} renders | ≤ {FIRST:.0f} | {before['loaded']:.2f} s |"
        )


if __name__ == "__main__":
    main()
