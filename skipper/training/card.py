"""The card of a run for those who get it: what was trained, how well it does, how to use it."""

import json
from pathlib import Path
from typing import Any

from skipper.config import RunConfig
from skipper.training.pretrained import CARD
from skipper.training.recorder import EVALUATIONS, read_evaluations
from skipper.training.run_folder import WeightsIdentity, read_config, weights_identity


def model_card(run: Path, repo: str) -> str:
    """The card of a run on a hub, in Markdown with its facts in front, where the hub looks for them.

    A card that the folder holds is kept; otherwise one is written from the configuration and the last evaluation.
    """
    config, weights = read_config(run), weights_identity(run)
    last = read_evaluations(run)[-1] if (run / EVALUATIONS).exists() else {"step": weights.step}
    success = {name: row["success"] for name, row in last.items() if isinstance(row, dict)}
    body = (run / CARD).read_text(encoding="utf-8") if (run / CARD).exists() else _body(config, weights, last, repo)
    if body.startswith("---\n"):
        return body
    return f"{_front_matter(config, success, repo)}\n{body.rstrip()}\n\n{_usage(repo)}"


def _front_matter(config: RunConfig, success: dict[str, float], repo: str) -> str:
    """YAML, which takes JSON for values."""
    entries: dict[str, Any] = {
        "library_name": "skipper-rl",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["reinforcement-learning", "planning", config.agent, config.env],
    }
    if success:
        metrics = [
            {"type": "success_rate", "name": f"success rate, {name}", "value": share} for name, share in success.items()
        ]
        task = {"type": "reinforcement-learning", "name": "reinforcement learning"}
        results = {"task": task, "dataset": {"type": config.env, "name": config.env}, "metrics": metrics}
        entries["model-index"] = [{"name": repo.split("/")[-1], "results": [results]}]
    lines = [f"{name}: {json.dumps(value)}" for name, value in entries.items()]
    return "\n".join(["---", *lines, "---", ""])


def _body(config: RunConfig, weights: WeightsIdentity, last: dict[str, Any], repo: str) -> str:
    tasks = f"{config.tasks} fixed tasks" if config.tasks else "a new task every episode"
    facts = {
        "agent": f"`{config.agent}`, preset `{config.preset}`",
        "environment": f"`{config.env}`, {tasks}",
        "training": f"{weights.step:,} of {config.steps:,} environment steps, seed {config.seed}",
        "weights": f"`{weights.digest}`, safetensors",
    }
    lines = [f"# {repo.split('/')[-1]}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {text} |" for name, text in facts.items()]
    rows = {name: row for name, row in last.items() if isinstance(row, dict)}
    if rows:
        lines += ["", f"The evaluation at step {last['step']:,}, during training:", ""]
        lines += ["| tasks | success | 95% interval | episodes |", "|---|---|---|---|"]
        for name, row in rows.items():
            lines.append(
                f"| {name} | {row['success']:.3f} | {row['low']:.3f} to {row['high']:.3f} | {row['episodes']} |"
            )
    return "\n".join(lines) + "\n"


def _usage(repo: str) -> str:
    return f"""## Use

```python
import skipper  # in a clone of skipper-rl: pip install '.[hub]'

agent = skipper.load("hf:{repo}")
action = agent.act(observation)
```

`skipper watch hf:{repo} --out plan.html` shows it think, `skipper evaluate hf:{repo}` measures it.
"""
