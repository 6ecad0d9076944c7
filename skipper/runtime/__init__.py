"""What the machine needs: compiled functions, threads, hashes."""
