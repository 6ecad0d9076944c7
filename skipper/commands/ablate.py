"""``skipper ablate``: the effect of each setting of a decision."""

import json
from dataclasses import dataclass, field

from rich.console import Console

from skipper.commands.options import (
    RunArgument,
    SplitOption,
    WorldOptions,
    changed_world,
    default_world,
    evaluation_sets,
)
from skipper.commands.tables import changes_table, results_json
from skipper.envs.registry import find_family


@dataclass(frozen=True)
class Ablate:
    """Measure the effect of each setting of a decision: the same networks play with one change per row.

    Every agent is shown without and with the decision-time aids, the revisit penalty and the ensemble of symmetric
    images. An agent that plans also has its settings of planning changed. An agent without a revisit penalty of its own
    is tried with 0.1.

    Example: skipper ablate skipper-regen-50 --episodes 100 --split tuning
    """

    run_folder: RunArgument
    """Folder of a trained agent, or the name of a pretrained one."""
    episodes: int = 100
    """Tasks per evaluation set."""
    split: SplitOption = "evaluation"
    seed: int = 0
    """Decides the tasks and everything that happens in them."""
    json: bool = False
    """Print one JSON object instead of the table."""
    world: WorldOptions = field(default_factory=default_world)

    def run(self) -> None:
        """Print the table or the object."""
        from skipper.experiments.ablate import ablate
        from skipper.training.pretrained import find_run
        from skipper.training.run_folder import read_config

        run = find_run(self.run_folder)
        config = read_config(run)
        world = changed_world(config, self.world)
        sets = evaluation_sets(find_family(config.env), world, self.episodes, self.seed, self.split)
        changed = ablate(run, world, sets, self.seed)
        if self.json:
            print(json.dumps(results_json(changed), indent=2))
        else:
            Console().print(changes_table("changed", changed))
