"""LEAP's decisions: when it plans, when it chooses again, and what it does."""

from dataclasses import replace

import numpy as np
import pytest

from skipper.agents.leap.config import LeapConfig
from skipper.agents.leap.policy import LeapPolicy, RandomTargetPolicy
from skipper.agents.leap.subgoals import Chains
from skipper.config import DecisionConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import tasks_from_text
from skipper.nets.estimators import LeapNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.training.settings import configure
from skipper.types import Decision, TimeStep

TASKS = tasks_from_text("A.....\n......\n......\n......\n......\n.....G", world=LavaConfig(6, 6, max_steps=40))
SPEC = environment_spec(TASKS.world)
FAR = TASKS.table.goal[0]


def state(cell: int) -> np.ndarray:
    return TASKS.observe(np.zeros(1, int), np.array([cell]))[0]


def policy(kind: type[LeapPolicy] = LeapPolicy, penalty: float = 0.0, **planning) -> LeapPolicy:
    config = configure("debug", "leap", world=TASKS.world)
    assert isinstance(config, LeapConfig)
    settings = {"oracle_parts": ("edges", "policy")} | planning
    config = replace(
        config,
        planning=replace(config.planning, **settings),
        decision=DecisionConfig(revisit_penalty=penalty),
    )
    with seeded_initialisation(0):
        frozen = FrozenNetwork(LeapNetwork(config, SPEC), config, SPEC)
    return kind(frozen, config, SPEC, np.random.default_rng(0))


def with_chain(agent: LeapPolicy, *cells: int, segments: tuple[float, ...] = (3.0, 3.0, 3.0, 3.0)) -> LeapPolicy:
    """The agent finds this chain of subgoals whenever it plans."""
    agent.plan = lambda observation, goal: Chains(  # type: ignore[method-assign]
        np.stack([np.stack([seen, *map(state, cells), given]) for seen, given in zip(observation, goal, strict=True)]),
        np.tile(segments, (len(observation), 1)),
        np.ones(len(observation), np.int64),
        np.ones(len(observation), bool),
    )
    return agent


def decide(agent: LeapPolicy, cell: int, *, first: bool = False) -> Decision:
    return agent.act(TimeStep(state(cell)[None], state(FAR)[None], np.array([first])), 0.0, np.random.default_rng(0))


def target_of(decision: Decision) -> int:
    assert decision.target is not None
    return int(SPEC.scene.agent_cell(decision.target)[0])


def test_a_plan_is_made_when_an_episode_begins_and_aims_at_the_first_subgoal():
    agent = with_chain(policy(), 20, 8, 30)
    found = decide(agent, 34, first=True)  # beside the goal
    assert (found.reason[0], target_of(found)) == ("the episode begins", 20)
    view = found.plan.view(0)
    assert (view.route, view.target) == ([0, 1, 2, 3, 4], 1)
    assert SPEC.scene.agent_cell(view.states).tolist() == [34, 20, 8, 30, FAR]
    again = decide(agent, 34)
    assert (again.reason[0], again.planned.any(), target_of(again)) == ("", False, 20)


def test_a_target_that_is_not_reached_is_given_up_after_eight_steps_and_so_on():
    agent = with_chain(policy(), 7, 8, 9)
    reasons = [decide(agent, 0, first=step == 0).reason[0] for step in range(20)]
    assert [step for step, reason in enumerate(reasons) if reason] == [0, 8, 16]
    assert reasons[8] == "time ran out"


def test_any_subgoal_that_is_reached_leads_to_a_new_choice_and_to_no_new_search():
    agent = with_chain(policy(), 1, 3, 5, segments=(1.0, 2.0, 2.0, 5.0))
    assert target_of(decide(agent, 0, first=True)) == 1
    agent.plan = None  # type: ignore[assignment, method-assign]
    found = decide(agent, 3)  # past the first one
    assert (found.reason[0], target_of(found)) == ("a subgoal was reached", 5)
    view = found.plan.view(0)
    assert (view.route, view.target) == ([0, 3, 4], 3)  # from where the agent is now, past the first two subgoals
    assert SPEC.scene.agent_cell(view.states)[0] == 3
    assert found.plan.distance[0].tolist() == [2.0, 2.0, 2.0, 5.0]
    assert target_of(decide(agent, 5)) == FAR


def test_a_reached_subgoal_is_not_chosen_again_if_it_is_excluded():
    def chosen(**planning) -> int:
        agent = with_chain(policy(**planning), 1, 7, 13, segments=(1.0, 1.0, 1.0, 30.0))
        decide(agent, 0, first=True)
        agent.subgoal_source.to_targets = lambda *_: np.array([[0.5, 5.0, 6.0, 99.0]])
        return target_of(decide(agent, 1))

    assert chosen() == 1
    assert chosen(exclude_reached=True) == 7


def test_new_episodes_forget_plans_and_idle_environments_make_none():
    agent = with_chain(policy(), 1, 3, 5)
    decide(agent, 0, first=True)
    again = decide(agent, 0, first=True)
    assert again.reason[0] == "the episode begins"
    idle = TimeStep(state(0)[None], state(FAR)[None], np.array([True]), idle=np.array([True]))
    assert not agent.act(idle, 0.0, np.random.default_rng(0)).planned.any()


def test_actions_lead_to_the_target_and_the_revisit_penalty_turns_them():
    agent = with_chain(policy(), 18, 3, 5)  # three cells to the right, in column order
    right = decide(agent, 0, first=True).action[0]
    assert decide(agent, 0).action[0] == right
    turning = with_chain(policy(penalty=0.9, oracle_parts=("edges",)), 18, 3, 5)
    actions = {int(decide(turning, 0, first=step == 0).action[0]) for step in range(8)}
    assert len(actions) == 4  # each was tried in turn


def test_random_targets_are_imagined_states_or_the_goal_and_change_when_they_are_reached():
    agent = policy(RandomTargetPolicy, oracle_parts=())
    agent.frozen.imagine = lambda _, codes: codes % 30  # never the goal
    count = 400
    first = TimeStep(np.repeat(state(0)[None], count, 0), np.repeat(state(FAR)[None], count, 0), np.ones(count, bool))
    found = agent.act(first, 0.0, np.random.default_rng(0))
    goals = (SPEC.scene.agent_cell(found.target) == FAR).mean()
    assert goals == pytest.approx(0.25, abs=0.1)
    # Where the agent stands on its target now, it has a new one; where it does not, it goes on.
    there = np.arange(count) % 2 == 0
    observation = np.where(there[:, None, None, None], found.target, first.observation)
    later = agent.act(
        first._replace(observation=observation, first=np.zeros(count, bool)), 0.0, np.random.default_rng(0)
    )
    reached = there | (agent.spec.state_key(found.target) == agent.spec.state_key(first.observation))
    np.testing.assert_array_equal(later.planned, reached)
