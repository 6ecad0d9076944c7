"""The sum tree against a list of numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from skipper.replay.sum_tree import SumTree


class NaiveTree:
    def __init__(self, capacity: int) -> None:
        self.leaves = np.zeros(capacity)

    def update(self, indices, priorities) -> None:
        for index, priority in zip(indices, priorities, strict=True):
            self.leaves[index] = priority

    def fill(self, first: int, count: int, priority: float) -> None:
        for offset in range(count):
            self.leaves[(first + offset) % len(self.leaves)] = priority

    def sample(self, units) -> list[int]:
        power = 1
        while power < len(self.leaves):
            power *= 2
        order = np.roll(np.arange(len(self.leaves)), len(self.leaves) - power)  # the deepest leaves come first
        sums = np.cumsum(self.leaves[order])
        masses = [(part + unit) / len(units) * sums[-1] for part, unit in enumerate(units)]
        return [int(order[np.searchsorted(sums, mass, side="right")]) for mass in masses]


@settings(max_examples=150, deadline=None)
@given(data=st.data(), capacity=st.integers(1, 40))
def test_equal_to_the_naive_twin(data, capacity):
    tree, twin = SumTree(capacity), NaiveTree(capacity)
    whole = st.integers(0, 8)  # whole numbers add without rounding, so that both must agree exactly
    for _ in range(data.draw(st.integers(1, 12))):
        if data.draw(st.booleans()):
            first, count = data.draw(st.integers(0, capacity - 1)), data.draw(st.integers(0, capacity))
            priority = float(data.draw(whole))
            tree.fill(first, count, priority)
            twin.fill(first, count, priority)
        else:
            indices = data.draw(st.lists(st.integers(0, capacity - 1), min_size=1, max_size=6))
            priorities = [float(data.draw(whole)) for _ in indices]
            tree.update(np.array(indices), np.array(priorities))
            twin.update(indices, priorities)
        assert tree.total == twin.leaves.sum()
        assert (tree.priorities(np.arange(capacity)) == twin.leaves).all()
    if tree.total > 0:
        units = np.array(data.draw(st.lists(st.integers(0, 63), min_size=1, max_size=8))) / 64
        assert tree.sample(units).tolist() == twin.sample(units)


def test_samples_follow_the_priorities():
    tree = SumTree(5)
    tree.update(np.arange(5), np.array([1.0, 0.0, 3.0, 2.0, 4.0]))
    drawn = tree.sample(np.random.default_rng(0).random(100_000))
    counts = np.bincount(drawn, minlength=5)
    assert counts[1] == 0
    assert chisquare(counts[[0, 2, 3, 4]], 10_000 * np.array([1.0, 3, 2, 4])).pvalue > 1e-3


def test_what_has_no_priority_is_never_drawn_whatever_the_rounding():
    tree = SumTree(1000)
    rng = np.random.default_rng(0)
    tree.update(np.arange(0, 1000, 2), rng.random(500) * 1e-3 + 1e-9)
    for _ in range(200):
        drawn = tree.sample(np.concatenate([rng.random(62), [0.0, np.nextafter(1, 0)]]))
        assert (drawn % 2 == 0).all()


def test_a_saved_tree_continues_exactly():
    tree, rng = SumTree(100), np.random.default_rng(0)
    tree.update(rng.integers(100, size=300), rng.random(300))
    other = SumTree(100)
    other.fill(0, 100, 9.0)
    other.load_state_dict(tree.state_dict(100))
    units = rng.random(50)
    assert (other.sample(units) == tree.sample(units)).all()
    assert other.total == tree.total


def test_shapes_are_checked():
    with pytest.raises(AssertionError):
        SumTree(4).update(np.arange(3), np.ones(1))


def test_rounding_at_the_very_end_does_not_lead_into_an_empty_half():
    tree = SumTree(2)
    tree.update(np.array([0]), np.array([0.3]))
    assert (tree.sample(np.full(64, np.nextafter(1, 0))) == 0).all()
