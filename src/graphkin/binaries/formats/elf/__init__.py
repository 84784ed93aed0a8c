"""ELF: executables, libraries and objects."""
