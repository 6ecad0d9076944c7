"""The ``skipper`` command: chooses defaults, parses the command line and runs one command."""

import sys
from pathlib import Path
from typing import Annotated, Any

import tyro

from skipper.commands.ablate import Ablate
from skipper.commands.bench import Bench
from skipper.commands.compare import Compare
from skipper.commands.demo import Demo
from skipper.commands.diagnose import Diagnose
from skipper.commands.evaluate import Evaluate
from skipper.commands.options import with_world
from skipper.commands.plot import Plot
from skipper.commands.train import Train
from skipper.commands.watch import Watch
from skipper.config import RunConfig
from skipper.envs.registry import DEFAULT_FAMILY, Family, find_family
from skipper.training.configure import configure
from skipper.training.run_folder import CONFIG, read_config


def chosen(arguments: list[str], option: str, default: str) -> str:
    """The value of an option that decides the defaults of all others, and so must be known before them."""
    found = default
    for position, argument in enumerate(arguments):
        if argument == option and position + 1 < len(arguments):
            found = arguments[position + 1]
        elif argument.startswith(f"{option}="):
            found = argument.removeprefix(f"{option}=")
    return found


def chosen_env(arguments: list[str]) -> str:
    """The environment that ``--env`` or the first run folder on the command line names."""
    runs = (Path(argument) for argument in arguments[1:] if (Path(argument) / CONFIG).is_file())
    run = next(runs, None) if arguments and arguments[0] != "train" else None
    return chosen(arguments, "--env", read_config(run).env if run else DEFAULT_FAMILY)


def commands(base: RunConfig, family: Family) -> Any:
    """The type of the command line; training begins with ``base``, worlds are those of ``family``."""
    evaluate, diagnose, ablate = (with_world(command, family) for command in (Evaluate, Diagnose, Ablate))
    return (
        Annotated[Train, tyro.conf.subcommand("train", default=Train(out=tyro.MISSING, config=base))]
        | Annotated[Evaluate, tyro.conf.subcommand("evaluate", default=evaluate)]
        | Annotated[Watch, tyro.conf.subcommand("watch")]
        | Annotated[Diagnose, tyro.conf.subcommand("diagnose", default=diagnose)]
        | Annotated[Ablate, tyro.conf.subcommand("ablate", default=ablate)]
        | Annotated[Compare, tyro.conf.subcommand("compare")]
        | Annotated[Plot, tyro.conf.subcommand("plot")]
        | Annotated[Demo, tyro.conf.subcommand("demo")]
        | Annotated[Bench, tyro.conf.subcommand("bench")]
    )


def main() -> None:
    """Parse the command line and run it; a mistake in it is one line, not a traceback."""
    arguments = sys.argv[1:]
    try:
        env = chosen_env(arguments)
        agent = chosen(arguments, "--agent", "skipper-regen") if arguments[:1] == ["train"] else "skipper-regen"
        base = configure(chosen(arguments, "--preset", "fast"), agent, env)
        options = (tyro.conf.OmitSubcommandPrefixes,)
        description = "Skipper: agents that plan at decision time and generalise zero-shot."
        command: Any = tyro.cli(
            commands(base, find_family(env)), prog="skipper", description=description, config=options
        )
        command.run()
    except (ValueError, OSError, MemoryError) as error:
        sys.exit(f"skipper: error: {error or type(error).__name__}")
    except KeyboardInterrupt:
        sys.exit(130)  # as shells report it
