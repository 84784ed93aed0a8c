"""Where the debug file of an ELF binary may be.

Names in a binary are chosen by whoever made it: only a plain name is looked for, in a few
folders, and nothing outside them is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

SYSTEM_FOLDER = Path("/usr/lib/debug")
"""Where distributions install debug files."""
LOCAL_FOLDER = ".debug"
MAX_BUILD_ID = 64


@dataclass(frozen=True)
class DebugFolders:
    """Where the debug file of a binary may be."""

    binary: Path
    """The binary itself: its folder is searched, and the folder ``.debug`` in that."""
    limit: int
    """Bytes that a debug file may have."""
    system: Path = SYSTEM_FOLDER

    def of_build_id(self, build_id: bytes) -> Iterator[tuple[Path, Path]]:
        """(folder that it must be in, file)."""
        if 2 <= len(build_id) <= MAX_BUILD_ID:
            first, rest = build_id[:1].hex(), build_id[1:].hex()
            yield self.system, self.system / ".build-id" / first / f"{rest}.debug"

    def of_link(self, name: str) -> Iterator[tuple[Path, Path]]:
        """(folder that it must be in, file)."""
        if not _is_plain(name):
            return
        folder = Path(os.path.abspath(self.binary)).parent
        yield folder, folder / name
        yield folder, folder / LOCAL_FOLDER / name
        yield self.system, self.system / folder.relative_to(folder.anchor) / name

    def read(self, folder: Path, path: Path) -> tuple[bytes, str | None]:
        """The bytes of a debug file, or nothing; and why one that is there was not read."""
        reason = None
        try:
            real = path.resolve()
            # A link in the folder of a binary that somebody sent may lead anywhere.
            is_inside = real.is_relative_to(folder.resolve()) and real != self.binary.resolve()
            if is_inside and real.is_file():
                size = real.stat().st_size
                if size <= self.limit:
                    return real.read_bytes(), None
                reason = f"{size} bytes, over the limit of {self.limit}"
        except OSError as error:
            reason = error.strerror
        except (ValueError, RuntimeError) as error:  # names with zeros, links in a circle
            reason = str(error)
        return b"", reason and f"its debug information in {path} was not used: {reason}"


def _is_plain(name: str) -> bool:
    """Whether a name is that of a file and not a path, on any system."""
    if not name or name in (".", "..") or "\0" in name:
        return False
    return PurePosixPath(name).name == name and PureWindowsPath(name).name == name
