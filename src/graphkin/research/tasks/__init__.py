"""The tasks of the paper: edit distance, functions of binaries, meshes."""
