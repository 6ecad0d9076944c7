"""Means over symmetric images: the estimates for an image are those for the original."""

from dataclasses import replace

import numpy as np
import pytest

from skipper.agents.modelfree.agent import ModelFreeAgent, play_modelfree
from skipper.agents.skipper.agent import SkipperAgent
from skipper.agents.skipper.policy import play_skipper
from skipper.config import DecisionConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.ensemble import SymmetryEnsemble
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.training.settings import configure
from skipper.types import TimeStep, Vertices, content_keys

WORLD = LavaConfig(6, 6)
SPEC, TASKS = environment_spec(WORLD), training_tasks(WORLD, 4, seed=0)
CONFIG = replace(configure("debug", "skipper-regen"), world=WORLD)
IMAGES = 8


def frozen(ensemble: int) -> FrozenNetwork:
    with seeded_initialisation(0):
        return FrozenNetwork(SkipperNetwork(CONFIG, SPEC), CONFIG, SPEC, ensemble=ensemble)


def states(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return TASKS.observe(rng.integers(4, size=count), rng.integers(36, size=count))


def image_of(observation: np.ndarray, image: int) -> np.ndarray:
    return SPEC.symmetries.images(observation, np.full(len(observation), image))


def vertices(observation: np.ndarray) -> Vertices:
    """One problem with all of the states."""
    seen = observation[None]
    numbers = np.arange(len(observation))[None]
    return Vertices(seen, numbers, np.ones(numbers.shape, bool), content_keys(seen))


@pytest.mark.parametrize("image", range(1, IMAGES))
def test_the_mean_over_all_images_is_the_same_in_each(image):
    network, found = frozen(IMAGES), []
    for seen in (states(10), image_of(states(10), image)):
        edges = network.edges(vertices(seen)).where(np.ones((1, 10, 10), bool))
        found.append((edges, network.values(seen, seen[::-1])))
    (original, values), (shown, image_values) = found
    names = SPEC.symmetries.actions[image]
    np.testing.assert_array_equal(names[original.action], shown.action)
    for name in ("distance", "discount", "reward", "terminal"):
        np.testing.assert_allclose(getattr(original, name), getattr(shown, name), rtol=1e-4)
    np.testing.assert_allclose(values, image_values[:, names], rtol=1e-4)


def test_a_single_image_is_not_the_same_in_each():
    """Otherwise the test above would show nothing."""
    distances = [frozen(1).edges(vertices(seen)).distance for seen in (states(10), image_of(states(10), 3))]
    assert abs(distances[0] - distances[1]).max() > 1e-3


@pytest.mark.parametrize("ensemble", [0, 9])
def test_the_size_of_the_ensemble_is_limited(ensemble):
    with pytest.raises(ValueError, match="ensemble must be 1 to 8"):
        SymmetryEnsemble(SPEC.symmetries, ensemble)
    with pytest.raises(ValueError, match="ensemble must be 1 to 1"):
        SymmetryEnsemble(None, 2)


@pytest.mark.parametrize(("train", "play"), [(SkipperAgent, play_skipper), (ModelFreeAgent, play_modelfree)])
def test_agents_choose_the_same_in_every_image(train, play):
    name = "modelfree" if train is ModelFreeAgent else "skipper-goal"
    config = replace(configure("debug", name), world=WORLD)
    weights = train(config, SPEC).weights()
    seen, goal = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
    values = []
    config = replace(config, decision=DecisionConfig(ensemble=IMAGES))
    for image in (0, 5):
        actor = play(config, SPEC, weights, np.random.default_rng(0))
        values.append(actor.act(TimeStep(image_of(seen, image), image_of(goal, image), np.ones(4, bool))).values)
    np.testing.assert_allclose(values[0], values[1][:, SPEC.symmetries.actions[5]], rtol=1e-4)
