"""The cross-entropy method on costs that are known."""

import numpy as np
import pytest

from skipper.planning.cem import SearchConfig, search

BITS = 6


def distance_to(wanted: np.ndarray):
    """The number of bits in which sequences differ from ``wanted`` (B, M)."""

    def cost(rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
        differing = codes ^ wanted[rows, None]
        return sum((differing >> bit) & 1 for bit in range(BITS)).sum(-1).astype(float)

    return cost


def test_the_search_finds_the_best_sequence_of_an_easy_cost():
    wanted = np.random.default_rng(0).integers(64, size=(20, 3))
    found = search(distance_to(wanted), 20, BITS, SearchConfig(iterations=8, good_enough=0.0), np.random.default_rng(1))
    assert (found.codes == wanted).all(-1).mean() > 0.9
    assert (np.diff(found.history.mean(1)[:3]) < 0).all()


def test_no_bit_is_ever_certain():
    wanted = np.zeros((4, 3), np.int64)
    found = search(distance_to(wanted), 4, BITS, SearchConfig(iterations=9, good_enough=0.0), np.random.default_rng(0))
    assert found.chance.min() == pytest.approx(0.005)  # zeros are certain, but for the share of the uniform
    assert found.chance.max() <= 0.995


def test_a_search_stops_when_it_is_good_enough():
    calls = []

    def cost(rows, codes):
        calls.append(rows.tolist())
        return np.where(rows[:, None] == 0, 1.0, 2.0) + np.zeros(codes.shape[:2])

    found = search(cost, 2, BITS, SearchConfig(iterations=3), np.random.default_rng(0))
    assert calls == [[0, 1], [1], [1]]
    np.testing.assert_array_equal(found.history, [[1.0, 2.0], [np.nan, 2.0], [np.nan, 2.0]])


def test_a_search_does_not_depend_on_when_others_stop():
    def first(other: float) -> list[int]:
        def cost(rows, codes):
            differing = distance_to(np.full((2, 3), 21))(rows, codes)
            return np.where(rows[:, None] == 0, differing + 2.0, other)

        return search(cost, 2, BITS, SearchConfig(), np.random.default_rng(0)).codes[0].tolist()

    assert first(other=1.0) == first(other=9.0)


def test_the_result_is_the_best_of_the_last_iteration():
    costs = iter([np.array([[3.0, 1.5, 2.0]]), np.array([[4.0, 5.0, 2.5]])])
    drawn = []

    def cost(_, codes):
        drawn.append(codes)
        return next(costs)

    config = SearchConfig(subgoals=2, samples=3, elites=1, iterations=2)
    found = search(cost, 1, BITS, config, np.random.default_rng(0))
    assert found.cost.tolist() == [2.5]
    assert found.codes[0].tolist() == drawn[1][0, 2].tolist()
    assert found.history[:, 0].tolist() == [1.5, 2.5]


@pytest.mark.parametrize("wrong", [{"elites": 129}, {"samples": 0}, {"uniform_share": 1.5}])
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SearchConfig(**wrong)
