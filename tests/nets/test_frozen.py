"""FrozenNetwork against the plain modules: with twins, with caches, after updates, and with changed modules."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.optimizer import Optimizer
from skipper.config import LearningConfig, NetworkConfig, SkipperGeneratorConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.nets import frozen as frozen_module
from skipper.nets.estimators import LeapNetwork, SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.generator import Fuser
from skipper.nets.heads import PairwiseHead, discount_support
from skipper.nets.layers import seeded_initialisation
from skipper.nets.selector import LocalFieldSelector
from skipper.training.settings import configure
from skipper.types import Edges, Vertices, content_keys

WORLD = LavaConfig(6, 6, max_steps=20)
SPEC, TASKS = environment_spec(WORLD), training_tasks(WORLD, 4, seed=0)
BASE = configure("debug", "skipper-regen")
CONFIG = replace(
    BASE,
    world=WORLD,
    network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
    generator=SkipperGeneratorConfig(generator_width=4),
    planning=replace(BASE.planning, replan="step"),
)


def network(config=CONFIG) -> SkipperNetwork:
    """Weights as learning leaves them: codes give different cells."""
    with seeded_initialisation(0):
        built = SkipperNetwork(config, SPEC)
    with torch.no_grad():
        for parameter in built.generator.fuse.parameters():
            parameter *= 3.0
    return built


def states(count: int, task: int = 0) -> np.ndarray:
    return TASKS.observe(np.full(count, task), np.arange(count) * 7 % WORLD.cells)


def vertices(*problems: np.ndarray) -> Vertices:
    observation = np.stack(problems)
    shape = observation.shape[:2]
    return Vertices(observation, np.zeros(shape, int), np.ones(shape, bool), content_keys(observation))


@torch.no_grad()
def expected_edges(module: SkipperNetwork, given: Vertices) -> Edges:
    """The naive twin: the modules on all pairs of each problem."""
    columns = []
    for seen in given.observation:
        estimators, count = module.estimators, len(seen)
        sigma = estimators.partial(torch.from_numpy(seen))
        pairs = sigma.repeat_interleave(count, 0), sigma.repeat(count, 1)
        action = estimators.value.expectation(estimators.value(*pairs)).argmax(-1)
        rows = torch.arange(count * count), action
        histogram = estimators.distance(*pairs)[rows]
        discounts = discount_support(CONFIG.network.bins, CONFIG.learning.task_discount)
        square = (
            estimators.distance.expectation(histogram),
            estimators.distance.expectation(histogram, discounts),
            estimators.reward.expectation(estimators.reward(*pairs)[rows]),
            action,
        )
        terminal = estimators.terminal(sigma).argmax(-1) == 1
        distance, discount, reward, action = (column.reshape(count, count).numpy() for column in square)
        columns.append((distance, discount, reward, terminal.numpy(), action))
    return Edges(*map(np.stack, zip(*columns, strict=True)))


def assert_edges(frozen: FrozenNetwork, given: Vertices, environments: np.ndarray | None = None) -> None:
    every = np.ones((*given.present.shape, given.present.shape[1]), bool)
    found, expected = frozen.edges(given, environments).where(every), expected_edges(frozen.network, given)
    compared = every
    if environments is not None:  # cached edges leave out those that no plan uses
        compared = every & ~expected.terminal[:, :, None] & ~np.eye(every.shape[1], dtype=bool)
    assert compared.any()
    assert (found.action == expected.action)[compared].all()
    assert (found.terminal == expected.terminal).all()
    for name in ("distance", "discount", "reward"):
        np.testing.assert_allclose(
            getattr(found, name)[compared], getattr(expected, name)[compared], rtol=1e-4, atol=1e-6
        )


@torch.no_grad()
def assert_all_right(frozen: FrozenNetwork) -> None:
    """Everything that it answers is what the modules answer."""
    module, seen = frozen.network, states(5)
    observation = torch.from_numpy(seen)
    torch.testing.assert_close(frozen.encode(observation), module.estimators.partial(observation), rtol=1e-4, atol=1e-5)
    assert (frozen.describe(seen) == module.generator.codes(observation).numpy()).all()
    codes = np.arange(30).reshape(5, 6)
    logits = module.generator(observation, torch.from_numpy(codes))
    torch.testing.assert_close(frozen.logits(observation, torch.from_numpy(codes)), logits, rtol=1e-4, atol=1e-4)
    for environments in (None, np.arange(5)):
        cells = frozen.imagine(seen, codes, environments)
        # Sums in another order: of two cells that are equally likely, either may be given.
        chosen = np.take_along_axis(logits.numpy(), cells[..., None], -1)[..., 0]
        np.testing.assert_allclose(chosen, logits.amax(-1).numpy(), atol=1e-3)
        assert_edges(frozen, vertices(states(5), states(5, task=1)), None if environments is None else np.arange(2))
    sigma = module.estimators.partial(observation)
    values = module.estimators.value.expectation(module.estimators.value(sigma, sigma.flip(0)))
    np.testing.assert_allclose(frozen.values(seen, seen[::-1]), values.numpy(), rtol=1e-4, atol=1e-6)


SETTINGS = {
    "online": {"caching": False},
    "training": {},
    "evaluation": {"plans": CONFIG.planning},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_all_answers_are_those_of_the_modules(settings):
    assert_all_right(FrozenNetwork(network(), CONFIG, SPEC, **settings))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_all_answers_follow_the_weights(settings):
    module = network()
    frozen, optimizer = FrozenNetwork(module, CONFIG, SPEC, **settings), Optimizer(module, LearningConfig())
    assert_all_right(frozen)
    before, observation = frozen.encode(torch.from_numpy(states(3))), torch.from_numpy(states(4))
    for _ in range(2):
        sigma = module.estimators.partial(observation)
        loss = sum(head(sigma, sigma).square().mean() for head in (module.estimators.value, module.estimators.reward))
        loss = loss + module.generator(observation, torch.arange(8).view(4, 2)).square().mean()
        loss = loss + module.generator.description(observation).square().mean()
        optimizer.step(100.0 * loss)
        assert_all_right(frozen)
    assert (frozen.encode(torch.from_numpy(states(3))) - before).abs().max() > 1e-5
    module.load_state_dict(network().state_dict())
    assert_all_right(frozen)


class ScaledSelector(LocalFieldSelector):
    def forward(self, state: torch.Tensor) -> torch.Tensor:
        return super().forward(state).flip(-1) * 1.5


class ScaledHead(PairwiseHead):
    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return super().forward(target, source).flip(-1)


class ScaledFuser(Fuser):
    def forward(self, context: torch.Tensor, bits: torch.Tensor) -> torch.Tensor:
        return -super().forward(context, bits)


def changed_network(part: str) -> SkipperNetwork:
    """A network of which one module computes another function with the same weights."""
    module = network()
    if part == "selector":
        module.estimators.partial.select.__class__ = ScaledSelector
    elif part == "fuser":
        module.generator.fuse.__class__ = ScaledFuser
    elif part == "terminal":
        module.estimators.terminal[1] = torch.nn.Tanh()
    else:
        getattr(module.estimators, part).__class__ = ScaledHead
    return module


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("part", ["selector", "value", "distance", "reward", "terminal", "fuser"])
def test_a_changed_module_answers_itself(part, settings):
    assert_all_right(FrozenNetwork(changed_network(part), CONFIG, SPEC, **settings))


@torch.no_grad()
@pytest.mark.parametrize("part", ["selector", "value", "fuser"])
def test_the_changes_of_this_test_matter(part):
    seen, codes = torch.from_numpy(states(4)), torch.arange(8).view(4, 2)
    answers = []
    for module in (network(), changed_network(part)):
        sigma = module.estimators.partial(seen)
        answers.append((sigma, module.estimators.value(sigma, sigma.flip(0)), module.generator(seen, codes)))
    place = {"selector": 0, "value": 1, "fuser": 2}[part]
    assert (answers[0][place] - answers[1][place]).abs().max() > 1e-2


def test_without_spatial_abstraction_the_module_encodes():
    config = replace(CONFIG, network=replace(CONFIG.network, spatial_abstraction=False))
    assert_all_right(FrozenNetwork(network(config), config, SPEC, plans=config.planning))


def test_an_ensemble_of_plain_heads_is_that_of_compiled_ones(monkeypatch):
    given = vertices(states(6))
    found = []
    for compiled in (True, False):
        monkeypatch.setattr(frozen_module.heads, "supports", lambda _, compiled=compiled: compiled)
        frozen = FrozenNetwork(network(), CONFIG, SPEC, ensemble=4)
        found.append(frozen.edges(given).where(np.ones((1, 6, 6), bool)))
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
@torch.no_grad()
def test_with_distances_alone_the_policy_takes_the_action_of_least_distance(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(frozen_module.heads, "supports", lambda _: False)
    with seeded_initialisation(0):
        module = LeapNetwork(CONFIG, SPEC)
    seen, frozen = states(5), FrozenNetwork(module, CONFIG, SPEC)
    sigma = module.estimators.partial(torch.from_numpy(seen))
    head = module.estimators.distance
    distance = head.expectation(head(sigma.repeat_interleave(5, 0), sigma.repeat(5, 1)))  # (25, A)
    edges = frozen.edges(vertices(seen))
    np.testing.assert_allclose(edges.distance[0].ravel(), distance.amin(-1).numpy(), rtol=1e-4)
    assert (edges.action[0].ravel() == distance.argmin(-1).numpy()).all()
    nearness = frozen.values(seen, seen[[0] * 5])
    np.testing.assert_allclose(nearness, (16.0 - distance.view(5, 5, -1)[:, 0].numpy()) / 15.0, rtol=1e-3, atol=1e-5)


def test_absent_vertices_have_no_edges():
    given = vertices(states(5), states(5, task=1))
    given.present[0, 2] = given.present[1, 3] = False
    both = given.present[:, :, None] & given.present[:, None]
    for environments in (None, np.arange(2)):
        frozen = FrozenNetwork(network(), CONFIG, SPEC, plans=CONFIG.planning)
        edges = frozen.edges(given, environments).where(np.ones((2, 5, 5), bool))
        assert (edges.distance[~both] == np.inf).all()
        assert (edges.reward[~both] == 0).all()
        assert np.isfinite(edges.distance[both]).any()


def test_rewards_are_estimated_where_they_are_needed_only():
    lazy = FrozenNetwork(network(), CONFIG, SPEC).edges(vertices(*(states(8, task) for task in range(4))))
    wanted = np.random.default_rng(0).random((4, 8, 8)) < 0.5
    wanted[2] = False
    some, everything = lazy.where(wanted).reward, lazy.where(np.ones((4, 8, 8), bool)).reward
    assert (lazy.where(np.zeros((4, 8, 8), bool)).reward == 0).all()
    np.testing.assert_allclose(some[wanted], everything[wanted], rtol=1e-4)
    assert (everything > 0).all()
    assert (some[~wanted] == 0).all()


def test_cached_states_are_part_of_a_saved_run():
    module = network()
    frozen, seen = FrozenNetwork(module, CONFIG, SPEC), states(4)
    frozen.encode(torch.from_numpy(seen))
    frozen.describe(seen[:2])
    saved = frozen.state_dict()
    assert saved["partial"]["partial"].shape == (4, 16)
    assert len(saved["partial"]["keys"]) == 4
    assert (saved["descriptions"]["codes"] == frozen.describe(seen[:2])).all()
    saved["partial"]["partial"] += 1.0  # to distinguish it from a new encoding
    again = FrozenNetwork(module, CONFIG, SPEC)
    again.load_state_dict(saved)
    torch.testing.assert_close(again.encode(torch.from_numpy(seen)), frozen.encode(torch.from_numpy(seen)) + 1.0)
    with torch.no_grad():
        module.generator.context.words[0].weight += 1.0
    for column in again.state_dict().values():
        assert len(column["keys"]) == 0  # nothing is known of the new weights


def test_where_pages_do_not_fit_edges_are_estimated_anew(monkeypatch):
    monkeypatch.setattr(frozen_module.EdgeCache, "fits", lambda *_: False)
    monkeypatch.setattr(frozen_module.EdgeCache, "edges", None)
    frozen = FrozenNetwork(network(), CONFIG, SPEC, plans=CONFIG.planning)
    assert np.isfinite(frozen.edges(vertices(states(5)), np.array([0])).distance).all()


def test_an_environment_without_a_scene_has_no_edge_cache():
    frozen = FrozenNetwork(network(), CONFIG, SPEC._replace(scene=None), plans=CONFIG.planning)
    edges = frozen.edges(vertices(states(5)), np.array([0]))
    assert np.isfinite(edges.distance).all()  # also those that a cache would leave out


class LabelledScene:
    """The lava world, in which two states with the agent in the same cell differ in the colour of a corner."""

    def __getattr__(self, name):
        return getattr(SPEC.scene, name)

    def scenery(self, observations: np.ndarray) -> np.ndarray:
        return np.zeros((len(observations), 1), np.uint8)


def test_states_that_differ_elsewhere_than_in_the_agents_cell_have_their_own_estimates():
    seen = states(4)
    seen[1] = seen[0]
    seen[1, 5, 5, 1] = (seen[0, 5, 5, 1] + 3) % SPEC.vocabulary[1]
    assert SPEC.scene.agent_cell(seen)[0] == SPEC.scene.agent_cell(seen)[1]
    frozen = FrozenNetwork(network(), CONFIG, SPEC._replace(scene=LabelledScene()), plans=CONFIG.planning)
    assert_edges(frozen, vertices(seen), np.array([0]))
    distance = frozen.edges(vertices(seen), np.array([0])).distance[0]
    assert distance[0, 2] != distance[1, 2]


@pytest.mark.parametrize("compiled", [True, False])
@torch.no_grad()
def test_where_whole_distributions_are_learned_an_edge_that_never_arrives_counts_nothing(compiled):
    config = replace(CONFIG, planning=replace(CONFIG.planning, distance_distributions=True))
    (plain, frozen), given, bins = (network(CONFIG), network(config)), vertices(states(4)), config.network.bins
    if not compiled:
        for module in (plain, frozen):
            module.estimators.value.__class__ = type("SameHead", (PairwiseHead,), {})
    every = np.ones((1, 4, 4), bool)
    before, found = (FrozenNetwork(module, CONFIG, SPEC).edges(given).where(every) for module in (plain, frozen))
    assert (found.discount < before.discount).all()  # by what the last bin adds
    np.testing.assert_allclose(found.distance, before.distance, rtol=1e-5)
    frozen.estimators.distance.layers[-1].bias[bins - 1 :: bins] += 500.0  # the last bin of every action
    again = FrozenNetwork(frozen, config, SPEC).edges(given).where(every)
    np.testing.assert_allclose(again.distance, bins, rtol=1e-5)
    np.testing.assert_allclose(again.discount, 0.0, atol=1e-6)
