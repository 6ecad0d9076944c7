"""Skipper's decisions on small worlds."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.registry import make_baseline
from skipper.agents.skipper.agent import SkipperAgent
from skipper.agents.skipper.plan_state import PlanState
from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy, evaluation_policy
from skipper.agents.skipper.vertices import merge_vertices
from skipper.config import DecisionConfig, NetworkConfig, RunConfig, SkipperGeneratorConfig
from skipper.envs.lava.config import EVALUATION_DIFFICULTIES, LavaConfig
from skipper.envs.lava.family import LAVA, environment_spec
from skipper.envs.lava.scene import LavaScene
from skipper.envs.lava.tasks import evaluation_tasks, training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.training.evaluate import play
from skipper.training.load import with_settings
from skipper.training.settings import configure
from skipper.types import CURRENT, GOAL, TimeStep, content_keys

WORLD = LavaConfig(6, 6, max_steps=20)
TASKS = training_tasks(WORLD, 4, seed=0)
SPEC = environment_spec(WORLD)
SEEN, TOLD = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
FIRST = TimeStep(SEEN, TOLD, np.ones(4, bool))


def configuration(agent: str = "skipper-regen", **settings) -> RunConfig:
    return replace(
        with_settings(configure("debug", agent), settings),
        world=WORLD,
        network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
        generator=SkipperGeneratorConfig(generator_width=4),
    )


def network(config: RunConfig) -> SkipperNetwork:
    """With a generator whose codes give different cells, and that describes states differently."""
    with seeded_initialisation(0):
        module = SkipperNetwork(config, SPEC)
    change(module.generator.fuse, 3.0)
    change(module.generator.description, 3.0)
    return module


@torch.no_grad()
def change(module: torch.nn.Module, factor: float) -> None:
    for parameter in module.parameters():
        parameter *= factor


def online_policy(agent: str = "skipper-regen", *, random_targets: bool = False, **planning) -> SkipperPolicy:
    """A policy whose network may learn between decisions."""
    config = configuration(agent, **planning)
    frozen = FrozenNetwork(network(config), config, SPEC, caching=False)
    return SkipperPolicy(frozen, config, SPEC, np.random.default_rng(0), random_targets=random_targets)


def evaluated_policy(agent: str = "skipper-regen", **planning) -> SkipperPolicy:
    config = configuration(agent, **planning)
    return evaluation_policy(network(config), config, SPEC, np.random.default_rng(0))


def decisions(policy: SkipperPolicy, count: int = 12):
    envs = LavaVectorEnv(4, tasks=TASKS)
    observation, info = envs.reset(seed=0)
    first = np.ones(4, bool)
    for _ in range(count):
        decision = policy.decide(TimeStep(observation, info["goal"], first))
        yield first, decision, observation
        observation, _, terminated, truncated, info = envs.step(decision.action)
        first = terminated | truncated


@pytest.mark.parametrize("difficulty", EVALUATION_DIFFICULTIES)
def test_with_true_plans_and_policy_every_task_is_solved(difficulty):
    tasks = evaluation_tasks(LavaConfig(8, 8), difficulty, 20, seed=0)
    oracle = make_baseline("skipper-oracle", environment_spec(tasks.world), np.random.default_rng(0))
    assert play(oracle, LAVA, tasks, seed=0).success.all()


def test_a_plan_is_made_at_the_beginning_and_at_the_latest_when_time_runs_out():
    since = np.zeros(4, int)
    for first, decision, _ in decisions(online_policy(match_observations=True, timeout=3), 30):
        assert decision.planned[first].all()
        since = np.where(decision.planned, 1, since + 1)
        assert since.max() <= 3
        if decision.planned.any():
            chosen = decision.plan.target >= 0
            assert (decision.plan.targets[chosen] == decision.target[decision.planned][chosen]).all()


def test_actions_are_the_best_of_the_policys_values():
    policy = online_policy(match_observations=True, edge_threshold=20.0)
    aimed = 0
    for _, decision, observation in decisions(policy):
        aiming = decision.aiming
        aimed += aiming.sum()
        values = policy.action_values(observation, decision.target)
        np.testing.assert_allclose(decision.values[aiming], values[aiming], rtol=1e-5)
        assert (decision.action[aiming] == decision.values[aiming].argmax(-1)).all()
        assert np.isnan(decision.values[~aiming]).all()
    assert aimed > 0


def test_once_keeps_its_checkpoints_for_the_episode_and_regen_does_not():
    kept = {}
    for name in ("skipper-once", "skipper-regen"):
        policy = online_policy(name, match_observations=True, timeout=2)
        same, before = [], None
        for first, _, _ in decisions(policy, 10):
            states = policy.plan_state.vertices[:, 1:-1].copy()
            if before is not None:
                same += (states == before).all((1, 2, 3, 4))[~first].tolist()
            before = states
        kept[name] = np.mean(same)
    assert kept["skipper-once"] == 1.0
    assert kept["skipper-regen"] < 0.8


def test_the_goal_variant_always_aims_at_the_goal():
    for _, decision, _ in decisions(online_policy("skipper-goal"), 5):
        cells = LavaScene().agent_cell(decision.target)
        assert all(cell in TASKS.table.goal for cell in cells)


def test_plans_can_be_made_without_acting_on_them():
    actor = SkipperActor(evaluated_policy(match_observations=True), epsilon=0.0)
    problem = actor.plan(SEEN, TOLD)
    assert (problem.vertices.observation[:, CURRENT] == SEEN).all()
    assert (problem.vertices.observation[:, GOAL] == TOLD).all()
    assert (problem.kept.sum(-1) <= 12).all()
    assert actor.policy.plan_state is None
    assert (actor.plan(SEEN, TOLD).vertices.key == problem.vertices.key).all()  # no random number was used up
    with pytest.raises(ValueError, match="always aims at the goal"):
        SkipperActor(evaluated_policy("skipper-goal"), epsilon=0.0).plan(SEEN, TOLD)


def test_random_targets_are_imagined_states_and_sometimes_goals():
    policy = online_policy(match_observations=True, random_targets=True)
    counts = np.zeros(36)
    for _, decision, _ in decisions(policy, 100):
        assert decision.aiming.all()
        assert decision.plan is None
        counts += np.bincount(LavaScene().agent_cell(decision.target), minlength=36)
    assert counts[TASKS.table.goal].sum() / counts.sum() > 0.1

    imagined = SEEN[:, None].repeat(3, axis=1)
    policy.vertex_source.propose = lambda *_, **__: merge_vertices(
        imagined, np.zeros(imagined.shape[:2], int), content_keys(imagined)
    )
    policy.plan_state = None
    targets = [policy.decide(FIRST).target for _ in range(200)]
    to_goal = np.mean([(target == TOLD).all((1, 2, 3)) for target in targets])
    assert 0.2 < to_goal < 0.3
    assert all(((t == TOLD).all((1, 2, 3)) | (t == SEEN).all((1, 2, 3))).all() for t in targets)


def test_without_any_edge_it_plans_again_at_every_step():
    for _, decision, _ in decisions(online_policy(match_observations=True, edge_threshold=0.5), 5):
        assert decision.planned.all()
        assert (decision.plan.target == -1).all()


def test_at_every_step_there_is_a_new_plan_and_edges_that_led_back_are_trusted_less():
    policy = evaluated_policy(replan="step", revisit_penalty=0.5, match_observations=True)
    states, goal = TASKS.observe(np.zeros(2, int), TASKS.table.starts[0, :2]), TOLD[:1]
    chosen, plans = [], []
    for moment in range(min(24, SPEC.longest)):  # back and forth between two states
        step = TimeStep(states[moment % 2][None], goal, np.array([moment == 0]))
        decision = policy.act(step, 0.0, np.random.default_rng(0))
        assert decision.planned.all()
        before = np.array(chosen[moment % 2 :: 2])
        begins = decision.plan.edges.action[0, CURRENT]  # (N,)
        expected = 0.5 ** np.array([(before == action).sum() for action in begins])
        np.testing.assert_allclose(decision.plan.trust[0, CURRENT], expected)
        chosen.append(int(decision.action[0]))
        plans.append(decision.plan)
    assert plans[-1].trust.min() < 1.0
    assert not np.array_equal(plans[0].vertices.key, plans[2].vertices.key)


@pytest.mark.parametrize("after_exploring", [True, False])
def test_the_revisit_penalty_counts_the_actions_that_were_taken(after_exploring):
    policy = evaluated_policy(
        replan="step", revisit_penalty=0.5, match_observations=True, replan_after_exploring=after_exploring
    )
    taken = policy.act(FIRST, 1.0, np.random.default_rng(0)).action
    counts = policy.plan_state.visits.counts(np.arange(4), SPEC.state_key(SEEN)[:, None], SPEC.actions)[:, 0]
    assert (counts == np.eye(SPEC.actions)[taken]).all()


def test_an_agent_that_always_aims_at_the_goal_leaves_circles_too():
    for penalty, actions in ((0.0, 1), (0.9, SPEC.actions)):
        policy = evaluated_policy("skipper-goal", revisit_penalty=penalty)
        later = FIRST._replace(first=np.zeros(4, bool))
        steps = [policy.act(FIRST if moment == 0 else later, 0.0, np.random.default_rng(0)) for moment in range(8)]
        assert len({int(step.action[0]) for step in steps}) == actions


def test_training_decides_without_aids():
    config = configuration(revisit_penalty=0.5, ensemble=4)
    assert SkipperAgent(config, SPEC)._policy.config.decision == DecisionConfig()
    assert evaluation_policy(network(config), config, SPEC, np.random.default_rng(0)).config.decision.ensemble == 4


def test_idle_environments_have_no_plans():
    decision = evaluated_policy().decide(FIRST._replace(idle=np.array([False, True, False, True])))
    assert decision.planned.tolist() == [True, False, True, False]
    assert len(decision.plan.target) == 2


def test_decisions_explain_themselves_when_asked():
    config = configuration()
    frozen = FrozenNetwork(network(config), config, SPEC)
    for explain in (True, False):
        policy = SkipperPolicy(frozen, config, SPEC, np.random.default_rng(0), explain=explain)
        attention = policy.decide(FIRST).attention
        assert (attention is not None) == explain
        if attention is not None:
            np.testing.assert_allclose(attention.weight.sum(-1), 1.0, rtol=1e-5)


def test_a_learned_goal_replaces_the_given_one():
    base = configuration()
    config = replace(base, generator=replace(base.generator, learned_goal=True))
    policy = evaluation_policy(network(config), config, SPEC, np.random.default_rng(0))
    problem = policy.plan(SEEN, TOLD)
    with torch.no_grad():
        cells = policy.network.goal(torch.from_numpy(SEEN)).argmax(-1).numpy()
    assert (LavaScene().agent_cell(problem.vertices.observation[:, GOAL]) == cells).all()


# Partial descriptions

VARIANTS = [
    {"regenerate": regenerate, "replan": replan} for regenerate in (False, True) for replan in ("trigger", "step")
]


def learn(policy: SkipperPolicy, rng: torch.Generator) -> None:
    """Change the descriptions of states, as an update does."""
    with torch.no_grad():
        for parameter in policy.network.generator.description.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=rng)


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("planning", VARIANTS, ids=str)
def test_vertices_have_the_codes_of_their_observations_always(planning, learning):
    policy, rng, codes, later = online_policy(timeout=3, **planning), torch.Generator().manual_seed(0), set(), 0
    for first, decision, _ in decisions(policy, 20):
        if decision.plan is not None:
            vertices = decision.plan.vertices
            states = torch.from_numpy(vertices.observation.reshape(-1, *SPEC.shape))
            assert (vertices.code.ravel() == policy.network.generator.codes(states).numpy()).all()
            codes |= set(vertices.code.ravel().tolist())
            later += (decision.planned & ~first).sum()
        if learning:
            learn(policy, rng)
    assert len(codes) > 2
    assert later > 0


@pytest.mark.parametrize("random_targets", [False, True])
@pytest.mark.parametrize("regenerate", [False, True])
def test_a_target_is_reached_where_the_agent_observes_it_also_when_descriptions_changed(regenerate, random_targets):
    policy = online_policy(regenerate=regenerate, random_targets=random_targets, edge_threshold=20.0)
    rng, followed = torch.Generator().manual_seed(0), 0
    for _ in range(10):
        decision = policy.decide(FIRST)
        learn(policy, rng)
        again = policy.decide(FIRST._replace(observation=decision.target, first=np.zeros(4, bool)))
        assert (again.reason[decision.aiming] == "a state like the target was reached").all()
        followed += decision.aiming.sum()
    assert followed > 5


def test_the_checkpoint_reached_last_is_not_reached_again_before_another_one():
    policy = online_policy("skipper-once", checkpoints=2)
    policy.frozen.describe = lambda states: LavaScene().agent_cell(states) % 10
    plans = policy.plan_state = PlanState.empty(1, 4, SPEC.shape, SPEC.longest)
    plans.vertices[0] = TASKS.observe(np.zeros(4, int), np.array([0, 11, 12, 13]))
    plans.kept[0], plans.target[0] = True, plans.vertices[0, GOAL]

    def reached(cell: int) -> list[bool]:
        state = TASKS.observe(np.array([0]), np.array([cell]))
        return [bool(found[0]) for found in policy._reached(plans, state, np.ones(1, bool))]

    assert reached(10) == [False, False]  # like the state in which the plan was made
    assert reached(21) == [False, True]  # like the first checkpoint
    assert reached(31) == [False, False]  # again
    assert reached(22) == [False, True]  # like the second one
    assert reached(21) == [False, True]
    assert reached(23) == [True, True]  # like the target
    assert reached(23) == [True, False]
    plans.kept[0, 1] = False  # hidden or pruned
    assert reached(21) == [False, False]


# Random actions


@pytest.mark.parametrize("name", ["skipper-once", "skipper-regen", "skipper-goal"])
def test_where_the_agent_explores_it_does_not_plan_and_afterwards_it_plans_again(name):
    policy, rng = evaluated_policy(name, match_observations=True, edge_threshold=20.0), np.random.default_rng(0)
    later = FIRST._replace(first=np.zeros(4, bool))
    decision = policy.act(FIRST, 1.0, rng)
    assert not decision.planned.any()
    assert not decision.aiming.any()
    assert decision.plan is None
    decision = policy.act(later, 0.0, rng)
    assert (decision.reason == "the last action was random").all()
    assert decision.aiming.any()
    decision = policy.act(later, 0.0, rng)
    assert not decision.planned[policy.plan_state.aiming].any()
    some = policy.decide(later, np.array([True, False, False, True]))
    assert not some.planned[[0, 3]].any()
    assert policy.decide(later).reason.tolist()[::3] == ["the last action was random"] * 2


def test_random_actions_are_spread_over_all_and_their_share_is_epsilon():
    for replan_after_exploring in (False, True):
        policy = evaluated_policy("skipper-goal", replan_after_exploring=replan_after_exploring)
        rng, greedy = np.random.default_rng(0), policy.decide(FIRST).action
        actions = np.array([policy.act(FIRST, 0.5, rng).action for _ in range(300)])
        shares = np.stack([(actions == action).mean(0) for action in range(4)], axis=1)
        np.testing.assert_allclose(shares, np.where(np.arange(4) == greedy[:, None], 0.625, 0.125), atol=0.1)


def test_plans_may_be_followed_as_if_no_action_had_been_random():
    policy = evaluated_policy(
        "skipper-once", match_observations=True, edge_threshold=20.0, replan_after_exploring=False
    )
    rng, later = np.random.default_rng(0), FIRST._replace(first=np.zeros(4, bool))
    assert policy.act(FIRST, 1.0, rng).planned.all()
    decision = policy.act(later, 1.0, rng)
    assert not decision.planned[decision.aiming].any()
    assert decision.aiming.any()


def test_the_presets_follow_the_paper_and_then_the_authors():
    for preset, expected in (("paper", ("trigger", True, False)), ("fast", ("step", False, True))):
        for name, regenerate in (("skipper-once", False), ("skipper-regen", True)):
            planning = configure(preset, name).planning
            assert planning.regenerate == regenerate
            assert (planning.replan, planning.replan_after_exploring, planning.cluster_current_state) == expected
