"""A third learning agent, as small as the recipe "add an agent" allows: Q-learning with a hashed table."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skipper.agents.registry import AgentKind, Builders, register_agent
from skipper.config import RunConfig, ScheduleConfig, WorldConfig
from skipper.presets import common_values, shared_preset
from skipper.types import Decision, EnvironmentSpec, TimeStep, Transition


@dataclass(frozen=True)
class TableConfig:
    entries: int = 4096
    """Entries of the table; states that share one are confused."""
    step_size: float = 0.5
    """Share of an error that an update corrects."""
    discount: float = 0.99
    """Discount of rewards."""


@dataclass(frozen=True)
class ToyAgentConfig(RunConfig):
    table: TableConfig = field(default_factory=TableConfig)


def toy_preset(preset: str, agent: str, env: str, world: WorldConfig) -> ToyAgentConfig:
    shared = shared_preset(preset).learning
    learning = ScheduleConfig(shared.steps_per_update, shared.learning_starts)
    own = {"agent": agent, "env": env, "world": world, "learning": learning}
    return ToyAgentConfig(**common_values(preset) | own)


class TableActor:
    """Acts on a table (entries, A) of values, mostly greedily."""

    def __init__(self, spec: EnvironmentSpec, table: np.ndarray, epsilon: float, rng: np.random.Generator) -> None:
        self.spec, self.table, self.epsilon, self.rng = spec, table, epsilon, rng

    def entries(self, observation: np.ndarray) -> np.ndarray:
        return self.spec.state_key(observation) % len(self.table)

    def act(self, timestep: TimeStep) -> Decision:
        values = self.table[self.entries(timestep.observation)]
        random = self.rng.random(len(values)) < self.epsilon
        action = np.where(random, self.rng.integers(self.spec.actions, size=len(values)), values.argmax(-1))
        return Decision(action, values=values)


class TableLearner(TableActor):
    """Learns from the newest transitions."""

    def __init__(self, config: ToyAgentConfig, spec: EnvironmentSpec) -> None:
        rng = np.random.default_rng([config.seed, *b"act"])
        super().__init__(spec, rng.random((config.table.entries, spec.actions)) * 0.01, 0.3, rng)
        self.config, self.newest = config, {}

    def observe(self, transition: Transition) -> None:
        columns = {"action": transition.action, "reward": transition.reward, "terminated": transition.terminated}
        before, after = (self.entries(seen) for seen in (transition.observation, transition.next_observation))
        self.newest = {name: column.copy() for name, column in columns.items()} | {"before": before, "after": after}

    def ready(self) -> bool:
        return bool(self.newest)

    def learn(self) -> dict[str, float]:
        new, discount = self.newest, self.config.table.discount
        target = new["reward"] + discount * ~new["terminated"] * self.table[new["after"]].max(-1)
        error = target - self.table[new["before"], new["action"]]
        self.table[new["before"], new["action"]] += self.config.table.step_size * error
        return {"loss": float((error**2).mean())}

    def evaluator(self, rng: np.random.Generator) -> TableActor:
        return TableActor(self.spec, self.table.copy(), 0.0, rng)

    def weights(self) -> dict[str, np.ndarray]:
        return {"table": self.table.copy()}

    def state_dict(self) -> dict[str, Any]:
        return {"table": self.table.copy(), "newest": dict(self.newest), "rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.table, self.newest = state["table"].copy(), dict(state["newest"])
        self.rng.bit_generator.state = state["rng"]


def play_table(config, spec, weights, rng, *, explain=False) -> TableActor:
    return TableActor(spec, weights["table"], 0.0, rng)


register_agent("table", AgentKind(ToyAgentConfig, toy_preset, lambda: Builders(TableLearner, play_table)))
