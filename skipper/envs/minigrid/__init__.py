"""MiniGrid's environments, fully observed."""
