"""One MiniGrid environment as an environment family."""

from functools import cached_property, lru_cache, partial
from typing import Any

from skipper.envs.grid.config import GridConfig
from skipper.envs.grid.family import GridFamily
from skipper.envs.grid.slots import Make
from skipper.envs.grid.truth import GridOracle
from skipper.envs.minigrid.full_grid import ANY_DIRECTION, FullGrid
from skipper.envs.minigrid.render import MARKS, draw, letter_colours, letter_names, letters, mark_colours
from skipper.envs.minigrid.scene import MinigridScene
from skipper.envs.minigrid.things import Things, look, make_stock, reset_quietly
from skipper.envs.registry import Detail, TaskSet
from skipper.envs.symmetry import directed_symmetries
from skipper.types import Array, EnvironmentSpec

MISSIONS = 8  # episodes whose missions are compared


class MinigridFamily(GridFamily):
    """The layouts of one MiniGrid environment, which is asked for everything that is observed."""

    cell_marks = MARKS

    def __init__(self, env_id: str) -> None:
        self.env_id, self.max_steps = env_id, int(make_stock(env_id).max_steps)
        super().__init__(f"minigrid:{env_id}", self._make_default)

    @cached_property
    def things(self) -> Things:
        """What can be in a cell; refused where missions matter that the grid does not show."""
        stock = make_stock(self.env_id)
        stock.gen_obs = dict  # the view from the agent is not needed
        self._check_missions(stock)
        return look(stock)

    def _check_missions(self, stock: Any) -> None:
        """A mission may change from episode to episode only where the goal is a cell."""
        missions, goals = set(), True
        for seed in range(MISSIONS):
            reset_quietly(stock, seed)
            missions.add(str(stock.mission))
            goals &= sum(thing is not None and thing.type == "goal" for thing in stock.grid.grid) == 1
        if len(missions) > 1 and not goals:
            first, second, *_ = sorted(missions)
            raise ValueError(
                f"not fully observable: the mission changes from episode to episode ({first!r}, {second!r}), "
                f"and the grid does not show it"
            )

    def _make_default(self) -> FullGrid:
        return FullGrid(self.env_id, self.things, self.max_steps)

    def playing(self, world: GridConfig) -> Make:
        """With the world's own limit, on which MiniGrid's reward depends."""
        return partial(FullGrid, self.env_id, self.things, world.max_steps)

    @cached_property
    def scene(self) -> Any:
        """Cell and direction of the agent, doors, and what can be moved."""
        return MinigridScene(self.env.shape, self.things)

    @property
    def has_oracle(self) -> bool:
        """Whether the grid alone decides what happens: MiniGrid's own rules, a goal, no random effects."""
        env: Any = self.env
        return self.facts.goal and self.facts.deterministic and env.standard_rules

    def spec(self, world: GridConfig, tasks: TaskSet | None = None) -> EnvironmentSpec:
        """As for any grid, with symmetries and an oracle."""
        width, height, _ = self.env.shape
        oracle = None
        if self.has_oracle:
            make: Any = self.playing(world)
            oracle = GridOracle(make, self.facts.actions, self.scene, self.scene.at_goal)
        symmetries = directed_symmetries(width, height, self.actions, ANY_DIRECTION + 1)
        return super().spec(world, tasks)._replace(oracle=oracle, symmetries=symmetries)

    # Pictures

    @property
    def cell_colours(self) -> dict[str, str]:
        """The colour of each letter of a board."""
        return letter_colours(self.things)

    @property
    def mark_colours(self) -> dict[str, str]:  # type: ignore[override]
        """Doors and what can be moved in their own colours."""
        return mark_colours(self.things)

    @property
    def cell_names(self) -> dict[str, str]:  # type: ignore[override]
        """Doors and what can be moved, in words."""
        return letter_names(self.things)

    def draw(self, observation: Array) -> Array:
        """The picture that MiniGrid draws, with what is carried in the agent's cell."""
        return draw(self.things, observation)

    def detail(self, observation: Array) -> Detail | None:
        """Doors and what can be moved as they are now, the agent's direction and load; none of it at an end."""
        agent = int(observation[..., -1].max())
        if agent == ANY_DIRECTION:
            return None
        carried = int(observation[..., 1].max()) if observation.shape[-1] == 3 else 0
        load = letters(self.things)[self.things.carriable()[carried - 1]] if carried else ""
        return Detail(self.layout(observation), agent - 1, load)

    def layout(self, observation: Array) -> str:
        """One letter for the content of each cell of an observation (W, H, C)."""
        names = letters(self.things)
        return "".join(names[content] for content in observation[..., 0].ravel().tolist())


@lru_cache(maxsize=256)
def minigrid_family(env_id: str) -> MinigridFamily:
    """The family of an id, which is tried out once."""
    return MinigridFamily(env_id)
