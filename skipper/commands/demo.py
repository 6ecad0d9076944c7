"""``skipper demo``: a few minutes of training, compared and drawn."""

import webbrowser
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from skipper.commands.options import evaluation_sets, has_screen, play_sets, summaries
from skipper.commands.tables import results_table
from skipper.envs.registry import find_family
from skipper.training.load import load
from skipper.training.pretrained import find_run
from skipper.training.run_folder import weights_identity

SHOWN = tuple(range(6))  # tasks on the demo's page


@dataclass(frozen=True)
class Demo:
    """Train Skipper for a few minutes and compare it with other agents.

    One table compares it with the random and the optimal agent and with a pretrained Skipper, which had several times
    as many steps: expect the one that just began to solve fewer tasks. The demo also writes figures of its learning
    curve, of one of its plans and of the tasks, and a page on which the pretrained agent can be watched.

    Example: skipper demo --minutes 2
    """

    out: Path = Path("demo")
    """Folder for the results; a run that it holds is replaced."""
    minutes: float = 4.5
    """Training time, at most."""
    trained: Path | None = Path("skipper-regen-50")
    """The pretrained agent to compare with, or the folder of another one; None for none."""
    episodes: int = 200
    """Tasks per evaluation set in the table."""
    seed: int = 0
    """Decides the tasks and everything that happens."""

    def run(self) -> None:
        """Train, print the table and write the figures."""
        from skipper.experiments.demo import demo_config, draw_figures, train_for  # matplotlib is slow to import
        from skipper.viewer.gallery import gallery
        from skipper.viewer.record import to_html

        if not self.minutes > 0:
            raise ValueError(f"--minutes wants more than 0, got {self.minutes:g}")
        trained = self.trained and find_run(self.trained)  # a mistake in it is reported before the training
        console = Console()
        config, run = demo_config(self.seed), self.out / "run"
        family = find_family(config.env)
        sets = evaluation_sets(family, config.world, self.episodes, self.seed)
        console.print(
            f"Training Skipper on {config.tasks} {config.env} tasks, for at most {self.minutes:g} minutes ...\n"
            "The first time, a part of it goes into compiling functions."
        )
        train_for(config, run, self.minutes)
        console.print(f"Playing {self.episodes} unseen tasks of each of {len(sets)} evaluation sets ...")
        results = {agent: summaries(play_sets(agent, family, sets, self.seed)) for agent in ("random", "optimal")}
        learners = {"just now": run} | ({"pretrained": trained} if trained else {})
        for name, folder in learners.items():
            results[name] = summaries(play_sets(load(folder, self.seed).agent, family, sets, self.seed))
        console.print(results_table(results, family.set_kind), "", sep="\n")
        steps = {name: f"{weights_identity(folder).step:,}" for name, folder in learners.items()}
        console.print(f"Steps of training: {'; '.join(f'{name} {count}' for name, count in steps.items())}.")
        shown, title = trained or run, (self.trained or run).name
        hardest = family.evaluation_names(config.world)[-1]
        watched = gallery(title, load(shown, self.seed, explain=True), hardest, SHOWN, seed=self.seed)
        for picture in draw_figures(run, watched.data, watched.pictures(0), family, sets, self.out):
            console.print(f"wrote {picture}")
        page = self.out / "watch.html"
        page.write_text(to_html(watched.data), encoding="utf-8")
        console.print(f"wrote {page}: open it to see {title} think")
        if has_screen():
            webbrowser.open(page.resolve().as_uri())
