"""``skipper ablate``: the effect of each planning setting."""

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
    """Measure the effect of each planning setting: the same networks play with one setting changed at a time.

    Example: skipper ablate pretrained/skipper-regen-50 --episodes 100 --seed 1
    """

    run_folder: RunArgument
    """Folder of a trained Skipper."""
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
        from skipper.analysis.oracle_substitution import load_with_oracle
        from skipper.experiments.ablate import ablate
        from skipper.training.run_folder import read_config

        config = read_config(self.run_folder)
        world = changed_world(config, self.world)
        sets = evaluation_sets(find_family(config.env), world, self.episodes, self.seed, self.split)
        changed = ablate(load_with_oracle(self.run_folder, world), sets, self.seed)
        if self.json:
            print(json.dumps(results_json(changed), indent=2))
        else:
            Console().print(changes_table("changed in planning", changed))
