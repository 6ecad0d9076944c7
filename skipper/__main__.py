"""``python -m skipper``: the command line, also where its script is not on the path."""

from skipper.cli import main

main()
