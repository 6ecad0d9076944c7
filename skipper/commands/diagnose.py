"""``skipper diagnose``: what limits a trained agent that plans."""

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
from skipper.commands.tables import changes_table, errors_table, results_json
from skipper.envs.registry import find_family


@dataclass(frozen=True)
class Diagnose:
    """Find what limits a trained Skipper or LEAP: ground truth replaces one learned part at a time.

    The first table shows success rates; in each row one part is replaced by the truth. True edges are not pruned by
    length. The second table shows errors of distances and walks by true distance, how often plans are delusional, and
    how wrong the distances from and to delusional vertices are; "inf" stands for targets that cannot be reached.

    Example: skipper diagnose runs/first --episodes 100 --difficulties 0.35 0.55
    """

    run_folder: RunArgument
    """Folder of a trained Skipper or LEAP."""
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
        from skipper.training.run_folder import read_config

        config = read_config(self.run_folder)
        world = changed_world(config, self.world)
        agent = load_with_oracle(self.run_folder, world)
        sets = evaluation_sets(find_family(config.env), world, self.episodes, self.seed, self.split)
        replaced, errors = substitute(agent, sets, self.seed), measure(agent, sets, self.seed)
        if self.json:
            print(json.dumps({"replaced": results_json(replaced), "truth": errors}, indent=2))
            return
        console = Console()
        console.print(changes_table("true instead of learned", replaced))
        console.print(errors_table(errors))
