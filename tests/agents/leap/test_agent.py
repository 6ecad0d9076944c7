"""LEAP's two stages: what each learns, from what, and that a resumed run goes on as if nothing had happened."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.leap.agent import DISTANCES, GENERATOR, LeapAgent
from skipper.agents.leap.config import LeapConfig, LeapLearningConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.training.loop import Loop
from skipper.training.settings import configure

WORLD = LavaConfig(6, 6, max_steps=20)
TASKS = training_tasks(WORLD, 4, seed=0)
SPEC = environment_spec(WORLD)


def configuration(preset: str = "debug", agent: str = "leap", **learning) -> LeapConfig:
    config = configure(preset, agent, world=WORLD)
    assert isinstance(config, LeapConfig)
    settings = {"generator_steps": 400, "learning_starts": 100, "target_update_every": 160} | learning
    return replace(config, steps=800, environments=4, threads=1, learning=replace(config.learning, **settings))


def make_loop(config: LeapConfig) -> Loop:
    envs = LavaVectorEnv(config.environments, tasks=TASKS)
    return Loop(LeapAgent(config, SPEC), envs, config.learning, config.seed)


def part(agent: LeapAgent, name: str) -> list[torch.Tensor]:
    return [weight.clone() for weight in getattr(agent.core.network, name).parameters()]


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(map(torch.equal, one, other))


@pytest.mark.parametrize("preset", ["debug", "fast"])
def test_the_generator_learns_first_and_then_the_distances(preset):
    loop = make_loop(configuration(preset, steps_per_update=8))
    agent = loop.learner
    start = {name: part(agent, name) for name in ("generator", "estimators")}
    while loop.uncharged < 400:
        loop.advance()
    assert (loop.step, agent._stage) == (0, GENERATOR)
    assert not equal(start["generator"], part(agent, "generator"))
    assert equal(start["estimators"], part(agent, "estimators"))
    middle = {name: part(agent, name) for name in ("generator", "estimators")}
    metrics = [loop.advance() for _ in range(100)]
    assert (loop.step, loop.uncharged, agent._stage) == (400, 400, DISTANCES)
    assert equal(middle["generator"], part(agent, "generator"))
    assert not equal(middle["estimators"], part(agent, "estimators"))
    assert {"terminal", "distance"} <= {name for step in metrics for update in step for name in update}


def test_stages_share_no_experience_and_each_has_schedules_of_its_own():
    loop = make_loop(configuration())
    agent = loop.learner
    while loop.uncharged < 400:
        loop.advance()
    assert len(agent.core.store) > 0
    assert agent.core.progress == pytest.approx(1.0)
    loop.advance()
    assert agent.core.progress < 0.01
    assert len(agent.core.store) <= 4  # at most the episodes that ended with this step
    generator = agent.core.network.generator.state_dict()
    assert all(
        torch.equal(tensor, generator[name])
        for name, tensor in agent.core.target_network.generator.state_dict().items()
    )


def test_both_stages_walk_at_random():
    loop = make_loop(configuration())
    counts = np.zeros(4)
    for _ in range(150):
        action = loop.learner.act(loop._timestep).action
        counts += np.bincount(action, minlength=4)
        loop.advance()
    assert counts.min() / counts.sum() > 0.2


@pytest.mark.parametrize(
    ("preset", "agent", "targets"),
    [("fast", "leap", "none"), ("fast", "leap-suppress", "random"), ("debug", "leap-suppress", "none")],
)
@pytest.mark.parametrize("turn", [40, 99, 100, 101, 180])  # in both stages, and where they change
def test_a_resumed_run_goes_on_bit_for_bit(preset, agent, targets, turn):
    config = configuration(preset, agent, training_targets=targets, steps_per_update=8, updater_process=False)
    whole, first = make_loop(config), make_loop(config)
    for _ in range(turn):
        first.advance()
    second = make_loop(config)
    second.load_state_dict(first.state_dict())
    for _ in range(turn):
        whole.advance()
    for _ in range(40):
        one, other = whole.advance(), second.advance()
        assert [dict(update) for update in one] == [dict(update) for update in other]
    ours, theirs = whole.learner.weights(), second.learner.weights()
    assert all((ours[name] == theirs[name]).all() for name in ours)
    assert (whole.step, whole.uncharged) == (second.step, second.uncharged)


def test_two_processes_learn_what_one_does():
    config = configuration("fast", training_targets="random", steps_per_update=8)
    one, two = (make_loop(replace(config, threads=threads)) for threads in (1, 2))
    assert two.learner.config.uses_updater_process
    for _ in range(170):
        one.advance()
        two.advance()
    ours, theirs = one.learner.weights(), two.learner.weights()
    assert all((ours[name] == theirs[name]).all() for name in ours)


def test_presets_and_variants():
    paper, fast = configure("paper", "leap"), configure("fast", "leap")
    assert (paper.learning.generator_steps, paper.generator.entropy_period) == (1_500_000, 5_000)
    assert (paper.learning.importance_weights, paper.learning.delusion_scale) == ("mean", 0.0)
    assert configure("paper", "leap-suppress").learning.delusion_scale == 0.25
    skipper = configure("fast", "skipper-regen")
    assert (fast.network, fast.replay) == (skipper.network, skipper.replay)  # the comparison is of planning
    assert vars(skipper.generator) == vars(fast.generator) | {"generator_every": 4, "learned_goal": False}
    assert fast.learning.symmetries
    with pytest.raises(ValueError, match="training_targets"):
        LeapLearningConfig(training_targets="plan")


def test_a_saved_state_does_not_follow_the_run():
    loop = make_loop(configuration("fast", training_targets="random", steps_per_update=8, updater_process=False))
    for _ in range(120):  # plans are made in the second stage
        loop.advance()
    saved = loop.learner.state_dict()["plan_state"]
    before = {name: column.copy() for name, column in saved.items()}
    loop.advance()
    assert (loop.learner._policy.plan_state.steps != before["steps"]).any()
    assert all((saved[name] == column).all() for name, column in before.items())
