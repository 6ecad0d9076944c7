"""Incremental imagination against that of the whole scene."""

import numpy as np
import pytest
import torch

from skipper.agents.skipper.vertices import distinct_codes
from skipper.config import GeneratorConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.compiled import incremental_fuser
from skipper.nets.compiled.fuser import CompiledFuser
from skipper.nets.compiled.incremental_fuser import IncrementalFuser
from skipper.nets.generator import CheckpointGenerator
from skipper.nets.layers import seeded_initialisation

TASKS = 5


def scaled(world: LavaConfig) -> CheckpointGenerator:
    """A generator whose codes give many different cells, and whose contexts matter."""
    with seeded_initialisation(0):
        generator = CheckpointGenerator(GeneratorConfig(generator_width=8), environment_spec(world))
    with torch.no_grad():
        for parameter in generator.fuse.parameters():
            parameter *= 3.0
    return generator


@pytest.mark.parametrize("size", [(12, 12), (7, 5), (3, 3)])
@torch.no_grad()
def test_cells_are_those_of_the_generator_wherever_the_agent_goes(size, monkeypatch):
    world = LavaConfig(*size)
    tasks, generator, rng = training_tasks(world, TASKS, seed=0), scaled(world), np.random.default_rng(0)
    incremental = IncrementalFuser(CompiledFuser(generator))
    computed = []
    fuse = incremental_fuser.fuse
    monkeypatch.setattr(
        incremental_fuser, "fuse", lambda words, *rest: computed.append(len(words)) or fuse(words, *rest)
    )
    seen = set()
    for _ in range(12):
        rows = np.flatnonzero(rng.random(TASKS) < 0.8)
        if not len(rows):
            continue
        states = torch.from_numpy(tasks.observe(rows, rng.integers(world.cells, size=len(rows))))
        codes = distinct_codes(len(rows), 20, 6, rng)
        logits = generator(states, torch.from_numpy(codes))
        cells = incremental.cells(rows, states, codes)
        # Sums in another order: of two cells that are equally likely, either may be given.
        chosen = np.take_along_axis(logits.numpy(), cells[..., None], -1)[..., 0]
        np.testing.assert_allclose(chosen, logits.amax(-1).numpy(), atol=1e-4)
        seen |= set(cells.ravel().tolist())
    assert len(seen) > 4
    assert sum(computed) <= 2 * TASKS  # once for each scene; the first call may not have shown them all


@torch.no_grad()
def test_other_scenes_are_computed_anew():
    world = LavaConfig(9, 9)
    tasks, generator = training_tasks(world, 2, seed=0), scaled(world)
    incremental, codes, row = IncrementalFuser(CompiledFuser(generator)), np.arange(64)[None], np.zeros(1, np.int64)
    for task in (0, 1, 0):
        state = torch.from_numpy(tasks.observe(np.array([task]), np.array([40])))
        expected = generator(state, torch.from_numpy(codes)).argmax(-1).numpy()
        assert (incremental.cells(row, state, codes) == expected).mean() > 0.95
