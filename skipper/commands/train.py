"""``skipper train``: train an agent, or continue a run."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import tyro

from skipper.config import RunConfig


@dataclass(frozen=True)
class Train:
    """Train an agent; the same command continues an interrupted run.

    Every field of the configuration is an option. Presets: "fast", the default, learns in half an hour on two cores;
    "paper" follows the paper to the number; "debug" takes seconds, to see that everything runs.

    Example: skipper train --agent skipper-regen --tasks 50 --seed 0 --out runs/first
    """

    out: Path
    """The run folder; docs/run_folder.md describes its content."""
    size: tuple[int, ...] | None = None
    """Cells along x, and along y where that differs; sets width and height."""
    config: tyro.conf.OmitArgPrefixes[RunConfig] = field(default_factory=RunConfig)

    def run(self) -> None:
        """Train to the end, or until Ctrl-C."""
        from skipper.envs.registry import find_family
        from skipper.training.progress import ProgressDisplay
        from skipper.training.run import train

        config = self.config
        if self.size is not None:
            options = find_family(config.env).options_type(size=self.size)
            config = replace(config, world=options.changed(config.world))
        with ProgressDisplay(config.steps) as display:
            finished = train(config, self.out, display)
            display.say(f"finished: {self.out}" if finished else "saved; the same command continues this run")
