"""Compile what runs need, so that the tests find it in the cache instead of compiling it in every process."""

from tests.soak.fork_server import warm_up
from tests.soak.kills import SETTINGS, warm_up_commands

if __name__ == "__main__":
    warm_up(warm_up_commands(SETTINGS.values()))
