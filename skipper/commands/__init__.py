"""The commands of ``skipper``, one file each; ``cli.py`` puts them together."""
