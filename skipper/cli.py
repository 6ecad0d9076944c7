"""The ``skipper`` command line: it chooses the options that fit agent and environment, and runs the command."""

import os
import sys
from functools import reduce
from importlib.metadata import version
from itertools import takewhile
from operator import or_
from typing import Annotated, Any, get_type_hints

import tyro
from rich.console import Console
from rich.text import Text

from skipper.commands.ablate import Ablate
from skipper.commands.bench import Bench
from skipper.commands.compare import Compare
from skipper.commands.completion import Completion
from skipper.commands.demo import Demo
from skipper.commands.diagnose import Diagnose
from skipper.commands.environments import Environments
from skipper.commands.evaluate import Evaluate
from skipper.commands.export import Export
from skipper.commands.help import WIDEST, blocks_of, command_list, help_page, subcommands_of
from skipper.commands.markdown_table import Table
from skipper.commands.options import with_world
from skipper.commands.plot import Plot
from skipper.commands.pretrained import Pretrained
from skipper.commands.push import Push
from skipper.commands.report import Report
from skipper.commands.reproduce import Reproduce
from skipper.commands.train import Train, train_help
from skipper.commands.usage import UsageError, check_command, check_options
from skipper.commands.watch import Watch
from skipper.config import RunConfig
from skipper.envs.registry import DEFAULT_FAMILY, Family, find_family, has_size, with_size
from skipper.training.pretrained import find_run, names_run
from skipper.training.run_folder import read_config
from skipper.training.settings import configure

ABOUT = "Skipper: agents that plan at decision time and generalise zero-shot."
HELP = {"-h", "--help", "--help-all"}
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
    default = DEFAULT_FAMILY
    if arguments and arguments[0] not in ("train", "push"):
        runs = filter(names_run, arguments[1:])
        default = next((read_config(find_run(run)).env for run in runs), default)
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


# The commands, as the overview groups them.
GROUPS: dict[str, dict[str, Any]] = {
    "First steps": {"demo": Demo, "pretrained": Pretrained, "watch": Watch, "train": Train, "evaluate": Evaluate},
    "Understand and compare": {
        "diagnose": Diagnose,
        "ablate": Ablate,
        "compare": Compare,
        "plot": Plot,
        "table": Table,
    },
    "The paper": {"reproduce": Reproduce, "report": Report},
    "More": {
        "push": Push,
        "export": Export,
        "environments": Environments,
        "bench": Bench,
        "completion": Completion,
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


def defaults(base: RunConfig, family: Family) -> dict[str, Any]:
    """Defaults that depend on the arguments: ``base`` gives the options of training, ``family`` those of worlds."""
    with_worlds = {name: with_world(COMMANDS[name], family) for name in ("evaluate", "diagnose", "ablate")}
    return {"train": Train(out=tyro.MISSING, config=base), **with_worlds}


def commands(base: RunConfig, family: Family) -> Any:
    """The type of the command line."""
    known = defaults(base, family)
    given = {name: {"default": known[name]} if name in known else {} for name in COMMANDS}
    parts = (Annotated[part, tyro.conf.subcommand(name, **given[name])] for name, part in COMMANDS.items())
    return reduce(or_, parts)


def show_help(arguments: list[str]) -> None:
    """The overview of all commands, or the page of the one that is named first."""
    if not arguments or arguments[0] in HELP:
        page = overview()
    elif arguments[0] == "train":
        family = chosen_family(arguments)
        page = train_help(base_config(arguments, family), "--help-all" in arguments)
    else:
        name, command = find_command(arguments)
        known = {} if " " in name else defaults(configure(), chosen_family(arguments))
        page = help_page(f"skipper {name}", command, list(blocks_of(command, known.get(name))))
    Console(highlight=False).print(page, end="", soft_wrap=True)


def find_command(arguments: list[str]) -> tuple[str, Any]:
    """The command that the arguments begin with, such as "train" or "bench plan"."""
    name, command = arguments[0], COMMANDS[arguments[0]]
    for hint in get_type_hints(command, include_extras=True).values():
        if arguments[1:] and (known := subcommands_of(hint)) and not arguments[1].startswith("-"):
            check_command(f"{name} {arguments[1]}", [f"{name} {inner}" for inner in known])
            return f"{name} {arguments[1]}", known[arguments[1]]
    return name, command


def check_arguments(arguments: list[str], base: RunConfig, family: Family) -> None:
    """Refuse options that the command does not have, with the nearest one that it has."""
    name, command = find_command(arguments)
    prog = f"skipper {name} --agent {base.agent}" if name == "train" else f"skipper {name}"
    check_options(prog, arguments, blocks_of(command, defaults(base, family).get(name)))


def overview() -> Text:
    """What there is, and how to learn more."""
    page = Text("usage: skipper COMMAND [options]\n\n" + ABOUT + "\n")
    for title, group in GROUPS.items():
        page.append(command_list(title, group, min(Console().width, WIDEST)))
    return page.append("\n`skipper COMMAND --help` explains a command and its options.\n")


def run_command(arguments: list[str]) -> None:
    """Parse the command line and run it; a mistake in it is one line, not a traceback."""
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        if arguments == ["--version"]:
            print(f"skipper {version('skipper-rl')}")
            return
        if arguments and arguments[0] not in HELP:
            check_command(arguments[0], COMMANDS)
        if not arguments or HELP & set(arguments):
            show_help(arguments)
            return
        family = chosen_family(arguments)
        base = base_config(arguments, family)
        check_arguments(arguments, base, family)
        types = commands(base, family)
        options = (tyro.conf.OmitSubcommandPrefixes,)
        command: Any = tyro.cli(types, prog="skipper", description=ABOUT, args=arguments, config=options)
        if isinstance(command, Completion):
            command.run(lambda agent: commands(configure(agent=agent), family))  # it alone knows all commands
        else:
            command.run()
    except BrokenPipeError:
        raise
    except UsageError as error:
        print(f"skipper: error: {error}", file=sys.stderr)
        sys.exit(2)
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
