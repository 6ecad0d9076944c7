"""What can be in a cell of one MiniGrid environment: objects with their colours and states, as one number each."""

import warnings
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any, NamedTuple

import gymnasium as gym
import minigrid  # noqa: F401  registers the environments
import numpy as np
from minigrid.core.constants import COLOR_TO_IDX, IDX_TO_OBJECT, OBJECT_TO_IDX
from minigrid.core.world_object import WorldObj

from skipper.runtime.checks import nearest_name
from skipper.types import Array

LOOKED_AT = 48  # layouts in which objects are looked for
ENDING = ("goal", "lava")  # entering these ends an episode in any direction
MOVABLE = ("key", "ball", "box")
STATES = {"door": 3}  # open, closed, locked
EMPTY = 0


class Things(NamedTuple):
    """The contents that occur; number 0 is an empty cell."""

    codes: tuple[tuple[int, int, int], ...]  # MiniGrid's object, colour and state of each
    doors: int  # most doors of a layout
    movables: int  # most keys, balls and boxes

    def names(self) -> list[str]:
        """MiniGrid's names of the objects."""
        return [IDX_TO_OBJECT[code[0]] for code in self.codes]

    def of_kind(self, kinds: Iterable[str]) -> Array:
        """(T,) bool, those of these kinds."""
        return np.isin(self.names(), list(kinds))

    def number(self, thing: Any) -> int:
        """The number of an object, or of None."""
        if thing is None:
            return EMPTY
        code = tuple(map(int, thing.encode()))
        if code not in self.codes:
            raise ValueError(
                f"unknown object index: a {thing.color} {thing.type} did not occur in the first {LOOKED_AT} layouts, "
                f"so networks have no word for it"
            )
        return self.codes.index(code)

    def object(self, number: int) -> Any:
        """A new object, or None."""
        return None if number == EMPTY else WorldObj.decode(*self.codes[number])

    def fixed(self) -> Array:
        """(T,) what remains of each where nothing that changes is shown: doors are open, what can be moved is gone."""
        states = np.array([code[2] for code in self.codes])
        return np.where(self.of_kind(MOVABLE), EMPTY, np.arange(len(states)) - states).astype(np.uint8)

    def carriable(self) -> list[int]:
        """Numbers of what can be carried."""
        return np.flatnonzero(self.of_kind(MOVABLE)).tolist() if self.movables else []


def make_stock(env_id: str) -> Any:
    """The environment itself, without wrappers, in an episode: some know their limits only then."""
    if env_id not in gym.registry:
        raise ValueError(nearest_name("MiniGrid environment", env_id, minigrid_ids()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # an older version of an environment is one as well
        stock = gym.make(env_id, disable_env_checker=True).unwrapped
    try:
        reset_quietly(stock, 0)
    except (OSError, gym.error.DependencyNotInstalled) as error:
        raise ValueError(f"MiniGrid cannot draw a layout of {env_id}: {error}") from error
    return stock


def reset_quietly(stock: Any, seed: int) -> None:
    """Begin an episode; what BabyAI prints about layouts that it rejects is of no use to anyone."""
    with redirect_stdout(StringIO()):
        stock.reset(seed=seed)


def minigrid_ids() -> list[str]:
    """All registered ids of MiniGrid."""
    return [name for name, spec in gym.registry.items() if str(spec.entry_point).startswith("minigrid.")]


def look(env: Any) -> Things:
    """The contents of the first layouts; where an object has several colours, it may have any."""
    kinds: dict[str, set[str]] = {}
    doors = movables = 0
    for seed in range(LOOKED_AT):
        reset_quietly(env, seed)
        there = [thing for thing in env.grid.grid if thing is not None]
        for thing in there:
            kinds.setdefault(thing.type, set()).add(thing.color)
            if thing.contains is not None:
                raise ValueError(f"not fully observable: a {thing.type} hides a {thing.contains.type}")
        doors = max(doors, sum(thing.type == "door" for thing in there))
        movables = max(movables, sum(thing.type in MOVABLE for thing in there))
    codes = [(OBJECT_TO_IDX["empty"], 0, 0)]
    for kind in sorted(kinds, key=OBJECT_TO_IDX.__getitem__):
        colours = kinds[kind] if len(kinds[kind]) == 1 else COLOR_TO_IDX
        for colour in sorted(colours, key=COLOR_TO_IDX.__getitem__):
            codes += [(OBJECT_TO_IDX[kind], COLOR_TO_IDX[colour], state) for state in range(STATES.get(kind, 1))]
    return Things(tuple(codes), doors, movables)
