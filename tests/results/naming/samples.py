"""Names made by hand, some of which mean harm."""

from __future__ import annotations

from graphkin.results.document import CarriedName, FunctionRef, Names, Tool
from tests.results.samples import HOSTILE

CODE = (
    "'); PROOF.append(1); ('",
    '"""\nPROOF.append(1)\n"""',
    "\\' + PROOF.append(1) + \\'",
    "x\nPROOF.append(1)",
    "x\rPROOF.append(1)",
    "x\u2028PROOF.append(1)",
    "a;!touch proof",
    "a`!touch proof`",
    "a\n!touch proof\n",
    "a @ 0; !touch proof #",
    "a|touch proof",
    "a>proof",
    "*",
)
"""Names that are code for one host or another, if they are not written with care."""
SHA256 = "ab" * 32


def carried(address: int, name: str, probability: float = 0.987, **more: str) -> CarriedName:
    return CarriedName(
        target=FunctionRef(
            function=f"sub_{address:x}", binary="firmware.bin", address=address, blocks=7
        ),
        name=name,
        probability=probability,
        origin=FunctionRef(
            function=name, binary=more.get("binary", "libx.so"), address=0x900, blocks=7
        ),
        source_file=more.get("source_file"),
    )


def names_of(*items: CarriedName, source: str = "libx.so", target: str = "firmware.bin") -> Names:
    return Names(
        tool=Tool(version="1.2.3"),
        model="functions 0.1.0 (abc)",
        source=source,
        target=target,
        file_hash=SHA256,
        functions=len(items) + 3,
        named_before=3,
        min_probability=0.5,
        names=items,
    )


def hostile_names() -> Names:
    """Every text of the document is chosen by an enemy."""
    items = [
        carried(0x1000 + 16 * number, name, binary=name, source_file=name)
        for number, name in enumerate((*HOSTILE, *CODE))
    ]
    evil = "evil\nPROOF.append(1)\n!touch proof"
    return names_of(*items, source=evil, target=evil)
