import numpy as np
import pytest

from skipper.agents.exploration import explore, linear_epsilon
from skipper.config import LearningConfig


def test_epsilon_falls_linearly():
    config = LearningConfig(epsilon_start=1.0, epsilon_end=0.2, epsilon_steps=100)
    assert [linear_epsilon(config, step) for step in (0, 50, 100, 1000)] == pytest.approx([1.0, 0.6, 0.2, 0.2])


def test_exploration_replaces_its_share_of_actions():
    explored = explore(np.full(100_000, 3), 0.4, 4, np.random.default_rng(0))
    assert (explored == 3).mean() == pytest.approx(0.7, abs=0.01)
    assert (explore(np.arange(4), 0.0, 4, np.random.default_rng(0)) == np.arange(4)).all()
