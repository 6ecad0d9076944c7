import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipper.planning.value_iteration import choose_target, value_iteration


def test_a_chain_computed_by_hand():
    """0 -> 1 -> 2, the last step paid: its value comes to the first vertex in the second sweep."""
    reward, discount = np.zeros((1, 3, 3)), np.zeros((1, 3, 3))
    discount[0, 0, 1] = discount[0, 1, 2] = 0.5
    reward[0, 1, 2] = 1.0
    once = value_iteration(reward, discount, 1)
    assert once.vertex.tolist() == [[0.0, 1.0, 0.0]]
    twice = value_iteration(reward, discount, 2)
    assert twice.vertex.tolist() == [[0.5, 1.0, 0.0]]
    assert twice.action[0, 0].tolist() == [0.0, 0.5, 0.0]


def test_ties_go_to_the_nearest():
    q = np.array([[0.5, 0.5 + 9e-6, 0.4, 0.5], [0.1, 0.2, 0.3, 0.4]])
    distance = np.array([[5.0, 3.0, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0]])
    possible = np.array([[True, True, True, False], [True, True, True, True]])
    assert choose_target(q, possible, distance).tolist() == [1, 3]


def test_where_nothing_is_possible_nothing_is_chosen():
    assert choose_target(np.ones((1, 3)), np.zeros((1, 3), bool), np.ones((1, 3))).tolist() == [-1]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), vertices=st.integers(2, 6), sweeps=st.integers(1, 4))
def test_values_are_those_of_the_best_path_of_at_most_so_many_edges(seed, vertices, sweeps):
    rng = np.random.default_rng(seed)
    discount = rng.random((1, vertices, vertices)) * 0.95
    reward = rng.random((1, vertices, vertices)) * (rng.random((1, vertices, vertices)) < 0.3)

    def best(vertex: int, edges: int) -> float:
        if not edges:
            return 0.0
        return max(
            reward[0, vertex, target] + discount[0, vertex, target] * best(target, edges - 1)
            for target in range(vertices)
        )

    values = value_iteration(reward, discount, sweeps).vertex[0]
    assert values == pytest.approx([best(vertex, sweeps) for vertex in range(vertices)])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), eps_v=st.floats(0, 1e-3), eps_gamma=st.floats(0, 1e-5))
def test_theorem_1_errors_of_edges_bound_the_error_of_values(seed, eps_v, eps_gamma):
    """Perturb exact edges by at most eps: values move by at most eps_v v_max/(1-g) + eps_g v_max/(1-g)^2."""
    rng = np.random.default_rng(seed)
    gamma, vertices = 0.99, 8
    steps = rng.integers(1, 16, size=(1, vertices, vertices))
    discount = gamma**steps
    reward = rng.random((1, vertices, vertices)) * (1 - discount)  # so that no value exceeds v_max = 1
    noisy_reward = reward + eps_v * rng.uniform(-1, 1, reward.shape)
    noisy_discount = discount + eps_gamma * rng.uniform(-1, 1, discount.shape)
    exact = value_iteration(reward, discount, 400).vertex
    noisy = value_iteration(noisy_reward, noisy_discount, 400).vertex
    bound = eps_v / (1 - gamma) + eps_gamma / (1 - gamma) ** 2
    second_order = (eps_v + eps_gamma / (1 - gamma)) * eps_gamma / (1 - gamma) ** 2
    assert abs(noisy - exact).max() <= bound + second_order + 1e-9
