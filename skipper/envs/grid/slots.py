"""Environments that are stepped together, in this process or in others."""

import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

import numpy as np

from skipper.envs.grid.playable import Playable
from skipper.types import Array

Make = Callable[[], Playable]


class Results(NamedTuple):
    """What one action of each of R environments led to."""

    observation: Array  # (R, W, H, C)
    reward: Array  # (R,)
    terminated: Array  # (R,) bool
    truncated: Array  # (R,) bool


class Slots(Protocol):
    """B environments."""

    def reset(self, indices: Sequence[int], seeds: Sequence[int], noise: Sequence[int | None]) -> tuple[Array, Array]:
        """Begin episodes in some of them: first observations and goals, (R, W, H, C) each.

        ``noise`` seeds their random effects. Where there is no goal, the observation takes its place.
        """

    def step(self, indices: Sequence[int], actions: Sequence[int]) -> Results:
        """One action in each of some of them."""

    def close(self) -> None:
        """End processes, where there are any."""


class LocalSlots:
    """Environments in this process."""

    def __init__(self, make: Make, count: int) -> None:
        self._envs = [make() for _ in range(count)]

    def reset(self, indices: Sequence[int], seeds: Sequence[int], noise: Sequence[int | None]) -> tuple[Array, Array]:
        """Begin episodes."""
        seen, goals = [], []
        for index, seed, word in zip(indices, seeds, noise, strict=True):
            env = self._envs[index]
            seen.append(env.reset(seed))
            goal = env.goal()
            goals.append(seen[-1] if goal is None else goal)
            if word is not None:
                env.rng.bit_generator.state = np.random.default_rng(word).bit_generator.state
        return np.stack(seen), np.stack(goals)

    def step(self, indices: Sequence[int], actions: Sequence[int]) -> Results:
        """One action in each of some of them."""
        outcomes = [self._envs[index].step(action) for index, action in zip(indices, actions, strict=True)]
        observation, reward, terminated, truncated = zip(*outcomes, strict=True)
        return Results(np.stack(observation), np.array(reward), np.array(terminated), np.array(truncated))

    def close(self) -> None:
        """Nothing to end."""


class WorkerSlots:
    """The same environments, divided among processes."""

    def __init__(self, make: Make, count: int, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._shares = [share.tolist() for share in np.array_split(np.arange(count), workers) if len(share)]
        self._pipes: list[Connection] = []
        self._processes = []
        for share in self._shares:
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, make, len(share)), daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)

    def reset(self, indices: Sequence[int], seeds: Sequence[int], noise: Sequence[int | None]) -> tuple[Array, Array]:
        """Begin episodes."""
        observation, goal = self._call("reset", indices, seeds, noise)
        return observation, goal

    def step(self, indices: Sequence[int], actions: Sequence[int]) -> Results:
        """One action in each of some of them."""
        return Results(*self._call("step", indices, actions))

    def _call(self, name: str, indices: Sequence[int], *columns: Sequence[Any]) -> list[Array]:
        """Call a method of ``LocalSlots`` in all processes at once, with their share of indices and columns."""
        rows = [[row for row, index in enumerate(indices) if index in share] for share in self._shares]
        busy = [(pipe, share, mine) for pipe, share, mine in zip(self._pipes, self._shares, rows, strict=True) if mine]
        for pipe, share, mine in busy:
            local = [indices[row] - share[0] for row in mine]
            pipe.send((name, (local, *([column[row] for row in mine] for column in columns))))
        parts = [_answer(pipe) for pipe, _, _ in busy]
        order = np.argsort(np.concatenate([mine for _, _, mine in busy]))
        return [np.concatenate(part)[order] for part in zip(*parts, strict=True)]

    def close(self) -> None:
        """End the processes."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.close()
            process.join(timeout=5)


def _answer(pipe: Connection) -> Any:
    """What a process answers; an error in it is an error here."""
    answer = pipe.recv()
    if isinstance(answer, Exception):
        raise answer
    return answer


def _serve(pipe: Connection, make: Make, count: int) -> None:
    """Answer calls until the other end is closed."""
    try:
        slots: Any = LocalSlots(make, count)
        while True:
            name, arguments = pipe.recv()
            try:
                pipe.send(tuple(getattr(slots, name)(*arguments)))
            except ValueError as error:
                pipe.send(error)
    except (EOFError, KeyboardInterrupt):
        pass
