"""Trainings and evaluations: each is one ``skipper`` command, which any scheduler can run.

Both are named by what decides their results, so that a run that several items need is made once.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from skipper.config import RunConfig
from skipper.envs.registry import DEFAULT_FAMILY, find_family
from skipper.schema import content_hash, digest
from skipper.training.recorder import EVALUATIONS as RECORDED_EVALUATIONS
from skipper.training.recorder import METRICS
from skipper.training.run_folder import read_config, weights_file, weights_identity
from skipper.training.settings import configure
from skipper.training.state_file import DamagedFileError

EVALUATION_SEED = 30
RUNS, EVALUATIONS, LOGS = "runs", "evaluations", "logs"  # folders of an output folder
COMMON: dict[str, Any] = {"threads": 1, "keep_weights": True}  # of every training

Settings = tuple[tuple[str, Any], ...]  # options of a command by the names of their fields


def options(**values: Any) -> Settings:
    """Settings from keyword arguments."""
    return tuple(values.items())


@dataclass(frozen=True)
class Training:
    """One training run: the settings in which it differs from its preset."""

    agent: str
    preset: str
    seed: int
    settings: Settings = ()

    @property
    def name(self) -> str:
        """The name of its folder: what a reader looks for, and a hash of all that decides its results."""
        words = [_text(name, value) for name, value in self.settings if name not in COMMON]
        return "-".join([self.agent, *words, f"seed{self.seed}", content_hash(_deciding(resolve(self)))[:8]])

    @property
    def needs(self) -> "Training | None":
        """What must be finished before it."""
        return None

    @property
    def total(self) -> int:
        """Environment steps of all its stages."""
        config = resolve(self)
        return config.steps + int(getattr(config.learning, "generator_steps", 0))

    def folder(self, root: Path) -> Path:
        """Its run folder in an output folder."""
        return root / RUNS / self.name

    def command(self, root: Path) -> list[str]:
        """The arguments of ``skipper`` that make or continue it."""
        named = ["train", "--agent", self.agent, "--preset", self.preset, "--seed", str(self.seed)]
        return [*named, *as_options(self.settings), "--out", str(self.folder(root))]

    def done(self, root: Path) -> int:
        """Environment steps so far."""
        record = _last_record(self.folder(root) / METRICS)
        return int(record.get("step", 0) + record.get("uncharged_steps", 0))

    def finished(self, root: Path) -> bool:
        """Whether its last weights are there: they are saved after everything that is recorded of them."""
        try:
            step, _ = weights_identity(self.folder(root))
            config = read_config(self.folder(root))
        except (DamagedFileError, ValueError):
            return False
        kept = weights_file(self.folder(root), step).exists() or not config.evaluation.keep_weights
        return step >= config.steps and kept and _deciding(config) == _deciding(resolve(self))

    def recorded(self, root: Path) -> bool:
        """Whether its records reach its end; its weights may be gone, as in an archive."""
        try:
            config = read_config(self.folder(root))
        except (DamagedFileError, ValueError):
            return False
        step = int(_last_record(self.folder(root) / RECORDED_EVALUATIONS).get("step", 0))
        return step >= config.steps and _deciding(config) == _deciding(resolve(self))

    def files(self, root: Path) -> list[Path]:
        """What it has left so far, in the order in which it may be copied: a checkpoint last, after its records."""
        found = [path for path in self.folder(root).rglob("*") if path.is_file() and not path.name.startswith(".")]
        return sorted(found, key=lambda path: (path.parent.name == "checkpoints", path.suffix == ".safetensors", path))


@dataclass(frozen=True)
class Evaluation:
    """The networks of a training on unseen tasks, as they were trained or with other settings of their decisions."""

    training: Training
    play: Settings = ()
    curve: int = 0
    truth: bool = False
    episodes: int = 400
    seed: int = EVALUATION_SEED

    total = 1  # it is done or not

    @property
    def name(self) -> str:
        """What it is of, and a hash of its settings."""
        content = [self.play, self.curve, self.truth, self.episodes, self.seed]
        words = [_text(name, value) for name, value in self.play] or ["trained"]
        return f"{self.training.name}/{'-'.join(words)}-{digest(content)[:8]}"

    @property
    def needs(self) -> Training | None:
        """What must be finished before it."""
        return self.training

    def file(self, root: Path) -> Path:
        """Its file in an output folder."""
        return root / EVALUATIONS / f"{self.name}.json"

    def command(self, root: Path) -> list[str]:
        """The arguments of ``skipper`` that make it."""
        chosen = [f"--seed {self.seed}", f"--episodes {self.episodes}", "--training"]
        chosen += [f"--curve {self.curve}"] if self.curve else []
        chosen += ["--truth"] if self.truth else []
        common = " ".join([*chosen, "--json"]).split()
        return [
            *("evaluate", str(self.training.folder(root)), *as_options(self.play, flags=False)),
            *(*common, "--out", str(self.file(root))),
        ]

    def done(self, root: Path) -> int:
        """1 if it is finished."""
        return int(self.finished(root))

    def finished(self, root: Path) -> bool:
        """Whether its file is there, which is written at once, and of the weights that are there."""
        if not self.file(root).exists():
            return False
        try:
            _, identity = weights_identity(self.training.folder(root))
        except (DamagedFileError, ValueError):
            return True  # an archive has none
        played = json.loads(self.file(root).read_text(encoding="utf-8"))["about"].get("weights")
        return played in (None, identity)

    recorded = finished

    def files(self, root: Path) -> list[Path]:
        """What it has left."""
        return [self.file(root)] if self.finished(root) else []


Work = Training | Evaluation


@cache
def resolve(training: Training) -> RunConfig:
    """The whole configuration of a training, as the command line resolves it."""
    settings = dict(training.settings) | {"seed": training.seed}
    world: Any = find_family(DEFAULT_FAMILY).world(training.preset)
    own = {name: settings.pop(name) for name in list(settings) if name in vars(world)}
    config = configure(training.preset, training.agent, DEFAULT_FAMILY, replace(world, **own))
    for name, value in settings.items():
        config = _with_value(config, name, value)
    return config


def _deciding(config: RunConfig) -> RunConfig:
    """The part of a configuration that decides results: all but what is kept."""
    return _with_value(config, "keep_weights", False)


def _with_value(config: RunConfig, name: str, value: Any) -> RunConfig:
    """The configuration with another value of a field, in whichever of its blocks it is."""
    if name in vars(config):
        return replace(config, **{name: value})
    for entry in fields(config):
        block: Any = getattr(config, entry.name)
        if is_dataclass(block) and name in vars(block):
            changed: dict[str, Any] = {entry.name: replace(cast(Any, block), **{name: value})}
            return replace(config, **changed)
    raise ValueError(f"{config.agent!r} has no setting {name!r}")


def as_options(settings: Settings, flags: bool = True) -> Iterator[str]:
    """Settings as options of a command; with ``flags``, truth values are --name and --no-name."""
    for name, value in settings:
        option = name.replace("_", "-")
        if isinstance(value, bool) and flags:
            yield f"--{option}" if value else f"--no-{option}"
        else:
            yield from (f"--{option}", *map(str, value if isinstance(value, tuple) else (value,)))


def _text(name: str, value: Any) -> str:
    """A setting as a word of a file's name."""
    if isinstance(value, bool):
        word = name if value else f"no-{name}"
    elif isinstance(value, tuple):
        word = "+".join(value)
    else:
        word = value if isinstance(value, str) else f"{name}{value}"
    return word.replace("_", "-")


def _last_record(path: Path) -> dict[str, Any]:
    """The last whole line of a file of JSON lines; it may just be written."""
    if not path.exists():
        return {}
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 20_000))
        lines = file.read().split(b"\n")[:-1]
    return dict(json.loads(lines[-1])) if lines else {}
