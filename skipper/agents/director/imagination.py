"""Imagined rollouts of manager and worker, and what each of them learns from."""

from typing import NamedTuple

import torch
from torch import Tensor

from skipper.agents.director import trajectories
from skipper.agents.director.actor_critic import Trajectory
from skipper.agents.director.config import BehaviourConfig
from skipper.agents.director.network import DirectorNetwork
from skipper.agents.director.world_model import State


class Rollout(NamedTuple):
    """H imagined steps from B states."""

    features: Tensor  # (H + 1, B, F) of all states
    skill: Tensor  # (H + 1, B, S, C) one-hot
    goal: Tensor  # (H + 1, B, D)
    action: Tensor  # (H + 1, B, 1, A) one-hot
    continuation: Tensor  # (H + 1, B)


@torch.no_grad()
def imagine(
    network: DirectorNetwork, start: State, terminal: Tensor, config: BehaviourConfig, uniform: Tensor
) -> Rollout:
    """Follow both policies through the world model from states (B, ...), with random numbers (H + 1, B, n).

    ``terminal`` (B,) is 1 where an episode has ended with the start already.
    """
    model = network.world_model
    skill_uniform, action_uniform, state_uniform = uniform.split(network.random_numbers, -1)
    state, steps = start, []
    for t in range(config.horizon + 1):
        features = state.features
        # The manager chooses every few steps, the worker always.
        if t % config.skill_duration == 0:
            skill = network.manager.sample(features, skill_uniform[t])
            goal = network.goals.goal(skill)
        action = network.worker.sample(torch.cat([features, goal], -1), action_uniform[t])
        steps.append((features, skill, goal, action))
        # The world model predicts what follows.
        if t < config.horizon:
            state = model.dynamics.imagine(state, action.flatten(-2), state_uniform[t])
    features, skill, goal, action = (torch.stack(column) for column in zip(*steps, strict=True))
    continuation = model.predict_continuation(features)
    continuation[0] = 1 - terminal
    return Rollout(features, skill, goal, action, continuation)


@torch.no_grad()
def rewards(network: DirectorNetwork, rollout: Rollout, config: BehaviourConfig, uniform: Tensor) -> dict[str, Tensor]:
    """All rewards (H, B) by name, with random numbers (H, B, S) for the codes of states."""
    arrived = rollout.features[1:, :, : rollout.goal.shape[-1]]  # deterministic states, which features begin with
    goal = rollout.goal[1:] if config.goal_reward == "arrival" else rollout.goal[:-1]
    return {
        "extrinsic": network.world_model.predict_reward(rollout.features[1:]),
        "exploration": network.goals.novelty(arrived, uniform),
        "goal": trajectories.max_cosine(goal, arrived),
    }


def worker_trajectory(rollout: Rollout, found: dict[str, Tensor], config: BehaviourConfig) -> Trajectory:
    """The rollout in pieces with one goal each."""

    def pieces(states: Tensor) -> Tensor:
        return trajectories.split(states, config.skill_duration)

    goal, continuation = trajectories.hold_first(pieces(rollout.goal)), pieces(rollout.continuation)
    if config.worker_weight == "piece":
        weight = trajectories.weights(continuation, config.behaviour_discount)
    else:
        weight = pieces(trajectories.weights(rollout.continuation, config.behaviour_discount))
    return Trajectory(
        inputs=torch.cat([pieces(rollout.features), goal], -1),
        action=pieces(rollout.action),
        rewards={name: trajectories.split_rewards(each, config.skill_duration) for name, each in found.items()},
        continuation=continuation,
        weight=weight,
    )


def manager_trajectory(rollout: Rollout, found: dict[str, Tensor], config: BehaviourConfig) -> Trajectory:
    """The rollout at the choices of the manager only."""
    duration = config.skill_duration
    continuation = trajectories.abstract_continuation(rollout.continuation, duration)
    return Trajectory(
        inputs=rollout.features[::duration],
        action=rollout.skill[::duration],
        rewards={
            name: trajectories.abstract_rewards(each, rollout.continuation, duration, config.manager_reward)
            for name, each in found.items()
        },
        continuation=continuation,
        weight=trajectories.weights(continuation, config.behaviour_discount),
    )
