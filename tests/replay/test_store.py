import numpy as np
import pytest
from scipy.stats import chisquare

from skipper.agents.learning_core import Experience
from skipper.config import ReplayConfig
from skipper.presets import DEBUG
from skipper.replay.episodes import Episode, EpisodeBuilder
from skipper.replay.store import Pairs, Replay
from skipper.types import EnvironmentSpec, Transition


def episode(first: int, steps: int, terminated: bool = True) -> Episode:
    """States are numbered, so that every sample can be recognised: state n, action n, reward n / 10."""
    numbers = np.arange(first, first + steps + 1)
    observation = np.stack([numbers // 256, numbers % 256], -1).astype(np.uint8).reshape(-1, 1, 1, 2)
    return Episode(observation, numbers[:-1] % 7, numbers[:-1] / 10, terminated)


def number(observation: np.ndarray) -> np.ndarray:
    return observation.reshape(-1, 2)[:, 0].astype(int) * 256 + observation.reshape(-1, 2)[:, 1]


def replay(**fields) -> Replay:
    return Replay(ReplayConfig(**fields), (1, 1, 2))


def test_samples_are_whole_transitions_with_targets_of_their_episode():
    buffer, rng = replay(capacity=1000), np.random.default_rng(0)
    bounds = {}
    for index, steps in enumerate((5, 9, 1, 30)):
        first = 100 * (index + 1)
        buffer.add(episode(first, steps, terminated=index != 1), rng)
        bounds[index + 1] = (first, first + steps)
    batch = buffer.sample(2000, 0.4, rng)
    state, after, target = number(batch.observation), number(batch.next_observation), number(batch.target)
    assert (after == state + 1).all()
    assert (batch.action == state % 7).all()
    np.testing.assert_allclose(batch.reward, state / 10, rtol=1e-6)
    assert (target != state).all()
    for row in range(2000):
        first, last = bounds[state[row] // 100]
        assert first <= target[row] <= last
        assert batch.terminated[row] == (after[row] == last and state[row] // 100 != 2)
    assert set(state) == {n for first, last in bounds.values() for n in range(first, last)}


def test_without_hindsight_every_transition_is_one_sample():
    buffer, rng = replay(capacity=100, targets=0), np.random.default_rng(0)
    buffer.add(episode(0, 20), rng)
    assert len(buffer) == 20
    assert set(number(buffer.sample(500, 0.4, rng).observation)) == set(range(20))


def test_memory_of_a_sample():
    assert Replay(ReplayConfig(capacity=1000), (12, 12, 2)).bytes_per_sample <= 32


@pytest.mark.parametrize("targets", [0, 3])
def test_the_oldest_episodes_make_room(targets):
    """Against a list: after any number of additions exactly the newest episodes are there, and all their samples."""
    buffer, rng = replay(capacity=64, targets=targets), np.random.default_rng(1)
    first = 0
    for _ in range(300):
        steps = int(rng.integers(1, 20))
        buffer.add(episode(first, steps), rng)
        first += steps + 1
        batch = buffer.sample(400, 0.4, rng)
        state, target = number(batch.observation), number(batch.target)
        assert (number(batch.next_observation) == state + 1).all()
        assert state.min() >= first - 64
        assert (abs(target - state) < 20).all()
        kept = set(range(first - steps - 1, first - 1))
        if not targets:  # with hindsight, a transition whose draws were all its own start has no sample
            assert kept <= set(state)
        pairs = buffer.sample_pairs(rng, 0.9)
        assert number(pairs.observation).min() >= first - 64
    # The ring is nearly full all the time: at most one episode's length is wasted at its end.
    assert buffer.episodes >= (64 - 2 * 20) // 20


@pytest.mark.parametrize(("endings", "least", "most"), [(1.0, 1.0, 1.0), (0.5, 0.45, 0.62), (0.0, 0.0, 0.12)])
def test_a_share_of_the_windows_ends_with_the_episode(endings, least, most):
    buffer = replay(capacity=400, pair_episodes=4, pair_transitions=5, pair_endings=endings)
    rng = np.random.default_rng(0)
    for index in range(4):
        buffer.add(episode(100 * index, 50), rng)
    ends = []
    for _ in range(100):
        pairs = buffer.sample_pairs(rng, 0.9)
        source = number(pairs.observation)[pairs.source]
        for row in range(4):
            of_window = source[pairs.episode[pairs.source] == row]
            ends.append(of_window.max() % 100 == 49)
    assert least <= np.mean(ends) <= most


def test_an_episode_larger_than_everything_is_refused():
    with pytest.raises(ValueError, match="does not fit into a capacity of 10"):
        replay(capacity=10).add(episode(0, 10), np.random.default_rng(0))
    with pytest.raises(ValueError, match="no samples yet"):
        replay(capacity=10).sample(1, 0.4, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no episodes yet"):
        replay(capacity=10).sample_pairs(np.random.default_rng(0), 0.9)


def test_priorities_and_importance_weights():
    buffer, rng = replay(capacity=10, targets=0, alpha=0.5), np.random.default_rng(0)
    buffer.add(episode(0, 2), rng)
    batch = buffer.sample(2, 0.4, rng)
    assert sorted(batch.places) == [0, 1]
    buffer.update(np.array([0, 1]), np.array([9.0, 1.0]))  # probabilities 3/4 and 1/4
    batch = buffer.sample(40_000, 0.5, rng)
    counts = np.bincount(batch.places)
    assert chisquare(counts, [30_000, 10_000]).pvalue > 1e-3
    # (2 * 3/4) ** -0.5 and (2 * 1/4) ** -0.5, over the larger of them
    np.testing.assert_allclose(batch.weight[batch.places == 0], (1 / 3) ** 0.5, rtol=1e-4)
    np.testing.assert_allclose(batch.weight[batch.places == 1], 1.0)


def test_new_samples_get_the_highest_priority_seen():
    buffer, rng = replay(capacity=100, targets=0), np.random.default_rng(0)
    buffer.add(episode(0, 10), rng)
    buffer.update(np.arange(10), np.full(10, 0.01))
    buffer.update(np.array([3]), np.array([50.0]))
    buffer.update(np.array([3]), np.array([0.01]))
    buffer.add(episode(50, 1), rng)
    assert (number(buffer.sample(200, 0.4, rng).observation) == 50).mean() > 0.9


def test_uniform_sampling_ignores_losses():
    buffer, rng = replay(capacity=100, targets=0, prioritized=False), np.random.default_rng(0)
    buffer.add(episode(0, 4), rng)
    buffer.update(np.arange(4), np.array([1.0, 100.0, 0.0, 5.0]))
    batch = buffer.sample(4000, 0.4, rng)
    assert chisquare(np.bincount(batch.places)).pvalue > 1e-3
    assert (batch.weight == 1).all()


def pairs_of(episodes: list[tuple[int, Episode]], **fields) -> Pairs:
    """All pairs of many draws from a buffer that holds ``episodes``, in numbers instead of indices."""
    buffer, rng = replay(capacity=1000, **fields), np.random.default_rng(0)
    for task, each in episodes:
        buffer.add(each, rng, task)
    drawn = []
    for _ in range(200):
        pairs = buffer.sample_pairs(rng, 0.9)
        states = number(pairs.observation)
        assert len(set(zip(states.tolist(), pairs.episode.tolist(), strict=True))) == len(states)  # each state once
        drawn.append(pairs._replace(**{name: states[getattr(pairs, name)] for name in ("source", "next", "target")}))
    joined = (np.concatenate([getattr(pairs, name) for pairs in drawn]) for name in Pairs._fields)
    return Pairs(*joined)


def test_pairs_cross_a_window_of_transitions_with_targets_of_their_episode():
    episodes = [(1, episode(100, 8)), (2, episode(200, 40, terminated=False)), (3, episode(300, 1))]
    pairs = pairs_of(episodes, pair_episodes=4, pair_transitions=5, pair_targets=3)
    assert (pairs.next == pairs.source + 1).all()
    assert (pairs.source != pairs.target).all()
    assert (pairs.source // 100 == pairs.target // 100).all()
    assert (pairs.action == pairs.source % 7).all()
    np.testing.assert_allclose(pairs.reward, pairs.source / 10, rtol=1e-6)
    assert (pairs.reached == (pairs.next == pairs.target)).all()
    assert (pairs.terminated == np.isin(pairs.next, (108, 301))).all()
    later = pairs.target > pairs.source
    assert (pairs.steps[later] == (pairs.target - pairs.source)[later]).all()
    assert np.isinf(pairs.steps[~later]).all()
    ways = zip(pairs.source[later].tolist(), pairs.target[later].tolist(), strict=True)
    gains = [sum(0.9 ** (on - begin) * on / 10 for on in range(begin, end)) for begin, end in ways]
    np.testing.assert_allclose(pairs.gain[later], gains, rtol=1e-5)
    assert (pairs.gain[~later] == -np.inf).all()
    found = set(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True))
    assert found >= {(s, t) for s in range(100, 108) for t in range(100, 109) if s != t}


def test_few_states_make_many_pairs():
    buffer, rng = replay(capacity=100, pair_episodes=4, pair_transitions=6, pair_targets=4), np.random.default_rng(0)
    buffer.add(episode(0, 60), rng)
    pairs = buffer.sample_pairs(rng, 0.9)
    assert len(pairs.observation) <= 4 * (7 + 4)
    assert len(pairs.source) > 3.5 * len(pairs.observation)


def test_steps_count_to_the_first_of_equal_states_and_a_loop_is_no_target():
    numbers = np.array([0, 1, 2, 1, 0, 3])
    observation = np.stack([numbers * 0, numbers], -1).astype(np.uint8).reshape(-1, 1, 1, 2)
    loop = Episode(observation, np.arange(5), np.zeros(5), True)
    pairs = pairs_of([(1, loop)], pair_episodes=1, pair_transitions=5, pair_targets=1)
    pairs_columns = (pairs.source, pairs.action, pairs.target, pairs.steps)
    first = {(s, a, t): steps for s, a, t, steps in zip(*pairs_columns, strict=True)}
    assert first[0, 0, 1] == 1.0
    assert first[2, 2, 0] == 2.0
    assert first[0, 0, 3] == 5.0
    assert first[0, 4, 3] == 1.0
    assert np.isinf(first[0, 4, 2])
    assert not any(s == t for s, _, t in first)


def test_some_targets_come_from_other_episodes_of_the_same_task():
    episodes = [(1, episode(100, 20)), (1, episode(150, 20)), (2, episode(200, 20)), (-1, episode(300, 20))]
    pairs = pairs_of(episodes, pair_episodes=3, pair_transitions=3, pair_targets=4, other_episodes=0.5)
    assert (pairs.source // 100 == pairs.target // 100).all()
    foreign = (pairs.source // 50) != (pairs.target // 50)
    assert 0.1 < foreign[pairs.source // 100 == 1].mean() < 0.5
    assert np.isinf(pairs.steps[foreign]).all()


def test_contexts_are_of_the_same_episode():
    buffer, rng = replay(capacity=1000), np.random.default_rng(0)
    for index in range(4):
        buffer.add(episode(100 * (index + 1), 20), rng)
    described, context = map(number, buffer.sample_contexts(5000, rng))
    assert (described // 100 == context // 100).all()
    assert set(described) == set(context) == {100 * (i + 1) + step for i in range(4) for step in range(20)}


def test_a_saved_buffer_continues_exactly():
    rng = np.random.default_rng(0)
    buffer = replay(capacity=64)
    for index in range(20):
        buffer.add(episode(index * 30, int(rng.integers(1, 20))), rng)
        batch = buffer.sample(8, 0.4, rng)
        buffer.update(batch.places, rng.random(8))
    other = replay(capacity=64)
    other.load_state_dict(buffer.state_dict())
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    for index in range(20):
        for which, stream in ((buffer, one), (other, two)):
            which.add(episode(index * 30, 1 + index % 15), stream)
        left, right = buffer.sample(16, 0.4, one), other.sample(16, 0.4, two)
        for name in left._fields:
            assert (getattr(left, name) == getattr(right, name)).all(), name
        buffer.update(left.places, left.weight)
        other.update(right.places, right.weight)
        for mine, its in zip(buffer.sample_pairs(one, 0.9), other.sample_pairs(two, 0.9), strict=True):
            assert (mine == its).all()


def test_only_what_was_used_is_saved():
    buffer = Replay(ReplayConfig(capacity=1_000_000), (12, 12, 2))
    buffer.add(Episode(np.zeros((3, 12, 12, 2), np.uint8), np.zeros(2), np.zeros(2), True), np.random.default_rng(0))
    assert sum(value.nbytes for value in buffer.state_dict().values() if isinstance(value, np.ndarray)) < 2000


def transition(states, terminated, truncated) -> Transition:
    observation = np.array(states, np.uint8).reshape(-1, 1, 1, 1)
    ends = np.array(terminated), np.array(truncated)
    return Transition(observation, np.array(states), np.array(states) / 2, observation + 1, *ends)


def test_episodes_are_handed_out_as_they_end():
    builder = EpisodeBuilder(2, 5, (1, 1, 1))
    assert builder.append(transition([10, 20], [False, False], [False, False])) == []
    (ended,) = builder.append(transition([11, 21], [True, False], [False, False]))
    assert ended.observation.reshape(-1).tolist() == [10, 11, 12]
    assert ended.action.tolist() == [10, 11]
    assert ended.reward.tolist() == [5.0, 5.5]
    assert ended.terminated
    one, two = builder.append(transition([50, 22], [True, False], [False, True]))
    assert one.observation.reshape(-1).tolist() == [50, 51]
    assert two.observation.reshape(-1).tolist() == [20, 21, 22, 23]
    assert not two.terminated


def test_episodes_under_way_are_saved():
    builder, other = EpisodeBuilder(1, 5, (1, 1, 1)), EpisodeBuilder(1, 5, (1, 1, 1))
    builder.append(transition([3], [False], [False]))
    other.load_state_dict(builder.state_dict())
    (ended,) = other.append(transition([4], [True], [False]))
    assert ended.observation.reshape(-1).tolist() == [3, 4, 5]


def test_longer_episodes_than_announced_are_refused():
    builder = EpisodeBuilder(1, 2, (1, 1, 1))
    builder.append(transition([0], [False], [False]))
    builder.append(transition([1], [False], [False]))
    with pytest.raises(ValueError, match="longer than the 2 steps"):
        builder.append(transition([2], [False], [False]))


def test_the_strategy_reaches_the_samples():
    buffer, rng = replay(capacity=200, strategy="future"), np.random.default_rng(0)
    buffer.add(episode(0, 50), rng)
    batch = buffer.sample(500, 0.4, rng)
    assert (number(batch.target) > number(batch.observation)).all()


def test_a_loss_of_zero_leaves_a_sample_drawable_and_rounding_below_zero_does_no_harm():
    buffer, rng = replay(capacity=50, targets=0), np.random.default_rng(0)
    buffer.add(episode(0, 4), rng)
    buffer.update(np.arange(4), np.array([0.0, -1e-7, -1e-5, 0.0]))
    batch = buffer.sample(400, 0.4, rng)
    assert set(batch.places) == {0, 1, 2, 3}
    assert np.isfinite(batch.weight).all()


def test_ends_of_overwritten_episodes_are_forgotten():
    buffer, rng = replay(capacity=30, targets=0), np.random.default_rng(0)
    for index in range(40):
        buffer.add(episode(index * 40, int(rng.integers(1, 12)), terminated=True), rng)
    for index in range(10):
        buffer.add(episode(2000 + index * 40, 11, terminated=False), rng)
    batch = buffer.sample(500, 0.4, rng)
    assert not batch.terminated.any()


def test_experience_under_way_and_its_random_stream_are_saved():
    spec = EnvironmentSpec((1, 1, 1), (256,), 4, 5)
    one, two = (Experience(DEBUG, spec, ReplayConfig(capacity=100)) for _ in range(2))
    count = DEBUG.environments
    step = lambda start, end: transition([start] * count, [end] * count, [False] * count)  # noqa: E731
    for state in range(5):
        one.append(step(state, state == 4))
    one.append(step(10, False))
    two.load_state_dict(one.state_dict())
    for which in (one, two):
        for state in (11, 12, 13):
            which.append(step(state, state == 13))
    left, right = (which.replay.state_dict() for which in (one, two))
    assert (left["sample"] == right["sample"]).all()
    assert (left["rows"] == right["rows"]).all()
