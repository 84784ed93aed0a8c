"""Static archives (``.a``): the members, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from graphkin.binaries.function import Skipped

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
HEADER = 60


def members(data: bytes, label: str, skipped: list[Skipped]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every object file in an archive.

    Each member begins where the one before it ends, so no archive can run in circles or
    overlap itself; a damaged header ends the list, and is reported in ``skipped``.
    """
    offset = len(MAGIC)
    names = b""
    while offset < len(data):
        header = data[offset : offset + HEADER]
        size_text = header[48:58].strip()
        if len(header) < HEADER or header[58:60] != b"`\n" or not size_text.isdigit():
            skipped.append(Skipped(label, "", f"the archive is damaged at byte {offset}"))
            return
        start, size = offset + HEADER, int(size_text)
        content = data[start : start + size]
        raw = header[:16].rstrip()
        offset = start + size + size % 2
        if raw == b"//":
            names = content
            continue
        if raw in (b"/", b"/SYM64/") or raw.startswith(b"__.SYMDEF"):
            continue
        if raw.startswith(b"#1/") and raw[3:].isdigit():
            # BSD archives put a long name in front of the content.
            length = int(raw[3:])
            raw, content = content[:length].rstrip(b"\0"), content[length:]
            if raw.startswith(b"__.SYMDEF"):
                continue
        elif raw.startswith(b"/") and raw[1:].isdigit():
            raw = names[int(raw[1:]) :].partition(b"\n")[0]
        name = raw.rstrip(b"/").decode("utf-8", "replace")
        if len(content) < size and not raw.startswith(b"#1/") and start + size > len(data):
            skipped.append(Skipped(f"{label}({name})", "", "the archive ends inside it"))
            return
        yield name, content
