"""Files written by ``skipper evaluate --json``: which network played which tasks, and how every episode ended."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skipper.training.evaluate import TRAINING
from skipper.types import Array

SUCCESS, DEATH, TIMEOUT = "s", "d", "t"  # letters of outcomes, one per task
REQUIRED = ("agent", "env", "split", "evaluation_seed")  # what a file must say about itself
# Settings that all runs of one side share; seeds and weights may differ.
SETTINGS = (
    *("agent", "env", "world", "benchmark", "tasks", "steps", "settings", "split", "episodes"),
    *("revisit_penalty", "ensemble", "replan", "planning"),
)


class Run(NamedTuple):
    """One network's results on the evaluation sets that are compared."""

    path: Path
    success: dict[str, float]  # success rate by evaluation set
    solved: dict[str, Array]  # (E,) bool by evaluation set; empty for files of older versions
    about: Mapping[str, Any]  # empty for files of older versions

    @property
    def weights(self) -> str | None:
        """Digest of the weights; None for agents without networks and for files of older versions."""
        return self.about.get("weights")

    @property
    def untrained(self) -> bool:
        """Whether the agent has no networks."""
        return bool(self.about) and self.weights is None

    def tasks(self, name: str) -> tuple[str, ...]:
        """Identity of the tasks of a set: equal where two runs played the same tasks."""
        own = ("seed", "tasks") if name == TRAINING else ()  # training tasks belong to the training run
        keys = ("env", "world", "split", "evaluation_seed", *own)
        known = (json.dumps(self.about.get(key), sort_keys=True) for key in keys)
        return (name, str(len(self.solved[name])), *known)


def read_run(path: Path, training: bool = False) -> Run:
    """Read a file; keep the sets of unseen tasks, or with ``training`` the training tasks only."""
    try:
        content = json.loads(path.read_text())
        new = "sets" in content
        sets, about = (content["sets"], dict(content["about"])) if new else (content, {})
        rows = {name: row for name, row in sets.items() if (name == TRAINING) == training}
        success = {name: float(row["success"]) for name, row in rows.items()}
        episodes = {name: int(row["episodes"]) for name, row in rows.items()}
        solved = {name: _solved(row["outcomes"]) for name, row in rows.items()} if new else {}
    except (OSError, ValueError, AttributeError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} does not hold the output of `skipper evaluate --json`: {error!r}") from error
    wanted = "training" if training else "unseen"
    if not rows or not all(0.0 <= success[name] <= 1.0 and episodes[name] > 0 for name in rows):
        raise ValueError(f"{path} does not hold success rates on {wanted} tasks")
    if missing := [key for key in REQUIRED if new and key not in about]:
        raise ValueError(f"{path} does not say {', '.join(missing)}; write it again with `skipper evaluate --json`")
    if new and not isinstance(about.get("weights"), str | None):
        raise ValueError(f"{path} does not hold a digest of weights as text")
    for name, each in solved.items():
        if len(each) != episodes[name] or abs(each.mean() - success[name]) > 1e-9:
            raise ValueError(f"{path} contradicts itself: the outcomes of {name} do not give its success rate")
    return Run(path, success, solved, about)


def _solved(outcomes: str) -> Array:
    """(E,) bool, True where an episode succeeded."""
    if not outcomes or set(outcomes) - {SUCCESS, DEATH, TIMEOUT}:
        raise ValueError(f"outcomes are the letters {SUCCESS}, {DEATH} and {TIMEOUT}, one per task")
    return np.array([letter == SUCCESS for letter in outcomes])


def check_side(runs: list[Run]) -> None:
    """Refuse files that are not the runs of one agent, each once."""
    for number, run in enumerate(runs):
        for other in runs[:number]:
            if run.path.resolve() == other.path.resolve():
                raise ValueError(f"{run.path} is given twice on one side")
            if run.weights is not None and run.weights == other.weights:
                raise ValueError(
                    f"{other.path} and {run.path} are of the same network; give each network once per side"
                )
            for key in SETTINGS:
                if run.about and other.about and run.about.get(key) != other.about.get(key):
                    values = f"{other.about.get(key)!r} and {run.about.get(key)!r}"
                    raise ValueError(f"{other.path} and {run.path} are on one side but differ in {key}: {values}")
    if len(runs) > 1 and any(run.untrained for run in runs):
        raise ValueError(f"{runs[0].about.get('agent')} was not trained, so it has no seeds; give one file of it")


def match_networks(better: list[Run], worse: list[Run], paired: bool) -> list[Run] | None:
    """Runs of ``worse`` in the order of those of ``better`` that play the same networks; None if no network is shared.

    Files of older versions do not name their networks: with ``paired`` they are matched in the given order.
    """
    found = {run.weights: run for run in worse if run.weights is not None}
    shared = [found[run.weights] for run in better if run.weights in found]
    known = all(run.about for run in (*better, *worse))
    if shared and (len(shared) < len(better) or len(shared) < len(worse)):
        raise ValueError(
            f"{len(shared)} of {len(better)} and {len(worse)} networks are on both sides: neither a paired nor an "
            "unpaired test is valid. Give the same networks on both sides, or different ones only"
        )
    if shared:
        return shared
    if not paired:
        return None
    if known:
        raise ValueError("--paired: these files name their networks, and the sides share none")
    if len(better) != len(worse):
        raise ValueError(f"--paired needs as many files on both sides, not {len(better)} and {len(worse)}")
    return worse
