"""One fully observed grid as everything here plays it, and the checks that an own environment must pass.

An observation is an array (W, H, C) of small whole numbers. Its last channel shows the agent: 0 where it is not, and
where it is 1, or a larger number for each further direction. The other channels show everything else that matters.
"""

from collections.abc import Callable
from copy import deepcopy
from math import prod
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np

from skipper.types import Array

MOST_WORDS = 20_000  # combinations of the channels' values, each of which has a vector in every embedding
HELP = "see docs/your_environment.md"


class Outcome(NamedTuple):
    """What one action led to."""

    observation: Array  # (W, H, C)
    reward: float
    terminated: bool
    truncated: bool


class Playable(Protocol):
    """A fully observed grid whose state can be kept and taken up again."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """W, H, C."""

    @property
    def vocabulary(self) -> tuple[int, ...]:
        """How many values each channel has."""

    @property
    def actions(self) -> tuple[str, ...]:
        """Names of the actions."""

    @property
    def rng(self) -> np.random.Generator:
        """The random stream that layouts and random effects are drawn from."""

    def reset(self, seed: int) -> Array:
        """Begin an episode with the layout of ``seed``."""

    def step(self, action: int) -> Outcome:
        """Take an action; the reward is that of the first steps of an episode if it depends on time."""

    def goal(self) -> Array | None:
        """The observation at the goal of the current layout, where there is one."""

    def save(self) -> Any:
        """The state of the episode, for ``restore`` of the same object."""

    def restore(self, state: Any) -> None:
        """Continue where ``save`` was called."""


class GymGrid:
    """An own Gymnasium environment as a ``Playable``; refuses what cannot work, and says what to do."""

    def __init__(self, make: Callable[[], gym.Env[Any, Any]]) -> None:
        self._env: Any = make().unwrapped
        self.shape, self.vocabulary = _grid_of(self._env.observation_space)
        if not isinstance(self._env.action_space, gym.spaces.Discrete):
            raise ValueError(
                f"wanted a few numbered actions, gymnasium.spaces.Discrete, got {self._env.action_space}; "
                f"divide continuous actions into a few, {HELP}"
            )
        names = getattr(self._env, "action_names", None)
        self.actions = tuple(names or map(str, range(int(self._env.action_space.n))))
        self._goal: Array | None = None

    @property
    def rng(self) -> np.random.Generator:
        """The environment's own stream."""
        stream: np.random.Generator = self._env.np_random
        return stream

    def reset(self, seed: int) -> Array:
        """Begin an episode with the layout of ``seed``."""
        observation, info = self._env.reset(seed=seed)
        given = info.get("goal")
        self._goal = None if given is None else checked(given, self.shape, self.vocabulary, what="goal")
        return checked(observation, self.shape, self.vocabulary)

    def step(self, action: int) -> Outcome:
        """Take an action."""
        observation, reward, terminated, truncated, _ = self._env.step(action)
        seen = checked(observation, self.shape, self.vocabulary)
        return Outcome(seen, float(reward), bool(terminated), bool(truncated))

    def goal(self) -> Array | None:
        """``info["goal"]`` of the last reset."""
        return self._goal

    def save(self) -> Any:
        """A copy of the environment."""
        return deepcopy(self._env)

    def restore(self, state: Any) -> None:
        """Continue with a copy of the copy."""
        self._env = deepcopy(state)


def _grid_of(space: Any) -> tuple[tuple[int, int, int], tuple[int, ...]]:
    """Shape and vocabulary of an observation space."""
    if isinstance(space, gym.spaces.Dict) and "image" in space.spaces:
        raise ValueError(
            "not fully observable: this is MiniGrid's view from the agent; "
            f"use --env minigrid:ID, which asks for the whole grid, {HELP}"
        )
    if not isinstance(space, gym.spaces.MultiDiscrete | gym.spaces.Box) or len(space.shape) != 3:
        raise ValueError(f"wanted observations (W, H, C) in a Box or MultiDiscrete, got {space}; {HELP}")
    if not np.issubdtype(space.dtype, np.integer):
        raise ValueError(
            f"wanted observations of whole numbers, such as uint8, got {space.dtype}; "
            f"give each kind of object a number and each property a channel, {HELP}"
        )
    values = space.nvec if isinstance(space, gym.spaces.MultiDiscrete) else space.high.astype(np.int64) + 1
    vocabulary = tuple(values.reshape(-1, space.shape[2]).max(0).tolist())
    if max(vocabulary) > 256 or prod(vocabulary) > MOST_WORDS:
        raise ValueError(
            f"the channels have {list(vocabulary)} values: declare how many each really has, as the upper bounds of "
            f"the observation space, at most 256 and {MOST_WORDS:,} combinations; {HELP}"
        )
    width, height, channels = space.shape
    return (width, height, channels), vocabulary


def checked(observation: Any, shape: tuple[int, ...], vocabulary: tuple[int, ...], what: str = "observation") -> Array:
    """An observation as uint8, after checking that it is what its space promised."""
    found = np.asarray(observation)
    if not np.issubdtype(found.dtype, np.integer):
        raise ValueError(f"wanted the {what} in whole numbers, such as uint8, got {found.dtype}; {HELP}")
    if found.shape != shape:
        raise ValueError(f"wanted the {what} with shape {shape}, got {found.shape}; all layouts have one size, {HELP}")
    unknown = np.argwhere((found < 0) | (found >= vocabulary))  # (n, 3)
    if len(unknown):
        x, y, channel = unknown[0].tolist()
        raise ValueError(
            f"unknown object index: channel {channel} of the {what} holds {found[x, y, channel]} at ({x}, {y}), but "
            f"the observation space allows 0 to {vocabulary[channel] - 1}; raise its upper bound, {HELP}"
        )
    agents = np.count_nonzero(found[..., -1])
    if agents != 1:
        raise ValueError(
            f"not fully observable: wanted one agent in the last channel of the {what}, got {agents}; "
            f"mark its cell with 1, or with 1 to 4 for its direction, and show the whole grid, {HELP}"
        )
    return found.astype(np.uint8)
