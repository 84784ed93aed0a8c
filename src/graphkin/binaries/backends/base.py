"""What all backends share: the interface, the budget of a file, and its first bytes."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from graphkin._support.files import PathLike
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.image import Extent
from graphkin.errors import ConfigError, FormatError

NO_CODE = "it holds no code, only data"
NO_STARTS = "no function was found in its code, neither by tables nor by its looks"
Wants = Callable[[Extent], bool]
"""Whether to read the function that lies somewhere."""
FORMATS = {
    b"\x7fELF": "elf",
    b"MZ": "pe",
    b"\xcf\xfa\xed\xfe": "macho",
    b"\xce\xfa\xed\xfe": "macho",
    b"\xfe\xed\xfa\xcf": "macho",
    b"\xfe\xed\xfa\xce": "macho",
}
"""First bytes of binaries to their formats."""


def format_of(data: bytes) -> str | None:
    """``elf``, ``pe`` or ``macho``, by the first bytes of a file."""
    return next((name for magic, name in FORMATS.items() if data.startswith(magic)), None)


@dataclass(frozen=True)
class Limits:
    """What reading one file may cost."""

    seconds: float = 600.0
    """Time for a file; what is left when it is over is skipped, with a warning."""
    file_bytes: int = 2 << 30
    function_bytes: int = 1 << 20
    """Code of one function; those of real programs have some hundred thousand bytes at most.
    Decoding takes up to 500 bytes of memory for each, where every byte is an instruction."""
    function_blocks: int = 250_000
    """Basic blocks of one function; the largest of real programs have some ten thousand."""
    file_blocks: int = 50_000_000
    """Basic blocks of a file; what is left when they are reached is skipped."""
    memory_bytes: int = 4 << 30
    """Memory of the process that reads a file, beyond that of an idle one."""

    def check(self) -> None:
        """Refuses a time that is none."""
        if not 0 <= self.seconds < math.inf:
            raise ConfigError(f"the seconds for a file must be a finite number, got {self.seconds}")


class OutOfTime(Exception):
    """The time of a file is over."""


class Deadline:
    """The end of a file's time, which counts from now."""

    def __init__(self, limits: Limits) -> None:
        self._end = time.monotonic() + limits.seconds

    def check(self) -> None:
        """Raises OutOfTime when it has passed."""
        if time.monotonic() > self._end:
            raise OutOfTime


@dataclass(kw_only=True)
class FunctionSource(ABC):
    """Yields functions, and lists what it could not read."""

    with_text: bool = False
    """Keeps the text of every instruction, for pictures."""
    with_files: bool = False
    """Fills ``Function.defined_in`` where the backend can tell: the native one from the debug
    information."""
    with_evidence: bool = False
    """Fills ``Block.operations``, ``Block.evidence`` and ``Function.callees`` where the backend can
    tell, which the native one can."""
    limits: Limits = Limits()
    wants: Wants | None = None
    """Is asked of every function; only those that it says yes to are read."""
    skipped: list[Skipped] = field(default_factory=list)
    """Where to note what could not be read, while :meth:`functions` runs."""
    coverages: list[Coverage] = field(default_factory=list)
    """Where to note how much of the code is inside functions, where the backend knows: for each
    file of an archive, ahead of its first function."""

    @abstractmethod
    def functions(self) -> Iterator[Function]:
        """Every function once, in the order of addresses."""

    def skip(self, binary: str, function: str, reason: str) -> None:
        """Notes a function that cannot be read; a whole file where ``function`` is empty."""
        self.skipped.append(Skipped(binary, function, reason))

    def is_wanted(self, extent: Extent) -> bool:
        """Whether to read a function that lies there."""
        return self.wants is None or self.wants(extent)


def extent_of(function: Function) -> Extent:
    """Where a function lies."""
    end = function.address + function.size
    return Extent(function.address, end, function.name, function.aliases, function.unit)


@dataclass
class ListSource(FunctionSource):
    """Functions made by hand."""

    items: Iterable[Function] = ()

    def functions(self) -> Iterator[Function]:
        yield from (function for function in self.items if self.is_wanted(extent_of(function)))


def read_binary(path: PathLike, limit: int) -> bytes:
    """The bytes of a regular file that is neither empty nor too large."""
    file = Path(path)
    try:
        if file.is_dir():
            raise FormatError(f"{path} is a directory; name a binary file")
        if not file.is_file() and file.exists():
            raise FormatError(f"{path} is not a regular file; name a binary file")
        size = file.stat().st_size
        if size > limit:
            raise FormatError(f"{path} has {size} bytes, over the limit of {limit}")
        data = file.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error
    if not data:
        raise FormatError(f"{path} is empty")
    return data
