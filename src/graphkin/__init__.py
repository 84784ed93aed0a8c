"""graphkin learns how similar graphs are, and finds a graph's kin."""
