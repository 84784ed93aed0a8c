"""What AArch64 and ARM share: operands, values and jump tables."""
