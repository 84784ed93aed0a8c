"""Containers of code: each file here reads one, or a part of one, into an image."""
