import pytest
import torch
from torch.nn import functional

from skipper.agents.director.layers import (
    Dense,
    balanced_kl,
    categorical_kl,
    few_class_log_softmax,
    few_class_softmax,
    mlp,
    sample_one_hot,
    straight_through,
    symexp,
    symlog,
)
from skipper.agents.director.pictures import PixelDecoder, PixelEncoder, Pixels
from skipper.agents.director.world_model import State, WorldModel
from tests.agents.director.director_fixtures import network, sequences, small, uniform


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_symlog():
    assert float(symlog(torch.tensor(1.0))) == pytest.approx(0.693147, abs=1e-6)
    values = torch.tensor([-5.0, -0.1, 0.0, 3.0])
    torch.testing.assert_close(symexp(symlog(values)), values)


def test_blocks_have_no_bias_and_a_large_epsilon():
    block = Dense(3, 5)
    assert block.linear.bias is None
    assert block.norm.eps == 1e-3
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    y = x @ block.linear.weight.T
    y = (y - y.mean(-1, keepdim=True)) / (y.var(-1, unbiased=False, keepdim=True) + 1e-3).sqrt()
    torch.testing.assert_close(block(x), functional.elu(y))


def test_output_layers_start_small():
    layer = mlp(30, 2, 50, 10)[-1]
    limit = (3 * 0.1 / 30) ** 0.5
    assert 0.9 * limit < layer.weight.abs().max() <= limit
    assert (layer.bias == 0).all()


def test_the_full_size_has_the_published_shapes():
    config, spec = small("paper")
    with torch.device("meta"):
        model = WorldModel(config.model, spec)
    sizes = {"encoder": 2_757_504, "dynamics": 13_650_944, "decoder": 14_229_123}
    sizes |= {"reward": 1_839_617, "continuation": 1_839_617}
    assert {name: count(getattr(model, name)) for name in sizes} == sizes
    assert count(model) == 34_316_805


def test_goal_autoencoder_and_batches_have_the_published_sizes():
    config, spec = small("paper")
    with torch.device("meta"):
        goals = network(config, spec).goals
    assert (count(goals.encoder), count(goals.decoder)) == (1_347_648, 1_348_608)


def test_pictures_shrink_and_grow_through_the_published_sizes():
    config, spec = small("paper", model={"picture_depth": 2})
    sides = []
    encoder, decoder = PixelEncoder(config.model, spec), PixelDecoder(8, config.model, spec)
    for layer in [*encoder.layers, *decoder.layers]:
        if isinstance(layer, torch.nn.Conv2d | torch.nn.ConvTranspose2d):
            layer.register_forward_hook(lambda _, __, found: sides.append(found.shape[-1]))
    encoder(torch.zeros(1, 12, 12, dtype=torch.int64))
    decoder(torch.zeros(1, 8))
    assert sides == [31, 14, 6, 2, 5, 13, 30, 64]


def test_a_picture_shows_every_cell_and_can_be_read_back():
    _, spec = small("paper")
    pixels = Pixels(spec)
    classes = torch.randint(5, (2, 12, 12), generator=torch.Generator().manual_seed(0))
    picture = pixels(classes)
    assert picture.shape == (2, 3, 64, 64)
    assert (picture[:, :, :2] == 128 / 255).all()  # the frame
    assert (picture[:, :, :, -2:] == 128 / 255).all()
    torch.testing.assert_close(pixels.cells(picture), pixels.colours(classes))
    assert torch.equal(picture[0, :, 2 + 5 * 7, 2 + 5 * 3], pixels.colours.table[classes[0, 3, 7]])  # rows are y


def test_samples_have_the_given_probabilities():
    probabilities = torch.tensor([0.1, 0.0, 0.6, 0.3]).expand(20_000, 4)
    found = sample_one_hot(probabilities, uniform(20_000))
    assert (found.sum(-1) == 1).all()
    torch.testing.assert_close(found.mean(0), probabilities[0], atol=0.02, rtol=0)
    rounded = sample_one_hot(torch.tensor([0.5, 0.4999]), torch.tensor(0.99999))  # sums may round to less than 1
    assert rounded.tolist() == [0, 1]


def test_samples_are_the_classes_that_the_numbers_fall_into():
    probabilities = torch.tensor([0.0, 0.5, 0.25, 0.25]).expand(6, 4)
    numbers = torch.tensor([0.0, 0.49, 0.5, 0.74, 0.75, 0.9999])
    assert sample_one_hot(probabilities, numbers).argmax(-1).tolist() == [1, 1, 2, 2, 3, 3]
    short = torch.tensor([[0.5, 0.4999]])  # rounded: the last class takes what is missing
    assert sample_one_hot(short, torch.tensor([0.99999])).argmax(-1).tolist() == [1]


def test_softmax_of_few_classes_is_that_of_pytorch():
    logits = torch.tensor([[[0.2, -0.5, 1.0], [90.0, 0.0, -90.0]]], requires_grad=True)
    direction = torch.tensor([1.0, 2.0, -1.0])
    for ours, twin in ((few_class_softmax, torch.softmax), (few_class_log_softmax, torch.log_softmax)):
        found, wanted = ours(logits), twin(logits, -1)
        torch.testing.assert_close(found, wanted)
        gradients = [torch.autograd.grad((each * direction).sum(), logits)[0] for each in (found, wanted)]
        torch.testing.assert_close(*gradients)


def test_straight_through_gradients_are_those_of_the_probabilities():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 3, 4, generator=generator, requires_grad=True)
    weights, numbers = torch.randn(2, 3, 4, generator=generator), uniform(2, 3)
    sample = straight_through(logits, numbers)
    assert torch.equal(sample, sample_one_hot(logits.detach().softmax(-1), numbers))
    (found,) = torch.autograd.grad((sample * weights).sum(), logits)
    (expected,) = torch.autograd.grad((logits.softmax(-1) * weights).sum(), logits)
    torch.testing.assert_close(found, expected)


def test_prior_and_posterior_get_their_shares_of_the_divergence():
    posterior = torch.tensor([[0.3, -0.2, 0.9]], requires_grad=True)
    prior = torch.tensor([[-0.4, 0.1, 0.2]], requires_grad=True)
    balanced = torch.autograd.grad(balanced_kl(posterior, prior, 0.8).sum(), (posterior, prior))
    divergence = categorical_kl(few_class_log_softmax(posterior), few_class_log_softmax(prior))
    whole = torch.autograd.grad(divergence.sum(), (posterior, prior))
    torch.testing.assert_close(balanced[0], 0.2 * whole[0])
    torch.testing.assert_close(balanced[1], 0.8 * whole[1])
    # Finite differences of the whole divergence.
    step, moved = 1e-3, torch.tensor([[0.0, 1e-3, 0.0]])
    sides = [(posterior + sign * moved).detach() for sign in (-1, 1)]
    low, high = (categorical_kl(side.log_softmax(-1), prior.detach().log_softmax(-1)) for side in sides)
    slope = (high - low) / (2 * step)
    assert float(whole[0][0, 1]) == pytest.approx(float(slope), abs=1e-3)


def test_the_model_trains_both_sides_of_the_divergence_with_these_shares():
    config, spec = small(model={"kl_scale": 1.0})
    model, batch, random = network(config, spec).world_model, sequences(spec), uniform(6, 3, config.model.latents)
    found = {}
    for balance in (0.8, 0.2):
        object.__setattr__(model, "config", type(config.model)(**vars(config.model) | {"kl_balance": balance}))
        model.zero_grad()
        model(batch, random).loss.backward()
        found[balance] = model.dynamics.prior_output.weight.grad.clone()
    # Only the divergence reaches the prior's output layer.
    torch.testing.assert_close(found[0.8], 4 * found[0.2])


def test_the_first_action_of_a_sequence_is_ignored():
    config, spec = small()
    model, batch = network(config, spec).world_model, sequences(spec)
    random = uniform(6, 3, config.model.latents)
    other = batch._replace(action=torch.cat([batch.action[:1].roll(1, -1), batch.action[1:]]))
    late = batch._replace(action=torch.cat([batch.action[:1], batch.action[1:].roll(1, -1)]))
    states = [model(each, random).state for each in (batch, other, late)]
    assert torch.equal(states[0].deter, states[1].deter)
    assert not torch.equal(states[0].deter, states[2].deter)


def test_an_episode_within_a_sequence_begins_from_the_initial_state():
    config, spec = small()
    model, batch = network(config, spec).world_model, sequences(spec)
    T, B = batch.reward.shape  # noqa: N806
    random, embedding = uniform(T, B, config.model.latents), model.embed(batch.classes)
    first = torch.zeros(T, B, dtype=torch.bool)
    first[2, 1] = True  # of the second sequence, an episode begins with the third state
    whole, _ = model.dynamics.observe(embedding, batch.action, random)
    found, _ = model.dynamics.observe(embedding, batch.action, random, first)
    later, _ = model.dynamics.observe(embedding[2:], batch.action[2:], random[2:])
    for together, plain, alone in zip(found, whole, later, strict=True):
        torch.testing.assert_close(together[2:, 1], alone[:, 1])
        torch.testing.assert_close(together[:, [0, 2]], plain[:, [0, 2]])
        torch.testing.assert_close(together[:2], plain[:2])
    assert not torch.allclose(found.deter[2:, 1], whole.deter[2:, 1])


def test_imagined_and_observed_steps_agree():
    config, spec = small()
    model, batch = network(config, spec).world_model, sequences(spec)
    random = uniform(6, 3, config.model.latents)
    states, _ = model.dynamics.observe(model.embed(batch.classes), batch.action, random)
    before = State(states.deter[2], states.stoch[2])
    imagined = model.dynamics.imagine(before, batch.action[3], random[3])
    torch.testing.assert_close(imagined.deter, states.deter[3])
    torch.testing.assert_close(model.dynamics.prior(imagined.deter), model.dynamics.prior(states.deter[3]))
    # One observed step at a time gives the same states as the whole sequence.
    one = model.dynamics.observe_one(before, model.embed(batch.classes[3]), batch.action[3], random[3])
    torch.testing.assert_close(one.deter, states.deter[3])
    assert torch.equal(one.stoch.round(), states.stoch[3].round())


def test_the_recurrent_cell_by_hand():
    config, spec = small()
    dynamics = network(config, spec).world_model.dynamics
    state, action = dynamics.initial(2), torch.eye(4)[:2]
    hidden = dynamics.inputs(torch.cat([state.stoch, action], -1))
    mixed = dynamics.cell_norm(dynamics.cell(torch.cat([state.deter, hidden], -1)))
    width = config.model.deterministic
    reset, candidate, update = mixed[:, :width], mixed[:, width : 2 * width], mixed[:, 2 * width :]
    update = torch.sigmoid(update - 1)
    wanted = update * torch.tanh(torch.sigmoid(reset) * candidate) + (1 - update) * state.deter
    found = dynamics.imagine(state, action, uniform(2, config.model.latents)).deter
    torch.testing.assert_close(found, wanted)


def test_cells_that_show_the_agent_weigh_more():
    config, spec = small()
    heavy, _ = small(model={"agent_cell_weight": 10.0})
    light_model, heavy_model = network(config, spec).world_model, network(heavy, spec).world_model
    features, classes = (
        torch.zeros(1, light_model.reward[0].linear.in_features),
        torch.zeros(1, *spec.shape[:2], dtype=torch.int64),
    )
    assert torch.equal(light_model.decoder.loss(features, classes), heavy_model.decoder.loss(features, classes))
    classes[0, 2, 4] = spec.palette.agent
    light, more = (model.decoder.loss(features, classes) for model in (light_model, heavy_model))
    own = -light_model.decoder(features).log_softmax(-1)[0, 2 * spec.shape[1] + 4, spec.palette.agent]
    torch.testing.assert_close(more - light, 9 * own[None])


def test_the_decoded_agent_is_the_most_likely_cell():
    config, spec = small()
    decoder = network(config, spec).world_model.decoder
    with torch.no_grad():
        output = decoder.layers[-1]
        output.weight.zero_()
        bias = output.bias.view(-1, 5)
        bias[13, spec.palette.agent] = 3.0
    assert decoder.agent_cell(torch.zeros(2, decoder.layers[0].linear.in_features)).tolist() == [13, 13]
    classes = decoder.classes(torch.zeros(1, decoder.layers[0].linear.in_features))
    assert int(classes[0, 13 // spec.shape[1], 13 % spec.shape[1]]) == spec.palette.agent
