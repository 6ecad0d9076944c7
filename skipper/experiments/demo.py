"""What ``skipper demo`` shows: a short training run, and figures of its result."""

import shutil
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skipper.analysis.plots import draw_learning_curves, draw_moment, draw_tasks
from skipper.config import EvaluationConfig, RunConfig
from skipper.envs.registry import Family, TaskSet
from skipper.training.progress import ProgressDisplay
from skipper.training.recorder import read_evaluations
from skipper.training.run import Stop, train
from skipper.training.settings import configure
from skipper.types import Array

STEPS = 240_000  # fewer than two cores of today manage in the default time


def demo_config(seed: int) -> RunConfig:
    """The run that the demo trains."""
    evaluation = EvaluationConfig(evaluate_every=40_000, evaluation_episodes=20)
    return replace(configure("fast", "skipper-regen"), seed=seed, steps=STEPS, evaluation=evaluation)


def train_for(config: RunConfig, out: Path, minutes: float) -> None:
    """Train for at most ``minutes``; an earlier run in ``out`` is replaced."""
    shutil.rmtree(out, ignore_errors=True)
    stop = Stop()
    timer = threading.Timer(60.0 * minutes, setattr, (stop, "asked", True))
    timer.start()
    try:
        with ProgressDisplay(config.steps) as display:
            train(config, out, display, stop)
    finally:
        timer.cancel()


def draw_figures(
    run: Path,
    watched: Mapping[str, Any],
    pictures: list[Array],
    family: Family,
    sets: Mapping[str, TaskSet],
    out: Path,
) -> list[Path]:
    """The learning curve of ``run``, the first plan of the ``watched`` episodes, and one task of each set.

    ``pictures`` are those of the first watched episode.
    """
    curve, plan, tasks = out / "curve.png", out / "plan.png", out / "tasks.png"
    draw_learning_curves({run.name: read_evaluations(run)}, curve, family.set_kind)
    draw_moment(watched, 0, 0, pictures[0], plan)
    draw_tasks(family, {f"{family.set_kind} {name}": some for name, some in sets.items()}, tasks)
    return [curve, plan, tasks]
