"""A world of nine cells, and all transitions and targets in it."""

import numpy as np
import torch

from skipper.agents.hindsight import Hindsight
from skipper.envs.lava.tasks import tasks_from_text
from skipper.replay.all_pairs import NO_PAIR

TASKS = tasks_from_text("A.#\n...\n.#G")


def every_pair() -> tuple[Hindsight, np.ndarray]:
    """All transitions of the world with all targets; and (cell, action, target) of each. State n is cell n."""
    table = TASKS.table
    rows = [
        (cell, action, target)
        for cell in range(9)
        for action in range(4)
        for target in range(9)
        if not table.terminal[0, cell] and cell != target
    ]
    cell, action, target = np.array(rows).T
    after = table.successor[0, cell, action].astype(np.int64)
    reward = (after == table.goal[0]).astype(np.float32)
    columns = (cell, after, target, action, reward, table.terminal[0, after], after == target)
    states = torch.from_numpy(TASKS.observe(np.zeros(9, int), np.arange(9)))
    unknown = torch.full((len(rows),), torch.inf)
    tensors = (torch.from_numpy(column) for column in columns)
    rest = unknown, -unknown, torch.full((len(rows),), NO_PAIR), torch.ones(len(rows))
    return Hindsight(states, torch.zeros(9, dtype=torch.int64), *tensors, *rest), np.array(rows)
