"""Skipper's four heads: their losses on a world where every answer is known."""

import numpy as np
import torch

from skipper.agents.base import Optimiser
from skipper.agents.estimators import EstimatorNetwork, Hindsight, estimator_losses
from skipper.config import LearningConfig, NetworkConfig
from skipper.envs.oracle import UNREACHABLE, action_values, shortest_distances
from skipper.envs.spec import environment_spec
from skipper.envs.tasks import tasks_from_text
from skipper.losses import total_loss
from skipper.nets.heads import discount_support
from skipper.nets.layers import seeded_initialisation
from skipper.replay.buffer import Samples

TASKS = tasks_from_text("A.#\n...\n.#G")
CONFIG = LearningConfig(learning_rate=3e-3)


def every_pair() -> tuple[Hindsight, np.ndarray]:
    """All transitions of the world with all targets; and (cell, action, target) of each."""
    table = TASKS.table
    rows = [
        (cell, action, target)
        for cell in range(9)
        for action in range(4)
        for target in range(9)
        if not table.terminal[0, cell] and cell != target
    ]
    cell, action, target = np.array(rows).T
    after = table.successor[0, cell, action]
    zeros = np.zeros_like(cell)
    images = [torch.from_numpy(TASKS.observe(zeros, place)) for place in (cell, after, target)]
    batch = Hindsight(
        images[0],
        torch.from_numpy(action),
        torch.from_numpy((after == table.goal[0]).astype(np.float32)),
        images[1],
        torch.from_numpy(table.terminal[0, after]),
        images[2],
    )
    return batch, np.array(rows)


def test_reached_means_that_the_observations_are_equal():
    batch, rows = every_pair()
    after = TASKS.table.successor[0, rows[:, 0], rows[:, 1]]
    assert (batch.reached.numpy() == (after == rows[:, 2])).all()


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
    optimiser = Optimiser(online, CONFIG)
    for update in range(600):
        if update % 30 == 0:
            frozen.load_state_dict(online.state_dict())
        losses = estimator_losses(online, frozen, batch, CONFIG)
        assert set(losses) == {"value", "reward", "distance", "terminal"}
        assert all(loss.shape == (len(rows),) for loss in losses.values())
        optimiser.step(total_loss(losses, dict.fromkeys(losses, 1.0)).mean())
    with torch.no_grad():
        source, after, aim = (
            online.partial(image) for image in (batch.observation, batch.next_observation, batch.target)
        )
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


def test_targets_use_the_online_choice_and_the_frozen_estimates(monkeypatch):
    batch, _ = every_pair()
    settings = NetworkConfig(embedding=8, partial_width=16, hidden=32)
    with seeded_initialisation(1):
        online, frozen = (EstimatorNetwork(settings, environment_spec(TASKS.world)) for _ in range(2))
    given = []
    module = __import__("skipper.agents.estimators", fromlist=["scalar_loss"])
    real = module.scalar_loss
    monkeypatch.setattr(
        module, "scalar_loss", lambda logits, aim, support: given.append(aim) or real(logits, aim, support)
    )
    estimator_losses(online, frozen, batch, CONFIG)
    with torch.no_grad():
        after, aim = online.partial(batch.next_observation), online.partial(batch.target)
        action = online.value.expectation(online.value(after, aim)).argmax(-1)
        after, aim = frozen.partial(batch.next_observation), frozen.partial(batch.target)
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


def test_other_targets_can_take_the_place_of_the_samples_own():
    samples = Samples(
        *(
            np.zeros((2, 3, 3, 2), np.uint8) if name in ("observation", "next_observation", "target") else np.zeros(2)
            for name in Samples._fields
        )
    )
    other = torch.ones(2, 3, 3, 2, dtype=torch.uint8)
    assert (Hindsight.of(samples).target == 0).all()
    assert (Hindsight.of(samples, other).target == 1).all()
