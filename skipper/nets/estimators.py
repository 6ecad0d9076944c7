"""Edge estimation and the checkpoint policy: four heads on partial states, learned from hindsight (Sec. 3.3)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skipper.config import NetworkConfig
from skipper.nets.compiled.encoder_selector import StillPartialStates
from skipper.nets.heads import PairwiseHead, distance_support, unit_support
from skipper.nets.layers import WeightsWatch, mlp
from skipper.nets.partial_states import PartialStates
from skipper.runtime.hashing import content_hashes
from skipper.types import EnvironmentSpec


class EstimatorNetwork(nn.Module):
    """Partial states, and what is estimated from them: value of the policy, reward and distance of pairs, the end."""

    def __init__(self, config: NetworkConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.partial = PartialStates(config, spec)

        def head(support: Tensor, worst: int) -> PairwiseHead:
            return PairwiseHead(
                config.partial_width,
                hidden=config.hidden,
                actions=spec.actions,
                support=support,
                favoured=worst if config.pessimistic_heads else None,
                scaled=config.scaled_start,
            )

        self.value = head(unit_support(config.bins), 0)
        self.reward = head(unit_support(config.bins), 0)
        self.distance = head(distance_support(config.bins), -1)
        self.terminal = mlp(config.partial_width, config.hidden, 2, scaled=config.scaled_start)


class PartialTable:
    """Partial states, remembered by content and encoded once each while the network stands still.

    It is saved with a run, since encoding in another batch may round differently.
    """

    def __init__(self, network: EstimatorNetwork, width: int, capacity: int) -> None:
        self._encode = StillPartialStates(network.partial)
        self._partial = np.zeros((capacity, width), np.float32)
        self._places: dict[int, int] = {}
        self._watch = WeightsWatch(network.partial)

    @torch.no_grad()
    def __call__(self, state: Tensor) -> Tensor:
        """(M, W, H, C) to (M, D)."""
        if self._watch.changed():
            self._places = {}
            self._watch.note()
        keys = content_hashes(state.flatten(1).numpy()).tolist()
        new = {key: row for row, key in enumerate(keys) if key not in self._places}
        if len(self._places) + len(new) > len(self._partial):  # no more room: all is encoded anew
            self._places, new = {}, {key: row for row, key in enumerate(keys)}
        if len(new) > len(self._partial):  # more than can be remembered at all
            return self._encode(state)
        if new:
            begin, all_new = len(self._places), len(new) == len(keys)
            found = self._encode(state if all_new else state[list(new.values())])
            self._partial[begin : begin + len(new)] = found.numpy()
            self._places.update(zip(new, range(begin, begin + len(new)), strict=True))
            if all_new:
                return found
        return torch.from_numpy(self._partial[[self._places[key] for key in keys]])

    def state_dict(self) -> dict[str, Any]:
        """What is remembered of the network as it is."""
        known = {} if self._watch.changed() else self._places
        keys = np.array(list(known), np.int64)
        return {"keys": keys, "partial": self._partial[: len(keys)].copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Remember it again; the network must have its weights already."""
        self._places = {key: place for place, key in enumerate(state["keys"].tolist())}
        self._partial[: len(self._places)] = state["partial"]
        self._watch.note()
