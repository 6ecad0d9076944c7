"""Exported episodes: the way, the plans and the truth are what they are said to be."""

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from skipper.analysis.oracle_substitution import load_with_oracle
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import LAVA
from skipper.envs.lava.oracle import LavaOracle
from skipper.envs.lava.tasks import Tasks, evaluation_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.planning.proxy import ProxyProblem
from skipper.planning.prune import EdgeStatus
from skipper.training.load import load
from skipper.types import TimeStep
from skipper.viewer.gallery import OUTCOMES, gallery, some_of_each
from skipper.viewer.record import page_data, record, to_html

PRETRAINED = Path(__file__).parents[2] / "skipper" / "pretrained"
SEED = 3


def tasks(count: int, **world: float) -> Tasks:
    return evaluation_tasks(LavaConfig(**world), 0.5, count, seed=1)


def episodes(name: str, of: Tasks, agent: str | None = None, **settings) -> list[dict]:
    recorded = record(load(PRETRAINED / name, SEED, agent, explain=True, **settings).agent, LAVA, of, SEED)
    return [recording.episode for recording in recorded]


@pytest.fixture(scope="module")
def recorded() -> list[dict]:
    return episodes("skipper-regen-50", tasks(6))


@pytest.mark.parametrize("slip", [0.0, 0.3])
def test_the_way_replayed_in_the_environment_ends_the_same(slip):
    played = tasks(12, slip=slip)
    found = episodes("skipper-once-50", played, "skipper-goal", revisit_penalty=0.0)  # which often fails
    assert len({episode["outcome"] for episode in found}) > 1
    for row, episode in enumerate(found):
        # All of them, as in the recording: with slip, each has a random stream of its own.
        envs = LavaVectorEnv(len(played), tasks=played, assignment="own")
        envs.reset(seed=SEED)
        cell, outcome = int(played.table.start[row]), "timeout"
        for moment in episode["steps"]:
            assert moment["cell"] == cell
            meant = played.table.successor[row, cell, moment["action"]]
            observation, reward, terminated, truncated, info = envs.step(np.full(len(played), moment["action"]))
            ended = terminated[row] or truncated[row]
            shown = info["final_obs"][row] if ended else observation[row]
            cell = int((shown[..., 0] == 10).argmax())
            assert moment.get("slipped", False) == (cell != meant)
            if terminated[row]:
                outcome = "success" if reward[row] > 0 else "death"
        assert ended
        assert (episode["end"], episode["outcome"]) == (cell, outcome)


def test_the_truth_is_the_oracles(recorded):
    played, oracle = tasks(6), LavaOracle(LavaConfig())
    for row, episode in enumerate(recorded):
        cells = np.array(episode["truth"]["states"])
        assert {cell for plan in episode["plans"] for cell in plan["cells"]} <= set(cells.tolist())
        states = played.observe(np.full(len(cells), row), cells)
        true = oracle.edges(states[None], 0.99)[0][0]
        assert (np.where(np.isinf(true), -1, true) == episode["truth"]["distance"]).all()
        assert len(episode["optimal"]) - 1 == oracle.distances(
            played.observe(np.array([row]), played.table.start[[row]]),
            played.observe(np.array([row]), played.table.goal[[row]]),
        )


def test_plans_are_those_of_the_decisions(recorded):
    played = tasks(6)
    agent = load(PRETRAINED / "skipper-regen-50", SEED).agent
    envs = LavaVectorEnv(6, tasks=played, assignment="own")
    observation, info = envs.reset(seed=SEED)
    decision = agent.act(TimeStep(observation, info["goal"], np.ones(6, bool), idle=np.zeros(6, bool)))
    problem = decision.plan
    assert isinstance(problem, ProxyProblem)
    for row, episode in enumerate(recorded):
        plan, present = episode["plans"][0], problem.vertices.present[row]
        inner = np.ix_(present, present)
        steps = problem.edges.distance[row][inner]
        known = np.isfinite(steps)
        tenths = [[line[place : place + 2] for place in range(0, len(line), 2)] for line in plan["tenths"]]
        exported = np.array([[-1 if each == "--" else int(each, 36) for each in line] for line in tenths])
        assert exported[known] == pytest.approx(10 * steps[known], abs=0.51)
        assert (exported[~known] == -1).all()
        assert [[int(status) for status in line] for line in plan["status"]] == problem.status[row][inner].tolist()
        assert plan["merged"] == (~present).sum()
        assert np.flatnonzero(present)[plan["target"]] == problem.target[row]
        assert plan["route"][0] == 0
        assert plan["route"][1] == plan["target"]
        assert plan["cells"][plan["target"]] == episode["steps"][0]["target"]
        assert plan["worth"] == pytest.approx(problem.values.action[row, 0, present], abs=0.0006)


def test_explaining_does_not_change_what_is_done(recorded):
    silent = record(load(PRETRAINED / "skipper-regen-50", SEED).agent, LAVA, tasks(6), SEED)
    for told, (untold, _) in zip(deepcopy(recorded), silent, strict=True):
        for moment in told["steps"]:
            fields = np.array(moment.pop("attention"))
            assert fields[:, 4].sum() == pytest.approx(1.0, abs=0.01)
            assert (fields[:, :2] >= 0).all()
            assert (fields[:, :2] + fields[:, 2:4] <= 12).all()
        assert told == untold


def test_reasons_to_plan_are_true():
    found = episodes("skipper-once-50", tasks(8), replan="trigger")
    reasons = {moment["reason"] for episode in found for moment in episode["steps"]}
    assert {"the episode begins", "the target was reached", ""} <= reasons
    for episode in found:
        target = None
        for place, moment in enumerate(episode["steps"]):
            assert (moment["reason"] == "the episode begins") == (place == 0)
            if moment["reason"] == "the target was reached":
                assert moment["cell"] == target
            target = moment.get("target")
            before = episode["steps"][place - 1]["plan"] if place else -1
            assert (moment["plan"] > before) == bool(moment["reason"])


def test_modelfree_shows_values():
    for episode in episodes("modelfree-50", tasks(3)):
        assert episode["plans"] == []
        for moment in episode["steps"]:
            assert "target" not in moment
            assert len(moment["values"]) == 4


def test_edges_of_pruned_vertices_say_so():
    agent = load_with_oracle(PRETRAINED / "skipper-regen-50").with_planning(SEED, prune_vertices=True)
    plan = record(agent, LAVA, tasks(1), SEED)[0].episode["plans"][0]
    assert sum(plan["kept"]) <= 12 < len(plan["kept"])
    gone = plan["kept"].index(0)
    assert plan["status"][gone][0] == str(int(EdgeStatus.VERTEX_GONE))


@pytest.mark.parametrize(("checkpoints", "limit"), [(30, 400_000), (62, 800_000)])  # plans hold all pairs of vertices
def test_a_page_of_the_longest_episode_is_small(checkpoints, limit):
    played = tasks(40)
    found = episodes("skipper-regen-50", played, checkpoints=checkpoints)
    assert max(len(episode["plans"]) for episode in found) > 35
    pages = (to_html(page_data("x", {}, LAVA, played, [{"name": "task", **episode}])) for episode in found)
    assert max(len(page.encode()) for page in pages) < limit


def test_a_gallery_has_some_of_each_outcome():
    loaded = load(PRETRAINED / "modelfree-50", SEED)  # which meets every end, death rarely
    found = some_of_each(loaded, tasks(400), 2, SEED)
    assert [recording.episode["outcome"] for recording in found] == [outcome for outcome in OUTCOMES for _ in range(2)]


def test_named_tasks_are_those_of_evaluation():
    loaded = load(PRETRAINED / "skipper-regen-50", 0)
    shown = gallery("run", loaded, "0.35", (5, 2), seed=4)
    unseen = evaluation_tasks(loaded.config.world, 0.35, 6, seed=4)
    assert [episode["name"] for episode in shown.data["episodes"]] == ["task 5", "task 2"]
    starts = unseen.table.start[[5, 2]]
    assert [episode["steps"][0]["cell"] for episode in shown.data["episodes"]] == starts.tolist()
    # Pictures are those of the observations: one per step, and the end.
    first = unseen.observe(np.array([5]), starts[:1])[0]
    assert (shown.pictures(0)[0] == LAVA.draw(first)).all()
    assert len(shown.pictures(0)) == len(shown.data["episodes"][0]["steps"]) + 1


def test_data_cannot_leave_its_element():
    hostile = "</script><script>alert(1)</script><!--"
    page = to_html({"title": hostile})
    assert page.count("</script>") == 2  # that of the data and that of the program
    assert "<!--" not in page.split("__DATA__")[0].split('application/json">')[1]
    packed = page.split('application/json">')[1].split("</script>")[0]
    assert json.loads(packed)["title"] == hostile
