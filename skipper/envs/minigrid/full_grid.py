"""A stock MiniGrid environment that shows its whole grid, what lies under the agent and what it carries.

Everything is asked of the environment. Only its view from the agent is not computed, which takes most of a step's time.

On a goal and on lava the episode is over, whatever the direction of the agent: there the observation shows neither the
direction, nor the states of doors, nor what can be moved. So a task has one goal state, and it is the same in all
episodes.
"""

from typing import Any

import numpy as np
from minigrid.minigrid_env import MiniGridEnv

from skipper.envs.grid.playable import Outcome
from skipper.envs.minigrid.things import ENDING, Things, make_stock, reset_quietly
from skipper.types import Array

ANY_DIRECTION = 5  # of an agent where the episode ends; 1 to 4 are east, south, west and north


class FullGrid:
    """A ``Playable``: channels are the content of each cell, where things can be carried what is carried, the agent."""

    def __init__(self, env_id: str, things: Things, max_steps: int) -> None:
        self._env, self._things = make_stock(env_id), things
        self._env.max_steps = max_steps
        self._env.gen_obs = dict  # the view from the agent is not needed
        self._carriable = things.carriable()
        channels = (len(things.codes), *([len(self._carriable) + 1] if self._carriable else []), ANY_DIRECTION + 1)
        self.vocabulary: tuple[int, ...] = channels
        self.shape = (int(self._env.width), int(self._env.height), len(channels))
        self.actions = tuple(action.name for action in self._env.actions)[: int(self._env.action_space.n)]
        self._ending, self._goal = things.of_kind(ENDING), things.of_kind(["goal"])
        self._fixed = things.fixed()
        self._last: list[Any] = []
        self._doors: list[tuple[int, Any]] = []
        self._content = np.zeros(self.shape[1] * self.shape[0], np.uint8)

    @property
    def mission(self) -> str:
        """MiniGrid's mission of the current episode."""
        return str(self._env.mission)

    @property
    def standard_rules(self) -> bool:
        """Whether the environment has MiniGrid's own dynamics and no others."""
        return type(self._env).step is MiniGridEnv.step

    @property
    def rng(self) -> np.random.Generator:
        """The environment's random stream."""
        stream: np.random.Generator = self._env.np_random
        return stream

    def reset(self, seed: int) -> Array:
        """Begin an episode with the layout of ``seed``."""
        max_steps = self._env.max_steps
        reset_quietly(self._env, seed)
        self._env.max_steps = max_steps  # some set their own
        self._read()
        return self.observe()

    def step(self, action: int) -> Outcome:
        """Take an action."""
        _, reward, terminated, truncated, _ = self._env.step(action)
        self._update()
        return Outcome(self.observe(), float(reward), bool(terminated), bool(truncated))

    def goal(self) -> Array | None:
        """The observation with the agent on the goal, where there is exactly one."""
        goals = np.flatnonzero(self._goal[self._content])
        if len(goals) != 1:
            return None
        y, x = divmod(int(goals[0]), self.shape[0])
        return self._at_end(x, y)

    def observe(self) -> Array:
        """(W, H, C) the current state."""
        W, H, C = self.shape  # noqa: N806
        x, y = self._env.agent_pos
        if self._ending[self._content[y * W + x]]:
            return self._at_end(x, y)
        seen = np.zeros(self.shape, np.uint8)
        seen[..., 0] = self._content.reshape(H, W).T
        if C == 3 and self._env.carrying is not None:
            seen[x, y, 1] = 1 + self._carriable.index(self._things.number(self._env.carrying))
        seen[x, y, -1] = 1 + self._env.agent_dir
        return seen

    def _at_end(self, x: int, y: int) -> Array:
        """The observation on a goal or on lava: nothing else matters any more, so all of them look alike."""
        W, H, _ = self.shape  # noqa: N806
        seen = np.zeros(self.shape, np.uint8)
        seen[..., 0] = self._fixed[self._content].reshape(H, W).T
        seen[x, y, -1] = ANY_DIRECTION
        return seen

    def _read(self) -> None:
        """Read all cells."""
        self._last = list(self._env.grid.grid)
        self._content[:] = [self._things.number(thing) for thing in self._last]
        self._doors = [
            (cell, thing) for cell, thing in enumerate(self._last) if thing is not None and thing.type == "door"
        ]

    def _update(self) -> None:
        """Read the cells that a step changed."""
        now = self._env.grid.grid
        if now != self._last:
            for cell, (before, thing) in enumerate(zip(self._last, now, strict=True)):
                if before is not thing:
                    self._content[cell] = self._things.number(thing)
            self._last = list(now)
        for cell, door in self._doors:
            self._content[cell] = self._things.number(door)

    def save(self) -> Any:
        """What changes within an episode."""
        env = self._env
        doors = [(door.is_open, door.is_locked) for _, door in self._doors]
        positions = [(thing, thing.cur_pos) for thing in self._last if thing is not None and thing.can_pickup()]
        return self._last, self._content.copy(), doors, positions, env.agent_pos, env.agent_dir, env.carrying

    def restore(self, state: Any) -> None:
        """Continue where ``save`` was called, with a new count of steps."""
        env, (grid, content, doors, positions, position, direction, carrying) = self._env, state
        self._last, env.grid.grid = grid, list(grid)
        self._content[:] = content
        for (_, door), (is_open, is_locked) in zip(self._doors, doors, strict=True):
            door.is_open, door.is_locked = is_open, is_locked
        for thing, place in positions:
            thing.cur_pos = place
        env.agent_pos, env.agent_dir, env.carrying, env.step_count = position, direction, carrying, 0

    def load(self, observation: Array) -> bool:
        """Take up the state that ``observation`` shows; False where the agent cannot be in its cell."""
        env, (W, H, C) = self._env, self.shape  # noqa: N806
        x, y = (int(place[0]) for place in np.nonzero(observation[..., -1]))
        env.grid.grid = [self._things.object(int(number)) for number in observation[..., 0].T.reshape(W * H)]
        under = env.grid.get(x, y)
        env.agent_pos, env.agent_dir = (x, y), (int(observation[x, y, -1]) - 1) % 4
        carried = int(observation[x, y, 1]) if C == 3 else 0
        env.carrying = self._things.object(self._carriable[carried - 1]) if carried else None
        env.step_count = 0
        self._read()
        return under is None or (under.can_overlap() and not self.ends(observation))

    def ends(self, observation: Array) -> bool:
        """Whether the agent stands where episodes end."""
        return bool(self._ending[observation[..., 0][observation[..., -1] > 0]].any())
