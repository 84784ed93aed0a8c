"""The paper: its tasks, its baselines, and its tables reproduced."""
