"""Configurations as JSON that outlives versions: missing fields take defaults, renamed and moved ones migrate."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from skipper.runtime.checks import nearest_name

Config = TypeVar("Config")

SCHEMA = 4

# For each older schema, the fields that have another name or another block in the next one, by their dotted names.
MOVED: dict[int, dict[str, str]] = {
    1: {
        "evaluation.difficulties": "world.difficulties",
        "evaluation.difficulty_spread": "world.difficulty_spread",
        "evaluation.training_task_start": "world.training_task_start",
        "planning.kept": "planning.max_vertices",
        "planning.longest": "planning.max_distance",
        "planning.doubt": "planning.revisit_penalty",
        "planning.caution": "planning.edge_length_penalty",
        "planning.truth": "planning.oracle_parts",
        "planning.match_states": "planning.match_observations",
        "learning.sync_every": "learning.target_update_every",
        "learning.final_rate": "learning.final_learning_rate_fraction",
        "learning.frozen_acting": "learning.act_with_target_network",
        "learning.practice": "learning.training_targets",
        "learning.averaging": "learning.ema_decay",
        "learning.learn_apart": "learning.updater_process",
        "network.centred_embedding": "network.scaled_start",
    },
    2: {"planning.revisit_penalty": "decision.revisit_penalty"},
    3: {"network.distance_distributions": "planning.distance_distributions"},
}
# Schema 1 wrote the blocks of Skipper into the runs of every agent.
SKIPPER_BLOCKS = ("generator", "planning")
SKIPPER_FIELDS = {
    "learning": (
        *("policy_discount", "delusion_scale", "hindsight_bound", "act_with_target_network", "training_targets"),
        "updater_process",
    ),
    "replay": (
        *("targets", "strategy", "all_pairs", "pair_episodes", "pair_transitions", "pair_targets", "pair_endings"),
        "other_episodes",
    ),
}
# One field of schema 2 said both when to imagine and when to plan.
REGENERATE_AND_REPLAN = {"once": (False, "trigger"), "trigger": (True, "trigger"), "step": (True, "step")}

Blocks = dict[str, Any]


def migrated(data: dict[str, Any], schema: int, kind: type[Any]) -> dict[str, Any]:
    """A configuration of an older schema as one of today's, for a run of the type ``kind``."""
    if schema == SCHEMA:
        return data
    blocks = {name: dict(value) if isinstance(value, dict) else value for name, value in data.items()}
    for older in range(schema, SCHEMA):
        _move(blocks, MOVED[older])
        CONVERSIONS[older](blocks, kind)
    return blocks


def _move(blocks: Blocks, moved: Mapping[str, str]) -> None:
    """Rename fields, and move them to other blocks."""
    for old, new in moved.items():
        (old_block, old_name), (new_block, new_name) = old.split("."), new.split(".")
        source = blocks.get(old_block)
        if isinstance(source, dict) and old_name in source:
            target = blocks.setdefault(new_block, {})
            if isinstance(target, dict):
                target[new_name] = source.pop(old_name)


def _from_1(blocks: Blocks, kind: type[Any]) -> None:
    """Targets in training have names, and agents lose the settings that were never theirs."""
    learning = blocks.get("learning")
    if isinstance(learning, dict) and "training_targets" in learning:
        learning["training_targets"] = "random" if learning["training_targets"] else "plan"
    for name in SKIPPER_BLOCKS:
        if not _fields_of(kind, name):
            blocks.pop(name, None)
    for block, names in SKIPPER_FIELDS.items():
        for name in names:
            if name not in _fields_of(kind, block) and isinstance(blocks.get(block), dict):
                blocks[block].pop(name, None)


def _from_2(blocks: Blocks, kind: type[Any]) -> None:
    """Two settings say when to imagine and when to plan; planning did not yet follow the paper in two others."""
    if "planning" not in get_type_hints(kind):
        return
    planning = blocks.setdefault("planning", {})
    if isinstance(planning, dict):
        if planning.get("regenerate") in REGENERATE_AND_REPLAN:
            planning["regenerate"], planning["replan"] = REGENERATE_AND_REPLAN[planning["regenerate"]]
        planning |= {"cluster_current_state": True, "replan_after_exploring": False}


def _from_3(blocks: Blocks, kind: type[Any]) -> None:
    """Distributions of distances were a setting of the networks of every agent."""
    if "distance_distributions" not in _fields_of(kind, "planning") and isinstance(blocks.get("planning"), dict):
        blocks["planning"].pop("distance_distributions", None)
        if not blocks["planning"]:
            del blocks["planning"]


def _fields_of(kind: type[Any], block: str) -> set[str]:
    """Names of the settings of a block; none where there is no such block."""
    hints = get_type_hints(kind)
    return {entry.name for entry in fields(hints[block])} if block in hints else set()


# For each older schema, what moving its fields does not do.
CONVERSIONS: dict[int, Callable[[Blocks, type[Any]], None]] = {1: _from_1, 2: _from_2, 3: _from_3}


def to_dict(config: Any) -> dict[str, Any]:
    """Nested dictionaries of JSON values."""
    return json.loads(json.dumps(asdict(config)))


def from_dict(
    kind: type[Config], data: Any, where: str = "configuration", blocks: Mapping[str, type] | None = None
) -> Config:
    """The inverse of ``to_dict``; missing fields take their defaults, unknown ones are refused.

    ``blocks`` gives the types of fields that the environment decides.
    """
    if not isinstance(data, dict):
        raise ValueError(f"{where}: wanted an object, got {data!r:.60}")
    known = {entry.name for entry in fields(cast(Any, kind))}
    for name in data:
        if name not in known:
            raise ValueError(f"{where}: {nearest_name('field', name, known)}")
    hints = get_type_hints(kind) | dict(blocks or {})
    values = {name: _parse(hints[name], value, f"{where}.{name}") for name, value in data.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _parse(kind: Any, value: Any, where: str) -> Any:
    if is_dataclass(kind):
        return from_dict(cast(type[Any], kind), value, where)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where}: wanted a list, got {value!r:.60}")
        return tuple(_parse(get_args(kind)[0], entry, where) for entry in value)
    if get_origin(kind) is Literal:
        kind = str
    # JSON does not distinguish 4 from 4.0; and bool is an int in Python, but not here.
    if kind is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if type(value) is not kind:
        raise ValueError(f"{where}: wanted {kind.__name__}, got {value!r:.60}")
    return value


def content_hash(config: Any) -> str:
    """Sixteen hexadecimal digits of what differs from the defaults: fields added later do not change it."""
    names = {name: getattr(config, name) for name in ("agent", "env") if hasattr(config, name)}
    return digest(_changed(config) | names)


def _changed(config: Any) -> dict[str, Any]:
    """The fields that differ from the defaults of their blocks."""
    default, found = type(config)(), {}
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(value):
            if inner := _changed(value):
                found[entry.name] = inner
        elif value != getattr(default, entry.name):
            found[entry.name] = value
    return found


def digest(data: Any) -> str:
    """Sixteen hexadecimal digits of JSON values."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def differences(one: Any, two: Any) -> list[str]:
    """The fields in which two configurations differ, as "name: this -> that"."""
    left, right = (_flat(to_dict(config)) for config in (one, two))
    names = [*left, *(name for name in right if name not in left)]
    missing = "not there"
    return [
        f"{name}: {left.get(name, missing)} -> {right.get(name, missing)}"
        for name in names
        if left.get(name, missing) != right.get(name, missing)
    ]


def _flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in data.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found
