"""Episodes with all that was decided in them and with the truth beside it, as JSON and as a page that shows it.

What is told of an agent comes from its ``Decision``s alone; what is true, from the transition table of the task.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from skipper.envs.lava.layout import ACTIONS
from skipper.envs.lava.oracle import UNREACHABLE, distances_from, optimal_path
from skipper.envs.lava.scene import LavaScene
from skipper.envs.lava.tasks import Tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.planning.proxy import ProxyProblem
from skipper.planning.prune import EdgeStatus
from skipper.types import Agent, Array, Decision, TimeStep

# What became of an edge, in few words.
STATUSES = {
    EdgeStatus.KEPT: "kept",
    EdgeStatus.VERTEX_GONE: "an end is pruned",
    EdgeStatus.SELF_LOOP: "leads nowhere",
    EdgeStatus.INTO_CURRENT: "back to here",
    EdgeStatus.FROM_TERMINAL: "from an ending",
    EdgeStatus.TOO_LONG: "too long",
}
EMPTY_CELL, OBSTACLE_CELL, GOAL_CELL = ".#G"

Json = dict[str, Any]


def record(agent: Agent, tasks: Tasks, seed: int) -> list[Json]:
    """One episode of every task, all in lockstep; ``seed`` decides the slips of the world, not the agent."""
    count, scene = len(tasks), LavaScene()
    envs = LavaVectorEnv(count, tasks=tasks, assignment="own")
    observation, info = envs.reset(seed=seed)
    episodes = [_scenery(tasks, row) for row in range(count)]
    first, running = np.ones(count, bool), np.ones(count, bool)
    while running.any():
        cells = scene.agent_cell(observation)
        decision = agent.act(TimeStep(observation, info["goal"], first, idle=~running))
        observation, reward, terminated, truncated, info = envs.step(decision.action)
        ended = terminated | truncated
        after = scene.agent_cell(observation)
        if ended.any():  # there the environment shows the next episode already
            after[ended] = scene.agent_cell(info["final_obs"][ended])
        for row in np.flatnonzero(running).tolist():
            episode = episodes[row]
            _note_plan(episode, decision, row, scene)
            moment = _moment(decision, row, int(cells[row]), scene) | {"plan": len(episode["plans"]) - 1}
            if tasks.table.successor[row, cells[row], decision.action[row]] != after[row]:
                moment["slipped"] = True
            episode["steps"].append(moment)
            if ended[row]:
                episode["end"] = int(after[row])
                episode["outcome"] = _outcome(bool(terminated[row]), float(reward[row]))
        first = ended
        running &= ~ended
    for row, episode in enumerate(episodes):
        episode["truth"] = _truth(tasks, row, episode)
    return episodes


def _scenery(tasks: Tasks, row: int) -> Json:
    """What does not change in an episode, and room for what does."""
    table = tasks.table
    letters = np.where(tasks.lava()[row].ravel(), OBSTACLE_CELL, EMPTY_CELL)
    letters[table.goal[row]] = GOAL_CELL
    return {
        "layout": "".join(letters),  # cell by cell: x * height + y
        "goal": int(table.goal[row]),
        "optimal": [int(cell) for cell in optimal_path(tasks, row)],
        "steps": [],
        "plans": [],
    }


def _outcome(terminated: bool, reward: float) -> str:
    if not terminated:
        return "timeout"
    return "success" if reward > 0 else "death"


def _moment(decision: Decision, row: int, cell: int, scene: LavaScene) -> Json:
    """One decision: where, what, and as far as the agent says so, why."""
    moment: Json = {"cell": cell, "action": int(decision.action[row])}
    if decision.reason is not None:
        moment["reason"] = str(decision.reason[row])
    if decision.target is not None and (decision.aiming is None or decision.aiming[row]):
        moment["target"] = int(scene.agent_cell(decision.target[row][None])[0])
    if decision.values is not None and not np.isnan(decision.values[row]).any():
        moment["values"] = _rounded(decision.values[row], 3)
    if decision.attention is not None:
        fields, weights = decision.attention.fields[row].tolist(), _rounded(decision.attention.weight[row], 3)
        moment["attention"] = [[*field, weight] for field, weight in zip(fields, weights, strict=True)]
    return moment


def _note_plan(episode: Json, decision: Decision, row: int, scene: LavaScene) -> None:
    """Add the plan that was made for this decision, if one was and if it is of a kind that can be shown."""
    if decision.planned is None or not decision.planned[row] or not isinstance(decision.plan, ProxyProblem):
        return
    place = int(decision.planned[:row].sum())
    episode["plans"].append(plan_to_json(decision.plan, place, scene))


def plan_to_json(problem: ProxyProblem, row: int, scene: LavaScene) -> Json:
    """A proxy problem as it was solved; vertices that are not present are left out and only counted."""
    view = problem.view(row)
    graph = view.graph
    assert graph is not None
    return {
        "cells": scene.agent_cell(view.states).tolist(),
        "merged": graph.merged,
        "kept": graph.kept.astype(int).tolist(),
        "terminal": graph.terminal.astype(int).tolist(),
        "value": _rounded(graph.value, 3),
        "worth": _rounded(graph.worth, 3),  # of aiming at each of them from here
        "tenths": ["".join(map(_tenths, line)) for line in graph.distance],
        "status": ["".join(str(int(each)) for each in line) for line in graph.status],
        "reward": _sparse(graph.reward, 0.0),
        "trust": _sparse(graph.trust, 1.0),
        "route": view.route,
        "target": view.target,
    }


def _rounded(values: Array, digits: int) -> list[float]:
    return [round(float(value), digits) if np.isfinite(value) else -1 for value in values]


def _tenths(steps: float) -> str:
    """Tenths of estimated steps in two digits to the base 36, "--" where there is no estimate, or no way."""
    return np.base_repr(min(round(10 * steps), 36**2 - 1), 36).zfill(2).lower() if np.isfinite(steps) else "--"


def _sparse(matrix: Array, usual: float) -> list[list[float]]:
    """The entries that differ from the usual one: source, target, value."""
    found = np.argwhere(abs(matrix - usual) >= 0.0005)
    return [[int(source), int(target), round(float(matrix[source, target]), 3)] for source, target in found]


def _truth(tasks: Tasks, row: int, episode: Json) -> Json:
    """Fewest steps between all cells that the episode speaks of, -1 where there is no way."""
    cells = {cell for plan in episode["plans"] for cell in plan["cells"]} | {episode["goal"]}
    cells |= {moment[name] for moment in episode["steps"] for name in ("cell", "target") if name in moment}
    known = np.array(sorted(cells))
    steps = distances_from(tasks, np.full(len(known), row), known)[:, known].astype(int)
    return {"cells": known.tolist(), "distance": np.where(steps == UNREACHABLE, -1, steps).tolist()}


def page_data(title: str, about: Mapping[str, str], tasks: Tasks, episodes: list[Json]) -> Json:
    """Everything that a page shows."""
    world = tasks.world
    return {
        "title": title,
        "about": dict(about),
        "width": world.width,
        "height": world.height,
        "dynamics": world.dynamics,
        "actions": ACTIONS,
        "statuses": {str(int(status)): words for status, words in STATUSES.items()},
        "episodes": episodes,
    }


def to_html(data: Json) -> str:
    """One page that needs nothing else.

    The data cannot break out of its element: of all characters, only "<" could end it.
    """
    template = files("skipper.viewer").joinpath("template.html").read_text(encoding="utf-8")
    before, after = template.split("__DATA__")
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    return before + packed + after
