"""Figures: what is drawn, that nothing is left open, and that files repeat byte for byte."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import packtools as pt
from packtools.drawing import export_figure
from packtools.figures import TradeOffFigure
from packtools.tradeoff import ladder, round_budget


@pytest.fixture(scope="module")
def view():
    return pt.ExplorerModel(pt.load_sample()).view()


def test_the_title_is_the_finding_and_the_caption_has_n_and_counter(view):
    texts = [t.get_text() for t in view.figure().texts]
    assert texts[0] == "71 % fewer tokens, no measurable change in “answer kept”"
    assert "n = 72 of 72 queries" in texts[2]
    assert "cl100k_base" in texts[2]


def test_the_points_stand_where_the_numbers_are(view):
    drawn = TradeOffFigure(view.quality)
    view.draw(drawn)
    assert drawn._here.get_xydata().tolist() == [[view.here["n_tokens"], view.here["quality"] * 100]]
    assert drawn._base.get_xydata().tolist() == [[view.curve.iloc[0]["n_tokens"], 100.0]]
    low, high = drawn._bar.get_ydata()
    row = view.row(view.quality)
    assert (low, high) == pytest.approx((100 + row["ci_low"] * 100, 100 + row["ci_high"] * 100))
    assert len(drawn._curve.get_xydata()) == len(view.curve) - 1


def test_all_text_stays_inside_the_picture(view):
    for width in ("page", "column"):
        figure = view.figure(width)
        renderer = FigureCanvasAgg(figure).get_renderer()
        box = figure.bbox
        assert min(t.get_fontsize() for t in figure.findobj(match=type(figure.texts[0])) if t.get_text()) >= 6
        for text in figure.texts:
            extent = text.get_window_extent(renderer)
            assert extent.x0 >= box.x0 - 1
            assert extent.y0 >= box.y0 - 1
            if width == "page":
                assert extent.x1 <= box.x1 + 1, text.get_text()


def test_exports_repeat_byte_for_byte(view, tmp_path):
    first, second = view.export(tmp_path / "a"), view.export(tmp_path / "b")
    assert [p.name for p in first[:3]] == ["trade_off.png", "trade_off.svg", "trade_off.pdf"]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes(), one.name  # P134


def test_exports_repeat_in_another_process(view, tmp_path):
    code = "import sys, packtools as pt\npt.ExplorerModel(pt.load_sample()).view().export(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "b")], check=True, env={"PYTHONHASHSEED": "77"}
    )
    for path in view.export(tmp_path / "a"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_exports_hold_their_settings(view, tmp_path):
    paths = {
        p.suffix: p for p in export_figure(view.figure(), tmp_path / "f", settings={"budget": 1150, "x": "é"})
    }
    assert b'{"budget": 1150' in paths[".png"].read_bytes()
    assert (
        "&quot;budget&quot;: 1150" in paths[".svg"].read_text()
        or '"budget": 1150' in paths[".svg"].read_text()
    )
    assert b"budget" in paths[".pdf"].read_bytes()
    assert "<text" in paths[".svg"].read_text()  # text stays editable


def test_many_updates_leave_no_open_figures():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared = pt.prepare(pt.load_sample(), counter="chars")
        start = pt.ExplorerModel(prepared).config
        drawn = TradeOffFigure()
        for budget in range(1000, 1300, 100):
            view = pt.ExplorerModel(prepared, config=start.replace(budget=budget)).view()
            view.draw(drawn)
            drawn.png()
    import matplotlib.pyplot as plt

    assert plt.get_fignums() == []  # P122


def tiny(n_queries: int, answers=None, text: str = "some text"):
    rows = [(f"q{q}", f"d{q}", 1) for q in range(n_queries)]
    frame = pd.DataFrame(rows, columns=["qid", "docid", "rank"])
    told = None if answers is None else dict.fromkeys((f"q{q}" for q in range(n_queries)), answers)
    return pt.Run.from_frames(frame, {f"d{q}": text for q in range(n_queries)}, answers=told)


@pytest.mark.parametrize(
    "run",
    [tiny(1), tiny(1, ["text"]), tiny(3, ["text"]), tiny(3, ["nowhere"]), tiny(2, ["text"], "text " * 400)],
    ids=["one query, no labels", "one query", "all equal", "never scored", "long"],
)
@pytest.mark.parametrize("budget", [None, 1, 5, 100_000])
def test_degenerate_data_draw_something_sensible(run, budget):
    start = pt.ExplorerModel(run, counter="chars").config
    view = pt.ExplorerModel(run, counter="chars", config=start.replace(budget=budget)).view()
    drawn = TradeOffFigure(view.quality)
    view.draw(drawn)
    assert drawn.png().startswith(b"\x89PNG")
    assert view.sentences


def test_the_ladder_is_round_and_reaches_the_full_context():
    prepared = pt.prepare(pt.load_sample())
    steps = ladder(prepared, pt.PackerConfig(separator="\n\n"))
    assert steps == sorted(set(steps))
    most = prepared.full("tokens", "\n\n").max()
    assert most <= steps[-1] <= most + 50  # the last one drops nothing
    assert [round_budget(v) for v in (0.2, 87.4, 137, 1234, 98_765)] == [1, 87, 135, 1250, 99_000]


def test_round_budget_changes_a_value_by_less_than_three_percent():
    values = np.geomspace(20, 10**6, 300)
    assert max(abs(round_budget(v) / v - 1) for v in values) < 0.03


def test_unknown_formats_and_widths_list_the_known_ones(view, tmp_path):
    with pytest.raises(pt.SettingError, match="format 'gif' is unknown; known: 'png', 'svg', 'pdf'"):
        export_figure(view.figure(), tmp_path / "x", settings={}, formats=("gif",))
    with pytest.raises(pt.SettingError, match="width 'wide' is unknown; known: 'page', 'column'"):
        TradeOffFigure(width="wide")


@pytest.mark.parametrize("tokens", [[300], [310, 300], [3000, 2900, 3050], [3], [0], [10**9]])
def test_the_cost_axis_always_has_numbers(tokens):
    curve = pd.DataFrame(
        {"n_tokens": [float(t) for t in [tokens[0], *tokens]], "answer_retention": 1.0,
         "answer_retention_ci_low": 0.0, "answer_retention_ci_high": 0.0}
    )  # fmt: skip
    drawn = TradeOffFigure()
    drawn.update(curve, {"n_tokens": tokens[0], "quality": 1.0, "ci_low": 0.0, "ci_high": 0.0}, "t", "s", "c")
    left, right = drawn.axes.get_xlim()
    assert sum(left <= t <= right for t in drawn.axes.get_xticks()) >= 2
    assert drawn.png()


def test_a_figure_shows_itself_in_jupyter_without_pyplot(view):
    code = (
        "import sys, packtools as pt\n"
        "from IPython.core.formatters import DisplayFormatter\n"
        "figure = pt.ExplorerModel(pt.load_sample()).view().figure()\n"
        "data, _ = DisplayFormatter().format(figure)\n"
        "print(sorted(data), 'matplotlib.pyplot' in sys.modules, data['image/png'][:4])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "['image/png', 'text/plain'] False b'\\x89PNG'"


def test_curves_are_named_where_they_begin_and_share_one_baseline():
    prepared = pt.prepare(pt.load_sample(), counter="chars")
    config = pt.PackerConfig(separator="\n\n", unit="chars", detect_conflicts=False)
    budgets = pt.trade_off(prepared, config, [2000, 4000])
    caps = pt.trade_off(prepared, config, [200, 400], vary="passage_budget")
    figure = pt.curves_figure({"whole": budgets, "cut": caps}, title="t", noun="characters")
    (axes,) = figure.axes
    drawn = [np.asarray(line.get_xdata(), float) for line in axes.lines]
    curves = [x.tolist() for x in drawn if len(x) == 2 and np.isfinite(x).all()]
    assert curves == [table["n_tokens"].iloc[1:].tolist() for table in (budgets, caps)]
    names = {t.get_text(): t for t in axes.texts}
    renderer = FigureCanvasAgg(figure).get_renderer()
    for name in ("whole", "cut"):
        assert names[name].get_window_extent(renderer).x0 >= axes.get_window_extent(renderer).x0 - 2
    with pytest.raises(pt.SettingError, match="vary 'cap' is unknown; known: 'budget', 'passage_budget'"):
        pt.trade_off(prepared, config, [200], vary="cap")


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8, 0.98])
def test_the_label_of_this_setting_stays_inside(share):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    prepared = pt.prepare(pt.load_sample(), counter="chars")
    full = prepared.evaluate(pt.unpacked(pt.PackerConfig(separator="\n\n"))).per_query["n_chars"].mean()
    config = pt.PackerConfig(budget=int(full * share), separator="\n\n", detect_conflicts=False)
    drawn = pt.ExplorerModel(prepared, config=config).view().figure()
    FigureCanvasAgg(drawn).draw()
    label = next(t for t in drawn.axes[0].texts if t.get_text().startswith("this setting"))
    assert label.get_window_extent().x1 <= drawn.bbox.x1
    assert label.get_window_extent().x0 >= 0
