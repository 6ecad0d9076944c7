import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from skipper.analysis import paper_figures
from skipper.analysis.paper_figures import (
    ASIDE,
    draw_against_tasks,
    draw_bars,
    draw_curves,
    draw_supports,
    draw_suppression,
    draw_walks,
    styles,
)
from skipper.experiments.paper import ITEMS

SETS = ["training", "0.25", "0.35", "0.45", "0.55"]


def records(rate: float, steps=(0, 100, 200), **more):
    return [{"step": step} | {name: {"success": rate * step / 200} for name in SETS} | more for step in steps]


@pytest.fixture
def drawn(monkeypatch):
    figures = []
    save = paper_figures.save
    monkeypatch.setattr(paper_figures, "save", lambda figure, path: figures.append(figure) or save(figure, path))
    return figures


def test_curves_are_means_over_seeds_in_five_panels(drawn, tmp_path):
    curves = {"once": [records(0.8), records(0.6, steps=(0, 50, 100, 200))], "leap": [records(0.4)]}
    files = draw_curves(curves, SETS, tmp_path / "new" / "figure", "difficulty")
    assert [path.name for path in files] == ["figure.png", "figure.svg"]
    assert all(path.stat().st_size > 5_000 for path in files)
    panels = drawn[0].axes
    assert [axes.get_title() for axes in panels][:2] == ["training tasks", "unseen, difficulty 0.25"]
    once, leap = panels[3].get_lines()
    assert once.get_xydata().tolist() == [[0, 0], [100, pytest.approx(0.35)], [200, pytest.approx(0.7)]]
    assert leap.get_ydata().tolist() == pytest.approx([0, 0.2, 0.4])
    assert once.get_linestyle() != leap.get_linestyle()
    assert once.get_marker() != leap.get_marker()
    (band, _) = panels[3].collections
    last = [y for x, y in band.get_paths()[0].vertices if x == 200]
    assert (min(last), max(last)) == pytest.approx((0.6, 0.8))  # from one of the two seeds to the other


def test_the_same_data_give_the_same_bytes(tmp_path):
    curves = {"once": [records(0.8)]}
    one, two = (draw_curves(curves, SETS, tmp_path / name / "figure", "set") for name in ("a", "b"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_success_against_numbers_of_tasks(drawn, tmp_path):
    sets = {name: np.array([0.4, 0.6]) for name in SETS[1:]}
    points = {"once": {"1": sets, "inf": sets}, "director, walls": {"1": sets}}
    draw_against_tasks(points, SETS[1:], tmp_path / "figure", "difficulty")
    axes = drawn[0].axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "inf"]
    drawn_points = [container.lines[0].get_xydata().tolist() for container in axes.containers]
    aside = ASIDE / 2
    assert np.allclose(drawn_points[0], [[-aside, 0.5], [1 - aside, 0.5]])
    assert np.allclose(drawn_points[1], [[aside, 0.5]])


def test_numbers_of_tasks_are_in_order_whatever_series_has_them(drawn, tmp_path):
    sets = {name: np.array([0.5, 0.5]) for name in SETS}
    points = {"leap": {"50": sets, "1": sets}, "once": {"inf": sets, "5": sets}}
    draw_against_tasks(points, SETS, tmp_path / "figure", "difficulty")
    assert [text.get_text() for text in drawn[0].axes[0].get_xticklabels()] == ["1", "5", "50", "inf"]
    lines = [container.lines[0].get_xdata() for container in drawn[0].axes[0].containers]
    assert all((np.diff(line) > 0).all() for line in lines)


def test_bars_have_hatches_and_leave_room_for_what_is_missing(drawn, tmp_path):
    success = {"12 of 32": {name: np.array([0.5, 0.7]) for name in SETS}, "none": {"0.25": np.array([0.2, 0.2])}}
    draw_bars(success, SETS, tmp_path / "figure", "difficulty")
    bars = drawn[0].axes[0].patches
    assert [round(bar.get_height(), 3) for bar in bars] == [0.6] * 5 + [0.2]
    assert len({bar.get_hatch() for bar in bars}) == 2


def test_one_seed_has_no_interval(drawn, tmp_path):
    one = {name: np.array([0.5]) for name in SETS}
    draw_bars({"leap": one}, SETS, tmp_path / "bars", "difficulty")
    draw_against_tasks({"leap": {"5": one}}, SETS, tmp_path / "tasks", "difficulty")
    draw_curves({"leap": [records(0.5)]}, SETS, tmp_path / "curves", "difficulty")
    bars, tasks, curves = (figure.axes[0] for figure in drawn)
    for axes in (bars, tasks):
        _, caps, _ = next(each for each in axes.containers if isinstance(each, ErrorbarContainer)).lines
        assert np.isnan(np.concatenate([cap.get_ydata() for cap in caps]).astype(float)).all()
    assert np.nanmax(curves.get_lines()[0].get_ydata()) == 0.5


def test_suppression_shows_four_measures(drawn, tmp_path):
    plans = {"edge_error_from_delusional": 3.0, "edge_error_to_delusional": 5.0, "delusional_target": None}
    truth = {"training": {"plans": plans | {"optimal_target": 0.5}}}
    draw_suppression({"suppressed": [records(0.5, truth=truth)]}, tmp_path / "figure")
    success, errors, targets, optimal = drawn[0].axes
    assert success.get_lines()[0].get_ydata()[-1] == 0.5
    assert [line.get_label() for line in errors.get_lines()] == ["suppressed, from", "suppressed, to"]
    assert [line.get_ydata()[-1] for line in errors.get_lines()] == [3.0, 5.0]
    assert np.isnan(targets.get_lines()[0].get_ydata()).all()
    assert optimal.get_lines()[0].get_ydata()[0] == 0.5


def test_walks_and_supports(drawn, tmp_path):
    rates = {str(steps): np.array([steps / 20, steps / 20]) for steps in (10, 2, 1)}
    draw_walks({"0.25": rates}, 8, tmp_path / "walks")
    assert drawn[0].axes[0].get_lines()[0].get_xydata().tolist() == [[1, 0.05], [2, 0.1], [10, 0.5]]
    draw_supports(np.array([0.5, 0.0, 0.5]), 0.5, tmp_path / "supports")
    means = [axes.get_lines()[0].get_xdata()[0] for axes in drawn[1].axes]
    assert means == [2.0, 0.5 * 0.5 + 0.5 * 0.125]


def test_the_series_of_every_item_are_told_apart_without_colour():
    most = max(len(item.series) for item in ITEMS.values())
    found = styles([str(number) for number in range(most)])
    assert len({(str(style.line), style.marker) for style in found.values()}) == most
    bars = max(len(item.series) for item in ITEMS.values() if item.layout == "bars")
    assert len({style.hatch for style in list(found.values())[:bars]}) == bars
