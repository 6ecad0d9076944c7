"""Misspelt commands and options: found before the parser, and told in one line with the nearest right word."""

from collections.abc import Iterable, Iterator

from skipper.commands.help import Block, Option
from skipper.runtime.checks import did_you_mean, nearest_name


class UsageError(ValueError):
    """A mistake in how a command is called, not in what it works on."""


def check_command(name: str, commands: Iterable[str]) -> None:
    """Refuse a command that there is not."""
    if name not in commands:
        raise UsageError(nearest_name("command", name, commands))


def check_options(prog: str, arguments: list[str], blocks: Iterable[Block]) -> None:
    """Refuse options that a command does not have, and a call without one that it needs."""
    options = [option for block in blocks for option in block.options if not option.positional]
    known = {spelling for option in options for spelling in _spellings(option)}
    given = [word.partition("=")[0].replace("_", "-") for word in arguments if word.startswith("--")]
    for word in given:
        if word not in known:
            raise UsageError(f"`{prog}` has no option {word}{did_you_mean(word, known)}")
    for option in options:
        if option.default == "required" and not set(_spellings(option)) & set(given):
            raise UsageError(f"`{prog}` needs {option.label}: {option.about}")


def _spellings(option: Option) -> Iterator[str]:
    """All names of an option; a switch can be turned on and off."""
    for word in option.label.replace(",", " ").split():
        if word.startswith("--"):
            plain = word.removeprefix("--no-").removeprefix("--")
            yield f"--{plain}"
            if word == option.label:
                yield f"--no-{plain}"
