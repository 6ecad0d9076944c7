import torch

from skipper.agents.director.pictures import BalancedClasses
from tests.agents.director.director_fixtures import network, small


def test_balanced_classes_have_mean_0_and_variance_1_in_the_examples():
    _, spec = small()
    seen = torch.from_numpy(spec.palette.classes(spec.examples))
    shown = BalancedClasses(spec)(seen).flatten(0, 2)  # (N, K)
    present = torch.bincount(seen.flatten(), minlength=shown.shape[1]) > 0
    assert present[spec.palette.agent]
    torch.testing.assert_close(shown.mean(0)[present], torch.zeros(int(present.sum())), atol=1e-5, rtol=0)
    # A one-hot entry of share p has variance p (1 - p), so 1 - p in these units.
    share = torch.bincount(seen.flatten(), minlength=shown.shape[1]) / seen.numel()
    torch.testing.assert_close(shown.var(0, correction=0)[present], 1 - share[present])


def test_balanced_classes_are_saved_with_the_weights():
    config, spec = small(model={"balanced_cells": True})
    trained, loaded = network(config, spec), network(config, spec._replace(examples=None))
    loaded.load_state_dict(trained.state_dict())
    classes = torch.from_numpy(spec.palette.classes(spec.examples))
    assert torch.equal(loaded.world_model.embed(classes), trained.world_model.embed(classes))
