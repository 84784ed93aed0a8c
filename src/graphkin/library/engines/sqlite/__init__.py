"""A library as one SQLite file, searched in memory by faiss."""
