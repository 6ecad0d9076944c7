"""Figures of tasks, plans and single runs; ``paper_figures`` has those of whole experiments."""

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from skipper.envs.registry import Family, TaskSet
from skipper.planning.prune import EdgeStatus
from skipper.types import Array, scene_of

Spots = Callable[[Sequence[int] | Array], tuple[Array, Array]]  # cells to the coordinates of their centres
CURRENT = 0  # index of the current state in every plan
LAST_FRAMES = 3  # frames that an animation stays on the end of its episode


def draw_task(axes: Axes, family: Family, tasks: TaskSet, row: int) -> int | None:
    """Draw one task, with an optimal path dotted on it where ground truth knows one; returns the path's steps."""
    board, truth = family.board(tasks, row), family.truth(tasks)
    extent = (0, board.width, board.height, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    if truth is None:
        observation, _ = family.vector_env(1, tasks.subset([row]), tasks.world, one_each=True).reset(seed=0)
        axes.imshow(family.draw(observation[0]), extent=extent, interpolation="nearest")
        return None
    path = truth.optimal_path(row)
    seen = truth.observe(np.full(len(path), row), path)
    axes.imshow(family.draw(seen[0]), extent=extent, interpolation="nearest")
    cells = scene_of(family.spec(tasks.world)).agent_cell(seen)
    axes.plot(*_centres(board.height)(cells), linestyle=":", linewidth=2, color="deepskyblue")
    return len(path) - 1


def draw_tasks(family: Family, sets: Mapping[str, TaskSet], path: Path) -> None:
    """A figure with the first task of every set, side by side."""
    figure = Figure(figsize=(3 * len(sets), 3.4), layout="constrained")
    for axes, (name, tasks) in zip(figure.subplots(1, len(sets), squeeze=False)[0], sets.items(), strict=True):
        steps = draw_task(axes, family, tasks, 0)
        axes.set_title(name if steps is None else f"{name}: {steps} steps")
    figure.savefig(path, dpi=120)


def draw_moment(data: Mapping[str, Any], index: int, step: int, picture: Array, path: Path) -> None:
    """One decision of an exported episode: the plan on its task, in the manner of the paper's Fig. 1.

    ``picture`` (h, w, 3) shows the observation at that step. A goal that the plan pictures is drawn beside it.
    """
    episode = data["episodes"][index]
    panels = 2 if "picture" in (_plan_at(episode, step) or {}) else 1
    figure = Figure(figsize=(2 + 4 * panels, 6.9), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    _moment(axes[0], data, episode, step, picture)
    _plan_picture(axes[1:], episode, step)
    figure.legend(loc="outside lower center", ncols=3, facecolor="lightgrey", fontsize=9)
    figure.savefig(path, dpi=120)


def draw_decision(data: Mapping[str, Any], index: int, step: int, picture: Array, folder: Path) -> list[Path]:
    """One decision in seven pictures, from the state to the walk that follows; ``picture`` (h, w, 3) is its state.

    The walk lasts until the next plan, so an agent that keeps its plans has more to show.
    """
    episode = data["episodes"][index]
    plan = _plan_at(episode, step)
    if plan is None or "status" not in plan:
        raise ValueError("wanted a decision with a plan on a graph")
    paths = []
    for number, (name, draw) in enumerate(DECISION_PARTS.items(), 1):
        figure = Figure(figsize=(4, 4), layout="constrained")
        axes = figure.subplots()
        axes.imshow(picture, extent=(0, data["width"], data["height"], 0), interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        draw(axes, episode, step, plan, _centres(data["height"]))
        paths.append(folder / f"decision-{number}-{name}.png")
        figure.savefig(paths[-1], dpi=100)
    return paths


Part = Callable[[Axes, Mapping[str, Any], int, Mapping[str, Any], Spots], None]


def _draw_state(*_: Any) -> None:
    """The state alone."""


def _draw_imagined(axes: Axes, _: Mapping[str, Any], __: int, plan: Mapping[str, Any], spots: Spots) -> None:
    """All vertices but the current state, before any is pruned."""
    x, y = spots(plan["cells"][1:])
    axes.scatter(x, y, s=60, color="white", edgecolors="black", zorder=3)


def _draw_pruned(axes: Axes, _: Mapping[str, Any], __: int, plan: Mapping[str, Any], spots: Spots) -> None:
    """The vertices that were kept, and crosses in place of the others."""
    (x, y), kept = spots(plan["cells"]), np.array(plan["kept"], bool)
    axes.scatter(x[~kept], y[~kept], s=40, marker="x", color="silver", zorder=3)
    kept[CURRENT] = False
    axes.scatter(x[kept], y[kept], s=60, color="white", edgecolors="black", zorder=4)


def _draw_graph(axes: Axes, episode: Mapping[str, Any], _: int, plan: Mapping[str, Any], spots: Spots) -> None:
    """The edges that were kept, those without a path dashed."""
    _draw_edges(axes, plan, possible_paths(episode, plan), spots, width=1.2, alpha=0.8)
    x, y = spots(plan["cells"])
    shown = np.array(plan["kept"], bool)
    axes.scatter(x[shown], y[shown], s=60, color="white", edgecolors="black", zorder=4)


def _draw_values(axes: Axes, _: Mapping[str, Any], __: int, plan: Mapping[str, Any], spots: Spots) -> None:
    """The value of every vertex that was kept."""
    (x, y), shown, value = spots(plan["cells"]), np.array(plan["kept"], bool), np.array(plan["value"])
    middle = (value[shown].min() + value[shown].max()) / 2
    axes.scatter(x[shown], y[shown], s=260, c=value[shown], cmap="cividis", edgecolors="black", zorder=4)
    for vertex in np.flatnonzero(shown):
        shade = "black" if value[vertex] > middle else "white"  # on a bright or a dark dot
        text = f"{value[vertex]:.2f}".lstrip("0")
        axes.text(x[vertex], y[vertex], text, color=shade, ha="center", va="center", fontsize=6.5, zorder=5)


def _draw_target(axes: Axes, episode: Mapping[str, Any], step: int, plan: Mapping[str, Any], spots: Spots) -> None:
    """The route of the plan, and the vertex to go to next."""
    cells = [plan["cells"][vertex] for vertex in plan["route"]]
    axes.plot(*spots(cells), color="deepskyblue", linewidth=3)
    axes.scatter(*spots(cells[1:]), s=60, color="white", edgecolors="black", zorder=4)
    x, y = spots([episode["steps"][step]["target"]])
    axes.scatter(x, y, s=260, marker="*", color="gold", edgecolors="black", zorder=5)


def _draw_walk(axes: Axes, episode: Mapping[str, Any], step: int, _: Mapping[str, Any], spots: Spots) -> None:
    """The steps until the next plan."""
    steps, plan = episode["steps"], episode["steps"][step]["plan"]
    last = max(number for number, each in enumerate(steps) if each["plan"] == plan) + 1
    cells = [each["cell"] for each in steps[step:last]] + [steps[last]["cell"] if last < len(steps) else episode["end"]]
    axes.plot(*spots(cells), color="tomato", linewidth=3, marker="o", markersize=4)
    x, y = spots([steps[step]["target"]])
    axes.scatter(x, y, s=260, marker="*", color="gold", edgecolors="black", zorder=5)


# The parts of a decision in their order (Alg. 1), each with what is drawn of it.
DECISION_PARTS: dict[str, Part] = {
    "state": _draw_state,
    "checkpoints": _draw_imagined,
    "vertices": _draw_pruned,
    "edges": _draw_graph,
    "values": _draw_values,
    "target": _draw_target,
    "walk": _draw_walk,
}


def animate_episode(
    data: Mapping[str, Any], index: int, pictures: Sequence[Array], path: Path, per_second: int = 2
) -> None:
    """All decisions of an exported episode as a GIF; ``pictures`` show the observations of its steps and its end."""
    episode = data["episodes"][index]
    panels = 2 if any("picture" in plan for plan in episode["plans"]) else 1
    figure = Figure(figsize=(4 * panels, 4.4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    writer = PillowWriter(fps=per_second)
    with writer.saving(figure, str(path), dpi=80):
        for step, picture in enumerate(pictures):
            for panel in axes:
                panel.clear()
            _moment(axes[0], data, episode, step, picture)
            _plan_picture(axes[1:], episode, step)
            for _ in range(LAST_FRAMES if step == len(pictures) - 1 else 1):
                writer.grab_frame()


def _moment(axes: Axes, data: Mapping[str, Any], episode: Mapping[str, Any], step: int, picture: Array) -> None:
    """The task before the decision ``step``, or at the end of the episode."""
    width, height, steps = data["width"], data["height"], episode["steps"]
    moment = steps[step] if step < len(steps) else {"cell": episode["end"]}
    axes.imshow(picture, extent=(0, width, height, 0), interpolation="nearest")
    axes.set(xticks=[], yticks=[], title=f"step {step} of {len(steps)}: {episode['outcome']}")
    spots = _centres(height)
    trail = [each["cell"] for each in steps[: step + 1]] + [moment["cell"]]
    axes.plot(*spots(trail), color="tomato", linewidth=2, label="path so far")
    if "optimal" in episode:
        axes.plot(*spots(episode["optimal"]), color="white", linestyle=":", linewidth=1.5, label="optimal path")
    if (plan := _plan_at(episode, step)) is not None:
        _draw_plan(axes, episode, plan, spots)
    if "target" in moment:
        x, y = spots([moment["target"]])
        axes.scatter(x, y, s=220, marker="*", color="gold", edgecolors="black", zorder=5, label="next target")


def _plan_picture(axes: Sequence[Axes], episode: Mapping[str, Any], step: int) -> None:
    """The goal that the plan pictures, on the axes that there are for it."""
    plan = _plan_at(episode, step) or {}
    for panel in axes:
        panel.set(xticks=[], yticks=[], title="goal of the plan")
        if "picture" in plan:
            panel.imshow(decoded_picture(plan["picture"]), interpolation="nearest")


def _draw_plan(axes: Axes, episode: Mapping[str, Any], plan: Mapping[str, Any], spots: Spots) -> None:
    """Vertices or subgoals, edges where there is a graph, and the route; delusions in another colour and shape."""
    cells, possible = plan["cells"], possible_paths(episode, plan)
    if "status" in plan:
        _draw_edges(axes, plan, possible, spots)
    x, y = spots(cells)
    shown = np.array(plan.get("kept", [1] * len(cells)), bool)
    shown[CURRENT] = False  # drawn as the agent
    reached, lost = shown & possible[CURRENT], shown & ~possible[CURRENT]
    label = "checkpoints" if "status" in plan else "subgoals"
    if len(cells) > 1:
        axes.scatter(x[reached], y[reached], s=36, color="white", edgecolors="black", zorder=3, label=label)
    if lost.any():
        axes.scatter(x[lost], y[lost], s=50, marker="x", color="orchid", linewidths=2, zorder=4, label="delusions")
    if len(plan["route"]) > 1:
        axes.plot(*spots([cells[vertex] for vertex in plan["route"]]), color="deepskyblue", linewidth=3, label="plan")


def _draw_edges(
    axes: Axes, plan: Mapping[str, Any], possible: Array, spots: Spots, *, width: float = 0.5, alpha: float = 0.25
) -> None:
    """The edges that pruning kept, those without a path dashed."""
    kept = np.array([[status == str(int(EdgeStatus.KEPT)) for status in line] for line in plan["status"]])
    for source, target in np.argwhere(kept):
        ends = spots([plan["cells"][source], plan["cells"][target]])
        if possible[source, target]:
            axes.plot(*ends, color="white", linewidth=width, alpha=alpha)
        else:
            axes.plot(*ends, color="orchid", linewidth=1.2, linestyle="--")


def _plan_at(episode: Mapping[str, Any], step: int) -> Mapping[str, Any] | None:
    """The plan that the decision ``step`` follows; None where there is none, and at the end."""
    steps = episode["steps"]
    index = steps[step]["plan"] if step < len(steps) else -1
    plan: Mapping[str, Any] | None = episode["plans"][index] if index >= 0 else None
    return plan


def possible_paths(episode: Mapping[str, Any], plan: Mapping[str, Any]) -> Array:
    """(N, N) bool, whether there is a path between two states of a plan; True without ground truth."""
    count = len(plan["cells"])
    if "truth" not in episode:
        return np.ones((count, count), bool)
    known = {state: index for index, state in enumerate(episode["truth"]["states"])}
    rows = [known[state] for state in plan["states"]]
    possible: Array = np.array(episode["truth"]["distance"])[np.ix_(rows, rows)] >= 0
    return possible


def decoded_picture(picture: Mapping[str, Any]) -> Array:
    """(h, w, 3) uint8 from an exported picture."""
    pixels = np.frombuffer(base64.b64decode(picture["rgb"]), np.uint8)
    return pixels.reshape(picture["height"], picture["width"], 3)


def _centres(height: int) -> Spots:
    """Coordinates of the centres of cells, on a grid of this height."""
    return lambda cells: (np.asarray(cells) // height + 0.5, np.asarray(cells) % height + 0.5)


def draw_learning_curves(
    curves: Mapping[str, list[dict[str, Any]]], path: Path, set_kind: str = "evaluation set"
) -> None:
    """Success over environment steps with 95% intervals: a panel per set of tasks, a line per run.

    ``curves`` holds the evaluations of each run, as in ``evaluations.jsonl``; ``set_kind`` is what sets are called.
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
        axes.set_title("training tasks" if name == "training" else f"unseen, {set_kind} {name}")
        axes.set_xlabel("environment steps")
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_ylim(-0.02, 1.02)
    panels[0].set_ylabel("success")
    panels[0].legend()
    figure.savefig(path, dpi=120)
