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


def test_sequences_that_go_on_across_episodes():
    store = EpisodeStore(100, (1, 1, 1))
    firsts, lengths = (0, 20, 40, 60), (2, 3, 9, 2)
    for first, states in zip(firsts, lengths, strict=True):
        store.add(episode(first, states, terminated=first != 40))
    lasts = [first + states - 1 for first, states in zip(firsts, lengths, strict=True)]
    found = SequenceSampler(store, 7, across_episodes=True).sample(20_000, np.random.default_rng(0))
    numbers = found.observation[..., 0, 0, 0].astype(int)  # (B, T)
    # The first state is any one, all equally often.
    counts = np.bincount(numbers[:, 0], minlength=70)
    stored = [first + index for first, states in zip(firsts, lengths, strict=True) for index in range(states)]
    assert counts.sum() == counts[stored].sum()
    np.testing.assert_allclose(counts[stored] / 20_000, 1 / 16, atol=0.008)
    # An episode goes on until it ends, and then another one begins, all equally often.
    ended = np.isin(numbers[:, :-1], lasts)
    assert (numbers[:, 1:] == numbers[:, :-1] + 1)[~ended].all()
    following = numbers[:, 1:][ended]
    assert set(following) == set(firsts)
    np.testing.assert_allclose(np.bincount(following)[list(firsts)] / len(following), 0.25, atol=0.02)
    # What led to a state; nothing led to the first one of an episode, wherever it is.
    assert (found.first == np.isin(numbers, firsts)).all()
    assert (found.action == np.where(found.first, 0, (numbers - 1) % 3)).all()
    np.testing.assert_allclose(found.reward, np.where(found.first, 0, (numbers - 1) / 10), rtol=1e-6)
    assert (found.terminal == np.isin(numbers, [last for last in lasts if last != 48])).all()
