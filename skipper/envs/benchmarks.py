"""Benchmarks by name: the training tasks of the paper's experiments, and the evaluation sets that score agents.

A benchmark fixes what two agents must share to be compared: world, number of training tasks, evaluation sets.
"""

from typing import Any, NamedTuple

from skipper.envs.registry import Family, TaskSet, find_family
from skipper.runtime.checks import nearest_name


class Benchmark(NamedTuple):
    """Training tasks of one environment family in the paper's world, and its evaluation sets."""

    env: str  # name of the family
    tasks: int  # fixed training tasks; 0 for a new one every episode

    @property
    def family(self) -> Family:
        """The environment family."""
        return find_family(self.env)

    @property
    def world(self) -> Any:
        """The family's world of the paper."""
        return self.family.world("paper")

    def training_tasks(self, seed: int) -> TaskSet | None:
        """What an agent may train on: the tasks of ``skipper train --seed``; None for a new one every episode."""
        return self.family.training_tasks(self.world, self.tasks, seed) if self.tasks else None

    def test_tasks(self, count: int, seed: int, split: str = "evaluation") -> dict[str, TaskSet]:
        """``count`` unseen tasks of every evaluation set, by its name; the score is the mean success over the sets."""
        family, world = self.family, self.world
        return {
            name: family.evaluation_tasks(world, name, count, seed, split) for name in family.evaluation_names(world)
        }


# The numbers of training tasks of the paper's experiments; without a number every episode has a new task.
BENCHMARKS: dict[str, Benchmark] = {
    "skipper/LavaWorld-v0": Benchmark("lava", 0),
    **{f"skipper/LavaWorld-{count}-v0": Benchmark("lava", count) for count in (1, 5, 25, 50, 100)},
}


def find_benchmark(name: str) -> Benchmark:
    """The benchmark called ``name``."""
    if name not in BENCHMARKS:
        raise ValueError(nearest_name("benchmark", name, BENCHMARKS))
    return BENCHMARKS[name]
