"""What off-policy agents share: the online and the target network, stored episodes, schedules and saving."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from skipper.agents.optimizer import Block, Optimizer, contiguous_blocks
from skipper.config import EstimatorRunConfig, LearningConfig, RunConfig
from skipper.nets.layers import seeded_initialisation
from skipper.replay.all_pairs import Pairs
from skipper.replay.episodes import Episode, EpisodeBuilder
from skipper.replay.prioritized import PrioritizedSampler, Samples
from skipper.replay.sequences import Sequences
from skipper.replay.store import NO_TASK, EpisodeStore
from skipper.replay.windows import Transitions
from skipper.runtime.hashing import content_hashes
from skipper.types import Array, EnvironmentSpec, Transition

COUNTERS = ("steps", "updates", "target_updates", "budget")
TASK_IMAGES = 1021  # images drawn per period; the number of a task selects one of them

Network = TypeVar("Network", bound=nn.Module)


def named_rng(seed: int, name: str) -> np.random.Generator:
    """The random stream of one purpose of a run: a change in one place does not shift the other streams."""
    return np.random.default_rng([seed, *name.encode()])


def module_state(module: nn.Module) -> dict[str, Array]:
    """Parameters and buffers as arrays."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in module.state_dict().items()}


def load_module_state(module: nn.Module, state: dict[str, Array]) -> None:
    """Load arrays; names and shapes must match exactly."""
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    given = {name: array.shape for name, array in state.items()}
    if given != expected:
        wrong = sorted(name for name in expected.keys() | given.keys() if expected.get(name) != given.get(name))
        raise ValueError(f"the weights do not fit the network, first at {wrong[0]!r}")
    module.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.items()})


class WeightsEMA(Generic[Network]):
    """An exponential moving average of a network's weights over its updates."""

    def __init__(self, network: Network, decay: float) -> None:
        self.network = deepcopy(network).requires_grad_(False)
        self._vectors = [block.vector for block in contiguous_blocks(self.network)]
        self._weights = list(self.network.parameters())
        self._decay, self._updates = decay, 0

    @torch.no_grad()
    def update(self, blocks: list[Block]) -> None:
        """Include the current weights; the decay starts small, so that the initial weights are soon forgotten."""
        self._updates += 1
        decay = min(self._decay, self._updates / (self._updates + 10.0))
        for average, block in zip(self._vectors, blocks, strict=True):
            average.lerp_(block.vector, 1.0 - decay)
        torch.autograd.graph.increment_version(self._weights)  # the vectors are written, caches watch the weights

    def state_dict(self) -> dict[str, Any]:
        """The average and the number of its updates."""
        return {"network": module_state(self.network), "updates": self._updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue a saved average."""
        load_module_state(self.network, state["network"])
        self._updates = state["updates"]


class OnlineNetwork(Generic[Network]):
    """The network that is trained, with its optimizer and its average: everything that an update changes."""

    def __init__(self, network: Network, config: LearningConfig) -> None:
        self.network, self.optimizer = network, Optimizer(network, config)
        self.average = WeightsEMA(network, config.ema_decay) if config.ema_decay else None

    def step(self, loss: Tensor, rate: float) -> float:
        """One gradient step at the fraction ``rate`` of the learning rate; the loss as a number."""
        return self.optimizer.step(loss, rate)

    def update_average(self) -> None:
        """Include the current weights in their average, once per update."""
        if self.average:
            self.average.update(self.optimizer.blocks)

    @property
    def evaluated(self) -> Network:
        """The network that is evaluated and saved: the average of the weights, or the current ones."""
        return self.average.network if self.average else self.network

    def state_dict(self) -> dict[str, Any]:
        """Network, average and optimizer."""
        return {
            "network": module_state(self.network),
            "average": self.average.state_dict() if self.average else {},
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken; other entries are ignored."""
        load_module_state(self.network, state["network"])
        if self.average:
            self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])

    def load_part(self, part: str, state: dict[str, Any]) -> None:
        """Load the part of the network that is its attribute ``part``; the other parts stay as they are."""
        mine = self.state_dict()
        for name in ("network", "optimizer"):
            state[name] = _with_part(mine[name], part, state[name])
        if self.average:
            state["average"]["network"] = _with_part(mine["average"]["network"], part, state["average"]["network"])
        self.load_state_dict(state)


def _with_part(mine: dict[str, Any], part: str, other: dict[str, Any]) -> dict[str, Any]:
    """``mine``, with the entries of one part from ``other``."""
    rest = {name: entry for name, entry in mine.items() if not name.startswith(f"{part}.")}
    return rest | {name: entry for name, entry in other.items() if name.startswith(f"{part}.")}


class SymmetricImages:
    """Data augmentation: experience in symmetric images of its tasks, which are tasks as well. Not in the paper."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        if spec.symmetries is None:
            raise ValueError("symmetries needs an environment that offers its symmetries; this one does not")
        self._seed, self._symmetries = config.seed, spec.symmetries

    def of_pairs(self, pairs: Pairs, period: int) -> Pairs:
        """Every task in one image per ``period``, so that there are few different states within a period."""
        which = self._of_tasks(pairs.task, period)[pairs.episode]  # (M,)
        return pairs._replace(
            observation=self._symmetries.images(pairs.observation, which),
            action=self._symmetries.actions[which[pairs.source], pairs.action],
        )

    def of_windows(self, windows: Transitions, period: int) -> Transitions:
        """As ``of_pairs``, for windows of transitions."""
        which = self._of_tasks(windows.task, period)  # (M,)
        return windows._replace(
            observation=self._symmetries.images(windows.observation, which),
            action=self._symmetries.actions[which[windows.source], windows.action],
        )

    def _of_tasks(self, task: Array, period: int) -> Array:
        """The image in which each task is shown in this ``period``."""
        return self._draw(TASK_IMAGES, np.random.default_rng([self._seed, period]))[task % TASK_IMAGES]

    def of_samples(self, samples: Samples, rng: np.random.Generator) -> Samples:
        """Each sample in a random image."""
        which = self._draw(len(samples.action), rng)
        states = ("observation", "next_observation", "target")
        images = {name: self._symmetries.images(getattr(samples, name), which) for name in states}
        return samples._replace(action=self._symmetries.actions[which, samples.action], **images)

    def of_sequences(self, sequences: Sequences, rng: np.random.Generator) -> Sequences:
        """Each sequence in a random image."""
        B, T = sequences.action.shape  # noqa: N806
        which = self._draw(B, rng)
        states = sequences.observation.reshape(B * T, *sequences.observation.shape[2:])
        return sequences._replace(
            observation=self._symmetries.images(states, which.repeat(T)).reshape(sequences.observation.shape),
            action=self._symmetries.actions[which[:, None], sequences.action],
        )

    def of_contexts(self, states: tuple[Array, Array], rng: np.random.Generator) -> tuple[Array, Array]:
        """Each pair of states of an episode in a random image."""
        which = self._draw(len(states[0]), rng)
        return self._symmetries.images(states[0], which), self._symmetries.images(states[1], which)

    def all_of(self, states: Array) -> Array:
        """(I, M, W, H, C) all images of states (M, W, H, C)."""
        count = len(self._symmetries.cells)
        return np.stack([self._symmetries.images(states, np.full(len(states), which)) for which in range(count)])

    def _draw(self, count: int, rng: np.random.Generator) -> Array:
        return rng.integers(len(self._symmetries.cells), size=count)


class LearningCore(Generic[Network]):
    """Online and target network, stored episodes and counters. Agents build the samplers that they need."""

    def __init__(self, config: EstimatorRunConfig, spec: EnvironmentSpec, build: Callable[[], Network]) -> None:
        self.config, self._scene = config, spec.scene
        with seeded_initialisation(config.seed):
            online, self.target_network = build().to(config.device), build().to(config.device)
            self.online = OnlineNetwork(online, config.learning)
        self.target_network.requires_grad_(False)
        self.target_network.load_state_dict(self.network.state_dict())
        self.store = EpisodeStore(config.replay.capacity, spec.shape, spec.state_key)
        self._building = EpisodeBuilder(config.environments, spec.longest, spec.shape)
        self.images = SymmetricImages(config, spec) if config.learning.symmetries else None
        self.sample_rng = named_rng(config.seed, "sample")
        self.steps = self.updates = self.target_updates = 0
        self.budget = config.steps

    def begin_stage(self, budget: int) -> None:
        """Begin anew with what was learned: no stored episodes, and schedules over ``budget`` steps."""
        self.store.clear()
        self.steps = self.updates = self.target_updates = 0
        self.budget = budget
        self.target_network.load_state_dict(self.network.state_dict())

    # Experience

    def observe(self, transition: Transition) -> None:
        """Store the transition; update the target network when it is time."""
        for episode in self._building.append(transition):
            self.store.add(episode, self._task_of(episode))
        target_update = self.target_update_after(transition)
        self.steps += len(transition.action)
        if target_update:
            self.target_updates = self.steps // self.config.learning.target_update_every
            self.target_network.load_state_dict(self.network.state_dict())

    def target_update_after(self, transition: Transition) -> bool:
        """Whether the target network is updated when the transition is stored."""
        steps = self.steps + len(transition.action)
        return steps // self.config.learning.target_update_every > self.target_updates

    def _task_of(self, episode: Episode) -> int:
        """A number that the episodes of a task share, if the environment distinguishes tasks."""
        if self._scene is None:
            return NO_TASK
        return int(content_hashes(self._scene.scenery(episode.observation[:1]).reshape(1, -1))[0])

    def sample(self, sampler: PrioritizedSampler) -> Samples:
        """A batch by priority; the exponent of the importance weights rises to 1 over the run."""
        beta = self.config.replay.beta
        beta += (1.0 - beta) * self.progress
        samples = sampler.sample(self.config.learning.batch_size, beta, self.sample_rng)
        return self.images.of_samples(samples, self.sample_rng) if self.images else samples

    # Networks

    @property
    def rate(self) -> float:
        """Current fraction of the learning rate: it may rise at first, and fall over the second half of the run."""
        settings, late = self.config.learning, max(2.0 * self.progress - 1.0, 0.0)
        warm = min((self.updates + 1) / settings.warmup_updates, 1.0) if settings.warmup_updates else 1.0
        return warm * (1.0 - late * (1.0 - settings.final_learning_rate_fraction))

    @property
    def progress(self) -> float:
        """Share of the steps of the run, or of its current stage, that were made, at most 1."""
        return min(self.steps / self.budget, 1.0)

    @property
    def network(self) -> Network:
        """The network that is trained."""
        return self.online.network

    @property
    def evaluated(self) -> Network:
        """The network that is evaluated and saved."""
        return self.online.evaluated

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimizer, episodes, random stream and counters."""
        counters = {name: getattr(self, name) for name in COUNTERS}
        return self.online.state_dict() | {
            "target_network": module_state(self.target_network),
            "store": self.store.state_dict(),
            "building": self._building.state_dict(),
            "sample_rng": self.sample_rng.bit_generator.state,
            "counters": counters,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.online.load_state_dict(state)
        load_module_state(self.target_network, state["target_network"])
        self.store.load_state_dict(state["store"])
        self._building.load_state_dict(state["building"])
        self.sample_rng.bit_generator.state = state["sample_rng"]
        for name in COUNTERS:
            setattr(self, name, state["counters"].get(name, getattr(self, name)))  # older runs have no budget
