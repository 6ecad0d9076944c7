"""``skipper diagnose``: what limits a trained agent."""

import json
from dataclasses import dataclass, field

from rich.console import Console

from skipper.agents.director.config import DirectorConfig
from skipper.commands.options import (
    RunArgument,
    SplitOption,
    WorldOptions,
    changed_world,
    default_world,
    evaluation_sets,
)
from skipper.commands.tables import accuracy_table, changes_table, endings_table, errors_table, results_json
from skipper.envs.registry import Family, TaskSet, find_family
from skipper.training.evaluate import TRAINING


@dataclass(frozen=True)
class Diagnose:
    """Find what limits a trained agent.

    Skipper and LEAP: ground truth replaces one learned part at a time. The first table shows success rates; in each row
    one part is replaced by the truth. True edges are not pruned by length. The second table shows errors of distances
    and walks by true distance, how often plans are delusional, and how wrong the distances from and to delusional
    vertices are; "inf" stands for targets that cannot be reached.

    Director: how often its world model knows the agent's cell, in random walks on training and on unseen tasks; in the
    last of five states that it sees, and up to seven steps after that; "moved" is the first of these steps, only where
    the agent truly moves. The second table shows how likely it seems one step ahead that an episode goes on, where it
    does ("lives") and where it ends, after so many states that were seen of it.

    Example: skipper diagnose runs/first --episodes 100 --difficulties 0.35 0.55
    """

    run_folder: RunArgument
    """Folder of a trained agent that plans or imagines, or the name of a pretrained one."""
    episodes: int = 100
    """Tasks per evaluation set."""
    split: SplitOption = "evaluation"
    seed: int = 0
    """Decides the tasks and everything that happens in them."""
    json: bool = False
    """Print one JSON object instead of the tables."""
    world: WorldOptions = field(default_factory=default_world)

    def run(self) -> None:
        """Print both tables or the object."""
        from skipper.analysis.oracle_substitution import load_with_oracle, measure, substitute
        from skipper.training.pretrained import find_run
        from skipper.training.run_folder import read_config

        run = find_run(self.run_folder)
        config = read_config(run)
        family, world = find_family(config.env), changed_world(config, self.world)
        sets = evaluation_sets(family, world, self.episodes, self.seed, self.split)
        if isinstance(config, DirectorConfig):
            self._diagnose_world_model(config, family, sets)
            return
        agent = load_with_oracle(run, world)
        replaced, errors = substitute(agent, sets, self.seed), measure(agent, sets, self.seed)
        if self.json:
            print(json.dumps({"replaced": results_json(replaced), "truth": errors}, indent=2))
            return
        console = Console()
        console.print(changes_table("true, not learned", replaced), "", errors_table(errors), sep="\n")

    def _diagnose_world_model(self, config: DirectorConfig, family: Family, sets: dict[str, TaskSet]) -> None:
        from skipper.analysis.world_model_accuracy import world_model_accuracy
        from skipper.training.load import load

        actor, known = load(self.run_folder).agent, {}
        if config.tasks:
            known = {TRAINING: family.training_tasks(config.world, config.tasks, config.seed)}
        accuracy = {
            name: world_model_accuracy(actor, family, tasks, self.seed) for name, tasks in (known | sets).items()
        }
        if self.json:
            print(json.dumps({"world_model": accuracy}, indent=2))
        else:
            Console().print(accuracy_table(accuracy), "", endings_table(accuracy), sep="\n")
