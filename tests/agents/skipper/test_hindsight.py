"""Batches of hindsight: how samples and pairs become one form, and imagined targets."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from every_pair import TASKS, every_pair

from skipper.agents.skipper.agent import SkipperAgent
from skipper.agents.skipper.hindsight import Hindsight, bootstrap_targets
from skipper.config import HindsightConfig, NetworkConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.nets.estimators import EstimatorNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.replay.prioritized import Samples
from skipper.training.loop import Loop
from skipper.training.settings import configure
from skipper.types import content_keys

DEBUG = configure("debug", "skipper-regen")


def test_samples_become_three_states_each():
    numbers = {"observation": 1, "next_observation": 2, "target": 2}
    samples = Samples(
        *(
            np.full((2, 3, 3, 2), numbers[name], np.uint8) if name in numbers else np.zeros(2, np.int64)
            for name in Samples._fields
        )
    )._replace(reached=np.array([True, False]))
    batch = Hindsight.of_samples(samples)
    assert batch.state[:, 0, 0, 0].tolist() == [1, 1, 2, 2, 2, 2]
    assert [column.tolist() for column in (batch.source, batch.next, batch.target)] == [[0, 1], [2, 3], [4, 5]]
    assert batch.reached.tolist() == [True, False]


def test_transitions_are_repeated_with_other_targets():
    batch, rows = every_pair()
    batch = batch._replace(episode=torch.tensor([0] * 4 + [1] * 5))
    assert batch.first_states.tolist() == [0, 4]
    extra = torch.from_numpy(TASKS.observe(np.zeros(2, int), np.array([4, 8])))
    chosen = torch.arange(0, len(rows), 5)
    both = batch.with_targets(extra, chosen, content_keys)
    assert len(both.state) == len(both.episode) == 11
    assert all((mine[: len(rows)] == its).all() for mine, its in zip(both[2:], batch[2:], strict=True))
    new = Hindsight(both.state, both.episode, *(column[len(rows) :] for column in both[2:]))
    assert (new.source == batch.source[chosen]).all()
    assert new.target.tolist() == [9 if cell < 4 else 10 for cell in rows[chosen, 0]]
    after = TASKS.table.successor[0, rows[chosen, 0], rows[chosen, 1]]
    assert new.reached.tolist() == (after == np.where(rows[chosen, 0] < 4, 4, 8)).tolist()
    assert (new.path_steps == torch.inf).all()
    assert (new.path_reward == -torch.inf).all()


def test_only_next_states_and_targets_are_encoded():
    batch, _ = every_pair()
    with seeded_initialisation(1):
        frozen = EstimatorNetwork(
            NetworkConfig(embedding=8, partial_width=16, hidden=32), environment_spec(TASKS.world)
        )
    rows = torch.nonzero((batch.next == 3) & (batch.target == 5))[:, 0]
    few = Hindsight(batch.state, batch.episode, *(column[rows] for column in batch[2:]))
    seen = []

    def encode(states: torch.Tensor) -> torch.Tensor:
        seen.append(states)
        return frozen.partial(states)

    found = bootstrap_targets(frozen, few, encode)
    assert len(rows)
    assert (seen[0] == batch.state[[3, 5]]).all()
    whole = bootstrap_targets(frozen, batch, frozen.partial)
    for column, expected in zip(found, whole, strict=True):
        assert column.shape == (len(rows), 4)
        torch.testing.assert_close(column, expected[rows])


def agent_with_experience(all_pairs: bool) -> SkipperAgent:
    config = replace(
        DEBUG,
        generator=replace(DEBUG.generator, generator_width=4),
        replay=HindsightConfig(capacity=1_000, all_pairs=all_pairs),
        learning=replace(DEBUG.learning, delusion_scale=0.25, act_with_target_network=True),
    )
    agent = SkipperAgent(config, environment_spec(config.world))
    tasks = training_tasks(config.world, config.tasks, config.seed)
    loop = Loop(agent, LavaVectorEnv(4, tasks=tasks), config.learning, seed=0)
    while loop.step < 500:
        loop.advance()
    return agent


@pytest.mark.parametrize("all_pairs", [False, True])
def test_a_batch_has_real_targets_then_imagined_ones_and_estimates_of_the_target_network(all_pairs):
    agent = agent_with_experience(all_pairs)
    batch = agent._batches.prepare()
    hindsight, scene = batch.hindsight, agent.spec.scene
    imagined = len(hindsight.action) - batch.real
    assert imagined == (max(batch.real // 4, 1) if all_pairs else batch.real)
    assert (batch.weight is None) == (batch.leaf is None) == all_pairs
    # Imagined targets are other states of the same task; nothing is known of paths to them.
    sources, targets = (hindsight.state[index[batch.real :]].numpy() for index in (hindsight.source, hindsight.target))
    assert (scene.scenery(sources) == scene.scenery(targets)).all()
    assert (scene.agent_cell(sources) != scene.agent_cell(targets)).any()
    assert torch.isinf(hindsight.path_steps[batch.real :]).all()
    met = (hindsight.state[hindsight.next] == hindsight.state[hindsight.target]).flatten(1).all(1)
    assert (met == hindsight.reached).all()
    frozen = agent.core.target_network.estimators
    expected = bootstrap_targets(frozen, hindsight, frozen.partial)
    for found, wanted in zip(batch.bootstrap, expected, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
