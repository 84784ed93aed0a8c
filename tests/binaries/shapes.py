"""The samples of shapes.c: which there are, what an emulator saw of them, and checks of both."""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from functools import cache

from graphkin.binaries import Block, Function
from graphkin.binaries.backends.native import NativeSource, load
from graphkin.binaries.image import Image, Region
from graphkin.binaries.recovery.architecture import Architecture
from graphkin.binaries.recovery.flow import Flow
from graphkin.binaries.recovery.listing import Listing
from tests.paths import BINARIES

SAMPLES = BINARIES
CUT_SHORT = {"machine", "checked", "stop"}
"""Functions that call abort(), which the compilers were not told never returns."""
NOPS = ("90", "6690", "662e0f1f", "2e0f1f", "0f1f", "8d", "660f1f", "1f2003d5", "00f020e3",
        "0000a0e1", "00bf", "aff30080", "c046", "60000000", "60420000", "00")  # fmt: skip
BASE = 0x1000


@cache
def traces() -> dict[str, dict[str, dict[int, set[int]]]]:
    """Sample to function to address behind a jump to the places that it went to."""
    text = lzma.decompress((SAMPLES / "traces.json.xz").read_bytes())
    return {
        sample: {
            function: {int(behind): set(targets) for behind, targets in jumps.items()}
            for function, jumps in functions.items()
        }
        for sample, functions in json.loads(text).items()
    }


def names(architecture: str) -> list[str]:
    """The samples of one processor that were run."""
    return sorted(name for name in traces() if name.startswith(f"{architecture}/"))


@cache
def functions(name: str) -> dict[str, Function]:
    """What graphkin finds in a sample."""
    source = NativeSource(SAMPLES / name)
    recovered = {function.name: function for function in source.functions()}
    assert source.skipped == []
    return recovered


def successors(function: Function) -> list[list[int]]:
    lists: list[list[int]] = [[] for _ in function.blocks]
    for source, target in function.edges:
        lists[source].append(target)
    return lists


def check_trace(name: str, function: str) -> None:
    """Recovered control flow holds every jump that was taken, and no place more for the jumps
    with many of them. A jump to a nop counts as one to the instruction behind it.
    """
    resolved = functions(name)[function]
    taken = traces()[name][function]
    recovered = jumps(resolved)
    starts = {block.address for block in resolved.blocks}
    for behind, targets in taken.items():
        real = {target if target in starts else target + nop_size(name) for target in targets}
        assert real <= recovered.get(behind, set()), (function, hex(behind))
    for behind, targets in recovered.items():
        if len(targets) > 2:
            assert targets == taken.get(behind), (function, hex(behind))


def nop_size(name: str) -> int:
    if name.startswith("x86/"):
        return 1
    return 2 if "thumb" in name or name.startswith("riscv64/") else 4


def unreached(name: str, function: str) -> list[str]:
    """Runs of code in no block, in hexadecimal; what begins with a nop is left out."""
    image = load((SAMPLES / name).read_bytes(), name)
    resolved = functions(name)[function]
    runs: list[str] = []
    for start, stop, _ in image.pieces(resolved.address, resolved.address + resolved.size):
        at = start
        for block in sorted(resolved.blocks):
            if at < block.address <= stop:
                runs.append(image.read(at, block.address - at).hex())
            if start <= block.address < stop:
                at = max(at, end(block))
        runs.append(image.read(at, stop - at).hex() if at < stop else "")
    if name.startswith("ppc64le/"):
        runs = [_without_table(run) for run in runs]
    nops = (*NOPS, "0100") if name.startswith("riscv64/") else NOPS
    return [run for run in runs if run and not run.startswith(nops)]


def _without_table(run: str) -> str:
    """Code without the jump table ahead of it, which gcc puts there: no instruction of PowerPC has
    six zeros for its upper bits, and the entries do."""
    while len(run) >= 8 and int(run[6:8], 16) < 4:
        run = run[8:]
    return run


def recover(
    architecture: Architecture, code: str, state: str = ""
) -> tuple[tuple[Block, ...], tuple[tuple[int, int], ...]]:
    """Blocks and edges of code given in hexadecimal, which lies at BASE."""
    content = bytes.fromhex(code)
    marks = [(BASE, state)] if state else []
    region = Region(BASE, content, executable=True)
    image = Image("elf", "", [region], [], [], frozenset(), marks=marks)
    listing = Listing(image, architecture)
    listing.add_range(BASE, BASE + len(content))
    return Flow(image, listing, architecture, lambda: None).recover()


def check_tables(name: str) -> None:
    """That jump tables have as many targets as the source has cases."""
    recovered = functions(name)
    expected = {"dense": [12], "wide": [60], "shifted": [10], "holes": [10], "twice": [7, 9]}
    assert {key: widths(recovered[key]) for key in expected} == expected


def check_no_return(name: str) -> None:
    """Calls of abort() end their blocks."""
    recovered = functions(name)
    assert recovered["stop"].edges == ()
    assert len(recovered["stop"].blocks) == 1
    for function in ("checked", "machine"):
        last = -2 if "mips" in name else -1  # the delay slot is behind the call
        ends = [
            block.mnemonics[last]
            for block, targets in zip(
                recovered[function].blocks, successors(recovered[function]), strict=True
            )
            if not targets
        ]
        assert set(ends) & {"call", "bl", "blx", "jalr", "jal", "bal"}, function


def check_object(name: str) -> None:
    """The object that the linker got has the same control flow as what it made."""
    linked, item = functions(name), functions(f"{name}.o")
    for function in traces()[name]:
        assert shape(item[function]) == shape(linked[function]), function


def check_stripped(name: str, missing: int = 0) -> None:
    """Without symbols the same functions are found, with the same control flow.

    Functions that call abort() differ where the name of abort() is gone too.

    Args:
        name: the sample with symbols.
        missing: how many functions may be gone.
    """
    source = NativeSource(SAMPLES / f"{name}-stripped")
    recovered = {function.address: function for function in source.functions()}
    whole = [functions(name)[function] for function in traces()[name]]
    same = [item for item in whole if item.address in recovered]
    assert len(whole) - len(same) <= missing
    behind = {item.address + item.size for item in whole} & recovered.keys()
    for item in same:
        if item.name in CUT_SHORT and "static" in name:
            continue
        if missing and item.address + item.size not in behind:
            continue  # what follows was taken for a part of it
        assert recovered[item.address].blocks == item.blocks, item.name
        assert recovered[item.address].edges == item.edges, item.name


def end(block: Block) -> int:
    return block.address + block.size


def jumps(function: Function) -> dict[int, set[int]]:
    """As a trace has them: the end of a block to the starts of blocks, except the one behind."""
    targets: defaultdict[int, set[int]] = defaultdict(set)
    for source, target in function.edges:
        behind, start = end(function.blocks[source]), function.blocks[target].address
        if start != behind:
            targets[behind].add(start)
    return dict(targets)


def widths(function: Function) -> list[int]:
    """How many blocks follow each of the blocks that more than two follow."""
    return sorted(len(targets) for targets in successors(function) if len(targets) > 2)


def shape(function: Function) -> tuple[object, ...]:
    """Control flow whatever the addresses, and what linkers replace: ``bl`` by ``blx``."""
    start = function.address
    blocks = [(b.address - start, b.size, len(b.mnemonics)) for b in function.blocks]
    return function.size, tuple(blocks), function.edges
