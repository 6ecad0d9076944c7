"""The package works alone: built as a wheel, installed into a new environment, used in an empty folder."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST = 10_000_000  # bytes
# What users of the package get with it; everything else is an extra.
NEEDED = "filelock gymnasium matplotlib numba numpy rich safetensors scipy tensorboard threadpoolctl torch tyro"
NAMES = ("leap-suppress-50", "modelfree-50", "skipper-once-50", "skipper-regen-50")


def run(*command: str | Path, folder: Path) -> str:
    """What a command prints in ``folder``; nothing of this process's paths reaches it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from what a source distribution would hold, without looking at the network."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "skipper", source / "skipper", ignore=shutil.ignore_patterns("__pycache__"))
    offline = ("--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", out, source, folder=out)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The programs of a new environment with the wheel and this environment's libraries, but without the clone."""
    home = tmp_path_factory.mktemp("home") / "venv"
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", wheel, folder=home)
    # Paths that a .pth file names are searched for modules, but not for further .pth files, such as that of the clone.
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=home).strip())
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    reuse_compiled(site / "skipper")
    return home / "bin"


def reuse_compiled(package: Path) -> None:
    """Save the time to compile functions again: Numba takes them for those of a file of the same time and size."""
    for path in (ROOT / "skipper").rglob("*"):
        copy = package / path.relative_to(ROOT / "skipper")
        if path.suffix == ".py":
            shutil.copystat(path, copy)
        elif path.suffix in (".nbi", ".nbc", ".stamp"):
            shutil.copy2(path, copy)


@pytest.fixture
def empty(tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def test_a_wheel_holds_the_package_and_its_agents_and_is_small(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in NAMES:
        for file in ("README.md", "config.json", "weights.safetensors"):
            assert f"skipper/pretrained/{name}/{file}" in names
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "skipper").rglob("*.py")}
    assert sources | {"skipper/py.typed", "skipper/viewer/template.html"} < names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"skipper", "skipper_rl"}
    assert wheel.stat().st_size < LARGEST


def test_installing_pulls_no_more_than_it_must(wheel):
    metadata = next(name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA"))
    required = re.findall(
        r"^Requires-Dist: ([\w-]+)[^;\n]*$", zipfile.ZipFile(wheel).read(metadata).decode(), re.MULTILINE
    )
    assert " ".join(sorted(required)) == NEEDED


def test_the_demo_runs_in_an_empty_folder(installed, empty):
    printed = run(installed / "skipper", "demo", "--minutes", "0.02", "--episodes", "2", folder=empty)
    assert "pretrained 800,000" in printed
    assert (empty / "demo" / "watch.html").stat().st_size > 50_000


def test_agents_are_found_by_name_in_an_empty_folder(installed, empty):
    listed = run(installed / "skipper", "pretrained", folder=empty)
    assert all(name in listed for name in NAMES)
    run(installed / "skipper", "watch", "skipper-regen-50", "--out", "page.html", folder=empty)
    assert "skipper-regen-50" in (empty / "page.html").read_text()
    program = "import skipper; print(skipper.__file__, skipper.load('skipper-regen-50').config.agent)"
    where, agent = run(installed / "python", "-c", program, folder=empty).split()
    assert Path(where).is_relative_to(installed.parent)
    assert agent == "skipper-regen"
    assert sorted(path.name for path in empty.iterdir()) == ["page.html"]
