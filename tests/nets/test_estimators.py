"""Partial states of a frozen network are encoded once."""

import numpy as np
import torch

from skipper.agents.optimizer import Optimizer
from skipper.config import LearningConfig, NetworkConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import tasks_from_text
from skipper.nets.estimators import EstimatorNetwork, PartialTable
from skipper.nets.layers import seeded_initialisation

TASKS = tasks_from_text("A.#\n...\n.#G")
CONFIG = LearningConfig(learning_rate=3e-3)


def test_a_table_remembers_until_the_network_learns_and_across_saving(monkeypatch):
    config = NetworkConfig(embedding=8, partial_width=16, hidden=32)
    with seeded_initialisation(0):
        network, other = (EstimatorNetwork(config, environment_spec(TASKS.world)) for _ in range(2))
    states = torch.from_numpy(TASKS.observe(np.zeros(9, int), np.arange(9)))
    table = PartialTable(network, 16, capacity=10)
    before = table(states[[3, 1, 3]])
    torch.testing.assert_close(before, network.partial(states[[3, 1, 3]]).detach())

    saved = table.state_dict()
    saved["partial"] += 1.0  # so that it can be told from what the network says
    again = PartialTable(network, 16, capacity=8)
    again.load_state_dict(saved)
    assert (again(states[[3]]) == before[:1] + 1.0).all()
    # Where there is no more room, all is encoded anew; and where there never is, nothing is remembered.
    others = states[[0, 2, 4, 5, 6, 7, 8]]
    torch.testing.assert_close(again(others), network.partial(others).detach())
    torch.testing.assert_close(again(states[[3]]), network.partial(states[[3]]).detach())
    torch.testing.assert_close(PartialTable(network, 16, capacity=4)(states), network.partial(states).detach())

    Optimizer(network, CONFIG).step(network.partial(states).square().sum())
    assert len(table.state_dict()["keys"]) == 0  # of a network that has learned nothing is known
    assert (table(states[[3]]) != before[:1]).any()
    torch.testing.assert_close(table(states[[3]]), network.partial(states[[3]]).detach())
    network.load_state_dict(other.state_dict())
    torch.testing.assert_close(table(states), other.partial(states).detach())
