import numpy as np

from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.render import render_rgb, render_text, scenery_of
from skipper.envs.lava.tasks import tasks_from_text

DRAWING = "A#..\n...G\n.#.."


def seen(cell: int, dynamics: str = "lava") -> np.ndarray:
    tasks = tasks_from_text(DRAWING, world=LavaConfig(dynamics=dynamics))
    return tasks.observe(np.array([0]), np.array([cell]))[0]


def test_text_is_the_drawing_that_was_read():
    assert render_text(seen(0)) == DRAWING
    assert render_text(seen(0, "walls")) == DRAWING
    assert render_text(seen(10)) == ".#..\n...A\n.#.."


def test_pictures_show_every_thing_in_its_colour_and_place():
    image = render_rgb(seen(0), tile=16)
    assert image.shape == (48, 64, 3)
    middles = image[8::16, 8::16]  # [y, x]
    assert middles[0, 0].tolist() == [255, 0, 0]
    assert middles[0, 2].tolist() == [0, 0, 0]
    assert middles[1, 3].tolist() == [0, 200, 60]
    lava = image[32:48, 16:32].reshape(-1, 3).mean(0)
    assert lava[0] > 150 > lava[1] > lava[2]
    walls = render_rgb(seen(0, "walls"), tile=16)
    assert walls[8, 24].tolist() == [100, 100, 100]


def test_taking_the_agent_away_uncovers_what_is_under_it():
    for dynamics in ("lava", "walls"):
        expected, _ = scenery_of(seen(0, dynamics))
        for cell in range(12):
            objects, agent = scenery_of(seen(cell, dynamics))
            assert (objects == expected).all()
            assert np.flatnonzero(agent).tolist() == [cell]
