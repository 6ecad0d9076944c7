"""``skipper watch``: a page that shows an agent think."""

import json
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console

from skipper.commands.options import RunArgument, has_screen
from skipper.training.load import load

if TYPE_CHECKING:
    from skipper.viewer.gallery import Gallery

LAST_TASK = 9_999  # all tasks up to the highest number are drawn


@dataclass(frozen=True)
class Watch:
    """Show an agent think: its episodes on one self-contained HTML page.

    Each step shows the proxy problem, the plan, the target and the attention, compared with the truth. Space plays,
    arrow keys step; --each makes a gallery of successes and failures.

    Examples: skipper watch skipper-regen-50 --difficulty 0.45 --task 7 --out plan.html
              skipper watch skipper-regen-50 --each 4 --out gallery.html
              skipper watch runs/first --task 7 --gif episode.gif --png 3
    """

    run_folder: RunArgument
    """Folder of a trained agent, or the name of a pretrained one."""
    agent: str | None = None
    """Another variant of Skipper, such as skipper-once, that plays with the run's networks."""
    set: Annotated[str | None, tyro.conf.arg(aliases=["--difficulty"])] = None
    """Evaluation set of the tasks, for the lava world a difficulty; by default one in the middle."""
    task: tuple[int, ...] = (0,)
    """Numbers of the tasks to play, 0 to 9999."""
    each: int | None = None
    """Instead of --task: this many successes, deaths and timeouts, as far as the first 400 tasks have them."""
    seed: int = 0
    """Decides the tasks, as in "skipper evaluate", and everything that happens in them."""
    out: Path = Path("plan.html")
    """The page."""
    json: Path | None = None
    """Also write the content of the page as JSON."""
    episode: int = 0
    """The episode of the page, from 0, that --gif and --png draw."""
    gif: Path | None = None
    """Also write an episode as an animation."""
    png: int | None = None
    """Also draw this step of an episode, to the path of the page with the suffix .png."""
    browser: bool = field(default_factory=has_screen)
    """Open the page; by default if there is a screen and a terminal."""

    def run(self) -> None:
        """Play, and write all files."""
        from skipper.viewer.gallery import gallery
        from skipper.viewer.record import to_html

        if self.each is not None and self.each < 1:
            raise ValueError(f"--each wants at least 1, got {self.each}")
        if not self.task or not 0 <= min(self.task) <= max(self.task) <= LAST_TASK:
            got = " ".join(map(str, self.task)) or "none"
            raise ValueError(f"--task wants numbers from 0 to {LAST_TASK}, got {got}")
        loaded = load(self.run_folder, self.seed, self.agent, explain=True)
        shown = gallery(self.run_folder.resolve().name, loaded, self.set, self.task, self.each, seed=self.seed)
        for path in (self.out, self.json, self.gif):
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(to_html(shown.data), encoding="utf-8")
        if self.json:
            self.json.write_text(json.dumps(shown.data, indent=1), encoding="utf-8")
        console = Console()
        for path in (self.out, self.json, *self._pictures(shown)):
            if path:
                console.print(f"wrote {path}", soft_wrap=True)
        for episode in shown.data["episodes"]:
            console.print(f"{episode['name']}: {episode['outcome']} after {len(episode['steps'])} steps")
        if self.browser:
            webbrowser.open(self.out.resolve().as_uri())

    def _pictures(self, shown: "Gallery") -> Iterator[Path]:
        """Draw what --png and --gif name."""
        if self.gif is None and self.png is None:
            return
        episodes = shown.data["episodes"]
        if not 0 <= self.episode < len(episodes):
            raise ValueError(f"--episode wants one of the {len(episodes)} episodes, from 0, got {self.episode}")
        from skipper.analysis.plots import animate_episode, draw_moment  # matplotlib is slow to import

        pictures = shown.pictures(self.episode)
        if self.png is not None:
            last = len(pictures) - 1
            if not 0 <= self.png <= last:
                raise ValueError(f"--png wants a step of the episode, 0 to {last}, got {self.png}")
            path = self.out.with_suffix(".png")
            draw_moment(shown.data, self.episode, self.png, pictures[self.png], path)
            yield path
        if self.gif is not None:
            animate_episode(shown.data, self.episode, pictures, self.gif)
            yield self.gif
