"""Priorities in a binary tree whose nodes hold the sums of their children: O(log n) updates and samples."""

import numpy as np

from skipper.runtime.jit import kernel
from skipper.types import Array


@kernel
def _update(tree, leaves, indices, priorities):
    for position in range(len(indices)):
        node = leaves + indices[position]
        tree[node] = priorities[position]
        # Sums are recomputed from both children, so that rounding errors do not accumulate.
        while node > 1:
            node >>= 1
            tree[node] = tree[2 * node] + tree[2 * node + 1]


@kernel
def _fill(tree, leaves, first, end, priority):
    """Set the leaves ``first`` to ``end - 1`` to one priority, and recompute each sum above them once."""
    low, high = leaves + first, leaves + end
    tree[low:high] = priority
    while low > 1:
        low, high = low >> 1, ((high - 1) >> 1) + 1
        # Backwards, since leaves may lie on two levels: a node is recomputed after its children.
        for node in range(high - 1, low - 1, -1):
            if node < leaves:
                tree[node] = tree[2 * node] + tree[2 * node + 1]


@kernel
def _sum_up(tree, leaves):
    for node in range(leaves - 1, 0, -1):
        tree[node] = tree[2 * node] + tree[2 * node + 1]


@kernel
def _find(tree, leaves, masses, indices):
    for position in range(len(masses)):
        mass, node = masses[position], 1
        while node < leaves:
            node *= 2
            # The second condition keeps rounding errors from selecting an empty half.
            if mass >= tree[node] and tree[node + 1] > 0.0:
                mass -= tree[node]
                node += 1
        indices[position] = node - leaves


class SumTree:
    """``capacity`` priorities, zero at first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        # A heap: node i has the children 2i and 2i + 1, and the leaves are the last ``capacity`` of its nodes.
        self._tree = np.zeros(2 * capacity)

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return float(self._tree[1])

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return self._tree.nbytes

    def priorities(self, indices: Array) -> Array:
        """The priorities at ``indices``."""
        return self._tree[self.capacity + indices]

    def update(self, indices: Array, priorities: Array) -> None:
        """Set the priorities at ``indices`` (B,); the last one counts where an index is repeated."""
        assert indices.shape == priorities.shape, (indices.shape, priorities.shape)
        _update(self._tree, self.capacity, indices, priorities)

    def fill(self, first: int, count: int, priority: float) -> None:
        """Set ``count`` consecutive priorities from ``first``, wrapping around, to the same value."""
        end = min(first + count, self.capacity)
        if count:
            _fill(self._tree, self.capacity, first, end, priority)
        if first + count > end:
            _fill(self._tree, self.capacity, 0, first + count - end, priority)

    def sample(self, units: Array) -> Array:
        """(B,) indices by priority, stratified: ``units`` (B,) in [0, 1) are positions in B equal parts of the total.

        Unless the capacity is a power of two, the first part covers the deepest leaves, not the first ones.
        """
        masses = (np.arange(len(units)) + units) / len(units) * self.total
        indices = np.empty(len(units), np.int64)
        _find(self._tree, self.capacity, masses, indices)
        return indices

    def state_dict(self, count: int) -> dict[str, Array]:
        """The first ``count`` priorities, from which the sums follow."""
        return {"priorities": self._tree[self.capacity : self.capacity + count].copy()}

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Load saved priorities."""
        leaves = state["priorities"]
        self._tree[:] = 0.0
        self._tree[self.capacity : self.capacity + len(leaves)] = leaves
        _sum_up(self._tree, self.capacity)
