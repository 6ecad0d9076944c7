"""``skipper evaluate``: success rates on unseen tasks."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import tyro
from rich.console import Console

from skipper.agents.policy_function import load_policy
from skipper.agents.registry import BASELINES
from skipper.commands.options import (
    OptionalRunArgument,
    SplitOption,
    WorldOptions,
    changed_world,
    default_world,
    evaluation_sets,
    play_sets,
    summaries,
)
from skipper.commands.tables import results_table
from skipper.config import FIRST_REPORTED_SEED, EvaluationConfig, Replan
from skipper.envs.benchmarks import find_benchmark
from skipper.envs.registry import DEFAULT_FAMILY, Family, TaskSet, find_family
from skipper.schema import content_hash, to_dict
from skipper.training.evaluate import TRAINING, Episodes, summarise
from skipper.training.load import LoadedAgent, load
from skipper.training.pretrained import find_run
from skipper.training.run_folder import kept_steps, read_config, weights_identity
from skipper.training.state_file import write_atomically

SEEDS_NOTE = f"seeds 0 to {FIRST_REPORTED_SEED - 1} are for tuning; report from {FIRST_REPORTED_SEED} up"


# Options that change how a trained agent decides.
PLANNING = ("oracle_parts", "checkpoints", "max_vertices", "prune_vertices", "edge_backups")
DECISIONS = ("revisit_penalty", "ensemble", "replan", *PLANNING)
POLICY = ("weights", "benchmark", "training_seed")  # what only another library's agent needs


class Played(NamedTuple):
    """What was played, and how it ended."""

    about: dict[str, Any]  # agent and environment; of a run also seed, steps, weights and decision-time aids
    sets: dict[str, Episodes]
    more: dict[str, Any] = {}  # learning curve and comparison with ground truth, where asked for


@dataclass(frozen=True)
class Evaluate:
    """Play unseen tasks of every evaluation set and print success rates with 95% intervals.

    Every task is played once. "steps" is the mean length of all episodes; success, deaths and timeouts are shares of
    all episodes and sum to 1. A death is an episode that terminated without success. Choose settings on the split
    "tuning" and with seeds 0 to 19; report from the split "evaluation" and seeds from 20 up.

    Examples: skipper evaluate runs/first --episodes 400
              skipper evaluate skipper-regen-50 --seed 20
              skipper evaluate --agent optimal --dynamics walls --difficulties 0.4 --json
              skipper evaluate --policy my_agent:act --seed 20
    """

    run_folder: OptionalRunArgument = None
    """Folder of a trained agent, or the name of a pretrained one; without either, name a baseline with --agent, or
    another library's agent with --policy."""
    agent: Annotated[str | None, tyro.conf.arg(metavar="|".join(BASELINES))] = None
    """A baseline, which needs no training; or, with a run of Skipper, another variant, such as skipper-once, that plays
    with the run's networks."""
    policy: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION")] = None
    """Another library's agent: a function from observations (B, W, H, C) to B actions, or one without arguments that
    returns it. docs/benchmarks.md shows examples."""
    weights: Path | None = None
    """File of the policy's weights: the function of --policy gets its path, and returns the policy. The JSON object
    names its content, so that "skipper compare" knows one trained policy from another."""
    benchmark: str | None = None
    """What the policy was trained on, such as skipper/LavaWorld-50-v0 ("skipper environments" lists them)."""
    training_seed: int | None = None
    """The policy's training seed, which decides the training tasks of its benchmark."""
    env: str | None = None
    """Environment of a baseline or a policy; a run has its own."""
    revisit_penalty: float | None = None
    """Share of its value that an action, or an edge of a plan, loses for each earlier time that the episode took it in
    the same state, against walking in circles; by default as the run has it. 0 turns it off."""
    ensemble: int | None = None
    """Average a trained agent's estimates over this many symmetric images of each state. All 8 of a square grid make
    fewer errors than one, for eight times the work. By default as the run has it."""
    replan: Replan | None = None
    """When an agent plans: on a "trigger", which is a checkpoint reached or a timeout, or at every "step". By default
    as the run has it."""
    oracle_parts: tuple[str, ...] | None = None
    """Parts of an agent that plans which ground truth replaces, such as "edges" (oracle plan) and "policy" (oracle
    policy); by default as the run has it."""
    checkpoints: int | None = None
    """Checkpoints that Skipper imagines for a plan; by default as the run has it."""
    max_vertices: int | None = None
    """Vertices that Skipper's pruning keeps (needs --prune-vertices True); by default as the run has it."""
    prune_vertices: bool | None = None
    """Whether Skipper prunes vertices; by default as the run has it."""
    edge_backups: int | None = None
    """Sweeps that lengthen an edge to at least its first step and the rest of the way; by default as the run has it."""
    step: int | None = None
    """Play with the weights of the evaluation at this step, of a run that keeps them (--keep-weights); by default with
    the newest."""
    training: bool = False
    """Also play the tasks that the run, or the policy, was trained on, each once; for a run with a new task in every
    episode, new ones like these."""
    curve: int = 0
    """Also play this many tasks of every set with the weights of every evaluation that the run keeps (--keep-weights):
    a learning curve, the field "curve" of the JSON object."""
    truth: bool = False
    """Also compare an agent that plans with ground truth, as "skipper diagnose" does: the field "truth" of the JSON
    object and of the records of its curve."""
    episodes: int = 1000
    """Tasks per evaluation set."""
    split: SplitOption = "evaluation"
    seed: int = 0
    """Decides the tasks and everything that happens in them; another seed gives other tasks."""
    json: bool = False
    """Print one JSON object instead of the table: what was played, and for every evaluation set the results with one
    letter per task: s success, d death, t timeout."""
    out: Path | None = None
    """With --json: write the object to this file instead of printing it."""
    world: WorldOptions = field(default_factory=default_world)

    def run(self) -> None:
        """Print the table or the object, or write the object."""
        self._check_who()
        if not self.json and (self.curve or self.truth or self.out):
            raise ValueError("--curve, --truth and --out need --json")
        if self.policy is not None:
            played = self._foreign(self.policy)
        elif self.run_folder is not None:
            played = self._trained(find_run(self.run_folder))
        else:
            played = self._baseline(str(self.agent))
        if self.json:
            self._write(json.dumps(self._object(played), indent=2))
            return
        console, about = Console(), played.about
        family = find_family(about["env"])
        console.print(results_table({about["agent"]: summaries(played.sets)}, family.set_kind))
        if caveat := family.caveat():
            console.print(caveat, highlight=False)
        if self.split == "evaluation" and min(self.seed, about.get("seed", self.seed)) < FIRST_REPORTED_SEED:
            console.print(SEEDS_NOTE, highlight=False)

    def _check_who(self) -> None:
        """Refuse to play nobody, or two agents at once."""
        if self.policy is None:
            if given := [name for name in POLICY if getattr(self, name) is not None]:
                raise ValueError(f"--{given[0].replace('_', '-')} needs --policy")
            if self.run_folder is None and self.agent is None:
                raise ValueError(
                    f"name an agent: a run folder, a pretrained agent, --agent {' or '.join(BASELINES)}, or "
                    "--policy module:function"
                )
        elif self.run_folder is not None or self.agent is not None:
            raise ValueError("--policy stands alone: name neither a run folder nor --agent")

    def _write(self, text: str) -> None:
        if self.out is None:
            print(text)
            return
        self.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.out, lambda temporary: temporary.write_text(text + "\n", encoding="utf-8"))

    def _object(self, played: Played) -> dict[str, Any]:
        """What --json prints; ``skipper compare`` reads it."""
        tasks: dict[str, Any] = {"split": self.split, "evaluation_seed": self.seed, "episodes": self.episodes}
        if caveat := find_family(played.about["env"]).caveat():
            tasks["caveat"] = caveat
        return played.more | {
            "about": played.about | tasks,
            "sets": {
                name: summarise(episodes)._asdict() | {"outcomes": episodes.outcomes}
                for name, episodes in played.sets.items()
            },
        }

    def _check_no_run(self) -> None:
        """Refuse what only the folder of a run can give."""
        if self._settings() or self.step is not None:
            raise ValueError("--step, --revisit-penalty, --ensemble and --replan need the folder of a run")
        if self.curve or self.truth:
            raise ValueError("--curve and --truth need the folder of a run")

    def _foreign(self, policy: str) -> Played:
        """Another library's agent; with its benchmark and training seed, also on its training tasks."""
        self._check_no_run()
        build = load_policy(policy, self.weights)
        benchmark = None if self.benchmark is None else find_benchmark(self.benchmark)
        env = benchmark.env if benchmark else self.env or DEFAULT_FAMILY
        if self.env not in (None, env):
            raise ValueError(f"{self.benchmark} is of the environment {env!r}, not of {self.env!r}")
        family = find_family(env)
        world = self.world.changed(family.world("paper"))
        if benchmark and world != benchmark.world:
            raise ValueError("a benchmark has its own world: leave out the options of worlds, or --benchmark")
        about: dict[str, Any] = {"agent": policy, "env": env, "world": to_dict(world)}
        if benchmark:
            about |= {"benchmark": self.benchmark, "tasks": benchmark.tasks}
        if self.training_seed is not None:
            about["seed"] = self.training_seed
        if self.weights is not None:
            about["weights"] = hashlib.sha256(self.weights.read_bytes()).hexdigest()[:16]
        sets = evaluation_sets(family, world, self.episodes, self.seed, self.split)
        if self.training:
            if benchmark is None or self.training_seed is None or not benchmark.tasks:
                raise ValueError("--training needs --training-seed, and a --benchmark with fixed tasks")
            trained = family.training_tasks(world, benchmark.tasks, self.training_seed)
            sets |= self._training_set(family, world, trained)
        return Played(about, play_sets(build, family, sets, self.seed))

    def _training_set(self, family: Family, world: Any, trained: TaskSet | None) -> dict[str, TaskSet]:
        some = None if trained is None else trained.subset(np.arange(min(self.episodes, len(trained))))
        count = self.episodes if some is None else len(some)
        return {TRAINING: family.training_evaluation(world, some, count, self.seed)}

    def _baseline(self, agent: str) -> Played:
        self._check_no_run()
        if self.training:
            raise ValueError("--training needs the folder of a run, or --policy with its benchmark")
        env = self.env or DEFAULT_FAMILY
        family = find_family(env)
        world = self.world.changed(family.world("paper"))
        sets = evaluation_sets(family, world, self.episodes, self.seed, self.split)
        return Played({"agent": agent, "env": env, "world": to_dict(world)}, play_sets(agent, family, sets, self.seed))

    def _trained(self, run: Path) -> Played:
        loaded = load(run, self.seed, self.agent, step=self.step, **self._settings())
        config = loaded.config
        if self.env not in (None, config.env):
            raise ValueError(f"the run is of the environment {config.env!r}, not of {self.env!r}")
        family, world = find_family(config.env), changed_world(config, self.world)
        sets = evaluation_sets(family, world, self.episodes, self.seed, self.split)
        if self.training:
            trained = family.training_tasks(world, config.tasks, config.seed) if config.tasks else None
            sets |= self._training_set(family, world, trained)
        step, digest = weights_identity(run, self.step)
        about: dict[str, Any] = {"agent": config.agent, "env": config.env, "world": to_dict(world)}
        about |= {"seed": config.seed, "tasks": config.tasks, "steps": step, "weights": digest}
        # Neither threads nor evaluations during training change what is learned.
        about["settings"] = content_hash(replace(read_config(run), seed=0, threads=1, evaluation=EvaluationConfig()))
        about |= vars(config.decision)
        planning: Any = getattr(config, "planning", None)
        if hasattr(planning, "replan") and not planning.always_goal:
            about["replan"] = planning.replan
        if changed := {name: value for name, value in self._settings().items() if name in PLANNING}:
            about["planning"] = changed
        # Played first, so that what is measured besides does not change which random numbers the agent draws.
        played, more = play_sets(loaded.agent, family, sets, self.seed), dict[str, Any]()
        if self.truth:
            more["truth"] = self._truth(loaded, family, sets)
        if self.curve:
            more["curve"] = [self._record(run, kept, family, sets) for kept in kept_steps(run)]
        return Played(about, played, more)

    def _record(self, run: Path, step: int, family: Family, sets: dict[str, TaskSet]) -> dict[str, Any]:
        """Results with the weights of one evaluation, as in ``evaluations.jsonl``."""
        loaded = load(run, self.seed, self.agent, step=step, **self._settings())
        some = {name: tasks.subset(np.arange(min(self.curve, len(tasks)))) for name, tasks in sets.items()}
        record: dict[str, Any] = {"step": step}
        for name, row in summaries(play_sets(loaded.agent, family, some, self.seed)).items():
            record[name] = row._asdict()
        return record | ({"truth": self._truth(loaded, family, some)} if self.truth else {})

    def _truth(self, loaded: LoadedAgent, family: Family, sets: dict[str, TaskSet]) -> dict[str, Any]:
        from skipper.analysis.oracle_metrics import PLANNING_ACTORS, measure_truth

        actor = loaded.agent
        if not isinstance(actor, PLANNING_ACTORS):
            raise ValueError(f"--truth: {loaded.config.agent!r} does not plan")
        return {name: measure_truth(actor, family, tasks, self.seed) for name, tasks in sets.items()}

    def _settings(self) -> dict[str, Any]:
        """The settings of decisions that were given."""
        given = {name: getattr(self, name) for name in DECISIONS}
        return {name: value for name, value in given.items() if value is not None}
