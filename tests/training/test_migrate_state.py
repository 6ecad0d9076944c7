"""A state as version 1 wrote it, made by hand, and what becomes of it."""

from copy import deepcopy

import numpy as np
import pytest

from skipper.config import ReplayConfig
from skipper.nets.frozen_encoder import PartialStateCache
from skipper.replay.episodes import Episode
from skipper.replay.prioritized import PrioritizedSampler
from skipper.replay.store import EpisodeStore
from skipper.training.migrate_state import SCHEMA, migrate

RNG = np.random.default_rng(4).bit_generator.state


def old_replay() -> dict:
    """Two episodes, of 3 and 2 states, without hindsight: states 1 2 3 and 7 8."""
    return {
        "rows": np.array([[1], [2], [3], [7], [8]], np.uint8),
        "action": np.array([0, 1, 0, 3, 0], np.int16),
        "reward": np.array([0.0, 1.0, 0.0, 0.5, 0.0], np.float32),
        "terminated": np.array([False, True, False, False, False]),
        "episode": np.array([0, 0, 0, 1, 1], np.int32),
        "identity": np.array([11, 12, 13, 17, 18]),
        "sample": np.array([[0, 1], [1, 2], [3, 4]], np.int32),
        "priorities": np.array([1.0, 2.0, 5.0]),
        "records": np.array([[0, 3, 0, 2], [3, 2, 2, 1]]),
        "tasks": np.array([40, 41]),
        "counters": {
            "_first_record": 0,
            "_record_count": 2,
            "_slot_head": 5,
            "_sample_head": 3,
            "_sample_count": 3,
            "_used": 5,
            "_samples_used": 3,
            "_records_used": 2,
            "_greatest_loss": 5.0,
        },
    }


def old_plans() -> dict:
    """Columns of the plans of two environments as schema 2 wrote them, of which the second has none yet."""
    return {
        "codes": np.array([[5, 1, 2], [-1, -1, -1]]),
        "kept": np.array([[True, False, True], [False, False, False]]),
        "target_code": np.array([2, -1]),
        "planned_code": np.array([5, -1]),
        "steps": [2, 9],
    }


def old_state(**learner) -> dict:
    core = {
        "network": {"weight": np.ones(2)},
        "average": {},
        "optimiser": {"weight": {"mean": np.zeros(2), "square": np.ones(2), "steps": 3}},
        "target_network": {"weight": np.zeros(2)},
        "experience": {"replay": old_replay(), "building": {"steps": np.array([1])}, "rng": RNG},
        "sample_rng": {"state": 1},
        "counters": {"steps": 80, "updates": 20, "syncs": 2},
    }
    loop = {"learner": {"core": core, **learner}, "envs": {"cell": 1}, "timestep": {"first": 1}}
    return {
        "loop": loop | {"step": 80, "updates": 20, "outcomes": {"episodes": 1, "successes": 0}},
        "sums": {"loss": [1.0, 2]},
        "recorder": {"metrics.jsonl": 7},
    }


def test_the_loop_was_in_its_only_stage():
    old = old_state(act_rng={"state": 9})
    new = migrate(old, 1)
    assert (new["sums"], new["recorder"]) == (old["sums"], old["recorder"])
    loop = new["loop"]
    assert (loop["step"], loop["uncharged"], loop["stage"]) == (80, 0, {"index": 0, "steps": 80})
    assert {name: loop[name] for name in ("envs", "timestep", "updates", "outcomes")} == {
        name: old["loop"][name] for name in ("envs", "timestep", "updates", "outcomes")
    }
    assert loop["learner"].keys() == {"core", "sampler", "act_rng", "frozen"}


def test_names_of_learners_and_their_networks():
    learner = migrate(old_state(memory={"partial": 1}, walk=old_plans(), rngs={"act": 3}), 1)["loop"]["learner"]
    assert learner.keys() == {"core", "sampler", "frozen", "plan_state", "rngs"}
    assert (learner["frozen"], learner["plan_state"]["steps"], learner["rngs"]) == ({"partial": 1}, [2, 9], {"act": 3})
    core, old = learner["core"], old_state()["loop"]["learner"]["core"]
    assert core.keys() == old.keys() - {"optimiser", "experience"} | {"optimizer", "store", "building"}
    assert core["optimizer"]["weight"]["steps"] == 3
    assert core["counters"] == {"steps": 80, "updates": 20, "target_updates": 2}


def test_plans_forget_descriptions_and_keep_what_later_plans_may_use():
    learner = {"core": {}, "plan_state": old_plans()}
    plans = migrate({"loop": {"learner": learner}}, 2)["loop"]["learner"]["plan_state"]
    assert plans.keys() == {"kept", "remaining", "reached_code", "explored", "steps"}
    assert plans["remaining"].tolist() == [[True, False, True], [False, False, False]]
    assert plans["remaining"] is not plans["kept"]
    assert plans["reached_code"].tolist() == [5, -1]
    assert plans["explored"].tolist() == [False, False]
    for learner in (
        {"frozen": {}},
        {"frozen": {}, "plan_state": {}},
    ):  # without plans, or before the first one
        assert migrate({"loop": {"learner": learner}}, 2)["loop"]["learner"] == learner


def test_the_model_free_agent_had_cached_nothing():
    frozen = migrate({"loop": {"learner": {"core": {}}}}, 2)["loop"]["learner"]["frozen"]
    cache = PartialStateCache(8, 4)
    cache.load_state_dict(frozen)
    assert len(cache.state_dict()["keys"]) == 0


def test_store_and_sampler_load_what_was_one_buffer():
    learner = migrate(old_state(), 1)["loop"]["learner"]
    config = ReplayConfig(capacity=10, alpha=1.0)
    store = EpisodeStore(10, (1, 1, 1))
    sampler = PrioritizedSampler(store, config, np.random.default_rng(0))
    store.load_state_dict(learner["core"]["store"])
    sampler.load_state_dict(learner["sampler"])
    assert list(store.numbers()) == [0, 1]
    assert store.task[:2].tolist() == [40, 41]
    assert store.keys_of(0).tolist() == [11, 12, 13]
    batch = sampler.sample(80, 0.4, np.random.default_rng(0))
    assert np.bincount(batch.leaf).tolist() == [10, 20, 50]
    assert set(zip(batch.observation.ravel().tolist(), batch.target.ravel().tolist(), strict=True)) == {
        (1, 2),
        (2, 3),
        (7, 8),
    }
    assert sampler.state_dict()["rng"] == RNG
    # The next episode needs the slots of the first one, whose samples leave with it.
    store.add(Episode(np.full((6, 1, 1, 1), 9, np.uint8), np.zeros(5), np.zeros(5), True))
    assert list(store.numbers()) == [2]
    assert len(sampler) == 5
    assert sampler.state_dict()["priorities"].tolist()[:3] == [0.0, 0.0, 0.0]
    assert sampler.state_dict()["priorities"][3] == pytest.approx(5.0, rel=1e-5)


def test_the_old_state_is_left_as_it_was_and_new_ones_pass_through():
    old = old_state()
    before = deepcopy(old)
    migrate(old, 1)
    np.testing.assert_equal(old, before)
    assert migrate(old, SCHEMA) is old
    for schema in (0, SCHEMA + 1):
        with pytest.raises(ValueError, match=f"schema {schema} cannot be read; readable: 1 to {SCHEMA}"):
            migrate(old, schema)
