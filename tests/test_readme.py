"""The commands of the README and of the tour work, one after the other as they stand; long ones with a small budget."""

import contextlib
import glob
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from skipper.cli import main

ROOT = Path(__file__).parents[1]
README, TOUR = (ROOT / "README.md").read_text(), (ROOT / "docs/commands.md").read_text()
# Lines that set up an environment, which the tests have. tests/test_wheel.py installs the package.
SET_UP = ("python3 -m venv .venv", ". .venv/bin/activate", "pip install .", "make test")
INSTEAD = {"make demo": "skipper demo"}  # what the target runs after setting up
# What makes a command short, by its first words; the first that fits is added.
SMALL = {
    "skipper demo": "--minutes 0.02 --episodes 4",
    "skipper train": "--preset debug --steps 200",
    "skipper evaluate": "--episodes 4",
    "skipper diagnose": "--episodes 2 --difficulties 0.35",
    "skipper ablate": "--episodes 1 --difficulties 0.35",
    "skipper compare": "--resamples 100",
}
# What the commands of each page leave behind.
LEAVES = {
    README: ("demo/watch.html", "runs/first/weights.safetensors", "plan.html", "gallery.html"),
    TOUR: ("runs/first/weights.safetensors", "failures.html", "one.json", "curves.png", "skipper.bash"),
}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """The lines of all shell blocks, without comments."""
    lines = [
        shlex.join(shlex.split(line, comments=True)) for block in blocks(page, "sh") for line in block.splitlines()
    ]
    return [line for line in lines if line]


def run(line: str) -> None:
    """Run a line as a shell does: patterns of file names, and a file for the output."""
    words = shlex.split(line)
    words += shlex.split(next((more for start, more in SMALL.items() if line.startswith(start)), ""))
    output = None
    if ">" in words:
        output = words.pop(words.index(">") + 1)
        words.remove(">")
    found = [sorted(glob.glob(word)) if "[" in word else [word] for word in words]
    sys.argv = [word for group in found for word in group]
    with contextlib.ExitStack() as stack:
        if output:
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(open(output, "w"))))
        try:
            main()
        except SystemExit as end:
            if end.code:
                pytest.fail(f"{line}: {end.code}")


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder that looks like a clone, in which commands may write."""
    for name in os.listdir(ROOT):
        if name not in ("runs", "demo", ".git", ".venv"):
            (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [])
    return tmp_path


@pytest.mark.parametrize("page", [README, TOUR], ids=["README", "tour"])
def test_all_blocks_are_commands_or_python(page):
    assert len(re.findall(r"^```", page, re.MULTILINE)) == 2 * (len(blocks(page, "sh")) + len(blocks(page, "python")))


def test_targets_of_make_exist():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {line.split()[1] for line in commands(README) if line.startswith("make ")} <= set(targets)
    assert "\t$(BIN)/skipper demo\n" in (ROOT / "Makefile").read_text()
    assert set(SET_UP) | set(INSTEAD) <= set(commands(README))


@pytest.mark.parametrize("page", [README, TOUR], ids=["README", "tour"])
def test_commands_work_one_after_the_other(page, clone, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("skipper.viewer.gallery.MOST_TASKS", 6)
    for line in commands(page):
        if line not in SET_UP:
            run(INSTEAD.get(line, line))
    assert [name for name in LEAVES[page] if not (clone / name).stat().st_size] == []
    assert page == README or "probability of improvement 1.000" in capsys.readouterr().out


def test_a_command_that_fails_is_noticed(clone):
    with pytest.raises(pytest.fail.Exception, match="is not a run folder"):
        run("skipper evaluate nowhere")


def test_python_works(clone):
    names: dict = {}
    for block in blocks(README, "python"):
        exec(block, names)
    assert names["action"] in range(4)
    assert len(names["plan"].kept) == 1
