"""What agents are told of the lava world before they act."""

import numpy as np

from skipper.config import WorldConfig
from skipper.envs.lava.layout import ACTIONS, AGENT, GREY
from skipper.envs.lava.oracle import LavaOracle
from skipper.envs.lava.scene import LavaScene
from skipper.envs.lava.tasks import evaluation_tasks
from skipper.envs.symmetry import grid_symmetries
from skipper.types import EnvironmentSpec

EXAMPLES = 64


def environment_spec(world: WorldConfig) -> EnvironmentSpec:
    """Shapes, words, actions, the drawing of the agent, and ground truth for those who ask."""
    examples = evaluation_tasks(world, world.difficulty, EXAMPLES, seed=0, spread=world.spread, split="stream")
    return EnvironmentSpec(
        shape=(world.width, world.height, 2),
        vocabulary=(AGENT + 1, GREY + 1),
        actions=len(ACTIONS),
        longest=world.max_steps,
        scene=LavaScene(),
        examples=examples.observe(np.arange(EXAMPLES), examples.table.start),
        oracle=LavaOracle(world),
        symmetries=grid_symmetries(world.width, world.height),
    )
