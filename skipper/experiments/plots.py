"""Figures. The only module that imports the plotting library."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from skipper.envs.oracle import optimal_path
from skipper.envs.render import TILE, render_rgb
from skipper.envs.scene import LavaScene
from skipper.envs.tasks import Tasks
from skipper.planning.proxy import CURRENT, Fate, ProxyProblem, route


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


def draw_plan(tasks: Tasks, row: int, problem: ProxyProblem, path: Path) -> None:
    """A plan on its task: all vertices and the edges that were left, the route over them, and the optimal path."""
    height = tasks.world.height
    cells = LavaScene().agent_cell(problem.vertices.observation[0])
    x, y = cells // height + 0.5, cells % height + 0.5
    figure = Figure(figsize=(6, 6.8), layout="constrained")
    axes = figure.subplots()
    steps = draw_task(axes, tasks, row)
    for source, target in np.argwhere(problem.fate[0] == Fate.KEPT):
        axes.plot(x[[source, target]], y[[source, target]], color="white", linewidth=0.5, alpha=0.25)
    axes.scatter(x[1:-1], y[1:-1], s=40, color="white", edgecolors="black", zorder=3, label="imagined checkpoints")
    led = route(problem, 0)
    axes.plot(x[led], y[led], color="gold", linewidth=3, zorder=4, label="the plan")
    if len(led) > 1:
        aim = led[1]
        distance = problem.edges.distance[0, CURRENT, aim]
        axes.scatter(x[aim], y[aim], s=260, marker="*", color="gold", edgecolors="black", zorder=5, label="next target")
        axes.set_title(f"next target estimated {distance:.1f} steps away; optimal path (dotted): {steps}", fontsize=10)
    figure.legend(loc="outside lower center", ncols=3, facecolor="lightgrey")
    figure.savefig(path, dpi=120)


def draw_learning_curves(curves: Mapping[str, list[dict[str, Any]]], path: Path) -> None:
    """Success over environment steps with 95% intervals: a panel per set of tasks, a line per run.

    ``curves`` holds the evaluations of each run, as in ``evaluations.jsonl``.
    """
    first = next(iter(curves.values()))
    sets = [name for name in first[0] if name != "step"]
    figure = Figure(figsize=(3 * len(sets), 3), layout="constrained")
    panels = figure.subplots(1, len(sets), squeeze=False, sharey=True)[0]
    for axes, name in zip(panels, sets, strict=True):
        for run, records in curves.items():
            steps = [record["step"] for record in records]
            low, middle, high = ([record[name][key] for record in records] for key in ("low", "success", "high"))
            (line,) = axes.plot(steps, middle, label=run)
            axes.fill_between(steps, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        axes.set_title("training tasks" if name == "training" else f"unseen, difficulty {name}")
        axes.set_xlabel("environment steps")
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_ylim(-0.02, 1.02)
    panels[0].set_ylabel("success")
    panels[0].legend()
    figure.savefig(path, dpi=120)
