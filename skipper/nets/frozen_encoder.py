"""Fast partial states of an encoder and selector between two changes of their weights."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skipper.nets.compiled import encoder_selector
from skipper.nets.compiled.encoder_selector import CompiledPartialStates
from skipper.nets.selector import PartialStates
from skipper.runtime.hashing import content_hashes

PARTIAL_STATES = 16_384  # cached, for each image of an ensemble
PLAIN_BATCH = 256  # states that a plain module encodes at a time, to limit memory

Encode = Callable[[Tensor], Tensor]  # (M, W, H, C) to (M, D)


class WeightsWatch:
    """Notices when a module learned or was given other weights."""

    def __init__(self, module: nn.Module) -> None:
        self._weights = list(module.parameters())  # finding them takes longer than reading their versions
        self.note()

    def changed(self) -> bool:
        """Whether any weight changed since ``note``."""
        return [weight._version for weight in self._weights] != self._versions

    def note(self) -> None:
        """Take the weights as they are for unchanged."""
        self._versions = [weight._version for weight in self._weights]


class PartialStateCache:
    """Partial states by the content of states."""

    def __init__(self, width: int, capacity: int, device: torch.device | str = "cpu") -> None:
        self._partial, self._device = np.zeros((capacity, width), np.float32), device
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
            self._partial[begin : begin + len(new)] = encoded.cpu().numpy()
            self._index.update(zip(new, range(begin, begin + len(new)), strict=True))
            if all_new:
                return encoded
        return torch.from_numpy(self._partial[[self._index[key] for key in keys]]).to(self._device)

    def state_dict(self) -> dict[str, Any]:
        """All cached states."""
        keys = np.array(list(self._index), np.int64)
        return {"keys": keys, "partial": self._partial[: len(keys)].copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the cached states."""
        self._index = {key: index for index, key in enumerate(state["keys"].tolist())}
        self._partial[: len(self._index)] = state["partial"]


class FrozenEncoder:
    """The partial states of ``PartialStates``, without gradients: cached, and computed by its compiled twin.

    The twin is used only where the modules have exactly the types that it was written for.
    """

    def __init__(self, module: PartialStates, width: int, *, caching: bool = True, images: int = 1) -> None:
        """``width`` is that of a partial state; ``images`` of each state are encoded.

        Without ``caching``, for weights that change between two calls, the module itself is used. Weights may change
        later, but modules must not be replaced.
        """
        self._module, self._caching = module, caching
        self._compiled = encoder_selector.supports(module)
        self._cache = PartialStateCache(width, images * PARTIAL_STATES, next(module.parameters()).device)
        self._watch = WeightsWatch(module)
        self._encoder: Encode | None = None

    def clear(self) -> None:
        """Drop everything that was computed."""
        self._cache.clear()
        self._encoder = None

    def _refresh(self) -> None:
        """Drop what was computed with other weights."""
        if self._watch.changed():
            self._watch.note()
            self.clear()

    @torch.no_grad()
    def encode(self, states: Tensor) -> Tensor:
        """(M, W, H, C) to partial states sigma(s), (M, D)."""
        if not self._caching:
            return self._module(states)
        self._refresh()
        if self._encoder is None:
            self._encoder = CompiledPartialStates(self._module) if self._compiled else _in_batches(self._module)
        return self._cache.get(states, self._encoder)

    def state_dict(self) -> dict[str, Any]:
        """The cached states, which are part of a run: computed in other batches they may round differently."""
        self._refresh()
        return self._cache.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the cached states; the module must have its weights already."""
        self._watch.note()
        self._encoder = None
        self._cache.load_state_dict(state)


def _in_batches(module: nn.Module) -> Encode:
    return lambda states: torch.cat([module(batch) for batch in states.split(PLAIN_BATCH)])
