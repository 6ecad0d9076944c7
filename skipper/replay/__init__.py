"""Experience: whole episodes stored once, hindsight samples that point into them, priorities."""
