"""BinExport files of Ghidra, IDA and Binary Ninja."""
