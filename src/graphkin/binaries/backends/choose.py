"""Which backend reads a file: the registry of backends, and the choice between them.

A backend is imported when it is used, because their libraries take most of a second to load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from graphkin._support.files import PathLike
from graphkin.binaries.backends.base import (
    FORMATS,
    NO_STARTS,
    FunctionSource,
    Limits,
    Wants,
    extent_of,
)
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.formats.archive import ARCHIVE, MAX_SLICES, THIN_ARCHIVE, is_fat, slice_count
from graphkin.binaries.formats.intermediate import BITCODE
from graphkin.binaries.function import Function, Skipped
from graphkin.errors import ConfigError, FormatError

Backend = str
"""A name of ``BACKENDS``, or ``raw:ARCH@BASE`` for images without a header."""
RAW = "raw:"
HEAD_BYTES = 1000
ADVICE = "pip install 'graphkin[smda]' adds a backend that searches in other ways"


def looks_like_binary(path: PathLike) -> bool:
    """Whether a file begins like one that some backend may read."""
    return begins_like_binary(_head(path), path)


def begins_like_binary(head: bytes, name: PathLike) -> bool:
    """Whether some backend may read a file with these first bytes, and this name."""
    if is_fat(head):
        return slice_count(head) <= MAX_SLICES
    begins = (*FORMATS, ARCHIVE, THIN_ARCHIVE, *BITCODE)
    return head.startswith(begins) or _is_binexport(head[:HEAD_BYTES], name)


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
    coverages: list[Coverage] | None = None,
) -> FunctionSource:
    """The source of a file's functions.

    Args:
        backend: ``native``, ``smda``, ``binexport``, or ``auto``: BinExport files are known by
            their content, all else is read by the native backend, and where that recovers too
            little of the code, by SMDA, if it is installed, recovers more, and nobody asks what
            functions say.
            ``raw:thumb@0x8000000`` takes the file for nothing but code at an address.
        with_text: keeps the text of every instruction.
        with_files: tells in which file a function was written, where the backend knows.
        with_evidence: tells what functions say, where the backend knows.
        limits: what the file may cost.
        wants: is asked of every function; only those that it says yes to are read.
        skipped: where to note what could not be read.
        coverages: where to note how much of the code is inside functions.
    """
    return _opener(backend)(
        path,
        with_text=with_text,
        with_files=with_files,
        with_evidence=with_evidence,
        limits=limits,
        wants=wants,
        skipped=[] if skipped is None else skipped,
        coverages=[] if coverages is None else coverages,
    )


def check_backend(backend: Backend) -> None:
    """Refuses a name that no backend has, and one whose package is not installed."""
    if _opener(backend) is _open_smda:
        from graphkin.binaries.backends.smda import check_installed

        check_installed()


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


def _open_smda(path: PathLike, **options: Any) -> FunctionSource:
    from graphkin.binaries.backends.smda import SmdaSource

    return SmdaSource(path, **options)


def _open_binexport(path: PathLike, **options: Any) -> FunctionSource:
    from graphkin.binaries.backends.binexport.reader import BinExportSource

    return BinExportSource(path, **options)


def _open_by_content(path: PathLike, **options: Any) -> FunctionSource:
    head = _head(path)
    is_export = not head.startswith((*FORMATS, ARCHIVE)) and _is_binexport(head, path)
    return _open_binexport(path, **options) if is_export else _NativeOrSmda(path, **options)


def _is_binexport(head: bytes, name: PathLike) -> bool:
    from graphkin.binaries.backends.binexport.reader import is_binexport

    return is_binexport(name, head)


OPENERS: dict[Backend, Callable[..., FunctionSource]] = {
    "auto": _open_by_content,
    "native": _open_native,
    "smda": _open_smda,
    "binexport": _open_binexport,
}
BACKENDS = tuple(OPENERS)


@dataclass
class _NativeOrSmda(FunctionSource):
    """The native backend, and SMDA where that finds too little."""

    path: PathLike

    def functions(self) -> Iterator[Function]:
        already, covered = len(self.skipped), len(self.coverages)
        functions = _open_native(self.path, **self._options).functions()
        # With the first function, or the end, it is known how much of the code was recovered.
        first = next(functions, None)
        # SMDA cannot tell what functions say.
        low = None if self.with_evidence else self._low(covered)
        if low is not None and _has_smda():
            others = self._by_smda()
            recovered = sum(block.size for function in others for block in function.blocks)
            if recovered > low.recovered_bytes:
                # What is wrong with the file as a whole is so for whoever reads it.
                self.skipped[already:] = [
                    item
                    for item in self.skipped[already:]
                    if not item.function and item.reason != NO_STARTS
                ]
                del self.coverages[covered:]
                self.coverages.append(
                    replace(
                        low,
                        recovered_bytes=min(recovered, low.code_bytes),
                        functions=len(others),
                        tried=(*low.tried, "SMDA"),
                    )
                )
                yield from (item for item in others if self.is_wanted(extent_of(item)))
                return
        elif low is not None:
            self.coverages[covered] = replace(low, advice=ADVICE)
        if first is not None:
            yield first
        yield from functions

    def _low(self, covered: int) -> Coverage | None:
        """What the native backend recovered of a single file, where that is too little."""
        head = _head(self.path)
        if head.startswith(ARCHIVE) or is_fat(head) or len(self.coverages) <= covered:
            return None
        return self.coverages[covered] if self.coverages[covered].is_low else None

    def _by_smda(self) -> list[Function]:
        options = self._options | {"wants": None, "skipped": [], "coverages": []}
        try:
            return list(_open_smda(self.path, **options).functions())
        except FormatError:
            return []

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "with_text": self.with_text,
            "with_files": self.with_files,
            "with_evidence": self.with_evidence,
            "limits": self.limits,
            "wants": self.wants,
            "skipped": self.skipped,
            "coverages": self.coverages,
        }


def _has_smda() -> bool:
    from graphkin.binaries.backends.smda import is_installed

    return is_installed()


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
