import numpy as np
import pytest
import torch

from skipper.config import NetworkConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.nets.layers import seeded_initialisation
from skipper.nets.selector import LocalFieldSelector, PartialStates, Selection, WholeState
from skipper.types import EnvironmentSpec


def selector(size=(12, 12), **fields) -> LocalFieldSelector:
    options = {"field": 8, "width": 32, "top": 4} | fields
    with seeded_initialisation(0):
        return LocalFieldSelector(6, size, **options)


def layer_by_layer(module: LocalFieldSelector, state: torch.Tensor) -> Selection:
    """The naive twin: attention over all fields as the paper writes it."""
    raw = module.fields(state).flatten(2).transpose(1, 2)  # (B, F, D)
    fields = module.before(raw)
    scores = module.key(raw if module.linear else fields) @ module.query * module.query.shape[0] ** -0.5
    best, chosen = scores.topk(module.top, dim=-1)  # (B, k)
    weights = best.softmax(-1)
    index = chosen[..., None].expand(-1, -1, fields.shape[-1])
    mixed = (weights[..., None] * module.value(fields).gather(1, index)).sum(1)
    return Selection(torch.relu(module.after(mixed)), chosen, weights)


def gradients(module: LocalFieldSelector, state: torch.Tensor, naive: bool) -> list[torch.Tensor]:
    module.zero_grad()
    state = state.clone().requires_grad_()
    out = (layer_by_layer(module, state) if naive else module.select(state)).partial
    (out * torch.linspace(-1, 1, out.numel()).reshape(out.shape)).sum().backward()
    return [out.detach(), state.grad, *(parameter.grad.clone() for parameter in module.parameters())]


@pytest.mark.parametrize("size", [(12, 12), (9, 11), (5, 5)])
@pytest.mark.parametrize("linear", [False, True])
def test_selection_equals_the_layers_one_after_the_other_with_gradients(size, linear):
    module = selector(size, linear=linear)
    state = torch.randn(7, 6, *size)
    for fast, naive in zip(gradients(module, state, False), gradients(module, state, True), strict=True):
        torch.testing.assert_close(fast, naive, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("linear", [False, True])
def test_without_gradients_it_is_the_same_function(linear):
    module, state = selector(linear=linear), torch.randn(7, 6, 12, 12)
    with torch.no_grad():
        found = module.select(state)
    wanted = module.select(state)
    assert (found.fields == wanted.fields).all()
    torch.testing.assert_close(found.partial, wanted.partial)


def test_attention_takes_the_best_fields_and_no_other():
    module = selector(top=4)
    state = torch.randn(3, 6, 12, 12)
    chosen = module.select(state)
    assert chosen.fields.shape == chosen.weights.shape == (3, 4)
    torch.testing.assert_close(chosen.weights.sum(-1), torch.ones(3))
    fields = module.before(module.fields(state).flatten(2).transpose(1, 2))  # (B, 25, D)
    scores = module.key(fields) @ module.query / 32**0.5
    for row in range(3):
        best = sorted(range(25), key=lambda place: -scores[row, place])[:4]
        assert set(best) == set(chosen.fields[row].tolist())
        weights = scores[row, best].softmax(0)
        mixed = sum(weight * module.value(fields[row, place]) for weight, place in zip(weights, best, strict=True))
        torch.testing.assert_close(chosen.partial[row], torch.relu(module.after(mixed)), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("size", [(12, 12), (9, 13)])
def test_linear_scores_are_those_of_fields_before_their_normalisation(size):
    module, state = selector(size, field=5, linear=True), torch.randn(6, 6, *size)
    with torch.no_grad():  # the bias is the same for all fields, and does not matter
        module.fields.bias += torch.linspace(-3.0, 3.0, 32)
        # A normalisation that would change the order of the fields.
        module.before.weight.copy_(torch.linspace(-1.0, 1.0, 32))
    chosen = module.select(state)
    for row in range(6):
        scores = []
        for x in range(module.grid[0]):
            for y in range(module.grid[1]):
                patch = state[row, :, x : x + 5, y : y + 5]
                field = (module.fields.weight * patch).sum((1, 2, 3)) + module.fields.bias
                scores.append(module.key(field) @ module.query / 32**0.5)
        best, fields = torch.stack(scores).topk(4)
        assert chosen.fields[row].tolist() == fields.tolist()
        torch.testing.assert_close(chosen.weights[row], best.softmax(0), atol=1e-5, rtol=1e-4)
    module.linear = False
    assert (module.select(state).fields != chosen.fields).any()


def test_what_lies_outside_the_selected_fields_does_not_matter():
    module = selector(field=3, top=1)
    state = torch.randn(1, 6, 12, 12)
    chosen = module.select(state)
    x, y = divmod(int(chosen.fields[0, 0]), module.grid[1])
    inside = torch.zeros(12, 12, dtype=torch.bool)
    inside[x : x + 3, y : y + 3] = True
    changed = torch.where(inside, state, state * 0.999)  # too little to change the choice
    assert module.select(changed).fields.tolist() == chosen.fields.tolist()
    torch.testing.assert_close(module(changed), chosen.partial)


@pytest.mark.parametrize(("size", "grid", "top"), [((12, 12), (5, 5), 4), ((6, 9), (1, 2), 2), ((3, 3), (1, 1), 1)])
def test_fields_shrink_to_small_grids(size, grid, top):
    module = selector(size)
    assert (module.grid, module.top) == (grid, top)
    assert module(torch.randn(2, 6, *size)).shape == (2, 32)


def test_the_ablation_sees_the_whole_state():
    module = WholeState(2, (3, 4), width=5)
    state = torch.randn(2, 2, 3, 4)
    torch.testing.assert_close(module(state), module.project(state.reshape(2, 24)))


def test_configuration_chooses_between_selector_and_ablation():
    spec = EnvironmentSpec((7, 6, 2), (11, 6), 4, 64)
    observation = torch.ones(2, 7, 6, 2, dtype=torch.uint8)
    for abstraction, kind in ((True, LocalFieldSelector), (False, WholeState)):
        module = PartialStates(NetworkConfig(spatial_abstraction=abstraction, partial_width=20), spec)
        assert isinstance(module.select, kind)
        assert module(observation).shape == (2, 20)


def test_every_field_of_the_configuration_reaches_the_network():
    spec = environment_spec(LavaConfig())
    config = NetworkConfig(embedding=6, scaled_start=True, field_size=5, fields=3, partial_width=10, linear_scores=True)
    module = PartialStates(config, spec)
    assert module.select.fields.weight.shape == (10, 6, 5, 5)
    assert module.select.top == 3
    assert module.select.linear
    assert not PartialStates(NetworkConfig(), spec).select.linear
    assert module.encode.embed(torch.from_numpy(spec.examples)).mean((0, 2, 3)).abs().max() < 1e-5
    with pytest.raises(ValueError, match="needs examples of observations"):
        PartialStates(config, spec._replace(examples=None))


def test_the_papers_shapes():
    module = PartialStates(NetworkConfig(), EnvironmentSpec((12, 12, 2), (11, 6), 4, 64))
    assert module.select.fields.weight.shape == (128, 16, 8, 8)
    assert module.encode.mix.widen.weight.shape == (32, 16, 3, 3)
    assert (module.select.grid, module.select.top) == ((5, 5), 4)


@pytest.mark.parametrize("linear", [False, True])
def test_attention_is_told_in_cells(linear):
    spec = EnvironmentSpec((9, 12, 2), (11, 6), 4, 64)
    with seeded_initialisation(0):
        module = PartialStates(NetworkConfig(field_size=5, fields=3, linear_scores=linear), spec)
    observation = np.random.default_rng(0).integers(6, size=(4, 9, 12, 2), dtype=np.uint8)
    found = module.attend(observation)
    with torch.no_grad():
        selected = module.select.select(module.encode(torch.from_numpy(observation)))
    assert found.fields.shape == (4, 3, 4)
    assert (found.fields[..., 0] * module.select.grid[1] + found.fields[..., 1] == selected.fields.numpy()).all()
    assert (found.fields[..., 2:] == 5).all()
    np.testing.assert_allclose(found.weight, selected.weights, rtol=1e-5)
    np.testing.assert_allclose(found.weight.sum(-1), 1.0, rtol=1e-5)
