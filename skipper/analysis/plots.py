"""Figures. The only module that imports the plotting library."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from skipper.envs.lava.layout import AGENT, AGENT_COLOUR, EMPTY, GOAL, LAVA, WALL
from skipper.envs.lava.oracle import optimal_path
from skipper.envs.lava.render import TILE, render_rgb
from skipper.envs.lava.tasks import Tasks
from skipper.planning.prune import EdgeStatus
from skipper.types import CURRENT, Array


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


def draw_moment(data: Mapping[str, Any], place: int, step: int, path: Path) -> None:
    """One decision of an exported episode: the proxy problem on its task, in the manner of the paper's Fig. 1."""
    figure = Figure(figsize=(6, 6.9), layout="constrained")
    _moment(figure.subplots(), data, data["episodes"][place], step)
    figure.legend(loc="outside lower center", ncols=3, facecolor="lightgrey", fontsize=9)
    figure.savefig(path, dpi=120)


def animate_episode(data: Mapping[str, Any], place: int, path: Path, per_second: int = 2) -> None:
    """All decisions of an exported episode, one after the other, as a GIF."""
    episode = data["episodes"][place]
    figure = Figure(figsize=(4, 4.4), layout="constrained")
    axes = figure.subplots()
    writer = PillowWriter(fps=per_second)
    with writer.saving(figure, str(path), dpi=80):
        for step in range(len(episode["steps"]) + 1):
            axes.clear()
            _moment(axes, data, episode, step)
            for _ in range(3 if step == len(episode["steps"]) else 1):  # the end is to be seen
                writer.grab_frame()


def _moment(axes: Axes, data: Mapping[str, Any], episode: Mapping[str, Any], step: int) -> None:
    """The board before the decision ``step``, or at the end of the episode."""
    width, height, steps = data["width"], data["height"], episode["steps"]
    moment = steps[step] if step < len(steps) else {"cell": episode["end"], "plan": -1}
    axes.imshow(_picture(data, episode, moment["cell"]), extent=(0, width, height, 0), interpolation="nearest")
    axes.set(xticks=[], yticks=[], title=f"step {step} of {len(steps)}: {episode['outcome']}")

    def spots(cells: Sequence[int]) -> tuple[Array, Array]:
        return np.array(cells) // height + 0.5, np.array(cells) % height + 0.5

    way = [each["cell"] for each in steps[: step + 1]] + [moment["cell"]]
    axes.plot(*spots(way), color="tomato", linewidth=2, label="way so far")
    axes.plot(*spots(episode["optimal"]), color="white", linestyle=":", linewidth=1.5, label="optimal path")
    if moment["plan"] >= 0:
        _problem(axes, episode, episode["plans"][moment["plan"]], spots)
    if "target" in moment:
        place = spots([moment["target"]])
        axes.scatter(*place, s=220, marker="*", color="gold", edgecolors="black", zorder=5, label="next target")


def _problem(
    axes: Axes,
    episode: Mapping[str, Any],
    plan: Mapping[str, Any],
    spots: Callable[[Sequence[int]], tuple[Array, Array]],
) -> None:
    """Checkpoints, edges and the plan; delusions in another colour and shape."""
    known = {cell: place for place, cell in enumerate(episode["truth"]["cells"])}
    places = [known[cell] for cell in plan["cells"]]
    possible = np.array(episode["truth"]["distance"])[np.ix_(places, places)] >= 0
    kept = np.array([[status == str(int(EdgeStatus.KEPT)) for status in line] for line in plan["status"]])
    for source, target in np.argwhere(kept):
        ends = spots([plan["cells"][source], plan["cells"][target]])
        if possible[source, target]:
            axes.plot(*ends, color="white", linewidth=0.5, alpha=0.25)
        else:
            axes.plot(*ends, color="orchid", linewidth=1.2, linestyle="--")
    x, y = spots(plan["cells"])
    shown = np.array(plan["kept"], bool)
    shown[CURRENT] = False  # drawn as the agent
    reached, lost = shown & possible[CURRENT], shown & ~possible[CURRENT]
    axes.scatter(x[reached], y[reached], s=36, color="white", edgecolors="black", zorder=3, label="checkpoints")
    if lost.any():
        axes.scatter(x[lost], y[lost], s=50, marker="x", color="orchid", linewidths=2, zorder=4, label="delusions")
    axes.plot(
        *spots([plan["cells"][vertex] for vertex in plan["route"]]), color="deepskyblue", linewidth=3, label="plan"
    )


def _picture(data: Mapping[str, Any], episode: Mapping[str, Any], cell: int) -> Array:
    """The board as people know it from MiniGrid."""
    things = {".": EMPTY, "G": GOAL, "#": WALL if data["dynamics"] == "walls" else LAVA}
    observation = np.zeros((data["width"] * data["height"], 2), np.uint8)
    observation[:, 0] = [things[letter] for letter in episode["layout"]]
    observation[cell] = AGENT, AGENT_COLOUR[observation[cell, 0]]
    return render_rgb(observation.reshape(data["width"], data["height"], 2), TILE)


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
