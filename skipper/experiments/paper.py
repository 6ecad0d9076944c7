"""Every figure and table of the paper as data: which agents, how they are trained, how they play, what is drawn."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from skipper.experiments.define import Item, Series
from skipper.experiments.works import options
from skipper.runtime.checks import nearest_name

NUMBERS = (1, 5, 25, 50, 100, 0)  # of training tasks; 0: a new task every episode
ONCE = "skipper-once"
SKIPPERS = (ONCE, "skipper-regen")
BASELINES = ("leap", "director", "modelfree")
AGENTS = (*SKIPPERS, "modelfree", "leap", "director")


def number_name(tasks: int) -> str:
    """A number of training tasks as the paper writes it."""
    return str(tasks) if tasks else "inf"


def tasks_name(tasks: int) -> str:
    """A number of training tasks with its noun."""
    return "1 task" if tasks == 1 else f"{number_name(tasks)} tasks"


def _agents(names: Iterable[str], numbers: Iterable[int] = (50,), **training: Any) -> tuple[Series, ...]:
    """Agents as their presets have them, for some numbers of training tasks."""
    names = tuple(names)
    return tuple(Series(name, name, number, options(**training)) for number in numbers for name in names)


def _over_numbers(agent: str) -> tuple[Series, ...]:
    return tuple(replace(each, label=tasks_name(each.tasks)) for each in _agents([agent], NUMBERS))


def _once(label: str, **play: Any) -> Series:
    """Skipper-once whose networks play with other settings."""
    return Series(label, ONCE, play=options(**play))


def _walls(series: Series) -> Series:
    """Director in worlds with walls instead of lava."""
    return replace(series, label="director, walls", training=options(dynamics="walls"))


_CURVES = [
    Item(
        f"fig-{number_name(number)}-tasks",
        (f"fig:{number_name(number)}_envs", *(["fig:50_envs_app"] if number == 50 else [])),
        f"success over training, all agents; training tasks: {number_name(number)}",
        "curves",
        _agents(AGENTS, [number]),
    )
    for number in NUMBERS
]
_EACH_AGENT = [
    Item(
        f"fig-{short}-num-tasks",
        (f"fig:{short}_num_envs",),
        f"{agent} over training, a curve per number of training tasks",
        "curves",
        _over_numbers(agent),
    )
    for agent, short in zip(AGENTS, ("once", "regen", "modelfree", "leap", "director"), strict=True)
]
_TABLES = [
    Item(
        f"tab-{short}",
        (f"tab:{short}",),
        f"{agent} against the baselines: significance and seeds needed",
        "table",
        _agents([agent, *BASELINES], NUMBERS),
    )
    for agent, short in zip(SKIPPERS, ("once", "regen"), strict=True)
]
_ALL_NUMBERS = _agents(AGENTS, NUMBERS)
_ABLATIONS = [
    Item(
        "fig-suppress",
        ("fig:once_50_envs_suppress",),
        "delusion suppression: success, errors of delusional edges, delusional targets, optimal targets",
        "suppression",
        (
            Series("suppressed", ONCE, training=options(delusion_scale=0.25)),
            Series("not suppressed", ONCE, training=options(delusion_scale=0.0)),
        ),
        truth=True,
    ),
    Item(
        "fig-leap-suppress",
        ("fig:50_envs_leap_suppress",),
        "LEAP with and without delusion suppression",
        "curves",
        _agents(["leap", "leap-suppress"]),
    ),
    Item(
        "fig-director-walls",
        ("fig:50_envs_director_wall",),
        "Director in worlds with lava and with walls",
        "curves",
        (Series("director, lava", "director"), _walls(Series("", "director"))),
    ),
    Item(
        "fig-num-tasks-director-walls",
        ("fig:num_envs_all_director_wall",),
        "final success against the number of training tasks, Director in worlds with walls",
        "tasks",
        tuple(_walls(each) if each.agent == "director" else each for each in _ALL_NUMBERS),
    ),
    Item("fig-slip", ("fig:50_envs_stoch",), "actions slip with probability 0.1", "curves", _agents(AGENTS, slip=0.1)),
    Item(
        "fig-no-spatial-abstraction",
        ("fig:50_envs_once_local",),
        "skipper-once with and without spatial abstraction",
        "curves",
        (
            Series("local fields", ONCE),
            Series("whole states", ONCE, training=options(spatial_abstraction=False)),
        ),
    ),
    Item(
        "fig-ground-truth",
        ("fig:50_envs_GT",),
        "skipper-once with true plans, with the true policy, and with both",
        "curves",
        (
            _once("learned"),
            _once("oracle plan", oracle_parts=("edges",)),
            _once("oracle policy", oracle_parts=("policy",)),
            _once("both", oracle_parts=("edges", "policy")),
        ),
    ),
    Item(
        "fig-fixed-starts",
        ("fig:50_envs_non_uniform",),
        "training from the tasks' own starts instead of uniform ones",
        "curves",
        _agents(AGENTS, start="fixed"),
    ),
    Item(
        "fig-no-prune",
        ("fig:50_envs_once_no_prune",),
        "12 vertices pruned from 32, and 12 generated without pruning",
        "bars",
        (
            _once("12 of 32", checkpoints=30, max_vertices=12, prune_vertices=True),
            _once("12, no pruning", checkpoints=10, prune_vertices=False),
            _once("as the preset"),
        ),
    ),
    Item(
        "fig-num-vertices",
        ("fig:50_envs_once_ckpts",),
        "number of vertices that pruning keeps of 32",
        "bars",
        tuple(_once(f"{k} of 32", checkpoints=30, max_vertices=k, prune_vertices=True) for k in (4, 6, 8, 12, 16, 24)),
    ),
    Item(
        "fig-always-goal",
        ("fig:50_envs_once_always_goal",),
        "planning against always aiming at the goal",
        "curves",
        _agents([ONCE, "skipper-goal"]),
    ),
]
PENALTIES = {"skipper-regen": 0.5, "modelfree": 0.1, "leap": 0.5}  # of each agent's preset or tuning


def _aids(penalty: float) -> dict[str, dict[str, Any]]:
    """Decision-time aids, alone and together."""
    images = 8
    return {
        "no aids": {},
        "revisit penalty": {"revisit_penalty": penalty},
        "ensemble": {"ensemble": images},
        "both": {"revisit_penalty": penalty, "ensemble": images},
    }


_OTHERS = [
    Item(
        "pictures",
        ("fig:proxy_problem", "fig:example_delusion", "fig:support_override", "fig:rds_director"),
        "a proxy problem, a delusional plan, one histogram with two supports, what Director sees",
        "pictures",
        _agents(["skipper-regen", "director"]),
        seeds=1,
    ),
    Item(
        "failure-rate",
        ("Timeout and Pruning Threshold",),
        "failure rate of the checkpoint policy against true distance",
        "walks",
        _agents([ONCE]),
        truth=True,
    ),
    Item(
        "aids",
        (),
        "beyond the paper: decision-time aids, which all other items leave out",
        "bars",
        tuple(
            Series(f"{agent}, {label}", agent, play=options(**play))
            for agent, penalty in PENALTIES.items()
            for label, play in _aids(penalty).items()
        ),
    ),
    Item(
        "smoke",
        (),
        "all kinds of agents in tiny worlds, to see that everything runs",
        "curves",
        (
            *_agents(SKIPPERS, [2], training_targets="random", generator_width=4),
            *_agents(["modelfree", "director"], [2]),
            *_agents(["leap"], [2], generator_width=4, generator_steps=300),
        ),
        preset="debug",
        steps=600,
        seeds=2,
        episodes=20,
    ),
]
_NUMBER_OF_TASKS = Item(
    "fig-num-tasks",
    ("fig:num_envs_all",),
    "final success against the number of training tasks, all agents",
    "tasks",
    _ALL_NUMBERS,
)

ITEMS = {item.name: item for item in (*_CURVES, _NUMBER_OF_TASKS, *_EACH_AGENT, *_TABLES, *_ABLATIONS, *_OTHERS)}


def find_item(name: str) -> Item:
    """The item called ``name``."""
    if name not in ITEMS:
        raise ValueError(nearest_name("item", name, ITEMS))
    return ITEMS[name]
