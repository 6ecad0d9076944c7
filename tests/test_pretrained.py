"""The agents that come with the project can be loaded and act."""

from pathlib import Path

import numpy as np
import pytest

import skipper
from skipper.envs.lava.tasks import evaluation_tasks

PRETRAINED = Path(__file__).parents[1] / "pretrained"
FOLDERS = sorted(path.name for path in PRETRAINED.iterdir())


def test_there_are_agents():
    assert "skipper-regen-50" in FOLDERS


@pytest.mark.parametrize("name", FOLDERS)
def test_a_pretrained_agent_acts_and_has_a_card(name):
    agent = skipper.load(PRETRAINED / name)
    assert name.startswith(agent.config.agent)
    tasks = evaluation_tasks(agent.config.world, 0.35, 8, seed=0)
    seen = tasks.observe(np.arange(8), tasks.table.start)
    action = agent.act(seen)
    assert action.shape == (8,)
    assert ((action >= 0) & (action < 4)).all()
    card = (PRETRAINED / name / "README.md").read_text()
    assert f"skipper evaluate pretrained/{name} --episodes 400 --seed 2" in card
