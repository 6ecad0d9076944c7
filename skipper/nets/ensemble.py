"""Symmetric images of what an agent sees, and what their answers mean for the original."""

import numpy as np

from skipper.types import Array, Symmetries


class SymmetryEnsemble:
    """Asks the first so many of an environment's symmetric images; the first of all is the original itself."""

    def __init__(self, symmetries: Symmetries | None, ensemble_size: int) -> None:
        offered = 1 if symmetries is None else len(symmetries.cells)
        if not 1 <= ensemble_size <= offered:
            raise ValueError(
                f"ensemble_size must be from 1 to {offered}, the symmetric images that there are; got {ensemble_size}"
            )
        self.ensemble_size, self._symmetries = ensemble_size, symmetries

    def names(self, actions: int) -> Array:
        """(V, A) what actions are called in the images."""
        if self._symmetries is None:
            return np.arange(actions)[None]
        return self._symmetries.actions[: self.ensemble_size]

    def images(self, states: Array) -> Array:
        """(M, W, H, C) to (V * M, W, H, C): first the first image of all, then the second."""
        if self._symmetries is None or self.ensemble_size == 1:
            return states
        which = np.repeat(np.arange(self.ensemble_size), len(states))
        return self._symmetries.images(np.concatenate([states] * self.ensemble_size), which)

    def renamed(self, answers: Array, image: int) -> Array:
        """(P, A, ...) about the actions of an image, by the names that these have in the original."""
        if self._symmetries is None or image == 0:
            return answers
        return answers[:, self._symmetries.actions[image]]
