"""The default backend: containers by LIEF, decoding by capstone, control flow by our own rules."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphkin.binaries import x86
from graphkin.binaries.archive import MAGIC, THIN_MAGIC, members
from graphkin.binaries.debug_lines import defining_files
from graphkin.binaries.decode import Decoder
from graphkin.binaries.flow import Flow
from graphkin.binaries.image import Extent, Image
from graphkin.binaries.listing import Listing
from graphkin.binaries.source import Function, FunctionSource, Skipped
from graphkin.binaries.x86_tables import TableReader
from graphkin.errors import FormatError
from graphkin.files import PathLike


@dataclass(frozen=True)
class Limits:
    """What one file may cost."""

    seconds: float = 600.0
    """Time for a file; what is left when it is over is skipped, with a warning."""
    file_bytes: int = 2 << 30
    function_bytes: int = 4 << 20
    """Code of one function. Decoding takes about 100 bytes of memory for each byte of code."""


class _OutOfTime(Exception):
    pass


@dataclass
class NativeSource(FunctionSource):
    """Functions of one executable, shared object, object file or static archive."""

    path: PathLike
    with_text: bool = False
    """Keeps the text of every instruction, for pictures."""
    with_files: bool = False
    """Reads from the debug information, where there is any, in which file a function stands."""
    limits: Limits = Limits()

    def functions(self) -> Iterator[Function]:
        """Every function in the order of addresses.

        Raises:
            FormatError: for a file that cannot be read, or is no binary that graphkin knows.
        """
        data = read_binary(self.path, self.limits.file_bytes)
        digest = hashlib.sha256(data).hexdigest()
        deadline = time.monotonic() + self.limits.seconds
        label = str(self.path)
        if not data.startswith(MAGIC):
            yield from self._image_functions(load(data, label), label, digest, deadline)
            return
        for name, content in members(data, label, self.skipped):
            member = f"{label}({name})"
            try:
                image = load(content, member)
            except FormatError as error:
                self.skipped.append(Skipped(member, "", str(error)))
                continue
            yield from self._image_functions(image, member, digest, deadline)

    def _image_functions(
        self, image: Image, label: str, digest: str, deadline: float
    ) -> Iterator[Function]:
        if not image.extents:
            reason = "it has no function symbols and no unwind tables to tell where functions start"
            self.skipped.append(Skipped(label, "", reason))
            return
        decoder = Decoder(*x86.MODES[image.architecture])
        kinds = x86.kinds()

        def check() -> None:
            if time.monotonic() > deadline:
                raise _OutOfTime

        def noreturn(listing: Listing, position: int, operand: bytes) -> bool:
            return x86.called(listing, position, operand) in image.noreturn

        files: dict[int, str] = {}
        if self.with_files and image.lines is not None:
            files = defining_files(image.lines, {extent.start for extent in image.extents})
        pointer = 8 if image.architecture == "x86-64" else 4
        for number, extent in enumerate(image.extents):
            listing = Listing(image, decoder, kinds)
            try:
                check()
                problem = self._problem(extent)
                if problem is None:
                    listing.add_range(extent.start, extent.end)
                    if not listing.addresses:
                        problem = "its first bytes are no instruction"
                if problem is not None:
                    self.skipped.append(Skipped(label, extent.name, problem))
                    continue
                tables = TableReader(image, pointer)
                flow = Flow(image, listing, noreturn, tables, x86.PADDING, check)
                blocks, edges = flow.recover(self.with_text)
            except _OutOfTime:
                left = len(image.extents) - number
                reason = f"the time of {self.limits.seconds:g} s is over with {left} functions left"
                self.skipped.append(Skipped(label, extent.name, reason))
                return
            finally:
                listing.close()
            yield Function(
                extent.name,
                extent.start,
                extent.end - extent.start,
                blocks,
                edges,
                image.architecture,
                image.format,
                digest,
                label,
                image.compiler,
                extent.aliases,
                extent.unit,
                files.get(extent.start),
            )

    def _problem(self, extent: Extent) -> str | None:
        size = extent.end - extent.start
        if size > self.limits.function_bytes:
            return f"{size} bytes of code, over the limit of {self.limits.function_bytes}"
        return None


def read_binary(path: PathLike, limit: int) -> bytes:
    """The bytes of a file that is not empty, no directory, and not too large."""
    file = Path(path)
    try:
        if file.is_dir():
            raise FormatError(f"{path} is a directory; name a binary file")
        if not file.is_file() and file.exists():
            raise FormatError(f"{path} is no regular file; name a binary file")
        size = file.stat().st_size
        if size > limit:
            raise FormatError(f"{path} has {size} bytes, over the limit of {limit}")
        data = file.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error
    if not data:
        raise FormatError(f"{path} is empty")
    return data


def load(data: bytes, label: str) -> Image:
    """The image in a file's bytes; the reader of its format is imported here."""
    if data.startswith(b"\x7fELF"):
        from graphkin.binaries.elf import load_elf

        return load_elf(data, label)
    if data.startswith(THIN_MAGIC):
        raise FormatError(f"{label} is a thin archive, which only lists files; name those files")
    raise FormatError(f"{label} is no ELF file and no static archive: it begins with {data[:8]!r}")
