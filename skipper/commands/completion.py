"""``skipper completion``: the script by which a shell completes commands and options."""

import ast
import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import tyro

from skipper.agents.registry import KINDS
from skipper.presets import PRESETS
from skipper.training.settings import configure

Shell = Literal["bash", "zsh", "fish"]
SPEC = "COMPLETION_SPEC = "  # how the line of a script begins that holds all commands, as a Python literal
# Put behind that line: the options of ``skipper train`` become those of the agent that was typed.
CHOOSE = """
import sys
agent = dict(zip(sys.argv, sys.argv[1:])).get('--agent')
chosen = AGENTS.get(agent, AGENTS[DEFAULT])
COMPLETION_SPEC['subcommands']['train']['options'] = [OPTIONS[index] for index in chosen]
"""


@dataclass(frozen=True)
class Completion:
    """Print the script by which a shell completes commands and options.

    Options of training are those of the agent that was typed before them. Open a new shell after one of these:

    Examples: skipper completion bash >> ~/.bashrc
              skipper completion zsh > ~/.zfunc/_skipper
              skipper completion fish > ~/.config/fish/completions/skipper.fish
    """

    shell: tyro.conf.Positional[Shell]
    """The shell."""

    def run(self, commands: Callable[[str], Any]) -> None:
        """Print the script; ``commands`` gives the type of the command line for an agent."""
        default = configure().agent
        options = {agent: training_options(write_script(commands(agent), "bash")) for agent in KINDS}
        print(with_agents(write_script(commands(default), self.shell), options, default, self.shell))


def write_script(commands: Any, shell: Shell) -> str:
    """The script for a command line of this type, as the library of the parser writes it."""
    written = io.StringIO()
    arguments = ["--tyro-write-completion", shell, "-"]
    with contextlib.redirect_stdout(written), contextlib.suppress(SystemExit):
        tyro.cli(commands, prog="skipper", args=arguments, config=(tyro.conf.OmitSubcommandPrefixes,))
    return written.getvalue()


def training_options(script: str) -> list[dict[str, Any]]:
    """The options of ``skipper train`` in a script for bash, with the values of those that have names."""
    line = next(line for line in script.splitlines() if line.startswith(SPEC))
    options: list[dict[str, Any]] = ast.literal_eval(line.removeprefix(SPEC))["subcommands"]["train"]["options"]
    for option in options:
        for flag, names in (("--agent", KINDS), ("--preset", PRESETS)):
            if flag in option["flags"]:
                option |= {"type": "choice", "choices": sorted(names)}
    return options


def with_agents(script: str, options: dict[str, list[dict[str, Any]]], default: str, shell: Shell) -> str:
    """A script that knows the options of training of every agent, each of them written once."""
    texts = {agent: [repr(option) for option in known] for agent, known in options.items()}
    pool = list(dict.fromkeys(text for known in texts.values() for text in known))
    chosen = {agent: [pool.index(text) for text in known] for agent, known in texts.items()}
    more = f"OPTIONS = [{', '.join(pool)}]\nAGENTS = {chosen}\nDEFAULT = {default!r}{CHOOSE}"
    if shell == "fish":  # whose script holds the program in double quotes
        for special in ("\\", '"', "$"):
            more = more.replace(special, f"\\{special}")
    lines = script.splitlines()
    position = next(index for index, line in enumerate(lines) if line.startswith(SPEC)) + 1
    return "\n".join([*lines[:position], more, *lines[position:]])
