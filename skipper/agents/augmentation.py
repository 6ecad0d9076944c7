"""Data augmentation: experience in symmetric images of its tasks, which are tasks as well; not in the paper."""

import numpy as np

from skipper.config import RunConfig
from skipper.replay.all_pairs import Pairs
from skipper.replay.prioritized import Samples
from skipper.types import Array, EnvironmentSpec

TASK_IMAGES = 1021  # images drawn per period; the number of a task selects one of them


class SymmetricImages:
    """Maps batches of experience to random symmetric images."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        if spec.symmetries is None:
            raise ValueError("symmetries needs an environment that offers its symmetries; this one does not")
        self._seed, self._symmetries = config.seed, spec.symmetries

    def of_pairs(self, pairs: Pairs, period: int) -> Pairs:
        """Every task in one image per ``period``, so that there are few different states within a period."""
        drawn = self._draw(TASK_IMAGES, np.random.default_rng([self._seed, period]))
        which = drawn[pairs.task % TASK_IMAGES][pairs.episode]  # (M,)
        return pairs._replace(
            observation=self._symmetries.images(pairs.observation, which),
            action=self._symmetries.actions[which[pairs.source], pairs.action],
        )

    def of_samples(self, samples: Samples, rng: np.random.Generator) -> Samples:
        """Each sample in a random image."""
        which = self._draw(len(samples.action), rng)
        states = ("observation", "next_observation", "target")
        images = {name: self._symmetries.images(getattr(samples, name), which) for name in states}
        return samples._replace(action=self._symmetries.actions[which, samples.action], **images)

    def of_contexts(self, states: tuple[Array, Array], rng: np.random.Generator) -> tuple[Array, Array]:
        """Each pair of states of an episode in a random image."""
        which = self._draw(len(states[0]), rng)
        return self._symmetries.images(states[0], which), self._symmetries.images(states[1], which)

    def _draw(self, count: int, rng: np.random.Generator) -> Array:
        return rng.integers(len(self._symmetries.cells), size=count)
