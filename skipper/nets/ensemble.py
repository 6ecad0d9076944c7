"""Symmetric images of observations, and their estimates translated back to the original."""

import numpy as np

from skipper.types import Array, Symmetries


class SymmetryEnsemble:
    """The first ``size`` of an environment's symmetric images; the first of all is the original itself.

    A network that learned from symmetric images still gives slightly different estimates for each. Their mean has
    smaller errors.
    """

    def __init__(self, symmetries: Symmetries | None, size: int) -> None:
        available = 1 if symmetries is None else len(symmetries.cells)
        if not 1 <= size <= available:
            raise ValueError(f"ensemble must be 1 to {available}, the number of symmetric images; got {size}")
        self.size, self._symmetries = size, symmetries

    def names(self, actions: int) -> Array:
        """(V, A) names of the actions in the images."""
        if self._symmetries is None:
            return np.arange(actions)[None]
        return self._symmetries.actions[: self.size]

    def images(self, states: Array) -> Array:
        """(M, W, H, C) to (V * M, W, H, C): the first image of all states, then the second."""
        if self._symmetries is None or self.size == 1:
            return states
        which = np.repeat(np.arange(self.size), len(states))
        return self._symmetries.images(np.concatenate([states] * self.size), which)

    def renamed(self, estimates: Array, image: int) -> Array:
        """(P, A, ...) estimates for the actions of an image, reordered to the actions of the original."""
        if self._symmetries is None or image == 0:
            return estimates
        return estimates[:, self._symmetries.actions[image]]
