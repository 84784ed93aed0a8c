"""radare2 as a peer: where it is, and the functions that it finds.

It is no dependency. Any of these will do: the program, of a package or built from its sources, or
the Python of an environment of its own with the wheel ``r2libr``, which holds version 5.7:

    python -m venv peers && peers/bin/pip install r2libr     # then: --radare2 peers/bin/python
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

FROM_WHEEL = """
import ctypes, importlib.util, pathlib, sys
package = importlib.util.find_spec("libr")
if package is None:
    sys.exit("there is no wheel r2libr")
library = pathlib.Path(package.origin).parent / "libr" / "libr_main.so"
texts = [text.encode() for text in ["radare2", *sys.argv[1:]]]
ctypes.CDLL(str(library)).r_main_radare2(len(texts), (ctypes.c_char_p * len(texts))(*texts))
"""
"""The wheel's own modules need a package that setuptools has no more; its libraries do not."""
SECONDS = 3600


class Absent(Exception):
    """There is no radare2, with what to do about it."""


@dataclass(frozen=True)
class Radare2:
    """A radare2 that runs."""

    command: tuple[str, ...]
    version: str

    @classmethod
    def at(cls, program: str) -> Radare2:
        """The one that a path or a name tells: the program, or a Python with its wheel."""
        path = shutil.which(program)
        if path is None:
            raise Absent(
                f"there is no program {program!r}: install radare2 and name its program by "
                "--radare2, or the Python of an environment with the wheel r2libr"
            )
        is_python = Path(path).name.startswith("python")
        command = (path, "-c", FROM_WHEEL) if is_python else (path,)
        done = subprocess.run([*command, "-v"], capture_output=True, text=True, check=False)
        words = done.stdout.split()
        if done.returncode or words[:1] != ["radare2"]:
            said = (done.stderr or done.stdout).strip()[:200]
            raise Absent(f"{path} is not a radare2 that runs: {said or 'it printed nothing'}")
        return cls(command, words[1])

    def run(self, file: Path, *commands: str, folder: Path | None = None) -> str:
        """What it prints while it runs some commands on a file."""
        options = ["-N", "-q", "-e", "scr.color=0", "-c", ";".join(commands), str(file)]
        done = subprocess.run(
            [*self.command, *options],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
            cwd=folder,
        )
        return done.stdout.decode(errors="replace")

    def starts(self, file: Path) -> set[int]:
        """Functions after ``aaaa``, the most that it does: it also looks for first instructions."""
        listed = self.run(file, "aaaa", "afl~[0]").split()
        return {int(word, 16) for word in listed if word.startswith("0x")}
