"""Figures. The only module that imports the plotting library."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skipper.envs.oracle import optimal_path
from skipper.envs.render import TILE, render_rgb
from skipper.envs.tasks import Tasks


def draw_task(axes: Axes, tasks: Tasks, row: int) -> int:
    """One task as people know it from MiniGrid, with an optimal path dotted on it; returns the path's steps."""
    world, path = tasks.world, optimal_path(tasks, row)
    observation = tasks.observe(np.array([row]), path[:1])[0]
    axes.imshow(render_rgb(observation, TILE), extent=(0, world.width, world.height, 0), interpolation="nearest")
    x, y = path // world.height + 0.5, path % world.height + 0.5
    axes.plot(x, y, linestyle=":", linewidth=2, color="deepskyblue")
    axes.set_xticks([])
    axes.set_yticks([])
    return len(path) - 1


def draw_tasks(sets: Mapping[str, Tasks], path: Path) -> None:
    """A picture with the first task of every set, side by side."""
    figure = Figure(figsize=(3 * len(sets), 3.4), layout="constrained")
    for axes, (name, tasks) in zip(figure.subplots(1, len(sets), squeeze=False)[0], sets.items(), strict=True):
        axes.set_title(f"{name}: {draw_task(axes, tasks, 0)} steps")
    figure.savefig(path, dpi=120)
