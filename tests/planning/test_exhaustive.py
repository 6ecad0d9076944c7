"""Planning with true edges on real tasks: the chosen target is the best that any search could find."""

import numpy as np
import pytest
from numba import njit

from skipper.config import PlanningConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.oracle import LavaOracle
from skipper.envs.lava.scene import LavaScene
from skipper.envs.lava.tasks import training_tasks
from skipper.planning.proxy import solve
from skipper.planning.prune import EdgeStatus
from skipper.types import CURRENT, Edges, Vertices, content_keys

PROBLEMS = 1000
TIE = 1e-5


@njit
def best_path(reward, discount, usable, vertex, edges):
    """The highest return of all paths of at most ``edges`` edges, tried one by one."""
    if edges == 0:
        return 0.0
    best = 0.0
    for target in range(len(reward)):
        if usable[vertex, target]:
            rest = best_path(reward, discount, usable, target, edges - 1)
            best = max(best, reward[vertex, target] + discount[vertex, target] * rest)
    return best


@njit
def worth_of_targets(reward, discount, usable, vertex, edges):
    worth = np.full(len(reward), -np.inf)
    for target in range(len(reward)):
        if usable[vertex, target]:
            rest = best_path(reward, discount, usable, target, edges - 1)
            worth[target] = reward[vertex, target] + discount[vertex, target] * rest
    return worth


def random_problems(count: int) -> Vertices:
    """The current state, 30 random reachable states, and the goal, on tasks of the paper's size."""
    rng = np.random.default_rng(0)
    tasks = training_tasks(LavaConfig(), count, seed=0)
    reach = tasks.table.start_count
    cells = tasks.table.starts[np.arange(count)[:, None], (rng.random((count, 31)) * reach[:, None]).astype(int)]
    cells = np.concatenate([cells, tasks.table.goal[:, None]], axis=1)
    context = tasks.observe(np.arange(count), cells[:, 0])
    states = LavaScene().place_agent(context, cells)
    keys = content_keys(states)
    present = np.array([[key not in row[:place] for place, key in enumerate(row)] for row in keys.tolist()])
    present[:, 1:] &= keys[:, 1:] != keys[:, -1:]
    present[:, -1] = True
    return Vertices(states, cells, present, keys)


@pytest.mark.parametrize("truth", [(), ("edges",)], ids=["cut at 8 steps", "uncut"])
def test_the_chosen_target_is_optimal(truth):
    vertices, config = random_problems(PROBLEMS), PlanningConfig(oracle_parts=truth)
    true = Edges(*LavaOracle(LavaConfig()).edges(vertices.observation, 0.99))
    problem = solve(vertices, true, config)
    optimal = 0
    for row in range(PROBLEMS):
        kept = np.flatnonzero(problem.kept[row])
        pick = np.ix_(kept, kept)
        usable = (problem.status[row] == EdgeStatus.KEPT)[pick]
        worth = worth_of_targets(true.reward[row][pick], true.discount[row][pick], usable, CURRENT, config.sweeps)
        if problem.target[row] < 0:
            optimal += not usable[CURRENT].any()
        else:
            optimal += worth[list(kept).index(problem.target[row])] >= worth.max() - TIE
    assert optimal >= 0.99 * PROBLEMS
