"""Edge estimates of earlier plans in the same scene.

When an agent plans at every step, most vertices of a plan were vertices of earlier ones, and the edges between them
stay the same while network and scene do. Each environment has a page with its states and all pairs of them.
"""

import math
from typing import NamedTuple, Protocol

import numpy as np

from skipper.runtime.hashing import content_hashes
from skipper.runtime.jit import kernel
from skipper.runtime.threads import run_parallel
from skipper.types import CURRENT, Array, LazyEdges, Scene, Vertices

MOST_BYTES = 2**31  # 3,300 pages of 130 states with the preset's heads, 600 with an ensemble of eight
BYTES_PER_STATE, BYTES_PER_PAIR = 9, 15
BLOCK = 8  # environments for which a thread of their own pays


class StateEstimates(Protocol):
    """The estimates that are cached: of states, and of pairs given as indices (P,) into their features."""

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of the features of one state."""

    def project(self, states: Array) -> tuple[Array, Array]:
        """States (M, W, H, C) to features (M, *feature_shape), and whether they are terminal, (M,) bool."""

    def annotate(self, features: Array, source: Array, target: Array) -> tuple[Array, Array, Array]:
        """Greedy actions, distances and discounts, (P,) each."""

    def rewards(self, features: Array, source: Array, target: Array, action: Array) -> Array:
        """(P,) cumulative rewards of paths that begin with ``action`` (P,)."""


class Pages(NamedTuple):
    """The pages of E environments, with room for M states each; memory is only used for what is written."""

    scenery: Array  # (E,) hash of the scene that the page belongs to
    used: Array  # (E,) number of states on the page
    key: Array  # (E, M) of the states
    features: Array  # (E, M, *feature_shape)
    terminal: Array  # (E, M) bool
    known: Array  # (E, M, M) bool, whether action, distance and discount are estimated
    action: Array  # (E, M, M)
    distance: Array  # (E, M, M)
    discount: Array  # (E, M, M)
    rewarded: Array  # (E, M, M) bool, whether the reward is estimated
    reward: Array  # (E, M, M)


def _blank(environments: int, slots: int, feature_shape: tuple[int, ...]) -> Pages:
    states, pairs = (environments, slots), (environments, slots, slots)
    return Pages(
        scenery=np.zeros(environments, np.int64),
        used=np.zeros(environments, np.int64),
        key=np.zeros(states, np.int64),
        features=np.zeros((*states, *feature_shape), np.float32),
        terminal=np.zeros(states, np.bool_),
        known=np.zeros(pairs, np.bool_),
        action=np.zeros(pairs, np.int8),
        distance=np.zeros(pairs, np.float32),
        discount=np.zeros(pairs, np.float32),
        rewarded=np.zeros(pairs, np.bool_),
        reward=np.zeros(pairs, np.float32),
    )


class EdgeCache:
    """One page for each environment, with the estimates for states of its scene and for pairs of them."""

    def __init__(self, estimates: StateEstimates, scene: Scene, slots: int, *, into_current: bool = True) -> None:
        """A page has room for ``slots`` states, and is emptied when it is full.

        ``into_current`` says whether edges into the current state are estimated.
        """
        self._estimates, self._scene, self._slots, self._into_current = estimates, scene, slots, into_current
        self._pages = _blank(0, slots, estimates.feature_shape)
        self._plans = 0

    def fits(self, environments: Array, vertices: int) -> bool:
        """Whether pages for plans with this number of ``vertices`` in ``environments`` (R,) fit into memory."""
        bytes_per_state = BYTES_PER_STATE + BYTES_PER_PAIR * self._slots + 4 * math.prod(self._estimates.feature_shape)
        count = int(environments.max(initial=-1)) + 1
        return vertices <= self._slots and count * self._slots * bytes_per_state <= MOST_BYTES

    def edges(self, vertices: Vertices, environments: Array) -> LazyEdges:
        """Edges between vertices of ``environments`` (R,), of which only new ones are estimated.

        Edges from terminal states, which the current one never is, and to the same state are left out: their distance
        is infinite. Rewards must be read before the next plan, which may empty a page.
        """
        self._plans += 1
        plan = self._plans
        self._open(environments, vertices.observation[:, CURRENT])
        pages, slots = self._pages, self._find(vertices, environments)
        # Estimate the edges that no earlier plan needed.
        terminal = (slots >= 0) & pages.terminal[environments[:, None], slots]
        terminal[:, CURRENT] = False  # plans begin there
        wanted = vertices.present[:, :, None] & vertices.present[:, None, :]
        wanted &= ~(terminal[:, :, None] | np.eye(slots.shape[1], dtype=np.bool_))
        if not self._into_current:
            wanted[:, :, CURRENT] = False
        self._annotate(_missing(environments, slots, wanted, pages.known))
        # Read all of them.
        distance, discount = np.full(wanted.shape, np.inf), np.zeros(wanted.shape)
        action = np.zeros(wanted.shape, np.int64)

        def read(rows: slice) -> None:
            entries = environments[rows], slots[rows], wanted[rows]
            _read(*entries, pages.distance, distance[rows])
            _read(*entries, pages.discount, discount[rows])
            _read(*entries, pages.action, action[rows])

        def reward(usable: Array) -> Array:
            assert plan == self._plans, "these rewards were replaced by those of a newer plan"
            needed, found = usable & wanted, np.zeros(wanted.shape)
            self._add_rewards(_missing(environments, slots, needed, pages.rewarded))
            _read(environments, slots, needed, pages.reward, found)
            return found

        run_parallel(read, len(environments), BLOCK)
        return LazyEdges(distance, discount, terminal, action, reward)

    def _open(self, environments: Array, observation: Array) -> None:
        """Empty the pages of ``environments`` (R,) whose scene is another than that of ``observation`` (R, ...)."""
        count = int(environments.max(initial=-1)) + 1
        if count > len(self._pages.used):
            self._pages = _blank(count, self._slots, self._estimates.feature_shape)
        scenery = content_hashes(self._scene.scenery(observation).reshape(len(environments), -1))
        changed = environments[self._pages.scenery[environments] != scenery]
        for column in (self._pages.used, self._pages.known, self._pages.rewarded):
            column[changed] = 0
        self._pages.scenery[environments] = scenery

    def _find(self, vertices: Vertices, environments: Array) -> Array:
        """(R, N) slots of the vertices on their pages, -1 for absent ones without; new states are added."""
        pages, slots = self._pages, np.empty(vertices.key.shape, np.int64)
        new = np.zeros(slots.shape, np.bool_)
        _assign_slots(environments, vertices.key, vertices.present, pages, slots, new)
        if new.any():
            index = np.broadcast_to(environments[:, None], slots.shape)[new], slots[new]
            try:
                pages.features[index], pages.terminal[index] = self._estimates.project(vertices.observation[new])
            except BaseException:  # slots without features must not stay
                self._pages = _blank(0, self._slots, self._estimates.feature_shape)
                raise
        return slots

    def _annotate(self, pairs: Array) -> None:
        """Estimate action, distance and discount of ``pairs`` (3, P) of states on the pages."""
        if pairs.size:
            _write_annotations(pairs, *self._estimates.annotate(*self._endpoints(pairs)), self._pages)

    def _add_rewards(self, pairs: Array) -> None:
        """Estimate the rewards of ``pairs`` (3, P) whose other estimates are known."""
        if pairs.size:
            action = self._pages.action[tuple(pairs)].astype(np.int64)
            reward = self._estimates.rewards(*self._endpoints(pairs), action)
            _write_rewards(pairs, reward, self._pages)

    def _endpoints(self, pairs: Array) -> tuple[Array, Array, Array]:
        """The features of all states on all pages, and sources and targets (P,) of ``pairs`` (3, P) among them."""
        features = self._pages.features
        flat = features.reshape(features.shape[0] * self._slots, *features.shape[2:])
        return flat, pairs[0] * self._slots + pairs[1], pairs[0] * self._slots + pairs[2]


@kernel
def _assign_slots(environments, keys, present, pages, slots, new):
    """Fill ``slots`` (R, N) with the slots of states with ``keys`` (R, N), and mark those that are ``new`` (R, N).

    Present states that are not on their page are added to it; a page without room for them is emptied first.
    """
    for row in range(len(environments)):
        page = environments[row]
        if not _add_present(keys[row], present[row], page, pages, slots[row], new[row]):
            pages.used[page] = 0
            pages.known[page] = False
            pages.rewarded[page] = False
            new[row] = False
            _add_present(keys[row], present[row], page, pages, slots[row], new[row])
        for vertex in range(keys.shape[1]):
            if not present[row, vertex]:
                slots[row, vertex] = _slot_of(keys[row, vertex], page, pages)


@kernel
def _add_present(keys, present, page, pages, slots, new):
    """Fill the ``slots`` (N,) of present states; False where the page has no room for all of them."""
    for vertex in range(len(keys)):
        if present[vertex]:
            slots[vertex] = _slot_of(keys[vertex], page, pages)
            if slots[vertex] < 0:
                if pages.used[page] == pages.key.shape[1]:
                    return False
                slots[vertex], new[vertex] = pages.used[page], True
                pages.key[page, pages.used[page]] = keys[vertex]
                pages.used[page] += 1
    return True


@kernel
def _slot_of(key, page, pages):
    """The slot of a key on a page, -1 where it has none."""
    for slot in range(pages.used[page]):
        if pages.key[page, slot] == key:
            return slot
    return -1


@kernel
def _missing(environments, slots, wanted, known):
    """(3, P) pages, sources and targets of the ``wanted`` (R, N, N) pairs of ``slots`` (R, N) that are not known."""
    pairs, number = np.empty((3, np.count_nonzero(wanted)), np.int64), 0
    for row in range(len(environments)):
        for one in range(slots.shape[1]):
            needed, here = wanted[row, one], known[environments[row], slots[row, one]]
            for two in range(slots.shape[1]):
                if needed[two] and not here[slots[row, two]]:
                    pairs[0, number] = environments[row]
                    pairs[1, number], pairs[2, number] = slots[row, one], slots[row, two]
                    number += 1
    return pairs[:, :number]


@kernel
def _read(environments, slots, wanted, column, found):
    """Copy the ``wanted`` (R, N, N) pairs of ``slots`` (R, N) from a ``column`` (E, M, M) of pages to ``found``."""
    for row in range(len(environments)):
        for one in range(slots.shape[1]):
            needed, here, into = wanted[row, one], column[environments[row], slots[row, one]], found[row, one]
            for two in range(slots.shape[1]):
                if needed[two]:
                    into[two] = here[slots[row, two]]


@kernel
def _write_annotations(pairs, action, distance, discount, pages):
    """Write the estimates (P,) of ``pairs`` (3, P) to the pages."""
    for pair in range(pairs.shape[1]):
        index = pairs[0, pair], pairs[1, pair], pairs[2, pair]
        pages.action[index], pages.distance[index] = action[pair], distance[pair]
        pages.discount[index], pages.known[index] = discount[pair], True


@kernel
def _write_rewards(pairs, reward, pages):
    """Write the rewards (P,) of ``pairs`` (3, P) to the pages."""
    for pair in range(pairs.shape[1]):
        index = pairs[0, pair], pairs[1, pair], pairs[2, pair]
        pages.reward[index], pages.rewarded[index] = reward[pair], True
