"""Skipper's learning machinery on small worlds. That it learns is shown in test_learning_skipper."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.registry import agent_kind, make_baseline
from skipper.agents.skipper.agent import SkipperAgent
from skipper.config import NetworkConfig, SkipperGeneratorConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.scene import LavaScene
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.training.loop import Loop
from skipper.training.settings import configure
from skipper.types import GOAL, EnvironmentSpec, TimeStep

WORLD = LavaConfig(6, 6, max_steps=20)
TASKS = training_tasks(WORLD, 4, seed=0)
SPEC = environment_spec(WORLD)


def configuration(agent: str = "skipper-regen", **planning):
    base = configure("debug", agent)
    return replace(
        base,
        world=WORLD,
        network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
        generator=SkipperGeneratorConfig(generator_width=4),
        planning=replace(base.planning, **planning),
    )


def agent(name: str = "skipper-regen", **planning) -> SkipperAgent:
    return SkipperAgent(configuration(name, **planning), environment_spec(WORLD))


def loop_of(learner: SkipperAgent) -> Loop:
    return Loop(learner, LavaVectorEnv(4, tasks=TASKS), learner.config.learning, seed=0)


def first_step() -> TimeStep:
    seen, goal = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
    return TimeStep(seen, goal, np.ones(4, bool))


@pytest.mark.parametrize("delusion", [0.0, 0.25])
def test_updates_lower_the_losses(delusion):
    learner = agent()
    settings = replace(learner.config.learning, delusion_scale=delusion, learning_rate=3e-3, learning_starts=10**9)
    learner = SkipperAgent(replace(learner.config, learning=settings), learner.spec)
    loop = loop_of(learner)
    while loop.step < 400:
        loop.advance()
    metrics = [learner.learn() for _ in range(100)]
    assert ("delusion" in metrics[0]) == (delusion > 0)
    for name in ("reconstruction", "reward", "loss"):
        assert np.mean([record[name] for record in metrics[-10:]]) < np.mean([record[name] for record in metrics[:10]])


def test_imagined_targets_have_no_importance_weights():
    learner = agent()
    settings = replace(learner.config.learning, delusion_scale=0.25, learning_starts=10**9)
    learner = SkipperAgent(replace(learner.config, learning=settings), learner.spec)
    loop = loop_of(learner)
    while loop.step < 400:
        loop.advance()
    batch = learner._batches.prepare()
    metrics = learner._updater.update_estimators(batch._replace(weight=torch.zeros(batch.real))).metrics
    assert metrics["delusion"] > 0
    assert metrics["loss"] == pytest.approx(0.25 * metrics["delusion"], rel=1e-5)


def quick(name: str) -> SkipperAgent:
    """With everything that makes learning fast."""
    base = configuration(name, match_observations=True)
    learning = replace(
        base.learning,
        training_targets="random",
        act_with_target_network=True,
        hindsight_bound=True,
        delusion_scale=0.25,
        final_learning_rate_fraction=0.1,
    )
    generator = replace(base.generator, flat_description=True, generator_every=3, learned_goal=True)
    replay = replace(base.replay, all_pairs=True, other_episodes=0.2)
    network = replace(base.network, scaled_start=True, pessimistic_heads=True)
    return SkipperAgent(replace(base, learning=learning, generator=generator, replay=replay, network=network), SPEC)


@pytest.mark.parametrize("make", [agent, quick])
@pytest.mark.parametrize("name", ["skipper-once", "skipper-regen", "skipper-goal"])
def test_a_saved_agent_continues_exactly(name, make):
    one, two = loop_of(make(name)), loop_of(make(name))
    while one.step < 240:
        one.advance()
    two.load_state_dict(one.state_dict())
    for _ in range(10):
        assert one.advance() == two.advance()
    mine, its = one.learner.weights(), two.learner.weights()
    assert all((mine[key] == its[key]).all() for key in mine)


def test_playing_with_saved_weights_is_the_same_policy():
    learner = agent()
    player = (
        agent_kind("skipper-regen")
        .load()
        .play(learner.config, learner.spec, learner.weights(), np.random.default_rng(3))
    )
    seen, goal = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
    step = TimeStep(seen, goal, np.ones(4, bool))
    expected = learner.evaluator(np.random.default_rng(3)).act(step)
    found = player.act(step)
    assert (found.action == expected.action).all()
    assert (found.target == expected.target).all()


def test_a_learned_goal_is_where_rewards_were():
    base = configuration()
    settings = replace(base.learning, learning_starts=10**9, learning_rate=3e-3, training_targets="random")
    learner = SkipperAgent(replace(base, generator=replace(base.generator, learned_goal=True), learning=settings), SPEC)
    loop = loop_of(learner)
    while loop.step < 3_000:
        loop.advance()
    metrics = [learner.learn() for _ in range(200)]
    assert np.mean([record["goal"] for record in metrics if "goal" in record][-20:]) < 0.2
    samples = learner._batches.draw.sampler.sample(2_000, 0.4, np.random.default_rng(0))
    rewarded = samples.reward > 0
    told = samples.observation[rewarded]  # what it is told does not matter
    problem = learner.evaluator(np.random.default_rng(0)).plan(samples.target[rewarded], told)
    found = LavaScene().agent_cell(problem.vertices.observation[:, GOAL])
    assert (found == LavaScene().agent_cell(samples.next_observation[rewarded])).mean() > 0.9


def test_training_with_random_targets_aims_at_imagined_states_and_at_goals():
    base = configuration(match_observations=True)
    learner = SkipperAgent(
        replace(base, learning=replace(base.learning, training_targets="random", act_with_target_network=True)), SPEC
    )
    loop, scene, counts = loop_of(learner), LavaScene(), np.zeros(36)
    for _ in range(100):
        loop.advance()
        walk = learner.state_dict()["plan_state"]
        assert walk["aiming"].all()
        counts += np.bincount(scene.agent_cell(walk["target"]), minlength=36)
    goals = counts[TASKS.table.goal].sum() / counts.sum()
    assert goals > 0.1
    assert learner.evaluator(np.random.default_rng(0)).act(first_step()).plan is not None  # evaluation plans


def test_an_environment_without_a_scene_is_refused():
    with pytest.raises(ValueError, match="must offer a Scene"):
        SkipperAgent(configuration(), EnvironmentSpec((6, 6, 2), (11, 6), 4, 20))
    with pytest.raises(ValueError, match="must offer an Oracle"):
        make_baseline("optimal", EnvironmentSpec((6, 6, 2), (11, 6), 4, 20), np.random.default_rng(0))
