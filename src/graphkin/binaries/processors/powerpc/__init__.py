"""PowerPC of 32 and of 64 bits."""
