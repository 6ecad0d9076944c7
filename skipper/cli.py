"""The ``skipper`` command: thin; everything real happens in the rooms below."""

import sys
from typing import Annotated, Any

import tyro

from skipper.commands.agents import Demo, Evaluate, Train
from skipper.commands.benchmarks import Bench
from skipper.commands.study import Ablate, Compare, Diagnose, Plot
from skipper.commands.watch import Watch
from skipper.config import RunConfig
from skipper.presets import preset


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
        | Annotated[Watch, tyro.conf.subcommand("watch")]
        | Annotated[Diagnose, tyro.conf.subcommand("diagnose")]
        | Annotated[Ablate, tyro.conf.subcommand("ablate")]
        | Annotated[Compare, tyro.conf.subcommand("compare")]
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
