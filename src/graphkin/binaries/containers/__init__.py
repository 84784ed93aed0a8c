"""Files that hold files: archives, packages, compressed files and disk images."""
