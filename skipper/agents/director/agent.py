"""The Director agent: a world model learned from sequences, and two policies learned in its imagination."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from skipper.agents.director.config import DirectorConfig
from skipper.agents.director.layers import UniformNoise
from skipper.agents.director.network import DirectorNetwork
from skipper.agents.director.pictures import palette_of
from skipper.agents.director.policy import DirectorActor, DirectorPolicy
from skipper.agents.director.update import DirectorUpdater
from skipper.agents.director.world_model import Sequences
from skipper.agents.learning_core import module_state, named_rng
from skipper.nets.layers import seeded_initialisation
from skipper.replay.episodes import EpisodeBuilder
from skipper.replay.sequences import SequenceSampler
from skipper.replay.store import EpisodeStore
from skipper.types import Agent, Array, Decision, EnvironmentSpec, TimeStep, Transition

OPEN_LOOP_EVERY = 50  # updates between measurements of the open-loop accuracy
OBSERVED = 5  # states that it sees first


class DirectorAgent:
    """Learns from sequences of its own episodes; those shorter than a sequence are dropped."""

    def __init__(self, config: DirectorConfig, spec: EnvironmentSpec) -> None:
        self.config, self.spec = config, spec
        with seeded_initialisation(config.seed):
            self.network = DirectorNetwork(config, spec).to(config.device)
            self._updater = DirectorUpdater(self.network, config, spec)
        self._palette, self._policy = palette_of(spec), DirectorPolicy(self.network, config, spec)
        self.store = EpisodeStore(config.replay.capacity, spec.shape, spec.state_key)
        self._building = EpisodeBuilder(config.environments, spec.longest, spec.shape)
        self._sampler = SequenceSampler(self.store, config.replay.sequence_length)
        self._sample_rng = named_rng(config.seed, "sample")
        self._act_noise = UniformNoise(named_rng(config.seed, "act"), config.device)
        self.counts = {"steps": 0, "stored_states": 0, "dropped_episodes": 0, "dropped_states": 0}

    # Acting

    def act(self, timestep: TimeStep) -> Decision:
        """Random actions before learning starts, then samples of both policies."""
        if self.counts["steps"] < self.config.learning.learning_starts:
            return Decision(self._act_noise.rng.integers(self.spec.actions, size=len(timestep.first)))
        uniform = self._act_noise.draw(len(timestep.first), sum(self.network.random_numbers))
        return self._policy.act(timestep, uniform, greedy=False)

    def evaluator(self, rng: np.random.Generator) -> Agent:
        """The current networks, with a memory and a random stream of their own."""
        return DirectorActor(self.network, self.config, self.spec, rng)

    # Learning

    def observe(self, transition: Transition) -> None:
        """Store the episodes that have ended and are long enough."""
        self.counts["steps"] += len(transition.action)
        for episode in self._building.append(transition):
            states = len(episode.observation)
            if states < self.config.replay.sequence_length:
                self.counts["dropped_episodes"] += 1
                self.counts["dropped_states"] += states
            else:
                self.store.add(episode)
                self.counts["stored_states"] += states

    def ready(self) -> bool:
        """Whether an episode was stored."""
        return self._sampler.ready()

    def learn(self) -> dict[str, float]:
        """One update of the world model, the goal autoencoder, the worker and the manager."""
        batch, observation = self._sample()
        metrics = {name: float(value) for name, value in self._updater.update(batch).items()}
        if self._updater.updates % OPEN_LOOP_EVERY == 1:
            metrics |= self._open_loop(batch, observation)
        dropped = self.counts["dropped_states"]
        return metrics | {
            "stored_states": float(self.counts["stored_states"]),
            "dropped_episodes": float(self.counts["dropped_episodes"]),
            "dropped_share": dropped / max(dropped + self.counts["stored_states"], 1),
        }

    def _sample(self) -> tuple[Sequences, Array]:
        """A batch of sequences, and their observations (B, T, W, H, C)."""
        drawn = self._sampler.sample(self.config.learning.batch_size, self._sample_rng)
        B, T = drawn.reward.shape  # noqa: N806
        classes = self._palette.classes(drawn.observation.reshape(B * T, *self.spec.shape))
        columns = (classes.reshape(B, T, *classes.shape[1:]), drawn.action, drawn.reward, drawn.terminal)
        device = self.config.device
        moved = [torch.from_numpy(column).to(device).transpose(0, 1).contiguous() for column in columns]
        action = functional.one_hot(moved[1], self.spec.actions).float()
        return Sequences(moved[0], action, moved[2].float(), moved[3].float()), drawn.observation

    def _open_loop(self, batch: Sequences, observation: Array) -> dict[str, float]:
        """How often the decoded cell of the agent is right, seen and a few steps after the last picture."""
        if self.spec.scene is None:
            return {}
        B, T = observation.shape[:2]  # noqa: N806
        cells = self.spec.scene.agent_cell(observation.reshape(B * T, *self.spec.shape)).reshape(B, T)
        uniform = self._act_noise.draw(T, B, self.network.random_numbers[2])
        found = self.network.world_model.open_loop(batch, min(OBSERVED, T - 1), uniform)
        right = (found.cpu().numpy() == cells.T).mean(1)  # (T,)
        return {"cell_seen": float(right[: min(OBSERVED, T - 1)][-1])} | {
            f"cell_imagined_{ahead}": float(right[OBSERVED + ahead - 1]) for ahead in (1, 4, 7) if OBSERVED + ahead <= T
        }

    # Saving

    def weights(self) -> dict[str, Array]:
        """All networks but the critics."""
        return module_state(self.network)

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the future."""
        return {
            "updater": self._updater.state_dict(),
            "policy": self._policy.state_dict(),
            "store": self.store.state_dict(),
            "building": self._building.state_dict(),
            "rngs": {"sample": self._sample_rng.bit_generator.state, "act": self._act_noise.rng.bit_generator.state},
            "counts": dict(self.counts),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self._updater.load_state_dict(state["updater"])
        self._policy.load_state_dict(state["policy"], self.config.device)
        self.store.load_state_dict(state["store"])
        self._building.load_state_dict(state["building"])
        self._sample_rng.bit_generator.state = state["rngs"]["sample"]
        self._act_noise.rng.bit_generator.state = state["rngs"]["act"]
        self.counts = dict(state["counts"])
