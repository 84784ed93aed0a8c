"""Which format a container has, by its content alone: names say what their maker likes."""

from __future__ import annotations

from graphkin.binaries.backends.base import FORMATS as BINARIES
from graphkin.binaries.containers import (
    ar_files,
    compressed,
    cpio_files,
    disk_images,
    rpm_packages,
    squashfs,
    tar_files,
    zip_files,
)
from graphkin.binaries.containers.base import Format
from graphkin.binaries.formats.archive import is_fat

FORMATS: tuple[Format, ...] = (
    *zip_files.FORMATS,
    *compressed.FORMATS,
    *rpm_packages.FORMATS,
    *cpio_files.FORMATS,
    *tar_files.FORMATS,
    *squashfs.FORMATS,
    *disk_images.FORMATS,
)


def container_format(head: bytes) -> Format | None:
    """The format of a file that begins so (``HEAD`` bytes); None for what is not a container.

    A static library is not one: the backends read ``ar`` archives of object files themselves.
    """
    if head.startswith(tuple(BINARIES)) or is_fat(head):
        return None
    if head.startswith(ar_files.MAGIC):
        content = ar_files.first_content(head)
        is_container = ar_files.is_debian(head) or any(kind.matches(content) for kind in FORMATS)
        return AR if is_container else None
    return next((kind for kind in FORMATS if kind.matches(head)), None)


AR = Format("an ar archive", lambda head: head.startswith(ar_files.MAGIC), ar_files.members)
