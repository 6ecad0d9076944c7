"""How Director acts: it infers the state, sets a goal every few steps, and takes the worker's action."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from skipper.agents.director.config import DirectorConfig
from skipper.agents.director.layers import UniformNoise, mode_one_hot, sample_one_hot
from skipper.agents.director.network import DirectorNetwork
from skipper.agents.director.pictures import palette_of
from skipper.agents.director.world_model import State
from skipper.agents.exploration import RevisitPenalty
from skipper.agents.learning_core import load_module_state
from skipper.nets.layers import seeded_initialisation
from skipper.types import Agent, Array, Decision, EnvironmentSpec, Palette, PlanView, TimeStep


class Memory(NamedTuple):
    """What the policy keeps of B environments between decisions."""

    deter: Tensor  # (B, D)
    stoch: Tensor  # (B, S * C)
    action: Tensor  # (B, A) one-hot, the last one
    goal: Tensor  # (B, D)
    age: Tensor  # (B,) int64, decisions so far; a new goal is set every skill_duration of them


class Goals(NamedTuple):
    """The goals that were set for one decision, as pictures on demand."""

    network: DirectorNetwork
    palette: Palette
    observation: Array  # (B, W, H, C)
    state: State  # (B, ...)
    goal: Tensor  # (B, D)
    steps: int  # until the next goal

    @torch.no_grad()
    def view(self, row: int) -> PlanView:
        """The current state, the goal decoded to a picture, and what is expected on the way there."""
        model, goal = self.network.world_model, self.goal[row : row + 1]
        wanted = State(goal, mode_one_hot(model.dynamics.prior(goal)).flatten(-2))
        # The most likely actions and states until the next goal.
        state, expected = State(*(each[row : row + 1] for each in self.state)), []
        for _ in range(self.steps):
            action = self.network.worker.mode(torch.cat([state.features, goal], -1)).flatten(-2)
            state = model.dynamics.imagine(state, action)
            expected.append(state.features)
        classes = model.decoder.classes(torch.cat([wanted.features, *expected])).cpu().numpy()  # (1 + T, W, H)
        picture, *forecast = self.palette.colours[classes.swapaxes(1, 2)]  # rows are y
        return PlanView(self.observation[row : row + 1], [0], target=-1, picture=picture, forecast=np.array(forecast))


class DirectorPolicy:
    """Acts on batches, with sampled actions in training and the most likely ones in evaluation."""

    def __init__(self, network: DirectorNetwork, config: DirectorConfig, spec: EnvironmentSpec) -> None:
        self.network, self.config, self.spec = network, config, spec
        self._palette = palette_of(spec)
        self.memory: Memory | None = None

    @torch.no_grad()
    def act(self, timestep: TimeStep, uniform: Tensor, aid: RevisitPenalty | None = None, *, greedy: bool) -> Decision:
        """Decide with random numbers (B, n); the manager and the state are sampled in any case."""
        network, settings = self.network, self.config.behaviour
        skill_uniform, action_uniform, state_uniform = uniform.split(network.random_numbers, -1)
        memory = self._begin(torch.from_numpy(timestep.first).to(uniform.device))
        # Infer the current state from the last one, the last action, and the picture.
        model = network.world_model
        classes = torch.from_numpy(self._palette.classes(timestep.observation)).to(uniform.device)
        before = State(memory.deter, memory.stoch)
        state = model.dynamics.observe_one(before, model.embed(classes), memory.action, state_uniform)
        # Manager: a new goal where the last one is old.
        due = memory.age % settings.skill_duration == 0
        chosen = network.goals.goal(network.manager.sample(state.features, skill_uniform))
        goal = torch.where(due[:, None], chosen, memory.goal)
        # Worker: an action towards it.
        probabilities = network.worker(torch.cat([state.features, goal], -1))[:, 0]  # (B, A)
        action = self._choose(probabilities, timestep, action_uniform, aid, greedy=greedy)
        taken = functional.one_hot(torch.from_numpy(action), self.spec.actions).float().to(uniform.device)
        self.memory = Memory(state.deter, state.stoch, taken, goal, memory.age + 1)
        planned = due.cpu().numpy()
        goals = Goals(
            network,
            self._palette,
            timestep.observation[planned],
            State(*(each[due] for each in state)),
            goal[due],
            settings.skill_duration,
        )
        return Decision(action, planned=planned, plan=goals, values=probabilities.cpu().numpy())

    def _begin(self, first: Tensor) -> Memory:
        """The memory of the environments, initial where episodes begin."""
        B, network, memory = len(first), self.network, self.memory  # noqa: N806
        initial = network.world_model.dynamics.initial(B)
        action = torch.zeros(B, self.spec.actions, device=first.device)
        if memory is None or len(memory.age) != B:
            age = torch.zeros(B, dtype=torch.int64, device=first.device)
            return Memory(*initial, action, torch.zeros_like(initial.deter), age)
        # In the public code neither the goal nor its age begins anew with an episode.
        age = memory.age.masked_fill(first, 0) if self.config.behaviour.new_goal_at_start else memory.age
        fresh = first[:, None]
        return Memory(
            torch.where(fresh, initial.deter, memory.deter),
            torch.where(fresh, initial.stoch, memory.stoch),
            torch.where(fresh, action, memory.action),
            memory.goal,
            age,
        )

    def _choose(
        self,
        probabilities: Tensor,
        timestep: TimeStep,
        uniform: Tensor,
        aid: RevisitPenalty | None,
        *,
        greedy: bool,
    ) -> Array:
        """(B,) the most likely actions, with what was done here before made less likely; or samples."""
        if not greedy:
            return sample_one_hot(probabilities, uniform[:, 0]).argmax(-1).cpu().numpy()
        likely = probabilities.cpu().numpy()
        if aid is None:
            return likely.argmax(-1)
        action: Array = aid.penalised(likely, timestep).argmax(-1)
        aid.record(action)
        return action

    def state_dict(self) -> dict[str, Array]:
        """The memory; empty before the first decision."""
        if self.memory is None:
            return {}
        return {name: value.cpu().numpy().copy() for name, value in self.memory._asdict().items()}

    def load_state_dict(self, state: dict[str, Array], device: str) -> None:
        """Continue with a saved memory."""
        loaded = {name: torch.from_numpy(value.copy()).to(device) for name, value in state.items()}
        self.memory = Memory(**loaded) if loaded else None


class DirectorActor:
    """Director as it is evaluated: the worker's most likely actions, with a random stream of its own."""

    def __init__(
        self, network: DirectorNetwork, config: DirectorConfig, spec: EnvironmentSpec, rng: np.random.Generator
    ) -> None:
        self.policy, self._noise = DirectorPolicy(network, config, spec), UniformNoise(rng, config.device)
        penalty = config.decision.revisit_penalty
        self._aid = RevisitPenalty(penalty, spec) if penalty else None

    def act(self, timestep: TimeStep) -> Decision:
        """The action, with the goal that it leads to."""
        if timestep.first.all():  # other episodes than before: no goal is left over from them
            self.policy.memory = None
        count = sum(self.policy.network.random_numbers)
        uniform = self._noise.draw(len(timestep.first), count)
        return self.policy.act(timestep, uniform, self._aid, greedy=True)


def play_director(
    config: DirectorConfig,
    spec: EnvironmentSpec,
    weights: dict[str, Array],
    rng: np.random.Generator,
    *,
    explain: bool = False,
) -> Agent:
    """An agent that acts with saved weights; ``explain`` changes nothing, since nothing is attended to."""
    with seeded_initialisation(0):  # overwritten below
        network = DirectorNetwork(config, spec)
    load_module_state(network, weights)
    return DirectorActor(network.to(config.device), config, spec, rng)
