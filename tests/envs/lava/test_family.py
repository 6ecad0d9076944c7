"""What other packages see of the lava world agrees with its tables and its oracle."""

from dataclasses import replace

import numpy as np
import pytest

from skipper.envs.lava.config import EVALUATION_DIFFICULTIES, LavaConfig
from skipper.envs.lava.family import LAVA, LavaOptions
from skipper.envs.lava.oracle import LavaOracle
from skipper.envs.lava.render import render_rgb
from skipper.envs.lava.tasks import evaluation_tasks, tasks_from_text, training_tasks
from skipper.envs.registry import with_size

WORLD = LavaConfig(6, 5)
TASKS = training_tasks(WORLD, 4, seed=0)
TRUTH = LAVA.truth(TASKS)


def test_states_and_observations_correspond():
    rows, states = np.divmod(np.arange(4 * TRUTH.states), TRUTH.states)
    seen = TRUTH.observe(rows, states)
    assert seen.shape[1:] == LAVA.spec(WORLD).shape
    assert (TRUTH.state_of(rows, seen) == states).all()


def test_the_truth_is_that_of_the_oracle():
    oracle, rows = LavaOracle(WORLD), np.arange(4)
    starts, goals = TRUTH.observe(rows, TRUTH.starts()), TRUTH.observe(rows, TRUTH.goals())
    distance = TRUTH.distances(rows, TRUTH.starts())
    assert (distance[rows, TRUTH.goals()] == oracle.distances(starts, goals)).all()
    reachable = oracle.reachable(starts)
    for row in rows:
        assert set(TRUTH.reachable(row).tolist()) == set(np.flatnonzero(reachable[row]).tolist())
        path = TRUTH.optimal_path(row)
        assert (path[0], path[-1]) == (TRUTH.starts()[row], TRUTH.goals()[row])
        assert len(path) - 1 == distance[row, TRUTH.goals()[row]]
    assert (TRUTH.free() >= reachable).all()
    assert not TRUTH.free()[rows, TRUTH.goals()].any()
    assert np.isinf(distance).any()


def test_successors_are_those_of_the_environment():
    rows, actions = np.arange(4), np.array([0, 1, 2, 3])
    envs = LAVA.vector_env(4, LAVA.training_evaluation(WORLD, TASKS, 4, seed=0), WORLD, one_each=True)
    observation, _ = envs.reset(seed=0)
    before = TRUTH.state_of(rows, observation)
    after, _, terminated, _, info = envs.step(actions)
    after[terminated] = info["final_obs"][terminated] if terminated.any() else after[terminated]
    assert (TRUTH.successors(rows, before, actions) == TRUTH.state_of(rows, after)).all()


def test_walks_with_optimal_actions_arrive_in_the_fewest_steps():
    rows, goals = np.arange(4), TRUTH.goals()
    everywhere = [LavaOracle(WORLD).action_values(TRUTH.observe(np.full(30, row), np.arange(30))) for row in rows]
    reached, steps = TRUTH.walks(rows, goals, np.stack(everywhere).argmax(-1))
    starts = TRUTH.starts()
    assert (reached[rows, starts] == 1.0).all()
    assert (steps[rows, starts] == TRUTH.distances(rows, starts)[rows, goals]).all()


@pytest.mark.parametrize(("dynamics", "obstacle"), [("lava", "#"), ("walls", "W")])
def test_the_board_is_the_map_in_known_characters(dynamics, obstacle):
    tasks = tasks_from_text("A.#.\n#..G\n....", world=LavaConfig(dynamics=dynamics))
    board = LAVA.board(tasks, 0)
    assert (board.width, board.height, board.goal) == (4, 3, 10)
    assert board.layout == f".{obstacle}....{obstacle}...G."
    assert set(board.layout) <= set(LAVA.cell_colours)


def test_pictures_are_those_of_the_renderer():
    seen = TRUTH.observe(np.array([0]), TRUTH.starts()[:1])[0]
    assert (LAVA.draw(seen) == render_rgb(seen)).all()


def test_evaluation_sets_are_difficulties():
    assert LAVA.evaluation_names(WORLD) == tuple(f"{level:g}" for level in EVALUATION_DIFFICULTIES)
    named = LAVA.evaluation_tasks(replace(WORLD, difficulty_spread=0.1), "0.35", 5, seed=3)
    same = evaluation_tasks(WORLD, 0.35, 5, seed=3, spread=0.1)
    assert all((one == two).all() for one, two in zip(named.table, same.table, strict=True))
    with pytest.raises(ValueError, match=r"wanted a difficulty, such as 0\.45, got 'hard'"):
        LAVA.evaluation_tasks(WORLD, "hard", 5, seed=3)


def test_without_fixed_tasks_evaluation_takes_those_of_the_stream():
    uniform = replace(WORLD, training_task_start="uniform")
    for world in (WORLD, uniform):
        drawn = LAVA.training_evaluation(world, None, 7, seed=1)
        assert len(drawn) == 7
        assert drawn.world.start == world.training_task_start


def test_only_entering_the_goal_is_success():
    reward, terminated = np.array([1.0, 0.0, 0.0]), np.array([True, True, False])
    assert LAVA.success(reward, terminated).tolist() == [True, False, False]


def test_options_change_what_they_name_and_nothing_else():
    assert LavaOptions().changed(WORLD) == WORLD
    changed = LavaOptions(size=(8,), slip=0.1, difficulties=(0.3,), spread=0.0).changed(WORLD)
    sized = replace(WORLD, width=8, height=8, max_steps=with_size(WORLD, (8,)).max_steps)
    assert changed == replace(sized, slip=0.1, difficulties=(0.3,), difficulty_spread=0.0)
    assert LavaOptions(size=(8,), max_steps=30).changed(WORLD) == replace(sized, max_steps=30)


def test_episodes_get_longer_with_the_sides_but_never_shorter():
    base = LavaConfig()
    assert [with_size(base, size).max_steps for size in ((8,), (12,), (16,), (24, 12))] == [64, 64, 85, 96]
    with pytest.raises(ValueError, match="--size takes one or two numbers, got 3"):
        LavaOptions(size=(3, 3, 3)).changed(WORLD)


def test_captions_mention_the_slip():
    assert LAVA.about(WORLD) == {}
    assert LAVA.about(replace(WORLD, slip=0.1))["slip"].startswith("0.1; true distances")


def test_examples_are_starts_of_the_training_tasks():
    examples = LAVA.spec(WORLD, TASKS).examples
    assert (examples == TASKS.observe(np.arange(4), TASKS.table.start)).all()
    many = training_tasks(LavaConfig(), 100, seed=0)
    assert (LAVA.spec(LavaConfig(), many).examples == many.observe(np.arange(64), many.table.start[:64])).all()


def test_without_fixed_tasks_examples_are_of_the_stream():
    stream = evaluation_tasks(WORLD, WORLD.difficulty, 64, seed=0, spread=WORLD.spread, split="stream")
    assert (LAVA.spec(WORLD).examples == stream.observe(np.arange(64), stream.table.start)).all()
