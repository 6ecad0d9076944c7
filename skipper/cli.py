"""The ``skipper`` command: thin; everything real happens in the rooms below."""

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from skipper.agents.registry import FIXED, Ingredients, make_fixed
from skipper.config import EVALUATION_DIFFICULTIES, Dynamics, RunConfig, WorldConfig
from skipper.envs.spec import environment_spec
from skipper.envs.tasks import Tasks, evaluation_tasks, training_tasks
from skipper.presets import preset
from skipper.training.evaluate import Summary, play, summarise
from skipper.training.load import load
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


@dataclass(frozen=True)
class Train:
    """Train an agent; the same command continues a run that was interrupted.

    Every field of the configuration is an option. Presets: "fast", the default, learns in half an hour on two cores;
    "paper" follows the paper to the number; "debug" takes seconds, to see that everything runs. In worlds where moves
    slip, "fast" wants --no-hindsight-bound.

    Example: skipper train --agent skipper-regen --tasks 50 --seed 0 --out runs/first
    """

    out: Path
    """The run folder; what it holds is described in docs/run_folder.md."""
    size: tuple[int, ...] | None = None
    """Cells along x, and along y where that differs; sets width and height."""
    config: tyro.conf.OmitArgPrefixes[RunConfig] = field(default_factory=RunConfig)

    def run(self) -> None:
        """Train to the end, or until Ctrl-C."""
        from skipper.training.progress import ProgressDisplay
        from skipper.training.train import train

        config = self.config
        if self.size is not None:
            width, height = sides(self.size)
            config = replace(config, world=replace(config.world, width=width, height=height))
        with ProgressDisplay(config.steps) as display:
            finished = train(config, self.out, display)
            display.say(f"finished: {self.out}" if finished else "saved; the same command continues this run")


@dataclass(frozen=True)
class Evaluate:
    """Play unseen tasks of every difficulty and print success rates with 95% intervals.

    Every task is played once, from its own start, on the side opposite to the goal. "steps" is the mean
    length of all episodes; success, deaths and timeouts are shares of them and sum to 1.

    Examples: skipper evaluate runs/first --episodes 400
              skipper evaluate --agent optimal --dynamics walls --difficulties 0.4 --json
    """

    run_folder: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(name="run", metavar="RUN")] = None
    """Folder of a trained agent; or name an agent that needs no training."""
    agent: Annotated[str | None, tyro.conf.arg(metavar="|".join(FIXED))] = None
    """An agent that needs no training; or, beside a run of Skipper, another variant, like skipper-once, that plays with
    its networks."""
    training: bool = False
    """Also play the tasks that the run was trained on."""
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
    world: tyro.conf.OmitArgPrefixes[WorldOptions] = field(default_factory=WorldOptions)

    def run(self) -> None:
        """Print the table or the object."""
        if self.run_folder is None and self.agent is None:
            raise ValueError(f"say who plays: either a run folder, or --agent {' or '.join(FIXED)}")
        if self.run_folder is not None:
            loaded = load(self.run_folder, self.seed, self.agent)
            name, world = loaded.config.agent, self.world.changed(loaded.config.world)
            agent: Agent | None = loaded.agent
            if (world.width, world.height) != (loaded.config.world.width, loaded.config.world.height):
                raise ValueError("networks are made for one size of grid: --size must be that of the run")
        elif self.training:
            raise ValueError("--training needs the folder of a run, whose tasks are then played")
        else:
            name, world, agent = str(self.agent), self.world.changed(WorldConfig()), None
        sets = task_sets(world, self.difficulties, self.episodes, self.seed, self.spread)
        if self.run_folder is not None and self.training:
            trained = training_tasks(world, loaded.config.tasks, loaded.config.seed)
            sets = {"training": trained.subset(np.arange(self.episodes) % len(trained))} | sets
        results = evaluate(name, sets, self.seed, agent)
        if self.json:
            print(json.dumps({level: summary._asdict() for level, summary in results.items()}, indent=2))
        else:
            Console().print(results_table({name: results}))


@dataclass(frozen=True)
class Diagnose:
    """Say what limits a trained Skipper: ground truth in place of one learned part at a time.

    The first table holds success rates; in each row one part is true instead of learned. True edges are not cut for
    their length. The second one says how wrong distances and walks are, by true distance, and how often plans are
    deluded: what cannot be reached stands under "inf".

    Example: skipper diagnose runs/first --episodes 100 --difficulties 0.35 0.55
    """

    run_folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(name="run", metavar="RUN")]
    """Folder of a trained Skipper agent."""
    difficulties: tuple[float, ...] = EVALUATION_DIFFICULTIES
    """Densities of lava of the unseen tasks."""
    episodes: int = 100
    """Tasks per difficulty."""
    seed: int = 0
    """Decides the tasks and all that happens in them."""
    json: bool = False
    """Print one JSON object instead of the tables."""
    world: tyro.conf.OmitArgPrefixes[WorldOptions] = field(default_factory=WorldOptions)

    def run(self) -> None:
        """Print both tables or the object."""
        from skipper.training.diagnose import diagnose, examine, load_patient
        from skipper.training.folder import read_config

        world = self.world.changed(read_config(self.run_folder).world)
        patient = load_patient(self.run_folder, world)
        sets = task_sets(world, self.difficulties, self.episodes, self.seed)
        replaced, errors = diagnose(patient, sets, self.seed), examine(patient, sets, self.seed)
        if self.json:
            rows = {name: {level: row._asdict() for level, row in levels.items()} for name, levels in replaced.items()}
            print(json.dumps({"replaced": rows, "truth": errors}, indent=2))
            return
        console = Console()
        console.print(replaced_table(replaced))
        console.print(errors_table(errors))


@dataclass(frozen=True)
class Plot:
    """Draw the learning curves of one or several runs.

    Example: skipper plot runs/first runs/second --out curves.png
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders."""
    out: Path = Path("curves.png")
    """The picture; its ending decides the format (png, pdf, svg)."""

    def run(self) -> None:
        """Write the picture."""
        from skipper.experiments.plots import draw_learning_curves
        from skipper.training.recorder import read_evaluations

        if not self.runs:
            raise ValueError("name at least one run folder")
        draw_learning_curves({path.name: read_evaluations(path) for path in self.runs}, self.out)
        print(f"wrote {self.out}")


@dataclass(frozen=True)
class Demo:
    """Watch a Skipper learn for a few minutes, and see how far it came.

    One table compares it with the random and the optimal agent, and with a trained Skipper; figures of its learning
    curve, of one of its plans and of the tasks are left behind.
    """

    out: Path = Path("demo")
    """Folder for what the demo leaves behind; a run in it is begun anew."""
    minutes: float = 4.5
    """How long it may learn."""
    trained: Path = Path("pretrained/skipper-regen-50")
    """The trained agent to compare with; left out where the folder is not there."""
    episodes: int = 200
    """Tasks per difficulty in the table."""
    seed: int = 0
    """Decides the tasks and all that happens."""

    def run(self) -> None:
        """Train, print the table and write the pictures."""
        from skipper.experiments.demo import draw_figures, train_for  # matplotlib is slow to import

        console = Console()
        sets = task_sets(WorldConfig(), EVALUATION_DIFFICULTIES, self.episodes, self.seed)
        run = self.out / "run"
        console.print(f"A Skipper learns on 50 lava worlds of 12x12 cells, for {self.minutes:g} minutes at most ...")
        train_for(run, self.minutes, self.seed)
        console.print(f"Playing {self.episodes} unseen worlds of each of {len(sets)} difficulties ...")
        results = {agent: evaluate(agent, sets, self.seed) for agent in ("random", "optimal")}
        folders = {"just now": run, "pretrained": self.trained}
        for name, folder in folders.items():
            if folder.exists():
                results[name] = evaluate(name, sets, self.seed, load(folder, self.seed).agent)
        console.print(results_table(results))
        for picture in draw_figures(run, self.trained if self.trained.exists() else run, sets, self.out):
            console.print(f"wrote {picture}")


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
    world: tyro.conf.OmitArgPrefixes[WorldOptions] = field(default_factory=WorldOptions)

    def run(self) -> None:
        """Print the rates."""
        from skipper.benchmarks.world import bench_world

        rates = bench_world(replace(self.world.changed(WorldConfig()), difficulty=self.difficulty), self.seconds)
        show(rates, self.json)


@dataclass(frozen=True)
class BenchUpdate:
    """Measure one gradient update of Skipper, and of the model-free baseline beside it.

    FLOP counts, and the share of the network's ceiling that the update reaches: the speed of its convolutions and
    matrix products when they are run alone.
    """

    preset: str = "paper"
    """Whose networks and batches."""
    seconds: float = 5.0
    """Time spent on each measurement."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the measurements."""
        from skipper.benchmarks.update import bench_update

        show(bench_update(self.preset, self.seconds), self.json)


@dataclass(frozen=True)
class BenchTrain:
    """Measure training as it is: environment steps, updates and (transition, target) pairs per second.

    Also what share of the time each part takes, and the most memory that was used.
    """

    preset: str = "fast"
    """How it is trained."""
    agent: str = "skipper-regen"
    """Who is trained."""
    seconds: float = 30.0
    """How long, after a short warm-up."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the measurements."""
        from skipper.benchmarks.train import bench_train

        show(bench_train(preset(self.preset, self.agent), self.seconds), self.json)


@dataclass(frozen=True)
class BenchPlan:
    """Measure planning: milliseconds per proxy problem, alone and in batches of 64, and what they are spent on."""

    preset: str = "paper"
    """Whose networks, and how many vertices."""
    seconds: float = 3.0
    """Time spent on each of the eight measurements."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the measurements."""
        from skipper.benchmarks.plan import bench_plan

        show(bench_plan(preset(self.preset, "skipper-regen"), self.seconds), self.json)


@dataclass(frozen=True)
class BenchReplay:
    """Measure adding, drawing and updating samples of a large replay buffer, and the memory that they take."""

    samples: int = 4_000_000
    """Hindsight samples that the buffer holds."""
    batch: int = 64
    """Samples that are drawn together."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the measurements."""
        from skipper.benchmarks.replay import bench_replay

        show(bench_replay(self.samples, self.batch), self.json)


@dataclass(frozen=True)
class Bench:
    """Measure how fast things are on this machine."""

    what: (
        Annotated[BenchWorld, tyro.conf.subcommand("world")]
        | Annotated[BenchUpdate, tyro.conf.subcommand("update")]
        | Annotated[BenchTrain, tyro.conf.subcommand("train")]
        | Annotated[BenchPlan, tyro.conf.subcommand("plan")]
        | Annotated[BenchReplay, tyro.conf.subcommand("replay")]
    )

    def run(self) -> None:
        """Run the chosen benchmark."""
        self.what.run()


def show(result: dict[str, Any], as_json: bool) -> None:
    """Print measurements as one JSON object, or a line each."""
    if as_json:
        print(json.dumps(result, indent=2))
        return
    table = Table("what", "measured")
    for name, value in result.items():
        parts = value if isinstance(value, dict) else {"": value}
        for part, number in parts.items():
            label = f"{name} {part}".replace("_", " ").strip()
            table.add_row(label, f"{number:,.4g}" if isinstance(number, float) else str(number))
    Console().print(table)


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


def replaced_table(replaced: dict[str, dict[str, Summary]]) -> Table:
    """A row per replaced part, success per difficulty and on average."""
    levels = list(next(iter(replaced.values())))
    table = Table("true instead of learned", *levels, "mean", "gain", "deaths", "timeouts")
    base = np.mean([row.success for row in next(iter(replaced.values())).values()])
    for name, rows in replaced.items():
        success = [row.success for row in rows.values()]
        shares = [np.mean([getattr(row, key) for row in rows.values()]) for key in ("deaths", "timeouts")]
        numbers = [*success, np.mean(success)]
        gain = f"{np.mean(success) - base:+.3f}"
        table.add_row(name, *(f"{x:.3f}" for x in numbers), gain, *(f"{share:.3f}" for share in shares))
    return table


def errors_table(errors: dict[str, dict[str, Any]]) -> Table:
    """A row per measure, a column per difficulty."""
    table = Table("measured against the truth", *errors)

    def add(label: str, *path: str) -> None:
        values: list[Any] = list(errors.values())
        for key in path:
            values = [None if value is None else value.get(key) for value in values]
        if any(value is not None for value in values):
            table.add_row(label, *("-" if value is None else f"{value:.3f}" for value in values))

    for steps in (1, 2, 4, 6, 8, "inf"):
        add(f"distance error at {steps}", "edges", str(steps), "distance")
    for steps in (1, 2, 4, 6, 8):
        add(f"walks that fail at {steps}", "walks", str(steps), "failure")
    first = next(iter(errors.values()))
    for part in ("plans", "generator"):
        for name in first[part]:
            add(name.replace("_", " "), part, name)
    return table


def chosen(arguments: list[str], option: str, default: str) -> str:
    """The value of an option that decides the defaults of all others, and so must be known before them."""
    found = default
    for position, argument in enumerate(arguments):
        if argument == option and position + 1 < len(arguments):
            found = arguments[position + 1]
        elif argument.startswith(f"{option}="):
            found = argument.removeprefix(f"{option}=")
    return found


def commands(base: RunConfig) -> Any:
    """The type of the command line; training begins with ``base``."""
    train = tyro.conf.subcommand("train", default=Train(out=tyro.MISSING, config=base))
    return (
        Annotated[Train, train]
        | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
        | Annotated[Diagnose, tyro.conf.subcommand("diagnose")]
        | Annotated[Plot, tyro.conf.subcommand("plot")]
        | Annotated[Demo, tyro.conf.subcommand("demo")]
        | Annotated[Bench, tyro.conf.subcommand("bench")]
    )


def main() -> None:
    """Parse the command line and run it; a mistake in it is one line, not a traceback."""
    arguments = sys.argv[1:]
    try:
        base = preset(chosen(arguments, "--preset", "fast"), chosen(arguments, "--agent", "skipper-regen"))
        options = (tyro.conf.OmitSubcommandPrefixes,)
        description = "Skipper: agents that plan at decision time and generalise zero-shot."
        command: Any = tyro.cli(commands(base), prog="skipper", description=description, config=options)
        command.run()
    except (ValueError, OSError, MemoryError) as error:
        sys.exit(f"skipper: error: {error or type(error).__name__}")
    except KeyboardInterrupt:
        sys.exit(130)  # as shells report it
