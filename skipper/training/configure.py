"""From names to a configuration: the one place that knows both agents and environments."""

from typing import Any

from skipper.agents.registry import agent_kind
from skipper.config import RunConfig, WorldConfig
from skipper.envs.registry import find_family
from skipper.schema import from_dict, migrated


def configure(
    preset: str = "fast", agent: str = "skipper-regen", env: str = "lava", world: WorldConfig | None = None
) -> RunConfig:
    """The configuration that a run starts from, by default in the world that the preset names."""
    world = find_family(env).world(preset) if world is None else world
    return agent_kind(agent).preset(preset, agent, env, world)


def parse_config(data: Any, schema: int, where: str) -> RunConfig:
    """A configuration from JSON values of any schema, with the blocks of its agent and its environment."""
    if not isinstance(data, dict):
        raise ValueError(f"{where}: wanted an object, got {data!r:.60}")
    names = {name: data.get(name, default) for name, default in (("agent", None), ("env", "lava"))}
    for name, value in names.items():
        if not isinstance(value, str):
            raise ValueError(f"{where}.{name}: wanted str, got {value!r:.60}")
    kind = agent_kind(str(names["agent"])).config_type
    blocks = {"world": find_family(str(names["env"])).config_type}
    return from_dict(kind, migrated(data, schema, kind), where, blocks)
