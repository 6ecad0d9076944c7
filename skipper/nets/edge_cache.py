"""A map of every environment's scene that fills up while plans are made in it.

When a plan is made at every step of an episode, most of what it asks was asked a few steps before: imagined states
are few, and the ways between them stay the same while networks and scene do. A state of a scene is known by the agent's
cell.
"""

import math
from typing import NamedTuple

import numpy as np

from skipper.nets.estimates import Estimates
from skipper.nets.layers import WeightsWatch
from skipper.planning.proxy import CURRENT, LazyEdges, Vertices
from skipper.runtime.hashing import content_hashes
from skipper.runtime.jit import kernel
from skipper.runtime.threads import shared
from skipper.types import Array, Scene

MOST_BYTES = (
    2**31
)  # 2,850 scenes of 12x12 cells with the preset's heads, 550 with eight ensemble_size; 270 and 80 of 25x25
BYTES_PER_PAIR = 15
SHARE = 8  # environments for which a thread of their own pays


class Pages(NamedTuple):
    """What is known of E environments with S cells each; what nobody asks for takes no memory."""

    scenery: Array  # (E,) which scene the page is of
    met: Array  # (E, S) bool, whether the state with the agent in this cell was seen
    ends: Array  # (E, S, V, columns, H) what V images of these add to what heads say of pairs
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
        ends=np.zeros((*states, *estimates.heads.end_shape), np.float32),
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
    found, count = np.empty((3, np.count_nonzero(wanted)), np.int64), 0
    for row in range(len(rows)):
        for one in range(cells.shape[1]):
            asked, known = wanted[row, one], answered[rows[row], cells[row, one]]
            for two in range(cells.shape[1]):
                if asked[two] and not known[cells[row, two]]:
                    found[0, count], found[1, count], found[2, count] = rows[row], cells[row, one], cells[row, two]
                    count += 1
    return found[:, :count]


@kernel
def _read(rows, cells, wanted, page, found):
    """Copy what a ``page`` (E, S, S) says of the ``wanted`` pairs of ``cells`` (R, N) to ``found`` (R, N, N)."""
    for row in range(len(rows)):
        for one in range(cells.shape[1]):
            asked, known, into = wanted[row, one], page[rows[row], cells[row, one]], found[row, one]
            for two in range(cells.shape[1]):
                if asked[two]:
                    into[two] = known[cells[row, two]]


@kernel
def _note_ways(pairs, action, distance, discount, pages):
    """Write what was found of ``pairs`` (3, P), (P,) each, on the pages."""
    for pair in range(pairs.shape[1]):
        place = pairs[0, pair], pairs[1, pair], pairs[2, pair]
        pages.action[place], pages.distance[place], pages.discount[place] = action[pair], distance[pair], discount[pair]
        pages.known[place] = True


@kernel
def _note_rewards(pairs, reward, pages):
    """Write the rewards (P,) of ``pairs`` (3, P) on the pages."""
    for pair in range(pairs.shape[1]):
        place = pairs[0, pair], pairs[1, pair], pairs[2, pair]
        pages.reward[place], pages.paid[place] = reward[pair], True


class EdgeCache:
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

        Where there would be too many or too large ones, the edge_cache stays closed.
        """
        cells, environments = observation.shape[1] * observation.shape[2], int(rows.max(initial=-1)) + 1
        bytes_per_cell = BYTES_PER_PAIR * cells + 4 * math.prod(self._estimates.heads.end_shape)
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
        terminal = pages.terminal[rows[:, None], cells]
        wanted &= ~(terminal[:, :, None] | np.eye(shape[1], dtype=np.bool_))  # from there, and to itself, nothing leads
        if not self._back:
            wanted[:, :, CURRENT] = False
        self._explore(_unanswered(rows, cells, wanted, pages.known))
        distance, discount = np.full(wanted.shape, np.inf), np.zeros(wanted.shape)
        action = np.zeros(wanted.shape, np.int64)

        def read(some: slice) -> None:
            asked = rows[some], cells[some], wanted[some]
            _read(*asked, pages.distance, distance[some])
            _read(*asked, pages.discount, discount[some])
            _read(*asked, pages.action, action[some])

        def reward(usable: Array) -> Array:
            asked, found = usable & wanted, np.zeros(wanted.shape)
            self._price(_unanswered(rows, cells, asked, pages.paid))
            _read(rows, cells, asked, pages.reward, found)
            return found

        shared(read, len(rows), SHARE)
        return LazyEdges(distance, discount, terminal, action, reward)

    def _meet(self, vertices: Vertices, cells: Array) -> None:
        """Note down the states that are seen for the first time."""
        new = vertices.present & ~self._pages.met[self._rows[:, None], cells]
        if not new.any():
            return
        place = np.broadcast_to(self._rows[:, None], cells.shape)[new], cells[new]
        self._pages.ends[place], self._pages.terminal[place] = self._estimates.meet(vertices.observation[new])
        self._pages.met[place] = True

    def _explore(self, pairs: Array) -> None:
        """Estimate and note down the ways of ``pairs`` (3, P) on the pages."""
        if not pairs.size:
            return
        _note_ways(pairs, *self._estimates.heads.ways(*self._ends(pairs)), self._pages)

    def _price(self, pairs: Array) -> None:
        """Estimate and note down the rewards of ``pairs`` (3, P) whose ways are known."""
        if not pairs.size:
            return
        reward = self._estimates.heads.rewards(*self._ends(pairs), self._pages.action[tuple(pairs)].astype(np.int64))
        _note_rewards(pairs, reward, self._pages)

    def _ends(self, pairs: Array) -> tuple[Array, Array, Array]:
        """All states of all pages, and (P,) each, from and to which of them ``pairs`` (3, P) lead."""
        pages, cells = self._pages.met.shape
        ends = self._pages.ends.reshape(pages * cells, *self._estimates.heads.end_shape)
        return ends, pairs[0] * cells + pairs[1], pairs[0] * cells + pairs[2]
