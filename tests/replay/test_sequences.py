import numpy as np
import pytest

from skipper.replay.episodes import Episode
from skipper.replay.sequences import SequenceSampler
from skipper.replay.store import EpisodeStore


def episode(first: int, states: int, terminated: bool = True) -> Episode:
    """States numbered from ``first`` on; actions and rewards follow from the numbers."""
    numbers = np.arange(first, first + states)
    return Episode(numbers.astype(np.uint8).reshape(-1, 1, 1, 1), numbers[:-1] % 3, numbers[:-1] / 10, terminated)


def test_late_starts_become_the_last_one():
    store = EpisodeStore(100, (1, 1, 1))
    store.add(episode(0, 13))
    starts = SequenceSampler(store, 12).sample(20_000, np.random.default_rng(0)).observation[:, 0, 0, 0, 0]
    assert set(starts.tolist()) == {0, 1}
    assert np.mean(starts == 0) == pytest.approx(1 / 14, abs=0.01)


def test_all_episodes_are_equally_likely():
    store = EpisodeStore(100, (1, 1, 1))
    for first, states in ((0, 5), (50, 20)):
        store.add(episode(first, states))
    found = SequenceSampler(store, 4).sample(4_000, np.random.default_rng(0))
    assert np.mean(found.observation[:, 0, 0, 0, 0] < 50) == pytest.approx(0.5, abs=0.03)


def test_what_led_to_a_state_comes_with_it():
    store = EpisodeStore(100, (1, 1, 1))
    store.add(episode(20, 9))
    store.add(episode(40, 6, terminated=False))
    found = SequenceSampler(store, 4).sample(500, np.random.default_rng(0))
    numbers = found.observation[..., 0, 0, 0].astype(int)  # (B, T)
    assert (np.diff(numbers, axis=1) == 1).all()
    begins = np.isin(numbers, (20, 40))
    assert begins.any()
    assert (found.action == np.where(begins, 0, (numbers - 1) % 3)).all()
    np.testing.assert_allclose(found.reward, np.where(begins, 0, (numbers - 1) / 10), rtol=1e-6)
    assert (found.terminal == (numbers == 28)).all()


def test_episodes_that_leave_the_store_are_not_drawn():
    store = EpisodeStore(12, (1, 1, 1))
    for first in (0, 10, 20):
        store.add(episode(first, 6))
    numbers = SequenceSampler(store, 5).sample(200, np.random.default_rng(0)).observation[:, 0, 0, 0, 0]
    assert set(numbers.tolist()) == {10, 11, 20, 21}


def test_an_empty_store_is_refused():
    sampler = SequenceSampler(EpisodeStore(20, (1, 1, 1)), 4)
    assert not sampler.ready()
    with pytest.raises(ValueError, match="no episodes yet"):
        sampler.sample(1, np.random.default_rng(0))
