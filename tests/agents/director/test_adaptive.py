import pytest
import torch

from skipper.agents.director.adaptive import AdaptiveScale, MovingMoments

QUANTITIES = (5, 5, 2, 2, 2, 3.5, 3.84, 3.86, 3.19, 3.17)


def test_the_scale_follows_its_target():
    scale = AdaptiveScale(3.5, 1e-5, 1.0)
    found = [float(scale(torch.tensor(quantity))) for quantity in QUANTITIES]
    wanted = [1, 1, 0.909091, 0.826446, 0.751315, 0.751315, 0.751315, 0.826446, 0.826446, 0.751315]
    assert found == pytest.approx(wanted, abs=1e-6)


def test_an_inverse_scale_moves_the_other_way():
    scale = AdaptiveScale(0.5, 1e-5, 1e2, (2,), inverse=True)
    found = scale(torch.tensor([0.6, 0.4]))
    assert found.tolist() == pytest.approx([1 / 1.1, 1.1])
    assert scale(torch.tensor([0.5, 0.5])).tolist() == pytest.approx(found.tolist())


def test_scales_stay_within_their_limits():
    scale = AdaptiveScale(1.0, 0.5, 2.0)
    for _ in range(20):
        low = float(scale(torch.tensor(0.1)))
    for _ in range(40):
        high = float(scale(torch.tensor(9.0)))
    assert (low, high) == (0.5, 2.0)


def test_moments_are_corrected_for_their_start():
    moments = MovingMoments(0.999, 0.01)
    values = torch.tensor([10.0, 30.0])
    mean, deviation = moments(values)
    assert float(mean) == pytest.approx(20, rel=1e-4)
    assert float(deviation) == pytest.approx(10, rel=1e-3)


def test_returns_come_out_with_unit_deviation():
    moments, generator = MovingMoments(0.999, 0.01), torch.Generator().manual_seed(0)
    for _ in range(200):
        returns = 50 + 10 * torch.randn(64, generator=generator)
        _, deviation = moments(returns)
    assert float((returns / deviation).std()) == pytest.approx(1, abs=0.25)


def test_constant_values_do_not_blow_up():
    moments = MovingMoments(0.999, 0.01)
    for _ in range(3):
        _, deviation = moments(torch.full((8,), 2.0))
    assert float(deviation) == pytest.approx(0.01, rel=0.5)
