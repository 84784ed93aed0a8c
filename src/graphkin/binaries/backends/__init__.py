"""Readers of binaries, one for each way to read a file."""
