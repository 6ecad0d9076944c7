"""Documentation names what exists: files, functions, and walks that are as short as they promise."""

import ast
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from skipper.config import RunConfig
from skipper.training.settings import configure

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/add_an_agent.md",
    "docs/benchmarks.md",
    "docs/commands.md",
    "docs/concepts.md",
    "docs/faq.md",
    "docs/index.md",
    "docs/live.md",
    "docs/paper_map.md",
    "docs/deviations.md",
    "docs/results.md",
    "docs/run_folder.md",
    "docs/viewer.md",
    "docs/world.md",
    "docs/your_environment.md",
)
WALK_FILES = 10  # at most, on a walk through the code
RETURNS = 2  # at most, to any of them


def find(name: str) -> Path | None:
    """A file or folder that a page names: by its path from the root or the package, or by its mere name."""
    rooms = (ROOT, ROOT / "skipper", ROOT / "tests")
    mere = (path for room in rooms[1:] for path in room.rglob(name)) if "/" not in name else iter(())
    return next((room / name for room in rooms if (room / name).exists()), None) or next(mere, None)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_pages_name_exist(page):
    text = (ROOT / page).read_text()
    named = set(re.findall(r"`([\w/]+(?:\.py|\.html|\.sh|/))`", text))
    named |= {link for link in re.findall(r"\]\(([\w./-]+)\)", text) if not link.startswith("http")}
    here = (ROOT / page).parent
    missing = {name for name in named if find(name) is None and not (here / name).exists()}
    of_runs = {"demo/", "checkpoints/", "tensorboard/", "wandb/", "weights/", "report.html"}
    assert missing <= of_runs | {"my_agent.py", "pond.py"}  # the reader's own


def definitions(path: Path) -> set[str]:
    """Functions and classes of a file, methods as Class.method too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
    return found


def walks() -> dict[str, list[tuple[str, list[str]]]]:
    """The walks of CONTRIBUTING.md: steps with a file and the functions that they name."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines():
        if title := re.match(r"\*\*(A \w+.*?)\*\*.*files\.$", line):
            found[title[1]] = []
        elif step := re.match(r"\| \d+ \| `([\w/.]+)`(?: or .*?)? \| (.*?) \|", line):
            list(found.values())[-1].append((step[1], re.findall(r"`([\w.]+)`", step[2])))
    return found


def test_there_are_two_walks():
    assert list(walks()) == ["A decision", "A gradient update"]


@pytest.mark.parametrize("walk", ["A decision", "A gradient update"])
def test_a_walk_is_short_and_its_functions_exist(walk):
    steps = walks()[walk]
    assert len(steps) >= 10
    visits = Counter(file for file, _ in steps)
    assert len(visits) <= WALK_FILES
    assert max(visits.values()) <= 1 + RETURNS
    owner: dict[str, str] = {}
    for file, functions in steps:
        known = definitions(ROOT / "skipper" / file)
        for function in functions:
            name = function if "." in function or function in known else f"{owner.get(file, '')}.{function}"
            methods = {each.split(".")[-1] for each in known}
            assert name in known or function in methods, (file, function)
            owner[file] = function.split(".")[0]


@pytest.mark.parametrize(
    ("line", "complaint"), [("`nets/nowhere.py`", "nowhere"), ("[a](docs/none.md)", "none"), ("`agents/`", None)]
)
def test_missing_files_are_found(line, complaint):
    name = re.findall(r"[`(]([\w/.]+)[`)]", line)[-1]
    assert (find(name) is None) == (complaint is not None)


def test_no_two_files_differ_by_an_ending_only():
    stems = {path.relative_to(ROOT / "skipper").with_suffix("").as_posix() for path in (ROOT / "skipper").rglob("*.py")}
    plurals = {
        (one, one + ending) for one in stems for ending in ("s", "r", "d", "ed", "er", "es", "ing", "ion", "ure")
    }
    assert {pair for pair in plurals if pair[1] in stems} == set()


def preset_rows() -> list[str]:
    """Rows of a table: each setting that the presets `paper` and `fast` give different values, by agent."""
    agents = ("skipper-regen", "leap", "modelfree", "director")
    cells: dict[str, dict[str, str]] = {}
    for agent in agents:
        paper, fast = (settings_of(configure(preset, agent)) for preset in ("paper", "fast"))
        for name, value in fast.items():
            if value != paper[name]:
                cells.setdefault(name, {})[agent] = f"{paper[name]} → {value}"
    return [f"| `{name}` | " + " | ".join(row.get(agent, "") for agent in agents) + " |" for name, row in cells.items()]


def settings_of(config: RunConfig) -> dict[str, str]:
    """The values of a configuration, by their names in all its blocks."""
    found: dict[str, str] = {}
    for name, value in asdict(config).items():
        found |= value if isinstance(value, dict) else {name: value}
    no_effect = {"preset", "threads", "checkpoint_every", "evaluate_every", "evaluation_episodes", "updater_process"}
    return {
        name: f"{value:,}" if type(value) is int else str(value)
        for name, value in found.items()
        if name not in no_effect
    }


def test_deviations_have_the_numbers_of_both_presets():
    text = (ROOT / "docs/deviations.md").read_text()
    section = text.partition("## The numbers of fast and paper")[2].partition("\n## ")[0]
    assert "| setting | skipper | leap | modelfree | director |" in section
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == preset_rows()
