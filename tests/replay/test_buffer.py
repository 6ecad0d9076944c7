import numpy as np
import pytest
from scipy.stats import chisquare

from skipper.agents.base import Experience
from skipper.config import ReplayConfig
from skipper.presets import DEBUG
from skipper.replay.buffer import Replay
from skipper.replay.episodes import Episode, EpisodeBuilder
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
        pairs = buffer.sample_pairs(3, 4, 4, rng)
        assert number(pairs.observation).min() >= first - 64
    # The ring is nearly full all the time: at most one episode's length is wasted at its end.
    assert buffer.episodes >= (64 - 2 * 20) // 20


def test_an_episode_larger_than_everything_is_refused():
    with pytest.raises(ValueError, match="does not fit into a capacity of 10"):
        replay(capacity=10).add(episode(0, 10), np.random.default_rng(0))
    with pytest.raises(ValueError, match="no samples yet"):
        replay(capacity=10).sample(1, 0.4, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no episodes yet"):
        replay(capacity=10).sample_pairs(1, 1, 1, np.random.default_rng(0))


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


def test_pairs_cross_transitions_and_targets_of_one_episode():
    buffer, rng = replay(capacity=1000), np.random.default_rng(0)
    for index, steps in enumerate((8, 40, 1)):
        buffer.add(episode(100 * (index + 1), steps, terminated=index == 0), rng)
    seen = set()
    for _ in range(60):
        pairs = buffer.sample_pairs(4, 5, 6, rng)
        states = number(pairs.observation)
        source, after, target = states[pairs.source], states[pairs.next], states[pairs.target]
        assert len(pairs.source) <= 4 * 5 * 6
        assert (after == source + 1).all()
        assert (source != target).all()
        assert (source // 100 == target // 100).all()
        assert (pairs.action == source % 7).all()
        np.testing.assert_allclose(pairs.reward, source / 10, rtol=1e-6)
        assert (pairs.reached == (after == target)).all()
        assert (pairs.terminated == (after == 108)).all()
        # Far fewer states than pairs: each is there once per episode that was drawn.
        assert len(states) <= 4 * (2 * 5 + 6)
        seen |= set(zip(source.tolist(), target.tolist(), strict=True))
    everything = {(s, t) for s in range(100, 108) for t in range(100, 109) if s != t}
    assert everything <= seen


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
        for mine, its in zip(buffer.sample_pairs(2, 3, 3, one), other.sample_pairs(2, 3, 3, two), strict=True):
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
