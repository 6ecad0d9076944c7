"""The model-free baseline: a distributional double DQN."""
