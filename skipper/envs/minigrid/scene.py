"""States of a MiniGrid scene: cell and direction of the agent, states of doors, places of keys, balls and boxes."""

from math import prod

import numpy as np

from skipper.envs.minigrid.full_grid import ANY_DIRECTION
from skipper.envs.minigrid.things import EMPTY, ENDING, Things
from skipper.runtime import mixed_radix
from skipper.types import Array

DIRECTIONS, DOOR_STATES = 4, 3
NOWHERE = 2**30


class MinigridScene:
    """Draws imagined states: the walls, and which objects there are, stay as they are."""

    def __init__(self, shape: tuple[int, int, int], things: Things) -> None:
        self._size, self._cells, self._carries = shape[:2], shape[0] * shape[1], shape[2] == 3
        self._doors, self._movables = things.doors, things.movables
        places = self._cells + 2  # a cell, carried, or gone
        doors, movables = (DOOR_STATES,) * self._doors, (places,) * self._movables
        self.parts: tuple[int, ...] = (self._cells, DIRECTIONS, *doors, *movables)
        if prod(self.parts) > mixed_radix.MOST:
            raise ValueError(
                f"too many states: {self._doors} doors, and {self._movables} keys, balls and boxes that can be "
                f"anywhere on {self._cells} cells, have more than 2**62 arrangements"
            )
        self._ending, self._is_goal = things.of_kind(ENDING), things.of_kind(["goal"])
        self._fixed, self._is_door = things.fixed(), things.of_kind(["door"])
        self._door_state = np.array([code[2] for code in things.codes])
        self._carriable = np.array([EMPTY, *things.carriable()])
        self._is_movable = np.isin(np.arange(len(things.codes)), self._carriable[1:])

    def scenery(self, observations: Array) -> Array:
        """(B, S) contents without the agent, with all doors open, and without what can be moved."""
        return self._fixed[self._content(observations)]

    def agent_cell(self, observations: Array) -> Array:
        """(B,) cells of the agents in observations (B, W, H, C)."""
        return self._agent(observations).argmax(-1)

    def goal_cell(self, observations: Array) -> Array:
        """(B,) cells of the goals."""
        return self._is_goal[self._content(observations)].argmax(-1)

    def at_goal(self, observations: Array) -> Array:
        """(B,) bool, whether the agents stand on a goal."""
        rows = np.arange(len(observations))
        return self._is_goal[self._content(observations)[rows, self.agent_cell(observations)]]

    def placement(self, observations: Array) -> Array:
        """(B,) all that can change within an episode."""
        content, agent = self._content(observations), self._agent(observations)
        cell = agent.argmax(-1)
        direction = (agent.max(-1) - 1) % DIRECTIONS
        digits = [cell[:, None], direction[:, None]]
        if self._doors:
            at = self._door_cells(content)
            rows = np.arange(len(content))[:, None]
            digits.append(np.where(at < 0, 0, self._door_state[content[rows, at]]))
        if self._movables:
            digits.append(self._list_movables(observations, content)[1])
        return mixed_radix.join(np.concatenate(digits, 1), self.parts)

    def place_agent(self, observations: Array, cells: Array) -> Array:
        """(B, N, W, H, C) the scenes of observations (B, W, H, C) in each of the placements ``cells`` (B, N)."""
        (B, N), C = cells.shape, observations.shape[-1]  # noqa: N806
        digits = mixed_radix.split(cells, self.parts)  # (B, N, F)
        content = np.repeat(self._content(observations)[:, None], N, 1)  # (B, N, S)
        carried = np.zeros((B, N), np.int64)
        if self._doors:
            self._set_doors(content, self._door_cells(content[:, 0]), digits[..., 2 : 2 + self._doors])
        if self._movables:
            things, now = self._list_movables(observations, content[:, 0])
            self._set_movables(content, carried, things, now, digits[..., 2 + self._doors :])
        # Where the episode ends nothing else is shown.
        ends = self._ending[np.take_along_axis(content, digits[..., :1], -1)[..., 0]]
        drawn = np.zeros((B, N, self._cells, C), np.uint8)
        drawn[..., 0] = np.where(ends[..., None], self._fixed[content], content)
        self._write(drawn[..., -1], digits[..., :1], np.where(ends, ANY_DIRECTION, digits[..., 1] + 1))
        if self._carries:
            self._write(drawn[..., 1], digits[..., :1], np.where(ends, 0, carried))
        return drawn.reshape(B, N, *observations.shape[1:])

    def _write(self, channel: Array, cell: Array, value: Array) -> None:
        np.put_along_axis(channel, cell, value[..., None].astype(np.uint8), axis=-1)

    def _content(self, observations: Array) -> Array:
        """(B, S) contents of the cells."""
        return observations[..., 0].reshape(len(observations), self._cells).astype(np.int64)

    def _agent(self, observations: Array) -> Array:
        """(B, S) the last channel."""
        return observations[..., -1].reshape(len(observations), self._cells).astype(np.int64)

    # Doors

    def _door_cells(self, content: Array) -> Array:
        """(B, doors) cells of the doors, in order; -1 where a layout has fewer."""
        there = self._is_door[content]
        first = np.argsort(~there, axis=-1, kind="stable")[:, : self._doors]
        return np.where(np.take_along_axis(there, first, -1), first, -1)

    def _set_doors(self, content: Array, at: Array, states: Array) -> None:
        """Put doors at cells (B, doors) of ``content`` (B, N, S) into ``states`` (B, N, doors)."""
        rows = np.arange(len(content))
        for door in range(self._doors):
            there = np.flatnonzero(at[:, door] >= 0)
            before = content[there, :, at[there, door]]
            content[rows[there], :, at[there, door]] = before - self._door_state[before] + states[there, :, door]

    # What can be moved

    def _list_movables(self, observations: Array, content: Array) -> tuple[Array, Array]:
        """Kinds and places, (B, movables) each, ordered by both; kind ``EMPTY`` and gone where there are fewer."""
        carried = self._carriable[observations[..., 1].reshape(len(content), self._cells).max(-1)]
        kinds = np.concatenate([np.where(self._is_movable[content], content, EMPTY), carried[:, None]], 1)  # (B, S + 1)
        order = np.where(kinds == EMPTY, NOWHERE, kinds * (self._cells + 1) + np.arange(self._cells + 1))
        first = order.argsort(-1)[:, : self._movables]
        listed = np.take_along_axis(kinds, first, -1)
        return listed, np.where(listed == EMPTY, self._cells + 1, first)

    def _set_movables(self, content: Array, carried: Array, things: Array, now: Array, places: Array) -> None:
        """Move things (B, M) of ``content`` (B, N, S) from where they are ``now`` (B, M) to ``places`` (B, N, M).

        A thing that cannot be there, since something else is, or since the agent already carries another, is gone.
        """
        content[self._is_movable[content]] = EMPTY
        for index in range(self._movables):
            kind, place = np.broadcast_to(things[:, index : index + 1], carried.shape), places[..., index]
            at = np.minimum(place, self._cells - 1)[..., None]
            free = np.take_along_axis(content, at, -1)[..., 0] == EMPTY
            put = (kind != EMPTY) & (place < self._cells) & free
            np.put_along_axis(
                content, at, np.where(put, kind, np.take_along_axis(content, at, -1)[..., 0])[..., None], -1
            )
            take = (kind != EMPTY) & (place == self._cells) & (carried == 0)
            carried[take] = np.searchsorted(self._carriable, kind[take])
