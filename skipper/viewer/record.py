"""Episodes with every decision, and ground truth where there is one, as JSON and as a page that shows them.

What an agent decided comes from its ``Decision``s alone, what is true from the environment family.
"""

import base64
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from skipper.envs.registry import Family, TaskSet
from skipper.planning.prune import EdgeStatus
from skipper.training.evaluate import Moment, rollout
from skipper.types import Agent, Array, Decision, GraphView, PlanView

# What happened to an edge, in a few words.
STATUSES = {
    EdgeStatus.KEPT: "kept",
    EdgeStatus.VERTEX_GONE: "an end is pruned",
    EdgeStatus.SELF_LOOP: "leads nowhere",
    EdgeStatus.INTO_CURRENT: "back to here",
    EdgeStatus.FROM_TERMINAL: "from an ending",
    EdgeStatus.TOO_LONG: "too long",
}

Json = dict[str, Any]


class Recording(NamedTuple):
    """One episode: what a page shows of it, and the observations behind it."""

    episode: Json
    observations: list[Array]  # (W, H, C) each: one per step, and the last


def record(agent: Agent, family: Family, tasks: TaskSet, seed: int) -> list[Recording]:
    """One episode of every task; ``seed`` decides the world's randomness, not the agent's."""
    recorder = _Recorder(family, tasks)
    for moment in rollout(agent, family, tasks, seed):
        recorder.add(moment)
    return recorder.finish()


class _Recorder:
    """Writes down the episodes of N tasks in lockstep."""

    def __init__(self, family: Family, tasks: TaskSet) -> None:
        scene = family.spec(tasks.world).scene
        if scene is None:
            raise ValueError(f"the viewer shows where the agent is, so it needs a scene; {family.name!r} offers none")
        self._family, self._scene, self._truth = family, scene, family.truth(tasks)
        self._rows = np.arange(len(tasks))
        self._recordings = [Recording(_new_episode(family, tasks, row), []) for row in range(len(tasks))]

    def add(self, moment: Moment) -> None:
        """Take one step of every episode that is still running."""
        cells, after = (self._scene.agent_cell(seen) for seen in (moment.observation, moment.next_observation))
        solved, notes = self._family.success(moment.reward, moment.terminated), self._true_notes(moment)
        for row in np.flatnonzero(moment.running).tolist():
            episode, observations = self._recordings[row]
            observations.append(moment.observation[row])
            self._add_plan(episode, moment.decision, row)
            detail = self._detail(episode, moment.observation[row]) or {}
            step = {"cell": int(cells[row])} | detail | self._decision(moment.decision, row) | notes[row]
            episode["steps"].append(step | {"plan": len(episode["plans"]) - 1})
            if moment.ended[row]:
                observations.append(moment.next_observation[row])
                episode["end"] = int(after[row])
                # Where the last observation shows no more than the cell, the rest is as it was before.
                final = self._detail(episode, moment.next_observation[row])
                episode["final"] = detail if final is None else final
                episode["outcome"] = _outcome(bool(moment.terminated[row]), bool(solved[row]))

    def _detail(self, episode: Json, observation: Array) -> Json | None:
        """Direction and load of the agent, and the cells that are no longer as in the beginning."""
        detail = self._family.detail(observation)
        if detail is None:
            return None
        pairs = enumerate(zip(episode["layout"], detail.layout, strict=True))
        changed = [[cell, after] for cell, (before, after) in pairs if before != after]
        found = {"direction": detail.direction, "carried": detail.carried, "changed": changed}
        return {name: value for name, value in found.items() if value not in (None, "", [])}

    def _decision(self, decision: Decision, row: int) -> Json:
        """What was decided, and as far as the agent says so, why."""
        found: Json = {"action": int(decision.action[row])}
        if decision.reason is not None:
            found["reason"] = str(decision.reason[row])
        if _has_target(decision, row):
            assert decision.target is not None
            found["target"] = int(self._scene.agent_cell(decision.target[row][None])[0])
        if decision.values is not None and not np.isnan(decision.values[row]).any():
            found["values"] = _rounded(decision.values[row], 3)
        if decision.attention is not None:
            fields, weights = decision.attention.fields[row].tolist(), _rounded(decision.attention.weight[row], 3)
            found["attention"] = [[*field, weight] for field, weight in zip(fields, weights, strict=True)]
        return found

    def _true_notes(self, moment: Moment) -> list[Json]:
        """The states that steps speak of, and whether actions had another effect than the intended one."""
        if self._truth is None:
            return [{} for _ in self._rows]
        seen = (moment.observation, moment.next_observation)
        before, after = (self._truth.state_of(self._rows, observations) for observations in seen)
        intended = self._truth.successors(self._rows, before, moment.decision.action)
        notes: list[Json] = []
        for row in range(len(self._rows)):
            notes.append({"state": int(before[row])})
            if _has_target(moment.decision, row):
                assert moment.decision.target is not None
                target = self._truth.state_of(self._rows[[row]], moment.decision.target[[row]])
                notes[-1]["target_state"] = int(target[0])
            if intended[row] != after[row]:
                notes[-1]["slipped"] = True
        return notes

    def _add_plan(self, episode: Json, decision: Decision, row: int) -> None:
        """Add the plan that was made for this decision, if there is a new one."""
        if decision.plan is None or decision.planned is None or not decision.planned[row]:
            return
        view = decision.plan.view(int(decision.planned[:row].sum()))
        plan = plan_to_json(view) | {"cells": self._scene.agent_cell(view.states).tolist()}
        details = [self._detail(episode, state) for state in view.states]
        if any(details):
            plan["details"] = details
        if self._truth is not None:
            plan["states"] = self._truth.state_of(np.full(len(view.states), row), view.states).tolist()
        episode["plans"].append(plan)

    def finish(self) -> list[Recording]:
        """All recordings, with ground truth where there is one."""
        if self._truth is None:
            return self._recordings
        goals = self._truth.goals()
        for row, (episode, _) in enumerate(self._recordings):
            # An optimal path.
            path = self._truth.optimal_path(row)
            seen = self._truth.observe(np.full(len(path), row), path)
            episode["optimal"] = self._scene.agent_cell(seen).tolist()
            # Fewest steps between all states that the episode speaks of, -1 without a path.
            states = {state for plan in episode["plans"] for state in plan["states"]} | {int(goals[row])}
            names = ("state", "target_state")
            states |= {step[name] for step in episode["steps"] for name in names if name in step}
            known = np.array(sorted(states))
            steps = self._truth.distances(np.full(len(known), row), known)[:, known]
            distance = np.where(np.isfinite(steps), steps, -1).astype(int)
            episode["truth"] = {"states": known.tolist(), "distance": distance.tolist()}
        return self._recordings


def _new_episode(family: Family, tasks: TaskSet, row: int) -> Json:
    """What does not change in an episode, and room for what does."""
    board = family.board(tasks, row)
    goal = {} if board.goal is None else {"goal": board.goal}
    return {"layout": board.layout, **goal, "steps": [], "plans": []}


def _has_target(decision: Decision, row: int) -> bool:
    return decision.target is not None and (decision.aiming is None or bool(decision.aiming[row]))


def _outcome(terminated: bool, solved: bool) -> str:
    if solved:
        return "success"
    return "death" if terminated else "timeout"


def plan_to_json(view: PlanView) -> Json:
    """A plan as it was made: route and target, and its graph and pictures where it has them."""
    plan: Json = {"route": [int(vertex) for vertex in view.route], "target": int(view.target)}
    if view.graph is not None:
        plan |= _graph_to_json(view.graph)
    if view.picture is not None:
        plan["picture"] = _picture_to_json(view.picture)
    if view.forecast is not None:
        plan["forecast"] = [_picture_to_json(picture) for picture in view.forecast]
    return plan


def _picture_to_json(picture: Array) -> Json:
    """A picture (h, w, 3)."""
    height, width, _ = picture.shape
    pixels = np.ascontiguousarray(picture, np.uint8).tobytes()
    return {"width": width, "height": height, "rgb": base64.b64encode(pixels).decode()}


def _graph_to_json(graph: GraphView) -> Json:
    kept = graph.status == EdgeStatus.KEPT
    return {
        "merged": graph.merged,
        "kept": graph.kept.astype(int).tolist(),
        "terminal": graph.terminal.astype(int).tolist(),
        "value": _rounded(graph.value, 3),
        "worth": _rounded(graph.worth, 3),
        "tenths": ["".join(map(_tenths, line)) for line in graph.distance],
        "status": ["".join(str(int(each)) for each in line) for line in graph.status],
        "reward": _sparse(np.where(kept, graph.reward, 0.0), 0.0),
        "trust": _sparse(np.where(kept, graph.trust, 1.0), 1.0),
    }


def _rounded(values: Array, digits: int) -> list[float]:
    return [round(float(value), digits) if np.isfinite(value) else -1 for value in values]


def _tenths(steps: float) -> str:
    """Tenths of estimated steps as two digits to the base 36, "--" without an estimate or a path."""
    return np.base_repr(min(round(10 * steps), 36**2 - 1), 36).zfill(2).lower() if np.isfinite(steps) else "--"


def _sparse(matrix: Array, usual: float) -> list[list[float]]:
    """The entries that differ from the usual value: source, target, value."""
    found = np.argwhere(abs(matrix - usual) >= 0.0005)
    return [[int(source), int(target), round(float(matrix[source, target]), 3)] for source, target in found]


def page_data(title: str, about: Mapping[str, str], family: Family, tasks: TaskSet, episodes: list[Json]) -> Json:
    """Everything that a page shows."""
    board = family.board(tasks, 0)
    return {
        "title": title,
        "about": dict(about),
        "width": board.width,
        "height": board.height,
        "colours": dict(family.cell_colours),
        "marks": dict(family.cell_marks),
        "mark_colours": dict(family.mark_colours),
        "names": dict(family.cell_names),
        "actions": family.actions,
        "statuses": {str(int(status)): words for status, words in STATUSES.items()},
        "episodes": episodes,
    }


def to_html(data: Json) -> str:
    """A self-contained page.

    The data cannot break out of its element: "<" is the only character that could end it.
    """
    template = files("skipper.viewer").joinpath("template.html").read_text(encoding="utf-8")
    before, after = template.split("__DATA__")
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    return before + packed + after
