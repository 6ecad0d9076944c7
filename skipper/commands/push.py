"""``skipper push``: share a trained agent."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from skipper.commands.options import RunArgument


@dataclass(frozen=True)
class Push:
    """Share a trained agent on the Hugging Face Hub: its configuration, its weights and a card.

    Others load it with skipper.load("hf:USER/NAME"), and commands take hf:USER/NAME wherever they take a run. The card
    is README.md of the folder, or is written from the configuration and the last evaluation. Log in first: hf auth
    login. Needs the extra "hub": pip install 'skipper-rl[hub]'.

    Example: skipper push runs/first me/skipper-first
    """

    run_folder: RunArgument
    """Folder of a trained agent, or the name of a pretrained one."""
    repo: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="USER/NAME")]
    """Where to; made if there is none, and overwritten otherwise."""
    private: bool = False
    """Only you can see a model that is made."""

    def run(self) -> None:
        """Upload, and print the address."""
        from skipper.training.hub import push
        from skipper.training.pretrained import HUB, find_run

        repo = self.repo.removeprefix(HUB)
        print(f"pushed to {push(find_run(self.run_folder), repo, self.private)}")
        print(f'load it with: skipper.load("{HUB}{repo}")')
