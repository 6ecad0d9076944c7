"""Ground truth against brute force, against hand-computed worlds, and against rollouts."""

from itertools import pairwise

import numpy as np
import pytest

from skipper.benchmarks.plain import plain_world
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.oracle import (
    UNREACHABLE,
    LavaOracle,
    action_values,
    distances_from,
    expected_discounts,
    greedy_policy,
    optimal_path,
    policy_truth,
    reachable,
    shortest_distances,
)
from skipper.envs.lava.tasks import Tasks, evaluation_tasks, tasks_from_text, training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv

CORRIDOR = "A..G\n####\n####"  # cells 0, 3, 6, 9 from left to right


def mixed_tasks() -> list[Tasks]:
    """200 random tasks of ten sizes, half of them walled."""
    rng = np.random.default_rng(0)
    sets = []
    for seed in range(10):
        width, height = (int(side) for side in rng.integers(3, 11, size=2))
        difficulty = float(rng.uniform(0, (height - 1) / height))
        world = LavaConfig(width, height, difficulty=difficulty, dynamics=("lava", "walls")[seed % 2])
        sets.append(evaluation_tasks(world, difficulty, 20, seed, spread=0.0))
    return sets


@pytest.mark.parametrize("tasks", mixed_tasks(), ids=lambda tasks: f"{tasks.world.width}x{tasks.world.height}")
def test_distances_and_values_equal_brute_force(tasks):
    distances, values = shortest_distances(tasks), action_values(tasks, discount=0.95)
    for row in range(len(tasks)):
        plain = plain_world(tasks, row)
        brute = np.array([list(plain.distances(cell).values()) for cell in plain.cells])
        assert (np.where(distances[row] == UNREACHABLE, np.inf, distances[row]) == brute).all()
        brute = np.array(list(plain.action_values(plain.goal, 0.95).values()))
        np.testing.assert_allclose(values[row], brute, atol=1e-10)


def test_values_under_slip_equal_brute_force_for_any_target():
    world = LavaConfig(6, 5, difficulty=0.4, slip=0.3)
    tasks = training_tasks(world, 5, seed=0)
    rows, targets = np.array([0, 1, 2, 3, 4, 4]), np.array([3, 12, 17, 20, 29, 8])
    values = action_values(tasks, rows, targets, discount=0.9)
    for index, (row, target) in enumerate(zip(rows, targets, strict=True)):
        brute = plain_world(tasks, row).action_values(divmod(int(target), 5), 0.9, slip=0.3)
        np.testing.assert_allclose(values[index], np.array(list(brute.values())), atol=1e-10)


def test_without_slip_values_are_powers_of_the_discount():
    tasks = training_tasks(LavaConfig(), 4, seed=0)
    distances = shortest_distances(tasks).astype(float)
    distances[distances == UNREACHABLE] = np.inf
    for target in (5, 70, 143):
        expected = expected_discounts(tasks, np.arange(4), np.full(4, target), discount=0.9)
        np.testing.assert_allclose(expected, 0.9 ** distances[:, :, target], atol=1e-10)


def test_a_corridor_computed_by_hand():
    tasks = tasks_from_text(CORRIDOR)
    distances = shortest_distances(tasks)[0]
    assert distances[0, [0, 3, 6, 9]].tolist() == [0, 1, 2, 3]
    assert distances[0, 1] == 1  # into the lava
    assert distances[0, 2] == UNREACHABLE  # lava is absorbing
    assert distances[9, 0] == UNREACHABLE  # so is the goal
    values = action_values(tasks, discount=0.5)[0]
    assert values[6].tolist() == [1.0, 0.0, 0.25, 0.5]  # goal; lava; away and back; bump and try again
    assert values[0].tolist() == [0.25, 0.0, 0.125, 0.125]
    assert (values[9] == 0).all()  # nothing comes after the goal


def test_a_corridor_with_slip_computed_by_hand():
    tasks = tasks_from_text("A.G\n###\n###", world=LavaConfig(slip=0.4))
    values = action_values(tasks, discount=0.5)[0]
    # East is done with 0.7, each other move with 0.1; v(start) from the bumps, v(middle) likewise.
    start, middle = values[0].max(), values[3].max()
    assert start == pytest.approx(0.5 * (0.7 * middle + 0.1 * start + 0.1 * start))
    assert middle == pytest.approx(0.7 + 0.5 * (0.1 * start + 0.1 * middle))


def test_reachable_cells():
    tasks = tasks_from_text("A.#.\n...G\n##..")
    assert np.flatnonzero(reachable(tasks)[0]).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11]
    assert np.flatnonzero(reachable(tasks, np.array([9]))[0]).tolist() == [6, 9, 10]
    assert np.flatnonzero(reachable(tasks, np.array([10]))[0]).tolist() == [10]


def test_distances_from_chosen_cells_are_rows_of_all_pairs():
    tasks = training_tasks(LavaConfig(5, 6), 3, seed=0)
    rows, sources = np.array([2, 0, 2]), np.array([4, 29, 0])
    assert (distances_from(tasks, rows, sources) == shortest_distances(tasks)[rows, sources]).all()


def test_optimal_paths_are_shortest_and_legal():
    tasks = training_tasks(LavaConfig(), 10, seed=0)
    distances = shortest_distances(tasks)
    for row in range(10):
        path = optimal_path(tasks, row)
        assert (path[0], path[-1]) == (tasks.table.start[row], tasks.table.goal[row])
        assert len(path) - 1 == distances[row, path[0], path[-1]]
        assert all(after in tasks.table.successor[row, before] for before, after in pairwise(path))
    with pytest.raises(ValueError, match="no path"):
        optimal_path(tasks_from_text("A#G\n.#.\n.#."), 0)


def test_greedy_policies_share_ties():
    assert greedy_policy(np.array([[0.5, 1.0, 1.0, 0.0]])).tolist() == [[0.0, 0.5, 0.5, 0.0]]


def test_truth_of_a_policy_computed_by_hand():
    tasks = tasks_from_text(CORRIDOR)
    east = np.zeros((1, 12), int)
    truth = policy_truth(tasks, east, discount=0.5)
    assert truth.success[0, [0, 3, 6, 9]].tolist() == [1, 1, 1, 0]
    assert truth.value[0, [0, 3, 6]].tolist() == [0.25, 0.5, 1.0]
    assert truth.length[0, [0, 3, 6]].tolist() == [3, 2, 1]
    half = np.zeros((1, 12, 4))
    half[..., :2] = 0.5  # east or into the lava
    truth = policy_truth(tasks, half, discount=0.5)
    assert truth.success[0, 0] == 0.125
    assert truth.death[0, 0] == 0.875
    assert truth.value[0, 0] == 0.125 * 0.25
    assert truth.length[0, 0] == 1 + 0.5 * (1 + 0.5)
    short = policy_truth(tasks, east, horizon=2)
    assert (short.success[0, 0], short.timeout[0, 0], short.length[0, 0]) == (0, 1, 2)
    assert short.timeout[0, 9] == 0  # nothing happens after the end


def test_the_optimal_policy_always_succeeds_and_its_value_is_the_optimal_one():
    tasks = training_tasks(LavaConfig(max_steps=200), 20, seed=0)
    values = action_values(tasks)
    truth = policy_truth(tasks, greedy_policy(values))
    start = np.arange(20), tasks.table.start
    np.testing.assert_allclose(truth.success[start], 1.0)
    np.testing.assert_allclose(truth.value[start], values.max(-1)[start])


def rollouts(tasks: Tasks, actions: np.ndarray, episodes: int) -> dict[str, np.ndarray]:
    """Outcomes of ``episodes`` plays of each task from its start, by the real environment."""
    count = len(tasks) * episodes
    many = tasks.subset(np.repeat(np.arange(len(tasks)), episodes))
    envs = LavaVectorEnv(count, tasks=many, assignment="own")
    observation, _ = envs.reset(seed=0)
    steps, running = np.zeros(count), np.ones(count, bool)
    success, death = np.zeros(count), np.zeros(count)
    while running.any():
        cells = (observation.reshape(count, -1, 2)[:, :, 0] == 10).argmax(-1)
        observation, reward, terminated, truncated, _ = envs.step(
            np.repeat(actions, episodes, axis=0)[np.arange(count), cells]
        )
        steps += running
        success += running * reward
        death += running & terminated & (reward == 0)
        running &= ~(terminated | truncated)
    return {
        "success": success.reshape(-1, episodes),
        "death": death.reshape(-1, episodes),
        "length": steps.reshape(-1, episodes),
        "value": (success * 0.99 ** (steps - 1)).reshape(-1, episodes),
        "discount": (success * 0.99**steps).reshape(-1, episodes),
    }


def test_truth_under_slip_equals_monte_carlo_within_its_error():
    # Long episodes, so that the discount is hardly cut off by the end of time.
    tasks = training_tasks(LavaConfig(slip=0.1, start="fixed", max_steps=600), 6, seed=0)
    policy = action_values(tasks).argmax(-1)
    truth, played = policy_truth(tasks, policy), rollouts(tasks, policy, 4000)
    start = np.arange(6), tasks.table.start
    exact = {name: getattr(truth, name)[start] for name in ("success", "death", "length", "value")}
    exact["discount"] = expected_discounts(tasks)[start]
    for name, values in exact.items():
        error = played[name].std(1) / np.sqrt(4000)
        assert (abs(played[name].mean(1) - values) < 4.5 * error + 1e-9).all(), name
        assert error.max() > 0, name  # slip makes every outcome random


def test_truth_of_a_random_policy_equals_monte_carlo_within_its_error():
    tasks = training_tasks(LavaConfig(5, 4, difficulty=0.3, start="fixed", max_steps=20), 4, seed=0)
    policy = np.random.default_rng(0).integers(4, size=(4, 20))
    slippery = Tasks(LavaConfig(5, 4, difficulty=0.3, start="fixed", max_steps=20, slip=0.8), tasks.table)
    truth, played = policy_truth(slippery, policy), rollouts(slippery, policy, 4000)
    start = np.arange(4), tasks.table.start
    for name in ("success", "death", "length", "value"):
        error = played[name].std(1) / np.sqrt(4000)
        assert (abs(played[name].mean(1) - getattr(truth, name)[start]) < 4.5 * error + 1e-9).all(), name
    np.testing.assert_allclose(truth.timeout[start], 1 - truth.success[start] - truth.death[start])


@pytest.mark.parametrize("dynamics", ["lava", "walls"])
def test_the_oracle_of_observations_knows_what_the_tables_know(dynamics):
    world = LavaConfig(7, 6, difficulty=0.4, slip=0.1, dynamics=dynamics)
    tasks = training_tasks(world, 6, seed=0)
    oracle = LavaOracle(world, capacity=4)
    rng = np.random.default_rng(0)
    for _ in range(3):
        rows, cells, targets = rng.integers(6, size=9), rng.integers(42, size=9), rng.integers(42, size=9)
        seen, wanted = tasks.observe(rows, cells), tasks.observe(rows, targets)
        expected = action_values(tasks)[rows, cells]
        np.testing.assert_allclose(oracle.action_values(seen), expected, atol=1e-10)
        expected = action_values(tasks, rows, targets)[np.arange(9), cells]
        np.testing.assert_allclose(oracle.action_values(seen, wanted), expected, atol=1e-10)
        steps = shortest_distances(tasks)[rows, cells, targets]
        assert (oracle.distances(seen, wanted) == np.where(steps == UNREACHABLE, np.inf, steps)).all()


def test_mistakes_are_named():
    tasks = training_tasks(LavaConfig(), 2, seed=0)
    with pytest.raises(ValueError, match="discount must lie between 0 and 1"):
        action_values(tasks, discount=1.0)
    with pytest.raises(ValueError, match="one shape"):
        action_values(tasks, np.array([0, 1]), np.array([3]))
    with pytest.raises(ValueError, match="one shape"):
        distances_from(tasks, np.array([0, 1]), np.array([3]))
    with pytest.raises(ValueError, match="policy table must be"):
        policy_truth(tasks, np.zeros((2, 5), int))
    with pytest.raises(ValueError, match="sum to 1"):
        policy_truth(tasks, np.ones((2, 144, 4)))
    with pytest.raises(ValueError, match="sum to 1"):
        policy_truth(tasks, np.broadcast_to([1.5, -0.5, 0.0, 0.0], (2, 144, 4)))
    with pytest.raises(ValueError, match="actions must be 0 to 3"):
        policy_truth(tasks, np.full((2, 144), -1))


@pytest.mark.parametrize(("rows", "cells", "what"), [([2], [0], "row"), ([-1], [0], "row"), ([0], [144], "cell")])
def test_rows_and_cells_that_are_not_there_are_refused(rows, cells, what):
    tasks = training_tasks(LavaConfig(), 2, seed=0)
    rows, cells = np.array(rows), np.array(cells)
    for ask in (distances_from, action_values, expected_discounts, Tasks.observe):
        with pytest.raises(ValueError, match=f"no such {what}"):
            ask(tasks, rows, cells)


def test_observations_that_are_not_of_the_oracles_world_are_refused():
    tasks = training_tasks(LavaConfig(10, 12), 1, seed=0)
    walls = Tasks(LavaConfig(10, 12, dynamics="walls"), tasks.table)
    seen = tasks.observe(np.array([0]), tasks.table.start)
    LavaOracle(tasks.world).action_values(seen)
    with pytest.raises(ValueError, match="12x10 cells"):
        LavaOracle(LavaConfig(12, 10)).action_values(seen)
    with pytest.raises(ValueError, match="obstacles of dynamics 'walls'"):
        LavaOracle(walls.world).action_values(seen)
    for code in (8, 10):  # without the goal, without the agent
        blank = np.where(seen[..., :1] == code, np.uint8(1), seen)
        with pytest.raises(ValueError, match="one agent, one goal"):
            LavaOracle(tasks.world).action_values(blank)


def test_the_oracle_remembers_what_it_computed_but_not_for_ever(monkeypatch):
    tasks = training_tasks(LavaConfig(6, 6), 6, seed=0)
    oracle = LavaOracle(tasks.world, capacity=4, discount=0.8)
    asked = []
    real = action_values
    monkeypatch.setattr(
        "skipper.envs.lava.oracle.action_values",
        lambda *given, **more: asked.append(len(given[0])) or real(*given, **more),
    )
    for rows in ([0, 1, 0], [1, 0], [2, 3], [4, 5], [4, 5]):
        seen = tasks.observe(np.array(rows), tasks.table.start[rows])
        expected = real(tasks, discount=0.8)[rows, tasks.table.start[rows]]
        np.testing.assert_allclose(oracle.action_values(seen), expected, atol=1e-10)
    assert asked == [2, 2, 2]
    assert len(oracle._values) <= 4


def test_values_are_exact_to_many_digits_under_slip():
    """Against the linear equations of the optimal policy."""
    tasks = training_tasks(LavaConfig(5, 5, slip=0.3), 3, seed=0)
    values = action_values(tasks, discount=0.999)
    for row in range(3):
        policy = greedy_policy(values[row]) * 0.7 + 0.3 / 4
        moves = np.zeros((25, 25))
        for cell in range(25):
            for action in range(4):
                moves[cell, tasks.table.successor[row, cell, action]] += policy[cell, action]
        alive = ~tasks.table.terminal[row]
        reward = moves[:, tasks.table.goal[row]] * alive
        solved = np.linalg.solve(np.eye(25) - 0.999 * (moves * alive[:, None] * alive), reward)
        np.testing.assert_allclose(values[row].max(-1), solved, atol=1e-9)


def test_values_that_differ_by_rounding_are_a_tie():
    assert greedy_policy(np.array([1.0, 1.0 + 1e-14, 0.0, 0.0])).tolist() == [0.5, 0.5, 0.0, 0.0]


def test_paths_ignore_slips():
    tasks = tasks_from_text(CORRIDOR, world=LavaConfig(slip=1.0))
    assert optimal_path(tasks, 0).tolist() == [0, 3, 6, 9]
