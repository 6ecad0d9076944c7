"""Commands that train agents and let them play: train, evaluate, demo."""

import json
import webbrowser
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console

from skipper.agents.registry import FIXED
from skipper.commands.shared import WorldOptions, evaluate, has_screen, results_table, sides, task_sets
from skipper.config import EVALUATION_DIFFICULTIES, RunConfig, WorldConfig
from skipper.envs.lava.tasks import training_tasks
from skipper.training.load import load
from skipper.types import Agent

SHOWN = tuple(range(6))  # tasks that the demo's page shows


@dataclass(frozen=True)
class Train:
    """Train an agent; the same command continues a run that was interrupted.

    Every field of the configuration is an option. Presets: "fast", the default, learns in half an hour on two cores;
    "paper" follows the paper to the number; "debug" takes seconds, to see that everything runs. In worlds where moves
    slip, "fast" wants --no-hindsight-bound --target-update-every 2400.

    Example: skipper train --agent skipper-regen --tasks 50 --seed 0 --out runs/first
    """

    out: Path
    """The run folder; what it holds is described in docs/run_folder.md."""
    size: tuple[int, ...] | None = None
    """Cells along x, and along y where that differs; sets width and height."""
    config: tyro.conf.OmitArgPrefixes[RunConfig] = field(default_factory=RunConfig)

    def run(self) -> None:
        """Train to the end, or until Ctrl-C."""
        from skipper.training.progress import ProgressDisplay
        from skipper.training.run import train

        config = self.config
        if self.size is not None:
            width, height = sides(self.size)
            config = replace(config, world=replace(config.world, width=width, height=height))
        with ProgressDisplay(config.steps) as display:
            finished = train(config, self.out, display)
            display.say(f"finished: {self.out}" if finished else "saved; the same command continues this run")


@dataclass(frozen=True)
class Evaluate:
    """Play unseen tasks of every difficulty and print success rates with 95% intervals.

    Every task is played once, from its own start, on the side opposite to the goal. "steps" is the mean
    length of all episodes; success, deaths and timeouts are shares of them and sum to 1.

    Examples: skipper evaluate runs/first --episodes 400
              skipper evaluate --agent optimal --dynamics walls --difficulties 0.4 --json
    """

    run_folder: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(name="run", metavar="RUN")] = None
    """Folder of a trained agent; or name an agent that needs no training."""
    agent: Annotated[str | None, tyro.conf.arg(metavar="|".join(FIXED))] = None
    """An agent that needs no training; or, beside a run of Skipper, another variant, like skipper-once, that plays with
    its networks."""
    ensemble: int = 1
    """Symmetric images of each state that a trained agent estimates from; the mean counts. All 8 of a square grid make
    fewer errors than one, for eight times the work."""
    training: bool = False
    """Also play the tasks that the run was trained on, each once."""
    difficulties: tuple[float, ...] = EVALUATION_DIFFICULTIES
    """Densities of lava; each task's own is drawn within "spread" of it."""
    spread: float = 0.05
    """Half the width of the band of densities; the authors' experiments use 0.05."""
    episodes: int = 1000
    """Tasks per difficulty."""
    seed: int = 0
    """Decides the tasks and all that happens in them; another seed gives other tasks."""
    json: bool = False
    """Print one JSON object keyed by difficulty instead of the table."""
    world: tyro.conf.OmitArgPrefixes[WorldOptions] = field(default_factory=WorldOptions)

    def run(self) -> None:
        """Print the table or the object."""
        if self.run_folder is None and self.agent is None:
            raise ValueError(f"say who plays: either a run folder, or --agent {' or '.join(FIXED)}")
        if self.run_folder is not None:
            loaded = load(self.run_folder, self.seed, self.agent, ensemble=self.ensemble)
            name, world = loaded.config.agent, self.world.changed(loaded.config.world)
            agent: Agent | None = loaded.agent
            if (world.width, world.height) != (loaded.config.world.width, loaded.config.world.height):
                raise ValueError("networks are made for one size of grid: --size must be that of the run")
        elif self.training or self.ensemble != 1:
            raise ValueError("--training and --ensemble need the folder of a run")
        else:
            name, world, agent = str(self.agent), self.world.changed(WorldConfig()), None
        sets = task_sets(world, self.difficulties, self.episodes, self.seed, self.spread)
        if self.run_folder is not None and self.training:
            trained = training_tasks(world, loaded.config.tasks, loaded.config.seed)
            sets = sets | {"training": trained.subset(np.arange(min(self.episodes, len(trained))))}
        results = evaluate(name, sets, self.seed, agent)
        if self.json:
            print(json.dumps({level: summary._asdict() for level, summary in results.items()}, indent=2))
        else:
            Console().print(results_table({name: results}))


@dataclass(frozen=True)
class Demo:
    """Watch a Skipper learn for a few minutes, and see how far it came.

    One table compares it with the random and the optimal agent, and with a trained Skipper; figures of its learning
    curve, of one of its plans and of the tasks are left behind, and a page on which the trained one can be watched.
    """

    out: Path = Path("demo")
    """Folder for what the demo leaves behind; a run in it is begun anew."""
    minutes: float = 4.5
    """How long it may learn."""
    trained: Path = Path("pretrained/skipper-regen-50")
    """The trained agent to compare with; left out where the folder is not there."""
    episodes: int = 200
    """Tasks per difficulty in the table."""
    seed: int = 0
    """Decides the tasks and all that happens."""

    def run(self) -> None:
        """Train, print the table and write the pictures."""
        from skipper.experiments.demo import draw_figures, train_for  # matplotlib is slow to import
        from skipper.viewer.gallery import gallery
        from skipper.viewer.record import to_html

        console = Console()
        sets = task_sets(WorldConfig(), EVALUATION_DIFFICULTIES, self.episodes, self.seed)
        run = self.out / "run"
        console.print(f"A Skipper learns on 50 lava worlds of 12x12 cells, for {self.minutes:g} minutes at most ...")
        train_for(run, self.minutes, self.seed)
        console.print(f"Playing {self.episodes} unseen worlds of each of {len(sets)} difficulties ...")
        results = {agent: evaluate(agent, sets, self.seed) for agent in ("random", "optimal")}
        folders = {"just now": run, "pretrained": self.trained}
        for name, folder in folders.items():
            if folder.exists():
                results[name] = evaluate(name, sets, self.seed, load(folder, self.seed).agent)
        console.print(results_table(results))
        shown = self.trained if self.trained.exists() else run
        hardest = max(EVALUATION_DIFFICULTIES)
        thinking = load(shown, self.seed, explain=True)
        data = gallery(shown.name, thinking, SHOWN, None, difficulty=hardest, seed=self.seed)
        for picture in draw_figures(run, data, sets, self.out):
            console.print(f"wrote {picture}")
        page = self.out / "watch.html"
        page.write_text(to_html(data), encoding="utf-8")
        console.print(f"wrote {page}: open it to see {shown.name} think")
        if has_screen():
            webbrowser.open(page.resolve().as_uri())
