"""Golden numbers for H = 8 and K = 4, computed by hand from the formulas of the public code."""

import pytest
import torch

from skipper.agents.director.trajectories import (
    abstract_continuation,
    abstract_rewards,
    hold_first,
    lambda_returns,
    max_cosine,
    split,
    split_rewards,
    weights,
)

K = 4
CONTINUATION = torch.tensor([1, 0.9, 0.8, 1, 0.5, 1, 1, 0.7, 1])[:, None]  # (H + 1, 1)
REWARDS = torch.arange(10.0, 90.0, 10.0)[:, None]  # (H, 1)


def close(found: torch.Tensor, wanted: list) -> None:
    torch.testing.assert_close(found, torch.tensor(wanted), rtol=1e-5, atol=1e-6)


def test_the_worker_sees_pieces_that_share_their_borders():
    pieces = split(torch.arange(9.0)[:, None], K)  # (K + 1, N)
    close(pieces.T, [[0.0, 1, 2, 3, 4], [4.0, 5, 6, 7, 8]])
    close(split_rewards(REWARDS, K).T, [[10.0, 20, 30, 40], [50.0, 60, 70, 80]])
    goals = (torch.arange(9) // K).float()[:, None, None]  # (H + 1, 1, 1)
    close(hold_first(split(goals, K))[..., 0].T, [[0.0] * 5, [1.0] * 5])


def test_pieces_of_a_batch_come_piece_by_piece():
    states = torch.stack([torch.arange(9.0), 100 + torch.arange(9.0)], 1)  # (H + 1, B)
    close(split(states, K)[0], [0.0, 100, 4, 104])


def test_weights_within_pieces():
    found = weights(split(CONTINUATION, K), 0.99).T
    close(found, [[1, 0.891, 0.705672, 0.698615, 0.345815], [0.5, 0.495, 0.49005, 0.339605, 0.336209]])


def test_the_manager_sees_every_fourth_state():
    close(abstract_rewards(REWARDS, CONTINUATION, K, "mean")[:, 0], [19.6, 29.5])
    close(abstract_rewards(REWARDS, CONTINUATION, K, "sum")[:, 0], [78.4, 118.0])
    continuation = abstract_continuation(CONTINUATION, K)
    close(continuation[:, 0], [1, 0.36, 0.7])
    close(weights(continuation, 0.99)[:, 0], [1, 0.3564, 0.246985])
    close(torch.arange(9.0)[::K], [0.0, 4, 8])


def test_a_terminal_start_has_no_weight():
    continuation = CONTINUATION.clone()
    continuation[0] = 0
    assert (weights(split(continuation, K), 0.99)[:, 0] == 0).all()
    assert (weights(abstract_continuation(continuation, K), 0.99) == 0).all()


@pytest.mark.parametrize(
    ("rewards", "values", "continuation", "wanted"),
    [
        ([0, 0, 1, 0], [0.5] * 5, [1, 1, 1, 0, 1], [0.932568, 0.96525, 1, 0.495]),
        ([1, 2, 3], [10, 20, 30, 40], [1, 1, 1, 1], [42.949057, 43.5503, 42.6]),
    ],
)
def test_lambda_returns(rewards, values, continuation, wanted):
    columns = (torch.tensor(column, dtype=torch.float32)[:, None] for column in (rewards, values, continuation))
    close(lambda_returns(*columns, discount=0.99, mix=0.95)[:, 0], wanted)


def test_nothing_behind_an_ending_counts():
    continuation = torch.tensor([1.0, 1, 0, 1, 1])[:, None]
    values = torch.full((5, 1), 0.5)
    before = lambda_returns(torch.tensor([0.0, 1, 0, 0])[:, None], values, continuation, 0.99, 0.95)
    after = lambda_returns(torch.tensor([0.0, 1, 7, 9])[:, None], values, continuation, 0.99, 0.95)
    assert torch.equal(before[:2], after[:2])
    assert not torch.equal(before[2:], after[2:])


@pytest.mark.parametrize(
    ("state", "wanted"),
    [((3, 4), 1), ((6, 8), 0.5), ((1.5, 2), 0.5), ((-3, -4), -1), ((4, -3), 0), ((1, 0), 0.12), ((10, 0), 0.3)],
)
def test_max_cosine(state, wanted):
    goal, state = torch.tensor([3.0, 4.0]), torch.tensor(state, dtype=torch.float32)
    assert max_cosine(goal, state) == pytest.approx(wanted, abs=1e-6)
    assert max_cosine(state, goal) == pytest.approx(wanted, abs=1e-6)


def test_max_cosine_is_bounded_and_finite():
    generator = torch.Generator().manual_seed(0)
    goal, state = torch.randn(2, 100, 8, generator=generator)
    assert max_cosine(goal, state).abs().max() <= 1
    zero = torch.zeros(8)
    assert torch.isfinite(max_cosine(zero, state)).all()
    assert torch.isfinite(max_cosine(zero, zero))
