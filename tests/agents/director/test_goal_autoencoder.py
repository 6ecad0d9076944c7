import pytest
import torch

from skipper.agents.director.config import GoalConfig
from skipper.agents.director.goal_autoencoder import GoalAutoencoder, kl_from_uniform
from skipper.nets.layers import seeded_initialisation
from tests.agents.director.director_fixtures import uniform


def test_divergence_of_codes():
    assert float(kl_from_uniform(torch.zeros(8, 8))) == pytest.approx(0, abs=1e-5)
    certain = torch.zeros(8, 8)
    certain[:, 3] = 100.0
    assert float(kl_from_uniform(certain)) == pytest.approx(16.6355, abs=1e-3)


def test_the_loss_sums_errors_and_weighs_the_divergence():
    with seeded_initialisation(0):
        goals = GoalAutoencoder(GoalConfig(goal_layers=1, goal_units=16), width=5)
    deter = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    loss, metrics = goals(deter, uniform(7, 8))
    loss, scale = loss.detach(), float(goals.kl_scale.scale)
    assert scale == pytest.approx(1 / 1.1)  # the divergence starts far below its target
    assert float(loss) == pytest.approx(float(metrics["goal_error"]) + scale * float(metrics["goal_kl"]), rel=1e-5)
    assert goals.goal(torch.zeros(2, 8, 8)).shape == (2, 5)


def test_states_never_seen_are_novel():
    """Train on half of the cells of a line, one-hot: the other half has larger errors."""
    with seeded_initialisation(0):
        goals = GoalAutoencoder(GoalConfig(goal_layers=1, goal_units=32), width=16)
    optimizer = torch.optim.Adam(goals.parameters(), 3e-3)
    seen, unseen = torch.eye(16)[:8], torch.eye(16)[8:]
    for step in range(300):
        optimizer.zero_grad()
        goals(seen.repeat(4, 1), uniform(32, 8, seed=step))[0].backward()
        optimizer.step()
    known, unknown = (float(goals.novelty(each, uniform(8, 8)).mean()) for each in (seen, unseen))
    assert unknown > 3 * known
