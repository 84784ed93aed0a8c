"""Mach-O: programs and objects of macOS."""
