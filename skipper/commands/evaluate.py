"""``skipper evaluate``: success rates on unseen tasks."""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console

from skipper.agents.registry import BASELINES
from skipper.commands.options import (
    OptionalRunArgument,
    WorldOptions,
    changed_world,
    default_world,
    evaluation_sets,
    play_sets,
)
from skipper.commands.tables import results_table
from skipper.envs.registry import DEFAULT_FAMILY, TaskSet, find_family
from skipper.training.evaluate import TRAINING, Summary
from skipper.training.load import LoadedAgent, load


@dataclass(frozen=True)
class Evaluate:
    """Play unseen tasks of every evaluation set and print success rates with 95% intervals.

    Every task is played once. "steps" is the mean length of all episodes; success, deaths and timeouts are shares of
    all episodes and sum to 1. A death is an episode that terminated without success.

    Examples: skipper evaluate runs/first --episodes 400
              skipper evaluate --agent optimal --dynamics walls --difficulties 0.4 --json
    """

    run_folder: OptionalRunArgument = None
    """Folder of a trained agent; without one, name a baseline with --agent."""
    agent: Annotated[str | None, tyro.conf.arg(metavar="|".join(BASELINES))] = None
    """A baseline, which needs no training; or, with a run of Skipper, another variant, such as skipper-once, that plays
    with the run's networks."""
    env: str | None = None
    """Environment of a baseline; a run has its own."""
    revisit_penalty: float | None = None
    """Share of its value that an action, or an edge of a plan, loses for each earlier time that the episode took it in
    the same state, against walking in circles; by default as the run has it. 0 turns it off."""
    ensemble: int | None = None
    """Average a trained agent's estimates over this many symmetric images of each state. All 8 of a square grid make
    fewer errors than one, for eight times the work. By default as the run has it."""
    training: bool = False
    """Also play the tasks that the run was trained on, each once."""
    episodes: int = 1000
    """Tasks per evaluation set."""
    seed: int = 0
    """Decides the tasks and everything that happens in them; another seed gives other tasks."""
    json: bool = False
    """Print one JSON object, keyed by evaluation set, instead of the table."""
    world: WorldOptions = field(default_factory=default_world)

    def run(self) -> None:
        """Print the table or the object."""
        if self.run_folder is None and self.agent is None:
            raise ValueError(f"name an agent: either a run folder, or --agent {' or '.join(BASELINES)}")
        if self.run_folder is None:
            env, name, results = self._baseline(str(self.agent))
        else:
            aids: Any = {"revisit_penalty": self.revisit_penalty, "ensemble": self.ensemble}
            loaded = load(self.run_folder, self.seed, self.agent, **aids)
            env, name, results = loaded.config.env, loaded.config.agent, self._trained(loaded)
        if self.json:
            print(json.dumps({level: summary._asdict() for level, summary in results.items()}, indent=2))
        else:
            Console().print(results_table({name: results}, find_family(env).set_kind))

    def _baseline(self, agent: str) -> tuple[str, str, dict[str, Summary]]:
        if self.training or self.ensemble is not None or self.revisit_penalty is not None:
            raise ValueError("--training, --ensemble and --revisit-penalty need the folder of a run")
        env = self.env or DEFAULT_FAMILY
        family = find_family(env)
        world = self.world.changed(family.world("paper"))
        sets = evaluation_sets(family, world, self.episodes, self.seed)
        return env, agent, play_sets(agent, family, sets, self.seed)

    def _trained(self, loaded: LoadedAgent) -> dict[str, Summary]:
        config = loaded.config
        if self.env not in (None, config.env):
            raise ValueError(f"the run is of the environment {config.env!r}, not of {self.env!r}")
        family, world = find_family(config.env), changed_world(config, self.world)
        sets = evaluation_sets(family, world, self.episodes, self.seed)
        if self.training:
            if not config.tasks:
                raise ValueError("--training needs a run with fixed tasks; this one had a new task every episode")
            trained: TaskSet = family.training_tasks(world, config.tasks, config.seed)
            some = trained.subset(np.arange(min(self.episodes, len(trained))))
            sets |= {TRAINING: family.training_evaluation(world, some, len(some), self.seed)}
        return play_sets(loaded.agent, family, sets, self.seed)
