"""Options and tables that several commands share."""

import os
import sys
from dataclasses import dataclass, replace

import numpy as np
from rich.table import Table

from skipper.agents.registry import Ingredients, make_fixed
from skipper.config import Dynamics, WorldConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import Tasks, evaluation_tasks
from skipper.training.evaluate import Summary, play, summarise
from skipper.types import Agent


@dataclass(frozen=True)
class WorldOptions:
    """Which lava worlds; by default those of the run, or the paper's."""

    size: tuple[int, ...] | None = None
    """Cells along x, and along y where that differs: "12", or "12 8"."""
    dynamics: Dynamics | None = None
    """"lava" kills; "walls" block in the same places."""
    slip: float | None = None
    """Probability with which an action is replaced by a random one."""
    max_steps: int | None = None
    """Steps after which an episode is cut off; the paper's 64 suits 12x12."""

    def changed(self, base: WorldConfig) -> WorldConfig:
        """``base`` with what was asked for changed."""
        changes = {name: getattr(self, name) for name in ("dynamics", "slip", "max_steps")}
        width, height = (base.width, base.height) if self.size is None else sides(self.size)
        changes = {name: value for name, value in changes.items() if value is not None}
        return replace(base, width=width, height=height, **changes)


def sides(size: tuple[int, ...]) -> tuple[int, int]:
    """Width and height from one or two numbers."""
    if len(size) not in (1, 2):
        raise ValueError(f"--size takes one or two numbers, got {len(size)}")
    return size[0], size[-1]


def task_sets(
    world: WorldConfig, difficulties: tuple[float, ...], count: int, seed: int, spread: float = 0.05
) -> dict[str, Tasks]:
    """Evaluation tasks keyed by their difficulty as people write it."""
    return {f"{level:g}": evaluation_tasks(world, level, count, seed, spread=spread) for level in difficulties}


def evaluate(name: str, sets: dict[str, Tasks], seed: int, agent: Agent | None = None) -> dict[str, Summary]:
    """The results on every set of tasks, of a given agent or of the one called ``name`` that needs no training."""
    results = {}
    for level, tasks in sets.items():
        given = Ingredients(environment_spec(tasks.world), np.random.default_rng(seed))
        results[level] = summarise(play(agent or make_fixed(name, given), tasks, seed))
    return results


def results_table(results: dict[str, dict[str, Summary]]) -> Table:
    """A row per agent and difficulty."""
    table = Table("agent", "difficulty", "success", "95% interval", "steps", "deaths", "timeouts")
    for agent, levels in results.items():
        for level, row in levels.items():
            shares = [f"{share:.3f}" for share in (row.deaths, row.timeouts)]
            interval = f"{row.low:.3f} - {row.high:.3f}"
            table.add_row(agent, level, f"{row.success:.3f}", interval, f"{row.length:.1f}", *shares)
        table.add_section()
    return table


def has_screen() -> bool:
    """Whether a page that is opened would be seen."""
    screen = sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return screen and sys.stdout.isatty()
