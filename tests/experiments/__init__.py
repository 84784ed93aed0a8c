"""Scripts of ``experiments/``: what they measure and fit."""
