"""Settings of a fully observed grid."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from skipper.config import PAPER_CELLS, WorldConfig
from skipper.runtime.checks import check_choice, check_positive

Reward = Literal["one", "own"]


@dataclass(frozen=True)
class GridConfig(WorldConfig):
    """One environment; its tasks are the layouts that it draws from seeds."""

    reward: Reward = "one"
    """"one" pays 1 wherever the environment pays anything above 0, and otherwise nothing; "own" is the environment's
    reward, which may shrink with time. Success is an end with a reward, either way."""
    stochastic: bool = False
    """Whether actions have random effects. Presets choose other settings then. By default what the environment showed
    when it was tried out."""
    states: int = PAPER_CELLS
    """States of a task, about: presets give the generator more bits for more states. By default what was counted."""
    workers: int = 0
    """Processes that step the environment; 0 steps it in this one, which is faster unless a step takes longer than
    0.1 ms. Tasks with a transition table need none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("reward", self.reward, get_args(Reward))
        check_positive(self, "states")
        if self.workers < 0:
            raise ValueError(f"workers must not be negative, got {self.workers}")

    @property
    def deterministic(self) -> bool:
        """Whether an action always has the same effect in the same state."""
        return not self.stochastic

    @property
    def cells(self) -> int:
        """States, by which presets scale."""
        return self.states


@dataclass(frozen=True)
class GridOptions:
    """Which grids; by default those of the run, or the environment's own."""

    max_steps: int | None = None
    """Steps after which an episode is truncated."""
    reward: Reward | None = None
    """"one" pays 1 for success; "own" is the environment's reward."""

    def changed(self, world: GridConfig) -> GridConfig:
        """``world`` with the given options in place of its own."""
        given = {"max_steps": self.max_steps, "reward": self.reward}
        return replace(world, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
