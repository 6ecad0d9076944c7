"""``skipper reproduce``: the paper's figures and tables by name."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console

from skipper.commands.help import entry
from skipper.config import RunConfig
from skipper.experiments.cost import Costs
from skipper.experiments.define import DEFAULT_ROOT, Item, Scale, missing, works_of
from skipper.experiments.live_table import LiveTable, duration
from skipper.experiments.paper import ITEMS, find_item
from skipper.experiments.works import Training, Work
from skipper.runtime.checks import nearest_name

if TYPE_CHECKING:
    from skipper.experiments.execute import Progress
    from skipper.experiments.pool import Pool

MEASURED = 2.0  # seconds of training, and of evaluation, for an estimate


@dataclass(frozen=True)
class Reproduce:
    """Make a figure or table of the paper: its runs, its figure, its tables and a report.

    Runs that are in the output folder already are not made again, and items share theirs: variants of Skipper that play
    with the same networks are trained once. What was interrupted continues from its checkpoint; what fails is tried
    again, and reported at the end. Ctrl-C saves all runs; the same command continues. One core per run, and as many
    runs at a time as there are cores, here or on a Ray cluster.

    Examples: skipper reproduce --list
              skipper reproduce fig-50-tasks --seeds 5 --out runs/paper
              skipper reproduce tab-once --agents skipper-once modelfree
              skipper reproduce smoke --out runs/smoke
    """

    name: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="NAME")] = None
    """The figure or table, as --list shows it."""
    list: bool = False
    """Show all figures and tables with their labels in the paper, how many of their runs the output folder holds, and
    how long the others take on one core of this machine, which is measured for half a minute."""
    seeds: int | None = None
    """Training seeds of every agent. The paper has 20; by default 5."""
    first_seed: int | None = None
    """The first training seed of all agents; by default, for each agent, one not used to develop it."""
    steps: int | None = None
    """Environment steps of every training run; by default those of the preset."""
    preset: str | None = None
    """Preset of all runs; by default "fast"."""
    agents: tuple[str, ...] | None = None
    """Make only the runs of these agents; by default, of all that the figure or table compares."""
    out: Path = DEFAULT_ROOT
    """Folder for runs, evaluations, figures and the report."""
    ray: str | None = None
    """Address of a Ray cluster, or "auto": runs are made on all of its nodes."""
    dry_run: bool = False
    """Print the runs as commands, one per line, for any other scheduler. Evaluations come after all trainings."""

    def run(self) -> None:
        """List the items, print the commands, or make the runs and the report."""
        for name, number in (("--seeds", self.seeds), ("--steps", self.steps)):
            if number is not None and number < 1:
                raise ValueError(f"{name} wants at least 1, got {number}")
        items = list(ITEMS.values()) if self.list or self.name is None else [find_item(self.name)]
        check_agents(self.agents, items)
        scale = Scale(self.preset, self.seeds, self.first_seed, self.steps, self.agents)
        if self.list:
            show_items(scale, self.out)
            return
        if self.name is None:
            raise ValueError("name a figure or table; `skipper reproduce --list` shows all of them")
        item = find_item(self.name)
        works = works_of(item, scale)
        if self.dry_run:
            for work in works:
                print(shlex.join(["skipper", *work.command(self.out)]))
            return
        self._make(item, scale, works)

    def _make(self, item: Item, scale: Scale, works: Sequence[Work]) -> None:
        from skipper.experiments.report import HTML, is_reported, write_report
        from skipper.experiments.results import is_archive, read_experiments, remember

        wanted = missing(works, self.out, weights=item.needs_weights)
        before = read_experiments(self.out).get(item.name)
        known = before is not None and {work.name for work in works_of(item, before)} == {work.name for work in works}
        archived = is_archive(self.out)
        if archived and (wanted or not known):
            raise ValueError(f"{self.out} is an archive, in which nothing is trained; choose another --out")
        if not known:
            if before is not None:
                print(f"{item.name} was made here with other options; the report now shows the new ones")
            remember(self.out, item.name, scale)
        if not wanted and (archived or is_reported(works, self.out)):
            page = (self.out / item.name if archived else self.out) / HTML
            print(f"all {len(works)} runs of {item.name} are there: nothing to do; see {page}")
            return
        print(f"{item.name}: {len(wanted)} of {len(works)} runs are to be made")
        failed = make_runs(wanted, self.out, self.ray) if wanted else []
        if item.layout == "pictures" and not failed:
            from skipper.commands.pictures import draw_pictures

            draw_pictures([work for work in works if isinstance(work, Training)], self.out)
        for path in write_report(self.out):
            print(f"wrote {path}")
        if failed:
            reasons = "; ".join(f"{run.work.name}: {run.error.splitlines()[-1]}" for run in failed)
            raise ValueError(f"{len(failed)} of {len(works)} runs failed: {reasons}")


def check_agents(agents: Sequence[str] | None, items: Sequence[Item]) -> None:
    """Refuse agents that none of the items compares, and a table of significance without both of its sides."""
    if agents is None:
        return
    if not agents:
        raise ValueError("--agents wants at least one agent")
    compared = dict.fromkeys(series.agent for item in items for series in item.series)
    for agent in agents:
        if agent not in compared:
            what = f"agent of {items[0].name}" if len(items) == 1 else "agent"
            raise ValueError(nearest_name(what, agent, compared))
    if len(items) == 1 and lacks_a_side(items[0], agents):
        first = items[0].series[0].agent
        raise ValueError(f"{items[0].name} compares {first} with others: --agents must name it and one of them")


def lacks_a_side(item: Item, agents: Sequence[str] | None) -> bool:
    """Whether a table of significance would be without its first agent, or without any other."""
    first, *others = dict.fromkeys(series.agent for series in item.series)
    return item.layout == "table" and agents is not None and not (first in agents and set(others) & set(agents))


def make_runs(works: Sequence[Work], out: Path, address: str | None) -> Sequence["Progress"]:
    """Make the runs; returns those that failed."""
    from skipper.experiments.execute import execute
    from skipper.training.run import Stop

    pool, stop = open_pool(out, address), Stop()
    with closing(pool), LiveTable(pool.slots()) as table, stop.listening():
        runs = execute(works, out, pool, table, stop)
    if stop.asked:
        print("saved; the same command continues")
        sys.exit(130)
    return [run for run in runs if run.state == "failed"]


def open_pool(out: Path, address: str | None) -> "Pool":
    """Processes on this machine, or a cluster."""
    if address is None:
        from skipper.experiments.pool import LocalPool

        return LocalPool(out)
    try:
        from skipper.experiments.ray_pool import RayPool
    except ModuleNotFoundError as error:
        raise ValueError(f"--ray needs Ray: pip install 'skipper-rl[ray]' ({error})") from None
    return RayPool(out, address)


def measure(config: RunConfig) -> tuple[float, float]:
    """Steps and episodes per second on one core."""
    from skipper.benchmarks.train import training_speed

    return training_speed(config, MEASURED)


def show_items(scale: Scale, out: Path) -> None:
    """Print all items."""
    costs, width = Costs(measure), Console().width
    print(f"Costs are those of one core of this machine; runs that are there are in {out}.")
    for item in ITEMS.values():
        works = works_of(item, scale)
        if not works or lacks_a_side(item, scale.agents):
            continue
        wanted = missing(works, out, weights=item.needs_weights)
        labels = f" ({', '.join(item.labels)})" if item.labels else ""
        there = f", {len(works) - len(wanted)} there" if len(wanted) < len(works) else ""
        cost = f"{len(works)} runs{there}; cost {duration(costs.seconds(wanted, out))}"
        print(entry(item.name, f"{item.about}{labels}. {cost}", width), end="", flush=True)
