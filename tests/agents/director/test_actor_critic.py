"""The actor-critic on its own: policies, critics, and two small problems without a world model."""

import math
from dataclasses import replace

import pytest
import torch

from skipper.agents.director.actor_critic import Actor, ActorCritic, Critic, Trajectory, relative_entropy
from skipper.agents.director.config import BehaviourConfig
from skipper.agents.director.trajectories import max_cosine, weights
from skipper.nets.layers import seeded_initialisation
from tests.agents.director.director_fixtures import uniform

SMALL = BehaviourConfig(policy_layers=1, policy_units=32)


def test_the_uniform_share_bounds_the_entropy_of_policies():
    for shape, least in (((1, 4), 0.0378), ((8, 8), 0.0323)):
        actor = Actor(3, shape, SMALL)
        with torch.no_grad():
            actor.network[-1].bias.view(shape)[:, 0] = 1e4
        entropy = relative_entropy(actor(torch.zeros(3)).detach())
        assert entropy.shape == (shape[0],)
        assert float(entropy[0]) == pytest.approx(least, abs=1e-4)
        assert float(relative_entropy(torch.full(shape, 1 / shape[1]))[0]) == pytest.approx(1)


def test_samples_and_modes_of_a_policy():
    with seeded_initialisation(0):
        actor = Actor(3, (8, 8), SMALL)
    inputs = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    for found in (actor.sample(inputs, uniform(5, 8)), actor.mode(inputs)):
        assert found.shape == (5, 8, 8)
        assert (found.sum(-1) == 1).all()
    assert torch.equal(actor.mode(inputs).argmax(-1), actor(inputs).argmax(-1))


def trajectory(length: int = 4, batch: int = 6, width: int = 3, actions: int = 2, seed: int = 0) -> Trajectory:
    generator = torch.Generator().manual_seed(seed)
    continuation = torch.ones(length + 1, batch)
    return Trajectory(
        torch.randn(length + 1, batch, width, generator=generator),
        torch.eye(actions)[torch.randint(actions, (length + 1, batch, 1), generator=generator)],
        {"extrinsic": torch.randn(length, batch, generator=generator)},
        continuation,
        weights(continuation, 0.99),
    )


def steps(*networks: torch.nn.Module, rate: float = 1e-2):
    """A step function with an optimizer for each network."""
    optimizers = {id(network): torch.optim.Adam(network.parameters(), rate) for network in networks}

    def step(network: torch.nn.Module, loss: torch.Tensor) -> None:
        optimizers[id(network)].zero_grad()
        loss.backward()
        optimizers[id(network)].step()

    return step


def test_the_slow_critic_is_copied_after_the_first_update_and_every_hundred():
    with seeded_initialisation(0):
        learner, actor = ActorCritic(3, (1, 2), {"extrinsic": 1.0}, SMALL), Actor(3, (1, 2), SMALL)
    ((_, critic),) = learner.named_critics()
    step, equal = steps(critic.network, actor), []
    for update in range(202):
        learner.update(actor, trajectory(seed=update), update, step)
        pairs = zip(critic.network.parameters(), critic.slow.parameters(), strict=True)
        if all(torch.equal(one, other) for one, other in pairs):
            equal.append(update + 1)
    assert equal == [1, 101, 201]


def test_rewards_without_weight_have_no_critic():
    learner = ActorCritic(3, (1, 2), {"extrinsic": 0.0, "goal": 1.0}, SMALL)
    assert [name for name, _ in learner.named_critics()] == ["goal"]


def test_the_critic_learns_compressed_weighted_returns():
    with seeded_initialisation(0):
        critic = Critic(3, SMALL)
    batch = trajectory()._replace(weight=torch.arange(5.0)[:, None].expand(5, 6))
    returns = torch.full((4, 6), 2.0)
    error = critic.network(batch.inputs[:-1])[..., 0] - torch.log1p(returns)
    wanted = (torch.arange(4.0)[:, None] * error.square()).mean()
    torch.testing.assert_close(critic.loss(batch, returns), wanted)


def bandit(rewards: dict[str, float], updates: int = 250) -> float:
    """Probability of action 1 after training on a chain on which it raises the extrinsic reward, and no other."""
    config = replace(SMALL, entropy_target=0.2)
    with seeded_initialisation(0):
        learner, actor = ActorCritic(1, (1, 2), rewards, config), Actor(1, (1, 2), config)
    step = steps(actor, *(critic.network for _, critic in learner.named_critics()), rate=1e-3)
    for update in range(updates):
        position, inputs, actions = torch.zeros(32), [], []
        for t in range(5):
            inputs.append(position[:, None])
            actions.append(actor.sample(inputs[-1], uniform(32, 1, seed=7 * update + t)))
            position = position + (2 * actions[-1][:, 0, 1] - 1) / 4
        inputs, actions = torch.stack(inputs), torch.stack(actions)
        found = {"extrinsic": actions[:-1, :, 0, 1], "goal": torch.zeros(4, 32)}
        ones = torch.ones(5, 32)
        learner.update(actor, Trajectory(inputs, actions.detach(), found, ones, weights(ones, 0.99)), update, step)
    return float(actor(torch.zeros(1))[0, 1].detach())


@pytest.mark.parametrize(
    ("reward", "endless", "wanted"), [("goal", True, 1.99), ("goal", False, 1.0), ("extrinsic", True, 1.0)]
)
def test_intrinsic_returns_may_outlive_an_episode(reward, endless, wanted):
    critic = Critic(3, replace(SMALL, endless_intrinsic=endless))
    for parameter in critic.slow.parameters():
        parameter.zero_()
    list(critic.slow.parameters())[-1].fill_(math.log(2))  # all states are worth 1
    batch = Trajectory(
        inputs=torch.zeros(2, 1, 3),
        action=torch.zeros(2, 1, 1, 2),
        rewards={reward: torch.ones(1, 1)},
        continuation=torch.tensor([[1.0], [0.0]]),
        weight=torch.ones(2, 1),
    )
    returns, _ = critic.returns(batch, reward)
    torch.testing.assert_close(returns, torch.full((1, 1), wanted))


def test_the_worker_learns_what_is_rewarded():
    assert bandit({"extrinsic": 0.5, "goal": 0.0}) > 0.8


def test_and_not_what_is_not():
    assert bandit({"extrinsic": 0.0, "goal": 1.0}) < 0.8


def test_the_worker_reaches_goals_in_a_model_made_by_hand():
    """States are one-hot cells of a ring, dynamics are exact; the reward is the similarity to a goal that is held."""
    cells, batch, config = 8, 64, replace(SMALL, entropy_target=0.2)
    with seeded_initialisation(0):
        learner, actor = ActorCritic(2 * cells, (1, 2), {"goal": 1.0}, config), Actor(2 * cells, (1, 2), config)
    step = steps(actor, *(critic.network for _, critic in learner.named_critics()), rate=3e-3)
    generator, similar = torch.Generator().manual_seed(0), []
    for update in range(400):
        here, there = torch.randint(cells, (2, batch), generator=generator)
        goal, inputs, actions, reached = torch.eye(cells)[there], [], [], []
        for _ in range(5):
            inputs.append(torch.cat([torch.eye(cells)[here], goal], -1))
            actions.append(actor.sample(inputs[-1], torch.rand(batch, 1, generator=generator)))
            here = (here + actions[-1][:, 0].argmax(-1) * 2 - 1) % cells
            reached.append(max_cosine(goal, torch.eye(cells)[here]))
        ones, found = torch.ones(5, batch), torch.stack(reached[:4])
        similar.append(float(found.mean()))
        imagined = Trajectory(torch.stack(inputs), torch.stack(actions), {"goal": found}, ones, weights(ones, 0.99))
        learner.update(actor, imagined._replace(action=imagined.action.detach()), update, step)
    random, learned = sum(similar[:20]) / 20, sum(similar[-20:]) / 20
    assert learned > 1.5 * random
