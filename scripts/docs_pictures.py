"""The pictures and live pages of the documentation, from the pretrained agent; the same files every time.

Run from the root: python scripts/docs_pictures.py
"""

from pathlib import Path

from skipper.analysis.plots import draw_decision
from skipper.training.load import load
from skipper.viewer.gallery import Gallery, gallery
from skipper.viewer.record import to_html

RUN = Path("skipper/pretrained/skipper-regen-50")
DOCS = Path("docs")
# As the paper plans: 30 checkpoints, 12 vertices kept, a plan until its target is reached.
PAPER = {
    "checkpoints": 30,
    "max_vertices": 12,
    "prune_vertices": True,
    "replan": "trigger",
    "edge_backups": 0,
    "revisit_penalty": 0.0,
}
# Difficulty and number of the task of each live page, by how its episode ends.
EPISODES = {"success": ("0.45", 6), "death": ("0.55", 24)}


def shown(outcome: str) -> Gallery:
    """The episode of one task, which must still end as its page says."""
    difficulty, task = EPISODES[outcome]
    found = gallery(RUN.name, load(RUN, 0, explain=True, **PAPER), difficulty, (task,))
    if found.data["episodes"][0]["outcome"] != outcome:
        raise SystemExit(f"task {task} of {difficulty} is no {outcome} any more: choose another")
    return found


def main() -> None:
    """Write everything, and say how large it is."""
    (DOCS / "live").mkdir(exist_ok=True)
    written = []
    for outcome in EPISODES:
        episode = shown(outcome)
        written.append(DOCS / "live" / f"{outcome}.html")
        written[-1].write_text(to_html(episode.data), encoding="utf-8")
        if outcome == "success":
            written += draw_decision(episode.data, 0, 0, episode.pictures(0)[0], DOCS / "images")
    for path in written:
        print(f"{path}: {path.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
