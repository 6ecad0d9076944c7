from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.exploration import EpsilonGreedy
from skipper.agents.learning_core import named_rng
from skipper.agents.modelfree.agent import ModelFreeAgent, ValueNetwork, play_modelfree
from skipper.config import DecisionConfig, NetworkConfig
from skipper.losses import scalar_loss
from skipper.nets.heads import PairwiseHead, distance_support
from skipper.replay.windows import WindowConfig
from skipper.training.settings import configure
from skipper.types import EnvironmentSpec, TimeStep, Transition

SPEC = EnvironmentSpec((4, 4, 2), (11, 6), 4, 10)
DEBUG = configure("debug", "modelfree")
CONFIG = replace(
    DEBUG, environments=2, replay=WindowConfig(capacity=100), learning=replace(DEBUG.learning, target_update_every=10)
)


def observation(rng: np.random.Generator, batch: int = 2) -> np.ndarray:
    return np.stack([rng.integers(11, size=(batch, 4, 4)), rng.integers(6, size=(batch, 4, 4))], -1).astype(np.uint8)


def feed(agent: ModelFreeAgent, steps: int = 12, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for step in range(steps):
        ends = np.full(2, step % 3 == 2)
        reward = ends * np.array([1.0, 0.0])
        agent.observe(
            Transition(observation(rng), rng.integers(4, size=2), reward, observation(rng), ends, ~ends & False)
        )


def windows_config(**learning):
    return replace(
        CONFIG,
        learning=replace(CONFIG.learning, target_update_every=10_000, **learning),
        replay=WindowConfig(capacity=100, window_episodes=6, window_transitions=2),
    )


def test_actions_are_those_of_the_highest_value():
    agent = ModelFreeAgent(CONFIG, SPEC)
    seen = observation(np.random.default_rng(0), 50)
    step = TimeStep(seen, seen, np.ones(50, bool))
    best = agent.core.network.values(torch.from_numpy(seen)).argmax(-1).numpy()
    assert (agent.act(step).values.argmax(-1) == best).all()
    acted = agent.act(step).action  # epsilon is 1 at the beginning
    assert 5 < (acted == best).sum() < 30
    agent.core.steps = 10**9
    assert (agent.act(step).action == best).sum() > 45


def test_the_target_is_the_double_dqn_return(monkeypatch):
    """The online network chooses the next action, the target network values it, and the end has no future."""
    agent = ModelFreeAgent(
        replace(CONFIG, learning=replace(CONFIG.learning, batch_size=64, target_update_every=10_000)), SPEC
    )
    feed(agent)
    with torch.no_grad():
        for parameter in agent.core.target_network.parameters():
            parameter.mul_(1.3)
    batch = agent._sampler.sample(64, 0.4, named_rng(CONFIG.seed, "sample"))  # the batch of the first update
    with torch.no_grad():
        after = torch.from_numpy(batch.next_observation)
        chosen = agent.core.network.values(after).argmax(-1)
        worth = agent.core.target_network.values(after)[torch.arange(64), chosen].numpy()
    expected = batch.reward + np.where(batch.terminated, 0.0, 0.99 * worth)
    assert 0.1 < batch.terminated.mean() < 0.9
    given = {}
    real = __import__("skipper.agents.modelfree.agent", fromlist=["scalar_loss"]).scalar_loss

    def spy(logits, target, support):
        given["target"] = target.numpy()
        return real(logits, target, support)

    monkeypatch.setattr("skipper.agents.modelfree.agent.scalar_loss", spy)
    agent.learn()
    np.testing.assert_allclose(given["target"], expected, rtol=1e-5)


def test_learning_fits_a_fixed_memory():
    agent = ModelFreeAgent(replace(CONFIG, learning=replace(CONFIG.learning, learning_rate=1e-2)), SPEC)
    assert not agent.ready()
    feed(agent)
    assert agent.ready()
    losses = [agent.learn()["loss"] for _ in range(200)]
    assert np.mean(losses[-20:]) < 0.3 * np.mean(losses[:20])
    assert agent.core.updates == 200


def test_priorities_follow_the_losses():
    agent = ModelFreeAgent(CONFIG, SPEC)
    feed(agent)
    before = agent.state_dict()["sampler"]["priorities"].copy()
    agent.learn()
    after = agent.state_dict()["sampler"]["priorities"]
    assert (before != after).any()
    assert len(np.unique(after)) > 3


def test_the_target_network_is_copied_at_its_time():
    agent = ModelFreeAgent(CONFIG, SPEC)
    feed(agent, steps=4)  # 8 environment steps
    agent.learn()
    same = lambda: all(  # noqa: E731
        (a == b).all()
        for a, b in zip(
            agent.core.network.state_dict().values(), agent.core.target_network.state_dict().values(), strict=True
        )
    )
    assert not same()
    feed(agent, steps=1)  # 10: time for a copy
    assert same()


@pytest.mark.parametrize("windows", [False, True])
def test_a_saved_agent_continues_exactly(monkeypatch, windows):
    config = CONFIG
    if windows:  # with a cache that is too small for all states
        monkeypatch.setattr("skipper.nets.frozen_encoder.PARTIAL_STATES", 30)
        config = windows_config(return_bound=True, act_with_target_network=True)
    agent = ModelFreeAgent(config, SPEC)
    feed(agent)
    seen = observation(np.random.default_rng(3), 20)
    step = TimeStep(seen, seen, np.ones(20, bool))
    agent.act(step)
    for _ in range(5):
        agent.learn()
    other = ModelFreeAgent(replace(config, seed=9), SPEC)
    other.load_state_dict(agent.state_dict())
    for which in (agent, other):
        feed(which, steps=7, seed=1)
    for _ in range(5):
        assert agent.learn() == other.learn()
        assert (agent.act(step).action == other.act(step).action).all()
    one, two = agent.weights(), other.weights()
    assert all((one[name] == two[name]).all() for name in one)


def test_what_is_saved_does_not_change_with_the_agent():
    agent = ModelFreeAgent(CONFIG, SPEC)
    feed(agent)
    agent.learn()
    saved = agent.state_dict()
    moment = next(iter(saved["core"]["optimizer"].values()))["mean"].copy()
    weight = next(iter(saved["core"]["network"].values())).copy()
    agent.learn()
    assert (next(iter(saved["core"]["optimizer"].values()))["mean"] == moment).all()
    assert (next(iter(saved["core"]["network"].values())) == weight).all()


def test_evaluation_draws_from_none_of_the_agents_streams():
    agent = ModelFreeAgent(CONFIG, SPEC)
    state = agent.state_dict()["act_rng"]
    seen = observation(np.random.default_rng(0), 5)
    agent.evaluator(np.random.default_rng(0)).act(TimeStep(seen, seen, np.ones(5, bool)))
    assert agent.state_dict()["act_rng"] == state


def test_playing_with_saved_weights_is_the_same_policy():
    agent = ModelFreeAgent(CONFIG, SPEC)
    seen = observation(np.random.default_rng(0), 30)
    step = TimeStep(seen, seen, np.ones(30, bool))
    player = play_modelfree(CONFIG, SPEC, agent.weights(), np.random.default_rng(0))
    assert isinstance(player, EpsilonGreedy)
    assert (player.act(step).action == agent.evaluator(np.random.default_rng(0)).act(step).action).all()
    wrong = agent.weights() | {"head.support": np.ones(3, np.float32)}
    with pytest.raises(ValueError, match=r"do not fit the network, first at 'head\.support'"):
        play_modelfree(CONFIG, SPEC, wrong, np.random.default_rng(0))


def test_pessimistic_heads_begin_at_their_worst():
    seen = torch.from_numpy(observation(np.random.default_rng(0), 20))
    hopeful, gloomy = (ValueNetwork(NetworkConfig(pessimistic_heads=flag), SPEC).values(seen) for flag in (False, True))
    assert hopeful.mean() > 0.4
    assert gloomy.max() < 0.1
    far = PairwiseHead(4, hidden=8, actions=2, support=distance_support(16), favoured=-1)
    assert far.expectation(far(torch.randn(5, 4), torch.randn(5, 4))).min() > 15


def test_the_loss_is_weighted_per_sample_and_taken_actions_only_and_priorities_are_not_weighted(monkeypatch):
    agent = ModelFreeAgent(CONFIG, SPEC)
    feed(agent)
    sampler = agent._sampler
    sampler.update_priorities(np.arange(24), np.linspace(0.01, 5.0, 24))
    batch = sampler.sample(CONFIG.learning.batch_size, CONFIG.replay.beta, named_rng(CONFIG.seed, "sample"))
    seen = {}
    real = __import__("skipper.agents.modelfree.agent", fromlist=["scalar_loss"]).scalar_loss

    def spy(logits, target, support):
        seen["logits"], seen["losses"] = logits.detach().clone(), real(logits, target, support)
        return seen["losses"]

    monkeypatch.setattr("skipper.agents.modelfree.agent.scalar_loss", spy)
    monkeypatch.setattr(agent.core, "sample", lambda _: batch)
    with torch.no_grad():
        logits = agent.core.network(torch.from_numpy(batch.observation))
    loss = agent.learn()["loss"]
    rows = torch.arange(len(batch.action)), torch.from_numpy(batch.action)
    torch.testing.assert_close(seen["logits"], logits[rows])
    losses = seen["losses"].detach().numpy()
    assert batch.weight.min() < 0.9
    assert loss == pytest.approx(float((losses * batch.weight).mean()), rel=1e-5)
    # Of a sample that was drawn twice both losses are the same.
    priorities = sampler.state_dict()["priorities"][batch.leaf]
    np.testing.assert_allclose(priorities, (losses.astype(np.float64) + 1e-6) ** 0.6, rtol=1e-4)


def test_importance_weights_reach_full_strength_at_the_end(monkeypatch):
    agent = ModelFreeAgent(CONFIG, SPEC)
    feed(agent)
    betas = []
    real = agent._sampler.sample
    monkeypatch.setattr(agent._sampler, "sample", lambda batch, beta, rng: betas.append(beta) or real(batch, beta, rng))
    for step in (0, CONFIG.steps // 2, CONFIG.steps, 10 * CONFIG.steps):
        agent.core.steps = step
        agent.learn()
    assert betas == pytest.approx([0.4, 0.7, 1.0, 1.0])


def test_copies_of_the_network_keep_their_rhythm_over_a_resume():
    agent = ModelFreeAgent(CONFIG, SPEC)
    feed(agent, steps=7)  # 14 steps: one copy was made, at 10
    agent.learn()
    other = ModelFreeAgent(CONFIG, SPEC)
    other.load_state_dict(agent.state_dict())
    before = other.core.target_network.state_dict()["head.layers.0.weight"].clone()
    feed(other, steps=2)  # 18: not yet
    assert (other.core.target_network.state_dict()["head.layers.0.weight"] == before).all()
    feed(other, steps=1)  # 20
    assert not (other.core.target_network.state_dict()["head.layers.0.weight"] == before).all()


@pytest.mark.parametrize("bound", [False, True])
def test_the_target_of_a_window_is_the_double_dqn_return_raised_to_what_the_episode_collected(monkeypatch, bound):
    agent = ModelFreeAgent(windows_config(return_bound=bound), SPEC)
    feed(agent)
    with torch.no_grad():
        for parameter in agent.core.target_network.parameters():
            parameter.mul_(1.3)
    batch = agent._sampler.sample(named_rng(CONFIG.seed, "sample"))  # the batch of the first update
    seen = torch.from_numpy(batch.observation)
    with torch.no_grad():
        logits, chosen = agent.core.network(seen), agent.core.network.values(seen).argmax(-1)
        worth = agent.core.target_network.values(seen)[torch.arange(len(seen)), chosen].numpy()[batch.next]
    expected = batch.reward + np.where(batch.terminated, 0.0, 0.99 * worth)
    if bound:
        assert (batch.collected > expected + 0.05).any()
        expected = np.maximum(expected, batch.collected)
    given = {}

    def spy(logits, target, support):
        given["logits"], given["target"] = logits.detach(), target.numpy()
        return scalar_loss(logits, target, support)

    monkeypatch.setattr("skipper.agents.modelfree.agent.scalar_loss", spy)
    agent.learn()
    np.testing.assert_allclose(given["target"], expected, rtol=1e-4)
    torch.testing.assert_close(given["logits"], logits[batch.source, batch.action])


def test_learning_from_windows_fits_a_fixed_memory():
    agent = ModelFreeAgent(windows_config(learning_rate=1e-2), SPEC)
    assert not agent.ready()
    feed(agent)
    assert agent.ready()
    losses = [agent.learn()["loss"] for _ in range(200)]
    assert np.mean(losses[-20:]) < 0.3 * np.mean(losses[:20])


def test_acting_with_the_target_network_waits_for_its_update():
    settings = replace(CONFIG.learning, act_with_target_network=True, target_update_every=10_000)
    agent = ModelFreeAgent(replace(CONFIG, learning=settings), SPEC)
    seen = observation(np.random.default_rng(0), 50)
    step = TimeStep(seen, seen, np.ones(50, bool))
    before = agent.act(step).values
    with torch.no_grad():
        for parameter in agent.core.network.parameters():
            parameter.mul_(1.3)
    np.testing.assert_allclose(agent.act(step).values, before)
    agent.core.target_network.load_state_dict(agent.core.network.state_dict())
    np.testing.assert_allclose(agent.act(step).values, agent.core.network.expect(seen), rtol=1e-4)


def test_a_bound_of_the_return_needs_windows_and_a_deterministic_world():
    with pytest.raises(ValueError, match="return_bound needs window_episodes"):
        replace(CONFIG, learning=replace(CONFIG.learning, return_bound=True))
    slippery = configure("fast", "modelfree", world=replace(CONFIG.world, slip=0.1))
    assert not slippery.learning.return_bound
    assert configure("fast", "modelfree").learning.return_bound


def test_evaluation_uses_the_aids():
    seen = observation(np.random.default_rng(0), 50)
    first, later = (TimeStep(seen, seen, np.full(50, begins)) for begins in (True, False))
    for penalty, stays in ((0.0, True), (1.0, False)):
        agent = ModelFreeAgent(replace(CONFIG, decision=DecisionConfig(revisit_penalty=penalty)), SPEC)
        loaded = play_modelfree(agent.config, SPEC, agent.weights(), np.random.default_rng(0))
        for player in (agent.evaluator(np.random.default_rng(0)), loaded):
            assert (player.act(first).action == player.act(later).action).all() == stays
