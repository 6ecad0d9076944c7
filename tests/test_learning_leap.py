"""LEAP learns four tasks in a minute, and with shuffled distances it fails."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch

from skipper.agents.leap.agent import LeapAgent
from skipper.agents.leap.config import LeapConfig
from skipper.agents.leap.policy import LeapPolicy, evaluation_actor
from skipper.config import DecisionConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import LAVA, environment_spec
from skipper.envs.lava.tasks import Tasks, training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.training.evaluate import play
from skipper.training.loop import Loop
from skipper.training.settings import configure

SIX = LavaConfig(6, 6, difficulty=0.4, max_steps=32)


@cache
def trained() -> tuple[LeapAgent, Tasks]:
    torch.set_num_threads(1)
    tasks, base = training_tasks(SIX, 4, seed=0), configure("fast", "leap-suppress", world=SIX)
    assert isinstance(base, LeapConfig)
    config = replace(
        base,
        steps=30_000,
        environments=16,
        threads=1,
        learning=replace(
            base.learning,
            generator_steps=10_000,
            steps_per_update=8,
            learning_starts=500,
            target_update_every=800,
            symmetries=False,
        ),
        replay=replace(base.replay, capacity=20_000),
        decision=DecisionConfig(),  # no aids
    )
    agent = LeapAgent(config, environment_spec(SIX))
    loop = Loop(agent, LavaVectorEnv(config.environments, tasks=tasks), config.learning, config.seed)
    while loop.step < config.steps:
        loop.advance()
    return agent, tasks


class ShuffledDistances(LeapPolicy):
    """Plans and walks with distances to other targets than those that it asks for."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        distances = self.subgoal_source.distances

        def shuffled(states):
            distance, terminal = distances(states)
            return distance[:, :, self.rng.permutation(distance.shape[2])], terminal

        self.subgoal_source.distances = shuffled

    def action_values(self, observation, target):
        elsewhere = self.rng.integers(SIX.cells, size=(len(target), 1))
        return super().action_values(observation, self.spec.scene.place_agent(target, elsewhere)[:, 0])


def success(*, shuffled: bool) -> float:
    agent, tasks = trained()
    actor = evaluation_actor(agent.core.evaluated, agent.config, agent.spec, np.random.default_rng(0))
    if shuffled:
        policy = actor.policy
        actor.policy = ShuffledDistances(policy.frozen, policy.config, policy.spec, policy.rng)
    evaluated = LAVA.training_evaluation(tasks.world, tasks, len(tasks), seed=0)
    return float(np.mean([play(actor, LAVA, evaluated, seed=0).success.mean() for _ in range(5)]))


def test_leap_learns_four_tasks():
    assert success(shuffled=False) >= 0.8


def test_leap_fails_with_shuffled_distances():
    assert success(shuffled=True) < 0.4
