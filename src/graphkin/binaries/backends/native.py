"""The default backend: decoding by capstone, ELF files and control flow by our own rules, and the
containers PE and Mach-O by LIEF."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from graphkin._support.files import PathLike
from graphkin.binaries.backends.base import (
    NO_CODE,
    NO_STARTS,
    Deadline,
    FunctionSource,
    OutOfTime,
    format_of,
    read_binary,
)
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.evidence.collect import Collector
from graphkin.binaries.formats.archive import ARCHIVE, THIN_ARCHIVE, is_fat, members, slices
from graphkin.binaries.formats.elf.debug_folders import DebugFolders
from graphkin.binaries.formats.golang.lost_table import lost_table
from graphkin.binaries.formats.intermediate import BITCODE, BITCODE_ADVICE
from graphkin.binaries.formats.packed import packer
from graphkin.binaries.formats.payload import payload, script
from graphkin.binaries.formats.raw import RawCode, load_raw
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.image import Extent, Image
from graphkin.binaries.recovery.architecture import Architecture
from graphkin.binaries.recovery.debug_lines import defining_files
from graphkin.binaries.recovery.flow import Flow, TooManyBlocks
from graphkin.binaries.recovery.listing import Listing
from graphkin.binaries.recovery.stretches import Batch, in_batches
from graphkin.errors import FormatError


@dataclass
class NativeSource(FunctionSource):
    """Functions of one executable, shared object, object file or static archive."""

    path: PathLike
    raw: RawCode | None = None
    """How to read an image without a header; None for a file that has one."""
    _blocks: int = field(default=0, init=False)
    """Of the functions that were read."""

    def functions(self) -> Iterator[Function]:
        """Every function in the order of addresses.

        Raises:
            FormatError: for a file that cannot be read, or is not a binary that graphkin knows.
        """
        with _RareCollections():
            yield from self._read()

    def _read(self) -> Iterator[Function]:
        data = read_binary(self.path, self.limits.file_bytes)
        digest = hashlib.sha256(data).hexdigest()
        self._blocks = 0
        deadline = Deadline(self.limits)
        label = str(self.path)
        if self.raw is not None:
            image = load_raw(data, label, self.raw)
            yield from self._image_functions(image, label, digest, deadline)
            return
        for piece, content in self._pieces(data, label):
            try:
                image = load(content, piece, self._debug_folders() if content is data else None)
            except FormatError as error:
                if content is data:
                    raise
                self.skip(piece, "", str(error))
                continue
            carried = payload(content, image)
            if carried is not None:
                self.skip(f"{piece}!{carried.name}", "", carried.advice)
            yield from self._image_functions(image, piece, digest, deadline)

    def _debug_folders(self) -> DebugFolders:
        # Reading a debug file takes twice its size.
        limit = min(self.limits.file_bytes, self.limits.memory_bytes // 8)
        return DebugFolders(Path(self.path), limit)

    def _pieces(self, data: bytes, label: str) -> Iterator[tuple[str, bytes]]:
        """The file itself, or the slices of a fat one, or the members of an archive."""
        if is_fat(data):
            for name, content in slices(data, label, self.skipped):
                yield from self._members(content, f"{label}({name})")
        else:
            yield from self._members(data, label)

    def _members(self, data: bytes, label: str) -> Iterator[tuple[str, bytes]]:
        if not data.startswith(ARCHIVE):
            yield label, data
            return
        for name, content in members(data, label, self.skipped):
            yield f"{label}({name})", content

    def _image_functions(
        self, image: Image, label: str, digest: str, deadline: Deadline
    ) -> Iterator[Function]:
        if image.code_bytes:
            count = len(image.extents)
            self.coverages.append(
                Coverage(label, image.code_bytes, image.recovered_bytes, count, image.tried)
            )
        if not image.extents:
            if image.note is not None:
                self.skip(label, "", image.note)
            elif any(region.executable for region in image.regions):
                self.skip(label, "", NO_STARTS)
            elif label == str(self.path):
                # Members of archives that hold nothing but data are not worth a word.
                self.skipped.append(Skipped(label, "", NO_CODE, has_code=False))
            return
        if image.note is not None:
            self.skip(label, "", image.note)
        if image.remark is not None:
            self.skipped.append(Skipped(label, "", image.remark, is_read=True))
        architecture = processor(image.architecture)
        collector = None
        if self.with_evidence and Collector.can_read(image.architecture):
            collector = Collector(image)
        files: dict[int, str] = {}
        if self.with_files and image.lines is not None:
            files = defining_files(image.lines, {extent.start for extent in image.extents})
        for number, extent, batch in self._batches(image, architecture):
            listing = Listing(image, architecture)
            try:
                deadline.check()
                if self._blocks > self.limits.file_blocks:
                    left = len(image.extents) - number
                    reason = f"the file has more than {self.limits.file_blocks} basic blocks"
                    self.skip(label, "", f"{reason}; {left} functions are left out")
                    return
                problem = self._problem(extent)
                if problem is None:
                    stretches = batch.stretches(extent.start, extent.end)
                    listing.add_range(extent.start, extent.end, stretches)
                    if listing.position(extent.start) != 0:
                        problem = "its first bytes are not an instruction"
                if problem is not None:
                    self.skip(label, extent.name, problem)
                    continue
                flow = Flow(
                    image, listing, architecture, deadline.check, self.limits.function_blocks
                )
                blocks, edges = flow.recover(self.with_text)
                self._blocks += len(blocks)
                callees, links = None, b""
                if collector is not None:
                    said = collector.read(listing, blocks, flow.spans, flow.dropped)
                    blocks, callees, links = said
            except TooManyBlocks:
                most = self.limits.function_blocks
                self.skip(label, extent.name, f"more than {most} basic blocks, the limit")
                continue
            except OutOfTime:
                left = len(image.extents) - number
                reason = f"the time of {self.limits.seconds:g} s is over with {left} functions left"
                self.skip(label, "", f"{reason}, from {extent.name} on")
                return
            yield Function(
                name=extent.name,
                address=extent.start,
                size=extent.end - extent.start,
                blocks=blocks,
                edges=edges,
                architecture=image.architecture,
                format=image.format,
                file_hash=digest,
                binary=label,
                compiler=image.compiler,
                aliases=extent.aliases,
                unit=extent.unit,
                defined_in=files.get(extent.start),
                callees=callees,
                links=links,
            )

    def _batches(
        self, image: Image, architecture: Architecture
    ) -> Iterator[tuple[int, Extent, Batch]]:
        """The functions to read, each with its number and what is decoded together with it."""
        wanted = (item for item in enumerate(image.extents) if self.is_wanted(item[1]))
        for items in in_batches(wanted):
            readable = [extent for _, extent in items if self._problem(extent) is None]
            batch = Batch(image, architecture, readable)
            for number, extent in items:
                yield number, extent, batch

    def _problem(self, extent: Extent) -> str | None:
        size = extent.end - extent.start
        if size > self.limits.function_bytes:
            return f"{size} bytes of code, over the limit of {self.limits.function_bytes}"
        return None


class _RareCollections:
    """Has the garbage collector look around less often while files are read.

    Nothing that is made there is cyclic garbage, but there is much of it: the collector would
    take a tenth of the time. What is made between functions stays bounded all the same.
    """

    YOUNG = 50_000
    """Objects that are made before the collector looks at them."""
    _readers = 0
    _usual = (0, 0, 0)

    def __enter__(self) -> None:
        if not _RareCollections._readers:
            _RareCollections._usual = gc.get_threshold()
            # 0 is a collector that was switched off.
            if 0 < self._usual[0] < self.YOUNG:
                gc.set_threshold(self.YOUNG, *self._usual[1:])
        _RareCollections._readers += 1

    def __exit__(self, *_: object) -> None:
        _RareCollections._readers -= 1
        if not _RareCollections._readers:
            gc.set_threshold(*self._usual)


def processor(name: str) -> Architecture:
    """The processor that an image names; its file is imported here."""
    if name == "aarch64":
        from graphkin.binaries.processors.aarch64 import AArch64

        return AArch64()
    if name == "arm":
        from graphkin.binaries.processors.arm import Arm

        return Arm()
    if name == "riscv64":
        from graphkin.binaries.processors.riscv import RiscV64

        return RiscV64()
    if name.startswith("mips"):
        from graphkin.binaries.processors.mips import Mips

        return Mips(64 if "64" in name else 32, "little" if name.endswith("el") else "big")
    if name.startswith("ppc"):
        from graphkin.binaries.processors.powerpc.processor import PowerPc

        return PowerPc(64, "little") if name == "ppc64le" else PowerPc(32, "big")
    from graphkin.binaries.processors.x86.processor import X86

    return X86(64 if name == "x86-64" else 32)


def load(data: bytes, label: str, debug_folders: DebugFolders | None = None) -> Image:
    """The image in a file's bytes; the reader of its format is imported here.

    Args:
        data: the file.
        label: what errors call it.
        debug_folders: where symbols that were stripped off may be; None to look nowhere.

    Raises:
        FormatError: for what no reader knows, for damage, and for packed or encrypted code.
    """
    if data.startswith(THIN_ARCHIVE):
        raise FormatError(f"{label} is a thin archive, which only lists files; name those files")
    image = _read_container(data, label, debug_folders)
    problem = packer(data, image)
    if problem is not None:
        raise FormatError(f"{label} {problem}")
    remarks = [image.remark, lost_table(image)]
    image.remark = "; ".join(remark for remark in remarks if remark) or None
    return image


def _read_container(data: bytes, label: str, debug_folders: DebugFolders | None) -> Image:
    kind = format_of(data)
    if kind == "elf":
        from graphkin.binaries.formats.elf.load import load_elf

        return load_elf(data, label, debug_folders)
    if kind == "pe":
        from graphkin.binaries.formats.pe.load import load_pe

        return load_pe(data, label)
    if kind == "macho":
        from graphkin.binaries.formats.macho.load import load_macho

        return load_macho(data, label)
    if data.startswith(BITCODE):
        raise FormatError(f"{label} holds {BITCODE_ADVICE}")
    if data.startswith(b"#!"):
        raise FormatError(f"{label} is {script(data)}")
    raise FormatError(
        f"{label} is not an ELF, PE or Mach-O file, nor an archive: it begins with {data[:8]!r}"
    )
