"""A network with changed modules decides, plans and learns with these, not with twins of the original ones."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.hindsight import Hindsight, head_losses
from skipper.agents.skipper.policy import SkipperPolicy
from skipper.agents.skipper.update import bootstrap_targets
from skipper.config import NetworkConfig, SkipperGeneratorConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.generator import Fuser
from skipper.nets.heads import PairwiseHead, expect_pairs
from skipper.nets.layers import ResidualBlock, seeded_initialisation
from skipper.nets.selector import LocalFieldSelector
from skipper.replay.all_pairs import NO_PAIR
from skipper.training.settings import configure
from skipper.types import CURRENT, TimeStep

WORLD = LavaConfig(6, 6, max_steps=20)
SPEC, TASKS = environment_spec(WORLD), training_tasks(WORLD, 4, seed=0)
BASE = configure("debug", "skipper-regen")
CONFIG = replace(
    BASE,
    world=WORLD,
    network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
    generator=SkipperGeneratorConfig(generator_width=4),
    planning=replace(BASE.planning, replan="step", match_observations=True, edge_threshold=20.0),
)


class ChangedSelector(LocalFieldSelector):
    def forward(self, state: torch.Tensor) -> torch.Tensor:
        return super().forward(state).flip(-1) * 1.5


class ChangedHead(PairwiseHead):
    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return super().forward(target, source).flip(-1)


class ChangedFuser(Fuser):
    def forward(self, context: torch.Tensor, bits: torch.Tensor) -> torch.Tensor:
        return -super().forward(context, bits)


class ChangedBlock(ResidualBlock):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - 2.0 * super().forward(x)


def changed(part: str) -> SkipperNetwork:
    with seeded_initialisation(0):
        network = SkipperNetwork(CONFIG, SPEC)
    if part == "selector":
        network.estimators.partial.select.__class__ = ChangedSelector
    elif part == "block":
        network.estimators.partial.encode.mix.__class__ = ChangedBlock
        network.generator.fuse.mix.__class__ = ChangedBlock
    elif part == "fuser":
        network.generator.fuse.__class__ = ChangedFuser
    elif part == "heads":
        for name in ("value", "reward", "distance"):
            getattr(network.estimators, name).__class__ = ChangedHead
    return network


class RecordingCodes(FrozenNetwork):
    """Keeps the codes that states were last imagined from."""

    def imagine(self, observation: np.ndarray, codes: np.ndarray, environments: np.ndarray | None = None) -> np.ndarray:
        self.codes = codes
        return super().imagine(observation, codes, environments)


@torch.no_grad()
def expectation(network: SkipperNetwork, head: str, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(P, A) the modules' own answer for pairs of states (P, W, H, C)."""
    module = getattr(network.estimators, head)
    sigma, aim = (network.estimators.partial(torch.from_numpy(states)) for states in (source, target))
    return module.expectation(module(sigma, aim)).numpy()


@pytest.mark.parametrize("part", ["selector", "heads", "fuser", "block"])
@pytest.mark.parametrize(
    "settings", [{"caching": False}, {}, {"plans": CONFIG.planning}], ids=["online", "training", "evaluation"]
)
def test_decisions_are_those_of_the_modules(part, settings):
    network = changed(part)
    frozen = RecordingCodes(network, CONFIG, SPEC, **settings)
    policy = SkipperPolicy(frozen, CONFIG, SPEC, np.random.default_rng(0))
    envs = LavaVectorEnv(4, tasks=TASKS)
    observation, info = envs.reset(seed=0)
    first, aimed = np.ones(4, bool), 0
    for _ in range(4):
        decision = policy.decide(TimeStep(observation, info["goal"], first))
        vertices, aiming = decision.plan.vertices, decision.aiming
        # Imagined states.
        with torch.no_grad():
            logits = network.generator(torch.from_numpy(observation), torch.from_numpy(frozen.codes)).numpy()
        cells = SPEC.scene.agent_cell(vertices.observation[:, 1:-1].reshape(-1, *SPEC.shape)).reshape(4, -1)
        chosen = np.take_along_axis(logits, cells[..., None], -1)[..., 0]
        np.testing.assert_allclose(chosen, logits.max(-1), atol=1e-4)
        # Edges from the current state.
        for row in range(4):
            targets = np.flatnonzero(vertices.present[row])[1:]
            states = vertices.observation[row, targets]
            here = np.repeat(vertices.observation[row, [CURRENT]], len(targets), axis=0)
            action = expectation(network, "value", here, states).argmax(-1)
            distance = expectation(network, "distance", here, states)[np.arange(len(action)), action]
            assert not decision.plan.edges.terminal[row, CURRENT]
            found = decision.plan.edges.distance[row, CURRENT, targets]
            np.testing.assert_allclose(found, distance, rtol=1e-4)
        # Actions.
        if aiming.any():
            aimed += aiming.sum()
            values = expectation(network, "value", observation[aiming], decision.target[aiming])
            np.testing.assert_allclose(decision.values[aiming], values, rtol=1e-4, atol=1e-6)
        observation, _, terminated, truncated, info = envs.step(decision.action)
        first = terminated | truncated
    assert aimed > 0


@pytest.mark.parametrize("part", ["selector", "heads", "block"])
def test_bootstrap_targets_are_those_of_the_modules(part):
    network, rng = changed(part), np.random.default_rng(0)
    states = TASKS.observe(rng.integers(4, size=12), rng.integers(36, size=12))
    source, after, target = torch.from_numpy(rng.integers(12, size=(3, 30)))
    rest = torch.zeros(30)
    batch = Hindsight(
        torch.from_numpy(states),
        torch.zeros(12, dtype=torch.int64),
        source,
        after,
        target,
        *(rest.long(), rest, rest.bool(), rest.bool(), rest, rest, torch.full((30,), NO_PAIR), rest + 1.0),
    )
    encode = FrozenNetwork(network, CONFIG, SPEC).encode
    found = bootstrap_targets(network.estimators, batch, encode)
    for name in ("value", "reward", "distance"):
        expected = expectation(network, name, states[after], states[target])
        np.testing.assert_allclose(getattr(found, name).numpy(), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_changed_block_changes_encoder_and_fuser():
    plain, other = changed("nothing"), changed("block")
    states = torch.from_numpy(TASKS.observe(np.arange(4), TASKS.table.start))
    encode, mix = other.estimators.partial.encode, other.estimators.partial.encode.mix
    torch.testing.assert_close(encode(states), mix(encode.embed(states)))
    assert not torch.allclose(encode(states), plain.estimators.partial.encode(states))
    codes = torch.arange(12).view(4, 3)
    assert not torch.allclose(other.generator(states, codes), plain.generator(states, codes))


def test_losses_are_those_of_a_head_with_a_hook():
    with seeded_initialisation(0):
        head = SkipperNetwork(CONFIG, SPEC).estimators.value
    sigma, index = torch.rand(6, CONFIG.network.partial_width), torch.arange(6)
    given = (sigma, index, index.flip(0), index % 4, torch.rand(6))
    before = head_losses(head, *given), expect_pairs(head, *given[:3])
    handle = head.layers[2].register_forward_hook(lambda *_: _[-1] + 1.0)
    after = head_losses(head, *given), expect_pairs(head, *given[:3])
    handle.remove()
    again = head_losses(head, *given), expect_pairs(head, *given[:3])
    for one, two, three in zip(before, after, again, strict=True):
        assert not torch.allclose(one, two)
        torch.testing.assert_close(one, three)
