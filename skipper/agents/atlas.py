"""A map of every environment's scene that fills up while plans are made in it.

When a plan is made at every step of an episode, most of what it asks was asked a few steps before: imagined states
are few, and the ways between them stay the same while networks and scene do. A state of a scene is known by the agent's
cell.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from skipper.agents.base import observations_tensor
from skipper.agents.checkpoints import pair_rewards, pair_ways
from skipper.agents.estimators import EstimatorNetwork
from skipper.hashing import content_hashes
from skipper.nets.layers import WeightsWatch
from skipper.planning.proxy import CURRENT, LazyEdges, Vertices
from skipper.types import Array, Scene

MOST_PAIRS = 2**26  # about 1 GB: 3,200 scenes of 12x12 cells, 170 of 25x25


class Question(NamedTuple):
    """P pairs of states that are asked for."""

    sigma: Tensor  # (M, D) partial states of the vertices that take part
    involved: Array  # (R, N) bool, which these are
    source: Array  # (P,) into sigma
    target: Array  # (P,) into sigma
    places: tuple[Array, Array, Array]  # (P,) each, where on the pages the answers belong


class Atlas:
    """One page for each environment: what the estimators say of the cells of its scene and of pairs of them."""

    def __init__(
        self,
        network: EstimatorNetwork,
        scene: Scene,
        partial: Callable[[Tensor], Tensor],
        discount: float,
        *,
        back: bool = True,
    ) -> None:
        """``back`` says whether anyone asks for ways back to the current state."""
        self._network, self._scene, self._partial, self._discount = network, scene, partial, discount
        self._back = back
        self._watch = WeightsWatch(network)
        self._rows = np.zeros(0, np.int64)
        self._make_pages(0, 0)
        self.is_open = False

    def _make_pages(self, environments: int, cells: int) -> None:
        """Blank pages; what is never asked for takes no memory."""
        pairs = environments, cells, cells
        self._scenery = np.zeros(environments, np.int64)  # which scene the page is of
        self._terminal = np.zeros((environments, cells), np.bool_)
        self._known, self._paid = np.zeros(pairs, np.bool_), np.zeros(pairs, np.bool_)  # whether ways, rewards are
        self._action = np.zeros(pairs, np.int8)
        self._distance, self._gamma, self._reward = (np.zeros(pairs, np.float32) for _ in range(3))

    def open(self, rows: Array, observation: Array) -> None:
        """Turn to the pages of the environments ``rows`` (R,), which show ``observation`` (R, W, H, C) now.

        Where there would be too many or too large ones, the atlas stays closed.
        """
        cells, environments = observation.shape[1] * observation.shape[2], int(rows.max(initial=-1)) + 1
        self.is_open = environments * cells**2 <= MOST_PAIRS
        if not self.is_open:
            return
        if environments > len(self._known) or cells != self._known.shape[1]:
            self._make_pages(environments, cells)
        if self._watch.changed():
            self._make_pages(len(self._known), cells)
            self._watch.note()
        scenery = content_hashes(self._scene.scenery(observation).reshape(len(rows), -1))
        blank = rows[self._scenery[rows] != scenery]
        self._known[blank] = self._paid[blank] = False
        self._rows, self._scenery[rows] = rows, scenery

    def edges(self, vertices: Vertices) -> LazyEdges:
        """As ``learned_edges``, with only what is not on the page yet estimated."""
        shape = vertices.present.shape
        cells = self._scene.agent_cell(vertices.observation.reshape(-1, *vertices.observation.shape[2:])).reshape(shape)
        at = self._rows[:, None, None], cells[:, :, None], cells[:, None, :]
        wanted = vertices.present[:, :, None] & vertices.present[:, None, :]
        if not self._back:
            wanted[:, :, CURRENT] = False
        self._explore(vertices, cells, wanted & ~self._known[at])

        known = self._known[at]

        def reward(usable: Array) -> Array:
            self._price(vertices, cells, usable & known & ~self._paid[at])
            return np.where(usable & known, self._reward[at], 0.0)

        distance = np.where(known, self._distance[at], np.inf).astype(np.float64)
        gamma = np.where(known, self._gamma[at], 0.0).astype(np.float64)
        return LazyEdges(
            distance, gamma, self._terminal[at[0][..., 0], cells], self._action[at].astype(np.int64), reward
        )

    @torch.no_grad()
    def _explore(self, vertices: Vertices, cells: Array, new: Array) -> None:
        """Estimate and write down the ways ``new`` (R, N, N) bool."""
        if not new.any():
            return
        sigma, involved, source, target, places = self._pairs(vertices, cells, new)
        rows = np.broadcast_to(self._rows[:, None], cells.shape)[involved]
        ending = self._network.terminal(sigma).argmax(-1) == 1
        self._terminal[rows, cells[involved]] = ending.numpy()
        found = pair_ways(self._network, sigma, source, target, self._discount)
        self._action[places], self._distance[places], self._gamma[places] = found
        self._known[places] = True

    @torch.no_grad()
    def _price(self, vertices: Vertices, cells: Array, new: Array) -> None:
        """Estimate and write down the rewards of the ways ``new`` (R, N, N) bool."""
        if not new.any():
            return
        sigma, _, source, target, places = self._pairs(vertices, cells, new)
        action = self._action[places].astype(np.int64)
        self._reward[places] = pair_rewards(self._network, sigma, source, target, action)
        self._paid[places] = True

    def _pairs(self, vertices: Vertices, cells: Array, wanted: Array) -> Question:
        """What is needed to estimate the ``wanted`` pairs, (R, N, N) bool."""
        involved: Array = np.logical_or(wanted.any(1), wanted.any(2))
        place = np.cumsum(involved).reshape(involved.shape) - 1
        problem, source, target = np.nonzero(wanted)
        sigma = self._partial(observations_tensor(vertices.observation[involved]))
        places = self._rows[problem], cells[problem, source], cells[problem, target]
        return Question(sigma, involved, place[problem, source], place[problem, target], places)
