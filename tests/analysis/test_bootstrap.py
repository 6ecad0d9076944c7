import numpy as np
import pytest

from skipper.analysis.bootstrap import bootstrap_intervals, resampled_success
from skipper.analysis.results_file import Run
from tests.analysis.bootstrap_coverage import ABOUT, coverage, simulated_runs

TASKS = 40


def run(*solved, **about) -> Run:
    sets = {str(number): np.asarray(each, bool) for number, each in enumerate(solved)}
    return Run("", {name: float(each.mean()) for name, each in sets.items()}, sets, ABOUT | about)


def blocks(first, second, shared, rng, resamples=700):
    parts = list(resampled_success(first, second, shared, resamples, rng))
    return [np.concatenate(side) for side in zip(*parts, strict=True)]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_tasks_are_drawn_within_their_set(rng):
    x, _ = blocks([run([1] * TASKS, [0] * TASKS)], [run([1] * TASKS, [0] * TASKS)], False, rng)
    assert x.shape == (700, 1, 2)
    assert (x == [1.0, 0.0]).all()


def test_the_same_tasks_are_drawn_for_both_sides(rng):
    solved = rng.random((2, TASKS)) < 0.7
    x, y = blocks([run(*solved)], [run(*solved)], False, rng)
    assert (x == y).all()
    assert x.std() > 0.0
    x, y = blocks([run(*solved)], [run(*solved, evaluation_seed=21)], False, rng)
    assert abs(np.corrcoef(x[:, 0, 0], y[:, 0, 0])[0, 1]) < 0.2


def test_the_same_seeds_are_drawn_where_networks_are_shared(rng):
    runs = [run([1] * TASKS), run([0] * TASKS), run([0] * TASKS)]
    x, y = blocks(runs, runs, True, rng)
    assert (x == y).all()
    x, y = blocks(runs, runs, False, rng)
    assert (x != y).any()
    assert x.mean() == pytest.approx(1 / 3, abs=0.05)


def test_training_tasks_are_those_of_a_run(rng):
    solved = rng.random(TASKS) < 0.5
    runs = [Run("", {"training": 0.5}, {"training": solved}, ABOUT | {"seed": seed}) for seed in (20, 21, 20)]
    assert runs[0].tasks("training") == runs[2].tasks("training") != runs[1].tasks("training")


def test_one_run_has_the_interval_of_its_tasks(rng):
    solved = np.arange(400) < 300
    found = bootstrap_intervals([run(solved)], [run(~solved)], False, 4000, rng)
    half = 1.96 * (0.75 * 0.25 / 400) ** 0.5
    assert found.mean_first == pytest.approx((0.75 - half, 0.75 + half), abs=0.005)
    assert found.difference == pytest.approx(
        (0.5 - 2 * half, 0.5 + 2 * half), abs=0.01
    )  # one fails where the other does not
    assert found.probability_of_improvement == (1.0, 1.0)


def test_intervals_are_decided_by_the_generator(rng):
    tasks = rng.normal(size=(2, TASKS))
    first, second = simulated_runs(1.0, 3, tasks, rng), simulated_runs(0.0, 4, tasks, rng)
    one, two = (bootstrap_intervals(first, second, False, 300, np.random.default_rng(5)) for _ in range(2))
    assert one == two
    assert one.iqm_first.low < one.iqm_first.high


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    found = coverage(seeds=10, repetitions=200, tasks=60, resamples=200)
    assert found["mean"] == pytest.approx(0.95, abs=0.05)
    assert found["difference"] == pytest.approx(0.95, abs=0.05)
