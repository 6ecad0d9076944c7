"""Screenshots of the viewer for the documentation: a success, a death and a delusion of the pretrained agent.

Needs the development set-up and Chromium (scripts/browser.sh). Run from the root: python scripts/screenshots.py
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from skipper.training.load import load
from skipper.viewer.gallery import gallery
from skipper.viewer.record import to_html

IMAGES = Path("docs/images")
NAME = "skipper-regen-50"
VIEW = {"width": 1400, "height": 940}


def deluded_steps(episode: dict[str, Any]) -> Iterator[int]:
    """Steps at which the target cannot be reached."""
    index = {state: position for position, state in enumerate(episode["truth"]["states"])}
    distance = episode["truth"]["distance"]
    for step, moment in enumerate(episode["steps"]):
        if "target" in moment and distance[index[moment["state"]]][index[moment["target_state"]]] < 0:
            yield step


def moments(episodes: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """The episode and step to show under each name."""
    outcome = [episode["outcome"] for episode in episodes]
    deluded = next(index for index, episode in enumerate(episodes) if any(deluded_steps(episode)))
    death = outcome.index("death")
    return {
        "success": (outcome.index("success"), 5),
        "death": (death, len(episodes[death]["steps"]) - 1),
        "delusion": (deluded, next(deluded_steps(episodes[deluded]))),
    }


def show(page: Page, episode: int, step: int) -> None:
    """Go to a step of an episode."""
    page.locator(f'#gallery button[data-episode="{episode}"]').click()
    page.locator("#scrub").fill(str(step))


def main() -> None:
    """Write all screenshots."""
    data = gallery(NAME, load(NAME, 0, explain=True), "0.55", each=4).data
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        path.write_text(to_html(data), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (episode, step) in moments(data["episodes"]).items():
            page = browser.new_page(viewport=VIEW, color_scheme="dark" if name == "delusion" else "light")
            page.goto(path.as_uri())
            show(page, episode, step)
            page.screenshot(path=IMAGES / f"watch-{name}.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
