"""Cached edges against estimates of the same pairs without a cache."""

import numpy as np
import pytest

from skipper.nets import edge_cache
from skipper.nets.edge_cache import EdgeCache
from skipper.types import CURRENT, Vertices, content_keys

SIZE = 4
ENVIRONMENTS = np.array([4, 0, 2])


class Numbers:
    """Estimates of states that show a number: all of them are functions of two numbers."""

    feature_shape = (1, 2)

    def __init__(self) -> None:
        self.projected: list[int] = []
        self.annotated = self.rewarded = 0

    def project(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        numbers = states[:, 1, 1, 0].astype(np.float32)
        self.projected += numbers.astype(int).tolist()
        return np.stack([numbers, -numbers], axis=1)[:, None], numbers > 200

    def annotate(self, features, source, target) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.annotated += len(source)
        one, two = features[source, 0, 0], features[target, 0, 0]
        return ((one + 2 * two) % 4).astype(np.int64), 100 * one + two, 1 / (1 + one + 3 * two)

    def rewards(self, features, source, target, action) -> np.ndarray:
        self.rewarded += len(source)
        return features[source, 0, 0] + 0.5 * features[target, 0, 0] + 1000 * action


class Scene:
    """The scene is the number in the corner; the agent is always in the same cell."""

    def scenery(self, observations: np.ndarray) -> np.ndarray:
        return observations[:, :1, :1, 0]

    def agent_cell(self, observations: np.ndarray) -> np.ndarray:
        return np.zeros(len(observations), np.int64)


def vertices(numbers: list[list[int]], scenes: list[int]) -> Vertices:
    """Problems with the given numbers, of which the first of equal ones is present."""
    rows = np.array(numbers)
    observation = np.zeros((*rows.shape, SIZE, SIZE, 1), np.uint8)
    observation[:, :, 1, 1, 0], observation[:, :, 0, 0, 0] = rows, np.array(scenes)[:, None]
    present = np.array([[number not in row[:place] for place, number in enumerate(row)] for row in numbers])
    return Vertices(observation, rows, present, content_keys(observation))


def random_vertices(rng: np.random.Generator, scenes: list[int], count: int = 6, highest: int = 12) -> Vertices:
    numbers = rng.integers(1, highest, size=(len(scenes), count))
    numbers[rng.random(numbers.shape) < 0.1] = 201  # terminal
    return vertices(numbers.tolist(), scenes)


def assert_right(cache: EdgeCache, given: Vertices, environments: np.ndarray, into_current: bool = True) -> None:
    """What the cache gives is what the estimates give for each pair, and nothing where there is no edge."""
    every = np.ones((*given.present.shape, given.present.shape[1]), bool)
    found, numbers = cache.edges(given, environments).where(every), Numbers()
    for row, one, two in np.ndindex(every.shape):
        features, terminal = numbers.project(given.observation[row, [one, two]])
        index = row, one, two
        absent = not given.present[row, one] or not given.present[row, two]
        ends = terminal[0] and one != CURRENT  # plans begin in the current state, whatever its estimate
        if absent or one == two or ends or (two == CURRENT and not into_current):
            assert (found.distance[index], found.discount[index], found.reward[index]) == (np.inf, 0.0, 0.0)
            continue
        pair = features, np.array([0]), np.array([1])
        action, distance, discount = numbers.annotate(*pair)
        assert found.action[index] == action[0]
        assert found.distance[index] == distance[0]
        assert found.discount[index] == discount[0]
        assert found.reward[index] == numbers.rewards(*pair, action)[0]
    expected = given.observation[..., 1, 1, 0] > 200
    expected[:, CURRENT] = False
    assert (found.terminal == expected)[given.present].all()


@pytest.mark.parametrize("into_current", [True, False])
def test_cached_edges_are_the_estimated_ones(into_current):
    rng, cache = np.random.default_rng(0), EdgeCache(Numbers(), Scene(), 50, into_current=into_current)
    for _ in range(8):
        assert_right(cache, random_vertices(rng, [1, 2, 3]), ENVIRONMENTS, into_current)
    for _ in range(3):  # the last two environments have new scenes
        assert_right(cache, random_vertices(rng, [1, 7, 8]), ENVIRONMENTS, into_current)


def test_nothing_is_estimated_twice():
    numbers = Numbers()
    cache, every = EdgeCache(numbers, Scene(), 50), np.ones((1, 5, 5), bool)
    for _ in range(3):
        cache.edges(vertices([[1, 2, 3, 4, 5]], [0]), np.array([0])).where(every)
    assert numbers.projected == [1, 2, 3, 4, 5]
    assert numbers.annotated == numbers.rewarded == 20
    cache.edges(vertices([[6, 2, 3, 4, 5]], [0]), np.array([0])).where(every)  # one new state
    assert numbers.projected[5:] == [6]
    assert numbers.annotated == numbers.rewarded == 28


def test_different_states_with_the_agent_in_the_same_cell_have_their_own_estimates():
    given = vertices([[1, 2, 3, 4]], [0])
    assert len(set(Scene().agent_cell(given.observation[0]).tolist())) == 1
    cache = EdgeCache(Numbers(), Scene(), 10)
    found = cache.edges(given, np.array([0]))
    assert len(np.unique(found.distance[np.isfinite(found.distance)])) == 12
    assert_right(cache, given, np.array([0]))


def test_a_full_page_is_emptied():
    rng, numbers = np.random.default_rng(1), Numbers()
    cache = EdgeCache(numbers, Scene(), 8)
    for _ in range(30):
        assert_right(cache, random_vertices(rng, [1, 2, 3], highest=30), ENVIRONMENTS)
    assert len(numbers.projected) > 8 * 3  # states were estimated again


def test_absent_vertices_are_recognised_where_their_state_is_on_the_page():
    cache = EdgeCache(Numbers(), Scene(), 10)
    given = vertices([[1, 201, 2, 201]], [0])
    present = np.array([[True, False, True, True]])  # the second vertex was merged with the goal
    found = cache.edges(given._replace(present=present), np.array([0]))
    assert found.terminal[0].tolist() == [False, True, False, True]
    unknown = vertices([[1, 202, 2, 201]], [0])._replace(present=present)
    assert cache.edges(unknown, np.array([0])).terminal[0].tolist() == [False, False, False, True]


def test_too_many_environments_or_vertices_do_not_fit(monkeypatch):
    cache = EdgeCache(Numbers(), Scene(), 8)
    assert cache.fits(np.arange(100), 8)
    assert not cache.fits(np.arange(3), 9)
    monkeypatch.setattr(edge_cache, "MOST_BYTES", 100_000)
    assert cache.fits(np.arange(3), 8)
    assert not cache.fits(np.array([100]), 8)  # pages are numbered as environments are


def test_rewards_of_an_older_plan_are_refused():
    cache = EdgeCache(Numbers(), Scene(), 8)
    older = cache.edges(vertices([[1, 2]], [0]), np.array([0]))
    cache.edges(vertices([[3, 4]], [5]), np.array([0]))
    with pytest.raises(AssertionError, match="newer plan"):
        older.where(np.ones((1, 2, 2), bool))


def test_states_that_could_not_be_estimated_are_not_cached(monkeypatch):
    numbers = Numbers()
    cache = EdgeCache(numbers, Scene(), 8)
    assert_right(cache, vertices([[1, 2, 3]], [0]), np.array([0]))
    monkeypatch.setattr(numbers, "project", lambda _: np.zeros(1)[2])
    with pytest.raises(IndexError):
        cache.edges(vertices([[1, 2, 5]], [0]), np.array([0]))
    monkeypatch.undo()
    assert_right(cache, vertices([[1, 2, 5]], [0]), np.array([0]))
