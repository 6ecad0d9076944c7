"""Episodes in MiniGrid: direction, doors, keys and what is carried, as recorded and as the page draws them."""

import numpy as np
import pytest
from playwright.sync_api import Browser

from skipper.agents.registry import make_baseline
from skipper.envs.minigrid.family import minigrid_family
from skipper.envs.minigrid.render import letters
from skipper.viewer.record import Recording, page_data, record, to_html

FAMILY = minigrid_family("MiniGrid-DoorKey-5x5-v0")
TASKS = FAMILY.evaluation_tasks(FAMILY.world("debug"), "unseen", 1, seed=0)


@pytest.fixture(scope="module")
def recording() -> Recording:
    agent = make_baseline("optimal", FAMILY.spec(TASKS.world), np.random.default_rng(0))
    (found,) = record(agent, FAMILY, TASKS, 0)
    return found


def layout_at(episode: dict, shown: dict) -> str:
    layout = list(episode["layout"])
    for cell, letter in shown.get("changed", []):
        layout[cell] = letter
    return "".join(layout)


def test_steps_show_what_observations_hold(recording):
    names = letters(FAMILY.things)
    for step, seen in zip(recording.episode["steps"], recording.observations, strict=False):
        assert layout_at(recording.episode, step) == "".join(names[number] for number in seen[..., 0].ravel())
        assert step["direction"] == seen[..., -1].max() - 1
        assert ("carried" in step) == bool(seen[..., 1].any())


def test_the_end_is_as_the_last_step_where_the_observation_does_not_show_it(recording):
    episode = recording.episode
    assert episode["outcome"] == "success"
    last = episode["steps"][-1]
    assert episode["final"] == {name: last[name] for name in ("direction", "carried", "changed")}
    assert FAMILY.cell_names[episode["final"]["carried"]] == "yellow key"
    opened = [FAMILY.cell_names[letter] for _, letter in episode["final"]["changed"] if letter in FAMILY.cell_names]
    assert opened == ["open yellow door"]


def test_the_end_of_an_episode_that_ran_out_of_time_is_what_it_is():
    agent = make_baseline("random", FAMILY.spec(TASKS.world), np.random.default_rng(0))
    (found,) = record(agent, FAMILY, TASKS, 0)
    assert found.episode["outcome"] == "timeout"
    seen = found.observations[-1]
    assert found.episode["final"]["direction"] == seen[..., -1].max() - 1
    assert layout_at(found.episode, found.episode["final"]) == FAMILY.layout(seen)


def test_the_page_draws_them(recording, browser: Browser, tmp_path):
    episode = {"name": "task 0", **recording.episode}
    path = tmp_path / "page.html"
    path.write_text(to_html(page_data("doors", {}, FAMILY, TASKS, [episode])), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    for index, step in enumerate([*episode["steps"], episode["final"]]):
        page.locator("#scrub").fill(str(index))
        agent = page.locator("#board polygon.agent")
        assert f"rotate({90 * step['direction']})" in agent.get_attribute("transform")
        tips = page.locator("#board .mark").evaluate_all("marks => marks.map(mark => mark.dataset.tip)")
        there = [FAMILY.cell_names[letter] for letter in layout_at(episode, step) if letter in FAMILY.cell_names]
        there += [FAMILY.cell_names[step["carried"]]] if "carried" in step else []
        assert sorted(tip.split(" ", 1)[1] for tip in tips) == sorted(there)  # without "a" or "an"
    assert "facing" in agent.get_attribute("data-tip")
    page.close()
