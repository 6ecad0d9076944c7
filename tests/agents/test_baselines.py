import numpy as np
import pytest

from skipper.agents.baselines import OptimalAgent, RandomAgent
from skipper.agents.registry import KINDS, agent_kind, make_baseline
from skipper.types import EnvironmentSpec, TimeStep


class FakeOracle:
    """Claims that the action in the observation's first number is the best one."""

    def action_values(self, observations, targets=None):
        return np.eye(4)[observations[:, 0, 0, 0]]

    def distances(self, observations, targets):
        return np.zeros(len(observations))


def timestep(batch: int) -> TimeStep:
    observation = np.zeros((batch, 3, 3, 2), np.uint8)
    observation[:, 0, 0, 0] = np.arange(batch) % 4
    return TimeStep(observation, observation, np.ones(batch, bool))


def test_the_optimal_agent_does_what_the_oracle_says():
    assert OptimalAgent(FakeOracle()).act(timestep(6)).action.tolist() == [0, 1, 2, 3, 0, 1]


def test_the_random_agent_is_uniform_and_decided_by_its_generator():
    first, second = (RandomAgent(4, np.random.default_rng(0)).act(timestep(8000)).action for _ in "ab")
    assert (first == second).all()
    assert abs(np.bincount(first, minlength=4) / 8000 - 0.25).max() < 0.02


def test_agents_are_made_by_name():
    spec = EnvironmentSpec((3, 3, 2), (11, 6), 7, 10, oracle=FakeOracle())
    given = spec, np.random.default_rng(0)
    for name in ("optimal", "random"):
        assert make_baseline(name, *given).act(timestep(5)).action.shape == (5,)
    assert make_baseline("random", *given).act(timestep(500)).action.max() == 6
    with pytest.raises(ValueError, match="available: optimal, random, skipper-oracle; did you mean 'random'"):
        make_baseline("randm", *given)
    with pytest.raises(ValueError, match="must be trained first"):
        make_baseline("modelfree", *given)


def test_learning_agents_are_found_by_name():
    for name in KINDS:
        assert callable(agent_kind(name).load().train)
    with pytest.raises(ValueError, match="did you mean 'modelfree'"):
        agent_kind("model-free").load()
    with pytest.raises(ValueError, match="trainable: director, leap, leap-suppress, modelfree, skipper"):
        agent_kind("random").load()
