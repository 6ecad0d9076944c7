import numpy as np
import pytest

from skipper.replay.episodes import Episode
from skipper.replay.store import EpisodeStore
from skipper.replay.windows import WindowConfig, WindowSampler


def episode(states: list[int], rewards: list[float], terminated: bool = True) -> Episode:
    """An episode through numbered states, whose actions are the numbers of the states that they lead to."""
    numbers = np.array(states, np.uint8)
    return Episode(numbers.reshape(-1, 1, 1, 1), numbers[1:].astype(np.int64), np.array(rewards), terminated)


def sampler(*episodes: Episode, **settings) -> WindowSampler:
    store = EpisodeStore(100, (1, 1, 1))
    found = WindowSampler(store, WindowConfig(capacity=100, **settings), discount=0.5)
    assert not found.ready()
    for number, each in enumerate(episodes):
        store.add(each, task=number)
    return found


def test_a_window_holds_consecutive_transitions_and_each_state_once():
    # The third state equals the first, as where a wall stopped the agent's way back.
    drawn = sampler(episode([1, 2, 1, 3, 4], [0, 0, 0, 1]), window_episodes=3, window_transitions=9)
    assert drawn.ready()
    batch = drawn.sample(np.random.default_rng(0))
    assert sorted(batch.observation.ravel()) == [1, 2, 3, 4]
    numbers = batch.observation.ravel()
    assert numbers[batch.source].tolist() == [1, 2, 1, 3] * 3
    assert numbers[batch.next].tolist() == [2, 1, 3, 4] * 3
    assert batch.action.tolist() == [2, 1, 3, 4] * 3
    assert batch.reward.tolist() == [0, 0, 0, 1] * 3
    assert batch.terminated.tolist() == [False, False, False, True] * 3
    assert batch.collected.tolist() == pytest.approx([0.125, 0.25, 0.5, 1.0] * 3)
    assert batch.task.tolist() == [0] * 4


def test_what_an_episode_collects_includes_rewards_after_the_window():
    drawn = sampler(
        episode(list(range(10, 31)), [0] * 16 + [1, 0, 0, 1], False), window_episodes=50, window_transitions=2
    )
    batch = drawn.sample(np.random.default_rng(0))
    start = batch.observation.ravel()[batch.source].astype(int) - 10
    expected = np.where(start <= 16, 0.5 ** (16.0 - start), 0.0) + 0.5 ** (19.0 - start)
    np.testing.assert_allclose(batch.collected, expected, rtol=1e-6)
    assert not batch.terminated.any()
    assert len(np.unique(start)) > 10


@pytest.mark.parametrize(("endings", "least", "most"), [(0.0, 0.0, 0.15), (0.5, 0.4, 0.65), (1.0, 1.0, 1.0)])
def test_a_share_of_the_windows_ends_with_its_episode(endings, least, most):
    drawn = sampler(
        episode(list(range(31)), [0] * 30), window_episodes=400, window_transitions=3, window_endings=endings
    )
    batch = drawn.sample(np.random.default_rng(1))
    assert least <= batch.terminated.sum() / 400 <= most


def test_where_tasks_are_unknown_every_state_has_a_number_of_its_own():
    store = EpisodeStore(100, (1, 1, 1))
    store.add(episode([1, 2, 3], [0, 0]))
    batch = WindowSampler(store, WindowConfig(capacity=100, window_episodes=4), 0.5).sample(np.random.default_rng(0))
    assert len(np.unique(batch.task)) == len(batch.observation) == 3


def test_states_carry_the_task_of_their_episode():
    drawn = sampler(episode([1, 2], [0]), episode([3, 4], [0]), window_episodes=40, window_transitions=4)
    batch = drawn.sample(np.random.default_rng(0))
    assert dict(zip(batch.observation.ravel().tolist(), batch.task.tolist(), strict=True)) == {1: 0, 2: 0, 3: 1, 4: 1}


@pytest.mark.parametrize(("rewarded", "least", "most"), [(0.0, 0.02, 0.2), (0.5, 0.45, 0.68), (1.0, 1.0, 1.0)])
def test_a_share_of_the_windows_at_endings_ends_with_a_reward(rewarded, least, most):
    """The one rewarded episode is short, so that it is hardly ever drawn by its length."""
    plain = [episode([10 * row + step for step in range(10)], [0.0] * 9, terminated=False) for row in range(1, 4)]
    short = episode([1, 2, 3], [0.0, 1.0])
    settings = {"window_episodes": 2, "window_transitions": 2, "window_endings": 1.0}
    drawn = sampler(*plain, short, window_rewarded=rewarded, **settings)
    rng, found = np.random.default_rng(0), []
    for _ in range(200):
        batch = drawn.sample(rng)
        found += [batch.reward[batch.action == 3].size, len(batch.action) // 2 - batch.reward[batch.action == 3].size]
    assert least <= sum(found[::2]) / sum(found) <= most


def test_where_no_episode_ended_with_a_reward_any_will_do():
    early = episode([1, 2, 3], [1.0, 0.0])  # a reward, but not at the end
    settings = {"window_episodes": 2, "window_transitions": 2, "window_endings": 1.0, "window_rewarded": 1.0}
    batch = sampler(early, **settings).sample(np.random.default_rng(0))
    assert sorted(batch.reward) == [0.0, 0.0, 1.0, 1.0]
