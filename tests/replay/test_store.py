"""The episode store against a list of episodes."""

import numpy as np
import pytest

from skipper.replay.all_pairs import sample_contexts
from skipper.replay.episodes import Episode
from skipper.replay.store import NO_EPISODE, EpisodeStore
from skipper.runtime.hashing import content_keys


def episode(first: int, steps: int, terminated: bool = True) -> Episode:
    """States are numbered, so that each can be recognised: state n, action n % 7, reward n / 10."""
    numbers = np.arange(first, first + steps + 1)
    observation = np.stack([numbers // 256, numbers % 256], -1).astype(np.uint8).reshape(-1, 1, 1, 2)
    return Episode(observation, numbers[:-1] % 7, numbers[:-1] / 10, terminated)


def number(observation: np.ndarray) -> np.ndarray:
    return observation.reshape(-1, 2)[:, 0].astype(int) * 256 + observation.reshape(-1, 2)[:, 1]


def make(capacity: int) -> EpisodeStore:
    return EpisodeStore(capacity, (1, 1, 2))


class Listener:
    """Records what it is told."""

    def __init__(self) -> None:
        self.present: list[int] = []

    def added(self, episode: int) -> None:
        self.present.append(episode)

    def evicted(self, episode: int) -> None:
        assert self.present.pop(0) == episode


def assert_stored(store: EpisodeStore, index: int, expected: Episode, task: int) -> None:
    slots = store.first[index] + np.arange(store.states[index])
    assert (store.observations(slots) == expected.observation).all()
    assert (store.action[slots[:-1]] == expected.action).all()
    np.testing.assert_allclose(store.reward[slots[:-1]], expected.reward, rtol=1e-6)
    assert store.terminated[slots[:-1]].tolist() == [False] * (len(slots) - 2) + [expected.terminated]
    assert len(set(store.keys_of(index).tolist())) == len(slots)
    assert store.task[index] == task


def test_equal_to_a_list_of_the_newest_episodes():
    """An episode that does not fit behind the last one goes to the front; what it overlaps with is evicted."""
    store, rng, listener = make(64), np.random.default_rng(1), Listener()
    store.listen(listener)
    twin: list[tuple[int, Episode, int]] = []  # first slot, episode, task
    head = first = 0
    for turn in range(300):
        steps = int(rng.integers(1, 20))
        new = episode(first, steps, terminated=bool(turn % 3))
        store.add(new, task=turn)
        begin = head if head + steps + 1 <= 64 else 0
        if begin != head:
            twin = [each for each in twin if each[0] < head]
        twin = [each for each in twin if not begin <= each[0] < begin + steps + 1]
        twin.append((begin, new, turn))
        head, first = begin + steps + 1, first + steps + 1
        assert listener.present == list(store.numbers())
        assert len(store) == len(twin)
        for index, (slot, expected, task) in zip(store.numbers(), twin, strict=True):
            assert store.first[index] == slot
            assert_stored(store, index, expected, task)


def test_an_episode_larger_than_everything_is_refused():
    with pytest.raises(ValueError, match="does not fit into a capacity of 10"):
        make(10).add(episode(0, 10))
    with pytest.raises(ValueError, match="no episodes yet"):
        make(10).random_episodes(1, np.random.default_rng(0))


def test_episodes_are_drawn_as_often_as_they_have_states():
    store, rng = make(200), np.random.default_rng(0)
    for index, steps in enumerate((9, 29, 59)):
        store.add(episode(100 * index, steps))
    counts = np.bincount(store.random_episodes(20_000, rng))
    np.testing.assert_allclose(counts / 20_000, [0.1, 0.3, 0.6], atol=0.02)


def test_another_episode_of_a_task_is_found_where_there_is_one():
    store, rng = make(200), np.random.default_rng(0)
    for index, task in enumerate((1, 2, 1, 1)):
        store.add(episode(100 * index, 5), task)
    assert {store.another_of_task(0, rng) for _ in range(50)} == {2, 3}
    assert store.another_of_task(1, rng) == NO_EPISODE


def walk(numbers: list[int]) -> Episode:
    """An episode over numbered states, which may repeat."""
    return Episode(
        np.array(numbers).reshape(-1, 1, 1, 1) * np.array([0, 1]),
        np.zeros(len(numbers) - 1),
        np.zeros(len(numbers) - 1),
        True,
    )


def visits(store: EpisodeStore, slot: int) -> set[int]:
    """All slots that are drawn as another visit."""
    rng = np.random.default_rng(0)
    return {store.another_visit(slot, rng) for _ in range(200)}


def test_other_visits_of_a_state_are_those_from_which_another_episode_went_on():
    store = make(50)
    for numbers in ([1, 2, 3, 2, 4], [2, 5, 2, 2], [6, 7, 8], [9, 2]):
        store.add(walk(numbers))
    assert visits(store, 1) == {5, 7}  # not those of its own episode, and not the last ones
    assert visits(store, 5) == {1, 3}
    assert visits(store, 8) == {1, 3}  # the last state of an episode may be asked for
    assert visits(store, 10) == {10}  # nobody else was there
    assert visits(store, 0) == {0}


def test_other_visits_are_equally_likely():
    store, rng = make(50), np.random.default_rng(0)
    for numbers in ([1, 2], [1, 3, 1, 4], [5, 1, 6]):
        store.add(walk(numbers))
    counts = np.bincount([store.another_visit(0, rng) for _ in range(3_000)], minlength=9)
    assert set(np.flatnonzero(counts)) == {2, 4, 7}
    np.testing.assert_allclose(counts[[2, 4, 7]] / 3_000, 1 / 3, atol=0.04)


def test_episodes_that_left_are_not_visited():
    """Against a list of all slots, while episodes come and go."""
    store, rng = make(40), np.random.default_rng(0)
    for _ in range(60):
        store.add(walk(rng.integers(6, size=int(rng.integers(2, 9))).tolist()))
        slots = {
            int(store.first[each] + index): (each, key, index + 1 < store.states[each])
            for each in store.numbers()
            for index, key in enumerate(store.keys_of(each).tolist())
        }
        assert store.episode_of(np.array(list(slots))).tolist() == [each for each, _, _ in slots.values()]
        slot = int(rng.choice(list(slots)))
        own, state, _ = slots[slot]
        others = {at for at, (each, key, goes_on) in slots.items() if each != own and key == state and goes_on}
        assert visits(store, slot) == (others or {slot})


def test_states_are_compared_by_the_environments_key():
    store = EpisodeStore(50, (1, 1, 2), lambda observation: observation[..., 0, 0, 1].astype(np.int64) % 3)
    store.add(episode(0, 5))
    assert store.keys_of(0).tolist() == [0, 1, 2, 0, 1, 2]


def test_contexts_are_of_the_same_episode():
    store, rng = make(1000), np.random.default_rng(0)
    for index in range(4):
        store.add(episode(100 * (index + 1), 20))
    described, context = map(number, sample_contexts(store, 5000, rng))
    assert (described // 100 == context // 100).all()
    assert set(described) == set(context) == {100 * (i + 1) + step for i in range(4) for step in range(20)}


def test_a_saved_store_continues_exactly():
    store, other, rng = make(64), make(64), np.random.default_rng(0)
    for index in range(20):
        store.add(episode(index * 30, int(rng.integers(1, 20))), task=index % 3)
    other.load_state_dict(store.state_dict())
    for index in range(20):
        for which in (store, other):
            which.add(episode(index * 30, 1 + index % 15), task=index % 3)
        one, two = (which.random_episodes(16, np.random.default_rng(index)) for which in (store, other))
        assert (one == two).all()
        assert list(store.numbers()) == list(other.numbers())
    mine, its = store.state_dict(), other.state_dict()
    assert mine.pop("counters") == its.pop("counters")
    for name, column in mine.items():
        np.testing.assert_array_equal(column, its[name])


def test_only_what_was_used_is_saved():
    store = EpisodeStore(1_000_000, (12, 12, 2))
    store.add(Episode(np.zeros((3, 12, 12, 2), np.uint8), np.zeros(2), np.zeros(2), True))
    assert sum(value.nbytes for value in store.state_dict().values() if isinstance(value, np.ndarray)) < 1500


def test_a_store_contains_the_states_of_its_episodes():
    """Against a set of all keys, while episodes come and go."""
    store, rng = make(40), np.random.default_rng(0)
    asked = content_keys(walk(list(range(30))).observation.astype(np.uint8))[np.r_[rng.permutation(30), 3, 3]]
    for _ in range(60):
        store.add(walk(rng.integers(30, size=int(rng.integers(2, 9))).tolist()))
        there = {int(key) for number in store.numbers() for key in store.keys_of(number)}
        assert store.contains(asked.reshape(2, -1)).ravel().tolist() == [int(key) in there for key in asked]
    assert not store.contains(np.array([12345])).any()
    assert make(4).contains(asked).sum() == 0
