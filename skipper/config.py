"""Frozen configuration: validated where it is made, never changed afterwards."""

from dataclasses import dataclass
from typing import Literal, get_args

Dynamics = Literal["lava", "walls"]
Start = Literal["uniform", "fixed"]

EVALUATION_DIFFICULTIES = (0.25, 0.35, 0.45, 0.55)


@dataclass(frozen=True)
class WorldConfig:
    """One distribution of lava-world tasks (paper, section 5; the grid has no surrounding wall)."""

    width: int = 12
    """Cells along x, at least 3: start and goal stand on the two side columns."""
    height: int = 12
    """Cells along y, at least 3."""
    difficulty: float = 0.4
    """Share of the inner columns' cells that is lava; the count is exact."""
    spread: float = 0.0
    """Each task's difficulty is drawn uniformly from difficulty +- spread."""
    dynamics: Dynamics = "lava"
    """"lava" kills; "walls" puts walls in the same cells: they block and do not kill."""
    slip: float = 0.0
    """Probability with which an action is replaced by a uniformly random one."""
    max_steps: int = 64
    """Steps after which an episode is truncated; the paper's value, for 12x12."""
    start: Start = "uniform"
    """"uniform": any non-terminal cell that the task's start reaches; "fixed": the task's start itself."""

    def __post_init__(self) -> None:
        if self.width < 3 or self.height < 3:
            raise ValueError(f"a grid of {self.width}x{self.height} is too small; width and height must be at least 3")
        if not 0.0 <= self.slip <= 1.0:
            raise ValueError(f"slip is a probability, got {self.slip}; possible: 0 to 1")
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {self.max_steps}")
        for name, value, choices in (
            ("dynamics", self.dynamics, get_args(Dynamics)),
            ("start", self.start, get_args(Start)),
        ):
            if value not in choices:
                raise ValueError(f"unknown {name} {value!r}; available: {', '.join(choices)}")
        self._check_difficulty()

    def _check_difficulty(self) -> None:
        # Written so that NaN is refused too.
        if not self.spread >= 0.0:
            raise ValueError(f"spread must not be negative, got {self.spread}")
        if not self.difficulty - self.spread >= 0.0:
            raise ValueError(
                f"difficulty {self.difficulty} +- {self.spread} falls below 0; "
                f"possible: {self.spread:g} to {self.max_lava / self.field - self.spread:.3f}"
            )
        if not self.difficulty + self.spread < (self.max_lava + 1) / self.field:
            raise ValueError(
                f"difficulty {self.difficulty} +- {self.spread} asks for up to "
                f"{(self.difficulty + self.spread) * self.field:.0f} lava cells of {self.field}, which leaves no path; "
                f"on a {self.width}x{self.height} grid at most {self.max_lava} are possible: "
                f"difficulty + spread <= {self.max_lava / self.field:.3f}"
            )

    @property
    def field(self) -> int:
        """Cells of the inner columns, where lava may lie."""
        return (self.width - 2) * self.height

    @property
    def max_lava(self) -> int:
        """Most lava cells that leave a path: one straight row through the field stays free."""
        return self.field - (self.width - 2)

    @property
    def cells(self) -> int:
        """S, the number of cells of the grid."""
        return self.width * self.height
