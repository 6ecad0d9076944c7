"""What learning agents share: random streams, schedules, experience, and saving all of it."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from skipper.agents.optimizer import Block, Optimizer, side_by_side
from skipper.config import LearningConfig, ReplayConfig, RunConfig
from skipper.nets.layers import seeded_initialisation
from skipper.replay.episodes import Episode, EpisodeBuilder
from skipper.replay.store import NO_TASK, Pairs, Replay, Samples
from skipper.runtime.hashing import content_hashes
from skipper.types import Array, Attention, Decision, EnvironmentSpec, TimeStep, Transition

Network = TypeVar("Network", bound=nn.Module)
TASK_IMAGES = 1021  # images that are drawn together; a task's number says which of them is its own


def named_rng(seed: int, name: str) -> np.random.Generator:
    """The random stream of one purpose of a run, so that a change in one place does not move the others."""
    return np.random.default_rng([seed, *name.encode()])


def linear_epsilon(config: LearningConfig, step: int) -> float:
    """The share of random actions after ``step`` environment steps."""
    done = min(step / config.epsilon_steps, 1.0)
    return config.epsilon_start + done * (config.epsilon_end - config.epsilon_start)


def explore(greedy: Array, epsilon: float, actions: int, rng: np.random.Generator) -> Array:
    """(B,) the greedy actions, each replaced by a random one with probability ``epsilon``."""
    random = rng.random(len(greedy)) < epsilon
    return np.where(random, rng.integers(actions, size=len(greedy)), greedy)


def observations_tensor(observation: Array) -> Tensor:
    """(B, W, H, C) as the networks take it, without a copy where that is possible."""
    return torch.from_numpy(np.ascontiguousarray(observation))


def module_state(module: nn.Module) -> dict[str, Array]:
    """Parameters and buffers as arrays."""
    return {name: tensor.detach().numpy().copy() for name, tensor in module.state_dict().items()}


def load_module_state(module: nn.Module, state: dict[str, Array]) -> None:
    """Take over arrays; names and shapes must fit exactly."""
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    given = {name: array.shape for name, array in state.items()}
    if given != expected:
        wrong = sorted(name for name in expected.keys() | given.keys() if expected.get(name) != given.get(name))
        raise ValueError(f"the weights do not fit the network, first at {wrong[0]!r}")
    module.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.items()})


class WeightAverage(Generic[Network]):
    """A running average of a network's weights over its updates.

    Single updates push the weights to and fro around where they are heading; their average is ahead of each of them.
    """

    def __init__(self, network: Network, kept: float) -> None:
        self.network = deepcopy(network).requires_grad_(False)
        self._vectors = [block.vector for block in side_by_side(self.network)]
        self._weights = list(self.network.parameters())
        self._kept, self._updates = kept, 0

    @torch.no_grad()
    def update(self, blocks: list[Block]) -> None:
        """Take in the newest weights; the first ones count for more, so that the beginning is soon forgotten."""
        self._updates += 1
        kept = min(self._kept, self._updates / (self._updates + 10.0))
        for mine, block in zip(self._vectors, blocks, strict=True):
            mine.lerp_(block.vector, 1.0 - kept)
        torch.autograd.graph.increment_version(self._weights)

    def state_dict(self) -> dict[str, Any]:
        """The average and what it counts."""
        return {"network": module_state(self.network), "updates": self._updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue a saved average."""
        load_module_state(self.network, state["network"])
        self._updates = state["updates"]


class Online(Generic[Network]):
    """The network that learns, with its optimizer and its average: everything that updates change."""

    def __init__(self, network: Network, config: LearningConfig) -> None:
        self.network, self.optimizer = network, Optimizer(network, config)
        self.average = WeightAverage(network, config.ema_decay) if config.ema_decay else None

    def update(self, loss: Tensor | None, rate: float) -> float:
        """One step down ``loss``, at a share ``rate`` of the learning rate; None where there is nothing to learn."""
        value = 0.0 if loss is None else self.optimizer.step(loss, rate)
        if self.average:
            self.average.update(self.optimizer.blocks)
        return value

    @property
    def evaluated(self) -> Network:
        """The network that is evaluated and saved: the average of many updates, or the newest."""
        return self.average.network if self.average else self.network

    def state_dict(self) -> dict[str, Any]:
        """All of it."""
        return {
            "network": module_state(self.network),
            "average": self.average.state_dict() if self.average else {},
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken; other entries are not looked at."""
        load_module_state(self.network, state["network"])
        if self.average:
            self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])

    def load_part(self, part: str, state: dict[str, Any]) -> None:
        """Take over one part of the network, as an attribute of it is called; the others stay as they are here."""
        mine = self.state_dict()
        for name in ("network", "optimizer"):
            state[name] = _with_part(mine[name], part, state[name])
        if self.average:
            state["average"]["network"] = _with_part(mine["average"]["network"], part, state["average"]["network"])
        self.load_state_dict(state)


def _with_part(mine: dict[str, Any], part: str, other: dict[str, Any]) -> dict[str, Any]:
    """The entries that belong to a part from the other dictionary, the rest from this one."""
    rest = {name: entry for name, entry in mine.items() if not name.startswith(f"{part}.")}
    return rest | {name: entry for name, entry in other.items() if name.startswith(f"{part}.")}


class Images:
    """Shows what is learned from in symmetric images, which the network cannot tell from other tasks."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        if spec.symmetries is None:
            raise ValueError("symmetries needs an environment that offers its symmetries; this one does not")
        self._seed, self._symmetries = config.seed, spec.symmetries

    def of_pairs(self, pairs: Pairs, period: int) -> Pairs:
        """Every task in the image that it is shown in during ``period``, so that its states stay few meanwhile."""
        drawn = self._draw(TASK_IMAGES, np.random.default_rng([self._seed, period]))
        which = drawn[pairs.task % TASK_IMAGES][pairs.episode]  # (M,)
        return pairs._replace(
            observation=self._symmetries.images(pairs.observation, which),
            action=self._symmetries.actions[which[pairs.source], pairs.action],
        )

    def of_samples(self, samples: Samples, rng: np.random.Generator) -> Samples:
        """Each sample in a random image."""
        which = self._draw(len(samples.action), rng)
        states = ("observation", "next_observation", "target")
        images = {name: self._symmetries.images(getattr(samples, name), which) for name in states}
        return samples._replace(action=self._symmetries.actions[which, samples.action], **images)

    def of_contexts(self, states: tuple[Array, Array], rng: np.random.Generator) -> tuple[Array, Array]:
        """Each pair of states of an episode in a random image."""
        which = self._draw(len(states[0]), rng)
        return self._symmetries.images(states[0], which), self._symmetries.images(states[1], which)

    def _draw(self, count: int, rng: np.random.Generator) -> Array:
        return rng.integers(len(self._symmetries.cells), size=count)


class Experience:
    """Where transitions go: into the episodes under way, and when these end, into replay."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec, replay: ReplayConfig) -> None:
        self.replay = Replay(replay, spec.shape)
        self._building = EpisodeBuilder(config.environments, spec.longest, spec.shape)
        self._scene = spec.scene
        self._rng = named_rng(config.seed, "store")

    def append(self, transition: Transition) -> None:
        """Take one transition of every environment."""
        for episode in self._building.append(transition):
            self.replay.add(episode, self._rng, self._task_of(episode))

    def _task_of(self, episode: Episode) -> int:
        """A number that the episodes of a task share, if the environment tells tasks apart."""
        if self._scene is None:
            return NO_TASK
        return int(content_hashes(self._scene.scenery(episode.observation[:1]).reshape(1, -1))[0])

    def state_dict(self) -> dict[str, Any]:
        """Finished and unfinished episodes."""
        return {
            "replay": self.replay.state_dict(),
            "building": self._building.state_dict(),
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue with saved episodes."""
        self.replay.load_state_dict(state["replay"])
        self._building.load_state_dict(state["building"])
        self._rng.bit_generator.state = state["rng"]


class LearningCore(Generic[Network]):
    """Online and target network, optimizer, experience and counters: what off-policy agents learn with."""

    def __init__(
        self, config: RunConfig, spec: EnvironmentSpec, build: Callable[[], Network], replay: ReplayConfig
    ) -> None:
        self.config = config
        with seeded_initialisation(config.seed):
            self.online, self.target_network = Online(build(), config.learning), build()
        self.target_network.requires_grad_(False)
        self.target_network.load_state_dict(self.network.state_dict())
        self._images = Images(config, spec) if config.learning.symmetries else None
        self.experience = Experience(config, spec, replay)
        self.sample_rng = named_rng(config.seed, "sample")
        self.steps = self.updates = self._syncs = 0

    def observe(self, transition: Transition) -> None:
        """Store the transition; copy the network from time to time."""
        self.experience.append(transition)
        copies = self.copies_after(transition)
        self.steps += len(transition.action)
        if copies:
            self._syncs = self.steps // self.config.learning.target_update_every
            self.target_network.load_state_dict(self.network.state_dict())

    def copies_after(self, transition: Transition) -> bool:
        """Whether it is time to copy the network when the transition is stored."""
        return (self.steps + len(transition.action)) // self.config.learning.target_update_every > self._syncs

    def sample(self) -> Samples:
        """A batch by priority; importance weights grow to full strength over the run."""
        beta = self.config.replay.beta
        beta += (1.0 - beta) * min(self.steps / self.config.steps, 1.0)
        samples = self.experience.replay.sample(self.config.learning.batch_size, beta, self.sample_rng)
        return self._images.of_samples(samples, self.sample_rng) if self._images else samples

    def sample_pairs(self) -> Pairs:
        """All pairs of some transitions and targets of some episodes."""
        pairs = self.experience.replay.sample_pairs(self.sample_rng, self.config.learning.task_discount)
        return self._images.of_pairs(pairs, self._syncs) if self._images else pairs

    def sample_contexts(self) -> tuple[Array, Array]:
        """A batch of states, each with another one of its episode."""
        states = self.experience.replay.sample_contexts(self.config.learning.batch_size, self.sample_rng)
        return self._images.of_contexts(states, self.sample_rng) if self._images else states

    @property
    def rate(self) -> float:
        """The share of the learning rate that is due; it may fall over the second half of the run."""
        late = max(2.0 * min(self.steps / self.config.steps, 1.0) - 1.0, 0.0)
        return 1.0 - late * (1.0 - self.config.learning.final_learning_rate_fraction)

    @property
    def network(self) -> Network:
        """The network that learns."""
        return self.online.network

    @property
    def evaluated(self) -> Network:
        """The network that is evaluated and saved."""
        return self.online.evaluated

    def prioritise(self, batch: Samples, losses: Array) -> None:
        """Make the per-sample ``losses`` (B,) the batch's priorities."""
        self.experience.replay.update(batch.places, losses)

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimizer, experience, random stream and counters."""
        return self.online.state_dict() | {
            "target_network": module_state(self.target_network),
            "experience": self.experience.state_dict(),
            "sample_rng": self.sample_rng.bit_generator.state,
            "counters": {"steps": self.steps, "updates": self.updates, "syncs": self._syncs},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.online.load_state_dict(state)
        load_module_state(self.target_network, state["target_network"])
        self.experience.load_state_dict(state["experience"])
        self.sample_rng.bit_generator.state = state["sample_rng"]
        counters = state["counters"]
        self.steps, self.updates, self._syncs = counters["steps"], counters["updates"], counters["syncs"]


class EpsilonGreedy:
    """Mostly the action of the highest value, with some random ones, drawn from a stream of its own."""

    def __init__(
        self,
        values: Callable[[Array], Array],
        epsilon: float,
        rng: np.random.Generator,
        attend: Callable[[Array], Attention | None] | None = None,
    ) -> None:
        """``values`` are (B, A) of observations (B, W, H, C), ``attend`` says what they depend on."""
        self._values, self._epsilon, self._rng, self._attend = values, epsilon, rng, attend

    def act(self, timestep: TimeStep) -> Decision:
        """The action, and what was expected of all of them."""
        values = self._values(timestep.observation)
        attention = self._attend(timestep.observation) if self._attend else None
        action = explore(values.argmax(-1), self._epsilon, values.shape[1], self._rng)
        return Decision(action, values=values, attention=attention)
