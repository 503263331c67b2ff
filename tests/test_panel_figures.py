"""The panel's figures: where things stand, words for thin data, one set of artists, fonts, equal bytes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg

import packtools as pt
from packtools import drawing
from packtools.drawing import drawable, export_figure
from packtools.figures import TradeOffFigure
from packtools.panel_figures import HeadroomFigure, PositionFigure, headroom_title, position_title
from packtools.spread_figure import DeltasFigure, deltas_title

NAN = float("nan")
WIDTHS = ("page", "column")


def curve(metric: str = "answer_retention", values=(0.2, 0.6, 0.9), base: float = 1.0) -> pd.DataFrame:
    """A baseline of 4,000 tokens, and three budgets that cost what they allow."""
    budgets = [250.0, 500.0, 1000.0]
    return pd.DataFrame(
        {
            "budget": [NAN, *budgets],
            "n_tokens": [4000.0, *budgets],
            metric: [base, *values],
            f"{metric}_ci_low": [0.0, *(v - base - 0.1 for v in values)],
            f"{metric}_ci_high": [0.0, *(v - base + 0.1 for v in values)],
        },
        index=["everything", "250", "500", "1,000"],
    )


def room() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "best": [0.5, 0.9, 0.9],
            "kept": [0.2, 0.6, 0.9],
            "room": [0.3, 0.3, 0.0],
            "room_ci_low": [0.2, 0.0, 0.0],
            "room_ci_high": [0.4, 0.5, 0.0],
        },
        index=pd.Index([250, 500, 1000], name="budget"),
    )


HERE = {"n_tokens": 500.0, "quality": 0.6, "ci_low": -0.5, "ci_high": -0.3}
WORDS = ("A title", "a subtitle", "n = 4\nmore")


def pins(names, quality=0.5) -> pd.DataFrame:
    cost = np.geomspace(200, 3000, len(names))
    return pd.DataFrame({"n_tokens": cost, "quality": quality}, index=list(names))


def trade_off(width="page", points=None, **there):
    drawn = TradeOffFigure("answer_retention", width)
    drawn.update(curve(), HERE | there, *WORDS, points=points)
    return drawn


def headroom(width="page", oracle=True):
    drawn = HeadroomFigure("answer_retention", width)
    drawn.update(curve(), room() if oracle else None, {"budget": 500, "quality": 0.6}, *WORDS)
    return drawn


def deltas(values, metric="answer_retention", width="page", mean=None):
    series = pd.Series(values, dtype=float)
    row = {"delta": series.mean(), "ci_low": NAN, "ci_high": NAN} if mean is None else mean
    drawn = DeltasFigure(metric, width)
    drawn.update(series, row, *WORDS)
    return drawn


def position(before, here, width="page", against="everything"):
    drawn = PositionFigure(width)
    drawn.update(before, here, *WORDS, against=against)
    return drawn


KINDS = {
    "trade_off": lambda width: trade_off(width, pins("ABCDEF")),
    "headroom": headroom,
    "deltas": lambda width: deltas(
        [-1, 0, 0, 1], width=width, mean={"delta": 0.0, "ci_low": -0.5, "ci_high": 0.5}
    ),
    "histogram": lambda width: deltas(np.linspace(-0.5, 0.3, 9), "gold_retention", width),
    "position": lambda width: position([0.1, 0.5, NAN], [0.9, NAN, 0.2], width),
}


def boxes(figure, chosen=lambda text: True):
    """Where the renderer draws the visible texts."""
    FigureCanvasAgg(figure).draw()
    texts = [t for t in figure.findobj(match=type(figure.texts[0])) if t.get_text() and t.get_visible()]
    for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):  # ticks out of view are not drawn
        low, high = sorted(axis.get_view_interval())
        unseen = [tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]
        texts = [t for t in texts if t not in unseen]
    return {t.get_text(): t.get_window_extent() for t in texts if chosen(t)}


def bars(drawn):
    """Left, right and height of the bars of a side."""
    found = [p.vertices for p in drawn.get_paths()]
    return [(v[:, 0].min(), v[:, 0].max(), v[:, 1].max()) for v in found]


# --- all of them ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", WIDTHS)
def test_text_is_large_enough_and_inside_the_picture(kind, width):
    figure = KINDS[kind](width).figure
    assert figure.get_figwidth() == {"page": 6.9, "column": 3.3}[width]
    for text, at in boxes(figure).items():
        assert figure.bbox.x0 <= at.x0, text
        assert figure.bbox.y0 <= at.y0, text
        assert at.x1 <= figure.bbox.x1 + 1, text
        assert at.y1 <= figure.bbox.y1 + 1, text
    sizes = [t.get_fontsize() for t in figure.findobj(match=type(figure.texts[0])) if t.get_text()]
    assert min(sizes) >= 7


@pytest.mark.parametrize("kind", KINDS)
def test_words_stand_one_below_the_other(kind):
    long = "Some words that go on and on " * 8
    for width in WIDTHS:
        drawn = KINDS[kind](width)
        drawn.canvas.say(long, long, f"{long}\n{long}")
        FigureCanvasAgg(drawn.figure).draw()
        title, subtitle, caption = (t.get_window_extent() for t in drawn.canvas.words)
        axes = drawn.axes.get_tightbbox()
        assert title.y0 >= subtitle.y1 - 1
        assert subtitle.y0 >= drawn.axes.get_window_extent().y1 - 1
        assert axes.y0 >= caption.y1 - 1


def test_updates_add_no_artists():
    pairs = [
        (trade_off(points=pins("AB")), lambda d: d.update(curve(), HERE, *WORDS, points=pins("ABCDEF"))),
        (headroom(), lambda d: d.update(curve(), None, {"budget": None, "quality": 0.9}, *WORDS)),
        (deltas([0, 1]), lambda d: d.update(pd.Series([0.1, -0.2, 0.0]), HERE | {"delta": 0.1}, *WORDS)),
        (position([0.1], [0.2]), lambda d: d.update([0.4, NAN], [0.2, 0.9], *WORDS)),
    ]
    for drawn, change in pairs:
        drawn.png()
        before = {id(a) for a in drawn.axes.get_children()} | {id(t) for t in drawn.figure.texts}
        change(drawn)
        drawn.png()
        assert {id(a) for a in drawn.axes.get_children()} | {id(t) for t in drawn.figure.texts} == before


def test_files_repeat_byte_for_byte(tmp_path):  # P134
    for name in ("headroom", "deltas", "position"):
        drawn = KINDS[name]("column")
        first = export_figure(drawn.figure, tmp_path / "a" / name, settings={"x": 1}, dpi=40)
        drawn.png()
        again = export_figure(drawn.figure, tmp_path / "b" / name, settings={"x": 1}, dpi=40)
        for one, two in zip(first, again, strict=True):
            assert one.read_bytes() == two.read_bytes(), one.name


def test_a_figure_that_was_updated_is_that_of_new_data(tmp_path):
    used = trade_off(points=pins("ABCDEF"))
    used.png()
    used.update(curve(), HERE, *WORDS)
    assert used.png() == trade_off().png()
    used = headroom()
    used.update(curve(), None, {"budget": 500, "quality": 0.6}, *WORDS)
    assert used.png() == headroom(oracle=False).png()
    used = deltas(np.linspace(-1, 1, 50), "gold_retention")
    used.update(pd.Series([1.0, 0.0]), {"delta": 0.5, "ci_low": NAN, "ci_high": NAN}, *WORDS)
    assert used.png() == deltas([1.0, 0.0], "gold_retention").png()
    used = position([0.1] * 9, [NAN] * 9)
    used.update([0.5], [0.6], *WORDS)
    assert used.png() == position([0.5], [0.6]).png()


# --- pinned settings --------------------------------------------------------------------------------


def test_pinned_settings_stand_at_their_numbers_with_their_names():
    drawn = trade_off(
        points=pd.DataFrame({"n_tokens": [300, 900.0], "quality": [0.7, 0.1]}, index=["A", "B"])
    )
    shown = [(m.get_xydata().tolist(), label.get_text()) for m, label in drawn._pins if m.get_visible()]
    assert shown == [([[300, 70]], "A"), ([[900, 10]], "B")]
    looks = {(m.get_marker(), m.get_color()) for m, _ in drawn._pins}
    assert len({marker for marker, _ in looks}) == 6


def test_the_front_is_what_no_other_setting_beats():
    points = pd.DataFrame({"n_tokens": [400.0, 900.0], "quality": [0.7, 0.1]}, index=["good", "bad"])
    drawn = trade_off(points=points)
    # The curve's (500, 60) and this setting are beaten by (400, 70), and (900, 10) by all that cost less.
    assert drawn._front.get_xydata().tolist() == [[250, 20], [400, 70], [1000, 90]]
    drawn.update(curve(), HERE, *WORDS)
    assert not drawn._front.get_visible()


def test_the_front_of_a_metric_that_is_better_low():
    drawn = TradeOffFigure("answer_position")
    points = pd.DataFrame({"n_tokens": [100.0, 600.0], "quality": [0.8, 0.1]}, index=["A", "B"])
    drawn.update(
        curve("answer_position", (0.5, 0.3, 0.2), 0.4), HERE | {"quality": 0.9}, *WORDS, points=points
    )
    assert drawn._front.get_xydata().tolist() == [[100, 80], [250, 50], [500, 30], [600, 10]]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("names", ["ABCDEF", ["tight", "half", "descending", "cut", "no dedup", "B"]])
def test_labels_of_pinned_settings_keep_apart_and_inside(width, names):
    for quality in (0.5, np.linspace(0.1, 1, 6)):
        drawn = trade_off(width, pins(names, quality))
        found = boxes(drawn.figure, lambda t: t.get_text() in set(names))
        assert len(found) == 6
        frame = drawn.axes.get_window_extent()
        for name, at in found.items():
            assert frame.x0 - 1 <= at.x0, name
            assert at.x1 <= frame.x1 + 1, name
            others = [other for word, other in found.items() if word != name]
            assert not any(at.overlaps(other) for other in others), name


def test_more_than_six_pinned_settings_are_refused():
    with pytest.raises(pt.SettingError) as raised:
        trade_off(points=pins("ABCDEFG"))
    assert str(raised.value) == (
        "TradeOffFigure.update: 'points' must be at most 6 pinned settings; got 7. Unpin one."
    )


# --- quality by budget ------------------------------------------------------------------------------


def test_the_room_lies_between_the_best_and_what_is_kept():
    drawn = headroom()
    assert drawn._curve.get_xydata().tolist() == [[250, 20], [500, 60], [1000, 90]]
    assert drawn._best.get_xydata().tolist() == [[250, 50], [500, 90], [1000, 90]]
    outline = {tuple(v) for path in drawn._room.get_paths() for v in path.vertices.tolist()}
    assert {(250, 20), (250, 50), (500, 60), (500, 90), (1000, 90)} <= outline
    assert drawn._here.get_xydata().tolist() == [[500, 60]]
    assert list(drawn._base.get_ydata()) == [100, 100]
    assert np.allclose(drawn._bars.get_segments()[0], [[250, 10], [250, 30]])
    said = {t.get_text() for t in drawn.axes.texts if t.get_visible()}
    assert said == {"everything", "best possible", "this setting: 500"}


def test_without_an_oracle_only_the_curve_is_drawn():
    drawn = headroom(oracle=False)
    assert "best possible" not in {t.get_text() for t in drawn.axes.texts if t.get_visible()}
    assert len(drawn._best.get_xydata()) == 0


def test_a_setting_without_a_budget_stands_at_the_largest():
    drawn = HeadroomFigure()
    drawn.update(curve(), room(), {"budget": None, "quality": 0.9}, *WORDS, "characters")
    assert drawn._here.get_xydata().tolist() == [[1000, 90]]
    assert "this setting: no budget" in {t.get_text() for t in drawn.axes.texts}
    assert drawn.axes.get_xlabel() == "budget, characters (log scale)"


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (260, "At 250 tokens: 30.0 points more are possible"),
        (500, "At 500 tokens: not measurably below the best possible"),
        (1000, "At 1,000 tokens: as good as the best possible"),
        (None, "Without a budget: as good as the best possible"),
    ],
)
def test_the_finding_of_the_headroom(budget, said):
    assert headroom_title("answer_retention", curve(), room(), budget) == said


def test_the_finding_of_a_curve_without_an_oracle():
    # Only 1,000 is within 10 points of the baseline; the lone good value at 250 does not count.
    table = curve(values=(0.99, 0.6, 0.95))
    words = "No measurable loss in “answer kept” from 1,000 tokens on"
    assert headroom_title("answer_retention", table, None, 500) == words
    table = curve(values=(0.1, 0.2, 0.3))
    words = "“answer kept” is measurably worse at every budget"
    assert headroom_title("answer_retention", table, None, 500) == words
    lower = curve("answer_position", (0.9, 0.3, 0.2), 0.4)
    words = "No measurable loss in “place of the answer” from 500 tokens on"
    assert headroom_title("answer_position", lower, None, 500) == words
    nothing = curve(values=(NAN, NAN, NAN), base=NAN)
    assert (
        headroom_title("answer_retention", nothing, None, None) == "answer kept by budget: no query is scored"
    )


def test_a_curve_of_one_query_or_of_none():
    for value in (1.0, 0.0, NAN):
        drawn = HeadroomFigure()
        drawn.update(curve(values=[value] * 3, base=value), None, {"budget": 500, "quality": value}, *WORDS)
        assert drawn.png().startswith(b"\x89PNG")


# --- change per query -------------------------------------------------------------------------------


def test_shares_that_are_all_or_nothing_are_three_bars():
    drawn = deltas([-1, -1, 0, 0, 0, 1, NAN], mean={"delta": -1 / 6, "ci_low": -0.5, "ci_high": 0.25})
    assert [bars(side) for side in drawn._bars] == [[(-125, -75, 2)], [(-25, 25, 3)], [(75, 125, 1)]]
    assert [label.get_text() for label in drawn._labels] == ["2 lost", "3 same", "1 gained"]
    assert list(drawn._bar.get_xdata()) == [-50, 25]
    assert drawn._mean.get_xdata() == pytest.approx([-100 / 6])
    assert drawn._mean_label.get_text() == "mean −16.7 [−50.0, +25.0]"


def test_other_changes_are_a_histogram_with_the_same_apart_and_cut():
    values = [-0.5, -0.2, -0.19, 0.01, *[0.0] * 40]
    drawn = deltas(values, "gold_retention")
    # 50 points in 20 bars are 2.5, the next round step is 5; the far end of a bar belongs to it.
    assert bars(drawn._bars[0]) == [(-50, -45, 1), (-20, -15, 2)]
    assert bars(drawn._bars[2]) == [(0, 5, 1)]
    ((left, right, height),) = bars(drawn._bars[1])
    assert (left, right) == pytest.approx((-5 / 6, 5 / 6))
    assert height == pytest.approx(1.15 * 2)
    assert [t.get_text() for t in drawn._labels] == ["3 worse", "40 same, bar cut", "1 better"]


def test_every_query_is_in_one_bar_on_its_side():
    rng = np.random.default_rng(3)
    for values in (rng.normal(0, 0.2, 400), rng.integers(-9, 4, 400) / 10, rng.random(7) * 1e-3):
        drawn = deltas(values, "gold_retention")
        for side, on_side in ((0, values < 0), (2, values > 0)):
            found = bars(drawn._bars[side])
            assert sum(height for *_, height in found) == on_side.sum()
            for left, right, height in found:
                inside = values * 100 - (1e-9 if side else -1e-9)
                assert ((inside > left) & (inside < right) & on_side).sum() == height


def test_fewer_chunks_are_better_though_their_number_falls():
    drawn = deltas([-3, -3, 0, 1], "n_chunks")
    assert [bars(drawn._bars[side]) for side in (0, 2)] == [[(0, 1, 1)], [(-3, -2, 2)]]
    assert [t.get_text() for t in drawn._labels] == ["1 worse", "1 same", "2 better"]
    assert deltas_title("n_chunks", pd.Series([-3.0, -3, 0, 1])) == "“chunks”: 1 query worse, 2 better, of 4"


@pytest.mark.parametrize(
    ("values", "metric", "labels"),
    [
        ([0.0] * 9, "answer_retention", ["0 lost", "9 same", "0 gained"]),
        ([0.0] * 9, "n_chunks", ["0 worse", "9 same", "0 better"]),
        ([-0.5] * 9, "gold_retention", ["9 worse"]),
        ([1.0], "answer_retention", ["0 lost", "0 same", "1 gained"]),
        ([NAN, NAN], "answer_retention", []),
        ([], "gold_retention", []),
    ],
    ids=["all the same", "same chunks", "equal loss", "one query", "none scored", "no query"],
)
def test_thin_data_draw_something_sensible(values, metric, labels):
    drawn = deltas(values, metric, "column")
    assert drawn.png().startswith(b"\x89PNG")
    assert [t.get_text() for t in drawn._labels if t.get_visible()] == labels
    assert drawn._none.get_visible() == (not labels)
    left, right = drawn.axes.get_xlim()
    assert left < 0 < right
    assert drawn._mean_label.get_visible() == bool(labels)


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_of_the_bars_keep_apart(width):
    rng = np.random.default_rng(5)
    for values in ([-1, 0, 1], [-1] * 9 + [0], np.round(rng.normal(0, 0.2, 300), 1), rng.random(60)):
        mean = {"delta": float(np.mean(values)), "ci_low": -0.05, "ci_high": 0.05}
        drawn = deltas(values, "gold_retention", width, mean)
        ours = {t.get_text() for t in [*drawn._labels, drawn._mean_label] if t.get_visible()}
        found = list(boxes(drawn.figure, lambda t, ours=ours: t.get_text() in ours).values())
        assert not any(a.overlaps(b) for i, a in enumerate(found) for b in found[:i])


def test_the_finding_of_the_changes():
    say = deltas_title
    assert (
        say("answer_retention", pd.Series([-1.0, -1, 1, 0])) == "2 queries lost their answer, 1 gained, of 4"
    )
    assert say("answer_retention", pd.Series([0.0, 0])) == "No query changes in “answer kept” (n = 2)"
    assert say("gold_retention", pd.Series([NAN])) == "“relevant passages kept”: no query is scored"
    # For a place, less is better.
    assert say("answer_position", pd.Series([0.2, -0.1, -0.3])) == (
        "“place of the answer”: 1 query worse, 2 better, of 3"
    )


# --- place of the evidence --------------------------------------------------------------------------


def test_parts_of_the_prompt_hold_their_share_of_all_queries():
    before = [0.0, 0.05, 0.5, 1.0]
    here = [0.95, 1.0, NAN, 0.1]
    drawn = position(before, here)
    assert [height for *_, height in bars(drawn._parts)] == [0, 25, 0, 0, 0, 0, 0, 0, 0, 50]
    assert drawn._dots.get_ydata().tolist() == [50, 0, 0, 0, 0, 25, 0, 0, 0, 25]
    assert drawn._dots.get_xdata().tolist() == [5, 15, 25, 35, 45, 55, 65, 75, 85, 95]
    assert [t.get_text() for t in drawn._words] == [
        "■ this setting\n25.0 % without\nan answer",
        "○ everything\n0.0 % without\nan answer",
    ]


def test_the_finding_of_the_place():
    before = [0.34, 0.5, 0.1, 0.9, 0.6]
    here = [0.5, 0.67, NAN, 0.2, 0.3]
    assert position_title(before, here) == "Evidence in the middle third: 20 % of queries, 60 % before"
    assert position_title([], []) == "Place of the evidence: no query is scored"


def test_places_of_one_query_of_none_and_of_no_kept_answer():
    for before, here in (([0.2], [0.9]), ([], []), ([0.1] * 3, [NAN] * 3)):
        drawn = position(before, here)
        assert drawn.png().startswith(b"\x89PNG")
        assert drawn._none.get_visible() == (not before)


def test_places_of_other_queries_are_refused():
    with pytest.raises(pt.SettingError) as raised:
        position([0.1, 0.2], [0.1])
    assert str(raised.value) == "PositionFigure.update: 'here' must be as long as before (2); got 1."


# --- fonts ------------------------------------------------------------------------------------------

NAME = "実験−1"


def forget():
    drawing.families.cache_clear()
    drawing._glyphs.cache_clear()


@pytest.fixture
def no_font(monkeypatch):
    """No font for Chinese and the like."""
    fonts = font_manager.fontManager.ttflist
    monkeypatch.setattr(
        font_manager.fontManager, "ttflist", [f for f in fonts if not f.name.startswith(drawing.FALLBACKS)]
    )
    forget()
    yield
    forget()


@pytest.fixture
def tiny_font(no_font, tmp_path):
    """A font that has two letters, each a square, and comes in one weight."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    pen.moveTo((100, 0))
    for corner in ((100, 800), (900, 800), (900, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square, names = pen.glyph(), [".notdef", "one", "two"]
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder(names)
    font.setupCharacterMap({ord("実"): "one", ord("験"): "two"})
    font.setupGlyf(dict.fromkeys(names, square))
    font.setupHorizontalMetrics(dict.fromkeys(names, (1000, 100)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": "WenQuanYi Test", "styleName": "Regular"})
    font.setupOS2(sTypoAscender=800, usWinAscent=800, usWinDescent=200, usWeightClass=400)
    font.setupPost()
    font.save(tmp_path / "tiny.ttf")
    font_manager.fontManager.addfont(tmp_path / "tiny.ttf")
    forget()
    return "WenQuanYi Test"


def named_figures():
    """Each figure with a name that the usual font lacks, wherever a name may stand."""
    table = curve().rename(index={"everything": NAME})
    drawn = [TradeOffFigure(), HeadroomFigure(), deltas([1, 0]), position([0.1], [0.2], against=NAME)]
    drawn[0].update(table, HERE, *WORDS, points=pins([NAME, "B"]))
    drawn[1].update(table, room(), {"budget": 500, "quality": 0.6}, *WORDS)
    for one in drawn:
        one.canvas.say(NAME, NAME, NAME)
    return drawn


def drawn_files(folder):
    """Draw and export them all; any warning or logged complaint is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = named_figures()
        assert all(one.png().startswith(b"\x89PNG") for one in drawn)
        return [
            path.read_bytes()
            for path in export_figure(drawn[0].figure, folder / "f", settings={}, formats=("svg", "pdf"))
        ]


def test_letters_without_a_font_become_boxes(no_font, tmp_path, caplog):  # P133
    assert drawing.families() == ("DejaVu Sans",)
    assert drawable(NAME) == "□□−1"
    drawn_files(tmp_path)
    assert not caplog.records


def test_a_font_that_is_installed_helps_out(tiny_font, tmp_path, caplog):  # P133
    assert drawing.families() == ("DejaVu Sans", tiny_font)
    assert drawable(f"{NAME} 新") == f"{NAME} □"
    first = drawn_files(tmp_path / "a")
    assert first == drawn_files(tmp_path / "b")
    assert not [record for record in caplog.records if "font_manager" in record.name]
    svg = next(text for text in first if text.startswith(b"<?xml")).decode()
    assert NAME in svg
    assert tiny_font in svg


def test_the_first_family_of_the_list_is_taken(tiny_font):
    import dataclasses

    fonts = font_manager.fontManager.ttflist
    fonts.append(dataclasses.replace(fonts[-1], name="Noto Sans CJK JP"))
    forget()
    assert drawing.families() == ("DejaVu Sans", "Noto Sans CJK JP")


def test_a_letter_that_only_the_plain_font_has_is_not_drawn_bold(no_font):
    assert drawable("𝖠") == "□"  # DejaVu Sans Bold has no sans-serif capitals of mathematics


def test_square_letters_count_twice_where_lines_are_cut(tiny_font):
    assert drawable("実" * 10, 11) == "実" * 5 + "…"
    assert drawable("a" * 10, 11) == "a" * 10
    assert drawable("a" * 12, 11) == "a" * 10 + "…"


def test_one_of_a_unit_is_said_in_the_singular():
    room = pd.DataFrame({"room": [0.0], "room_ci_low": [0.0], "room_ci_high": [0.0]}, index=[1])
    said = headroom_title("answer_retention", pd.DataFrame(), room, 1)
    assert said == "At 1 token: as good as the best possible"
