"""Skipper's four heads: their losses on a world where every answer is known."""

from dataclasses import replace

import numpy as np
import torch

from skipper.agents.optimizer import Optimizer
from skipper.config import LearningConfig, NetworkConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.oracle import UNREACHABLE, action_values, shortest_distances
from skipper.envs.lava.tasks import tasks_from_text
from skipper.losses import total_loss
from skipper.nets import estimators
from skipper.nets.estimators import EstimatorNetwork, Hindsight, bootstrap_targets, estimator_losses
from skipper.nets.heads import discount_support
from skipper.nets.layers import seeded_initialisation
from skipper.replay.store import Samples

TASKS = tasks_from_text("A.#\n...\n.#G")
CONFIG = LearningConfig(learning_rate=3e-3)


def every_pair() -> tuple[Hindsight, np.ndarray]:
    """All transitions of the world with all targets; and (cell, action, target) of each. State n is cell n."""
    table = TASKS.table
    rows = [
        (cell, action, target)
        for cell in range(9)
        for action in range(4)
        for target in range(9)
        if not table.terminal[0, cell] and cell != target
    ]
    cell, action, target = np.array(rows).T
    after = table.successor[0, cell, action].astype(np.int64)
    reward = (after == table.goal[0]).astype(np.float32)
    columns = (cell, after, target, action, reward, table.terminal[0, after], after == target)
    states = torch.from_numpy(TASKS.observe(np.zeros(9, int), np.arange(9)))
    unknown = torch.full((len(rows),), torch.inf)
    tensors = (torch.from_numpy(column) for column in columns)
    return Hindsight(states, torch.zeros(9, dtype=torch.int64), *tensors, unknown, -unknown), np.array(rows)


def images(batch: Hindsight) -> tuple[torch.Tensor, ...]:
    """The observations of sources, next states and targets."""
    return tuple(batch.state[index] for index in (batch.source, batch.next, batch.target))


def test_all_heads_learn_the_truth():
    batch, rows = every_pair()
    cell, action, target = rows.T
    with seeded_initialisation(0):
        networks = [
            EstimatorNetwork(
                NetworkConfig(embedding=8, partial_width=64, hidden=64, scaled_start=True, pessimistic_heads=True),
                environment_spec(TASKS.world),
            )
            for _ in range(2)
        ]
    online, frozen = networks
    optimizer = Optimizer(online, CONFIG)
    for update in range(600):
        if update % 30 == 0:
            frozen.load_state_dict(online.state_dict())
        losses = estimator_losses(online, batch, bootstrap_targets(frozen, batch), CONFIG)
        assert set(losses) == {"value", "reward", "distance", "terminal"}
        assert all(loss.shape == (len(rows),) for loss in losses.values())
        optimizer.step(total_loss(losses, dict.fromkeys(losses, 1.0)).mean())
    with torch.no_grad():
        source, after, aim = map(online.partial, images(batch))
        index = torch.arange(len(rows)), batch.action
        value = online.value.expectation(online.value(source, aim)[index]).numpy()
        histogram = online.distance(source, aim)[index]
        distance = online.distance.expectation(histogram).numpy()
        discount = online.distance.expectation(histogram, discount_support(16, 0.99)).numpy()
        reward = online.reward.expectation(online.reward(source, aim)[index]).numpy()
        terminal = online.terminal(after).argmax(-1).numpy()

    truth = action_values(TASKS, np.zeros(9, int), np.arange(9), discount=0.95)[target, cell, action]
    assert abs(value - truth).mean() < 0.05
    steps = shortest_distances(TASKS)[0].astype(float)
    steps = 1 + steps[TASKS.table.successor[0, cell, action], target]
    known = (truth > 0) & (steps < UNREACHABLE)
    assert abs(distance - steps)[known].mean() < 0.5
    assert distance[truth == 0].min() > 12  # infinite, as far as the histogram goes
    assert abs(discount - 0.99**steps)[known].mean() < 0.01
    assert (terminal == batch.terminated.numpy()).all()
    # Only the way to the goal is paid, and only where it is the target: the policy goes nowhere else on purpose.
    goal = target == TASKS.table.goal[0]
    assert abs(reward - 0.99 ** (steps - 1))[goal & known].mean() < 0.1


def test_of_some_pairs_only_distances_are_learned():
    batch, _ = every_pair()
    settings = NetworkConfig(embedding=8, partial_width=16, hidden=32)
    with seeded_initialisation(1):
        online, frozen = (EstimatorNetwork(settings, environment_spec(TASKS.world)) for _ in range(2))
    bootstrap = bootstrap_targets(frozen, batch)
    everything, some = (estimator_losses(online, batch, bootstrap, CONFIG, real) for real in (None, 20))
    for name, losses in some.items():
        counted = len(batch.action) if name == "distance" else 20
        assert losses.shape == (counted,)
        torch.testing.assert_close(losses, everything[name][:counted])


def test_targets_use_the_online_choice_and_the_frozen_estimates(monkeypatch):
    batch, _ = every_pair()
    settings = NetworkConfig(embedding=8, partial_width=16, hidden=32)
    with seeded_initialisation(1):
        online, frozen = (EstimatorNetwork(settings, environment_spec(TASKS.world)) for _ in range(2))
    given = []
    real = estimators.pair_losses
    monkeypatch.setattr(estimators, "pair_losses", lambda *asked: given.append(asked[-1]) or real(*asked))
    estimator_losses(online, batch, bootstrap_targets(frozen, batch), CONFIG)
    with torch.no_grad():
        _, after, aim = map(online.partial, images(batch))
        action = online.value.expectation(online.value(after, aim)).argmax(-1)
        _, after, aim = map(frozen.partial, images(batch))
        index = torch.arange(len(action)), action
        value, reward, distance = (
            head.expectation(head(after, aim)[index]) for head in (frozen.value, frozen.reward, frozen.distance)
        )
    over = batch.reached | batch.terminated
    assert (batch.reached & ~batch.terminated).any()
    expected = [
        torch.where(batch.reached, 1.0, torch.where(batch.terminated, 0.0, 0.95 * value)),
        batch.reward + torch.where(over, 0.0, 0.99 * reward),
        torch.where(batch.reached, 1.0, torch.where(batch.terminated, torch.inf, 1 + distance)),
    ]
    for found, wanted in zip(given, expected, strict=True):
        torch.testing.assert_close(found, wanted)


def given_targets(monkeypatch, batch: Hindsight, config: LearningConfig) -> list[torch.Tensor]:
    """The targets of value, reward and distance that the losses are computed with."""
    settings = NetworkConfig(embedding=8, partial_width=16, hidden=32)
    with seeded_initialisation(1):
        online, frozen = (EstimatorNetwork(settings, environment_spec(TASKS.world)) for _ in range(2))
    given = []
    monkeypatch.setattr(estimators, "pair_losses", lambda *asked: given.append(asked[-1]) or asked[-1])
    estimator_losses(online, batch, bootstrap_targets(frozen, batch, frozen.partial), config)
    return given


def test_hindsight_bounds_distance_from_above_value_and_reward_from_below(monkeypatch):
    batch, _ = every_pair()
    value, reward, distance = given_targets(monkeypatch, batch, CONFIG)
    batch = batch._replace(steps=torch.full_like(batch.steps, 3.0), gain=torch.full_like(batch.gain, 0.5))
    bounded = replace(CONFIG, hindsight_bound=True)
    new_value, new_reward, new_distance = given_targets(monkeypatch, batch, bounded)
    torch.testing.assert_close(new_distance, distance.clamp(max=3.0))
    torch.testing.assert_close(new_value, value.clamp(min=0.95**2))
    torch.testing.assert_close(new_reward, reward.clamp(min=0.5))
    assert (new_reward > reward).any()
    assert (new_distance < distance).any()
    without = given_targets(monkeypatch, batch, CONFIG)  # the option is off
    assert (without[2] == distance).all()


def test_samples_become_three_states_each():
    numbers = {"observation": 1, "next_observation": 2, "target": 2}
    samples = Samples(
        *(
            np.full((2, 3, 3, 2), numbers[name], np.uint8) if name in numbers else np.zeros(2, np.int64)
            for name in Samples._fields
        )
    )
    batch = Hindsight.of_samples(samples)
    assert batch.state[:, 0, 0, 0].tolist() == [1, 1, 2, 2, 2, 2]
    assert [column.tolist() for column in (batch.source, batch.next, batch.target)] == [[0, 1], [2, 3], [4, 5]]
    assert batch.reached.all()


def test_transitions_can_aim_at_other_states_too():
    batch, rows = every_pair()
    batch = batch._replace(episode=torch.tensor([0] * 4 + [1] * 5))
    assert batch.firsts.tolist() == [0, 4]
    extra = torch.from_numpy(TASKS.observe(np.zeros(2, int), np.array([4, 8])))
    chosen = torch.arange(0, len(rows), 5)
    both = batch.aiming_also_at(extra, chosen)
    assert len(both.state) == len(both.episode) == 11
    assert all((mine[: len(rows)] == its).all() for mine, its in zip(both[2:], batch[2:], strict=True))
    new = Hindsight(both.state, both.episode, *(column[len(rows) :] for column in both[2:]))
    assert (new.source == batch.source[chosen]).all()
    assert new.target.tolist() == [9 if cell < 4 else 10 for cell in rows[chosen, 0]]
    after = TASKS.table.successor[0, rows[chosen, 0], rows[chosen, 1]]
    assert new.reached.tolist() == (after == np.where(rows[chosen, 0] < 4, 4, 8)).tolist()
    assert (new.steps == torch.inf).all()
    assert (new.gain == -torch.inf).all()
