"""One update of Director: world model, goal autoencoder, then worker and manager in imagination."""

from typing import Any

from torch import Tensor, nn

from skipper.agents.director.actor_critic import Actor, ActorCritic, Trajectory
from skipper.agents.director.config import DirectorConfig
from skipper.agents.director.imagination import imagine, manager_trajectory, rewards, worker_trajectory
from skipper.agents.director.layers import UniformNoise
from skipper.agents.director.network import DirectorNetwork
from skipper.agents.director.optimizer import NetworkOptimizer
from skipper.agents.director.world_model import Sequences, State
from skipper.agents.learning_core import load_module_state, module_state, named_rng
from skipper.types import EnvironmentSpec


class DirectorUpdater:
    """Everything that an update changes."""

    def __init__(self, network: DirectorNetwork, config: DirectorConfig, spec: EnvironmentSpec) -> None:
        self.network, self._config, self.updates = network, config, 0
        behaviour, features = config.behaviour, network.features
        manager = {"extrinsic": behaviour.manager_extrinsic, "exploration": behaviour.manager_exploration}
        worker = {"extrinsic": behaviour.worker_extrinsic, "goal": behaviour.worker_goal}
        device = config.device
        self.manager = ActorCritic(features, network.goals.shape, manager, behaviour).to(device)
        self.worker = ActorCritic(features + config.model.deterministic, (1, spec.actions), worker, behaviour).to(
            device
        )
        self.noise = UniformNoise(named_rng(config.seed, "noise"), device)
        networks: dict[str, nn.Module] = {
            "world_model": network.world_model,
            "goals": network.goals,
            "worker": network.worker,
            "manager": network.manager,
            **{f"worker_{name}": each.network for name, each in self.worker.named_critics()},
            **{f"manager_{name}": each.network for name, each in self.manager.named_critics()},
        }
        self._names = {id(each): name for name, each in networks.items()}
        self._optimizers = {name: NetworkOptimizer(each, config.learning) for name, each in networks.items()}

    def update(self, batch: Sequences) -> dict[str, Tensor]:
        """One update of everything on a batch of sequences."""
        network, settings = self.network, self._config.behaviour
        T, B = batch.reward.shape  # noqa: N806
        skills, _, latents = network.random_numbers
        # World model: predict pictures, rewards and continuation.
        result = network.world_model(batch, self.noise.draw(T, B, latents))
        self._step(network.world_model, result.loss)
        # Goal autoencoder: compress the states that were inferred.
        start = State(*(each.flatten(0, 1) for each in result.state))  # (T * B, ...)
        loss, goal_metrics = network.goals(start.deter, self.noise.draw(T * B, skills))
        self._step(network.goals, loss)
        # Imagine from these states, or from some of them.
        chosen = self.noise.draw(T * B).argsort()[: settings.starts or None]
        start, terminal = State(*(each[chosen] for each in start)), batch.terminal.flatten()[chosen]
        count = len(chosen)
        uniform = self.noise.draw(settings.horizon + 1, count, sum(network.random_numbers))
        rollout = imagine(network, start, terminal, settings, uniform)
        found = rewards(network, rollout, settings, self.noise.draw(settings.horizon, count, skills))
        # Worker, then manager: critics and actor.
        worker = self._learn_behaviour(self.worker, network.worker, worker_trajectory(rollout, found, settings))
        manager = self._learn_behaviour(self.manager, network.manager, manager_trajectory(rollout, found, settings))
        self.updates += 1
        return (
            result.metrics
            | goal_metrics
            | {f"worker_{name}": value for name, value in worker.items()}
            | {f"manager_{name}": value for name, value in manager.items()}
            | {f"imagined_{name}": value.mean() for name, value in found.items()}
        )

    def _learn_behaviour(self, learner: ActorCritic, actor: Actor, trajectory: Trajectory) -> dict[str, Tensor]:
        return learner.update(actor, trajectory, self.updates, self._step)

    def _step(self, network: nn.Module, loss: Tensor) -> None:
        self._optimizers[self._names[id(network)]].step(loss)

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimizers, random stream and count."""
        return {
            "network": module_state(self.network),
            "manager": module_state(self.manager),
            "worker": module_state(self.worker),
            "optimizers": {name: each.state_dict() for name, each in self._optimizers.items()},
            "noise": self.noise.rng.bit_generator.state,
            "updates": self.updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        for name in ("network", "manager", "worker"):
            load_module_state(getattr(self, name), state[name])
        for name, each in self._optimizers.items():
            each.load_state_dict(state["optimizers"][name])
        self.noise.rng.bit_generator.state = state["noise"]
        self.updates = state["updates"]
