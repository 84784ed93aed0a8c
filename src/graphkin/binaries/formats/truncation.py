"""Files that end before what their headers tell of."""

from __future__ import annotations


def cut_note(end: int, size: int) -> str | None:
    """What to say of a file whose headers tell of bytes up to ``end``, and that ends before."""
    if end <= size:
        return None
    return (
        f"the file is truncated or damaged: its headers tell of {end} bytes and it has {size}; "
        "functions may be missing"
    )
