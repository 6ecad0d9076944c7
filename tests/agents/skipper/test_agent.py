"""Skipper's acting and learning machinery on small worlds. That it learns is shown in test_learning_skipper."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.registry import Ingredients, learner_kind, make_fixed
from skipper.agents.skipper.agent import SkipperAgent
from skipper.agents.skipper.policy import SkipperPolicy
from skipper.agents.skipper.vertices import Descriptions, imagined_cells, imagined_vertices, new_plan_state
from skipper.config import EVALUATION_DIFFICULTIES, GeneratorConfig, NetworkConfig, WorldConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.oracle import LavaOracle, action_values, shortest_distances
from skipper.envs.lava.scene import LavaScene
from skipper.envs.lava.tasks import evaluation_tasks, training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.nets.estimates import Estimates, learned_edges
from skipper.nets.heads import discount_support
from skipper.planning.proxy import CURRENT, GOAL, EdgeStatus, merged_vertices, solve
from skipper.presets import preset
from skipper.training.evaluate import play
from skipper.training.loop import Loop
from skipper.types import EnvironmentSpec, TimeStep

WORLD = WorldConfig(6, 6, max_steps=20)
TASKS = training_tasks(WORLD, 4, seed=0)
SPEC = environment_spec(WORLD)


def configuration(agent: str = "skipper-regen", **planning):
    base = preset("debug", agent)
    return replace(
        base,
        world=WORLD,
        network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
        generator=GeneratorConfig(generator_width=4),
        planning=replace(base.planning, **planning),
    )


def agent(name: str = "skipper-regen", **planning) -> SkipperAgent:
    return SkipperAgent(configuration(name, **planning), environment_spec(WORLD))


def loop_of(learner: SkipperAgent) -> Loop:
    return Loop(learner, LavaVectorEnv(4, tasks=TASKS), learner.config.learning, seed=0)


@pytest.mark.parametrize("difficulty", EVALUATION_DIFFICULTIES)
def test_with_true_plans_and_policy_every_task_is_solved(difficulty):
    tasks = evaluation_tasks(WorldConfig(8, 8), difficulty, 20, seed=0)
    given = Ingredients(environment_spec(tasks.world), np.random.default_rng(0))
    assert play(make_fixed("skipper-oracle", given), tasks, seed=0).success.all()


def test_scenes_put_the_agent_where_it_is_wanted():
    scene, rows, cells = LavaScene(), np.array([0, 1]), np.array([[3, 17], [30, 0]])
    seen = TASKS.observe(rows, np.array([8, 9]))
    placed = scene.place_agent(seen, cells)
    for problem in range(2):
        assert (placed[problem] == TASKS.observe(rows[[problem, problem]], cells[problem])).all()
        assert scene.agent_cell(placed[problem]).tolist() == cells[problem].tolist()


def test_true_edges_are_those_of_the_tables():
    starts = [TASKS.table.starts[row, [0, 2, 5]] for row in range(2)]
    states = np.array([[*starts[row], TASKS.table.goal[row]] for row in range(2)])
    seen = np.stack([TASKS.observe(np.full(4, row), states[row]) for row in range(2)])
    distance, discount, reward, terminal = LavaOracle(WORLD).edges(seen, 0.9)
    steps = shortest_distances(TASKS).astype(float)
    steps[steps > 1000] = np.inf
    for row in range(2):
        pairs = np.ix_(states[row], states[row])
        assert (distance[row] == steps[row][pairs]).all()
        np.testing.assert_allclose(discount[row], 0.9 ** steps[row][pairs])
        assert (terminal[row] == TASKS.table.terminal[row, states[row]]).all()
        assert (reward[row][:, :-1] == 0).all()
        values = action_values(TASKS, discount=0.9)[row, states[row][:3]].max(-1)
        np.testing.assert_allclose(reward[row][:3, -1], values, atol=1e-9)


def test_vertices_are_the_current_state_imagined_ones_and_the_goal():
    learner = agent()
    generator = learner.core.network.generator
    seen, goal = TASKS.observe(np.arange(3), np.array([1, 2, 3])), TASKS.observe(np.arange(3), TASKS.table.goal[:3])
    codes = np.array([[5, 9], [7, 1], [0, 63]])
    cells = imagined_cells(generator, seen, codes)
    vertices = imagined_vertices(LavaScene(), (seen, goal), cells, codes, Descriptions(generator))
    assert (vertices.observation[:, CURRENT] == seen).all()
    assert (vertices.observation[:, GOAL] == goal).all()
    assert (vertices.code[:, 1:-1] == codes).all()
    assert (vertices.code[:, CURRENT] == generator.codes(torch.from_numpy(seen)).numpy()).all()
    assert (vertices.code[:, GOAL] == generator.codes(torch.from_numpy(goal)).numpy()).all()
    cells = generator.imagine(torch.from_numpy(seen), torch.from_numpy(codes)).argmax(-1).numpy()
    assert (LavaScene().agent_cell(vertices.observation[:, 1]) == cells[:, 0]).all()


def test_learned_edges_are_those_of_single_pairs():
    network = agent().core.network
    states = TASKS.observe(np.zeros(5, int), np.arange(5) * 7)
    seen = np.stack([states, states[::-1]])
    none = np.zeros((1, 0), int)
    vertices = imagined_vertices(LavaScene(), (states[:1], states[1:2]), none, none, None)
    lazy = learned_edges(
        Estimates(network.estimators, 0.9), vertices._replace(observation=seen, present=np.ones((2, 5), bool))
    )
    edges = lazy.where(np.ones((2, 5, 5), bool))
    estimators = network.estimators
    with torch.no_grad():
        sigma = estimators.partial(torch.from_numpy(states))
        for i in range(5):
            for j in range(5):
                pair = sigma[i : i + 1], sigma[j : j + 1]
                action = int(estimators.value.expectation(estimators.value(*pair))[0].argmax())
                histogram = estimators.distance(*pair)[0, action]
                assert edges.distance[0, i, j] == pytest.approx(
                    float(estimators.distance.expectation(histogram)), rel=1e-4
                )
                reward = estimators.reward.expectation(estimators.reward(*pair)[0, action])
                assert edges.reward[0, i, j] == pytest.approx(float(reward), rel=1e-4)
                gamma = estimators.distance.expectation(histogram, discount_support(16, 0.9))
                assert edges.discount[1, 4 - i, 4 - j] == pytest.approx(float(gamma), rel=1e-4)


def test_remembered_codes_are_those_of_the_weights_as_they_are():
    learner = agent()
    generator, goals = learner.core.network.generator, first_step().goal
    known = Descriptions(generator, capacity=2)
    loop = loop_of(learner)
    while loop.updates < 30:
        loop.advance()
        if loop.updates % 10 == 0:
            for rows in ([0, 1], [1, 1, 0], [2, 3]):
                assert (known(goals[rows]) == generator.codes(torch.from_numpy(goals[rows])).numpy()).all()


def test_rewards_are_estimated_where_they_are_needed_only():
    network = agent().core.network
    seen, goal = first_step().observation, first_step().goal
    cells = np.arange(24).reshape(4, 6)
    vertices = imagined_vertices(LavaScene(), (seen, goal), cells, cells, None)
    lazy = learned_edges(Estimates(network.estimators, 0.9), vertices)
    wanted = np.random.default_rng(0).random((4, 8, 8)) < 0.5
    wanted[2] = False
    some, everything = lazy.where(wanted).reward, lazy.where(np.ones((4, 8, 8), bool)).reward
    assert (lazy.where(np.zeros((4, 8, 8), bool)).reward == 0).all()
    np.testing.assert_allclose(some[wanted], everything[wanted], rtol=1e-4)
    both = vertices.present[:, :, None] & vertices.present[:, None]
    assert (everything[both] > 0).all()
    assert (everything[~both] == 0).all()
    assert (some[~wanted] == 0).all()
    lazy = lazy._replace(terminal=np.zeros((4, 8), bool))
    planning = replace(agent().config.planning, edge_threshold=20.0, match_observations=True)
    problem = solve(vertices, lambda _: lazy, planning)
    usable = problem.status == EdgeStatus.KEPT
    assert usable.any()
    np.testing.assert_allclose(problem.edges.reward[usable], everything[usable], rtol=1e-4)
    assert (problem.edges.reward[~usable] == 0).all()


def first_step() -> TimeStep:
    seen, goal = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
    return TimeStep(seen, goal, np.ones(4, bool))


def decisions(policy: SkipperPolicy, count: int = 12):
    envs = LavaVectorEnv(4, tasks=TASKS)
    observation, info = envs.reset(seed=0)
    first = np.ones(4, bool)
    for _ in range(count):
        decision = policy.decide(TimeStep(observation, info["goal"], first))
        yield first, decision, policy
        observation, _, terminated, truncated, info = envs.step(decision.action)
        first = terminated | truncated


def test_a_plan_is_made_at_the_beginning_and_at_the_latest_when_time_runs_out():
    learner = agent(match_observations=True, timeout=3)
    policy = SkipperPolicy(learner.core.network, learner.config, learner.spec, np.random.default_rng(0))
    since = np.zeros(4, int)
    for first, decision, _ in decisions(policy, 30):
        assert decision.planned[first].all()
        since = np.where(decision.planned, 1, since + 1)
        assert since.max() <= 3
        if decision.planned.any():
            chosen = decision.plan.target >= 0
            assert (decision.plan.targets[chosen] == decision.target[decision.planned][chosen]).all()


def test_once_keeps_its_checkpoints_for_the_episode_and_regen_does_not():
    kept = {}
    for name in ("skipper-once", "skipper-regen"):
        learner = agent(name, match_observations=True, timeout=2)
        policy = SkipperPolicy(learner.core.network, learner.config, learner.spec, np.random.default_rng(0))
        same = []
        before = None
        for first, _, _ in decisions(policy, 10):
            codes = policy.walk.codes[:, 1:-1].copy()
            if before is not None:
                same += (codes == before).all(-1)[~first].tolist()
            before = codes
        kept[name] = np.mean(same)
    assert kept["skipper-once"] == 1.0
    assert kept["skipper-regen"] < 0.8


def test_the_goal_variant_always_aims_at_the_goal():
    learner = agent("skipper-goal")
    policy = SkipperPolicy(learner.core.network, learner.config, learner.spec, np.random.default_rng(0))
    for _, decision, _ in decisions(policy, 5):
        cells = LavaScene().agent_cell(decision.target)
        assert all(cell in TASKS.table.goal for cell in cells)


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


def quick(name: str) -> SkipperAgent:
    """With everything that makes learning fast."""
    base = configuration(name, match_observations=True)
    learning = replace(
        base.learning,
        practice=True,
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
    player = learner_kind("skipper-regen").play(
        learner.config, learner.spec, learner.weights(), np.random.default_rng(3)
    )
    seen, goal = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
    step = TimeStep(seen, goal, np.ones(4, bool))
    expected = learner.evaluator(np.random.default_rng(3)).act(step)
    found = player.act(step)
    assert (found.action == expected.action).all()
    assert (found.target == expected.target).all()


def test_a_plan_can_be_asked_for_without_acting_on_it():
    learner = agent("skipper-regen", match_observations=True)
    actor = learner.evaluator(np.random.default_rng(0))
    seen, goal = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
    problem = actor.plan(seen, goal)
    assert (problem.vertices.observation[:, CURRENT] == seen).all()
    assert (problem.vertices.observation[:, GOAL] == goal).all()
    assert (problem.kept.sum(-1) <= 12).all()
    assert actor.policy.walk is None
    assert (actor.plan(seen, goal).vertices.code == problem.vertices.code).all()  # no random number was used up
    with pytest.raises(ValueError, match="always aims at the goal"):
        agent("skipper-goal").evaluator(np.random.default_rng(0)).plan(seen, goal)


def test_true_vertices_are_reachable_and_different():
    learner = agent(oracle_parts=("vertices",), match_observations=True, checkpoints=10)
    seen, goal = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
    vertices = learner.evaluator(np.random.default_rng(0)).policy.imagine(seen, goal)
    cells = LavaScene().agent_cell(vertices.observation[:, 1:-1].reshape(40, 6, 6, 2)).reshape(4, 10)
    for row in range(4):
        reach = set(TASKS.table.starts[row, : TASKS.table.start_count[row]].tolist())
        assert set(cells[row].tolist()) <= reach
        assert len(set(cells[row].tolist())) == 10


def test_single_parts_of_the_edges_can_be_true():
    seen, goal = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
    edges = {}
    for truth in ((), ("rewards",), ("terminal",), ("rewards", "terminal"), ("edges",)):
        policy = agent(oracle_parts=truth).evaluator(np.random.default_rng(0)).policy
        edges[truth] = policy.edges(policy.imagine(seen, goal))
    learned, true = edges[()], edges[("edges",)]
    assert (edges[("rewards",)].reward == true.reward).all()
    assert (edges[("rewards",)].terminal == learned.terminal).all()
    assert (edges[("terminal",)].terminal == true.terminal).all()
    assert (edges[("terminal",)].reward == learned.reward).all()
    assert (edges[("rewards", "terminal")].distance == learned.distance).all()
    assert (learned.terminal != true.terminal).any()


def test_true_endings_do_not_depend_on_what_the_learned_head_says():
    seen, goal = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)
    for truth, planned in ((("terminal",), True), ((), False)):
        actor = agent(oracle_parts=truth, edge_threshold=20.0).evaluator(np.random.default_rng(0))
        with torch.no_grad():
            actor.policy.network.estimators.terminal[-1].bias[1] += 100.0  # everything is the end, it says
        assert (actor.plan(seen, goal).status == EdgeStatus.KEPT).any() == planned


def test_a_learned_goal_is_where_rewards_were():
    base = configuration()
    settings = replace(base.learning, learning_starts=10**9, learning_rate=3e-3, practice=True)
    learner = SkipperAgent(replace(base, generator=replace(base.generator, learned_goal=True), learning=settings), SPEC)
    loop = loop_of(learner)
    while loop.step < 3_000:
        loop.advance()
    metrics = [learner.learn() for _ in range(200)]
    assert np.mean([record["goal"] for record in metrics if "goal" in record][-20:]) < 0.2
    samples = learner.core.experience.replay.sample(2_000, 0.4, np.random.default_rng(0))
    rewarded = samples.reward > 0
    told = samples.observation[rewarded]  # what it is told does not matter
    problem = learner.evaluator(np.random.default_rng(0)).plan(samples.target[rewarded], told)
    found = LavaScene().agent_cell(problem.vertices.observation[:, GOAL])
    assert (found == LavaScene().agent_cell(samples.next_observation[rewarded])).mean() > 0.9


def test_practice_walks_to_imagined_states_and_to_goals():
    base = configuration(match_observations=True)
    learner = SkipperAgent(
        replace(base, learning=replace(base.learning, practice=True, act_with_target_network=True)), SPEC
    )
    loop, scene, counts = loop_of(learner), LavaScene(), np.zeros(36)
    for _ in range(100):
        loop.advance()
        walk = learner.state_dict()["walk"]
        assert walk["aiming"].all()
        counts += np.bincount(scene.agent_cell(walk["target"]), minlength=36)
    goals = counts[TASKS.table.goal].sum() / counts.sum()
    assert goals > 0.1
    assert learner.evaluator(np.random.default_rng(0)).act(first_step()).plan is not None  # evaluation plans

    policy, told = learner._policy, first_step()
    imagined = told.observation[:, None].repeat(3, axis=1)
    policy.imagine = lambda *_, **__: policy_vertices(imagined)
    policy.walk = None
    targets = [policy.decide(told).target for _ in range(200)]
    to_goal = np.mean([(target == told.goal).all((1, 2, 3)) for target in targets])
    assert 0.2 < to_goal < 0.3
    assert all(((t == told.goal).all((1, 2, 3)) | (t == told.observation).all((1, 2, 3))).all() for t in targets)


def policy_vertices(states):
    return merged_vertices(states, np.zeros(states.shape[:2], int))._replace(present=np.ones(states.shape[:2], bool))


def test_without_any_edge_it_plans_again_at_every_step():
    learner = agent(match_observations=True, edge_threshold=0.5)
    policy = SkipperPolicy(learner.core.network, learner.config, learner.spec, np.random.default_rng(0))
    for _, decision, _ in decisions(policy, 5):
        assert decision.planned.all()
        assert (decision.plan.target == -1).all()


def test_an_environment_without_a_scene_is_refused():
    with pytest.raises(ValueError, match="must offer a Scene"):
        SkipperAgent(configuration(), EnvironmentSpec((6, 6, 2), (11, 6), 4, 20))
    with pytest.raises(ValueError, match="must offer an Oracle"):
        make_fixed("optimal", Ingredients(EnvironmentSpec((6, 6, 2), (11, 6), 4, 20), np.random.default_rng(0)))


def test_a_walk_counts_what_was_chosen_where():
    walk = new_plan_state(2, 3, (2, 2, 2), longest=4)
    walk.begin(np.array([True, True]))
    for identity, action in (([7, 5], [0, 1]), ([8, 5], [2, 1]), ([7, 6], [0, 3])):
        walk.note(np.array(identity), np.array(action))
    tried = walk.tried(np.array([1, 0]), np.array([[5, 6], [7, 8]]), actions=4)
    assert tried.tolist() == [[[0, 2, 0, 0], [0, 0, 0, 1]], [[2, 0, 0, 0], [0, 0, 1, 0]]]
    walk.begin(np.array([True, False]))  # the first environment begins anew
    tried = walk.tried(np.array([0, 1]), np.array([[7], [5]]), actions=4)
    assert tried.tolist() == [[[0, 0, 0, 0]], [[0, 2, 0, 0]]]
    for _ in range(5):  # longer than expected
        walk.note(np.array([9, 9]), np.array([1, 1]))
    assert walk.tried(np.array([1]), np.array([[9]]), actions=4).tolist() == [[[0, 1, 0, 0]]]


def test_at_every_step_there_is_a_new_plan_and_ways_that_led_back_are_doubted():
    learner = agent(regenerate="step", revisit_penalty=0.5, match_observations=True)
    policy = learner.evaluator(np.random.default_rng(0)).policy
    states = TASKS.observe(np.zeros(2, int), TASKS.table.starts[0, :2])
    goal = TASKS.observe(np.zeros(1, int), TASKS.table.goal[:1])
    chosen, plans = [], []
    for moment in range(min(24, policy.spec.longest)):  # to and fro between two states
        decision = policy.decide(TimeStep(states[moment % 2][None], goal, np.array([moment == 0])))
        assert decision.planned.all()
        before = np.array(chosen[moment % 2 :: 2])
        begins = decision.plan.edges.action[0, CURRENT]  # (N,)
        expected = 0.5 ** np.array([(before == action).sum() for action in begins])
        np.testing.assert_allclose(decision.plan.trust[0, CURRENT], expected)
        chosen.append(int(decision.action[0]))
        plans.append(decision.plan)
    assert plans[-1].trust.min() < 1.0
    assert not np.array_equal(plans[0].vertices.code, plans[2].vertices.code)


def test_policies_that_remember_scenes_imagine_the_same():
    learner = agent(regenerate="step")
    learner.core.online.average = None  # what is evaluated is what is scaled here
    with torch.no_grad():
        for parameter in learner.core.network.generator.fuse.parameters():
            parameter *= 3.0  # so that codes name different cells
    remembering, forgetting = (learner.evaluator(np.random.default_rng(0)).policy for _ in range(2))
    forgetting._imagination = None
    assert remembering._imagination is not None
    seen = set()
    for moment in range(6):
        rows = np.array([0, 2, 3])
        now, goal = TASKS.observe(rows, TASKS.table.starts[rows, moment]), TASKS.observe(rows, TASKS.table.goal[rows])
        for policy in (remembering, forgetting):
            policy.open_edge_cache(rows, now)
        one, two = (policy.imagine(now, goal, rows=rows) for policy in (remembering, forgetting))
        np.testing.assert_array_equal(one.code, two.code)
        assert (one.observation == two.observation).all((2, 3, 4)).mean() > 0.99  # but for ties
        seen |= set(LavaScene().agent_cell(one.observation[:, 1]).tolist())
    assert len(seen) > 2


def test_nobody_plans_for_idle_environments():
    policy = agent().evaluator(np.random.default_rng(0)).policy
    step = first_step()._replace(idle=np.array([False, True, False, True]))
    decision = policy.decide(step)
    assert decision.planned.tolist() == [True, False, True, False]
    assert len(decision.plan.target) == 2
