"""Skipper's losses on a world where every answer is known, and one step of all heads."""

from dataclasses import replace

import numpy as np
import torch
from every_pair import TASKS, every_pair

from skipper.agents import hindsight
from skipper.agents.hindsight import Hindsight
from skipper.agents.optimizer import Optimizer
from skipper.agents.skipper import update
from skipper.agents.skipper.config import SkipperLearningConfig
from skipper.agents.skipper.update import bootstrap_targets, estimator_losses
from skipper.config import NetworkConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.oracle import UNREACHABLE, action_values, shortest_distances
from skipper.losses import distance_histogram_target, total_loss
from skipper.nets.estimators import EstimatorNetwork
from skipper.nets.heads import PairwiseHead, discount_support
from skipper.nets.layers import seeded_initialisation

CONFIG = SkipperLearningConfig(learning_rate=3e-3)
SMALL = NetworkConfig(embedding=8, partial_width=16, hidden=32)


def two_networks() -> tuple[EstimatorNetwork, EstimatorNetwork]:
    with seeded_initialisation(1):
        online, frozen = (EstimatorNetwork(SMALL, environment_spec(TASKS.world)) for _ in range(2))
    return online, frozen


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
    for turn in range(600):
        if turn % 30 == 0:
            frozen.load_state_dict(online.state_dict())
        losses = estimator_losses(online, batch, bootstrap_targets(frozen, batch, frozen.partial), CONFIG)
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
    online, frozen = two_networks()
    bootstrap = bootstrap_targets(frozen, batch, frozen.partial)
    everything, some = (estimator_losses(online, batch, bootstrap, CONFIG, real) for real in (None, 20))
    for name, losses in some.items():
        counted = len(batch.action) if name == "distance" else 20
        assert losses.shape == (counted,)
        torch.testing.assert_close(losses, everything[name][:counted])


def test_targets_use_the_online_choice_and_the_frozen_estimates(monkeypatch):
    batch, _ = every_pair()
    online, frozen = two_networks()
    given = []
    real = hindsight.pair_losses
    monkeypatch.setattr(hindsight, "pair_losses", lambda *asked: given.append(asked[-1]) or real(*asked))
    estimator_losses(online, batch, bootstrap_targets(frozen, batch, frozen.partial), CONFIG)
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


def given_targets(monkeypatch, batch: Hindsight, config: SkipperLearningConfig) -> list[torch.Tensor]:
    """The targets of value, reward and distance that the losses are computed with."""
    online, frozen = two_networks()
    given = []
    monkeypatch.setattr(hindsight, "pair_losses", lambda *asked: given.append(asked[-1]) or asked[-1])
    estimator_losses(online, batch, bootstrap_targets(frozen, batch, frozen.partial), config)
    return given


def test_hindsight_bounds_distance_from_above_value_and_reward_from_below(monkeypatch):
    batch, _ = every_pair()
    value, reward, distance = given_targets(monkeypatch, batch, CONFIG)
    batch = batch._replace(
        path_steps=torch.full_like(batch.path_steps, 3.0), path_reward=torch.full_like(batch.path_reward, 0.5)
    )
    bounded = replace(CONFIG, hindsight_bound=True)
    new_value, new_reward, new_distance = given_targets(monkeypatch, batch, bounded)
    torch.testing.assert_close(new_distance, distance.clamp(max=3.0))
    torch.testing.assert_close(new_value, value.clamp(min=0.95**2))
    torch.testing.assert_close(new_reward, reward.clamp(min=0.5))
    assert (new_reward > reward).any()
    assert (new_distance < distance).any()
    without = given_targets(monkeypatch, batch, CONFIG)  # the option is off
    assert (without[2] == distance).all()


def test_targets_after_several_steps(monkeypatch):
    batch, _ = every_pair()
    one = given_targets(monkeypatch, batch, CONFIG)
    several = given_targets(monkeypatch, batch._replace(steps=torch.full_like(batch.steps, 3.0)), CONFIG)
    over = batch.reached | batch.terminated
    torch.testing.assert_close(several[0], 0.95**2 * one[0])
    torch.testing.assert_close(several[1], batch.reward + torch.where(over, 0.0, 0.99**2 * (one[1] - batch.reward)))
    torch.testing.assert_close(several[2], one[2] + 2.0)


def test_whole_distributions_of_distances_are_backed_up(monkeypatch):
    batch, rows = every_pair()
    batch = batch._replace(steps=torch.arange(len(rows)) % 4 + 1.0)
    online, frozen = two_networks()
    given = []
    real = hindsight.pair_losses
    monkeypatch.setattr(hindsight, "pair_losses", lambda *asked: given.append(asked[-1]) or real(*asked))
    bootstrap = bootstrap_targets(frozen, batch, frozen.partial, distributions=True)
    losses = estimator_losses(online, batch, bootstrap, CONFIG)
    with torch.no_grad():
        _, after, aim = map(online.partial, images(batch))
        action = online.value.expectation(online.value(after, aim)).argmax(-1)
        _, after, aim = map(frozen.partial, images(batch))
        histogram = frozen.distance(after, aim)[torch.arange(len(action)), action].softmax(-1)
    value, reward, distance = given
    assert value.shape == reward.shape == (len(rows),)
    expected = distance_histogram_target(batch.reached, batch.terminated, histogram, batch.steps)
    torch.testing.assert_close(distance, expected)
    # A changed head gets the same targets from the plain losses.
    online.distance.__class__ = type("SameHead", (PairwiseHead,), {})
    again = estimator_losses(online, batch, bootstrap, CONFIG)
    assert len(given) == 5
    torch.testing.assert_close(again["distance"], losses["distance"])


def test_losses_and_gradients_with_linear_scores_are_those_of_the_modules(monkeypatch):
    batch, _ = every_pair()
    with seeded_initialisation(1):
        online, frozen = (
            EstimatorNetwork(replace(SMALL, linear_scores=True), environment_spec(TASKS.world)) for _ in range(2)
        )
    bootstrap = bootstrap_targets(frozen, batch, frozen.partial)
    seen, partial_states = [], update.scene_encoder.partial_states
    monkeypatch.setattr(
        update.scene_encoder, "partial_states", lambda *given: seen.append(given) or partial_states(*given)
    )
    found = []
    for supported in (True, False):
        monkeypatch.setattr(update.scene_encoder, "supports", lambda module, answer=supported: answer)
        online.zero_grad()
        losses = estimator_losses(online, batch, bootstrap, CONFIG)
        total_loss(losses, dict.fromkeys(losses, 1.0)).mean().backward()
        found.append([*losses.values(), *(parameter.grad.clone() for parameter in online.parameters())])
    assert len(seen) == 1
    for compiled, plain in zip(*found, strict=True):
        torch.testing.assert_close(compiled, plain, atol=1e-5, rtol=1e-3)


class OtherHead(PairwiseHead):
    """Computes something else than the layers that it inherits."""

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return super().forward(source - 0.5 * target, target) * 2.0


def test_a_changed_head_is_never_replaced_by_the_compiled_losses(monkeypatch):
    batch, _ = every_pair()
    online, frozen = two_networks()
    for network in (online, frozen):
        for name in ("value", "reward", "distance"):
            getattr(network, name).__class__ = OtherHead
    bootstrap = bootstrap_targets(frozen, batch, frozen.partial)
    losses = estimator_losses(online, batch, bootstrap, CONFIG, real=30)
    with torch.no_grad():
        _, after, aim = map(frozen.partial, images(batch))
        expected = frozen.distance.expectation(frozen.distance(after, aim))
    torch.testing.assert_close(bootstrap.distance, expected)
    monkeypatch.setattr(hindsight, "pair_losses", None)  # not needed
    again = estimator_losses(online, batch, bootstrap, CONFIG, real=30)
    for name, found in losses.items():
        assert (found == again[name]).all()
        assert found.shape == (len(batch.action) if name == "distance" else 30,)


def test_the_plain_losses_of_a_head_are_those_of_the_compiled_ones():
    batch, _ = every_pair()
    online, _ = two_networks()
    sigma, value = online.partial(batch.state).detach(), torch.rand(len(batch.action))
    pairs = (sigma, batch.source, batch.target, batch.action, value)
    compiled = update.head_losses(online.reward, *pairs)
    online.reward.__class__ = type("SameHead", (PairwiseHead,), {})
    torch.testing.assert_close(update.head_losses(online.reward, *pairs), compiled)
