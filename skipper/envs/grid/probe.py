"""What an environment is like, found out by trying a few of its tasks."""

from typing import NamedTuple

import numpy as np

from skipper.envs.grid.playable import HELP, Playable
from skipper.envs.grid.search import MOST_STATES, HiddenStateError, TooManyStatesError, read_table
from skipper.runtime.hashing import content_keys
from skipper.types import Array

TRIED = 2  # tasks whose states are counted
STEPS = 60  # random steps in which random effects would show
RESETS, MORE_RESETS = 48, 512  # layouts to draw: at first, and where many of these are equal
FEW = 64  # at most so many different layouts can be listed
FEWEST = 4  # layouts that can be divided among training, evaluation and tuning
LISTED_TURNS = 8  # of so many listed layouts one is for evaluation and one for tuning
SPLITS = ("evaluation", "tuning", "training")


class Layouts(NamedTuple):
    """How tasks are divided into splits: by the content of their first observation.

    Where there are many layouts, a hash decides; where they can be listed, they are dealt out in turn, so that no split
    is empty. Where layouts are fewer than four, starts are divided as well; and where there are fewer than four of
    these, nothing can be divided, and every split has the same tasks.
    """

    listed: tuple[int, ...] | None  # sorted contents where there are few
    with_start: bool  # whether the start counts as content
    divided: bool

    def content(self, observation: Array) -> int:
        """A hash of the layout of a first observation (W, H, C), and of the start where that counts."""
        seen = observation.copy()
        if not self.with_start:
            seen[..., -1] = 0
        return int(content_keys(seen[None])[0])

    def belongs(self, observation: Array, split: str) -> bool:
        """Whether a task that begins with ``observation`` may be used in ``split``."""
        if not self.divided:
            return True
        content = self.content(observation)
        if self.listed is None:
            turn = (content >> 8) % 4
        elif content in self.listed:
            turn = self.listed.index(content) % LISTED_TURNS
        else:  # so rare that it was not drawn before: never reported on
            turn = 2
        return SPLITS[min(turn, 2)] == split

    def describe(self) -> str:
        """What readers of results should know."""
        if not self.divided:
            return "fewer than 4 different tasks: unseen ones are the same as those of training"
        what = "layouts with their starts" if self.with_start else "layouts"
        if self.listed is None:
            return f"many {what}, disjoint in training, evaluation and tuning"
        turns = [min(index % LISTED_TURNS, 2) for index in range(len(self.listed))]
        counts = (f"{turns.count(turn)} for {split}" for turn, split in enumerate(SPLITS))
        return f"only {len(turns)} different {what}: {', '.join(counts)}"

    def caveat(self) -> str:
        """The same where unseen tasks are so few that results say little; otherwise nothing."""
        return self.describe() if self.listed is not None or not self.divided else ""


class Facts(NamedTuple):
    """What was found out."""

    actions: tuple[int, ...]  # those that ever had an effect; all where not all states were seen
    deterministic: bool
    goal: bool  # whether every task has a goal observation
    states: int | None  # most states of a task; None: too many to list, or random effects
    hidden: str  # why observations do not identify states; empty where they do
    layouts: Layouts


def probe(env: Playable) -> Facts:
    """Try the first seeds."""
    deterministic = not _draws_in_steps(env)
    every = tuple(range(len(env.actions)))
    states, used, hidden = (None, every, "")
    if deterministic:
        try:
            states, used = _count_states(env)
        except TooManyStatesError:
            states = None
        except HiddenStateError as error:
            hidden = str(error)
    goal = all(_has_goal(env, seed) for seed in range(TRIED))
    return Facts(used, deterministic, goal, states, hidden, find_layouts(env))


def _has_goal(env: Playable, seed: int) -> bool:
    env.reset(seed)
    return env.goal() is not None


def _draws_in_steps(env: Playable) -> bool:
    """Whether steps draw random numbers."""
    rng = np.random.default_rng(0)
    env.reset(0)
    for step in range(STEPS):
        before = env.rng.bit_generator.state
        outcome = env.step(int(rng.integers(len(env.actions))))
        if env.rng.bit_generator.state != before:
            return True
        if outcome.terminated or outcome.truncated:
            env.reset(step)
    return False


def _count_states(env: Playable) -> tuple[int, tuple[int, ...]]:
    """Most states of the tried tasks, and the actions that had any effect in them."""
    every = range(len(env.actions))
    most, used, goals_met = 0, np.zeros(len(env.actions), bool), False
    for seed in range(TRIED):
        table = read_table(env, seed, every, MOST_STATES)
        most = max(most, len(table.terminal))
        moved = (table.successor != np.arange(len(table.terminal))[:, None]).any(0)
        used |= moved | (table.reward != 0).any(0)
        env.reset(seed)
        goal = env.goal()
        goals_met |= goal is None or bool((table.observation == goal).all((1, 2, 3)).any())
    if not goals_met:
        raise ValueError(
            f"no state looks like the goal: all that can be reached in the first {TRIED} tasks differ from it; "
            f'give the observation at the end of a success as info["goal"], {HELP}'
        )
    return most, tuple(np.flatnonzero(used).tolist())


def find_layouts(env: Playable) -> Layouts:
    """How to divide the tasks of an environment."""
    first = [env.reset(seed) for seed in range(RESETS)]
    many = 0.75 * RESETS
    for with_start in (False, True):
        layouts = Layouts(None, with_start, divided=True)
        found = {layouts.content(seen) for seen in first}
        if len(found) > many:
            return layouts
        found |= {layouts.content(env.reset(seed)) for seed in range(RESETS, MORE_RESETS)}
        if len(found) > FEW:
            return layouts
        if len(found) >= FEWEST:
            return layouts._replace(listed=tuple(sorted(found)))
    return Layouts(None, with_start=True, divided=False)
