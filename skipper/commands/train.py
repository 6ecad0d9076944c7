"""``skipper train``: train an agent, or continue a run."""

from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import tyro

from skipper.config import RunConfig
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
    """Cells along x, and along y where that differs; sets width and height where the environment has them."""
    config: tyro.conf.OmitArgPrefixes[RunConfig] = field(default_factory=RunConfig)

    def run(self) -> None:
        """Train to the end, or until Ctrl-C."""
        from skipper.training.progress import ProgressDisplay
        from skipper.training.run import train

        config = with_size(self.config, self.size)
        with ProgressDisplay(config.steps) as display:
            finished = train(config, self.out, display)
            display.say(f"finished: {self.out}" if finished else "saved; the same command continues this run")


def with_size(config: RunConfig, size: tuple[int, ...] | None) -> RunConfig:
    """The configuration with the given width and height of the grid."""
    if size is None:
        return config
    if not {"width", "height"} <= {entry.name for entry in fields(config.world)}:
        raise ValueError(f"--size: the environment {config.env!r} has no width and height to set")
    width, height = sides(size)
    return replace(config, world=replace(config.world, width=width, height=height))  # type: ignore[call-arg]
