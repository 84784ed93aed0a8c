"""From binaries and corpora to a library."""
