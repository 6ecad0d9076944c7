"""Help is short for first users, complete on demand, and agrees with the parser."""

import inspect
import re
import shlex
import subprocess
import sys

import pytest
import tyro

import skipper
from skipper.agents.registry import KINDS
from skipper.cli import COMMANDS, base_config, chosen_family, commands, find_command, main
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


def test_switches_say_which_way_they_turn(monkeypatch, capsys):
    text = " ".join(page("train --help-all", monkeypatch, capsys).split())
    assert "--no-linear-scores Score local fields" in text
    assert "no effect without spatial_abstraction. (on by default; this turns it off)" in text
    assert re.search(r"--keep-weights Keep [^-]*(?<!off\)) ", text)


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
    } == (options(text) - {"env", "size", "threads", "device", "keep-weights", "track"})
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


def completed(script: str, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    state = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}"
    program = f'{script}\n{state}; _tyro_skipper; echo "${{COMPREPLY[@]}}"'
    shown = subprocess.run(["bash", "-s"], input=program, capture_output=True, text=True, check=False)
    assert shown.stderr == ""
    return shown.stdout.split()


def test_a_shell_completes_commands_and_the_options_of_the_agent(monkeypatch, capsys):
    script = page("completion bash", monkeypatch, capsys)
    assert len(script) < 200_000
    assert completed(script, "skipper", "evalu") == ["evaluate"]
    assert completed(script, "skipper", "train", "--agent", "leap-") == ["leap-suppress"]
    assert completed(script, "skipper", "train", "--preset", "f") == ["fast"]
    assert completed(script, "skipper", "train", "--skill") == []
    assert completed(script, "skipper", "train", "--agent", "director", "--skill") == ["--skill-duration"]
    assert completed(script, "skipper", "train", "--agent", "director", "--max-vert") == []
    assert completed(script, "skipper", "train", "--max-vert") == ["--max-vertices"]


def test_scripts_of_all_shells_hold_the_same_program(monkeypatch, capsys):
    scripts = [page(f"completion {shell}", monkeypatch, capsys) for shell in ("bash", "zsh", "fish")]
    scripts[2] = re.sub(r"\\(.)", r"\1", scripts[2])  # fish holds it in double quotes
    programs = [script[script.index("COMPLETION_SPEC = ") : script.index("def main() -> None:")] for script in scripts]
    bash, zsh, fish = ([line for line in program.splitlines() if line] for program in programs)
    assert "import sys" in bash
    assert bash == zsh == fish


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("evalute runs/first", "unknown command 'evalute'; .*did you mean 'evaluate'"),
        ("bench plna", "unknown command 'bench plna'; .*did you mean 'bench plan'"),
        ("bench plan --sconds 3", "`skipper bench plan` has no option --sconds; did you mean '--seconds'"),
        ("train --out r --agnet leap", "`skipper train --agent skipper-regen` has no option --agnet; .*'--agent'"),
        ("train --agent leap --skill-duration=3", "`skipper train --agent leap` has no option --skill-duration"),
        ("train --steps 3", "`skipper train --agent skipper-regen` needs --out PATH: The run folder"),
        ("evaluate modelfree-50 --difficulty 0.4", "`skipper evaluate` has no option --difficulty; .*'--difficulties'"),
        ("compare --better a.json", "`skipper compare` needs --worse"),
    ],
)
def test_misspelt_words_get_one_line_with_the_nearest(arguments, complaint, monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        page(arguments, monkeypatch, capsys)
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert re.match(f"skipper: error: {complaint}", told)
    assert told.count("\n") == 1


def test_options_have_several_spellings(monkeypatch, capsys):
    text = page("evaluate --agent random --episodes=2 --no-json --difficulties 0.3", monkeypatch, capsys)
    assert "0.3" in text
    with pytest.raises(SystemExit, match="is not a run folder"):
        page("watch nowhere --difficulty 0.3 --no-browser", monkeypatch, capsys)


@pytest.mark.parametrize("command", [*COMMANDS, *BENCHMARKS])
def test_the_examples_of_a_page_can_be_parsed(command):
    owner = find_command(command.split())[1]
    paragraphs = (inspect.getdoc(owner) or "").split("\n\n")
    texts = [text for text in paragraphs if text.startswith("Example")]
    for line in re.findall(r"skipper (.*)", "\n".join(texts)):
        words = shlex.split(line.partition(" >")[0])
        family = chosen_family(words)
        types = commands(base_config(words, family), family)
        parsed = tyro.cli(types, prog="skipper", args=words, config=(tyro.conf.OmitSubcommandPrefixes,))
        assert isinstance(getattr(parsed, "what", parsed), find_command(words)[1])


def test_the_words_that_newcomers_try(monkeypatch, capsys):
    assert page("help", monkeypatch, capsys) == page("--help", monkeypatch, capsys)
    assert page("help plot", monkeypatch, capsys) == page("plot --help", monkeypatch, capsys)
    assert page("--version", monkeypatch, capsys) == f"skipper {skipper.__version__}\n"
