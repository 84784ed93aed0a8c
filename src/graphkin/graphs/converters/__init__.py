"""Graphs from other libraries and from files, and back."""
