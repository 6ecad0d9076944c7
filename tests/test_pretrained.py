"""The agents that come with the project can be loaded and act."""

from pathlib import Path

import numpy as np
import pytest

import skipper
from skipper.analysis.oracle_substitution import load_with_oracle
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.tasks import evaluation_tasks
from skipper.training.evaluate import rollout

PRETRAINED = Path(__file__).parents[1] / "pretrained"
FOLDERS = sorted(path.name for path in PRETRAINED.iterdir())


def test_there_are_agents():
    assert "skipper-regen-50" in FOLDERS


def test_skipper_once_loses_no_vertices_on_its_way():
    agent = load_with_oracle(PRETRAINED / "skipper-regen-50")
    tasks = evaluation_tasks(LavaConfig(), 0.35, 10, seed=0)
    player, begun, vertices = agent.with_planning(0, regenerate=False, replan="trigger"), np.zeros(10, bool), ([], [])
    for moment in rollout(player, agent.family, tasks, seed=0):
        if moment.decision.plan is not None:
            planned, kept = moment.decision.planned, moment.decision.plan.kept.sum(-1)
            for which in (False, True):  # first plans, and later ones
                vertices[which].extend(kept[begun[planned] == which])
            begun |= planned
    assert len(vertices[False]) == 10
    assert np.mean(vertices[False]) > 55
    assert np.mean(vertices[True]) > 55


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
    assert f"skipper evaluate pretrained/{name} --episodes 400" in card
