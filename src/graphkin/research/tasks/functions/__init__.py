"""Functions of binaries: which are builds of the same source?"""
