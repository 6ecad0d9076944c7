"""A map of every environment's scene that fills up while plans are made in it.

When a plan is made at every step of an episode, most of what it asks was asked a few steps before: imagined states
are few, and the ways between them stay the same while networks and scene do. A state of a scene is known by the agent's
cell.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from skipper.agents.estimates import Estimates
from skipper.hashing import content_hashes
from skipper.kernels import kernel
from skipper.nets.layers import WeightsWatch
from skipper.planning.proxy import CURRENT, LazyEdges, Vertices
from skipper.types import Array, Scene

MOST_BYTES = 2**30  # 2,700 scenes of 12x12 cells, 170 of 25x25; with eight votes less than half of that
BYTES_PER_PAIR = 15


class Pages(NamedTuple):
    """What is known of E environments with S cells each; what nobody asks for takes no memory."""

    scenery: Array  # (E,) which scene the page is of
    met: Array  # (E, S) bool, whether the state with the agent in this cell was seen
    partial: Array  # (E, S, V, D) partial states of V images of these
    terminal: Array  # (E, S) bool
    known: Array  # (E, S, S) bool, whether ways are
    action: Array  # (E, S, S)
    distance: Array  # (E, S, S)
    discount: Array  # (E, S, S)
    paid: Array  # (E, S, S) bool, whether rewards are known
    reward: Array  # (E, S, S)


def _blank(environments: int, cells: int, estimates: Estimates) -> Pages:
    states, pairs = (environments, cells), (environments, cells, cells)
    return Pages(
        scenery=np.zeros(environments, np.int64),
        met=np.zeros(states, np.bool_),
        partial=np.zeros((*states, estimates.votes, estimates.width), np.float32),
        terminal=np.zeros(states, np.bool_),
        known=np.zeros(pairs, np.bool_),
        action=np.zeros(pairs, np.int8),
        distance=np.zeros(pairs, np.float32),
        discount=np.zeros(pairs, np.float32),
        paid=np.zeros(pairs, np.bool_),
        reward=np.zeros(pairs, np.float32),
    )


@kernel
def _unanswered(rows, cells, wanted, answered):
    """(3, P) pages, sources and targets of the ``wanted`` (R, N, N) pairs of ``cells`` (R, N) without an answer."""
    found = np.empty((3, wanted.sum()), np.int64)
    count = 0
    for row in range(len(rows)):
        for one in range(cells.shape[1]):
            for two in range(cells.shape[1]):
                place = rows[row], cells[row, one], cells[row, two]
                if wanted[row, one, two] and not answered[place]:
                    found[0, count], found[1, count], found[2, count] = place
                    count += 1
    return found[:, :count]


@kernel
def _states_of(pairs, environments, cells):
    """(2, M) pages and cells of the states of ``pairs`` (3, P), and (2, P) which of them the pairs lead from and to."""
    number = np.full((environments, cells), -1, np.int64)
    states, ends = np.empty((2, 2 * pairs.shape[1]), np.int64), np.empty((2, pairs.shape[1]), np.int64)
    count = 0
    for pair in range(pairs.shape[1]):
        for end in range(2):
            page, cell = pairs[0, pair], pairs[1 + end, pair]
            if number[page, cell] < 0:
                number[page, cell] = count
                states[0, count], states[1, count] = page, cell
                count += 1
            ends[end, pair] = number[page, cell]
    return states[:, :count], ends


@kernel
def _read(rows, cells, wanted, pages, known, distance, discount, action):
    """Copy what the pages say of the ``wanted`` pairs of ``cells`` (R, N) to the last four, (R, N, N) each."""
    for row in range(len(rows)):
        for one in range(cells.shape[1]):
            for two in range(cells.shape[1]):
                at, place = (row, one, two), (rows[row], cells[row, one], cells[row, two])
                known[at] = wanted[at] and pages.known[place]
                if known[at]:
                    distance[at], discount[at] = pages.distance[place], pages.discount[place]
                    action[at] = pages.action[place]


class Atlas:
    """One page for each environment: what the estimators say of the cells of its scene and of pairs of them."""

    def __init__(self, estimates: Estimates, scene: Scene, *, back: bool = True) -> None:
        """``back`` says whether anyone asks for ways back to the current state."""
        self._estimates, self._scene, self._back = estimates, scene, back
        self._watch = WeightsWatch(estimates.network)
        self._rows = np.zeros(0, np.int64)
        self._pages = _blank(0, 0, estimates)
        self.is_open = False

    def open(self, rows: Array, observation: Array) -> None:
        """Turn to the pages of the environments ``rows`` (R,), which show ``observation`` (R, W, H, C) now.

        Where there would be too many or too large ones, the atlas stays closed.
        """
        cells, environments = observation.shape[1] * observation.shape[2], int(rows.max(initial=-1)) + 1
        bytes_per_cell = BYTES_PER_PAIR * cells + 4 * self._estimates.votes * self._estimates.width
        self.is_open = environments * cells * bytes_per_cell <= MOST_BYTES
        if not self.is_open:
            return
        if environments > len(self._pages.met) or cells != self._pages.met.shape[1]:
            self._pages = _blank(environments, cells, self._estimates)
        if self._watch.changed():
            self._pages = _blank(len(self._pages.met), cells, self._estimates)
            self._watch.note()
        scenery = content_hashes(self._scene.scenery(observation).reshape(len(rows), -1))
        turned = rows[self._pages.scenery[rows] != scenery]
        for column in (self._pages.met, self._pages.known, self._pages.paid):
            column[turned] = False
        self._rows, self._pages.scenery[rows] = rows, scenery

    def edges(self, vertices: Vertices) -> LazyEdges:
        """As ``learned_edges``, with only what is not on the page yet estimated."""
        pages, rows, shape = self._pages, self._rows, vertices.present.shape
        cells = self._scene.agent_cell(vertices.observation.reshape(-1, *vertices.observation.shape[2:])).reshape(shape)
        self._meet(vertices, cells)
        wanted = vertices.present[:, :, None] & vertices.present[:, None, :]
        if not self._back:
            wanted[:, :, CURRENT] = False
        self._explore(_unanswered(rows, cells, wanted, pages.known))
        known, action = np.empty(wanted.shape, np.bool_), np.zeros(wanted.shape, np.int64)
        distance, discount = np.full(wanted.shape, np.inf), np.zeros(wanted.shape)
        _read(rows, cells, wanted, pages, known, distance, discount, action)

        def reward(usable: Array) -> Array:
            asked = usable & known
            self._price(_unanswered(rows, cells, asked, pages.paid))
            at = rows[:, None, None], cells[:, :, None], cells[:, None, :]
            return np.where(asked, pages.reward[at], 0.0)

        return LazyEdges(distance, discount, pages.terminal[rows[:, None], cells], action, reward)

    def _meet(self, vertices: Vertices, cells: Array) -> None:
        """Note down the states that are seen for the first time."""
        new = vertices.present & ~self._pages.met[self._rows[:, None], cells]
        if not new.any():
            return
        place = np.broadcast_to(self._rows[:, None], cells.shape)[new], cells[new]
        sigma = self._estimates.encode(vertices.observation[new])
        self._pages.partial[place] = sigma.numpy()
        self._pages.terminal[place] = self._estimates.terminal(sigma)
        self._pages.met[place] = True

    def _explore(self, pairs: Array) -> None:
        """Estimate and note down the ways of ``pairs`` (3, P) on the pages."""
        if not pairs.size:
            return
        pages, place = self._pages, tuple(pairs)
        found = self._estimates.ways(*self._ends(pairs))
        pages.action[place], pages.distance[place], pages.discount[place] = found
        pages.known[place] = True

    def _price(self, pairs: Array) -> None:
        """Estimate and note down the rewards of ``pairs`` (3, P) whose ways are known."""
        if not pairs.size:
            return
        pages, place = self._pages, tuple(pairs)
        action = pages.action[place].astype(np.int64)
        pages.reward[place] = self._estimates.rewards(*self._ends(pairs), action)
        pages.paid[place] = True

    def _ends(self, pairs: Array) -> tuple[Tensor, Array, Array]:
        """Partial states (M, V, D) of ``pairs`` (3, P), and (P,) each, from and to which of them these lead."""
        states, (source, target) = _states_of(pairs, *self._pages.met.shape)
        return torch.from_numpy(self._pages.partial[tuple(states)]), source, target
