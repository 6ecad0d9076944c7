"""Imports go downwards only, heavy libraries and environments are confined, and there is no global randomness."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "skipper"

# From the top layer to the bottom; packages of one layer do not import each other.
FLOORS = (
    {"__main__"},
    {"cli"},
    {"commands"},
    {"experiments", "viewer", "benchmarks"},
    {"analysis"},
    {"training"},
    {"agents"},
    {"envs", "nets", "replay", "planning", "losses"},
    {"presets", "schema"},
    {"config"},
    {"types"},
    {"runtime"},
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# library -> the only modules that may import it
CONFINED = {
    "matplotlib": {"analysis/plots.py", "analysis/paper_figures.py"},
    "tyro": {"cli.py", *(path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "commands").glob("*.py"))},
    "ray": {"experiments/ray_pool.py"},
    "huggingface_hub": {"training/hub.py"},
    "wandb": {"training/tracking.py"},
    "stable_baselines3": {"envs/sb3.py", "benchmarks/sb3.py"},
    "numba": {"runtime/jit.py"},
    "pickle": {"agents/update_process.py"},  # between a process and the one that it started itself; never from a file
    "random": {"benchmarks/plain.py", "benchmarks/world.py"},  # each with a Random of its own
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def imports_of(source: str) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names.append(node.module or "")
    return names


def upward_imports(room: str, source: str) -> list[str]:
    wrong = []
    for name in imports_of(source):
        parts = name.split(".")
        if parts[0] != "skipper":
            continue
        assert len(parts) > 1, "modules import from the rooms, not from the package itself"
        if parts[1] != room and FLOOR_OF[parts[1]] <= FLOOR_OF[room]:
            wrong.append(name)
    return wrong


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards(path):
    if path != PACKAGE / "__init__.py":
        assert upward_imports(room_of(path), path.read_text()) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("envs", "import skipper.agents.baselines"),
        ("agents", "from skipper.envs.lava.oracle import LavaOracle\nfrom skipper.training.evaluate import play"),
        ("experiments", "def late():\n    from skipper.benchmarks.world import bench_world"),
    ],
)
def test_an_upward_or_sideways_import_is_found(room, source):
    assert len(upward_imports(room, source)) == 1


@pytest.mark.parametrize("library", CONFINED)
def test_heavy_libraries_live_in_one_room(library):
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if any(name.split(".")[0] == library for name in imports_of(path.read_text()))
    }
    assert users <= CONFINED[library]


# The only modules outside of an environment's package that may import it.
KNOWS_LAVA = {
    "envs/registry.py",  # loads the family on demand
    "benchmarks/world.py",  # measures this very environment
    "benchmarks/plain.py",
}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_registry_and_its_own_benchmark_know_the_lava_world(path):
    name = path.relative_to(PACKAGE).as_posix()
    imported = [module for module in imports_of(path.read_text()) if module.startswith("skipper.envs.lava")]
    assert not imported or name.startswith("envs/lava/") or name in KNOWS_LAVA


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_registry_knows_minigrid(path):
    name = path.relative_to(PACKAGE).as_posix()
    known = [
        module for module in imports_of(path.read_text()) if module.startswith(("skipper.envs.minigrid", "minigrid"))
    ]
    assert not known or name.startswith("envs/minigrid/") or name == "envs/registry.py"


def global_randomness(source: str) -> list[str]:
    allowed = {"np.random": {"Generator", "SeedSequence", "default_rng"}, "random": {"Random"}}
    found = []
    for node in ast.walk(ast.parse(source)):
        owner = ast.unparse(node.value) if isinstance(node, ast.Attribute) else ""
        if owner in allowed and node.attr not in allowed[owner]:
            found.append(ast.unparse(node))
        imported = isinstance(node, ast.ImportFrom) and node.module in ("numpy.random", "random")
        if imported or (isinstance(node, ast.Attribute) and node.attr == "manual_seed"):
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_global_random_state(path):
    # Modules are initialised inside a fork of the network library's stream, the only way that it offers.
    allowed = ["torch.manual_seed"] if path == PACKAGE / "nets" / "layers.py" else []
    assert global_randomness(path.read_text()) == allowed


@pytest.mark.parametrize(
    "source",
    ["np.random.rand(3)", "import random\nrandom.random()", "from numpy.random import rand", "torch.manual_seed(0)"],
)
def test_global_randomness_is_found(source):
    assert global_randomness(source)
