"""``skipper bench``: speed on this machine."""

from dataclasses import dataclass, field
from typing import Annotated

import tyro

from skipper.commands.options import OptionalRunArgument, WorldOptions, default_world
from skipper.commands.tables import show_measurements
from skipper.training.settings import configure


@dataclass(frozen=True)
class BenchWorld:
    """Measure the lava world: vector and single steps, layouts and oracle tasks per second.

    Each rate is compared with that of a plain-Python twin in the same run.
    """

    seconds: float = 2.0
    """Time spent on each of the eight measurements."""
    difficulty: float = 0.4
    """Density of lava."""
    json: bool = False
    """Print one JSON object instead of the table."""
    world: WorldOptions = field(default_factory=default_world)

    def run(self) -> None:
        """Print the rates."""
        from skipper.benchmarks.world import bench_world, benchmark_world

        show_measurements(bench_world(benchmark_world(self.world, self.difficulty), self.seconds), self.json)


@dataclass(frozen=True)
class BenchUpdate:
    """Measure one gradient update.

    Reports FLOP counts, and the share of the network's ceiling that the update reaches: the speed of its convolutions
    and matrix products when they run alone.
    """

    agent: str = "skipper-regen"
    """Agent to update."""
    preset: str = "paper"
    """Preset of networks and batches."""
    seconds: float = 5.0
    """Time spent on each measurement."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the measurements."""
        from skipper.benchmarks.update import bench_update

        show_measurements(bench_update(configure(self.preset, self.agent), self.seconds), self.json)


@dataclass(frozen=True)
class BenchTrain:
    """Measure training: environment steps, updates and (transition, target) pairs per second.

    Also reports the share of time that each part takes, and the peak memory.
    """

    preset: str = "fast"
    """Preset of the run."""
    agent: str = "skipper-regen"
    """Agent to train."""
    seconds: float = 30.0
    """Duration, after a short warm-up."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the measurements."""
        from skipper.benchmarks.train import bench_train

        show_measurements(bench_train(configure(self.preset, self.agent), self.seconds), self.json)


@dataclass(frozen=True)
class BenchPlan:
    """Measure planning: milliseconds per plan, alone and in batches of 64, in total and by part."""

    run_folder: OptionalRunArgument = None
    """Folder of a trained agent that plans, or the name of a pretrained one; by default an untrained agent plans."""
    agent: str = "skipper-regen"
    """The agent, where no run is given."""
    preset: str = "paper"
    """Preset of networks and plans of an untrained agent."""
    seconds: float = 3.0
    """Time spent on each of up to eleven measurements."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the measurements."""
        from skipper.benchmarks.plan import bench_plan, trained, untrained

        policy = trained(self.run_folder) if self.run_folder else untrained(configure(self.preset, self.agent))
        show_measurements(bench_plan(policy, self.seconds), self.json)


@dataclass(frozen=True)
class BenchReplay:
    """Measure adding, drawing and updating samples of a large replay buffer, and their memory."""

    samples: int = 4_000_000
    """Hindsight samples in the buffer."""
    batch: int = 64
    """Samples per draw."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the measurements."""
        from skipper.benchmarks.replay import bench_replay

        show_measurements(bench_replay(self.samples, self.batch), self.json)


@dataclass(frozen=True)
class BenchSB3:
    """Measure PPO of Stable-Baselines3 in training: on a benchmark, and on an environment that does nothing.

    The two are measured in turns. "ratio" is the share of its speed that PPO keeps on our environment.
    """

    benchmark: str = "skipper/LavaWorld-50-v0"
    """Training tasks."""
    environments: int = 16
    """Environments stepped together."""
    rounds: int = 5
    """Measurements of each; a round is 2,048 steps and the updates that follow."""
    threads: int = 2
    """Threads of the network library."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the measurements."""
        from skipper.benchmarks.sb3 import bench_sb3

        show_measurements(bench_sb3(self.benchmark, self.environments, self.rounds, self.threads), self.json)


@dataclass(frozen=True)
class Bench:
    """Measure speed on this machine."""

    what: (
        Annotated[BenchWorld, tyro.conf.subcommand("world")]
        | Annotated[BenchUpdate, tyro.conf.subcommand("update")]
        | Annotated[BenchTrain, tyro.conf.subcommand("train")]
        | Annotated[BenchPlan, tyro.conf.subcommand("plan")]
        | Annotated[BenchReplay, tyro.conf.subcommand("replay")]
        | Annotated[BenchSB3, tyro.conf.subcommand("sb3")]
    )

    def run(self) -> None:
        """Run the chosen benchmark."""
        self.what.run()
