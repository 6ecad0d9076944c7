"""What ``skipper demo`` shows: a short training, and pictures of what came of it."""

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from skipper.analysis.plots import draw_learning_curves, draw_moment, draw_tasks
from skipper.config import EvaluationConfig
from skipper.envs.lava.tasks import Tasks
from skipper.presets import preset
from skipper.training.progress import ProgressDisplay
from skipper.training.recorder import read_evaluations
from skipper.training.run import Stop, train

STEPS = 150_000  # about what two cores take in the time


def train_for(out: Path, minutes: float, seed: int) -> None:
    """Train with the fast preset until ``minutes`` have passed; what an earlier call left in ``out`` goes."""
    shutil.rmtree(out, ignore_errors=True)
    config = replace(
        preset("fast", "skipper-regen"),
        seed=seed,
        steps=STEPS,
        evaluation=EvaluationConfig(evaluate_every=25_000, evaluation_episodes=20),
    )
    stop = Stop()
    timer = threading.Timer(60.0 * minutes, setattr, (stop, "asked", True))
    timer.start()
    try:
        with ProgressDisplay(config.steps) as display:
            train(config, out, display, stop)
    finally:
        timer.cancel()


def draw_figures(run: Path, watched: dict[str, Any], sets: dict[str, Tasks], out: Path) -> list[Path]:
    """The learning curve of ``run``, the first plan of the episodes that are ``watched``, and one task of each set."""
    curve, plan, pictures = out / "curve.png", out / "plan.png", out / "tasks.png"
    draw_learning_curves({run.name: read_evaluations(run)}, curve)
    draw_moment(watched, 0, 0, plan)
    draw_tasks({f"difficulty {level}": tasks for level, tasks in sets.items()}, pictures)
    return [curve, plan, pictures]
