"""FrozenNetwork: fast evaluation of a network between two changes of its weights.

Modules are written for reading and training. This is the only place that replaces them by compiled twins, caches their
results, and notices when weights change. A twin is used only where the modules have exactly the types that it was
written for; otherwise the modules themselves are used.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skipper.config import PlanningConfig
from skipper.nets.compiled import fuser, heads
from skipper.nets.compiled.fuser import CompiledFuser
from skipper.nets.compiled.heads import CompiledHeads
from skipper.nets.compiled.incremental_fuser import IncrementalFuser
from skipper.nets.edge_cache import EdgeCache, StateEstimates
from skipper.nets.ensemble import SymmetryEnsemble
from skipper.nets.estimators import GeneratingConfig, LeapNetwork, SkipperNetwork
from skipper.nets.frozen_encoder import Encode, FrozenEncoder, WeightsWatch
from skipper.nets.generator import CheckpointGenerator
from skipper.nets.heads import PairEstimates, PlainHeads
from skipper.nets.layers import observations_tensor
from skipper.runtime.hashing import content_hashes
from skipper.runtime.mixed_radix import most_likely
from skipper.types import Array, EnvironmentSpec, LazyEdges, Vertices

DESCRIPTIONS = 4096  # cached before the cache is emptied


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


class FrozenNetwork:
    """The functions of a network without gradients; all of them follow the network when its weights change."""

    def __init__(
        self,
        network: SkipperNetwork | LeapNetwork,
        config: GeneratingConfig,
        spec: EnvironmentSpec,
        *,
        caching: bool = True,
        plans: PlanningConfig | None = None,
        ensemble: int = 1,
    ) -> None:
        """``caching`` pays unless weights change between two decisions.

        With ``plans``, edges are cached for frequent plans of this kind. Estimates of states and edges are means over
        an ``ensemble`` of symmetric images. Weights may change later, but modules must not be replaced.
        """
        self.network, self._config, self._spec, self._caching = network, config, spec, caching
        self._ensemble = SymmetryEnsemble(spec.symmetries, ensemble)
        self._modules = network.heads()
        self._compiled_heads = heads.supports(self._modules)
        self._compiled_fuser = fuser.supports(network.generator)
        # The cache has no edges from states that the learned head calls terminal.
        learned = plans is not None and not {"edges", "terminal"} & set(plans.oracle_parts)
        self._plans = plans if learned and spec.scene is not None else None
        # A new scene costs the logits of all codes, which pays where many of them are soon needed again.
        again = 4 * self._plans.checkpoints if self._plans and self._plans.regenerate else 0
        self._incremental = self._compiled_fuser and again >= 2**network.generator.bits
        width = config.network.partial_width
        self._encoder = FrozenEncoder(network.estimators.partial, width, caching=caching, images=ensemble)
        self._descriptions = DescriptionCache()
        self._watch = WeightsWatch(network)
        self._forget()

    def _forget(self) -> None:
        """Drop everything that was computed with other weights; it is computed again where it is needed."""
        self._encoder.clear()
        self._descriptions.clear()
        self._estimates: _Estimates | None = None
        self._edge_cache: EdgeCache | None = None
        self._fuser: CompiledFuser | CheckpointGenerator | None = None
        self._incremental_fuser: IncrementalFuser | None = None

    def _refresh(self) -> None:
        if self._watch.changed():
            self._watch.note()
            self._forget()

    # States

    def encode(self, states: Tensor) -> Tensor:
        """(M, W, H, C) to partial states sigma(s), (M, D), as ``PartialStates`` does."""
        self._refresh()
        return self._encoder.encode(states)

    def describe(self, states: Array) -> Array:
        """(B, W, H, C) to partial descriptions (B,)."""
        if not self._caching:
            return self._describe(states)
        self._refresh()
        return self._descriptions.get(states, self._describe)

    def _describe(self, states: Array) -> Array:
        return self.network.generator.codes(observations_tensor(states)).cpu().numpy()

    # Imagined states

    def imagine(self, observation: Array, codes: Array, environments: Array | None = None) -> Array:
        """(B, N) most likely cells, or placements, for ``codes`` (B, N) in the contexts of observations (B, W, H, C).

        ``environments`` (B,) are the numbers of the environments, whose contexts mostly stay the same between calls.
        """
        self._refresh()
        contexts = observations_tensor(observation)
        if environments is None or not self._incremental or not self._has_pages(environments, codes.shape[1] + 2):
            return most_likely(
                self.logits(contexts, torch.from_numpy(codes)).cpu().numpy(), self.network.generator.parts
            )
        if self._incremental_fuser is None:
            fuser = self._packed_fuser()
            assert isinstance(fuser, CompiledFuser)
            self._incremental_fuser = IncrementalFuser(fuser)
        return self._incremental_fuser.cells(environments, contexts, codes)

    @torch.no_grad()
    def logits(self, observation: Tensor, codes: Tensor) -> Tensor:
        """(B, N, S) logits as the generator gives them for codes (B, N) in contexts (B, W, H, C)."""
        self._refresh()
        logits: Tensor = self._packed_fuser()(observation, codes)
        return logits

    def _packed_fuser(self) -> CompiledFuser | CheckpointGenerator:
        if self._fuser is None:
            generator = self.network.generator
            self._fuser = CompiledFuser(generator) if self._compiled_fuser else generator
        return self._fuser

    # Pairs of states

    def edges(self, vertices: Vertices, environments: Array | None = None) -> LazyEdges:
        """Estimates for all pairs of vertices, under the greedy checkpoint policy; absent vertices have no edges.

        With the numbers of the ``environments`` (B,), estimates of earlier plans in the same scenes are used again.
        Edges that no plan uses may then be left out.
        """
        self._refresh()
        if environments is not None and self._has_pages(environments, vertices.present.shape[1]):
            return self._pages().edges(vertices, environments)
        return _all_edges(self._pair_estimates(), vertices)

    def values(self, observation: Array, target: Array) -> Array:
        """(B, A) action values of the policy: discounted probabilities of reaching ``target``, or nearness (LEAP)."""
        self._refresh()
        estimates, rows = self._pair_estimates(), np.arange(len(observation))
        features, _ = estimates.project(np.concatenate([observation, target]))
        return estimates.values(features, rows, len(rows) + rows)

    def _pair_estimates(self) -> "_Estimates":
        if self._estimates is None:
            names = np.ascontiguousarray(self._ensemble.names(self._spec.actions), np.int64)
            pairs: PairEstimates = PlainHeads(self._modules, names, self._config.network.partial_width)
            if self._compiled_heads:
                pairs = CompiledHeads(self._modules, names)
            self._estimates = _Estimates(self.encode, pairs, self._ensemble)
        return self._estimates

    def _pages(self) -> EdgeCache:
        if self._edge_cache is None:
            assert self._spec.scene is not None
            assert self._plans is not None
            # Room for all imagined states, those of an episode, and the goal.
            slots = 2**self.network.generator.bits + self._spec.longest + 2
            # Edges into the current state are always pruned, but clustering needs their distances.
            into_current = self._plans.prune_vertices
            self._edge_cache = EdgeCache(self._pair_estimates(), self._spec.scene, slots, into_current=into_current)
        return self._edge_cache

    def _has_pages(self, environments: Array, vertices: int) -> bool:
        return self._plans is not None and self._pages().fits(environments, vertices)

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """The cached states, which are part of a run: computed in other batches they may round differently."""
        self._refresh()
        return {"partial": self._encoder.state_dict(), "descriptions": self._descriptions.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the cached states; the network must have its weights already."""
        self._watch.note()
        self._forget()
        self._encoder.load_state_dict(state["partial"])
        self._descriptions.load_state_dict(state["descriptions"])


class _Estimates:
    """Pair estimates of states that are given as observations, in all images of an ensemble."""

    def __init__(self, encode: Encode, pairs: PairEstimates, ensemble: SymmetryEnsemble) -> None:
        self._encode, self._pairs, self._ensemble = encode, pairs, ensemble
        self.feature_shape = pairs.feature_shape
        self.values, self.annotate, self.rewards = pairs.values, pairs.annotate, pairs.rewards

    def project(self, states: Array) -> tuple[Array, Array]:
        """States (M, W, H, C) to features (M, *feature_shape), and whether they are terminal, (M,) bool."""
        sigma = self._encode(observations_tensor(self._ensemble.images(states))).cpu().numpy()
        images = sigma.reshape(self._ensemble.size, len(states), sigma.shape[1])
        return self._pairs.project(images.swapaxes(0, 1))


def _all_edges(estimates: StateEstimates, vertices: Vertices) -> LazyEdges:
    """Estimates for all pairs of present vertices."""
    B, N = vertices.present.shape  # noqa: N806
    features, terminal = estimates.project(vertices.observation.reshape(B * N, *vertices.observation.shape[2:]))
    both = vertices.present[:, :, None] & vertices.present[:, None]
    distance, discount = np.full(both.shape, np.inf), np.zeros(both.shape)
    action = np.zeros(both.shape, np.int64)
    action[both], distance[both], discount[both] = estimates.annotate(features, *_endpoints(both))

    def reward(usable: Array) -> Array:
        found, needed = np.zeros(both.shape), usable & both
        if needed.any():
            found[needed] = estimates.rewards(features, *_endpoints(needed), action[needed])
        return found

    return LazyEdges(distance, discount, terminal.reshape(B, N), action, reward)


def _endpoints(pairs: Array) -> tuple[Array, Array]:
    """Pairs of vertices (B, N, N) bool to their sources and targets, (P,) each, among all B * N."""
    problem, source, target = np.nonzero(pairs)
    return problem * pairs.shape[1] + source, problem * pairs.shape[1] + target
