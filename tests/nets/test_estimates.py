"""Means over symmetric images: what they say of an image is what they say of the original."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from skipper.nets.estimates import Estimates, learned_edges

from skipper.agents.modelfree import ModelFreeAgent, play_modelfree
from skipper.agents.skipper.agent import SkipperAgent
from skipper.agents.skipper.policy import play_skipper
from skipper.agents.skipper.vertices import imagined_vertices
from skipper.config import WorldConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.ensemble import SymmetryEnsemble
from skipper.nets.estimators import EstimatorNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.presets import DEBUG, preset
from skipper.types import TimeStep, scene_of

WORLD = WorldConfig(6, 6)
SPEC, TASKS = environment_spec(WORLD), training_tasks(WORLD, 4, seed=0)
IMAGES = 8


def estimates(ensemble_size: int) -> Estimates:
    with seeded_initialisation(0):
        return Estimates(
            EstimatorNetwork(DEBUG.network, SPEC), 0.9, ensemble=SymmetryEnsemble(SPEC.symmetries, ensemble_size)
        )


def states(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return TASKS.observe(rng.integers(4, size=count), rng.integers(36, size=count))


def image_of(observation: np.ndarray, image: int) -> np.ndarray:
    return SPEC.symmetries.images(observation, np.full(len(observation), image))


@pytest.mark.parametrize("image", range(1, IMAGES))
def test_all_images_together_see_no_difference_between_them(image):
    asked, pairs = estimates(IMAGES), (np.arange(10), np.arange(10)[::-1].copy())
    found = []
    for seen in (states(10), image_of(states(10), image)):
        ends, terminal = asked.meet(seen)
        action, distance, discount = asked.heads.ways(ends, *pairs)
        reward, values = asked.heads.rewards(ends, *pairs, action), asked.heads.values(ends, *pairs)
        found.append((action, distance, discount, reward, terminal, values))
    (action, *original, values), (renamed, *shown, image_values) = found
    names = SPEC.symmetries.actions[image]
    np.testing.assert_array_equal(names[action], renamed)
    for one, two in zip(original, shown, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4)
    np.testing.assert_allclose(values, image_values[:, names], rtol=1e-4)


def test_a_single_image_does_see_one():
    """Otherwise the test above would say nothing."""
    asked = estimates(1)
    distances = [
        asked.heads.ways(asked.meet(seen)[0], np.arange(9), np.arange(1, 10))[1]
        for seen in (states(10), image_of(states(10), 3))
    ]
    assert abs(distances[0] - distances[1]).max() > 1e-3


def test_one_vote_is_the_networks_own():
    asked, seen = estimates(1), states(6)
    with torch.no_grad():
        sigma = asked.network.partial(torch.from_numpy(seen))
        head = asked.network.value
        expected = head.expectation(head(sigma, sigma.flip(0))).numpy()
    ends, _ = asked.meet(seen)
    np.testing.assert_allclose(asked.heads.values(ends, np.arange(6), np.arange(6)[::-1]), expected, rtol=1e-5)


def test_merged_vertices_have_no_edges():
    seen, goal = TASKS.observe(np.arange(2), TASKS.table.start[:2]), TASKS.observe(np.arange(2), TASKS.table.goal[:2])
    cells = np.array([[7, 7, 8], [9, 10, 10]])
    vertices = imagined_vertices(scene_of(SPEC), (seen, goal), cells, cells, None)
    assert not vertices.present.all()
    edges = learned_edges(estimates(2), vertices).where(np.ones((2, 5, 5), bool))
    both = vertices.present[:, :, None] & vertices.present[:, None]
    assert np.isfinite(edges.distance[both]).all()
    assert (edges.distance[~both] == np.inf).all()
    assert (edges.reward[~both] == 0).all()


@pytest.mark.parametrize("ensemble_size", [0, 9])
def test_there_are_only_so_many_images(ensemble_size):
    with pytest.raises(ValueError, match="ensemble_size must be from 1 to 8"):
        SymmetryEnsemble(SPEC.symmetries, ensemble_size)
    with pytest.raises(ValueError, match="ensemble_size must be from 1 to 1"):
        SymmetryEnsemble(None, 2)


@pytest.mark.parametrize(("train", "play"), [(SkipperAgent, play_skipper), (ModelFreeAgent, play_modelfree)])
def test_agents_choose_the_same_in_every_image(train, play):
    name = "modelfree" if train is ModelFreeAgent else "skipper-goal"
    config = replace(preset("debug", name), world=WORLD)
    weights = train(config, SPEC).weights()
    seen, goal = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
    values = []
    for image in (0, 5):
        actor = play(config, SPEC, weights, np.random.default_rng(0), ensemble_size=IMAGES)
        values.append(actor.act(TimeStep(image_of(seen, image), image_of(goal, image), np.ones(4, bool))).values)
    np.testing.assert_allclose(values[0], values[1][:, SPEC.symmetries.actions[5]], rtol=1e-4)
