"""Binaries whose code is compressed or encrypted: there is nothing in them to read."""

from __future__ import annotations

import numpy as np

from graphkin.binaries.image import Image

HEAD = 1024
"""Bytes that hold the headers of a PE file, where packers name their sections."""
SECTIONS = {
    b"UPX0\0": "UPX",
    b".aspack\0": "ASPack",
    b".MPRESS1": "MPRESS",
    b".petite\0": "Petite",
    b".themida": "Themida",
    b".vmp0\0": "VMProtect",
}
UPX_HEAD, UPX_MARK = 2048, b"UPX!"
"""Where UPX leaves its mark in an ELF file; small programs have their own text there."""
ADVICE = {"UPX": "unpack it first (upx -d)"}
MIN_CODE = 4096
SAMPLE = 1 << 20
"""Bytes of a piece that are counted, about; of a larger one every second, third, ..."""
CODE_PER_FUNCTION = 8192
"""Compiled code has more functions than one for so many bytes."""
MAX_ENTROPY = 7.2
"""Bits for each byte. Machine code has about 6, compressed data nearly 8."""
CERTAIN_ENTROPY = 7.8
"""What no code has, whatever the symbols say."""


def packer(data: bytes, image: Image) -> str | None:
    """Why a binary looks packed, and what to do; None for one that does not."""
    if image.format == "pe":
        for section, name in SECTIONS.items():
            if section in data[:HEAD]:
                return _advice(name)
    code = [region.data for region in image.regions if region.executable]
    size = sum(map(len, code))
    is_marked = UPX_MARK in data[:UPX_HEAD]
    if is_marked and not image.extents:
        return _advice("UPX")
    if size < MIN_CODE:
        return None
    has_functions = len(image.extents) * CODE_PER_FUNCTION > size
    bits = entropy(code)
    if bits <= (CERTAIN_ENTROPY if has_functions else MAX_ENTROPY):
        return None
    if is_marked:
        return _advice("UPX")
    return (
        f"looks packed or encrypted: {len(image.extents)} functions in {size} bytes of code with "
        f"{bits:.1f} bits of entropy each; unpack it first"
    )


def _advice(name: str) -> str:
    return f"looks packed ({name}); {ADVICE.get(name, 'unpack it first')}"


def entropy(pieces: list[bytes | memoryview | bytearray]) -> float:
    """Bits for each byte, of all pieces together."""
    counts = np.zeros(256)
    for piece in pieces:
        values = np.frombuffer(piece, dtype=np.uint8)
        counts += np.bincount(values[:: 1 + len(values) // SAMPLE], minlength=256)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
