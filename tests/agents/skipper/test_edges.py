from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.skipper.edges import EdgeSource
from skipper.agents.skipper.policy import SkipperPolicy, evaluation_policy
from skipper.config import NetworkConfig, SkipperGeneratorConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.oracle import LavaOracle, action_values, shortest_distances
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.planning.prune import EdgeStatus
from skipper.training.load import with_settings
from skipper.training.settings import configure
from skipper.types import CURRENT, LazyEdges

WORLD = LavaConfig(6, 6, max_steps=20)
SPEC, TASKS = environment_spec(WORLD), training_tasks(WORLD, 4, seed=0)
SEEN, TOLD = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)


def policy(**settings) -> SkipperPolicy:
    config = replace(
        with_settings(configure("debug", "skipper-regen"), settings),
        world=WORLD,
        network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
        generator=SkipperGeneratorConfig(generator_width=4),
    )
    with seeded_initialisation(0):
        network = SkipperNetwork(config, SPEC)
    with torch.no_grad():
        for parameter in network.generator.fuse.parameters():  # so that codes give different cells
            parameter *= 3.0
    return evaluation_policy(network, config, SPEC, np.random.default_rng(0))


def test_true_edges_are_those_of_the_tables():
    starts = [TASKS.table.starts[row, [0, 2, 5]] for row in range(2)]
    states = np.array([[*starts[row], TASKS.table.goal[row]] for row in range(2)])
    seen = np.stack([TASKS.observe(np.full(4, row), states[row]) for row in range(2)])
    distance, discount, reward, terminal = LavaOracle(WORLD).edges(seen, 0.9)
    steps = shortest_distances(TASKS).astype(float)
    steps[steps > 1000] = np.inf
    for row in range(2):
        pairs = np.ix_(states[row], states[row])
        assert (distance[row] == steps[row][pairs]).all()
        np.testing.assert_allclose(discount[row], 0.9 ** steps[row][pairs])
        assert (terminal[row] == TASKS.table.terminal[row, states[row]]).all()
        assert (reward[row][:, :-1] == 0).all()
        values = action_values(TASKS, discount=0.9)[row, states[row][:3]].max(-1)
        np.testing.assert_allclose(reward[row][:3, -1], values, atol=1e-9)


def test_single_parts_of_the_edges_can_be_true():
    edges = {}
    for parts in ((), ("rewards",), ("terminal",), ("rewards", "terminal"), ("edges",)):
        agent = policy(oracle_parts=parts)
        edges[parts] = agent.edges(agent.vertex_source.propose(SEEN, TOLD))
    learned, true = edges[()], edges[("edges",)]
    assert (edges[("rewards",)].reward == true.reward).all()
    assert (edges[("rewards",)].terminal == learned.terminal).all()
    assert (edges[("terminal",)].terminal == true.terminal).all()
    assert (edges[("terminal",)].reward == learned.reward).all()
    assert (edges[("rewards", "terminal")].distance == learned.distance).all()
    assert (learned.terminal != true.terminal).any()


def test_learned_edges_wait_with_their_rewards():
    agent = policy()
    vertices = agent.vertex_source.propose(SEEN, TOLD)
    assert isinstance(EdgeSource(agent.frozen, agent.config, SPEC).estimate(vertices), LazyEdges)


def test_true_edges_begin_with_the_learned_actions_where_revisits_are_penalised():
    learned = policy()
    vertices = learned.vertex_source.propose(SEEN, TOLD)
    action = learned.edges(vertices).action
    assert (policy(oracle_parts=("edges",), revisit_penalty=0.5).edges(vertices).action == action).all()
    assert policy(oracle_parts=("edges",)).edges(vertices).action is None
    assert policy(oracle_parts=("edges", "policy"), revisit_penalty=0.5).edges(vertices).action is None


def test_true_terminal_states_do_not_depend_on_the_learned_head():
    for parts, planned in ((("terminal",), True), ((), False)):
        agent = policy(oracle_parts=parts, edge_threshold=20.0, match_observations=True)
        with torch.no_grad():
            agent.network.estimators.terminal[-1].bias[1] += 100.0  # it calls everything terminal
        assert (agent.plan(SEEN, TOLD).status[:, 1:] == EdgeStatus.KEPT).any() == planned


@pytest.mark.parametrize("edge_cache", [False, True])
def test_an_agent_that_acts_is_not_in_a_terminal_state(edge_cache):
    agent = policy(edge_threshold=20.0, match_observations=True)
    plans = agent.config.planning if edge_cache else None
    agent.edge_source = EdgeSource(FrozenNetwork(agent.network, agent.config, SPEC, plans=plans), agent.config, SPEC)
    with torch.no_grad():
        agent.network.estimators.terminal[-1].bias[1] += 100.0  # it calls everything terminal
    problem = agent.plan(SEEN, TOLD)
    assert not problem.edges.terminal[:, CURRENT].any()
    assert problem.edges.terminal[:, 1:][problem.vertices.present[:, 1:]].all()
    assert (problem.target >= 0).all()
    assert (problem.status[:, CURRENT] == EdgeStatus.KEPT).any(-1).all()
    # Estimates that do not belong to a plan are the head's own.
    assert agent.edges(problem.vertices).terminal[:, CURRENT].all()
