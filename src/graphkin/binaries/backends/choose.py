"""Which backend reads a file: the registry of backends, and the choice between them.

A backend is imported when it is used, because their libraries take most of a second to load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from graphkin._support.files import PathLike
from graphkin.binaries.backends import smda
from graphkin.binaries.backends.base import FORMATS, NO_STARTS, FunctionSource, Limits, Wants
from graphkin.binaries.backends.binexport.reader import BinExportSource, is_binexport
from graphkin.binaries.formats.archive import ARCHIVE, MAX_SLICES, is_fat, slice_count
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.image import Extent
from graphkin.errors import ConfigError

Backend = str
"""A name of ``BACKENDS``, or ``raw:ARCH@BASE`` for images without a header."""
RAW = "raw:"
HEAD_BYTES = 1000


def looks_like_binary(path: PathLike) -> bool:
    """Whether a file begins like one that some backend may read."""
    return begins_like_binary(_head(path), path)


def begins_like_binary(head: bytes, name: PathLike) -> bool:
    """Whether some backend may read a file with these first bytes, and this name."""
    if is_fat(head):
        return slice_count(head) <= MAX_SLICES
    return head.startswith((*FORMATS, ARCHIVE)) or is_binexport(name, head[:HEAD_BYTES])


def open_source(
    path: PathLike,
    *,
    backend: Backend = "auto",
    with_text: bool = False,
    with_files: bool = False,
    with_evidence: bool = False,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    wants: Wants | None = None,
    skipped: list[Skipped] | None = None,
) -> FunctionSource:
    """The source of a file's functions.

    Args:
        backend: ``native``, ``smda``, ``binexport``, or ``auto``: BinExport files are known by
            their content, all else is read by the native backend, and where that finds no
            function starts at all, by SMDA if it is installed. ``raw:thumb@0x8000000`` takes the
            file for nothing but code at an address.
        with_text: keeps the text of every instruction.
        with_files: tells in which file a function was written, where the backend knows.
        with_evidence: tells what functions say, where the backend knows.
        limits: what the file may cost.
        wants: is asked of every function; only those that it says yes to are read.
        skipped: where to note what could not be read.
    """
    return _opener(backend)(
        path,
        with_text=with_text,
        with_files=with_files,
        with_evidence=with_evidence,
        limits=limits,
        wants=wants,
        skipped=[] if skipped is None else skipped,
    )


def check_backend(backend: Backend) -> None:
    """Refuses a name that no backend has, and one whose package is not installed."""
    if _opener(backend) is smda.SmdaSource:
        smda.check_installed()


def is_raw(backend: Backend) -> bool:
    """Whether files are read as images without a header."""
    return backend.startswith(RAW)


def _opener(backend: Backend) -> Callable[..., FunctionSource]:
    if is_raw(backend):
        from graphkin.binaries.formats.raw import parse_raw

        return partial(_open_native, raw=parse_raw(backend.removeprefix(RAW)))
    if backend not in OPENERS:
        raise ConfigError(f"unknown backend {backend!r}; choose one of {', '.join(BACKENDS)}")
    return OPENERS[backend]


def _open_native(path: PathLike, **options: Any) -> FunctionSource:
    from graphkin.binaries.backends.native import NativeSource

    return NativeSource(path, **options)


def _open_by_content(path: PathLike, **options: Any) -> FunctionSource:
    is_export = is_binexport(path, _head(path))
    return BinExportSource(path, **options) if is_export else _NativeOrSmda(path, **options)


OPENERS: dict[Backend, Callable[..., FunctionSource]] = {
    "auto": _open_by_content,
    "native": _open_native,
    "smda": smda.SmdaSource,
    "binexport": BinExportSource,
}
BACKENDS = tuple(OPENERS)


@dataclass
class _NativeOrSmda(FunctionSource):
    """The native backend, and SMDA where that does not know where functions start."""

    path: PathLike

    def functions(self) -> Iterator[Function]:
        has_starts = False

        def wants(extent: Extent) -> bool:
            nonlocal has_starts
            has_starts = True
            return self.is_wanted(extent)

        already = len(self.skipped)
        yield from _open_native(self.path, **self._options | {"wants": wants}).functions()
        # Functions that were found, but cannot be read, are no reason to try another backend.
        if has_starts or _head(self.path).startswith(ARCHIVE):
            return
        if smda.is_installed():
            del self.skipped[already:]
            yield from smda.SmdaSource(self.path, **self._options).functions()
            return
        hint = "; pip install 'graphkin[smda]' adds a backend that searches for them"
        for number, item in enumerate(self.skipped[already:], already):
            if item.reason == NO_STARTS:
                self.skipped[number] = item._replace(reason=item.reason + hint)

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "with_text": self.with_text,
            "with_files": self.with_files,
            "with_evidence": self.with_evidence,
            "limits": self.limits,
            "wants": self.wants,
            "skipped": self.skipped,
        }


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
