"""``skipper train``: train an agent, or continue a run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro

from skipper.config import RunConfig
from skipper.envs.registry import has_size, sides
from skipper.training.tracking import Library


@dataclass(frozen=True)
class Train:
    """Train an agent; the same command continues a run that was interrupted.

    Every field of the configuration is an option; --agent, --env and --preset decide which there are and their
    defaults. Presets: "fast", the default, trains Skipper in a quarter of an hour on two cores; "paper" follows the
    paper to the number; "debug" takes seconds, to see that everything runs.

    Example: skipper train --agent skipper-regen --tasks 50 --seed 0 --out runs/first
    """

    out: Path
    """The run folder; docs/run_folder.md describes what it holds."""
    track: Library | None = None
    """Send all records to "wandb" (Weights & Biases) as well. The same run goes on there when this one is resumed, and
    what was recorded before is sent first. Without a connection or an account, set WANDB_MODE=offline."""
    size: tuple[int, ...] | None = None
    """Cells along x, and along y where that differs; sets width and height where the environment has them. Longer sides
    also raise the default of --max-steps; the preset adapts to the number of cells."""
    config: tyro.conf.OmitArgPrefixes[RunConfig] = field(default_factory=RunConfig)

    def run(self) -> None:
        """Train to the end, or until Ctrl-C."""
        from skipper.training.progress import ProgressDisplay
        from skipper.training.run import train

        check_size(self.config, self.size)
        with ProgressDisplay(self.config.steps) as display:
            finished = train(self.config, self.out, display, track=self.track)
            display.say(f"finished: {self.out}" if finished else "saved; the same command continues this run")


def check_size(config: RunConfig, size: tuple[int, ...] | None) -> None:
    """Refuse a size that the world of the configuration does not have; the command line has already set it."""
    if size is None:
        return
    if not has_size(config.world):
        raise ValueError(f"--size: the environment {config.env!r} has no width and height to set")
    world: Any = config.world
    if (world.width, world.height) != sides(size):
        raise ValueError(f"--size {' '.join(map(str, size))} contradicts a grid of {world.width}x{world.height}")
