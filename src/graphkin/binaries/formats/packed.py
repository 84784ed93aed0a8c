"""Binaries whose code is compressed or encrypted: there is nothing in them to read."""

from __future__ import annotations

from graphkin.binaries.entropy import entropy
from graphkin.binaries.image import Image

HEAD = 4096
"""Bytes that hold the headers of a PE file, where packers name their sections."""
SECTIONS = {
    b"UPX0": "UPX",
    b"UPX1": "UPX",
    b".aspack": "ASPack",
    b".MPRESS1": "MPRESS",
    b".MPRESS2": "MPRESS",
    b".petite": "Petite",
    b".themida": "Themida",
    b".winlice": "WinLicense",
    b".vmp0": "VMProtect",
    b".vmp1": "VMProtect",
    b".enigma1": "Enigma Protector",
    b".enigma2": "Enigma Protector",
    b"PEC2": "PECompact",
    b"PEC2TO": "PECompact",
    b"pec1": "PECompact",
    b"pec2": "PECompact",
    b".nsp0": "NsPack",
    b".nsp1": "NsPack",
    b"nsp0": "NsPack",
    b"nsp1": "NsPack",
    b"FSG!": "FSG",
    b"MEW": "MEW",
    b".Upack": "Upack",
    b".ByDwing": "Upack",
    b".RLPack": "RLPack",
    b".yP": "Y0da Protector",
    b".y0da": "Y0da Protector",
    b"PELOCKnt": "PELock",
    b".svkp": "SVKP",
    b"ExeS": "EXEStealth",
    b"kkrunchy": "kkrunchy",
    b"BitArts": "Crunch",
    b".WWPACK": "WWPack",
    b".WWP32": "WWPack",
    b".neolit": "NeoLite",
    b".boom": "Boomerang",
    b".perplex": "Perplex",
    b".spack": "Simple Pack",
    b".taz": "PESpin",
    b".tsuarch": "TSULoader",
    b".tsustub": "TSULoader",
}
"""Sections of a PE file, by their whole names."""
PE_OFFSET, SECTION = 0x3C, 40
"""Where a PE file says where its header is; bytes of a row in the table of sections."""
UPX_HEAD, UPX_MARK = 2048, b"UPX!"
"""Where UPX leaves its mark in an ELF file; small programs have their own text there."""
ADVICE = {"UPX": "unpack it first (upx -d)"}
MIN_CODE = 4096
CODE_PER_FUNCTION = 8192
"""Compiled code has more functions than one for so many bytes."""
MAX_ENTROPY = 7.2
"""Bits for each byte. Machine code has about 6, compressed data nearly 8."""
CERTAIN_ENTROPY = 7.8
"""What no code has, whatever the symbols say."""


def packer(data: bytes, image: Image) -> str | None:
    """Why a binary looks packed, and what to do; None for one that does not."""
    if image.format == "pe":
        for section in _section_names(data[:HEAD]):
            if section in SECTIONS:
                return _advice(SECTIONS[section])
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


def _section_names(head: bytes) -> list[bytes]:
    """The names in the table of sections of a PE file, as far as its first bytes hold it."""
    if len(head) < PE_OFFSET + 4:
        return []
    start = int.from_bytes(head[PE_OFFSET : PE_OFFSET + 4], "little")
    count = int.from_bytes(head[start + 6 : start + 8], "little")
    table = start + 24 + int.from_bytes(head[start + 20 : start + 22], "little")
    rows = (head[at : at + 8] for at in range(table, table + SECTION * count, SECTION))
    return [row.rstrip(b"\0") for row in rows if row]


def _advice(name: str) -> str:
    return f"looks packed ({name}); {ADVICE.get(name, 'unpack it first')}"
