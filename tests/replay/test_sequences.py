import numpy as np
import pytest

from skipper.replay.episodes import Episode
from skipper.replay.sequences import SequenceSampler
from skipper.replay.store import EpisodeStore


def episode(first: int, steps: int) -> Episode:
    """States numbered from ``first`` on; actions and rewards follow from the numbers."""
    numbers = np.arange(first, first + steps + 1)
    return Episode(numbers.astype(np.uint8).reshape(-1, 1, 1, 1), numbers[:-1] % 3, numbers[:-1] / 10, True)


def test_every_window_of_every_long_episode_is_equally_likely():
    store = EpisodeStore(100, (1, 1, 1))
    sampler = SequenceSampler(store, 4)
    assert not sampler.ready()
    for first, steps in ((0, 3), (10, 4), (20, 6)):
        store.add(episode(first, steps))
    assert sampler.ready()
    assert sampler.too_short() == 1
    found = sampler.sample(8_000, np.random.default_rng(0))
    assert found.observation.shape == (8_000, 5, 1, 1, 1)
    numbers = found.observation[:, :, 0, 0, 0].astype(int)
    assert (np.diff(numbers, axis=1) == 1).all()
    assert (found.action == numbers[:, :-1] % 3).all()
    np.testing.assert_allclose(found.reward, numbers[:, :-1] / 10, rtol=1e-6)
    starts, counts = np.unique(numbers[:, 0], return_counts=True)
    assert starts.tolist() == [10, 20, 21, 22]
    assert abs(counts / 8_000 - 0.25).max() < 0.02
    ends = np.isin(numbers[:, 3], (13, 25))  # the last transitions of their episodes
    assert (found.terminated[:, -1] == ends).all()
    assert not found.terminated[:, :-1].any()


def test_episodes_that_leave_the_store_are_not_drawn():
    store = EpisodeStore(12, (1, 1, 1))
    sampler = SequenceSampler(store, 4)
    for first in (0, 10, 20):
        store.add(episode(first, 5))
    numbers = sampler.sample(200, np.random.default_rng(0)).observation[:, 0, 0, 0, 0]
    assert set(numbers.tolist()) == {10, 11, 20, 21}


def test_a_store_without_long_episodes_is_refused():
    store = EpisodeStore(20, (1, 1, 1))
    store.add(episode(0, 3))
    with pytest.raises(ValueError, match="no stored episode has the 4 transitions"):
        SequenceSampler(store, 4).sample(1, np.random.default_rng(0))
