"""Agents, each in one file over shared parts."""
