"""The whole agent: what an update changes, what is dropped, and that a resumed run goes on as it would have."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.director.agent import DirectorAgent
from skipper.agents.director.policy import DirectorActor
from skipper.agents.director.world_model import to_tensors
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.training.loop import Loop
from skipper.training.settings import configure
from skipper.types import TimeStep, Transition

WORLD = LavaConfig(6, 6, max_steps=20)
TASKS = training_tasks(WORLD, 4, seed=0)
SPEC = environment_spec(WORLD)


def make_loop(**blocks) -> Loop:
    config = configure("debug", "director", world=WORLD)
    config = replace(config, **{name: replace(getattr(config, name), **new) for name, new in blocks.items()})
    envs = LavaVectorEnv(config.environments, tasks=TASKS)
    return Loop(DirectorAgent(config, SPEC), envs, config.learning, config.seed)


def run(loop: Loop, steps: int) -> list:
    metrics = []
    while loop.step < steps:
        metrics += loop.advance()
    return metrics


def weights_equal(one: DirectorAgent, other: DirectorAgent) -> bool:
    pairs = zip(one.weights().items(), other.weights().items(), strict=True)
    return all(name == other_name and np.array_equal(a, b) for (name, a), (other_name, b) in pairs)


def test_short_episodes_are_dropped_and_counted():
    loop = make_loop()
    agent, length = loop.learner, loop.learner.config.replay.sequence_length
    W, H, C = SPEC.shape  # noqa: N806
    seen = np.zeros((4, W, H, C), np.uint8)
    for step in range(length):
        ended = np.array(
            [step == length - 3, step == length - 2, False, False]
        )  # episodes of length - 1 and length states
        agent.observe(Transition(seen, np.zeros(4, int), np.zeros(4), seen, ended, np.zeros(4, bool)))
    assert len(agent.store) == 1
    assert agent.counts["dropped_episodes"] == 1
    assert agent.counts["dropped_states"] == length - 1
    assert agent.counts["stored_states"] == length


def test_across_episodes_nothing_is_dropped_and_every_step_can_be_the_last():
    agent = make_loop(replay={"across_episodes": True}, learning={"learning_starts": 10**9}).learner
    loop = Loop(agent, LavaVectorEnv(agent.config.environments, tasks=TASKS), agent.config.learning, seed=0)
    run(loop, 600)
    assert agent.counts["dropped_states"] == 0
    drawn = agent._sampler.sample(500, np.random.default_rng(0))
    assert (drawn.terminal.mean(0) > 0).all()
    assert drawn.first[:, 1:].any()
    within = make_loop(learning={"learning_starts": 10**9})
    run(within, 600)
    drawn = within.learner._sampler.sample(500, np.random.default_rng(0))
    assert not drawn.terminal[:, :-1].any()
    assert to_tensors(drawn, SPEC, "cpu").first is None


def test_an_update_changes_everything_and_reports_it():
    loop = make_loop()
    agent = loop.learner
    run(loop, 200)
    before = {name: value.copy() for name, value in agent.weights().items()}
    critics = [p.clone() for p in (*agent._updater.worker.parameters(), *agent._updater.manager.parameters())]
    (metrics, *_) = run(loop, 260)
    changed = {name.split(".")[0] for name, value in agent.weights().items() if not np.array_equal(value, before[name])}
    assert changed == {"world_model", "goals", "manager", "worker"}
    after = [*agent._updater.worker.parameters(), *agent._updater.manager.parameters()]
    assert not all(map(torch.equal, critics, after))
    assert {"model_picture", "model_kl", "goal_error", "dropped_episodes", "cell_seen", "cell_imagined_1"} <= set(
        metrics
    )
    assert all(np.isfinite(value) for value in metrics.values())


def test_updates_see_symmetric_images(monkeypatch):
    seen = []
    monkeypatch.setattr("skipper.agents.director.agent.to_tensors", lambda drawn, *_: seen.append(drawn) or drawn)
    agent = make_loop(learning={"symmetries": True, "learning_starts": 10**9}).learner
    monkeypatch.setattr(agent._updater, "update", lambda _: {})
    known = {scenery.tobytes() for scenery in SPEC.scene.scenery(TASKS.observe(np.arange(4), TASKS.table.start))}
    loop = Loop(agent, LavaVectorEnv(agent.config.environments, tasks=TASKS), agent.config.learning, seed=0)
    run(loop, 400)
    for _ in range(20):
        agent.learn()
    scenes = SPEC.scene.scenery(np.concatenate([drawn.observation[:, 0] for drawn in seen]))
    assert 0.5 < np.mean([scene.tobytes() not in known for scene in scenes]) < 1.0


def test_policies_and_goals_do_not_train_the_world_model():
    loop = make_loop()
    agent = loop.learner
    run(loop, 240)
    model, updater = agent.network.world_model, agent._updater
    seen: dict[str, list] = {}

    def step(network: torch.nn.Module, loss: torch.Tensor) -> None:
        for parameter in agent.network.parameters():
            parameter.grad = None
        loss.backward()
        touched = {name.split(".")[0] for name, each in agent.network.named_parameters() if each.grad is not None}
        seen.setdefault(updater._names[id(network)], []).append(touched)

    updater._step = step
    drawn = agent._sampler.sample(4, np.random.default_rng(0))
    updater.update(to_tensors(drawn, SPEC, "cpu"))
    assert seen["world_model"] == [{"world_model"}]
    assert seen["goals"] == [{"goals"}]
    assert seen["worker"] == [{"worker"}]
    assert seen["manager"] == [{"manager"}]
    assert all(found == [set()] for name, found in seen.items() if name.startswith(("worker_", "manager_")))
    assert model.dynamics.first.requires_grad


@pytest.mark.parametrize(("middle", "across"), [(196, False), (340, False), (340, True)])
def test_a_resumed_run_equals_an_uninterrupted_one(middle, across):
    whole, first, second = (make_loop(replay={"across_episodes": across}) for _ in range(3))
    run(whole, 480)
    run(first, middle)
    second.load_state_dict(first.state_dict())
    run(second, 480)
    assert weights_equal(whole.learner, second.learner)
    assert not weights_equal(whole.learner, first.learner)
    assert torch.equal(whole.learner._updater.noise.draw(4), second.learner._updater.noise.draw(4))


def test_a_saved_state_does_not_follow_the_run():
    loop, other = make_loop(), make_loop()
    run(loop, 300)
    state = loop.state_dict()
    before = loop.learner.weights()
    run(loop, 400)
    other.load_state_dict(state)
    assert all(np.array_equal(before[name], value) for name, value in other.learner.weights().items())


def timestep(first: list[bool], seed: int = 0) -> TimeStep:
    rows = np.resize(np.arange(len(TASKS)), len(first))
    seen = TASKS.observe(rows, TASKS.table.start[rows])
    return TimeStep(seen, seen, np.array(first))


def test_goals_are_held_across_episodes_unless_they_begin_anew():
    for anew in (False, True):
        agent = make_loop(behaviour={"new_goal_at_start": anew}).learner
        actor = DirectorActor(agent.network, agent.config, SPEC, np.random.default_rng(0))
        planned = [actor.act(timestep([step == 0, step in (0, 2)])).planned.tolist() for step in range(6)]
        assert [row[0] for row in planned] == [True, False, False, False, True, False]
        wanted = [True, False, True, False, False, False] if anew else [True, False, False, False, True, False]
        assert [row[1] for row in planned] == wanted


def test_the_memory_of_an_episode_is_its_own():
    agent = make_loop().learner
    policy, random = agent._policy, torch.full((1, sum(agent.network.random_numbers)), 0.5)
    fresh = timestep([True])
    policy.act(fresh, random, greedy=True)
    alone = policy.memory.deter.clone()
    policy.act(timestep([False]), random, greedy=True)
    assert not torch.equal(policy.memory.deter, alone)
    policy.act(fresh, random, greedy=True)
    assert torch.equal(policy.memory.deter, alone)


def test_decisions_show_goals_as_pictures():
    agent = make_loop().learner
    decision = agent.evaluator(np.random.default_rng(0)).act(timestep([True, True]))
    view = decision.plan.view(1)
    assert view.picture.shape == (6, 6, 3)
    assert view.picture.dtype == view.forecast.dtype == np.uint8
    assert view.forecast.shape == (4, 6, 6, 3)
    colours = {tuple(colour) for colour in np.concatenate([view.picture[None], view.forecast]).reshape(-1, 3).tolist()}
    assert colours <= {tuple(colour) for colour in SPEC.palette.colours.tolist()}


def test_the_revisit_penalty_keeps_the_worker_from_standing_still():
    loop = make_loop(decision={"revisit_penalty": 0.9})
    actor = loop.learner.evaluator(np.random.default_rng(0))
    actions = {int(actor.act(timestep([step == 0])).action[0]) for step in range(8)}
    assert len(actions) > 1


def test_an_ensemble_and_an_environment_without_colours_are_refused():
    from skipper.training.settings import supported

    config = configure("debug", "director", world=WORLD)
    with pytest.raises(ValueError, match="no ensemble"):
        supported(replace(config, decision=replace(config.decision, ensemble=8)), SPEC)
    with pytest.raises(ValueError, match="needs a palette"):
        supported(config, SPEC._replace(palette=None))
