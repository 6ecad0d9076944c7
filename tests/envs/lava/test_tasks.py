import subprocess
import sys

import numpy as np
import pytest

from skipper.envs.lava.config import EVALUATION_DIFFICULTIES, LavaConfig
from skipper.envs.lava.tasks import Tasks, TaskStream, evaluation_tasks, tasks_from_text, training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv


def fingerprints(tasks: Tasks) -> set[bytes]:
    return {scenery.tobytes() for scenery in tasks.table.scenery}


def test_the_same_seed_gives_the_same_tasks_in_another_process():
    program = (
        "import hashlib; from skipper.envs.lava.config import LavaConfig; from skipper.envs.lava.tasks import *;"
        "tasks = [training_tasks(LavaConfig(), 50, 3), evaluation_tasks(LavaConfig(), 0.45, 50, 3)];"
        "print(hashlib.sha256(b''.join(c.tobytes() for t in tasks for c in t.table)).hexdigest())"
    )
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in "ab"]
    assert len(runs[0].stdout) == 65
    assert runs[0].stdout == runs[1].stdout


def test_tasks_do_not_change_between_versions():
    """A changed number here changes every result: say so in the changelog, under "Changes results"."""
    tasks = training_tasks(LavaConfig(), 2, seed=0)
    assert tasks.table.start.tolist() == [5, 1]
    assert tasks.table.goal.tolist() == [133, 139]
    assert np.flatnonzero(tasks.lava()[0].reshape(-1))[:8].tolist() == [18, 33, 34, 35, 38, 39, 40, 42]


def test_another_seed_gives_other_tasks():
    sets = [fingerprints(training_tasks(LavaConfig(), 50, seed)) for seed in range(3)]
    assert len(set.union(*sets)) == 150


def test_training_tasks_differ_from_each_other_even_on_tiny_grids():
    world = LavaConfig(3, 3, difficulty=0.35)
    assert len(fingerprints(training_tasks(world, 3, seed=0))) == 3
    with pytest.raises(ValueError, match=r"wanted 100 different tasks.*gave only"):
        training_tasks(world, 100, seed=0)


def test_task_sets_are_disjoint():
    # On so small a grid the same layouts would come up again and again if nothing kept the sets apart.
    world = LavaConfig(4, 4, difficulty=0.4)
    train = fingerprints(training_tasks(world, 50, seed=0))
    envs = LavaVectorEnv(2000, tasks=TaskStream(world))
    envs.reset(seed=0)
    state = envs.state_dict()
    stream = {scenery.tobytes() for scenery in state["table.scenery"]}
    evaluation = set()
    for difficulty in EVALUATION_DIFFICULTIES:
        evaluation |= fingerprints(evaluation_tasks(world, difficulty, 2000, seed=0))
    tuning = fingerprints(evaluation_tasks(world, 0.4, 2000, seed=0, split="tuning"))
    sets = [train, stream, evaluation, tuning]
    assert min(len(found) for found in sets) >= 50
    assert len(set.union(*sets)) == sum(len(found) for found in sets)


def test_evaluation_sets_of_the_paper_have_the_densities_of_their_difficulty_alone():
    counts = [
        set(evaluation_tasks(LavaConfig(), level, 2000, seed=1).lava().sum((1, 2)).tolist())
        for level in EVALUATION_DIFFICULTIES
    ]
    assert [(min(found), max(found)) for found in counts] == [(24, 35), (36, 47), (48, 59), (60, 71)]


def test_evaluation_starts_on_the_side_opposite_to_the_goal():
    tasks = evaluation_tasks(LavaConfig(start="uniform"), 0.35, 100, seed=0)
    assert tasks.world.start == "fixed"
    assert (tasks.table.start // 12 + tasks.table.goal // 12 == 11).all()


def test_drawings_are_read_as_they_look():
    tasks = tasks_from_text("A.#.\n.#..\n...G", world=LavaConfig(dynamics="walls", slip=0.25))
    assert (tasks.world.width, tasks.world.height, tasks.world.slip) == (4, 3, 0.25)
    assert (tasks.table.start[0], tasks.table.goal[0]) == (0, 11)
    assert np.argwhere(tasks.lava()[0]).tolist() == [[1, 1], [2, 0]]


@pytest.mark.parametrize("text", ["A..\n...\n...", "A.G\n..\n...", "A.G\n.A.\n...", "A.G\n.x.\n..."])
def test_bad_drawings_are_refused(text):
    with pytest.raises(ValueError, match="drawing"):
        tasks_from_text(text)


def test_a_subset_keeps_order_and_truth():
    tasks = training_tasks(LavaConfig(), 5, seed=0)
    part = tasks.subset([4, 1])
    assert len(part) == 2
    assert (part.table.successor == tasks.table.successor[[4, 1]]).all()


@pytest.mark.parametrize(("count", "seed", "wanted"), [(0, 0, "at least 1"), (1, -1, "0 or more")])
def test_bad_counts_and_seeds_are_refused(count, seed, wanted):
    with pytest.raises(ValueError, match=wanted):
        training_tasks(LavaConfig(), count, seed)
    with pytest.raises(ValueError, match=wanted):
        evaluation_tasks(LavaConfig(), 0.4, count, seed)


def test_a_stream_of_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="unknown split"):
        TaskStream(LavaConfig(), "test")


def test_difficulties_have_tasks_of_their_own():
    one, two = (evaluation_tasks(LavaConfig(), level, 100, seed=0).table for level in (0.35, 0.45))
    assert (one.start == two.start).mean() < 0.3


def test_a_drawing_is_needed():
    with pytest.raises(ValueError, match="at least one drawing"):
        tasks_from_text()
