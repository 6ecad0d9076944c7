"""Pages that show how agents plan and act."""
