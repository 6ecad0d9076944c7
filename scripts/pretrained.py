"""A pretrained agent from a finished run, and its card from evaluations of it.

Run from the root: python scripts/pretrained.py NAME RUN --intro TEXT --fact KEY TEXT ... --row LABEL FILE ...
"""

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path

from skipper.training.load import as_variant
from skipper.training.pretrained import CARD, PRETRAINED
from skipper.training.recorder import EVALUATIONS
from skipper.training.run_folder import CONFIG, RunFolder, read_config, read_weights, weights_identity


def copy_agent(run: Path, name: str) -> None:
    """Configuration and weights of a run, as the agent or the variant that the name begins with."""
    config, out = read_config(run), PRETRAINED / name
    if not name.startswith(f"{config.agent}-"):
        config = as_variant(config, name.rsplit("-", 1)[0])
    config = replace(config, evaluation=replace(config.evaluation, keep_weights=False))
    for old in (CONFIG, "weights.safetensors", EVALUATIONS):
        (out / old).unlink(missing_ok=True)
    card = (out / CARD).read_text() if (out / CARD).exists() else ""
    (out / CARD).unlink(missing_ok=True)
    with RunFolder(out, config) as folder:
        folder.save_weights(weights_identity(run).step, read_weights(run))
    (out / "checkpoints").rmdir()
    (out / ".lock").unlink(missing_ok=True)
    if config.agent == read_config(run).agent:  # variants have no curves of their own
        shutil.copyfile(run / EVALUATIONS, out / EVALUATIONS)
    (out / CARD).write_text(card)


def write_card(name: str, intro: str, facts: list[list[str]], rows: list[list[str]], notes: list[str]) -> None:
    """A table of facts, and one of success rates with a row per evaluation."""
    lines = [f"# {name}", "", intro, "", "| | |", "|---|---|", *(f"| {key} | {text} |" for key, text in facts), ""]
    sets = {label: json.loads(Path(file).read_text()) for label, file in rows}
    about = next(iter(sets.values()))["about"]
    options = f"--episodes {about['episodes']} --seed {about['evaluation_seed']} --training --json"
    lines += [
        f"Zero-shot success on {about['episodes']} unseen tasks of each difficulty, from the side opposite to the goal",
        f"(`skipper evaluate {name} {options}`,",
        f"with the options that a row names; raw outputs in `{Path(rows[0][1]).parent}`):",
        "",
    ]
    names = [level for level in next(iter(sets.values()))["sets"] if level != "training"]
    lines += [f"| | {' | '.join(names)} | mean | deaths | its training tasks |", "|---" * (len(names) + 4) + "|"]
    for label, found in sets.items():
        rates = [found["sets"][level]["success"] for level in names]
        deaths = sum(found["sets"][level]["deaths"] for level in names) / len(names)
        numbers = [*(f"{rate:.3f}" for rate in rates), f"**{sum(rates) / len(rates):.3f}**", f"{deaths:.3f}"]
        lines.append(f"| {label} | {' | '.join(numbers)} | {found['sets']['training']['success']:.2f} |")
    (PRETRAINED / name / CARD).write_text("\n".join([*lines, "", *notes]) + "\n")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("run", type=Path)
    parser.add_argument("--intro", required=True)
    parser.add_argument("--fact", nargs=2, action="append", default=[])
    parser.add_argument("--row", nargs=2, action="append", required=True)
    parser.add_argument("--note", action="append", default=[])
    given = parser.parse_args()
    copy_agent(given.run, given.name)
    write_card(given.name, given.intro, given.fact, given.row, given.note)


if __name__ == "__main__":
    main()
