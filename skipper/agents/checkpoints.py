"""Checkpoints: imagining them, estimating the ways between them, and remembering which one is being walked to."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from skipper.agents.base import observations_tensor
from skipper.agents.estimators import EstimatorNetwork
from skipper.config import RunConfig
from skipper.nets.generator import CheckpointGenerator, GoalGenerator
from skipper.nets.heads import PairwiseHead, discount_support
from skipper.planning.proxy import Edges, Vertices, merge_equal
from skipper.types import Array, EnvironmentSpec, Scene

LONG_AGO = 1_000_000
CHUNK = 4096  # pairs of vertices that are estimated together: more would not stay in the processor's cache


class SkipperNetwork(nn.Module):
    """Everything that Skipper learns."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.estimators = EstimatorNetwork(config.network, spec)
        self.generator = CheckpointGenerator(config.generator, spec)
        self.goal = GoalGenerator(config.generator, spec) if config.generator.learned_goal else None


@torch.no_grad()
def imagine_vertices(
    generator: CheckpointGenerator,
    scene: Scene,
    ends: tuple[Array, Array],
    codes: Array,
    *,
    describe: bool = True,
) -> Vertices:
    """The current states and goals ``ends`` (B, ...), and between them the states that ``codes`` (B, N) describe.

    An imagined state keeps the code that it was imagined from; only the ends are described anew, and where states are
    compared whole not even they.
    """
    observation, goal = ends
    logits = generator.imagine(observations_tensor(observation), torch.from_numpy(codes))  # (B, N, S)
    imagined = scene.place_agent(observation, logits.argmax(-1).numpy())
    states = np.concatenate([observation[:, None], imagined, goal[:, None]], axis=1)
    end_codes = np.full((2, len(observation)), -1)
    if describe:
        end_codes = generator.codes(observations_tensor(np.concatenate(ends))).numpy().reshape(2, -1)
    all_codes = np.concatenate([end_codes[0, :, None], codes, end_codes[1, :, None]], axis=1)
    return Vertices(states, all_codes, merge_equal(states))


def true_vertices(
    generator: CheckpointGenerator,
    scene: Scene,
    ends: tuple[Array, Array],
    reachable: Array,
    rng: np.random.Generator,
    count: int,
) -> Vertices:
    """As ``imagine_vertices``, with ``count`` random ones of the reachable cells (B, S), different if possible."""
    observation, goal = ends
    order = np.where(reachable, rng.random(reachable.shape), 2.0).argsort(-1)  # reachable cells first
    number = np.maximum(reachable.sum(-1, keepdims=True), 1)
    cells = np.take_along_axis(order, np.arange(count)[None] % number, axis=1)  # (B, count)
    states = np.concatenate([observation[:, None], scene.place_agent(observation, cells), goal[:, None]], axis=1)
    flat = observations_tensor(states.reshape(-1, *observation.shape[1:]))
    return Vertices(states, generator.codes(flat).numpy().reshape(states.shape[:2]), merge_equal(states))


@torch.no_grad()
def learned_edges(
    network: EstimatorNetwork, vertices: Vertices, discount: float, partial: Callable[[Tensor], Tensor] | None = None
) -> Edges:
    """What the estimators say of all pairs of vertices, under the checkpoint policy's greedy actions.

    ``partial`` may be a table of the network's partial states.
    """
    B, N = vertices.present.shape  # noqa: N806
    states = observations_tensor(vertices.observation.reshape(B * N, *vertices.observation.shape[2:]))
    sigma = (partial or network.partial)(states)
    terminal = network.terminal(sigma).argmax(-1) == 1
    sigma = sigma.unflatten(0, (B, N))
    parts = [
        _pairs(network, sigma[row : row + step], discount)
        for step in [max(CHUNK // (N * N), 1)]
        for row in range(0, B, step)
    ]
    distance, gamma, reward = (torch.cat(column).numpy().astype(np.float64) for column in zip(*parts, strict=True))
    return Edges(distance, gamma, reward, terminal.numpy().reshape(B, N))


def _pairs(network: EstimatorNetwork, sigma: Tensor, discount: float) -> tuple[Tensor, Tensor, Tensor]:
    """Distance, discount and reward (b, N, N) of partial states (b, N, D)."""

    def estimate(head: PairwiseHead) -> Tensor:
        return head.join(head.source(sigma)[:, :, None], head.target(sigma)[:, None])  # (b, N, N, A, K)

    action = network.value.expectation(estimate(network.value)).argmax(-1)[..., None, None]  # (b, N, N, 1, 1)
    chosen = {
        name: torch.take_along_dim(estimate(head), action, dim=-2)[..., 0, :]
        for name, head in (("distance", network.distance), ("reward", network.reward))
    }
    gamma = discount_support(len(network.distance.support), discount)
    return (
        network.distance.expectation(chosen["distance"]),
        network.distance.expectation(chosen["distance"], gamma),
        network.reward.expectation(chosen["reward"]),
    )


class Walk(NamedTuple):
    """What B environments remember between decisions; N vertices each."""

    vertices: Array  # (B, N, W, H, C) of the last plan
    codes: Array  # (B, N)
    kept: Array  # (B, N) bool
    target: Array  # (B, W, H, C)
    target_code: Array  # (B,)
    planned_code: Array  # (B,) the code of the state in which the plan was made
    steps: Array  # (B,) since then
    aiming: Array  # (B,) bool, whether there is a target at all


def new_walk(environments: int, vertices: int, shape: tuple[int, int, int]) -> Walk:
    """Nothing remembered yet."""
    return Walk(
        vertices=np.zeros((environments, vertices, *shape), np.uint8),
        codes=np.full((environments, vertices), -1),
        kept=np.zeros((environments, vertices), bool),
        target=np.zeros((environments, *shape), np.uint8),
        target_code=np.full(environments, -1),
        planned_code=np.full(environments, -1),
        steps=np.full(environments, LONG_AGO),
        aiming=np.zeros(environments, bool),
    )


def walk_state(walk: Walk) -> dict[str, Any]:
    """A copy to be saved."""
    return {name: column.copy() for name, column in walk._asdict().items()}
