"""PE: programs and libraries of Windows."""
