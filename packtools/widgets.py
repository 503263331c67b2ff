"""The panel: ipywidgets that show an `ExplorerModel` and nothing more.

One persistent figure is rendered to PNG and put into an `<img>`; no Output widgets, no pyplot.
Every text that comes from a file is escaped.
"""

from __future__ import annotations

import base64
import html
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as w

from packtools.config import PackerConfig
from packtools.explorer import COUNTERS, ExplorerModel, View
from packtools.figures import TradeOffFigure
from packtools.markup import CSS, delta_table, image, query_table
from packtools.ordering import ORDERINGS
from packtools.prepared import PreparedRun
from packtools.runs.model import Run
from packtools.tradeoff import round_budget
from packtools.words import order_words

__all__ = ["Explorer"]

OFF = 2.0
"""Stands for "no threshold" in the controls, at the end beyond 1.00."""
WIDTH = "352px"


class Explorer:
    """Show a run in JupyterLab and move its packing settings.

    Budget, ordering, near-duplicate threshold, quality metric and counter; the cost-versus-quality
    point against the unpacked baseline, its paired difference with interval, and every query.

    Parameters
    ----------
    run : Run, PreparedRun or path
    counter : str, default "cl100k_base"
    config : PackerConfig or None, default None
        The setting to start from.
    baseline : PackerConfig or None, default None
        None is the unpacked run.
    export_dir : path, default "packtools_exports"
        Where the export button writes.

    Attributes
    ----------
    model : ExplorerModel
        State and results in plain Python; ``explorer.model.config`` is the setting.
    widget : ipywidgets.VBox
    """

    def __init__(
        self,
        run: Run | PreparedRun | str | Path,
        *,
        counter: str = "cl100k_base",
        config: PackerConfig | None = None,
        baseline: PackerConfig | None = None,
        export_dir: str | Path = "packtools_exports",
    ) -> None:
        self.model = ExplorerModel(run, counter=counter, config=config, baseline=baseline)
        self.export_dir = Path(export_dir)
        self.view: View = self.model.view()
        self._figure = TradeOffFigure(self.model.quality)
        self._following = False
        self._controls()
        self._outputs()
        self.widget = self._arrange()
        self._show(time.perf_counter())

    # --- building -----------------------------------------------------------------------------

    def _controls(self) -> None:
        config = self.model.config
        least = config.reserve + 1
        most = max(self.model.largest_context(config) + config.reserve, config.budget or least)
        wide = {"layout": w.Layout(width=WIDTH), "style": {"description_width": "104px"}}
        self.budget_slider = w.FloatLogSlider(
            value=config.budget or most,
            base=10,
            min=math.log10(max(most // 60, least)),
            max=math.log10(most),
            step=0.01,
            readout=False,
            description="Budget",
            **wide,
        )
        self.budget = w.BoundedIntText(
            value=config.budget or most,
            min=least,
            max=max(most, 1_000_000),
            description="Budget, exact",
            **wide,
        )
        self.order = w.Dropdown(
            options=[(order_words(name), name) for name in ORDERINGS],
            value=config.order,
            description="Order",
            **wide,
        )
        at = config.jaccard_threshold or OFF
        floor = math.ceil(self.model.prepared.min_jaccard * 100 - 1e-9)
        steps = sorted({*(t / 100 for t in range(floor, 101)), *([] if at == OFF else [at])})
        thresholds = [*((f"{t:.4g}" if round(t, 2) != t else f"{t:.2f}", t) for t in steps), ("off", OFF)]
        self.threshold_slider = w.SelectionSlider(
            options=thresholds, value=at, description="Near-duplicates", readout=False, **wide
        )
        self.threshold = w.Dropdown(options=thresholds, value=at, description="Dropped from", **wide)
        self.protect = w.Checkbox(
            value=config.protect_differences,
            description="keep those that differ in a number or date",
            indent=False,
            layout=w.Layout(width=WIDTH),
        )
        self.quality = w.Dropdown(
            options=[(words, name) for name, words in self.model.qualities.items()],
            value=self.model.quality,
            description="Quality",
            **wide,
        )
        own = self.model.prepared.counter.name
        self.counter = w.Dropdown(
            options=list(dict.fromkeys([*COUNTERS, own])), value=own, description="Counter", **wide
        )
        self.export = w.Button(
            description="Export figure, tables, settings",
            layout=w.Layout(width=WIDTH),
            tooltip="Write PNG, SVG, PDF, CSV and JSON",
        )
        self._observe()

    def _observe(self) -> None:
        self.budget_slider.observe(self._guard(self._slider_moved), "value")
        self.budget.observe(self._guard(self._budget_typed), "value")
        self.threshold_slider.observe(self._guard(self._threshold_moved), "value")
        self.threshold.observe(self._guard(self._threshold_chosen), "value")
        for control in (self.order, self.protect, self.quality, self.counter):
            control.observe(self._guard(self._changed), "value")
        self.export.on_click(self._guard(self.write_exports))
        for name in (
            "budget_slider",
            "budget",
            "order",
            "threshold_slider",
            "threshold",
            "quality",
            "counter",
            "export",
        ):
            getattr(self, name).add_class(f"packtools-{name.replace('_', '-')}")

    def _outputs(self) -> None:
        self.head = w.HTML()
        self.error = w.HTML()
        self.answer = w.HTML()
        self.picture = w.HTML()
        self.deltas = w.HTML()
        self.queries = w.HTML()
        self.exported = w.HTML()
        self.status = w.HTML()
        for name in ("head", "error", "answer", "picture", "deltas", "queries", "exported", "status"):
            getattr(self, name).add_class(f"packtools-{name}")

    def _arrange(self) -> w.VBox:
        left = w.VBox(
            [
                self.budget_slider,
                self.budget,
                self.order,
                self.threshold_slider,
                self.threshold,
                self.protect,
                self.quality,
                self.counter,
                self.answer,
                self.export,
                self.exported,
                self.status,
            ],
            layout=w.Layout(width="368px", flex="0 0 auto"),
        )
        right = w.VBox(
            [self.picture, self.deltas, self.queries], layout=w.Layout(flex="1 1 480px", overflow="auto")
        )
        body = w.Box([left, right], layout=w.Layout(display="flex", flex_flow="row wrap", grid_gap="18px"))
        whole = w.VBox([w.HTML(CSS), self.head, self.error, body])
        whole.add_class("packtools")
        return whole

    # --- events -------------------------------------------------------------------------------

    def _guard(self, action: Callable[[Any], object]) -> Callable[[Any], None]:
        """Show an error in the panel and raise it again; the last good figure stays."""

        def guarded(event: Any = None) -> None:
            try:
                action(event)
            except Exception as error:
                text = html.escape(f"{type(error).__name__}: {error}")
                self.error.value = (
                    f'<div class="error" role="alert">{text}<br>The last good figure is shown.</div>'
                )
                raise

        return guarded

    def _slider_moved(self, event: Any) -> None:
        """Take a move; the browser putting the handle on the nearest step is none."""
        step = abs(math.log10(event["new"] / event["old"]))
        if not self._following and step > 0.501 * self.budget_slider.step:
            self._follow(self.budget, round_budget(self.budget_slider.value))
            self._changed(event)

    def _budget_typed(self, event: Any) -> None:
        if not self._following:
            low, high = 10**self.budget_slider.min, 10**self.budget_slider.max
            self._follow(self.budget_slider, min(max(self.budget.value, low), high))
            self._changed(event)

    def _threshold_moved(self, event: Any) -> None:
        if not self._following:
            self._follow(self.threshold, self.threshold_slider.value)
            self._changed(event)

    def _threshold_chosen(self, event: Any) -> None:
        if not self._following:
            self._follow(self.threshold_slider, self.threshold.value)
            self._changed(event)

    def _follow(self, control: Any, value: float) -> None:
        self._following = True
        try:
            control.value = value
        finally:
            self._following = False

    def _changed(self, event: Any) -> None:
        """Take the controls' values, evaluate, show."""
        del event
        began = time.perf_counter()
        if self.counter.value != self.model.prepared.counter.name:
            self.status.value = '<span class="quiet">counting…</span>'
            self.model.set_counter(self.counter.value)
            self._stretch()
        self.model.set_quality(self.quality.value)
        self.model.config = self.model.config.replace(
            budget=self.budget.value,
            order=self.order.value,
            protect_differences=self.protect.value,
            jaccard_threshold=None if self.threshold.value == OFF else self.threshold.value,
        )
        self.view = self.model.view()
        self._show(began)

    def _stretch(self) -> None:
        """Let the budget slider reach the largest context as the new counter counts it."""
        config = self.model.config
        most = max(self.model.largest_context(config) + config.reserve, self.budget.value)
        self._following = True
        try:
            self.budget_slider.max = math.log10(most)
            self.budget.max = max(most, self.budget.max)
        finally:
            self._following = False

    def write_exports(self, event: Any = None) -> list[Path]:
        """Write the current view into a folder of its own under `export_dir`; give the files."""
        del event
        paths = self.view.export(self.export_dir / _slug(self.model.prepared.run.name))
        names = "".join(f"<li>{html.escape(p.name)}</li>" for p in paths)
        folder = html.escape(str(paths[0].parent))
        self.exported.value = (
            f'<div class="quiet">Written to <b>{folder}</b>:<ul style="margin:2px 0">{names}</ul></div>'
        )
        return paths

    # --- showing ------------------------------------------------------------------------------

    def _show(self, began: float) -> None:
        view, run = self.view, self.model.prepared.run
        if self._figure.metric.name != view.quality:
            self._figure = TradeOffFigure(view.quality)
        view.draw(self._figure)
        size = f"{run.n_queries:,} queries × up to {run.depth} passages"
        title = f"packtools · {run.name} · {size} · {self.model.prepared.counter.name}"
        first, *rest = view.sentences
        lines = "<br>".join([f"<b>{html.escape(first)}</b>", *map(html.escape, rest)])
        shown = {
            self.head: f"<b>{html.escape(title)}</b>",
            self.picture: image(self._figure.png(), f"{view.title}. {view.subtitle}"),
            self.answer: f'<div class="answer" aria-live="polite">{lines}</div>',
            self.deltas: delta_table(view),
            self.queries: query_table(view),
            self.error: "",
        }
        for place, value in shown.items():  # all at once: the parts of the panel never disagree for long
            place.value = value
        took = time.perf_counter() - began
        self.status.value = f'<span class="quiet">● ready {took:.2f} s</span>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Give the live widget, and a picture and text for viewers that know no widgets."""
        bundle: dict[str, Any] = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        bundle["image/png"] = base64.b64encode(self._figure.png()).decode()
        bundle["text/plain"] = "\n".join(self.view.sentences)
        return bundle


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip("-.")[:60] or "run"
