"""Hindsight samples by priority, against a list of them."""

import numpy as np
import pytest
from scipy.stats import chisquare

from skipper.config import ReplayConfig
from skipper.replay.episodes import Episode
from skipper.replay.prioritized import PrioritizedSampler
from skipper.replay.relabel import HindsightConfig
from skipper.replay.store import EpisodeStore


def episode(first: int, steps: int, terminated: bool = True) -> Episode:
    """States are numbered, so that each can be recognised: state n, action n % 7, reward n / 10."""
    numbers = np.arange(first, first + steps + 1)
    observation = np.stack([numbers // 256, numbers % 256], -1).astype(np.uint8).reshape(-1, 1, 1, 2)
    return Episode(observation, numbers[:-1] % 7, numbers[:-1] / 10, terminated)


def number(observation: np.ndarray) -> np.ndarray:
    return observation.reshape(-1, 2)[:, 0].astype(int) * 256 + observation.reshape(-1, 2)[:, 1]


def make(seed: int = 0, hindsight: bool = True, **fields) -> tuple[EpisodeStore, PrioritizedSampler]:
    config = HindsightConfig(**fields) if hindsight else ReplayConfig(**fields)
    store = EpisodeStore(config.capacity, (1, 1, 2))
    return store, PrioritizedSampler(store, config, np.random.default_rng(seed))


def test_samples_are_whole_transitions_with_targets_of_their_episode():
    (store, sampler), rng = make(capacity=1000), np.random.default_rng(0)
    bounds = {}
    for index, steps in enumerate((5, 9, 1, 30)):
        first = 100 * (index + 1)
        store.add(episode(first, steps, terminated=index != 1))
        bounds[index + 1] = (first, first + steps)
    batch = sampler.sample(2000, 0.4, rng)
    state, after, target = number(batch.observation), number(batch.next_observation), number(batch.target)
    assert (after == state + 1).all()
    assert (batch.action == state % 7).all()
    np.testing.assert_allclose(batch.reward, state / 10, rtol=1e-6)
    assert (target != state).all()
    assert (batch.reached == (target == after)).all()
    for row in range(2000):
        first, last = bounds[state[row] // 100]
        assert first <= target[row] <= last
        assert batch.terminated[row] == (after[row] == last and state[row] // 100 != 2)
    assert set(state) == {n for first, last in bounds.values() for n in range(first, last)}


class NaiveSampler:
    """Samples in a dictionary by leaf, of a store of 64 states; the priority of a loss is (loss + 1e-6) ** 0.6."""

    def __init__(self, targets: int, rng: np.random.Generator) -> None:
        self.targets, self.rng, self.greatest, self.head = targets, rng, 1.0, 0
        self.leaves = 64 * max(targets, 1)
        self.samples: dict[int, tuple[int, int]] = {}  # leaf to the numbers of state and target
        self.priorities: dict[int, float] = {}

    def add(self, first: int, steps: int) -> None:
        for begin in range(steps):
            for target in self.relabel(steps, begin):
                self.samples[self.head] = first + begin, first + target
                self.priorities[self.head] = (self.greatest + 1e-6) ** 0.6
                self.head = (self.head + 1) % self.leaves

    def relabel(self, steps: int, begin: int) -> list[int]:
        if not self.targets:
            return [begin + 1]
        others = [state for state in range(steps + 1) if state != begin]
        drawn = [others[int(unit * len(others))] for unit in self.rng.random(self.targets)]
        return list(dict.fromkeys(drawn))

    def keep(self, oldest: int) -> None:
        """Forget the samples of states before ``oldest``."""
        for leaf in [leaf for leaf, (state, _) in self.samples.items() if state < oldest]:
            del self.samples[leaf], self.priorities[leaf]

    def sample(self, batch: int, beta: float, rng: np.random.Generator) -> tuple[list[int], np.ndarray]:
        power = 1
        while power < self.leaves:
            power *= 2
        order = np.roll(np.arange(self.leaves), self.leaves - power)  # the deepest leaves come first
        mass = np.array([self.priorities.get(int(leaf), 0.0) for leaf in order])
        wanted = (np.arange(batch) + rng.random(batch)) / batch * mass.sum()
        drawn = [int(order[index]) for index in np.searchsorted(np.cumsum(mass), wanted, side="right")]
        share = np.array([self.priorities[leaf] for leaf in drawn]) / mass.sum()
        weight = (len(self.samples) * share) ** -beta
        return drawn, weight / weight.max()

    def update(self, leaves: np.ndarray, losses: np.ndarray) -> None:
        self.greatest = max(self.greatest, losses.max())
        for leaf, loss in zip(leaves.tolist(), losses, strict=True):
            self.priorities[leaf] = (loss + 1e-6) ** 0.6


@pytest.mark.parametrize("targets", [0, 3])
def test_equal_to_the_naive_twin(targets):
    store, sampler = make(3, capacity=64, **({"targets": targets} if targets else {"hindsight": False}))
    twin, rng, first = NaiveSampler(targets, np.random.default_rng(3)), np.random.default_rng(1), 0
    for turn in range(200):
        steps = int(rng.integers(1, 20))
        store.add(episode(first, steps))
        oldest = int(number(store.observations(store.first[[next(store.numbers())]]))[0])
        twin.keep(oldest)
        twin.add(first, steps)
        first += steps + 1
        assert len(sampler) == len(twin.samples)
        batch = sampler.sample(40, 0.4, np.random.default_rng(turn))
        leaf, weight = twin.sample(40, 0.4, np.random.default_rng(turn))
        assert batch.leaf.tolist() == leaf
        np.testing.assert_allclose(batch.weight, weight, rtol=1e-5)
        pairs = zip(number(batch.observation).tolist(), number(batch.target).tolist(), strict=True)
        assert list(pairs) == [twin.samples[each] for each in leaf]
        assert (number(batch.next_observation) == number(batch.observation) + 1).all()
        losses = np.random.default_rng([turn, 1]).random(8) * 3.0
        for which in (sampler.update_priorities, twin.update):
            which(batch.leaf[:8], losses)


def test_without_hindsight_every_transition_is_one_sample():
    (store, sampler), rng = make(capacity=100, hindsight=False), np.random.default_rng(0)
    assert not sampler.ready()
    store.add(episode(0, 20))
    assert sampler.ready()
    assert len(sampler) == 20
    batch = sampler.sample(500, 0.4, rng)
    assert set(number(batch.observation)) == set(range(20))
    assert batch.reached.all()


def test_memory_of_a_sample():
    config = HindsightConfig(capacity=1000)
    sampler = PrioritizedSampler(EpisodeStore(1000, (12, 12, 2)), config, np.random.default_rng(0))
    assert sampler.bytes_per_sample <= 32


def test_sampling_needs_samples():
    store, sampler = make(capacity=10)
    with pytest.raises(ValueError, match="no samples yet"):
        sampler.sample(1, 0.4, np.random.default_rng(0))
    store.add(episode(0, 1))
    with pytest.raises(AssertionError, match="every episode"):
        PrioritizedSampler(store, sampler.config, np.random.default_rng(0))


def test_priorities_and_importance_weights():
    (store, sampler), rng = make(capacity=10, hindsight=False, alpha=0.5), np.random.default_rng(0)
    store.add(episode(0, 2))
    batch = sampler.sample(2, 0.4, rng)
    assert sorted(batch.leaf) == [0, 1]
    sampler.update_priorities(np.array([0, 1]), np.array([9.0, 1.0]))  # probabilities 3/4 and 1/4
    batch = sampler.sample(40_000, 0.5, rng)
    counts = np.bincount(batch.leaf)
    assert chisquare(counts, [30_000, 10_000]).pvalue > 1e-3
    # (2 * 3/4) ** -0.5 and (2 * 1/4) ** -0.5, over the larger of them
    np.testing.assert_allclose(batch.weight[batch.leaf == 0], (1 / 3) ** 0.5, rtol=1e-4)
    np.testing.assert_allclose(batch.weight[batch.leaf == 1], 1.0)


def test_new_samples_get_the_highest_priority_seen():
    (store, sampler), rng = make(capacity=100, hindsight=False), np.random.default_rng(0)
    store.add(episode(0, 10))
    sampler.update_priorities(np.arange(10), np.full(10, 0.01))
    sampler.update_priorities(np.array([3]), np.array([50.0]))
    sampler.update_priorities(np.array([3]), np.array([0.01]))
    store.add(episode(50, 1))
    assert (number(sampler.sample(200, 0.4, rng).observation) == 50).mean() > 0.9


def test_a_store_that_was_cleared_begins_anew():
    store, sampler = make(capacity=100)
    store.add(episode(0, 5))
    sampler.update_priorities(np.arange(3), np.array([1.0, 50.0, 2.0]))
    store.clear()
    assert (len(store), len(sampler)) == (0, 0)
    store.add(episode(300, 4))
    batch = sampler.sample(50, 0.4, np.random.default_rng(0))
    assert set(number(batch.observation)) <= {300, 301, 302, 303}
    np.testing.assert_array_equal(batch.weight, 1.0)
    assert sampler._tree.total == pytest.approx(len(sampler))  # of 1 each, not of the greatest loss


def test_uniform_sampling_ignores_losses():
    (store, sampler), rng = make(capacity=100, hindsight=False, prioritized=False), np.random.default_rng(0)
    store.add(episode(0, 4))
    sampler.update_priorities(np.arange(4), np.array([1.0, 100.0, 0.0, 5.0]))
    batch = sampler.sample(4000, 0.4, rng)
    assert chisquare(np.bincount(batch.leaf)).pvalue > 1e-3
    assert (batch.weight == 1).all()


def test_a_saved_sampler_continues_exactly():
    rng = np.random.default_rng(0)
    store, sampler = make(capacity=64)
    for index in range(20):
        store.add(episode(index * 30, int(rng.integers(1, 20))))
        batch = sampler.sample(8, 0.4, rng)
        sampler.update_priorities(batch.leaf, rng.random(8))
    other_store, other = make(seed=9, capacity=64)
    other_store.load_state_dict(store.state_dict())
    other.load_state_dict(sampler.state_dict())
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    for index in range(20):
        for which in (store, other_store):
            which.add(episode(index * 30, 1 + index % 15))
        left, right = sampler.sample(16, 0.4, one), other.sample(16, 0.4, two)
        for name in left._fields:
            assert (getattr(left, name) == getattr(right, name)).all(), name
        sampler.update_priorities(left.leaf, left.weight)
        other.update_priorities(right.leaf, right.weight)


def test_only_what_was_used_is_saved():
    store, sampler = make(capacity=1_000_000)
    store.add(episode(0, 2))
    assert sum(value.nbytes for value in sampler.state_dict().values() if isinstance(value, np.ndarray)) < 200


def test_the_strategy_reaches_the_samples():
    (store, sampler), rng = make(capacity=200, strategy="future"), np.random.default_rng(0)
    store.add(episode(0, 50))
    batch = sampler.sample(500, 0.4, rng)
    assert (number(batch.target) > number(batch.observation)).all()


def test_a_loss_of_zero_leaves_a_sample_drawable_and_rounding_below_zero_does_no_harm():
    (store, sampler), rng = make(capacity=50, hindsight=False), np.random.default_rng(0)
    store.add(episode(0, 4))
    sampler.update_priorities(np.arange(4), np.array([0.0, -1e-7, -1e-5, 0.0]))
    batch = sampler.sample(400, 0.4, rng)
    assert set(batch.leaf) == {0, 1, 2, 3}
    assert np.isfinite(batch.weight).all()


def test_ends_of_overwritten_episodes_are_forgotten():
    (store, sampler), rng = make(capacity=30, hindsight=False), np.random.default_rng(0)
    for index in range(40):
        store.add(episode(index * 40, int(rng.integers(1, 12)), terminated=True))
    for index in range(10):
        store.add(episode(2000 + index * 40, 11, terminated=False))
    batch = sampler.sample(500, 0.4, rng)
    assert not batch.terminated.any()
