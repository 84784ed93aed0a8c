"""Real libraries: counts, equality of stripped files, and agreement with an independent tool."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkin.binaries import Function
from graphkin.binaries.backends.native import NativeSource, load

FUNCTIONS = {
    "gcc-O0/libavutil.so": (1063, 581),
    "gcc-O2/libavutil.so": (933, 485),
    "clang-O0/libavutil.so": (1061, 621),
    "clang-O3/libavutil.so": (923, 531),
    "gcc-O3/libswscale.so": (659, 438),
}
"""Functions, and those with 5 blocks or more."""


def functions(path: Path) -> list[Function]:
    source = NativeSource(path)
    recovered = list(source.functions())
    assert source.skipped == []
    return recovered


@pytest.mark.parametrize("name", FUNCTIONS)
def test_counts_and_full_coverage(ffmpeg: Path, name: str) -> None:
    recovered = functions(ffmpeg / name)
    assert (len(recovered), sum(len(function.blocks) >= 5 for function in recovered)) == FUNCTIONS[
        name
    ]
    # Compilers emit no unreachable code, so every byte is in a block, or is padding. A missed
    # jump table leaves the code of its cases uncovered.
    image = load((ffmpeg / name).read_bytes(), name)
    for function in recovered:
        bare = np.ones(function.size, dtype=bool)
        for block in function.blocks:
            start = block.address - function.address
            if 0 <= start < function.size:
                bare[start : start + block.size] = False
        left = np.frombuffer(image.read(function.address, function.size), dtype=np.uint8)[bare]
        assert np.isin(left, PADDING_BYTES).all(), function.name


PADDING_BYTES = np.frombuffer(bytes.fromhex("90 66 0f 1f 2e 40 44 80 84 00 cc 87 c0"), np.uint8)
"""All bytes that the assembler's nops are made of."""


@pytest.mark.parametrize("name", ["gcc-O2/libavutil.so", "gcc-O3/libswscale.so"])
def test_a_stripped_library_gives_the_same_graphs(ffmpeg: Path, tmp_path: Path, name: str) -> None:
    bare = tmp_path / "bare.so"
    subprocess.run(["strip", "-o", str(bare), str(ffmpeg / name)], check=True)
    whole = {function.address: function for function in functions(ffmpeg / name)}
    recovered = functions(bare)
    assert len(recovered) == len(whole)
    for function in recovered:
        assert (function.blocks, function.edges) == (
            whole[function.address].blocks,
            whole[function.address].edges,
        )


@pytest.mark.parametrize("name", ["gcc-O2/libavutil.so", "clang-O2/libavutil.so"])
def test_agreement_with_smda(ffmpeg: Path, name: str) -> None:
    """Equal block starts, padding aside, for 99% of the functions that both know.

    In each of the others we have all of SMDA's blocks and more, and the coverage test above
    finds no code of a function left over.
    """
    smda = pytest.importorskip("smda.Disassembler")
    logging.disable(logging.CRITICAL)
    try:
        report = smda.Disassembler().disassembleFile(str(ffmpeg / name))
    finally:
        logging.disable(logging.NOTSET)
    theirs = {function.offset: _starts(function) for function in report.getFunctions()}
    ours = {item.address: {b.address for b in item.blocks} for item in functions(ffmpeg / name)}
    both = ours.keys() & theirs.keys()
    assert len(both) > 900
    different = [address for address in both if ours[address] != theirs[address]]
    assert len(different) <= 0.01 * len(both)
    assert all(theirs[address] < ours[address] for address in different)


def _starts(function: Any) -> set[int]:
    return {
        block.offset
        for block in function.getBlocks()
        if not all(
            getInstruction.mnemonic in ("nop", "endbr64")
            or (getInstruction.mnemonic, getInstruction.operands) == ("xchg", "ax, ax")
            for getInstruction in block.getInstructions()
        )
    }
