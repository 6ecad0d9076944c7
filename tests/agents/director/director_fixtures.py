"""A small Director for tests."""

from dataclasses import replace

import numpy as np
import torch

from skipper.agents.director.config import DirectorConfig
from skipper.agents.director.network import DirectorNetwork
from skipper.agents.director.world_model import Sequences
from skipper.envs.registry import find_family
from skipper.nets.layers import seeded_initialisation
from skipper.training.settings import configure
from skipper.types import EnvironmentSpec


def small(preset: str = "debug", **blocks) -> tuple[DirectorConfig, EnvironmentSpec]:
    """The configuration of a preset with changed settings, by block, and its environment."""
    config = configure(preset, "director")
    assert isinstance(config, DirectorConfig)
    config = replace(config, **{name: replace(getattr(config, name), **new) for name, new in blocks.items()})
    return config, find_family("lava").spec(config.world)


def network(config: DirectorConfig, spec: EnvironmentSpec, seed: int = 0) -> DirectorNetwork:
    with seeded_initialisation(seed):
        return DirectorNetwork(config, spec)


def sequences(spec: EnvironmentSpec, time: int = 6, batch: int = 3, seed: int = 0) -> Sequences:
    """Random sequences."""
    generator = torch.Generator().manual_seed(seed)
    W, H, _ = spec.shape  # noqa: N806
    classes = torch.randint(5, (time, batch, W, H), generator=generator)
    action = torch.eye(spec.actions)[torch.randint(spec.actions, (time, batch), generator=generator)]
    return Sequences(classes, action, torch.zeros(time, batch), torch.zeros(time, batch))


def uniform(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random(shape, dtype=np.float32))
