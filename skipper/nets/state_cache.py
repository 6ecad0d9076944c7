"""Results of networks for states, cached by the content of the states."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skipper.runtime.hashing import content_hashes
from skipper.types import Array

DESCRIPTIONS = 4096  # cached before the cache is emptied

Encode = Callable[[Tensor], Tensor]  # (M, W, H, C) to (M, D)


class PartialStateCache:
    """Partial states by the content of states."""

    def __init__(self, width: int, capacity: int) -> None:
        self._partial = np.zeros((capacity, width), np.float32)
        self._index: dict[int, int] = {}

    def clear(self) -> None:
        """Forget all states."""
        self._index = {}

    def get(self, states: Tensor, encode: Encode) -> Tensor:
        """(M, W, H, C) to (M, D); states that are not cached are encoded together."""
        keys = content_hashes(states.flatten(1).numpy()).tolist()
        new = {key: row for row, key in enumerate(keys) if key not in self._index}
        if len(self._index) + len(new) > len(self._partial):  # full: begin again with these states
            self._index, new = {}, {key: row for row, key in enumerate(keys)}
        if len(new) > len(self._partial):  # too many to cache
            return encode(states)
        if new:
            begin, all_new = len(self._index), len(new) == len(keys)
            encoded = encode(states if all_new else states[list(new.values())])
            self._partial[begin : begin + len(new)] = encoded.numpy()
            self._index.update(zip(new, range(begin, begin + len(new)), strict=True))
            if all_new:
                return encoded
        return torch.from_numpy(self._partial[[self._index[key] for key in keys]])

    def state_dict(self) -> dict[str, Any]:
        """All cached states."""
        keys = np.array(list(self._index), np.int64)
        return {"keys": keys, "partial": self._partial[: len(keys)].copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the cached states."""
        self._index = {key: index for index, key in enumerate(state["keys"].tolist())}
        self._partial[: len(self._index)] = state["partial"]


class DescriptionCache:
    """Partial descriptions by the content of states."""

    def __init__(self) -> None:
        self._codes: dict[int, int] = {}

    def clear(self) -> None:
        """Forget all states."""
        self._codes = {}

    def get(self, states: Array, describe: Callable[[Array], Array]) -> Array:
        """(B, W, H, C) to codes (B,); states that are not cached are described together."""
        if len(self._codes) > DESCRIPTIONS:
            self._codes = {}
        keys = content_hashes(states.reshape(len(states), -1)).tolist()
        new = {key: row for row, key in enumerate(keys) if key not in self._codes}
        if new:
            self._codes.update(zip(new, describe(states[list(new.values())]).tolist(), strict=True))
        return np.array([self._codes[key] for key in keys], np.int64)

    def state_dict(self) -> dict[str, Any]:
        """All cached states."""
        keys, codes = list(self._codes.keys()), list(self._codes.values())
        return {"keys": np.array(keys, np.int64), "codes": np.array(codes, np.int64)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the cached states."""
        self._codes = dict(zip(state["keys"].tolist(), state["codes"].tolist(), strict=True))
