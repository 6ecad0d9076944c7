"""The Director agent: a world model learned from sequences, and two policies learned in its imagination."""

from typing import Any

import numpy as np

from skipper.agents.director.accuracy import cell_accuracy
from skipper.agents.director.config import DirectorConfig
from skipper.agents.director.layers import UniformNoise
from skipper.agents.director.network import DirectorNetwork
from skipper.agents.director.policy import DirectorActor, DirectorPolicy
from skipper.agents.director.update import DirectorUpdater
from skipper.agents.director.world_model import to_tensors
from skipper.agents.learning_core import SymmetricImages, module_state, named_rng
from skipper.nets.layers import seeded_initialisation
from skipper.replay.episodes import EpisodeBuilder
from skipper.replay.sequences import SequenceSampler
from skipper.replay.store import EpisodeStore
from skipper.types import Agent, Array, Decision, EnvironmentSpec, TimeStep, Transition

OPEN_LOOP_EVERY = 50  # updates between measurements of the open-loop accuracy


class DirectorAgent:
    """Learns from sequences of its own episodes; those that are too short for them are dropped."""

    def __init__(self, config: DirectorConfig, spec: EnvironmentSpec) -> None:
        self.config, self.spec = config, spec
        with seeded_initialisation(config.seed):
            self.network = DirectorNetwork(config, spec).to(config.device)
            self._updater = DirectorUpdater(self.network, config, spec)
        self._policy = DirectorPolicy(self.network, config, spec)
        self.store = EpisodeStore(config.replay.capacity, spec.shape, spec.state_key)
        self._building = EpisodeBuilder(config.environments, spec.longest, spec.shape)
        self._shortest = 2 if config.replay.across_episodes else config.replay.sequence_length  # states of an episode
        self._sampler = SequenceSampler(self.store, config.replay.sequence_length, config.replay.across_episodes)
        self._images = SymmetricImages(config, spec) if config.learning.symmetries else None
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
            if states < self._shortest:
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
        drawn = self._sampler.sample(self.config.learning.batch_size, self._sample_rng)
        drawn = self._images.of_sequences(drawn, self._sample_rng) if self._images else drawn
        batch = to_tensors(drawn, self.spec, self.config.device)
        metrics = {name: float(value) for name, value in self._updater.update(batch).items()}
        # Where the world model takes the agent to be, as long as the environment can say where it is.
        if self._updater.updates % OPEN_LOOP_EVERY == 1 and self.spec.scene is not None:
            noise = UniformNoise(named_rng(self.config.seed, f"accuracy {self._updater.updates}"), self.config.device)
            metrics |= cell_accuracy(self.network.world_model, self.spec, drawn, noise)
        dropped = self.counts["dropped_states"]
        return metrics | {
            "stored_states": float(self.counts["stored_states"]),
            "dropped_episodes": float(self.counts["dropped_episodes"]),
            "dropped_share": dropped / max(dropped + self.counts["stored_states"], 1),
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
