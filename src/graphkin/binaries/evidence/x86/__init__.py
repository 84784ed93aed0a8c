"""What instructions of x86 say, 64 and 32 bit."""
