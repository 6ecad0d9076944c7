import numpy as np
import pytest
from matplotlib.animation import PillowWriter
from matplotlib.figure import Figure
from matplotlib.image import imread

from skipper.analysis.plots import (
    animate_episode,
    draw_decision,
    draw_learning_curves,
    draw_moment,
    draw_task,
    draw_tasks,
)
from skipper.envs.lava.family import LAVA
from skipper.envs.lava.render import render_rgb
from skipper.envs.lava.tasks import tasks_from_text

DRAWINGS = ("A.#..\n#...G\n.....", "G....\n.###.\n....A")


def test_a_task_and_its_path_are_drawn_where_they_are():
    tasks = tasks_from_text(*DRAWINGS)
    axes = Figure().subplots()
    assert draw_task(axes, LAVA, tasks, 1) == 6
    (image,), (line,) = axes.get_images(), axes.get_lines()
    seen = tasks.observe(np.array([1]), tasks.table.start[[1]])[0]
    assert (image.get_array() == render_rgb(seen)).all()
    assert list(image.get_extent()) == [0, 5, 3, 0]
    x, y = line.get_data()
    assert (x[0], y[0], x[-1], y[-1]) == (4.5, 2.5, 0.5, 0.5)
    assert (abs(np.diff(x)) + abs(np.diff(y)) == 1).all()


def test_a_picture_of_every_set(tmp_path):
    sets = {"easy": tasks_from_text(DRAWINGS[0]), "hard": tasks_from_text(DRAWINGS[1])}
    draw_tasks(LAVA, sets, tmp_path / "tasks.png")
    image = imread(tmp_path / "tasks.png")
    height, width, _ = image.shape
    assert width > 1.5 * height
    orange = (image[..., 0] > 0.9) & (abs(image[..., 1] - 0.5) < 0.05) & (image[..., 2] < 0.1)
    left, right = orange[:, : width // 2].sum(), orange[:, width // 2 :].sum()
    assert 1.3 < right / left < 1.7  # three lava cells against two


def record(step: int, success: float) -> dict:
    summary = {"success": success, "low": success / 2, "high": (1 + success) / 2}
    return {"step": step, "training": summary, "0.25": summary}


def test_learning_curves_show_every_run_in_every_panel(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    curves = {"one": [record(0, 0.0), record(10, 0.5)], "two": [record(0, 0.1), record(20, 0.9)]}
    draw_learning_curves(curves, tmp_path / "curves.png", "difficulty")
    (figure,) = drawn
    assert [axes.get_title() for axes in figure.axes] == ["training tasks", "unseen, difficulty 0.25"]
    for axes in figure.axes:
        assert [list(line.get_xdata()) for line in axes.get_lines()] == [[0, 10], [0, 20]]
        assert [list(line.get_ydata()) for line in axes.get_lines()] == [[0.0, 0.5], [0.1, 0.9]]
        assert len(axes.collections) == 2


# A plan on a grid of 3x2 cells: from cell 0 over cell 2 to the goal, cell 4; cell 5 cannot be reached.
PLAN = {
    "cells": [0, 2, 5, 4],
    "states": [0, 2, 5, 4],
    "kept": [1, 1, 1, 1],
    "status": ["2000", "3200", "3525", "3552"],
    "route": [0, 1, 3],
}
EPISODE = {
    "layout": "...#G.",
    "optimal": [0, 2, 4],
    "end": 4,
    "outcome": "success",
    "steps": [{"cell": 0, "target": 2, "plan": 0}, {"cell": 2, "target": 4, "plan": 0}],
    "plans": [PLAN],
    "truth": {"states": [0, 2, 4, 5], "distance": [[0, 1, 2, -1], [1, 0, 1, -1], [-1, -1, 0, -1], [-1, -1, -1, 0]]},
}
DATA = {"width": 3, "height": 2, "episodes": [EPISODE]}
PICTURE = np.zeros((4, 6, 3), np.uint8)


def test_a_moment_shows_plan_target_and_delusions(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    draw_moment(DATA, 0, 1, PICTURE, tmp_path / "moment.png")
    (axes,) = drawn[0].axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()}
    assert lines["plan"] == [[0.5, 0.5], [1.5, 0.5], [2.5, 0.5]]
    assert lines["path so far"][-1] == [1.5, 0.5]
    spots = {found.get_label(): found.get_offsets().tolist() for found in axes.collections}
    assert spots["next target"] == [[2.5, 0.5]]
    assert spots["delusions"] == [[2.5, 1.5]]
    assert spots["checkpoints"] == [[1.5, 0.5], [2.5, 0.5]]
    dashed = [line.get_xydata().tolist() for line in axes.get_lines() if line.get_linestyle() == "--"]
    assert dashed == [[[0.5, 0.5], [2.5, 1.5]], [[1.5, 0.5], [2.5, 1.5]]]


def test_a_decision_is_drawn_part_by_part(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: drawn.update({path.stem: figure.axes[0]}))
    plan = PLAN | {"kept": [1, 1, 0, 1], "status": ["2010", "3210", "1111", "3512"], "value": [0.25, 0.5, 0.0, 0.0]}
    paths = draw_decision({**DATA, "episodes": [EPISODE | {"plans": [plan]}]}, 0, 0, PICTURE, tmp_path)
    assert [path.stem for path in paths] == list(drawn)
    state, checkpoints, vertices, edges, values, target, walk = drawn.values()
    spots = {
        axes: [found.get_offsets().tolist() for found in axes.collections]
        for axes in (state, checkpoints, vertices, edges, values, target, walk)
    }
    one, gone, goal, here = [1.5, 0.5], [2.5, 1.5], [2.5, 0.5], [0.5, 0.5]
    assert spots[state] == []
    assert spots[checkpoints] == [[one, gone, goal]]
    assert spots[vertices] == [[gone], [one, goal]]
    assert [line.get_xydata().tolist() for line in edges.get_lines()] == [[here, one], [here, goal], [one, goal]]
    assert [text.get_text() for text in values.texts] == [".25", ".50", ".00"]
    assert target.get_lines()[0].get_xydata().tolist() == [here, one, goal]
    assert spots[target] == [[one, goal], [one]]
    assert walk.get_lines()[0].get_xydata().tolist() == [here, one, goal]
    with pytest.raises(ValueError, match="wanted a decision with a plan on a graph"):
        draw_decision({**DATA, "episodes": [EPISODE | {"plans": [{"cells": [0]}]}]}, 0, 0, PICTURE, tmp_path)


def test_a_film_shows_every_step_and_the_end(tmp_path, monkeypatch):
    titles = []
    grab = PillowWriter.grab_frame
    monkeypatch.setattr(
        PillowWriter,
        "grab_frame",
        lambda writer, **options: (titles.append(writer.fig.axes[0].get_title()), grab(writer, **options)),
    )
    animate_episode(DATA, 0, [PICTURE] * 3, tmp_path / "film.gif")
    assert titles == [f"step {step} of 2: success" for step in (0, 1, 2, 2, 2)]
    assert (tmp_path / "film.gif").stat().st_size > 1_000
