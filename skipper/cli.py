"""The ``skipper`` command: thin; everything real happens in the rooms below."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from skipper.agents.registry import Ingredients, make_agent
from skipper.config import EVALUATION_DIFFICULTIES, Dynamics, WorldConfig
from skipper.envs.lava import ACTIONS
from skipper.envs.oracle import LavaOracle
from skipper.envs.tasks import Tasks, evaluation_tasks
from skipper.training.evaluate import Summary, play, summarise


@dataclass(frozen=True)
class WorldOptions:
    """Which lava worlds."""

    size: tuple[int, ...] = (12,)
    """Cells along x, and along y where that differs: "12", or "12 8"."""
    dynamics: Dynamics = "lava"
    """"lava" kills; "walls" block in the same places."""
    slip: float = 0.0
    """Probability with which an action is replaced by a random one."""
    max_steps: int = 64
    """Steps after which an episode is cut off; the paper's 64 suits 12x12."""

    def world(self) -> WorldConfig:
        """The configuration that these options describe."""
        if len(self.size) not in (1, 2):
            raise ValueError(f"--size takes one or two numbers, got {len(self.size)}")
        width, height = self.size[0], self.size[-1]
        return WorldConfig(width, height, dynamics=self.dynamics, slip=self.slip, max_steps=self.max_steps)


@dataclass(frozen=True)
class Evaluate:
    """Play unseen tasks of every difficulty and print success rates with 95% intervals.

    Every task is played once, from its own start, on the side opposite to the goal. "steps" is the mean
    length of all episodes; success, deaths and timeouts are shares of them and sum to 1.

    Example: skipper evaluate --agent optimal --dynamics walls --difficulties 0.4 --json
    """

    agent: str = "optimal"
    """Who plays: "random" or "optimal"."""
    difficulties: tuple[float, ...] = EVALUATION_DIFFICULTIES
    """Densities of lava; each task's own is drawn within "spread" of it."""
    spread: float = 0.05
    """Half the width of the band of densities; the authors' experiments use 0.05."""
    episodes: int = 1000
    """Tasks per difficulty."""
    seed: int = 0
    """Decides the tasks and all that happens in them; another seed gives other tasks."""
    json: bool = False
    """Print one JSON object keyed by difficulty instead of the table."""
    world: tyro.conf.OmitArgPrefixes[WorldOptions] = WorldOptions()

    def run(self) -> None:
        """Print the table or the object."""
        world = self.world.world()
        sets = task_sets(world, self.difficulties, self.episodes, self.seed, self.spread)
        results = evaluate(self.agent, sets, self.seed)
        if self.json:
            print(json.dumps({level: summary._asdict() for level, summary in results.items()}, indent=2))
        else:
            Console().print(results_table({self.agent: results}))


@dataclass(frozen=True)
class Demo:
    """See the world in a minute: the random and the optimal agent in one table, and a picture of the tasks."""

    out: Path = Path("demo")
    """Folder for what the demo leaves behind."""
    episodes: int = 1000
    """Tasks per difficulty."""
    seed: int = 0
    """Decides the tasks."""

    def run(self) -> None:
        """Print the table and write the picture."""
        from skipper.experiments.plots import draw_tasks  # matplotlib is slow to import

        console = Console()
        sets = task_sets(WorldConfig(), EVALUATION_DIFFICULTIES, self.episodes, self.seed)
        console.print(f"Playing {self.episodes} unseen 12x12 lava worlds of each of {len(sets)} difficulties ...")
        results = {agent: evaluate(agent, sets, self.seed) for agent in ("random", "optimal")}
        console.print(results_table(results))
        self.out.mkdir(parents=True, exist_ok=True)
        picture = self.out / "tasks.png"
        draw_tasks({f"difficulty {level}": tasks for level, tasks in sets.items()}, picture)
        console.print(f"One task of each difficulty, with an optimal path: {picture}")


@dataclass(frozen=True)
class BenchWorld:
    """Measure the lava world: vector and single steps, layouts and oracle tasks per second.

    Each rate stands beside that of a plain-Python twin measured in the same run, and as a ratio to it.
    """

    seconds: float = 2.0
    """Time spent on each of the eight measurements."""
    difficulty: float = 0.4
    """Density of lava."""
    json: bool = False
    """Print one JSON object instead of the table."""
    world: tyro.conf.OmitArgPrefixes[WorldOptions] = WorldOptions()

    def run(self) -> None:
        """Print the rates."""
        from skipper.benchmarks.world import bench_world

        rates = bench_world(replace(self.world.world(), difficulty=self.difficulty), self.seconds)
        if self.json:
            print(json.dumps(rates, indent=2))
            return
        table = Table("what", "per second", "plain Python", "ratio")
        for name in (key.removesuffix("_ratio") for key in rates if key.endswith("_ratio")):
            fast, plain, ratio = (rates[f"{name}{suffix}"] for suffix in ("_per_s", "_plain_per_s", "_ratio"))
            table.add_row(name.replace("_", " "), f"{fast:,.0f}", f"{plain:,.0f}", f"{ratio:.1f}")
        Console().print(table)


def task_sets(
    world: WorldConfig, difficulties: tuple[float, ...], count: int, seed: int, spread: float = 0.05
) -> dict[str, Tasks]:
    """Evaluation tasks keyed by their difficulty as people write it."""
    return {f"{level:g}": evaluation_tasks(world, level, count, seed, spread=spread) for level in difficulties}


def evaluate(name: str, sets: dict[str, Tasks], seed: int) -> dict[str, Summary]:
    """The results of one agent on every set of tasks."""
    results = {}
    for level, tasks in sets.items():
        given = Ingredients(len(ACTIONS), np.random.default_rng(seed), LavaOracle(tasks.world))
        results[level] = summarise(play(make_agent(name, given), tasks, seed))
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


def main() -> None:
    """Parse the command line and run it; a mistake in it is one line, not a traceback."""
    app, bench = tyro.extras.SubcommandApp(), tyro.extras.SubcommandApp()
    app.command(name="evaluate", help="Play unseen tasks of every difficulty and print success rates.")(Evaluate)
    app.command(name="demo", help="See the world in a minute: a table of agents and a picture of tasks.")(Demo)
    app.command(bench, name="bench", help="Measure how fast things are on this machine.")
    bench.command(name="world", help="Steps, layouts and oracle tasks per second of the lava world.")(BenchWorld)
    description = "Skipper: agents that plan at decision time and generalise zero-shot."
    command = app.cli(prog="skipper", description=description)
    try:
        command.run()
    except (ValueError, OSError) as error:
        sys.exit(f"skipper: error: {error}")
