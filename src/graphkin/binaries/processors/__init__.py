"""What instructions do to control flow, and how jump tables look, for each processor."""
