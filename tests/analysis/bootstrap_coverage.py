"""How often 95% intervals hold the truth, in a simulation: ``python -m tests.analysis.bootstrap_coverage``.

A run solves a task with log-odds that are the sum of an agent's, a seed's and a task's. Two agents, with equally many
seeds and no shared networks, play the same tasks of two sets. Intervals of the bootstrap, and of Welch's test.
"""

from pathlib import Path

import numpy as np

from skipper.analysis.bootstrap import bootstrap_intervals
from skipper.analysis.results_file import Run
from skipper.analysis.statistics import welch

AGENTS = (2.0, 1.2)  # log-odds
SEED, TASK = 0.4, 1.5  # standard deviations of log-odds
ABOUT = {"agent": "simulated", "env": "lava", "split": "evaluation", "evaluation_seed": 20}


def simulated_runs(agent: float, seeds: int, tasks: np.ndarray, rng: np.random.Generator) -> list[Run]:
    """Runs of one agent on tasks (sets, E), given by their log-odds."""
    runs = []
    for seed in range(seeds):
        odds = agent + rng.normal(0.0, SEED) + tasks
        solved = rng.random(tasks.shape) < 1.0 / (1.0 + np.exp(-odds))
        sets = {str(number): each for number, each in enumerate(solved)}
        rates = {name: float(each.mean()) for name, each in sets.items()}
        runs.append(Run(Path(str(seed)), rates, sets, ABOUT))
    return runs


def true_success(agent: float) -> float:
    """Mean success over all seeds and tasks, by quadrature."""
    points, weights = np.polynomial.hermite_e.hermegauss(80)
    odds = agent + np.hypot(SEED, TASK) * points
    return float((weights / (1.0 + np.exp(-odds))).sum() / weights.sum())


def coverage(seeds: int, repetitions: int, tasks: int = 100, resamples: int = 400) -> dict[str, float]:
    """Share of repetitions whose interval holds the true number."""
    rng = np.random.default_rng(seeds)
    truth = [true_success(agent) for agent in AGENTS]
    held = {"mean": 0, "difference": 0, "difference (Welch)": 0}
    for _ in range(repetitions):
        drawn = rng.normal(0.0, TASK, size=(2, tasks))
        first, second = (simulated_runs(agent, seeds, drawn, rng) for agent in AGENTS)
        found = bootstrap_intervals(first, second, False, resamples, rng)
        means = [np.array([np.mean(list(run.success.values())) for run in runs]) for runs in (first, second)]
        test = welch(*means)
        difference = truth[0] - truth[1]
        held["mean"] += found.mean_first.low <= truth[0] <= found.mean_first.high
        held["difference"] += found.difference.low <= difference <= found.difference.high
        held["difference (Welch)"] += test.low <= difference <= test.high
    return {name: count / repetitions for name, count in held.items()}


if __name__ == "__main__":
    for tasks in (100, 800):
        for number in (3, 5, 10, 20):
            print(f"{tasks} tasks per set, {number} seeds:", coverage(number, repetitions=1000, tasks=tasks))
