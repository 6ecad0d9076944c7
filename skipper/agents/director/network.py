"""All networks that Director acts with."""

from torch import nn

from skipper.agents.director.actor_critic import Actor
from skipper.agents.director.config import DirectorConfig
from skipper.agents.director.goal_autoencoder import GoalAutoencoder
from skipper.agents.director.world_model import WorldModel
from skipper.types import EnvironmentSpec


class DirectorNetwork(nn.Module):
    """World model, goal autoencoder, and the policies of manager and worker."""

    def __init__(self, config: DirectorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        model, goals = config.model, config.goals
        self.features = model.deterministic + model.latents * model.latent_classes
        self.world_model = WorldModel(model, spec)
        self.goals = GoalAutoencoder(goals, model.deterministic)
        self.manager = Actor(self.features, self.goals.shape, config.behaviour)
        self.worker = Actor(self.features + model.deterministic, (1, spec.actions), config.behaviour)

    @property
    def random_numbers(self) -> tuple[int, int, int]:
        """Random numbers of one step: for a skill, for an action, and for a stochastic state."""
        return self.goals.shape[0], 1, self.world_model.dynamics.shape[0]
