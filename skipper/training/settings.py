"""From names to a configuration: the one place that knows both agents and environments."""

from dataclasses import replace
from typing import Any, TypeVar, cast

from skipper.agents.registry import agent_kind, kind_of
from skipper.config import RunConfig, WorldConfig
from skipper.envs.registry import DEFAULT_FAMILY, find_family
from skipper.nets.ensemble import SymmetryEnsemble
from skipper.schema import from_dict, migrated
from skipper.types import EnvironmentSpec

Config = TypeVar("Config", bound=RunConfig)


def configure(
    preset: str = "fast", agent: str = "skipper-regen", env: str = DEFAULT_FAMILY, world: WorldConfig | None = None
) -> RunConfig:
    """The configuration that a run starts from, by default in the world that the preset names."""
    world = find_family(env).world(preset) if world is None else world
    return agent_kind(agent).preset(preset, agent, env, world)


def parse_config(data: Any, schema: int, where: str) -> RunConfig:
    """A configuration from JSON values of any schema, with the blocks of its agent and its environment."""
    if not isinstance(data, dict):
        raise ValueError(f"{where}: wanted an object, got {data!r:.60}")
    names = {name: data.get(name, default) for name, default in (("agent", None), ("env", DEFAULT_FAMILY))}
    for name, value in names.items():
        if not isinstance(value, str):
            raise ValueError(f"{where}.{name}: wanted str, got {value!r:.60}")
    kind = agent_kind(str(names["agent"])).config_type
    blocks = {"world": find_family(str(names["env"])).config_type}
    return from_dict(kind, migrated(data, schema, kind), where, blocks)


# What an environment may offer, and the setting (by block and name) that is off without it.
OPTIONAL = (
    ("symmetries", "learning", "symmetries"),
    ("examples", "network", "scaled_start"),
    ("examples", "generator", "flat_description"),
    ("examples", "model", "balanced_cells"),
)


def supported(config: Config, spec: EnvironmentSpec) -> tuple[Config, list[str]]:
    """The configuration with only the settings that the environment can support, and a line about each change.

    Refused where the agent cannot do without.
    """
    notes, offers_none = [], f"the environment {config.env!r} offers none"
    for offer, block, setting in OPTIONAL:
        settings = getattr(config, block, None)
        if getattr(spec, offer) is None and getattr(settings, setting, False):
            changed: dict[str, Any] = {block: replace(cast(Any, settings), **{setting: False})}
            config = replace(config, **changed)
            notes.append(f"no {offer}: {offers_none}, so {block}.{setting} is off")
    generator: Any = getattr(config, "generator", None)
    if not spec.gives_goals and getattr(generator, "learned_goal", None) is False:
        config = replace(config, **{"generator": replace(generator, learned_goal=True)})
        notes.append(f"no goals: {offers_none}, so generator.learned_goal is on")
    SymmetryEnsemble(spec.symmetries, config.decision.ensemble)  # refuses more images than there are
    check = kind_of(config).check
    if check is not None:
        check(config, spec)
    return config, notes
