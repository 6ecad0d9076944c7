"""``skipper pretrained``: the trained agents that come with the package."""

import json
from dataclasses import dataclass
from textwrap import fill

from rich.console import Console
from rich.table import Table

from skipper.commands.tables import narrow_table
from skipper.training.pretrained import CARD, PRETRAINED, Card, pretrained_names, read_card
from skipper.training.run_folder import weights_file


@dataclass(frozen=True)
class Pretrained:
    """List the trained agents that come with the package, with the main facts of their cards.

    Use their names in place of a run folder in any command that plays an agent, and in skipper.load(NAME). The table
    shows the share of 400 unseen tasks of each difficulty that an agent solves as it is.

    Examples: skipper pretrained
              skipper watch skipper-regen-50 --task 7 --out plan.html
    """

    json: bool = False
    """Print one JSON object instead: about, facts and success of each agent."""

    def run(self) -> None:
        """Print the table and the facts, or the object."""
        cards = {name: read_card(PRETRAINED / name) for name in pretrained_names()}
        if self.json:
            print(json.dumps({name: card._asdict() for name, card in cards.items()}, indent=2))
            return
        console = Console(highlight=False)
        console.print(success_table(cards), "")
        for name, card in cards.items():
            megabytes = weights_file(PRETRAINED / name).stat().st_size / 1e6
            console.print(f"[bold]{name}[/bold], {megabytes:.1f} MB")
            facts = [f"{key}: {text}" for key, text in card.facts.items() if key in ("trained by", "time")]
            for line in (card.about, *facts):
                console.print(fill(line, console.width, initial_indent="  ", subsequent_indent="  "), markup=False)
        console.print(f"\nAll facts and results: {PRETRAINED}/NAME/{CARD}", soft_wrap=True)
        console.print("See one think: skipper watch NAME --out plan.html")


def success_table(cards: dict[str, Card]) -> Table:
    """A row per agent, a column per evaluation set and one for the mean."""
    names = next(iter(cards.values())).success
    table = narrow_table(["solves unseen tasks"], list(names))
    for name, card in cards.items():
        table.add_row(name, *(f"{share:.3f}" for share in card.success.values()))
    return table
