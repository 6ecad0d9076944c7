"""Agents whose plans are no graphs: a chain of subgoals, and a goal that is only a picture."""

import numpy as np

from skipper.envs.registry import Family, TaskSet
from skipper.types import Array, Decision, PlanView, TimeStep

PICTURE = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
FORECAST = np.stack([PICTURE + 50, PICTURE + 100])


class Plans:
    def __init__(self, views: list[PlanView]) -> None:
        self._views = views

    def view(self, row: int) -> PlanView:
        return self._views[row]


class ChainAgent:
    """Follows the optimal path of every task and plans every fourth step: three subgoals on that path."""

    def __init__(self, family: Family, tasks: TaskSet) -> None:
        truth = family.truth(tasks)
        assert truth is not None
        self.paths: list[Array] = []  # observations of each task's path
        self.actions: list[list[int]] = []
        for row in range(len(tasks)):
            path = truth.optimal_path(row)
            self.paths.append(truth.observe(np.full(len(path), row), path))
            moves = truth.successors(
                np.full(4 * len(path), row), np.repeat(path, 4), np.tile(np.arange(4), len(path))
            ).reshape(-1, 4)
            self.actions.append([int((moves[i] == path[i + 1]).argmax()) for i in range(len(path) - 1)])
        self.step = -1

    def act(self, timestep: TimeStep) -> Decision:
        self.step += 1
        rows = range(len(self.paths))
        action = np.array([self.actions[row][min(self.step, len(self.actions[row]) - 1)] for row in rows])
        states = [self._chain(row) for row in rows]
        planned = np.full(len(rows), self.step % 4 == 0)
        views = [PlanView(chain, list(range(len(chain))), 1) for chain in states]
        target = np.stack([chain[1] for chain in states])
        reason = np.where(planned, "four steps have passed", "")
        return Decision(action, target, planned, Plans(views) if planned.all() else None, reason)

    def _chain(self, row: int) -> Array:
        """The state of the last plan, and three of the states after it."""
        begin, last = self.step - self.step % 4, len(self.paths[row]) - 1
        return self.paths[row][np.minimum(begin + np.array([0, 2, 4, 6]), last)]


class PictureAgent(ChainAgent):
    """The same moves; the plan is a picture, with a forecast of the next two steps."""

    def act(self, timestep: TimeStep) -> Decision:
        decision = super().act(timestep)
        views = [PlanView(state[None], [0], -1, picture=PICTURE, forecast=FORECAST) for state in timestep.observation]
        return decision._replace(target=None, plan=Plans(views) if decision.plan else None)
