"""Plans that are no graphs are exported and drawn too: a chain of subgoals, and a picture."""

import struct

import numpy as np
import pytest
from fake_plans import FORECAST, PICTURE, ChainAgent, PictureAgent
from matplotlib.figure import Figure

from skipper.analysis.plots import animate_episode, decoded_picture, draw_moment
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import LAVA
from skipper.envs.lava.tasks import evaluation_tasks
from skipper.viewer.record import Recording, page_data, record

TASKS = evaluation_tasks(LavaConfig(8, 8), 0.3, 2, seed=0)


def recorded(kind: type[ChainAgent]) -> tuple[dict, Recording]:
    recordings = record(kind(LAVA, TASKS), LAVA, TASKS, seed=0)
    data = page_data("x", {}, LAVA, TASKS, [recording.episode for recording in recordings])
    return data, recordings[1]


@pytest.fixture
def drawn(monkeypatch) -> list[Figure]:
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    return figures


def test_a_chain_of_subgoals_is_exported_and_drawn(drawn, tmp_path):
    data, (episode, observations) = recorded(ChainAgent)
    path = episode["optimal"]
    assert episode["outcome"] == "success"
    assert [step["cell"] for step in episode["steps"]] == path[:-1]
    assert len(episode["plans"]) == (len(path) + 2) // 4
    first = episode["plans"][0]
    assert first["cells"] == first["states"] == [path[0], path[2], path[4], path[6]]
    assert (first["route"], first["target"]) == ([0, 1, 2, 3], 1)
    assert not {"status", "tenths", "kept", "picture"} & set(first)
    assert [step["plan"] for step in episode["steps"][:5]] == [0, 0, 0, 0, 1]
    draw_moment(data, 1, 2, LAVA.draw(observations[2]), tmp_path / "moment.png")
    (axes,) = drawn[0].axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()}
    assert lines["plan"] == [[cell // 8 + 0.5, cell % 8 + 0.5] for cell in first["cells"]]
    spots = {found.get_label(): len(found.get_offsets()) for found in axes.collections}
    assert spots == {"subgoals": 3, "next target": 1}


def test_a_plan_that_is_a_picture_is_shown_beside_the_board(drawn, tmp_path):
    data, (episode, observations) = recorded(PictureAgent)
    plan = episode["plans"][0]
    assert (decoded_picture(plan["picture"]) == PICTURE).all()
    assert (np.stack([decoded_picture(each) for each in plan["forecast"]]) == FORECAST).all()
    assert (plan["route"], plan["target"], len(plan["cells"])) == ([0], -1, 1)
    assert "target" not in episode["steps"][0]
    draw_moment(data, 1, 0, LAVA.draw(observations[0]), tmp_path / "moment.png")
    board, picture = drawn[0].axes
    assert (picture.get_images()[0].get_array() == PICTURE).all()
    assert picture.get_title() == "goal of the plan"
    assert {line.get_label() for line in board.get_lines()} == {"path so far", "optimal path"}


@pytest.mark.parametrize(("kind", "panels"), [(ChainAgent, 1), (PictureAgent, 2)])
def test_a_film_has_room_for_the_picture(kind, panels, tmp_path):
    data, (_, observations) = recorded(kind)
    animate_episode(data, 1, [LAVA.draw(seen) for seen in observations[:2]], tmp_path / "film.gif")
    width, height = struct.unpack("<HH", (tmp_path / "film.gif").read_bytes()[6:10])
    assert (width, height) == (320 * panels, 352)


def test_without_ground_truth_no_state_of_a_chain_is_delusional(drawn, tmp_path, monkeypatch):
    agent = ChainAgent(LAVA, TASKS)
    monkeypatch.setattr(type(LAVA), "truth", lambda *_: None)
    recordings = record(agent, LAVA, TASKS, seed=0)
    data = page_data("x", {}, LAVA, TASKS, [recording.episode for recording in recordings])
    assert not {"truth", "optimal"} & set(data["episodes"][0])
    draw_moment(data, 0, 0, np.zeros((8, 8, 3), np.uint8), tmp_path / "moment.png")
    (axes,) = drawn[0].axes
    assert "delusions" not in {found.get_label() for found in axes.collections}
