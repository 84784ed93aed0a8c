"""Two binaries, function by function: which is which, what is the same, and what has changed."""
