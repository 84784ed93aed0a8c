"""Registers followed backwards, where each instruction has one small effect: MIPS, RISC-V."""
