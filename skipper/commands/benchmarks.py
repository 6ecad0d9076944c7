"""``skipper bench``: how fast things are on this machine."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from skipper.commands.shared import WorldOptions
from skipper.config import WorldConfig
from skipper.presets import preset


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

    run_folder: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(name="run", metavar="RUN")] = None
    """A run folder, whose trained agent is to plan; without one, an untrained agent of the preset does."""
    preset: str = "paper"
    """Whose networks, and how many vertices, where no run folder says."""
    seconds: float = 3.0
    """Time spent on each of the eleven measurements."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the measurements."""
        from skipper.benchmarks.plan import bench_plan, trained, untrained

        policy = trained(self.run_folder) if self.run_folder else untrained(preset(self.preset, "skipper-regen"))
        show(bench_plan(policy, self.seconds), self.json)


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
