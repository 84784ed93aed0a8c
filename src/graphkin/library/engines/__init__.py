"""Where a library is kept: one interface, several engines."""
