"""Checkpoints of older versions, converted to the state that this version loads."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skipper.schema import SCHEMA

State = dict[str, Any]

NOTHING_CACHED = {"keys": np.empty(0, np.int64), "partial": np.empty((0, 1), np.float32)}  # fits any width


def migrate(state: State, schema: int) -> State:
    """The state of a checkpoint of an older ``schema`` as one of ``SCHEMA``; its arrays are not copied.

    Version 0.1 wrote schema 1, without naming it.
    """
    if not 1 <= schema <= SCHEMA:
        raise ValueError(f"checkpoints of schema {schema} cannot be read; readable: 1 to {SCHEMA}")
    for older in range(schema, SCHEMA):
        state = {**state, "loop": LOOP_CONVERSIONS[older](state["loop"])}
    return state


def _loop_from_1(loop: State) -> State:
    """All steps were charged, in a single stage."""
    stage = {"index": 0, "steps": loop["step"]}
    return {**loop, "learner": _learner_from_1(loop["learner"]), "uncharged": 0, "stage": stage}


def _learner_from_1(learner: State) -> State:
    renamed = {"walk": "plan_state", "memory": "frozen"}
    core = learner["core"]
    return {renamed.get(name, name): entry for name, entry in learner.items()} | {
        "core": _core_from_1(core),
        "sampler": _sampler_from_1(core["experience"]["replay"], core["experience"]["rng"]),
    }


def _core_from_1(core: State) -> State:
    kept = ("network", "average", "target_network", "sample_rng")
    counters, experience = core["counters"], core["experience"]
    return {name: core[name] for name in kept} | {
        "optimizer": core["optimiser"],
        "store": _store_from_1(experience["replay"]),
        "building": experience["building"],
        "counters": {
            "steps": counters["steps"],
            "updates": counters["updates"],
            "target_updates": counters["syncs"],
        },
    }


def _store_from_1(replay: State) -> State:
    """The ring of states, and the first two columns of the records: first slot and number of states."""
    kept = ("rows", "action", "reward", "terminated", "episode")
    counters = {
        "oldest": "_first_record",
        "count": "_record_count",
        "head": "_slot_head",
        "used_slots": "_used",
        "used_numbers": "_records_used",
    }
    return {name: replay[name] for name in kept} | {
        "key": replay["identity"],
        "first": replay["records"][:, 0].copy(),
        "states": replay["records"][:, 1].copy(),
        "task": replay["tasks"],
        "counters": {name: replay["counters"][old] for name, old in counters.items()},
    }


def _sampler_from_1(replay: State, rng: State) -> State:
    """The ring of samples with its priorities. Runs with all pairs stored one too, which their sampler ignores."""
    counters = {
        "head": "_sample_head",
        "count": "_sample_count",
        "used": "_samples_used",
        "greatest_loss": "_greatest_loss",
    }
    return {
        "sample": replay["sample"],
        "priorities": replay["priorities"],
        "samples_of": replay["records"][:, 3].copy(),
        "counters": {name: replay["counters"][old] for name, old in counters.items()},
        "rng": rng,
    }


def _loop_from_2(loop: State) -> State:
    """Plans stored the descriptions of their states, and no agent planned because of a random action."""
    learner = {"frozen": NOTHING_CACHED} | loop["learner"]  # the model-free agent cached no partial states
    plans = learner.get("plan_state")
    if not plans:
        return {**loop, "learner": learner}
    gone = ("codes", "target_code", "planned_code")
    plans = {name: column for name, column in plans.items() if name not in gone} | {
        "remaining": plans["kept"].copy(),
        "reached_code": plans["planned_code"],
        "explored": np.zeros(len(plans["steps"]), bool),
    }
    return {**loop, "learner": {**learner, "plan_state": plans}}


# For each older schema, what turns the state of the training loop into that of the next one.
LOOP_CONVERSIONS: dict[int, Callable[[State], State]] = {
    1: _loop_from_1,
    2: _loop_from_2,
    3: lambda loop: loop,  # only settings moved
}
