"""``skipper completion``: the script by which a shell completes commands and options."""

from dataclasses import dataclass
from typing import Any, Literal

import tyro

Shell = Literal["bash", "zsh", "fish"]


@dataclass(frozen=True)
class Completion:
    """Print the script by which a shell completes commands and options.

    It knows the options of the default agent and environment. Open a new shell after one of these:

    Examples: skipper completion bash >> ~/.bashrc
              skipper completion zsh > ~/.zfunc/_skipper
              skipper completion fish > ~/.config/fish/completions/skipper.fish
    """

    shell: tyro.conf.Positional[Shell]
    """The shell."""

    def run(self, commands: Any) -> None:
        """Print the script for the command line of this type."""
        config = (tyro.conf.OmitSubcommandPrefixes,)
        tyro.cli(commands, prog="skipper", args=["--tyro-write-completion", self.shell, "-"], config=config)
