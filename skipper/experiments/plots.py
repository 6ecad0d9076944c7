"""Figures. The only module that imports the plotting library."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skipper.envs.oracle import optimal_path
from skipper.envs.render import TILE, render_rgb
from skipper.envs.tasks import Tasks


def draw_task(axes: Axes, tasks: Tasks, row: int) -> None:
    """One task as people know it from MiniGrid, with an optimal path dotted on it."""
    world, path = tasks.world, optimal_path(tasks, row)
    start = tasks.table.start[[row]]
    extent = (0, world.width, world.height, 0)
    axes.imshow(render_rgb(tasks.observe(start * 0 + row, start)[0], TILE), extent=extent, interpolation="nearest")
    x, y = path // world.height + 0.5, path % world.height + 0.5
    axes.plot(x, y, linestyle=":", linewidth=2, color="deepskyblue")
    axes.set_xticks([])
    axes.set_yticks([])


def draw_tasks(sets: Mapping[str, Tasks], path: Path) -> None:
    """A picture with the first task of every set, side by side."""
    figure = Figure(figsize=(3 * len(sets), 3.4), layout="constrained")
    for axes, (name, tasks) in zip(figure.subplots(1, len(sets), squeeze=False)[0], sets.items(), strict=True):
        draw_task(axes, tasks, 0)
        axes.set_title(f"{name}: {len(optimal_path(tasks, 0)) - 1} steps")
    figure.savefig(path, dpi=120)
