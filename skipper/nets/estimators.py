"""Edge estimation and the checkpoint policy: four heads on partial states (Sec. 3.3); and all that agents learn."""

from typing import Protocol

from torch import Tensor, nn

from skipper.config import GeneratorConfig, LearningConfig, NetworkConfig, PlanningConfig, SkipperGeneratorConfig
from skipper.nets.heads import Heads, PairwiseHead, discount_support, distance_support, unit_support
from skipper.nets.layers import mlp
from skipper.nets.selector import PartialStates
from skipper.nets.state_generator import checkpoint_generator, goal_generator
from skipper.types import EnvironmentSpec


class GeneratingConfig(Protocol):
    """The blocks that networks with a checkpoint generator need of a run."""

    @property
    def network(self) -> NetworkConfig:
        """Encoder, selector and heads."""

    @property
    def generator(self) -> GeneratorConfig:
        """The checkpoint generator."""

    @property
    def learning(self) -> LearningConfig:
        """Optimisation, of which plans need the discount."""


class PlannerConfig(GeneratingConfig, Protocol):
    """The blocks that networks for proxy problems need of a run."""

    @property
    def generator(self) -> SkipperGeneratorConfig:
        """The checkpoint generator, and perhaps one of goals."""

    @property
    def planning(self) -> PlanningConfig:
        """Proxy problems."""


def pairwise_head(config: NetworkConfig, actions: int, support: Tensor, worst: int) -> PairwiseHead:
    """A head on pairs of partial states; ``worst`` is the bin that pessimistic heads start with."""
    return PairwiseHead(
        config.partial_width,
        hidden=config.hidden,
        actions=actions,
        support=support,
        favoured=worst if config.pessimistic_heads else None,
        scaled=config.scaled_start,
        contrast=config.contrast_start,
    )


class EstimatorNetwork(nn.Module):
    """Partial states, and four heads on them: value, reward and distance of pairs, and whether a state is terminal."""

    def __init__(self, config: NetworkConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.partial = PartialStates(config, spec)
        self.value = pairwise_head(config, spec.actions, unit_support(config.bins), 0)
        self.reward = pairwise_head(config, spec.actions, unit_support(config.bins), 0)
        self.distance = pairwise_head(config, spec.actions, distance_support(config.bins), -1)
        self.terminal = mlp(config.partial_width, config.hidden, 2, scaled=config.scaled_start)


class SkipperNetwork(nn.Module):
    """Everything that Skipper learns: estimators, checkpoint generator and, optionally, a generator of goals."""

    def __init__(self, config: PlannerConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.estimators = EstimatorNetwork(config.network, spec)
        self.generator = checkpoint_generator(config.generator, spec)
        self.goal = goal_generator(config.generator, spec) if config.generator.learned_goal else None
        never = config.planning.distance_distributions
        self._discounts = discount_support(config.network.bins, config.learning.task_discount, never=never)

    def heads(self) -> Heads:
        """What annotates edges."""
        estimators = self.estimators
        return Heads(estimators.value, estimators.distance, estimators.reward, estimators.terminal, self._discounts)


class DistanceNetwork(nn.Module):
    """Partial states, and two heads on them: distances of pairs, and whether a state is terminal (LEAP)."""

    def __init__(self, config: NetworkConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.partial = PartialStates(config, spec)
        self.distance = pairwise_head(config, spec.actions, distance_support(config.bins), -1)
        self.terminal = mlp(config.partial_width, config.hidden, 2, scaled=config.scaled_start)


class LeapNetwork(nn.Module):
    """Everything that LEAP learns: distances and the generator of subgoals."""

    def __init__(self, config: GeneratingConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.estimators = DistanceNetwork(config.network, spec)
        self.generator = checkpoint_generator(config.generator, spec)
        self._discounts = discount_support(config.network.bins, config.learning.task_discount)

    def heads(self) -> Heads:
        """What annotates segments; the policy takes the action of least distance."""
        return Heads(None, self.estimators.distance, None, self.estimators.terminal, self._discounts)
