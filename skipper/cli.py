"""The ``skipper`` command line: it chooses the options that fit agent and environment, and runs the command."""

import os
import sys
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import tyro

from skipper.commands.ablate import Ablate
from skipper.commands.bench import Bench
from skipper.commands.compare import Compare
from skipper.commands.demo import Demo
from skipper.commands.diagnose import Diagnose
from skipper.commands.environments import Environments
from skipper.commands.evaluate import Evaluate
from skipper.commands.markdown_table import Table
from skipper.commands.options import with_world
from skipper.commands.plot import Plot
from skipper.commands.pretrained import Pretrained
from skipper.commands.report import Report
from skipper.commands.reproduce import Reproduce
from skipper.commands.train import Train
from skipper.commands.watch import Watch
from skipper.config import RunConfig
from skipper.envs.registry import DEFAULT_FAMILY, Family, find_family, has_size, with_size
from skipper.training.pretrained import PRETRAINED, pretrained_names
from skipper.training.run_folder import CONFIG, read_config
from skipper.training.settings import configure

BROKEN_PIPE = 128 + 13  # as shells report the signal SIGPIPE


def chosen(arguments: list[str], option: str, default: str) -> str:
    """The value of an option that decides which others there are, and so must be known before them."""
    found = default
    for position, argument in enumerate(arguments):
        if argument == option and position + 1 < len(arguments):
            found = arguments[position + 1]
        elif argument.startswith(f"{option}="):
            found = argument.removeprefix(f"{option}=")
    return found


def chosen_size(arguments: list[str]) -> tuple[int, ...] | None:
    """The numbers of the last --size, on which presets depend; None without any that the command would take."""
    parts = [part for text in arguments for part in (text.split("=") if text.startswith("--size=") else [text])]
    if "--size" not in parts:
        return None
    following = parts[len(parts) - parts[::-1].index("--size") :]
    numbers = tuple(map(int, takewhile(str.isdecimal, following)))
    return numbers if len(numbers) in (1, 2) and 0 not in numbers else None


def chosen_family(arguments: list[str]) -> Family:
    """The environment family: the one named by --env, or that of the first run among the arguments."""
    named = set(pretrained_names())
    runs = [PRETRAINED / each if each in named and not Path(each).exists() else Path(each) for each in arguments[1:]]
    folders = [run for run in runs if (run / CONFIG).is_file()]
    default = read_config(folders[0]).env if folders and arguments[0] != "train" else DEFAULT_FAMILY
    return find_family(chosen(arguments, "--env", default))


def base_config(arguments: list[str], family: Family) -> RunConfig:
    """What training starts from: the preset of agent and environment, in the world that the arguments describe."""
    if not arguments or arguments[0] != "train":
        return configure(env=family.name)
    preset, agent = chosen(arguments, "--preset", "fast"), chosen(arguments, "--agent", "skipper-regen")
    # A preset may depend on the world: on whether moves slip, and on its size.
    world, size = family.world(preset), chosen_size(arguments)
    world, _ = tyro.cli(
        family.config_type,
        prog="skipper train",
        args=arguments[1:],
        default=with_size(world, size) if size and has_size(world) else world,
        return_unknown_args=True,
        add_help=False,
    )
    return configure(preset, agent, family.name, world)


def commands(base: RunConfig, family: Family) -> Any:
    """The type of the command line: ``base`` gives the options of training, ``family`` those of worlds."""
    command = tyro.conf.subcommand
    return (
        Annotated[Train, command("train", default=Train(out=tyro.MISSING, config=base))]
        | Annotated[Evaluate, command("evaluate", default=with_world(Evaluate, family))]
        | Annotated[Watch, command("watch")]
        | Annotated[Diagnose, command("diagnose", default=with_world(Diagnose, family))]
        | Annotated[Ablate, command("ablate", default=with_world(Ablate, family))]
        | Annotated[Compare, command("compare")]
        | Annotated[Table, command("table")]
        | Annotated[Plot, command("plot")]
        | Annotated[Reproduce, command("reproduce")]
        | Annotated[Report, command("report")]
        | Annotated[Demo, command("demo")]
        | Annotated[Pretrained, command("pretrained")]
        | Annotated[Environments, command("environments")]
        | Annotated[Bench, command("bench")]
    )


def run_command(arguments: list[str]) -> None:
    """Parse the command line and run it; a mistake in it is one line, not a traceback."""
    try:
        family = chosen_family(arguments)
        types = commands(base_config(arguments, family), family)
        options = (tyro.conf.OmitSubcommandPrefixes,)
        description = "Skipper: agents that plan at decision time and generalise zero-shot."
        command: Any = tyro.cli(types, prog="skipper", description=description, config=options)
        command.run()
    except BrokenPipeError:
        raise
    except (ValueError, OSError, MemoryError) as error:
        sys.exit(f"skipper: error: {error or type(error).__name__}")
    except KeyboardInterrupt:
        sys.exit(130)  # as shells report it


def main() -> None:
    """Run the command line; end quietly if nobody reads the output any more, as in ``skipper ... | head``."""
    try:
        try:
            run_command(sys.argv[1:])
        finally:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as end:
        # Rich turns a broken pipe into an exit with another code.
        if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what the interpreter flushes at its end
        sys.exit(BROKEN_PIPE)
