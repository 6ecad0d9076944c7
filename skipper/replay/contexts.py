"""Pairs of states of one episode: the checkpoint generator describes one in the context of the other."""

import numpy as np

from skipper.replay.store import EpisodeStore
from skipper.types import Array


def sample_contexts(store: EpisodeStore, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """``count`` random states, and for each another random state of its episode, possibly the same one.

    The last state of an episode, which may be terminal, is never drawn.
    """
    episode = store.random_episodes(count, rng)
    first, steps = store.first[episode], store.states[episode] - 1
    one, two = (store.observations(first + rng.integers(steps)) for _ in range(2))
    return one, two
