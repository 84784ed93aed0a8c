"""Results as pages that need nothing else."""
