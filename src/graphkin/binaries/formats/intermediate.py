"""Files that hold what a compiler keeps for the linker, which makes code of it (LTO)."""

from __future__ import annotations

BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
"""How files of LLVM's bitcode begin, bare and with a header of Apple's."""
BITCODE_ADVICE = (
    "LLVM's intermediate code (-flto) and no machine code; read the linked file, or compile it "
    "with -ffat-lto-objects or without -flto"
)
GIMPLE_SECTION = ".gnu.lto_"
GIMPLE_ADVICE = (
    "it holds the compiler's intermediate code (-flto) and no machine code; read the linked file, "
    "or compile it with -ffat-lto-objects"
)
