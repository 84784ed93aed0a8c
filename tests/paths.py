"""Where tests find what they read."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BINARIES = REPOSITORY / "tests" / "binaries" / "files"
"""Small binaries of several formats and processors; ``build.py`` there says how they were made."""
