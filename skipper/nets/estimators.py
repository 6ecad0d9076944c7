"""Edge estimation and the checkpoint policy: four heads on partial states (Sec. 3.3); and all that Skipper learns."""

from typing import Protocol

from torch import Tensor, nn

from skipper.config import GeneratorConfig, LearningConfig, NetworkConfig, PlanningConfig
from skipper.nets.generator import CheckpointGenerator, GoalGenerator
from skipper.nets.heads import PairwiseHead, distance_support, unit_support
from skipper.nets.layers import mlp
from skipper.nets.selector import PartialStates
from skipper.types import EnvironmentSpec


class PlannerConfig(Protocol):
    """The blocks that networks with a checkpoint generator and plans over checkpoints need of a run."""

    @property
    def network(self) -> NetworkConfig:
        """Encoder, selector and heads."""

    @property
    def generator(self) -> GeneratorConfig:
        """The checkpoint generator."""

    @property
    def planning(self) -> PlanningConfig:
        """Proxy problems."""

    @property
    def learning(self) -> LearningConfig:
        """Optimisation, of which plans need the discount."""


class EstimatorNetwork(nn.Module):
    """Partial states, and four heads on them: value, reward and distance of pairs, and whether a state is terminal."""

    def __init__(self, config: NetworkConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.partial = PartialStates(config, spec)

        def head(support: Tensor, worst: int) -> PairwiseHead:
            return PairwiseHead(
                config.partial_width,
                hidden=config.hidden,
                actions=spec.actions,
                support=support,
                favoured=worst if config.pessimistic_heads else None,
                scaled=config.scaled_start,
            )

        self.value = head(unit_support(config.bins), 0)
        self.reward = head(unit_support(config.bins), 0)
        self.distance = head(distance_support(config.bins), -1)
        self.terminal = mlp(config.partial_width, config.hidden, 2, scaled=config.scaled_start)


class SkipperNetwork(nn.Module):
    """Everything that Skipper learns: estimators, checkpoint generator and, optionally, a generator of goals."""

    def __init__(self, config: PlannerConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.estimators = EstimatorNetwork(config.network, spec)
        self.generator = CheckpointGenerator(config.generator, spec)
        self.goal = GoalGenerator(config.generator, spec) if config.generator.learned_goal else None
