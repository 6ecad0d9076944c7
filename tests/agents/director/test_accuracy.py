from types import SimpleNamespace

import numpy as np
import torch

from skipper.agents.director.accuracy import OBSERVED, cell_accuracy, foreseen_endings
from skipper.agents.director.layers import UniformNoise
from skipper.agents.director.world_model import State
from skipper.analysis.world_model_accuracy import random_sequences
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import LAVA, environment_spec
from skipper.envs.lava.tasks import training_tasks

WORLD = LavaConfig(6, 6, difficulty=0.2, max_steps=30)
SPEC = environment_spec(WORLD)


class StandingStill:
    """A model that sees perfectly and imagines that the agent stays where it was last seen."""

    dynamics = SimpleNamespace(shape=(1, 1))

    def __init__(self, cells: np.ndarray) -> None:
        self.cells = torch.from_numpy(cells.T)  # (T, B)

    def open_loop(self, _batch, observed, _uniform):
        return torch.cat([self.cells[:observed], self.cells[observed - 1].expand(len(self.cells) - observed, -1)])


class Clairvoyant(StandingStill):
    """A model that imagines what comes."""

    def open_loop(self, _batch, _observed, _uniform):
        return self.cells


def test_a_model_that_expects_nothing_to_move_is_right_only_where_nothing_moves():
    drawn = random_sequences(LAVA, training_tasks(WORLD, 3, seed=0), SPEC, np.random.default_rng(0))
    B, T = drawn.reward.shape  # noqa: N806
    cells = SPEC.scene.agent_cell(drawn.observation.reshape(B * T, *SPEC.shape)).reshape(B, T)
    found = cell_accuracy(StandingStill(cells), SPEC, drawn, UniformNoise(np.random.default_rng(0), "cpu"))
    stayed = (cells[:, OBSERVED] == cells[:, OBSERVED - 1]).mean()
    assert found["cell_seen"] == 1.0
    assert found["cell_moved"] == 0.0
    assert found["cell_imagined_1"] == stayed > 0.1
    # Sequences that go on with another episode do not count.
    other = np.zeros_like(drawn.first)
    other[1:, 7] = True
    only = cell_accuracy(
        StandingStill(cells[:1]), SPEC, drawn._replace(first=other), UniformNoise(np.random.default_rng(0), "cpu")
    )
    assert set(only.values()) <= {0.0, 1.0}
    other[0, 7] = True
    assert not cell_accuracy(StandingStill(cells), SPEC, drawn._replace(first=other), UniformNoise(None, "cpu"))
    known = cell_accuracy(Clairvoyant(cells), SPEC, drawn, UniformNoise(np.random.default_rng(0), "cpu"))
    assert set(known.values()) == {1.0}


class Clock(torch.nn.Module):
    """A model whose state counts the states that it sees, and that expects the end after the fifth."""

    def __init__(self) -> None:
        super().__init__()
        self.dynamics = SimpleNamespace(shape=(1, 1), observe=self.observe, imagine=self.imagine)

    def embed(self, classes):
        return classes

    def observe(self, embedding, action, _uniform, first):
        count, counts = torch.zeros(action.shape[1]), []
        for t in range(len(action)):
            count = torch.where(first[t], 1.0, count + 1)
            counts.append(count)
        counts = torch.stack(counts)[..., None]
        return State(counts, counts), None

    def imagine(self, state, _action, _uniform):
        return state

    def predict_continuation(self, features):
        return (features[..., 0] <= 5).float()


def test_a_clock_foresees_endings_by_the_number_of_states_that_it_has_seen():
    rng = np.random.default_rng(0)
    drawn = random_sequences(LAVA, training_tasks(WORLD, 3, seed=0), SPEC, rng, across_episodes=True)
    found = foreseen_endings(Clock(), SPEC, drawn, UniformNoise(rng, "cpu"))
    assert {name: value for name, value in found.items() if name.startswith("lives")} == {
        "lives_2": 1.0,
        "lives_5": 1.0,
        "lives_8": 0.0,
        "lives_11": 0.0,
    }
    assert (found["ends_2"], found["ends_5"]) == (1.0, 1.0)


def test_endings_are_those_of_the_walks():
    """A model that is told the truth: the continuation of the next state, by where the sequence is."""
    rng = np.random.default_rng(0)
    drawn = random_sequences(LAVA, training_tasks(WORLD, 3, seed=0), SPEC, rng, across_episodes=True)
    told = Clock()
    truth = torch.from_numpy(1.0 - drawn.terminal[:, 1:].T)
    told.predict_continuation = lambda features: truth
    found = foreseen_endings(told, SPEC, drawn, UniformNoise(rng, "cpu"))
    assert all(value == (1.0 if name.startswith("lives") else 0.0) for name, value in found.items())
    assert {"lives_2", "ends_2", "lives_5", "ends_5"} <= set(found)
