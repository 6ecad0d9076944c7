"""Experiments of the paper, their statistics and figures."""
