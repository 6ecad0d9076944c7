"""The words that every room shares: array shapes, one moment of a batch of environments, and protocols.

Shape glossary: B batch, N tasks or vertices, T time, W H grid, C channels, S = W * H cells, A actions.
A cell is one number, ``x * H + y``, so that ``observation.reshape(S, C)[cell]`` is that cell.
"""

from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

Array = NDArray[Any]


class TimeStep(NamedTuple):
    """What a batch of agents sees at one moment."""

    observation: Array  # (B, W, H, C)
    goal: Array  # (B, W, H, C) the observation that the agent would have at the task's goal
    first: Array  # (B,) bool, True where a new episode begins here


class Decision(NamedTuple):
    """What an agent decided for a batch of time steps; metrics, plots and the viewer read only this."""

    action: Array  # (B,) int64


class Agent(Protocol):
    """Anything that acts on batches of observations."""

    def act(self, timestep: TimeStep) -> Decision:
        """Choose one action per environment of the batch."""


class Oracle(Protocol):
    """Ground truth about observations, handed to the agents and metrics that ask for it."""

    def action_values(self, observations: Array, targets: Array | None = None) -> Array:
        """(B, A) optimal values of reaching ``targets`` (B, W, H, C), or the tasks' goals when None."""

    def distances(self, observations: Array, targets: Array) -> Array:
        """(B,) true numbers of steps from observations to targets, ``inf`` where there is no way."""
