"""Control flow from bytes, for any processor."""
