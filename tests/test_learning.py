"""The model-free agent learns a toy problem, and does not where there is nothing to learn from."""

from dataclasses import replace

import numpy as np
import torch

from skipper.agents.modelfree.agent import ModelFreeAgent
from skipper.agents.modelfree.config import ModelFreeLearningConfig
from skipper.config import NetworkConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import LAVA, environment_spec
from skipper.envs.lava.tasks import Tasks, training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.replay.windows import WindowConfig
from skipper.training.evaluate import play
from skipper.training.loop import Loop
from skipper.training.settings import configure

STEPS = 8_000
CONFIG = replace(
    configure("paper", "modelfree"),
    steps=STEPS,
    tasks=1,
    environments=8,
    world=LavaConfig(6, 6, difficulty=0.4, max_steps=32),
    network=NetworkConfig(embedding=8, partial_width=32, hidden=64, scaled_start=True, pessimistic_heads=True),
    learning=ModelFreeLearningConfig(
        batch_size=32,
        steps_per_update=2,
        learning_starts=500,
        target_update_every=200,
        learning_rate=1e-3,
        epsilon_end=0.1,
        epsilon_steps=5_000,
        ema_decay=0.99,  # updates oscillate: without an average, some seeds depend on the last one
    ),
    replay=WindowConfig(capacity=20_000),
)


def from_every_start(tasks: Tasks) -> Tasks:
    """The only task, once for each of its possible starts."""
    starts = tasks.table.starts[0, : tasks.table.start_count[0]]
    many = tasks.subset(np.zeros(len(starts), int))
    many.table.start[:] = starts
    return LAVA.training_evaluation(tasks.world, many, len(many), seed=0)


def success_after_training(shuffled: bool) -> float:
    torch.set_num_threads(1)
    tasks = training_tasks(CONFIG.world, 1, CONFIG.seed)
    agent = ModelFreeAgent(CONFIG, environment_spec(CONFIG.world))
    if shuffled:
        rng, observe = np.random.default_rng(0), agent.observe
        agent.observe = lambda transition: observe(transition._replace(reward=rng.permutation(transition.reward)))
    loop = Loop(agent, LavaVectorEnv(CONFIG.environments, tasks=tasks), CONFIG.learning, CONFIG.seed)
    while loop.step < STEPS:
        loop.advance()
    return float(play(agent.evaluator(np.random.default_rng(1)), LAVA, from_every_start(tasks), seed=0).success.mean())


def test_modelfree_solves_one_task_from_all_starts():
    assert success_after_training(shuffled=False) >= 0.95


def test_modelfree_learns_nothing_from_shuffled_rewards():
    assert success_after_training(shuffled=True) <= 0.6
