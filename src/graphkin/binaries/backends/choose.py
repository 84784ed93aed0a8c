"""Which backend reads a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

from graphkin._support.files import PathLike
from graphkin.binaries.backends.binexport.reader import BinExportSource, is_binexport
from graphkin.binaries.backends.native import NO_STARTS, Limits, NativeSource
from graphkin.binaries.backends.smda import SmdaSource
from graphkin.binaries.formats.archive import MAGIC
from graphkin.binaries.function import Function, FunctionSource
from graphkin.binaries.image import Extent
from graphkin.errors import ConfigError

Backend = Literal["auto", "native", "smda", "binexport"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
HEAD_BYTES = 1000
MAGICS = (
    b"\x7fELF",
    b"MZ",
    MAGIC,
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xfe\xed\xfa\xcf",
    b"\xfe\xed\xfa\xce",
)
"""First bytes of ELF, PE and Mach-O files, and of static archives."""
FAT_MAGICS = (b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf")
MAX_SLICES = 32
"""Compiled Java begins as fat Mach-O files do; its version, 45 and up, is where they count."""


def looks_like_binary(path: PathLike) -> bool:
    """Whether a file begins like one that some backend may read."""
    head = _head(path)
    if head.startswith(FAT_MAGICS):
        return int.from_bytes(head[4:8], "big") <= MAX_SLICES
    return head.startswith(MAGICS) or is_binexport(path, head)


def open_source(
    path: PathLike,
    *,
    backend: Backend = "auto",
    with_text: bool = False,
    with_files: bool = False,
    limits: Limits | None = None,
    wanted: Callable[[Extent], bool] | None = None,
) -> FunctionSource:
    """The source of a file's functions.

    Args:
        backend: ``native``, ``smda``, ``binexport``, or ``auto``: BinExport files are known by
            their content, all else is read by the native backend, and where that finds no
            function starts at all, by SMDA if it is installed.
        with_text: keeps the text of every instruction.
        with_files: reads from the debug information in which file a function stands; only the
            native backend does.
        limits: what the file may cost.
        wanted: is asked of every function, and spares the work on those that it says no to.
            Only the native backend asks; the others yield every function.
    """
    limits = limits or Limits()
    if backend == "auto":
        if is_binexport(path, _head(path)):
            return BinExportSource(path, with_text, limits)
        return _NativeOrSmda(path, with_text, with_files, limits, wanted)
    if backend == "native":
        return NativeSource(path, with_text, with_files, limits, wanted)
    if backend == "smda":
        return SmdaSource(path, with_text, limits)
    if backend == "binexport":
        return BinExportSource(path, with_text, limits)
    raise ConfigError(f"unknown backend {backend!r}; choose one of {', '.join(BACKENDS)}")


@dataclass
class _NativeOrSmda(FunctionSource):
    """The native backend, and SMDA where that does not know where functions start."""

    path: PathLike
    with_text: bool
    with_files: bool
    limits: Limits = field(default_factory=Limits)
    wanted: Callable[[Extent], bool] | None = None

    def functions(self) -> Iterator[Function]:
        has_starts = False

        def wanted(extent: Extent) -> bool:
            nonlocal has_starts
            has_starts = True
            return self.wanted is None or self.wanted(extent)

        source = NativeSource(self.path, self.with_text, self.with_files, self.limits, wanted)
        source.skipped = self.skipped
        yield from source.functions()
        # Functions that were found, but cannot be read, are no reason to ask elsewhere.
        if has_starts or _is_archive(self.path):
            return
        if find_spec("smda") is None:
            hint = "; pip install 'graphkin[smda]' adds a backend that searches for them"
            self.skipped[:] = [
                item._replace(reason=item.reason + hint) if item.reason == NO_STARTS else item
                for item in self.skipped
            ]
            return
        self.skipped.clear()
        other = SmdaSource(self.path, self.with_text, self.limits)
        other.skipped = self.skipped
        yield from other.functions()


def _is_archive(path: PathLike) -> bool:
    return _head(path).startswith(MAGIC)


def _head(path: PathLike) -> bytes:
    """The first bytes of a file; none where it cannot be read, which its backend reports."""
    file = Path(path)
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as stream:
            return stream.read(HEAD_BYTES)
    except OSError:
        return b""
