"""The default backend: containers by LIEF, decoding by capstone, control flow by our own rules."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from graphkin._support.files import PathLike
from graphkin.binaries.formats.archive import MAGIC, THIN_MAGIC, members
from graphkin.binaries.formats.macho.fat import is_fat, slices
from graphkin.binaries.formats.packed import packer
from graphkin.binaries.function import Function, FunctionSource, Skipped
from graphkin.binaries.image import Extent, Image
from graphkin.binaries.recovery.architecture import Architecture
from graphkin.binaries.recovery.debug_lines import defining_files
from graphkin.binaries.recovery.flow import Flow
from graphkin.binaries.recovery.listing import Listing
from graphkin.errors import FormatError

MACHO_MAGICS = (b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xfe\xed\xfa")
"""Of 64 bits, of 32 bits, and of either when big-endian."""


NO_STARTS = "it has no function symbols and no unwind tables to tell where functions start"


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
    wanted: Callable[[Extent], bool] | None = None
    """Is asked of every function; only those that it says yes to are decoded."""

    def functions(self) -> Iterator[Function]:
        """Every function in the order of addresses.

        Raises:
            FormatError: for a file that cannot be read, or is no binary that graphkin knows.
        """
        data = read_binary(self.path, self.limits.file_bytes)
        digest = hashlib.sha256(data).hexdigest()
        deadline = time.monotonic() + self.limits.seconds
        label = str(self.path)
        for piece, content in self._pieces(data, label):
            try:
                image = load(content, piece)
            except FormatError as error:
                if content is data:
                    raise
                self.skipped.append(Skipped(piece, "", str(error)))
                continue
            yield from self._image_functions(image, piece, digest, deadline)

    def _pieces(self, data: bytes, label: str) -> Iterator[tuple[str, bytes]]:
        """The file itself, or the slices of a fat one, or the members of an archive."""
        if is_fat(data):
            for name, content in slices(data, label, self.skipped):
                yield from self._members(content, f"{label}({name})")
        else:
            yield from self._members(data, label)

    def _members(self, data: bytes, label: str) -> Iterator[tuple[str, bytes]]:
        if not data.startswith(MAGIC):
            yield label, data
            return
        for name, content in members(data, label, self.skipped):
            yield f"{label}({name})", content

    def _image_functions(
        self, image: Image, label: str, digest: str, deadline: float
    ) -> Iterator[Function]:
        if not image.extents:
            if label == str(self.path) or any(region.executable for region in image.regions):
                self.skipped.append(Skipped(label, "", NO_STARTS))
            return  # members of archives that hold nothing but data are no loss
        if image.note is not None:
            self.skipped.append(Skipped(label, "", image.note))
        architecture = choose(image.architecture)

        def check() -> None:
            if time.monotonic() > deadline:
                raise _OutOfTime

        files: dict[int, str] = {}
        if self.with_files and image.lines is not None:
            files = defining_files(image.lines, {extent.start for extent in image.extents})
        for number, extent in enumerate(image.extents):
            if self.wanted is not None and not self.wanted(extent):
                continue
            listing = Listing(image, architecture)
            try:
                check()
                problem = self._problem(extent)
                if problem is None:
                    listing.add_range(extent.start, extent.end)
                    if listing.position(extent.start) != 0:
                        problem = "its first bytes are no instruction"
                if problem is not None:
                    self.skipped.append(Skipped(label, extent.name, problem))
                    continue
                flow = Flow(image, listing, architecture, check)
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


def choose(name: str) -> Architecture:
    """The processor that an image names; its file is imported here."""
    if name == "aarch64":
        from graphkin.binaries.processors.aarch64 import AArch64

        return AArch64()
    if name == "arm":
        from graphkin.binaries.processors.arm import Arm

        return Arm()
    from graphkin.binaries.processors.x86.processor import X86

    return X86(64 if name == "x86-64" else 32)


def load(data: bytes, label: str) -> Image:
    """The image in a file's bytes; the reader of its format is imported here.

    Raises:
        FormatError: for what no reader knows, for damage, and for packed or encrypted code.
    """
    if data.startswith(THIN_MAGIC):
        raise FormatError(f"{label} is a thin archive, which only lists files; name those files")
    image = _read_container(data, label)
    problem = packer(data, image)
    if problem is not None:
        raise FormatError(f"{label} {problem}")
    return image


def _read_container(data: bytes, label: str) -> Image:
    if data.startswith(b"\x7fELF"):
        from graphkin.binaries.formats.elf.load import load_elf

        return load_elf(data, label)
    if data.startswith(b"MZ"):
        from graphkin.binaries.formats.pe.load import load_pe

        return load_pe(data, label)
    if data.startswith(MACHO_MAGICS):
        from graphkin.binaries.formats.macho.load import load_macho

        return load_macho(data, label)
    raise FormatError(
        f"{label} is no ELF, PE or Mach-O file and no static archive: it begins with {data[:8]!r}"
    )
