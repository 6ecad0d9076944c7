"""An own grid works as the page about it says, and every mistake is named with what to do."""

import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from skipper.envs.grid.family import GridFamily, register_grid
from skipper.envs.grid.playable import GymGrid
from skipper.envs.registry import find_family

PAGE = Path(__file__).parents[3] / "docs" / "your_environment.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def pond() -> type:
    """The class on the page."""
    names: dict = {"__name__": "pond"}
    exec(BLOCKS[0], names)
    return names["Pond"]


def test_the_page_is_executed_as_written(pond, tmp_path, monkeypatch):
    assert len(BLOCKS[0].split("class Pond")[1].strip().splitlines()) <= 36
    monkeypatch.chdir(tmp_path)
    exec(BLOCKS[1], {"__name__": "pond"})
    assert (tmp_path / "runs" / "pond-debug" / "evaluations.jsonl").read_text()


def test_it_is_asked_for_everything(pond):
    family = find_family("pond")
    world = family.world("debug")
    spec = family.spec(world)
    assert (spec.shape, spec.vocabulary, spec.actions) == ((5, 5, 2), (3, 2), 4)
    assert spec.gives_goals
    assert spec.oracle is None
    assert family.actions == ("right", "down", "left", "up")
    assert family.scene.parts == (25,)
    assert family.facts.states <= 25
    assert "transition tables" in family.how_stepped(world, family.training_tasks(world, 2, 0))
    assert family.truth(family.training_tasks(world, 2, 0)).distances(np.array([0]), np.array([0])).min() == 0


def broken(pond: type, **changes) -> GridFamily:
    """The family of a changed pond."""
    return GridFamily("broken", lambda: GymGrid(type("Broken", (pond,), changes)))


def change_observation(function):
    """Changes for a class whose observations go through ``function``."""

    def _observe(self, at):
        agent = np.zeros((5, 5), np.uint8)
        agent[at] = 1
        return function(np.stack([self.ground, agent], -1))

    return {"_observe": _observe}


def test_mistakes_are_named(pond):
    box = gym.spaces.Box
    cases = {
        "wanted observations of whole numbers, such as uint8, got float32": {
            "observation_space": box(0, 1, (5, 5, 2), np.float32)
        },
        "declare how many each really has": {"observation_space": box(0, 255, (5, 5, 3), np.uint8)},
        r"wanted observations \(W, H, C\)": {"observation_space": box(0, 3, (25,), np.uint8)},
        "wanted a few numbered actions": {"action_space": box(-1, 1, (2,))},
        "use --env minigrid:ID": {"observation_space": gym.spaces.Dict(image=box(0, 255, (7, 7, 3), np.uint8))},
        "unknown object index: channel 0 of the goal holds": change_observation(lambda seen: np.add(seen, (5, 0))),
        r"channel 0 of the goal holds -1 at \(0, 0\)": change_observation(
            lambda seen: np.subtract(seen, (1, 0), dtype=int)
        ),
        "wanted the goal in whole numbers": change_observation(lambda seen: seen / 2),
        "not fully observable: wanted one agent in the last channel": change_observation(
            lambda seen: np.multiply(seen, (1, 0))
        ),
        "all layouts have one size": change_observation(lambda seen: seen[:4]),
    }
    for message, changes in cases.items():
        with pytest.raises(ValueError, match=message):
            broken(pond, **changes).spec(None)


def test_a_hidden_counter_is_noticed(pond):
    def step(self, action):
        self.moves = getattr(self, "moves", 0) + 1
        if self.moves % 3 == 0:
            return self._observe(self.at), 0.0, False, False, {}
        return pond.step(self, action)

    with pytest.raises(ValueError, match="an observation does not identify the state"):
        broken(pond, step=step).spec(None)


def test_a_goal_that_no_state_looks_like_is_refused(pond):
    def reset(self, *, seed=None, options=None):
        start, info = pond.reset(self, seed=seed)
        info["goal"][0, 0, 0] = 1  # water that is not there
        return start, info

    with pytest.raises(ValueError, match="no state looks like the goal"):
        broken(pond, reset=reset).spec(None)


def test_the_viewer_is_told_what_changes(pond):
    family = find_family("pond")
    start = family.env.reset(0)
    assert family.detail(start) == (family.layout(start), None, "")
    turned = start[..., [0, 1]] * np.array([1, 3], np.uint8)
    space = gym.spaces.MultiDiscrete(np.full((5, 5, 2), (3, 5)))
    assert broken(pond, observation_space=space).detail(turned) == (family.layout(start), 2, "")


def test_without_a_goal_it_is_learned(pond):
    def reset(self, *, seed=None, options=None):
        return pond.reset(self, seed=seed)[0], {}

    family = broken(pond, reset=reset)
    assert not family.spec(family.world("debug")).gives_goals
    with pytest.raises(ValueError, match="pass goal="):
        family.scene.goal_cell(np.zeros((1, 5, 5, 2), np.uint8))


def test_what_is_no_environment_is_refused():
    with pytest.raises(ValueError, match="wanted a class or an id"):
        register_grid("nothing", 3)
