"""Director: a manager sets goals in the latent space of a world model, a worker reaches them (Hafner et al. 2022)."""
