"""What ``--help`` prints: a command's docstring and its options, from the dataclasses that the parser reads."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import tyro
from rich.console import Console
from rich.text import Text

WIDEST = 100  # columns
INDENT = 24  # column at which descriptions begin
WORDS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH", bool: "True|False"}
_POSITIONAL = get_args(tyro.conf.Positional[int])[1]


class Option(NamedTuple):
    """An option or a positional argument."""

    name: str  # of the field
    label: str
    about: str
    default: str  # in words; empty where there is nothing to say
    positional: bool


class Block(NamedTuple):
    """Options that belong together."""

    title: str
    about: str
    options: list[Option]


def first_sentence(text: str) -> str:
    """The first sentence, on one line."""
    return re.split(r"(?<=\.)\s+(?=[A-Z])", " ".join(text.split()))[0]


def first_clause(text: str) -> str:
    """The first sentence as far as a colon or a semicolon."""
    return re.sub("[:;].*", ".", first_sentence(text))


def attribute_docstrings(owner: type) -> dict[str, str]:
    """The strings below the fields of a dataclass, as far as there are sources; those of subclasses win."""
    found: dict[str, str] = {}
    for base in reversed(owner.__mro__[:-1]):
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except (OSError, TypeError, SyntaxError):  # a class that was typed in, or built in
            continue
        assert isinstance(body, ast.ClassDef)
        for before, node in zip(body.body, body.body[1:], strict=False):
            if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and isinstance(node, ast.Expr):
                found[before.target.id] = " ".join(str(ast.literal_eval(node.value)).split())
    return found


def blocks_of(owner: Any, default: Any = None, title: str = "") -> Iterator[Block]:
    """The options of a dataclass, then those of the dataclasses in it, each as a block; ``default`` gives values."""
    about, hints = attribute_docstrings(owner), get_type_hints(owner, include_extras=True)
    values = {entry.name: _value(entry, default) for entry in fields(owner)}
    own = [name for name in values if not is_dataclass(values[name]) and not subcommands_of(hints[name])]
    options = [_option(name, hints[name], about.get(name, ""), values[name]) for name in own]
    yield Block(title, first_sentence(inspect.getdoc(owner) or "") if title else "", options)
    for name, value in values.items():
        if is_dataclass(value):
            yield from blocks_of(type(value), value, f"Options: {'run' if name == 'config' else name}")


def subcommands_of(hint: Any) -> dict[str, Any]:
    """The commands that a field chooses between, by name."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else ()
    chosen = [get_args(part) for part in parts if get_origin(part) is Annotated]
    return {config.name: command for command, config, *_ in chosen if is_dataclass(command)}


def _value(entry: Field[Any], default: Any) -> Any:
    if default is not None:
        return getattr(default, entry.name)
    return entry.default_factory() if entry.default_factory is not MISSING else entry.default


def _option(name: str, hint: Any, about: str, value: Any) -> Option:
    """How the parser calls a field of this type, and what it does."""
    inner: Any = hint
    marks: tuple[Any, ...] = ()
    while get_origin(inner) is Annotated:
        inner, *more = get_args(inner)
        marks = (*marks, *more)
    given: Any = next((mark for mark in marks if hasattr(mark, "metavar")), None)
    word = (given and given.metavar) or _word(inner)
    if given is not None and given.help:
        about = given.help
    if _POSITIONAL in marks:
        return Option(name, word if value in (MISSING, tyro.MISSING) else f"[{word}]", about, "", True)
    option = f"--{name.replace('_', '-')}"
    if inner is bool and value is True:  # the switch does the opposite of what the field says
        return Option(name, option.replace("--", "--no-", 1), about, "on by default; this turns it off", False)
    if inner is bool:
        return Option(name, option, about, "", False)
    names = ", ".join([option, *((given and given.aliases) or ())])
    return Option(name, f"{names} {word}", about, _default(value), False)


def _word(kind: Any) -> str:
    """What stands for a value of this type."""
    if get_origin(kind) in (Union, UnionType):
        return "|".join(_word(part) for part in get_args(kind) if part is not NoneType)
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return f"{_word(get_args(kind)[0])} ..."
    return WORDS.get(kind, "TEXT")


def _default(value: Any) -> str:
    if value is MISSING or value is tyro.MISSING:
        return "required"
    if value in (None, ()):
        return ""
    return f"default: {' '.join(map(str, value)) if isinstance(value, tuple) else value}"


def help_page(prog: str, owner: Any, blocks: list[Block], more: str = "") -> Text:
    """The page of a command: how it is called, its docstring, its options or subcommands, and what ``more`` says."""
    width = min(Console().width, WIDEST)
    positional = [option.label for block in blocks for option in block.options if option.positional]
    has_subcommands = [
        name for hint in get_type_hints(owner, include_extras=True).values() for name in subcommands_of(hint)
    ]
    page = Text(" ".join(["usage:", prog, *positional, "COMMAND" if has_subcommands else "[options]"]) + "\n\n")
    page.append(reflow(inspect.getdoc(owner) or "", width))
    for block in blocks:
        if block.options:
            page.append(f"\n{block.title or 'Options'}\n", style="bold")
            if block.about:
                page.append(textwrap.fill(block.about, width, initial_indent="  ", subsequent_indent="  ") + "\n")
        for option in block.options:
            note = f"({option.default})" if option.default else ""
            page.append(entry(option.label, f"{option.about} {note}".strip(), width))
    for hint in get_type_hints(owner, include_extras=True).values():
        page.append(command_list("Commands", subcommands_of(hint), width))
    if more:
        page.append("\n" + reflow(more, width))
    return page


def command_list(title: str, commands: dict[str, Any], width: int) -> Text:
    """Commands with the first sentences of their docstrings."""
    page = Text()
    if commands:
        page.append(f"\n{title}\n", style="bold")
    for name, command in commands.items():
        page.append(entry(name, first_sentence(inspect.getdoc(command) or ""), width))
    return page


def entry(label: str, about: str, width: int) -> str:
    """A label, and what it is about in a column beside it or, if the label is long, below."""
    lines = textwrap.wrap(about.replace("``", "`"), width - INDENT, break_on_hyphens=False) or [""]
    beside = lines.pop(0) if len(label) + 4 <= INDENT else ""
    rows = [f"  {label}".ljust(INDENT) + beside, *(" " * INDENT + line for line in lines)]
    return "".join(row.rstrip() + "\n" for row in rows)


def reflow(text: str, width: int) -> str:
    """Paragraphs in lines of this width; the examples at the end, one per line, keep theirs."""
    pages = []
    for paragraph in text.strip().replace("``", "`").split("\n\n"):
        if paragraph.startswith("Example"):
            heading, _, commands = paragraph.partition(":")
            lines = [f"{heading}:", *(f"  {line.strip()}" for line in commands.strip().splitlines())]
            pages.append("\n".join(lines))
        else:
            pages.append(textwrap.fill(" ".join(paragraph.split()), width, break_on_hyphens=False))
    return "\n\n".join(pages) + "\n"


def only(blocks: list[Block], names: Collection[str], shorten: Callable[[str], str]) -> list[Option]:
    """The options with these names, in their order, described more shortly."""
    known = {option.name: option for block in blocks for option in block.options}
    return [known[name]._replace(about=shorten(known[name].about)) for name in names if name in known]
