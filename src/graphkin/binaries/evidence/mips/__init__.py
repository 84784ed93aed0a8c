"""What instructions of MIPS say."""
