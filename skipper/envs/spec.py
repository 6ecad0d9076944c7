"""What agents are told of the lava world before they act."""

from skipper.config import WorldConfig
from skipper.envs.lava import ACTIONS, AGENT, GREY
from skipper.envs.oracle import LavaOracle
from skipper.envs.scene import LavaScene
from skipper.types import EnvironmentSpec


def environment_spec(world: WorldConfig) -> EnvironmentSpec:
    """Shapes, words, actions, the drawing of the agent, and ground truth for those who ask."""
    return EnvironmentSpec(
        shape=(world.width, world.height, 2),
        vocabulary=(AGENT + 1, GREY + 1),
        actions=len(ACTIONS),
        longest=world.max_steps,
        scene=LavaScene(),
        oracle=LavaOracle(world),
    )
