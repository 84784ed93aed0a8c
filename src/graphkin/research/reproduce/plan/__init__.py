"""Which models are trained for which table, and what fills which cell."""
