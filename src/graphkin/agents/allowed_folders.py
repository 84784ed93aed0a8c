"""Which files an agent may name: those inside folders that a person named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from graphkin.binaries.targets import Target, parse_target
from graphkin.errors import ConfigError


class AllowedFolders:
    """Turns what an agent writes into targets that lie inside the folders.

    Links are followed before it is checked where a file lies. What lies outside is refused in the
    same words as what is not there.
    """

    def __init__(self, folders: Sequence[str | Path]) -> None:
        if not folders:
            raise ConfigError("name at least one folder that agents may read")
        self.folders = [Path(os.path.realpath(folder)) for folder in folders]
        for folder in self.folders:
            if not folder.is_dir():
                raise ConfigError(f"{folder} is not a folder; name folders that agents may read")

    def target(self, text: str) -> Target:
        """The target of ``BINARY``, ``BINARY:FUNCTION``, ``BINARY:0x1234`` and the like.

        Raises:
            ConfigError: for a file outside the folders, or that is not there.
        """
        if "\0" not in text:
            for folder in self.folders:
                target = parse_target(str(folder / text))
                path = Path(os.path.realpath(target.path))
                if path.is_file() and any(path.is_relative_to(own) for own in self.folders):
                    return target._replace(path=str(path))
        names = ", ".join(map(str, self.folders))
        raise ConfigError(f"there is no file {text!r} in the folders that are open to you: {names}")

    def files(self, most: int) -> tuple[list[str], bool]:
        """Files inside the folders, and whether these are all; links to elsewhere are left out."""
        files: list[str] = []
        for folder in self.folders:
            for place, folders, names in os.walk(folder):
                folders.sort()
                for name in sorted(names):
                    path = Path(place, name)
                    if path.is_symlink() or not path.is_file():
                        continue
                    if len(files) == most:
                        return files, False
                    files.append(str(path))
        return files, True
