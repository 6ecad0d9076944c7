"""``skipper train``: train an agent, or continue a run."""

from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import tyro

from skipper.config import RunConfig, WorldConfig
from skipper.envs.registry import sides


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
    size: tuple[int, ...] | None = None
    """Cells along x, and along y where that differs; sets width and height where the environment has them. Longer sides
    than 12 also raise the default of --max-steps, and what the preset makes of the size."""
    config: tyro.conf.OmitArgPrefixes[RunConfig] = field(default_factory=RunConfig)

    def run(self) -> None:
        """Train to the end, or until Ctrl-C."""
        from skipper.training.progress import ProgressDisplay
        from skipper.training.run import train

        config = replace(self.config, world=with_size(self.config.world, self.size, self.config.env))
        with ProgressDisplay(config.steps) as display:
            finished = train(config, self.out, display)
            display.say(f"finished: {self.out}" if finished else "saved; the same command continues this run")


def has_size(world: WorldConfig) -> bool:
    """Whether a world has a width and a height."""
    return {"width", "height"} <= {entry.name for entry in fields(world)}


def with_size(world: WorldConfig, size: tuple[int, ...] | None, env: str) -> WorldConfig:
    """The world of the environment ``env`` with the given width and height of the grid."""
    if size is None:
        return world
    if not has_size(world):
        raise ValueError(f"--size: the environment {env!r} has no width and height to set")
    width, height = sides(size)
    return replace(world, width=width, height=height)  # type: ignore[call-arg]
