"""Makes the samples of this folder: shapes.c, compiled for several processors, and traces of it.

    python build.py [PROCESSOR ...]

Needs Debian's gcc-i686-linux-gnu, gcc-aarch64-linux-gnu, gcc-arm-linux-gnueabihf,
gcc-mips-linux-gnu, gcc-mipsel-linux-gnu, gcc-mips64el-linux-gnuabi64,
gcc-riscv64-linux-gnu, gcc-powerpc-linux-gnu, gcc-powerpc64le-linux-gnu, clang-14,
lld-14 and qemu-user-static, and from PyPI unicorn and pyelftools.
Arguments name the processors to make samples of; without any, all are made.

Each sample is a shared object with position independent code (``shared``) or an executable without
(``static``); some are also there as the object that the linker got, and without symbols.

``traces.json.xz`` is what an emulator saw when it ran every function with many arguments: for
each sample, function and address behind a jump that was taken, where the jump went. It knows
nothing of jump tables, so recovered control flow can be held against it.
"""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path

from tests.binaries.files.emulator import Machine
from tests.binaries.files.qemu import QemuMachine

HERE = Path(__file__).parent
TRACES = HERE / "traces.json.xz"
COMMON = "-w -ffreestanding -fno-stack-protector -fno-builtin -funwind-tables"
LINK = "-nostdlib -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096"
CLANG = "clang-14 -fuse-ld=lld"
TARGETS = {
    ("x86", "gcc"): "i686-linux-gnu-gcc",
    ("x86", "clang"): f"{CLANG} --target=i686-linux-gnu",
    ("aarch64", "gcc"): "aarch64-linux-gnu-gcc",
    ("aarch64", "clang"): f"{CLANG} --target=aarch64-linux-gnu",
    ("arm", "gcc-arm"): "arm-linux-gnueabihf-gcc -marm",
    ("arm", "gcc-thumb"): "arm-linux-gnueabihf-gcc -mthumb",
    ("arm", "clang-arm"): f"{CLANG} --target=arm-linux-gnueabihf -mcpu=cortex-a9 -marm",
    ("arm", "clang-thumb"): f"{CLANG} --target=arm-linux-gnueabihf -mcpu=cortex-a9 -mthumb",
    ("mips", "gcc"): "mips-linux-gnu-gcc",
    ("mips", "clang"): f"{CLANG} --target=mips-linux-gnu -mcpu=mips32r2",
    ("mipsel", "gcc"): "mipsel-linux-gnu-gcc",
    ("mipsel", "clang"): f"{CLANG} --target=mipsel-linux-gnu -mcpu=mips32r2",
    ("mips64el", "gcc"): "mips64el-linux-gnuabi64-gcc",
    ("riscv64", "gcc"): "riscv64-linux-gnu-gcc",
    # strip does not take what lld makes for RISC-V.
    ("riscv64", "clang"): "clang-14 --target=riscv64-linux-gnu -march=rv64gc -mabi=lp64d",
    ("ppc", "gcc"): "powerpc-linux-gnu-gcc",
    ("ppc", "clang"): f"{CLANG} --target=powerpc-linux-gnu -msecure-plt",
    ("ppc64le", "gcc"): "powerpc64le-linux-gnu-gcc",
    ("ppc64le", "clang"): f"{CLANG} --target=powerpc64le-linux-gnu",
}
KINDS = {
    "shared": "-fPIC -shared",
    "static": "-fno-pic -no-pie -static -Wl,-e,dense -Wl,--unresolved-symbols=ignore-all",
}
LEVELS = ("O0", "O1", "O2", "O3")
WITH_OBJECT = ("O2",)
STRIP = {
    "x86": "i686-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "arm": "arm-linux-gnueabihf",
    "mips": "mips-linux-gnu",
    "mipsel": "mipsel-linux-gnu",
    "mips64el": "mips64el-linux-gnuabi64",
    "riscv64": "riscv64-linux-gnu",
    "ppc": "powerpc-linux-gnu",
    "ppc64le": "powerpc64le-linux-gnu",
}

Trace = dict[int, list[int]]


def main() -> None:
    expected = sys.argv[1:] or list(STRIP)
    traces: dict[str, dict[str, Trace]] = json.loads(lzma.decompress(TRACES.read_bytes()))
    traces = {
        name: trace for name, trace in traces.items() if name.partition("/")[0] not in expected
    }
    for architecture in expected:
        shutil.rmtree(HERE / architecture, ignore_errors=True)
        (HERE / architecture).mkdir()
    for (architecture, compiler), command in TARGETS.items():
        if architecture not in expected:
            continue
        for kind, level in product(KINDS, LEVELS):
            path = HERE / architecture / f"{compiler}-{kind}-{level}"
            build(command, kind, level, path)
            strip = f"{STRIP[architecture]}-strip"
            run(strip, "-g", "-R", ".comment", "-R", ".note*", path)
            name = f"{architecture}/{path.name}"
            traces[name] = trace(path, architecture)
            if level == "O2":
                run(strip, "-o", f"{path}-stripped", path)
            if level not in WITH_OBJECT:
                path.with_name(f"{path.name}.o").unlink()
    text = json.dumps(traces, separators=(",", ":"))
    TRACES.write_bytes(lzma.compress(text.encode()))


def build(command: str, kind: str, level: str, path: Path) -> None:
    """Compiles and links one sample; the object stays beside it."""
    flags = [*command.split(), *COMMON.split(), f"-{level}"]
    linked = KINDS[kind].split()
    compiled = [flag for flag in linked if flag.startswith(("-f", "-no-pie"))]
    item = path.with_name(f"{path.name}.o")
    run(*flags, *compiled, "-c", HERE / "shapes.c", "-o", item)
    sources = [item]
    if kind == "static":
        helpers = path.with_name("helpers.o")
        run(*flags, *compiled, "-c", HERE / "helpers.c", "-o", helpers)
        sources.append(helpers)
    # gcc compares long numbers with a function of its own, on some processors; the emulator of
    # MIPS64 has no memory beyond 32 bits.
    needs_gcc = "mips" in command or "powerpc-" in command
    extra = ["-lgcc"] if needs_gcc else []
    extra += ["-Wl,-Ttext-segment=0x400000"] if "mips64" in command and kind == "static" else []
    run(*flags, *linked, *LINK.split(), *sources, *extra, "-o", path)
    for source in sources[1:]:
        source.unlink()


def trace(path: Path, architecture: str) -> dict[str, Trace]:
    """Runs every function of a sample with many arguments."""
    # Unicorn runs PowerPC of 64 bits neither little-endian nor with memory.
    machine = QemuMachine(path) if architecture == "ppc64le" else Machine(path, architecture)
    numbers = range(-2, 64)
    few = range(-1, 12)
    two_words = architecture in ("x86", "arm", "mips", "mipsel", "ppc")
    # A big-endian machine has the upper word of a number first.
    order = slice(None, None, -1 if architecture in ("mips", "ppc") else 1)
    calls: dict[str, list[list[int]]] = {
        "dense": [[x, 3] for x in numbers],
        "shifted": [[x, 3] for x in numbers],
        "holes": [[x, 3] for x in numbers],
        "wide": [[x, 3] for x in numbers],
        "twice": [[x, y] for x in few for y in few],
        "masked": [[x, 3] for x in numbers],
        "nested": [[x, y] for x in few for y in few],
        "longest": [
            ([*[x, x >> 32][order], 3] if two_words else [x, 3])
            for x in (*numbers, 1 << 32, 1 << 35)
        ],
        "tail": [[0], [4]],
        "checked": [[3], [4]],
        "stop": [[]],
        "behind": [[1]],
        "pool": [[x, 0, 0] for x in (-1, 0, 1, 3, 6, 0x12345678)],
        "machine": [[machine.data(bytes([*code, 10])), 3] for code in _programs()],
        "jumps": [[machine.data(bytes(code)), 3] for code in product(range(4), repeat=3)],
        "loops": [[len(row), machine.words(row)] for row in _arrays()],
    }
    traces: dict[str, Trace] = {}
    for name, rows in calls.items():
        jumps: defaultdict[int, set[int]] = defaultdict(set)
        for taken in machine.calls(name, rows):
            for behind, target in taken:
                jumps[behind].add(target)
        traces[name] = {behind: sorted(targets) for behind, targets in sorted(jumps.items())}
    return traces


def _programs() -> list[bytes]:
    """Two steps of the small machine in shapes.c each; 9 skips as many bytes as follow it."""
    return [bytes([a, 1, b, 1]) if 9 in (a, b) else bytes([a, b])
            for a, b in product(range(13), repeat=2)]  # fmt: skip


def _arrays() -> list[list[int]]:
    return [[], [-1], [77], [3], [3, -1, 4], [-1, 77], [1, 2, 3, 77, 5], [5, 5], [-1, -1]]


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True)


if __name__ == "__main__":
    main()
