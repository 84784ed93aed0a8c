"""Names for the functions of a binary, as scripts of the tools that people look at it with."""
