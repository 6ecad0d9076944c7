"""Edge estimation and the checkpoint policy: four heads on partial states, learned from hindsight (Sec. 3.3)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from skipper.agents.learning_core import observations_tensor
from skipper.config import LearningConfig, NetworkConfig, RunConfig
from skipper.losses import distance_target, reward_target, terminal_loss, value_target
from skipper.nets.compiled.pair_losses import pair_losses
from skipper.nets.generator import CheckpointGenerator, GoalGenerator
from skipper.nets.heads import PairwiseHead, distance_support, unit_support
from skipper.nets.layers import mlp
from skipper.nets.selector import PartialStates
from skipper.replay.store import Pairs, Samples
from skipper.types import EnvironmentSpec


class EstimatorNetwork(nn.Module):
    """Partial states, and four heads on them: value, reward and distance of pairs, and whether a state is terminal."""

    def __init__(self, config: NetworkConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.partial = PartialStates(config, spec)

        def head(support: Tensor, worst: int) -> PairwiseHead:
            return PairwiseHead(
                config.partial_width,
                hidden=config.hidden,
                actions=spec.actions,
                support=support,
                favoured=worst if config.pessimistic_heads else None,
                scaled=config.scaled_start,
            )

        self.value = head(unit_support(config.bins), 0)
        self.reward = head(unit_support(config.bins), 0)
        self.distance = head(distance_support(config.bins), -1)
        self.terminal = mlp(config.partial_width, config.hidden, 2, scaled=config.scaled_start)


class SkipperNetwork(nn.Module):
    """Everything that Skipper learns: estimators, checkpoint generator and, optionally, a generator of goals."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.estimators = EstimatorNetwork(config.network, spec)
        self.generator = CheckpointGenerator(config.generator, spec)
        self.goal = GoalGenerator(config.generator, spec) if config.generator.learned_goal else None


class Hindsight(NamedTuple):
    """P transitions with a target each, as indices into M states, so that each state is encoded once."""

    state: Tensor  # (M, W, H, C)
    episode: Tensor  # (M,) which states belong together
    source: Tensor  # (P,) into state
    next: Tensor  # (P,) into state
    target: Tensor  # (P,) into state
    action: Tensor  # (P,)
    reward: Tensor  # (P,)
    terminated: Tensor  # (P,) bool
    reached: Tensor  # (P,) bool, whether the next state is the target
    steps: Tensor  # (P,) in which the target was reached in hindsight, inf where it was not or nobody knows
    gain: Tensor  # (P,) discounted reward of that way, -inf where there is none

    @classmethod
    def of_samples(cls, samples: Samples) -> "Hindsight":
        """Single samples: three states each."""
        B = len(samples.action)  # noqa: N806
        state = np.concatenate([samples.observation, samples.next_observation, samples.target])
        source, after, target = torch.arange(3 * B).split(B)
        reached = (samples.next_observation == samples.target).reshape(B, -1).all(1)
        return cls(
            observations_tensor(state),
            torch.arange(B).repeat(3),
            source,
            after,
            target,
            torch.from_numpy(samples.action),
            torch.from_numpy(samples.reward),
            torch.from_numpy(samples.terminated),
            torch.from_numpy(reached),
            torch.full((B,), torch.inf),
            torch.full((B,), -torch.inf),
        )

    @classmethod
    def of_pairs(cls, pairs: Pairs) -> "Hindsight":
        """Pairs of a few episodes."""
        rest = (torch.from_numpy(np.ascontiguousarray(column)) for column in pairs[2:])
        return cls(observations_tensor(pairs.observation), *rest)

    @property
    def firsts(self) -> Tensor:
        """(E,) the first state of every episode."""
        return torch.from_numpy(np.unique(self.episode.numpy(), return_index=True)[1])

    def aiming_also_at(self, targets: Tensor, rows: Tensor) -> "Hindsight":
        """These transitions, and then those of ``rows`` (R,) once more, towards new ``targets`` (E, W, H, C)."""
        state = torch.cat([self.state, targets])
        new = len(self.state) + self.episode[self.source[rows]]
        reached = (state[self.next[rows]] == state[new]).flatten(1).all(1)
        never = torch.full((len(rows),), torch.inf)
        replaced = {"target": new, "reached": reached, "steps": never, "gain": -never}
        again = (replaced[name] if name in replaced else getattr(self, name)[rows] for name in self._fields[2:])
        episode = torch.cat([self.episode, torch.arange(len(targets))])
        return Hindsight(state, episode, *map(torch.cat, zip(self[2:], again, strict=True)))


class BootstrapTargets(NamedTuple):
    """What the frozen network expects of every action after the next states, (P, A) each."""

    value: Tensor
    reward: Tensor
    distance: Tensor

    def of_action(self, action: Tensor) -> "BootstrapTargets":
        """(P,) each, if ``action`` (P,) is taken."""
        return BootstrapTargets(*(column.gather(-1, action[:, None])[:, 0] for column in self))


@torch.no_grad()
def _expectation(head: PairwiseHead, partial: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """(P, A) what a head expects of pairs, given as indices into partial states (M, D)."""
    if type(head) is PairwiseHead:
        return head.expect_pairs(partial, source, target)
    return head.expectation(head(partial[source], partial[target]))


@torch.no_grad()
def bootstrap_targets(
    frozen: EstimatorNetwork, batch: Hindsight, encode: Callable[[Tensor], Tensor] | None = None
) -> BootstrapTargets:
    """Estimates of the ``frozen`` network; ``encode`` gives its partial states, (M, W, H, C) to (M, D)."""
    sigma = _encode_used(encode or frozen.partial, batch)
    heads = (frozen.value, frozen.reward, frozen.distance)
    return BootstrapTargets(*(_expectation(head, sigma, batch.next, batch.target) for head in heads))


def estimator_losses(
    online: EstimatorNetwork,
    batch: Hindsight,
    bootstrap: BootstrapTargets,
    config: LearningConfig,
    real: int | None = None,
) -> dict[str, Tensor]:
    """Per-pair losses of all four heads; one next action, chosen by the online policy, serves them all.

    Those of the distance are (P,), the others (real,): of the pairs after so many, only distances are learned.
    """
    sigma = online.partial(batch.state)  # (M, D)
    with torch.no_grad():
        a_t = _expectation(online.value, sigma, batch.next, batch.target).argmax(-1)  # (P,)
        after = bootstrap.of_action(a_t)
        aims = {
            "value": value_target(batch.reached, batch.terminated, after.value, config.policy_discount),
            "reward": reward_target(batch.reward, batch.reached, batch.terminated, after.reward, config.task_discount),
            "distance": distance_target(batch.reached, batch.terminated, after.distance),
        }
        if config.hindsight_bound:
            aims["value"] = aims["value"].maximum(config.policy_discount ** (batch.steps - 1.0))
            aims["reward"] = aims["reward"].maximum(batch.gain)
            aims["distance"] = aims["distance"].minimum(batch.steps)
    ending = online.terminal(sigma).index_select(0, batch.next[:real])
    losses = {"terminal": terminal_loss(ending, batch.terminated[:real])}
    for name, aim in aims.items():
        rows = slice(None) if name == "distance" else slice(real)
        asked = (column[rows] for column in (batch.source, batch.target, batch.action, aim))
        losses[name] = pair_losses(getattr(online, name), sigma, *asked)
    return losses


def _encode_used(partial: Callable[[Tensor], Tensor], batch: Hindsight) -> Tensor:
    """(M, D) partial states; zero where a state is neither a next one nor a target and so is not asked for."""
    used = torch.zeros(len(batch.state), dtype=torch.bool)
    used[batch.next] = used[batch.target] = True
    encoded = partial(batch.state[used])
    return torch.zeros(len(batch.state), encoded.shape[1]).masked_scatter_(used[:, None], encoded)
