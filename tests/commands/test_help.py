"""Help is short for first users, complete on demand, and agrees with the parser."""

import re
import subprocess
import sys

import pytest
import tyro

from skipper.agents.registry import KINDS
from skipper.cli import COMMANDS, base_config, chosen_family, commands, main
from skipper.commands.bench import Bench
from skipper.commands.help import attribute_docstrings, blocks_of, first_clause, first_sentence, subcommands_of
from skipper.commands.train import Train
from skipper.config import LearningConfig
from skipper.training.settings import configure

BENCHMARKS = [f"bench {name}" for name in subcommands_of(Bench.__annotations__["what"])]


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def page(arguments: str, monkeypatch, capsys) -> str:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments.split()])
    main()
    return capsys.readouterr().out


def options(text: str) -> set[str]:
    """The options that a page explains, without the two forms of switches."""
    labels = re.findall(r"^(?:│ |  )(-.*?)(?:  |│|$)", text, re.MULTILINE)
    found = {name for label in labels for name in re.findall(r"--(?:no-)?(\w[\w-]*)", label)}
    return found - {"help", "help-all"}


def parsed_options(arguments: str, capsys) -> set[str]:
    """The options that the parser knows, from its own help."""
    given = arguments.split()
    family = chosen_family(given)
    types = commands(base_config(given, family), family)
    with pytest.raises(SystemExit):
        tyro.cli(types, prog="skipper", args=[*given, "--help"], config=(tyro.conf.OmitSubcommandPrefixes,))
    return options(capsys.readouterr().out)


@pytest.mark.parametrize(
    "command", ["", *COMMANDS, *BENCHMARKS, "train --help-all", "train --env minigrid:MiniGrid-FourRooms-v0"]
)
def test_every_page_fits_80_columns(command, monkeypatch, capsys):
    lines = page(f"{command} --help", monkeypatch, capsys).splitlines()
    assert lines[0].startswith("usage: skipper")
    assert max(map(len, lines)) <= 80
    assert "``" not in "".join(lines)


@pytest.mark.parametrize("command", ["train --agent leap", "evaluate", "watch", "compare", "bench world", "demo"])
def test_help_and_parser_know_the_same_options(command, monkeypatch, capsys):
    shown = options(page(f"{command} --help-all", monkeypatch, capsys))
    assert len(shown) > 3
    assert shown == parsed_options(command, capsys)


@pytest.mark.parametrize("agent", sorted(KINDS))
def test_the_help_of_training_is_one_screen_with_the_options_of_the_agent(agent, monkeypatch, capsys):
    text = page(f"train --agent {agent} --help", monkeypatch, capsys)
    assert len(text.splitlines()) <= 60
    assert {"out", "agent", "preset", "seed", "steps", "tasks"} | {
        name.replace("_", "-") for name in KINDS[agent].main
    } == (options(text) - {"env", "size", "threads", "device", "keep-weights"})
    everything = page(f"train --agent {agent} --help-all", monkeypatch, capsys)
    assert options(text) < options(everything)
    assert "Options: learning" in everything


def test_help_begins_with_the_defaults_of_the_chosen_preset(monkeypatch, capsys):
    shown = page("train --preset debug --help", monkeypatch, capsys)
    assert "Environment steps, all environments together. (default: 2000)" in " ".join(shown.split())
    with pytest.raises(SystemExit, match="did you mean 'leap'"):
        page("train --agent lep --help", monkeypatch, capsys)


@pytest.mark.parametrize("agent", sorted(KINDS))
def test_every_option_of_training_is_explained(agent):
    blocks = blocks_of(Train, Train(out=tyro.MISSING, config=configure("fast", agent)))
    assert [option.name for block in blocks for option in block.options if not option.about] == []


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"train"}))
def test_every_option_is_explained(command):
    assert [option.name for block in blocks_of(COMMANDS[command]) for option in block.options if not option.about] == []


@pytest.mark.parametrize(
    ("text", "sentence", "clause"),
    [
        (
            "Weight of losses\n    (Alg. 3); more. Not here.",
            "Weight of losses (Alg. 3); more.",
            "Weight of losses (Alg. 3).",
        ),
        ("The folder.", "The folder.", "The folder."),
    ],
)
def test_first_sentences_and_clauses(text, sentence, clause):
    assert (first_sentence(text), first_clause(text)) == (sentence, clause)


def test_a_class_without_a_source_has_no_docstrings():
    names: dict = {}
    exec("class Typed:\n    field: int = 1\n    'What it is.'", names)
    assert attribute_docstrings(names["Typed"]) == {}


def test_without_a_command_there_is_the_overview(monkeypatch, capsys):
    assert page("", monkeypatch, capsys) == page("--help", monkeypatch, capsys)


def test_docstrings_of_inherited_fields_are_found():
    found = attribute_docstrings(LearningConfig)
    assert found["steps_per_update"].startswith("Environment steps per gradient update")
    assert found["batch_size"] == "Samples per update."


def test_a_shell_completes_commands_and_options(monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        page("completion bash", monkeypatch, capsys)
    assert not end.value.code
    script = capsys.readouterr().out
    assert "--revisit-penalty" in script
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    complete = 'COMP_WORDS=(skipper evalu); COMP_CWORD=1; _tyro_skipper; echo "${COMPREPLY[@]}"'
    shown = subprocess.run(["bash", "-c", f"{script}\n{complete}"], capture_output=True, text=True, check=False)
    assert shown.stdout.split() == ["evaluate"]
