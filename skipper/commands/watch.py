"""The command that shows an agent think."""

import json
import webbrowser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from skipper.commands.shared import has_screen
from skipper.training.load import load


@dataclass(frozen=True)
class Watch:
    """See an agent think: its episodes as one HTML page that needs nothing else.

    Each step shows the proxy problem, the plan, the target and what is looked at, beside the truth. Space plays, arrows
    step; --each makes a gallery in which failures can be browsed.

    Examples: skipper watch pretrained/skipper-regen-50 --difficulty 0.45 --task 7 --out plan.html
              skipper watch pretrained/skipper-regen-50 --each 4 --out gallery.html
              skipper watch runs/first --task 7 --gif episode.gif --png 3
    """

    run_folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(name="run", metavar="RUN")]
    """Folder of a trained agent."""
    agent: str | None = None
    """Another variant of Skipper, like skipper-once, that plays with the networks of the run."""
    difficulty: float = 0.45
    """Density of lava of the unseen tasks."""
    task: tuple[int, ...] = (0,)
    """Numbers of the tasks to play, from 0."""
    each: int | None = None
    """Instead of these: so many successes, deaths and timeouts, as far as 400 tasks have them."""
    seed: int = 0
    """Decides the tasks, as in "skipper evaluate", and all that happens in them."""
    out: Path = Path("plan.html")
    """Where the page goes."""
    json: Path | None = None
    """Also write what the page shows, as JSON."""
    episode: int = 0
    """Which of the page's episodes, from 0, --gif and --png draw."""
    gif: Path | None = None
    """Also write an episode as a moving picture."""
    png: int | None = None
    """Also draw this step of an episode, beside the page under the same name with .png."""
    browser: bool = field(default_factory=has_screen)
    """Open the page; by default where there is a screen and somebody at the keyboard."""

    def run(self) -> None:
        """Play, and write what was asked for."""
        from skipper.viewer.gallery import gallery
        from skipper.viewer.record import to_html

        if self.each is not None and self.each < 1:
            raise ValueError(f"--each wants at least 1, got {self.each}")
        if not self.task or min(self.task) < 0:
            raise ValueError(f"--task wants numbers from 0, got {' '.join(map(str, self.task)) or 'none'}")
        loaded = load(self.run_folder, self.seed, self.agent, explain=True)
        name = self.run_folder.resolve().name
        data = gallery(name, loaded, self.task, self.each, difficulty=self.difficulty, seed=self.seed)
        for path in (self.out, self.json, self.gif):
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(to_html(data), encoding="utf-8")
        if self.json:
            self.json.write_text(json.dumps(data, indent=1), encoding="utf-8")
        console = Console()
        for path in (self.out, self.json, *self._pictures(data)):
            if path:
                console.print(f"wrote {path}", soft_wrap=True)
        for episode in data["episodes"]:
            console.print(f"{episode['name']}: {episode['outcome']} after {len(episode['steps'])} steps")
        if self.browser:
            webbrowser.open(self.out.resolve().as_uri())

    def _pictures(self, data: dict[str, Any]) -> list[Path]:
        """Draw what was asked for."""
        drawn: list[Path] = []
        if self.gif is None and self.png is None:
            return drawn
        if not 0 <= self.episode < len(data["episodes"]):
            raise ValueError(f"--episode wants one of the {len(data['episodes'])} episodes, from 0, got {self.episode}")
        from skipper.analysis.plots import animate_episode, draw_moment  # matplotlib is slow to import

        if self.png is not None:
            last = len(data["episodes"][self.episode]["steps"])
            if not 0 <= self.png <= last:
                raise ValueError(f"--png wants a step of the episode, 0 to {last}, got {self.png}")
            drawn.append(self.out.with_suffix(".png"))
            draw_moment(data, self.episode, self.png, drawn[-1])
        if self.gif is not None:
            drawn.append(self.gif)
            animate_episode(data, self.episode, self.gif)
        return drawn
