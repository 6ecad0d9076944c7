"""How well a trained world model knows where the agent is and when episodes end, on tasks of any kind."""

import numpy as np

from skipper.agents.director.accuracy import OBSERVED, cell_accuracy, foreseen_endings
from skipper.agents.director.layers import UniformNoise
from skipper.agents.director.policy import DirectorActor
from skipper.envs.registry import Family, TaskSet
from skipper.replay.episodes import EpisodeBuilder
from skipper.replay.sequences import Sequences, SequenceSampler
from skipper.replay.store import EpisodeStore
from skipper.types import Agent, EnvironmentSpec, Transition

ENVIRONMENTS = 64
IMAGINED = 7  # states after those that are seen
STATES = 20_000  # of random walks
SEQUENCES = 512


def random_sequences(
    family: Family, tasks: TaskSet, spec: EnvironmentSpec, rng: np.random.Generator, across_episodes: bool = False
) -> Sequences:
    """Sequences of random walks in random ones of the tasks; walks that end too soon for a sequence are left out."""
    envs = family.vector_env(ENVIRONMENTS, tasks, tasks.world)
    building = EpisodeBuilder(ENVIRONMENTS, spec.longest, spec.shape)
    store, length = EpisodeStore(STATES, spec.shape, spec.state_key), OBSERVED + IMAGINED
    observation, _ = envs.reset(seed=int(rng.integers(2**32)))
    for _ in range(STATES // ENVIRONMENTS):
        action = rng.integers(spec.actions, size=ENVIRONMENTS)
        after, reward, terminated, truncated, info = envs.step(action)
        ended, following = terminated | truncated, after.copy()
        if ended.any():
            following[ended] = info["final_obs"][ended]
        for episode in building.append(Transition(observation, action, reward, following, terminated, truncated)):
            if across_episodes or len(episode.observation) >= length:
                store.add(episode)
        observation = after
    return SequenceSampler(store, length, across_episodes).sample(SEQUENCES, rng)


def world_model_accuracy(actor: Agent, family: Family, tasks: TaskSet, seed: int) -> dict[str, float]:
    """Shares of random walks in which the agent's cell is decoded right, and how likely episodes seem to go on."""
    assert isinstance(actor, DirectorActor), "only Director has a world model"
    rng, policy = np.random.default_rng(seed), actor.policy
    model, spec, noise = policy.network.world_model, policy.spec, UniformNoise(rng, policy.config.device)
    walks = random_sequences(family, tasks, spec, rng)
    cells = cell_accuracy(model, spec, walks, noise)
    return cells | foreseen_endings(model, spec, random_sequences(family, tasks, spec, rng, True), noise)
