"""The panel: ipywidgets that show an `ExplorerModel` and nothing more.

Figures are rendered to PNG and put into one `<img>`; no Output widgets, no pyplot. The front end keeps
one message of a control in flight and sends its latest value next, so moves never queue up.
Every text that comes from a file is escaped.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as w

from packtools.config import PackerConfig
from packtools.controls import SettingControls
from packtools.counters import counted
from packtools.drilldown import look
from packtools.explorer import ExplorerModel, start_budget
from packtools.exporting import export_view, links_html, slug
from packtools.markup import CSS, Snapshot, delta_table, image, pin_table
from packtools.money import Price
from packtools.prepared import PreparedRun
from packtools.presets import PRESETS, preset
from packtools.prices import price_of
from packtools.query_markup import QUERY_CSS, query_html
from packtools.query_widgets import QueryPanel
from packtools.resampling import one_thread
from packtools.runs.model import Run
from packtools.screens import SCREENS, STEMS, Screens
from packtools.view import View
from packtools.words import config_words

__all__ = ["Explorer"]

WIDTH = "352px"
QUERIES = "Queries"
BUSY = '<span class="quiet busy">◌ working…</span>'


class Explorer:
    """Show a run in JupyterLab and move its packing settings.

    Every setting of `PackerConfig`, presets, undo; up to six pinned settings, any of which can be the
    baseline; quality metric, counter and price. Trade-off, budget curve with the best possible,
    per-query differences, place of the evidence; every query with what was kept, cut and dropped.

    Parameters
    ----------
    run : Run, PreparedRun or path
    baseline : PackerConfig or None, default None
        What settings are compared with at first; None is the unpacked run.
    counter : str, default "cl100k_base"
        Used if the run is not prepared yet.
    config : PackerConfig or None, default None
        The setting to start from; None packs into a quarter of the full context.
    price : Price or None, default None
        What tokens cost: `price_of` has published prices.
    export_dir : path, default "packtools_exports"
        Where the export button writes.

    Attributes
    ----------
    model : ExplorerModel
        State and results in plain Python; ``explorer.model.config`` is the setting.
    view : View
        What is shown.
    widget : ipywidgets.VBox
    """

    def __init__(
        self,
        run: Run | PreparedRun | str | Path,
        baseline: PackerConfig | None = None,
        *,
        counter: str = "cl100k_base",
        config: PackerConfig | None = None,
        price: Price | None = None,
        export_dir: str | Path = "packtools_exports",
    ) -> None:
        self.model = ExplorerModel(run, counter=counter, config=config, baseline=baseline, price=price)
        with one_thread():
            self.view: View = self.model.view()
        self.export_dir = Path(export_dir)
        self._screens = Screens(self.model)
        self._quiet = False
        self.settings = SettingControls(
            self.model.prepared, self.model.config, on_change=self._set, guard=self._guard
        )
        self.queries = QueryPanel(self._query, guard=self._guard)
        self._pickers()
        self._outputs()
        self.widget = self._arrange()
        with one_thread():
            self._show(time.perf_counter())

    # --- building -----------------------------------------------------------------------------

    def _pickers(self) -> None:
        wide = {"layout": w.Layout(width=WIDTH), "style": {"description_width": "104px"}}
        self.preset = w.Dropdown(
            options=[("choose …", ""), *((name, name) for name in PRESETS)],
            value="",
            description="Preset",
            **wide,
        )
        self.quality = w.Dropdown(description="Quality", **wide)
        self.counter = w.Dropdown(description="Counter", **wide)
        self.price = w.Text(
            description="Price of model",
            placeholder="none; a name such as gpt-4o",
            continuous_update=False,
            **wide,
        )
        self.against = w.Dropdown(description="Compare with", **wide)
        self.screen = w.ToggleButtons(
            options=[*SCREENS, QUERIES],
            value=SCREENS[0],
            style={"button_width": "auto"},
        )
        self.paper = w.Dropdown(
            options=[("page, 6.9 in", "page"), ("column, 3.3 in", "column")], description="Width", **wide
        )
        third = w.Layout(width="114px")
        self.undo = w.Button(description="Undo", layout=third, tooltip="Take back the last step")
        self.redo = w.Button(description="Redo", layout=third, tooltip="Do it again")
        self.pin = w.Button(description="Pin this", layout=third, tooltip="Keep this setting to compare with")
        self.pinned = w.Dropdown(description="Pinned", **wide)
        half = w.Layout(width="173px")
        self.go = w.Button(description="Show pinned", layout=half, tooltip="Go to the pinned setting")
        self.unpin = w.Button(description="Unpin", layout=half, tooltip="Let the pinned setting go")
        self.export = w.Button(
            description="Export figure, tables, settings, packs",
            layout=w.Layout(width=WIDTH),
            tooltip="Write PNG, SVG, PDF, CSV, Markdown, LaTeX, JSON and JSONL",
        )
        self._follow()
        self._observe()

    def _observe(self) -> None:
        moves: dict[w.DOMWidget, Callable[[Any], View]] = {
            self.preset: lambda name: self._preset(name),
            self.quality: self.model.set_quality,
            self.counter: self.model.set_counter,
            self.price: lambda name: self.model.set_price(price_of(name) if name.strip() else None),
            self.against: self.model.compare_with,
            self.screen: lambda _: self._fresh(),
        }
        for control, move in moves.items():
            control.observe(self._guard(self._chosen(move)), "value")
        presses: dict[w.Button, Callable[[], View]] = {
            self.undo: self.model.undo,
            self.redo: self.model.redo,
            self.pin: self._pin,
            self.go: lambda: self.model.show(self.model.state.pins[self._pinned()]),
            self.unpin: lambda: self.model.unpin(self._pinned()),
        }
        for button, press in presses.items():
            button.on_click(self._guard(self._pressed(press)))
        self.export.on_click(self._guard(self.write_exports))
        for name in (
            "preset", "quality", "counter", "price", "against", "screen", "paper", "undo", "redo", "pin",
            "pinned", "go", "unpin", "export",
        ):  # fmt: skip
            getattr(self, name).add_class(f"packtools-{name}")

    def _outputs(self) -> None:
        names = ("head", "error", "answer", "picture", "deltas", "pins", "exported", "status")
        made = [w.HTML() for _ in names]
        for name, place in zip(names, made, strict=True):
            place.add_class(f"packtools-{name}")
        (
            self.head,
            self.error,
            self.answer,
            self.picture,
            self.deltas,
            self.pins,
            self.exported,
            self.status,
        ) = made

    def _arrange(self) -> w.VBox:
        left = w.VBox(
            [
                self.settings.first,
                self.quality,
                self.against,
                w.HBox([self.undo, self.redo, self.pin]),
                self.answer,
                self.settings.more,
                self.preset,
                self.counter,
                self.price,
                self.pinned,
                w.HBox([self.go, self.unpin]),
                self.paper,
                self.export,
                self.exported,
                self.status,
            ],
            layout=w.Layout(width="368px", flex="0 0 auto"),
        )
        self._figures = w.VBox([self.picture, self.deltas, self.pins])
        right = w.VBox(
            [self.screen, self._figures, self.queries.widget],
            layout=w.Layout(flex="1 1 480px", overflow="auto"),
        )
        body = w.Box([left, right], layout=w.Layout(display="flex", flex_flow="row wrap", grid_gap="18px"))
        whole = w.VBox([w.HTML(CSS + QUERY_CSS), self.head, self.error, body])
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
                self.status.value = '<span class="quiet">● stopped by an error</span>'
                raise

        return guarded

    def _chosen(self, move: Callable[[Any], View]) -> Callable[[Any], None]:
        """Give a handler that takes a picker's new value, unless the panel set it itself."""

        def chosen(event: Any) -> None:
            if self._quiet:
                return
            try:
                self._do(lambda: move(event["new"]))
            except BaseException:
                if event["owner"] is not self.price:  # what was typed stays, to be mended
                    self._put(event["owner"], event["old"])
                raise

        return chosen

    def _pressed(self, press: Callable[[], View]) -> Callable[[Any], None]:
        return lambda event: self._do(press)

    def _set(self, config: PackerConfig) -> None:
        """Take what the user moved; what a cell changed in the model meanwhile stays."""
        old, new = vars(self.view.config), vars(config)
        changed = {name: new[name] for name in new if new[name] != old[name]}
        self._do(lambda: self.model.change(**changed))

    def _do(self, step: Callable[[], View]) -> None:
        """Take one step of the user: compute, then show."""
        began = time.perf_counter()
        self.status.value = BUSY
        shown, mark = self.view, self.model.mark()
        try:
            with one_thread():
                self.view = step()
                self._show(began)
        except BaseException:  # the model is where the last good figure is
            self.view = shown
            self.model.go_back(mark)
            raise

    def _put(self, control: w.DOMWidget, value: Any) -> None:
        """Set a picker; this is no step of the user."""
        self._quiet = True
        try:
            control.value = value
        finally:
            self._quiet = False

    def _preset(self, name: str) -> View:
        if not name:
            return self.view
        config = self.model.config
        typed = config.budget if config.unit == "tokens" else None
        budget = typed or start_budget(self.model.prepared)
        least = self.model.prepared.min_jaccard
        return self.model.show(preset(name, budget=budget, min_jaccard=least))

    def _pin(self) -> View:
        self.model.pin()
        return self.model.view()

    def _pinned(self) -> str:
        if not self.pinned.value:
            raise ValueError("no setting is pinned yet: press “Pin this” first")
        return str(self.pinned.value)

    def _fresh(self) -> View:
        """Give what is shown, or the model's view if a cell has moved the model meanwhile."""
        return self.view if self._state is self.model.state else self.model.view()

    def _query(self, qid: str) -> str:
        return query_html(look(self.view.packed, qid, self.view.baseline))

    def write_exports(self, event: Any = None) -> list[Path]:
        """Write the current view into a folder of its own under `export_dir`; give the files."""
        del event
        width = self.paper.value
        screen = self._figure_screen
        figures = {STEMS[screen]: self._screens.figure(self.view, screen, width)}
        folder = self.export_dir / slug(self.model.prepared.run.name)
        paths = export_view(self.view, folder, width=width, figures=figures)
        self.exported.value = links_html(paths)
        return paths

    # --- showing ------------------------------------------------------------------------------

    @property
    def _figure_screen(self) -> str:
        return SCREENS[0] if self.screen.value == QUERIES else str(self.screen.value)

    def _show(self, began: float) -> None:
        view, run = self.view, self.model.prepared.run
        on_queries = self.screen.value == QUERIES
        size = f"{run.n_queries:,} queries × up to {run.depth} passages"
        title = f"packtools · {run.name} · {size} · {self.model.prepared.counter.name}"
        first, *rest = view.sentences
        lines = "<br>".join([f"<b>{html.escape(first)}</b>", *map(html.escape, rest)])
        shown = {
            self.head: f"<b>{html.escape(title)}</b>",
            self.answer: f'<div class="answer" aria-live="polite">{lines}</div>',
            self.error: "",
        }
        if not on_queries:
            png, alt = self._screens.png(view, self._figure_screen)
            shown |= {
                self.picture: image(png, alt),
                self.deltas: delta_table(view),
                self.pins: pin_table(view),
            }
        self.queries.active = on_queries
        self.queries.update(view)
        for place, value in shown.items():  # all at once: the parts of the panel never disagree for long
            place.value = value
        self._figures.layout.display = "none" if on_queries else None
        self.queries.widget.layout.display = None if on_queries else "none"
        self._state = self.model.state
        self._follow()
        took = time.perf_counter() - began
        self.status.value = f'<span class="quiet">● ready {took:.2f} s</span>'

    def _follow(self) -> None:
        """Let every control say what the model holds; none of this is a step of the user."""
        state = self.model.state
        noun = counted(self.model.prepared.counter)
        pins = [(f"{name}: {config_words(config, noun)}", name) for name, config in state.pins.items()]
        words = {name: text for text, name in pins}
        self._quiet = True
        try:
            if self.settings.prepared is not self.model.prepared:
                self.settings.follow(self.model.prepared)
            self.settings.show(state.config)
            self.preset.value = ""
            _choose(self.quality, [(v, k) for k, v in self.model.qualities.items()], state.quality)
            _choose(self.counter, self.model.counters, state.counter)
            _choose(self.against, [(words.get(b, b), b) for b in self.model.baselines], state.against)
            _choose(self.pinned, pins, self.pinned.value if self.pinned.value in words else None)
            self.price.value = "" if state.price is None else state.price.name
            self.undo.disabled, self.redo.disabled = not self.model.can_undo, not self.model.can_redo
            self.go.disabled = self.unpin.disabled = self.pinned.disabled = not pins
        finally:
            self._quiet = False

    def snapshot(self) -> Snapshot:
        """Give what is shown as a picture with its tables, which stays when the kernel is gone."""
        png, _ = self._screens.png(self.view, self._figure_screen)
        return Snapshot(png, delta_table(self.view) + pin_table(self.view), self.view.sentences)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Give the live widget, and a picture and text for viewers that know no widgets."""
        bundle: dict[str, Any] = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        still = self.snapshot()._repr_mimebundle_()
        return {**bundle, "image/png": still["image/png"], "text/plain": still["text/plain"]}


def _choose(control: w.Dropdown, options: list[Any], value: Any) -> None:
    """Set what can be chosen, and the choice, only where they differ."""
    if list(control.options) != options:
        control.options = options
    first = options[0][1] if options and isinstance(options[0], tuple) else None
    value = first if value is None else value
    if control.value != value:
        control.value = value
