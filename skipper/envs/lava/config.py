"""Settings of the lava world: one distribution of tasks, and the difficulties to evaluate on."""

from dataclasses import dataclass
from typing import Literal, get_args

from skipper.config import WorldConfig
from skipper.runtime.checks import check_choice

Dynamics = Literal["lava", "walls"]
Start = Literal["uniform", "fixed"]

EVALUATION_DIFFICULTIES = (0.25, 0.35, 0.45, 0.55)


@dataclass(frozen=True)
class LavaConfig(WorldConfig):
    """One distribution of lava-world tasks (paper, Sec. 5; the grid has no surrounding wall)."""

    width: int = 12
    """Cells along x, at least 3: start and goal are on the two side columns."""
    height: int = 12
    """Cells along y, at least 3."""
    difficulty: float = 0.4
    """Share of the inner columns' cells that are lava; the count is exact."""
    spread: float = 0.0
    """Each task's difficulty is drawn uniformly from difficulty +- spread."""
    dynamics: Dynamics = "lava"
    """"lava" kills; "walls" puts walls in the same cells: they block and do not kill."""
    slip: float = 0.0
    """Probability that a uniformly random action replaces the chosen one."""
    start: Start = "uniform"
    """"uniform": any non-terminal cell that the task's start reaches; "fixed": the task's start itself."""
    difficulties: tuple[float, ...] = EVALUATION_DIFFICULTIES
    """Difficulties of the evaluation sets."""
    difficulty_spread: float = 0.05
    """Spread of each evaluation set; the authors' code uses 0.05."""
    training_task_start: Start = "fixed"
    """Evaluate training tasks from their own start ("fixed") or, like the authors' code, from "uniform" ones."""

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            if not isinstance(getattr(self, name), int):
                raise ValueError(f"{name} must be a whole number, got {getattr(self, name)!r}")
        super().__post_init__()
        if self.width < 3 or self.height < 3:
            raise ValueError(f"a grid of {self.width}x{self.height} is too small; width and height must be at least 3")
        if not 0.0 <= self.slip <= 1.0:
            raise ValueError(f"slip is a probability, got {self.slip}; possible: 0 to 1")
        check_choice("dynamics", self.dynamics, get_args(Dynamics))
        check_choice("start", self.start, get_args(Start))
        check_choice("training_task_start", self.training_task_start, get_args(Start))
        self._check_difficulty(self.difficulty, self.spread)
        for level in self.difficulties:  # so that no run fails at its first evaluation
            self._check_difficulty(level, self.difficulty_spread)

    def _check_difficulty(self, difficulty: float, spread: float) -> None:
        # Written so that NaN is refused too.
        if not 0.0 <= spread <= self.max_lava / self.field / 2:
            raise ValueError(
                f"a spread of {spread} is not possible; it must be 0 to {self.max_lava / self.field / 2:.3f}"
            )
        if not difficulty - spread >= 0.0:
            raise ValueError(
                f"difficulty {difficulty} +- {spread} falls below 0; "
                f"possible: {spread:g} to {self.max_lava / self.field - spread:.3f}"
            )
        if not difficulty + spread < (self.max_lava + 1) / self.field:
            raise ValueError(
                f"difficulty {difficulty} +- {spread} asks for up to "
                f"{(difficulty + spread) * self.field:.0f} lava cells of {self.field}, which leaves no path; "
                f"on a {self.width}x{self.height} grid at most {self.max_lava} are possible: "
                f"difficulty + spread <= {self.max_lava / self.field:.3f}"
            )

    @property
    def deterministic(self) -> bool:
        """Whether moves never slip."""
        return self.slip == 0.0

    @property
    def field(self) -> int:
        """Cells of the inner columns, where lava may be."""
        return (self.width - 2) * self.height

    @property
    def max_lava(self) -> int:
        """Most lava cells that leave a path: one straight row through the field stays free."""
        return self.field - (self.width - 2)

    @property
    def cells(self) -> int:
        """S, the number of cells of the grid."""
        return self.width * self.height


# The world of each preset; the others use the paper's.
PRESETS = {"debug": LavaConfig(width=5, height=5, max_steps=20)}
