"""Batches of hindsight: how samples and pairs become one form, and imagined targets."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from every_pair import TASKS, every_pair

from skipper.agents.hindsight import Hindsight
from skipper.agents.skipper.agent import SkipperAgent
from skipper.agents.skipper.update import BootstrapTargets, bootstrap_targets, extend
from skipper.config import NetworkConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.nets.estimators import EstimatorNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.replay.all_pairs import NO_PAIR
from skipper.replay.prioritized import Samples
from skipper.replay.relabel import HindsightConfig
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
    assert (batch.following.tolist(), batch.steps.tolist()) == ([NO_PAIR, NO_PAIR], [1.0, 1.0])


def test_transitions_are_repeated_with_other_targets():
    batch, rows = every_pair()
    batch = batch._replace(episode=torch.tensor([0] * 4 + [1] * 5), following=torch.arange(len(rows)))
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
    assert (new.following == NO_PAIR).all()  # the next transition has another target
    assert (new.steps == 1.0).all()


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


def test_whole_distributions_of_distances_have_the_means_that_are_bootstrapped_otherwise():
    batch, rows = every_pair()
    with seeded_initialisation(1):
        frozen = EstimatorNetwork(
            NetworkConfig(embedding=8, partial_width=16, hidden=32), environment_spec(TASKS.world)
        )
    means = bootstrap_targets(frozen, batch, frozen.partial)
    whole = bootstrap_targets(frozen, batch, frozen.partial, distributions=True)
    assert whole.distance.shape == (len(rows), 4, 16)
    torch.testing.assert_close(whole.distance.sum(-1), torch.ones(len(rows), 4))
    torch.testing.assert_close(whole.distance @ frozen.distance.support, means.distance)
    assert (whole.value == means.value).all()
    assert (whole.reward == means.reward).all()
    action = torch.arange(len(rows)) % 4
    for columns in (means, whole):
        for column, chosen in zip(columns, columns.of_action(action), strict=True):
            expected = torch.stack([column[row, row % 4] for row in range(len(rows))])
            assert (chosen == expected).all()


def transitions(following: list[int], **columns) -> Hindsight:
    """Transition n leads from state n to n + 1, with action 0 and reward n + 1."""
    count = len(following)
    index, none = torch.arange(count), torch.zeros(count, dtype=torch.bool)
    given = {
        "state": torch.zeros(count + 2, 1, 1, 1, dtype=torch.uint8),
        "episode": torch.zeros(count + 2, dtype=torch.int64),
        "source": index,
        "next": index + 1,
        "target": torch.full((count,), count + 1),
        "action": torch.zeros(count, dtype=torch.int64),
        "reward": index + 1.0,
        "terminated": none,
        "reached": none,
        "path_steps": torch.full((count,), torch.inf),
        "path_reward": torch.full((count,), -torch.inf),
        "following": torch.tensor(following),
        "steps": torch.ones(count),
    }
    return Hindsight(**given | columns)


def estimates(greedy: list[int]) -> BootstrapTargets:
    """Of a target network that would take the actions ``greedy`` in the next states; numbers tell their transition."""
    count = len(greedy)
    value = torch.nn.functional.one_hot(torch.tensor(greedy), 2) + torch.arange(count)[:, None] * 10.0
    return BootstrapTargets(value, value + 1.0, (value + 2.0)[..., None].expand(-1, -1, 3))


def test_transitions_extend_for_as_long_as_the_episode_did_what_the_target_network_would_do():
    batch = transitions([1, 2, 3, NO_PAIR])
    # All of them, to the end of the window.
    found, after = extend(batch, estimates([0, 0, 0, 0]), 0.5)
    assert found.steps.tolist() == [4.0, 3.0, 2.0, 1.0]
    assert found.next.tolist() == [4, 4, 4, 4]
    assert found.reward.tolist() == [1 + 2 / 2 + 3 / 4 + 4 / 8, 2 + 3 / 2 + 4 / 4, 3 + 4 / 2, 4.0]
    for column, single in zip(after, estimates([0, 0, 0, 0]), strict=True):
        assert (column == single[[3, 3, 3, 3]]).all()
    # The greedy action after transition 1 is not that of transition 2.
    found, after = extend(batch, estimates([0, 1, 0, 1]), 0.5)
    assert found.steps.tolist() == [2.0, 1.0, 2.0, 1.0]
    assert found.next.tolist() == [2, 2, 4, 4]
    assert found.reward.tolist() == [1 + 2 / 2, 2.0, 3 + 4 / 2, 4.0]
    assert (after.value == estimates([0, 1, 0, 1]).value[[1, 1, 3, 3]]).all()
    # What was done, and where, stays; and so does the batch that was given.
    for name in ("source", "target", "action", "path_steps", "path_reward", "following"):
        assert (getattr(found, name) == getattr(batch, name)).all()
    assert batch.reward.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("ends", ["reached", "terminated"])
def test_nothing_follows_where_the_target_is_reached_or_the_episode_ends(ends):
    batch = transitions([1, 2, 3, NO_PAIR], **{ends: torch.tensor([False, True, False, False])})
    found, _ = extend(batch, estimates([0, 0, 0, 0]), 0.5)
    assert found.steps.tolist() == [2.0, 1.0, 2.0, 1.0]
    assert found.next.tolist() == [2, 2, 4, 4]
    assert found.reward.tolist() == [1 + 2 / 2, 2.0, 3 + 4 / 2, 4.0]
    assert getattr(found, ends).tolist() == [True, True, False, False]


def test_extended_transitions_equal_a_plain_loop():
    generator, count = torch.Generator().manual_seed(0), 300
    draw = torch.rand(5, count, generator=generator)
    following = [pair + 1 + pair % 3 if pair + 3 < count and draw[0, pair] < 0.9 else NO_PAIR for pair in range(count)]
    batch = transitions(
        following,
        action=(draw[1] < 0.3).long(),
        reached=draw[2] < 0.1,
        terminated=draw[3] < 0.1,
        reward=draw[4],
    )
    bootstrap = estimates((torch.rand(count, generator=generator) < 0.3).long().tolist())
    greedy = bootstrap.value.argmax(-1)
    found, after = extend(batch, bootstrap, 0.9)
    for first in range(count):
        last, steps, reward = first, 1, float(batch.reward[first])
        while not (batch.reached[last] or batch.terminated[last] or following[last] == NO_PAIR):
            if batch.action[following[last]] != greedy[last]:
                break
            last = following[last]
            reward += 0.9**steps * float(batch.reward[last])
            steps += 1
        assert found.steps[first] == steps
        assert found.reward[first].item() == pytest.approx(reward, rel=1e-5)
        for name in ("next", "reached", "terminated"):
            assert getattr(found, name)[first] == getattr(batch, name)[last]
        assert all((column[first] == single[last]).all() for column, single in zip(after, bootstrap, strict=True))
    assert len(set(found.steps.tolist())) > 4


def agent_with_experience(all_pairs: bool, *, slips: bool = False, **learning) -> SkipperAgent:
    """``slips`` asks for everything that the fast preset does where moves slip."""
    config = replace(
        DEBUG,
        planning=replace(DEBUG.planning, distance_distributions=slips),
        generator=replace(DEBUG.generator, generator_width=4),
        replay=HindsightConfig(capacity=1_000, all_pairs=all_pairs, independent_targets=slips),
        learning=replace(
            DEBUG.learning, delusion_scale=0.25, act_with_target_network=True, multistep=slips, **learning
        ),
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


def test_a_batch_of_several_steps_and_whole_distributions():
    agent = agent_with_experience(True, slips=True)
    batch = agent._batches.prepare()
    hindsight, bootstrap = batch.hindsight, batch.bootstrap
    assert (hindsight.steps[: batch.real] > 1).any()
    assert (hindsight.steps[batch.real :] == 1).all()  # nothing is known of the way to imagined targets
    met = (hindsight.state[hindsight.next] == hindsight.state[hindsight.target]).flatten(1).all(1)
    assert (met == hindsight.reached).all()
    # The estimates are those after the last of the steps.
    frozen = agent.core.target_network.estimators
    expected = bootstrap_targets(frozen, hindsight, frozen.partial, distributions=True)
    for found, wanted in zip(bootstrap, expected, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    metrics = agent.learn()
    assert all(np.isfinite(number) for number in metrics.values())


@pytest.mark.parametrize("slips", [True, False])
def test_targets_become_independent_over_the_first_half_of_a_run(monkeypatch, slips):
    agent = agent_with_experience(True, slips=slips)
    asked, sampler = [], agent._batches.draw.sampler
    real = sampler.sample
    monkeypatch.setattr(sampler, "sample", lambda rng, independent: asked.append(independent) or real(rng, independent))
    whole = agent.config.steps
    for steps in (0, whole // 4, whole // 2, whole):
        agent.core.steps = steps
        agent._batches.prepare()
    assert asked == ([0.0, 0.5, 1.0, 1.0] if slips else [0.0] * 4)


@pytest.mark.parametrize("symmetries", [False, True])
def test_unseen_targets_are_states_that_no_episode_was_in(symmetries):
    def seen_targets(targets: str) -> list[bool]:
        agent = agent_with_experience(True, delusion_targets=targets, symmetries=symmetries)
        batches, images = [agent._batches.prepare() for _ in range(20)], agent.spec.symmetries
        states = np.concatenate([batch.hindsight.state[batch.hindsight.target[batch.real :]] for batch in batches])
        stored = {int(key) for number in agent.core.store.numbers() for key in agent.core.store.keys_of(number)}
        count = len(images.cells) if symmetries else 1
        keys = [content_keys(images.images(states, np.full(len(states), image))) for image in range(count)]
        return [not stored.isdisjoint(map(int, of_state)) for of_state in np.transpose(keys)]

    assert any(seen_targets("imagined"))
    unseen = seen_targets("unseen")
    assert unseen
    assert not any(unseen)
