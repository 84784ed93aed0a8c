"""Binaries whose code is compressed or encrypted: there is nothing in them to read."""

from __future__ import annotations

import numpy as np

from graphkin.binaries.image import Image

HEAD = 2048
"""Bytes that hold the headers, where packers leave their names."""
PACKERS = {
    b"UPX!": "UPX",
    b"UPX0\0": "UPX",
    b".aspack\0": "ASPack",
    b".MPRESS1": "MPRESS",
    b".petite\0": "Petite",
    b".themida": "Themida",
    b".vmp0\0": "VMProtect",
}
ADVICE = {"UPX": "unpack it first (upx -d)"}
MIN_CODE = 4096
CODE_PER_FUNCTION = 8192
"""Compiled code has more functions than one for so many bytes."""
MAX_ENTROPY = 7.2
"""Bits for each byte. Machine code has about 6, compressed data nearly 8."""


def packer(data: bytes, image: Image) -> str | None:
    """Why a binary looks packed, and what to do; None for one that does not."""
    head = data[:HEAD]
    for mark, name in PACKERS.items():
        if mark in head:
            return f"looks packed ({name}); {ADVICE.get(name, 'unpack it first')}"
    code = [region.data for region in image.regions if region.executable]
    size = sum(map(len, code))
    if size < MIN_CODE or len(image.extents) * CODE_PER_FUNCTION > size:
        return None
    bits = entropy(code)
    if bits <= MAX_ENTROPY:
        return None
    return (
        f"looks packed or encrypted: {len(image.extents)} functions in {size} bytes of code with "
        f"{bits:.1f} bits of entropy each; unpack it first"
    )


def entropy(pieces: list[bytes | memoryview | bytearray]) -> float:
    """Bits for each byte, of all pieces together."""
    counts = np.zeros(256)
    for piece in pieces:
        counts += np.bincount(np.frombuffer(piece, dtype=np.uint8), minlength=256)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
