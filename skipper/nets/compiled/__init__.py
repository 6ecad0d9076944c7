"""Compiled twins of frozen modules; only ``nets.frozen`` chooses between a module and its twin."""
