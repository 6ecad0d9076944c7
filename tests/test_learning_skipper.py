"""Skipper learns four tasks in a minute, its estimates become accurate, and with shuffled edges it fails."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch

from skipper.agents.skipper.agent import SkipperAgent
from skipper.agents.skipper.edges import EdgeSource
from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy
from skipper.analysis.oracle_metrics import estimate_truth, generator_truth
from skipper.config import RunConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import LAVA, environment_spec
from skipper.envs.lava.tasks import Tasks, training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.nets.frozen import FrozenNetwork
from skipper.training.evaluate import play
from skipper.training.loop import Loop
from skipper.training.settings import configure
from skipper.types import Edges

SIX = LavaConfig(6, 6, difficulty=0.4, max_steps=32)


def configuration(world: LavaConfig, steps: int, **learning) -> RunConfig:
    """Small networks and short schedules; what makes learning fast is documented in docs/deviations.md."""
    base = configure("paper", "skipper-once")
    return replace(
        base,
        steps=steps,
        environments=16,
        world=world,
        network=replace(base.network, hidden=128, scaled_start=True, pessimistic_heads=True),
        generator=replace(base.generator, generator_width=8, flat_description=True, generator_every=2),
        planning=replace(base.planning, checkpoints=12, match_observations=True),
        learning=replace(
            base.learning,
            steps_per_update=8,
            learning_starts=500,
            target_update_every=800,
            learning_rate=1e-3,
            final_learning_rate_fraction=0.1,
            adam_epsilon=1e-7,
            epsilon_end=0.4,
            epsilon_steps=15_000,
            hindsight_bound=True,
            act_with_target_network=True,
            training_targets="random",
            **learning,
        ),
        replay=replace(base.replay, capacity=20_000, all_pairs=True, pair_episodes=8, other_episodes=0.2),
    )


def trained(config: RunConfig, tasks: Tasks) -> SkipperAgent:
    torch.set_num_threads(1)
    agent = SkipperAgent(config, environment_spec(config.world))
    loop = Loop(agent, LavaVectorEnv(config.environments, tasks=tasks), config.learning, config.seed)
    while loop.step < config.steps:
        loop.advance()
    return agent


class ShuffledEdges(EdgeSource):
    """Every pair of vertices gets the estimates of another pair."""

    rng = np.random.default_rng(2)

    def estimate(self, vertices, environments=None):
        edges = EdgeSource(self._frozen, self._config, self._spec).complete(vertices)
        B, N, _ = edges.distance.shape  # noqa: N806
        order = self.rng.permuted(np.tile(np.arange(N * N), (B, 1)), axis=1)

        def shuffled(column):
            return np.take_along_axis(column.reshape(B, -1), order, axis=1).reshape(B, N, N)

        return Edges(*map(shuffled, edges[:3]), edges.terminal)


class RandomValues(EdgeSource):
    """All targets that are near enough are equally good."""

    rng = np.random.default_rng(3)

    def estimate(self, vertices, environments=None):
        edges = EdgeSource(self._frozen, self._config, self._spec).complete(vertices)
        return edges._replace(reward=self.rng.random(edges.reward.shape), discount=np.zeros_like(edges.discount))


def success(agent: SkipperAgent, tasks: Tasks, kind: type[EdgeSource] = EdgeSource) -> float:
    policy = policy_of(agent, seed=1)
    policy.edge_source = kind(policy.frozen, agent.config, agent.spec)
    evaluated = LAVA.training_evaluation(tasks.world, tasks, len(tasks), seed=0)
    return float(play(SkipperActor(policy, epsilon=0.001), LAVA, evaluated, seed=0).success.mean())


@cache
def six_by_six(delusion_scale: float) -> tuple[SkipperAgent, Tasks]:
    tasks = training_tasks(SIX, 4, seed=0)
    return trained(configuration(SIX, steps=30_000, delusion_scale=delusion_scale), tasks), tasks


def policy_of(agent: SkipperAgent, seed: int = 0) -> SkipperPolicy:
    frozen = FrozenNetwork(agent.core.network, agent.config, agent.spec, caching=False)
    return SkipperPolicy(frozen, agent.config, agent.spec, np.random.default_rng(seed))


def test_skipper_learns_four_tasks_and_fails_with_shuffled_edges():
    agent, tasks = six_by_six(0.25)
    many = tasks.subset(np.repeat(np.arange(4), 25))
    planned = success(agent, many)
    assert planned >= 0.9

    policy, rng = policy_of(agent), np.random.default_rng(0)
    errors = estimate_truth(policy, LAVA.truth(tasks), rng)
    for steps in ("1", "2", "3", "4"):
        assert errors[steps]["pairs"] > 20
        assert errors[steps]["distance"] < 1.0
    assert generator_truth(policy, LAVA.truth(tasks), rng, states=50)["reconstruction"] > 0.95

    shuffled, chance = success(agent, many, ShuffledEdges), success(agent, many, RandomValues)
    assert shuffled <= chance + 0.1
    assert planned >= chance + 0.05
    assert planned >= shuffled + 0.4


def test_suppression_halves_the_errors_of_delusional_edges():
    """Lava cuts off some cells, where the agent never was; the generator imagines some of them all the same."""
    errors = []
    for scale in (0.0, 0.25):
        agent, tasks = six_by_six(scale)
        truth = estimate_truth(policy_of(agent), LAVA.truth(tasks), np.random.default_rng(0))
        assert truth["inf"]["pairs"] > 100
        assert truth["1"]["distance"] < 0.5
        errors.append(truth["inf"]["distance"])
    assert errors[1] <= errors[0] / 2, errors
