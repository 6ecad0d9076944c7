"""The lava world: its layouts, tasks, environments and exact ground truth."""
