"""Episodes over numbered states, and a sampler of all pairs of them."""

import numpy as np

from skipper.replay.all_pairs import AllPairsSampler
from skipper.replay.episodes import Episode
from skipper.replay.relabel import HindsightConfig
from skipper.replay.store import EpisodeStore


def episode(first: int, steps: int, terminated: bool = True) -> Episode:
    """States are numbered, so that each can be recognised: state n, action n % 7, reward n / 10."""
    return walk(np.arange(first, first + steps + 1), terminated)


def walk(numbers: np.ndarray, terminated: bool = True) -> Episode:
    """An episode over numbered states, which may repeat."""
    observation = np.stack([numbers // 256, numbers % 256], -1).astype(np.uint8).reshape(-1, 1, 1, 2)
    return Episode(observation, numbers[:-1] % 7, numbers[:-1] / 10, terminated)


def number(observation: np.ndarray) -> np.ndarray:
    return observation.reshape(-1, 2)[:, 0].astype(int) * 256 + observation.reshape(-1, 2)[:, 1]


def make(**fields) -> tuple[EpisodeStore, AllPairsSampler]:
    config = HindsightConfig(**fields)
    store = EpisodeStore(config.capacity, (1, 1, 2))
    return store, AllPairsSampler(store, config, 0.9)
