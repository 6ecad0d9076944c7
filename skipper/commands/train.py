"""``skipper train``: train an agent, or continue a run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro
from rich.text import Text

from skipper.agents.registry import KINDS, kind_of
from skipper.commands.help import Block, blocks_of, first_clause, first_sentence, help_page, only
from skipper.config import RunConfig
from skipper.envs.registry import has_size, sides
from skipper.training.tracking import Library

# Options that a first user needs.
MAIN = ("out", "agent", "env", "preset", "seed", "steps", "tasks", "size", "threads", "device", "keep_weights", "track")


@dataclass(frozen=True)
class Train:
    """Train an agent; the same command continues a run that was interrupted.

    Presets: "fast", the default, trains Skipper in 8 minutes on two recent cores; "paper" follows the paper to the
    letter; "debug" takes seconds, to see that everything runs.

    Examples: skipper train --out runs/first
              skipper train --agent modelfree --seed 1 --out runs/second
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


def train_help(config: RunConfig, everything: bool) -> Text:
    """The page about training with this configuration: its main options, or all of them by block."""
    blocks = list(blocks_of(Train, Train(out=tyro.MISSING, config=config)))
    if everything:
        return help_page("skipper train", Train, blocks)
    agent, others = config.agent, ", ".join(sorted(KINDS))
    shown = [
        Block("", "", only(blocks, MAIN, first_sentence)),
        Block(f"Main options of {agent}", "", only(blocks, kind_of(config).main, first_clause)),
    ]
    count = sum(len(block.options) for block in blocks)
    more = f"""--agent, --env and --preset decide which options there are, and their defaults.
    `skipper train --agent NAME --help` shows those of another agent ({others}), and
    `skipper train --agent {agent} --help-all` all {count} of this one."""
    return help_page("skipper train", Train, shown, more)
