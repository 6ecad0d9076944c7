"""The commands of ``skipper``, by what they are for; ``cli.py`` puts them together."""
