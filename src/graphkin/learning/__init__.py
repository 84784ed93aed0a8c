"""How models learn and how they are measured: losses, the training loop, evaluation."""
