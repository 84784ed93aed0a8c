"""What instructions of AArch64 and of 32-bit ARM say."""
