"""Files that are broken, foreign or hostile: a clear error or a warning, never a crash."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphkin.binaries import Function, Skipped
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.binaries.extraction import extract
from graphkin.binaries.targets import find_function, parse_target
from graphkin.binaries.workers import Done, Failure, WorkerPool
from graphkin.errors import FormatError, GraphkinError
from tests.binaries.backends.test_smda import NO_STARTS
from tests.binaries.compiling import Compile
from tests.binaries.recovery.test_flow import SWITCH
from tests.paths import REPOSITORY

SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
NOBODY = 65534
NL = r"\n"
"""A new line in a string of C."""


@pytest.fixture
def library(compile_c: Compile) -> Path:
    source = SWITCH + "int also(int a) { return a ? pick(a, 2) : pick(2, a) + 1; }"
    return compile_c(source, "-O2", "-shared", "-fPIC", name="lib.so")


def read(path: Path, limits: Limits | None = None) -> tuple[list[Function], list[Skipped]]:
    source = NativeSource(path, limits=limits or Limits())
    return list(source.functions()), source.skipped


def attempt(path: Path) -> tuple[list[Function], list[Skipped], str]:
    """The same, and the message of graphkin's error; any other error passes through."""
    try:
        return *read(path), ""
    except GraphkinError as error:
        return [], [], str(error)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"just some text\n", "begins with b'just som'"),
        (b"\x7fELF", "damaged ELF"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "damaged ELF"),
        (b"!<thin>\n", "thin archive"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "strange.bin"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        read(path)
    assert "strange.bin" in str(caught.value)


def test_imports_beyond_all_memory() -> None:
    """The fuzzer moved a table of MIPS there."""
    attempt(Path(__file__).parent / "files" / "mips-imports-beyond-memory.elf")


def test_directory_absent_file_and_pipe(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is a directory"):
        read(tmp_path)
    with pytest.raises(FormatError, match="No such file"):
        read(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="not a regular file"):
        read(tmp_path / "pipe")


def test_no_permission(library: Path) -> None:
    library.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)  # root may read everything
    try:
        with pytest.raises(FormatError, match=r"cannot read .*lib\.so: Permission denied"):
            read(library)
    finally:
        if user == 0:
            os.seteuid(user)


def test_foreign_architecture_is_named(library: Path) -> None:
    data = bytearray(library.read_bytes())
    for machine, name in ((258, "LOONGARCH"), (2, "SPARC"), (4, "M68K"), (9999, "machine 9999")):
        data[18:20] = machine.to_bytes(2, "little")
        library.write_bytes(data)
        with pytest.raises(
            FormatError, match=f"is code for {name}; graphkin reads x86-64"
        ) as error:
            read(library)
        known = str(error.value).partition("graphkin reads ")[2].split(", ")
        assert known == [
            "x86-64", "x86", "aarch64", "arm", "mips", "mipsel", "mips64", "mips64el", "riscv64",
            "ppc", "ppc64le",
        ]  # fmt: skip


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_truncated_file(library: Path, share: float) -> None:
    data = library.read_bytes()
    library.write_bytes(data[: int(len(data) * share)])
    functions, skipped, error = attempt(library)
    assert functions or skipped or "lib.so" in error


def test_symbol_sizes_that_lie(library: Path) -> None:
    expected = {function.name: function.blocks for function in read(library)[0]}
    data = bytearray(library.read_bytes())
    lied = 0
    for at, header in _sections(data):
        if header[1] not in (2, 11):
            continue
        for entry in range(header[4], header[4] + header[5], SYMBOL.size):
            name, info, other, section, value, size = SYMBOL.unpack_from(data, entry)
            if info & 15 == 2 and size:
                SYMBOL.pack_into(data, entry, name, info, other, section, value, 1 << 60)
                lied += 1
        assert at
    assert lied >= 2
    library.write_bytes(data)
    functions, _ = read(library)
    assert {function.name: function.blocks for function in functions} == expected


@pytest.mark.parametrize("field", [3, 4, 5])
@pytest.mark.parametrize("value", [1, 1 << 31, 1 << 60, (1 << 64) - 1])
def test_section_headers_that_lie(library: Path, field: int, value: int) -> None:
    """Address, offset and size of each section in turn."""
    original = library.read_bytes()
    for at, header in _sections(bytearray(original)):
        data = bytearray(original)
        SECTION_HEADER.pack_into(data, at, *header[:field], value, *header[field + 1 :])
        library.write_bytes(data)
        _, _, error = attempt(library)
        assert not error or "lib.so" in error


def test_damaged_and_strange_archives(compile_c: Compile, tmp_path: Path) -> None:
    code = compile_c("int g(int x) { return x ? 1 : 2; }", "-c", name="one.o")
    note = tmp_path / "note.txt"
    note.write_text("no code\n")
    archive = tmp_path / "all.a"
    subprocess.run(["ar", "rc", str(archive), str(code), str(note)], check=True)
    nested = tmp_path / "nested.a"
    subprocess.run(["ar", "rc", str(nested), str(archive), str(code)], check=True)
    functions, skipped = read(archive)
    assert [function.name for function in functions] == ["g"]
    assert [Path(item.binary).name for item in skipped] == ["all.a(note.txt)"]
    functions, skipped = read(nested)
    assert [function.name for function in functions] == ["g"]
    assert "all.a" in skipped[0].binary

    data = archive.read_bytes()
    archive.write_bytes(data[:-3])
    assert any("ends inside" in item.reason for item in read(archive)[1])
    # A member that claims to be as large as the archive, so that the next would be itself.
    first = data.index(b"one.o")
    size = data[first + 48 : first + 58]
    archive.write_bytes(data.replace(size, b"%-10d" % 9_999_999_999, 1))
    assert read(archive)[1]
    archive.write_bytes(data.replace(size, b"-60       ", 1))
    assert any("damaged at byte" in item.reason for item in read(archive)[1])


def test_archives_that_point_astray(compile_c: Compile, tmp_path: Path) -> None:
    """Names and lengths out of the archive; members of no length; an archive inside itself."""
    content = compile_c("int g(int x) { return x ? 1 : 2; }", "-c", name="one.o").read_bytes()
    path = tmp_path / "x.a"

    def read_members(*parts: tuple[bytes, bytes]) -> tuple[list[str], list[Skipped]]:
        path.write_bytes(b"!<arch>\n" + b"".join(_member(*part) for part in parts))
        functions, skipped = read(path)
        return [function.name for function in functions], skipped

    assert read_members((b"/999999999999", content), (b"b.o/", content))[0] == ["g", "g"]
    names, skipped = read_members((b"#1/999999999", content), (b"b.o/", content))
    assert names == ["g"]
    assert len(skipped) == 1
    start = time.process_time()
    names, skipped = read_members(*[(b"e.o/", b"")] * 20_000, (b"b.o/", content))
    assert names == ["g"]
    assert len(skipped) == 20_000
    assert time.process_time() - start < 20
    inner = path.read_bytes()
    names, skipped = read_members((b"x.a/", inner[: 1 << 16]), (b"b.o/", content))
    assert names == ["g"]
    assert "x.a(x.a)" in skipped[0].binary


@pytest.mark.parametrize("name", ["../../secret.o", "{folder}/secret.o"])
def test_names_of_members_are_no_paths(name: str, compile_c: Compile, tmp_path: Path) -> None:
    """Neither is a file of such a name read, nor is one written."""
    content = compile_c("int g(int x) { return x ? 1 : 2; }", "-c", name="one.o").read_bytes()
    secret = compile_c("int secret(int x) { return x; }", "-c", name="secret.o").read_bytes()
    home = tmp_path / "a" / "b"
    home.mkdir(parents=True)
    (tmp_path / "secret.o").write_bytes(secret)
    name = name.format(folder=tmp_path)
    long_name = name.encode()
    path = home / "x.a"
    path.write_bytes(b"!<arch>\n" + _member(b"#1/%d" % len(long_name), long_name + content))
    (function,) = read(path)[0]
    assert (function.name, function.binary) == ("g", f"{path}({name})")
    assert find_function(parse_target(f"{path}({name}):g")).name == "g"
    extract([path], home / "corpus", min_blocks=1)
    assert FunctionCorpus.open(home / "corpus").binaries[0].part == f"({name})"
    assert sorted(file.name for file in home.iterdir()) == ["corpus", "x.a"]
    assert (tmp_path / "secret.o").read_bytes() == secret


def test_files_that_a_corpus_names_are_not_opened(compile_c: Compile, tmp_path: Path) -> None:
    path = compile_c("int g(int x) { return x ? 1 : 2; }", "-c", name="one.o")
    extract([path], tmp_path / "corpus", min_blocks=1)
    os.unlink(path)
    os.mkfifo(path)  # whoever opens it waits forever
    corpus = FunctionCorpus.open(tmp_path / "corpus")
    (entry,) = corpus.entries
    assert entry.binary.path == str(path)
    assert corpus.store[0].num_nodes > 0
    assert corpus.digest()


def _member(name: bytes, content: bytes) -> bytes:
    head = b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (name, 0, 0, 0, 0o644, len(content))
    return head + content + b"\n" * (len(content) % 2)


@pytest.mark.parametrize("kind", ["zeros behind", "data inside"])
def test_a_file_of_300_megabytes(compile_c: Compile, kind: str) -> None:
    """Time and memory stay within three times the file; with too little of it, that is said."""
    is_inside = kind == "data inside"
    data = f"char data[{300 << 20}] = {{1}};" if is_inside else ""
    path = compile_c("int g(int x) { return x ? 1 : 2; }" + data, "-shared", "-fPIC")
    os.truncate(path, max(300 << 20, path.stat().st_size))
    pool: WorkerPool[Path, str] = WorkerPool(1, names_in, seconds=60, memory_bytes=1200 << 20)
    outcomes = [outcome for _, outcome in pool.run([path])]
    assert "g" in outcomes
    assert outcomes[-1] == Done()
    pool = WorkerPool(1, names_in, seconds=60, memory_bytes=256 << 20)
    ((_, end),) = pool.run([path])
    assert end == Failure("it takes more than 256 MB of memory")


def names_in(path: Path) -> Iterator[str]:
    for function in NativeSource(path).functions():
        yield function.name


def test_a_fat_file_whose_slices_are_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "fat"
    entry = struct.pack(">IIIII", 0x01000007, 3, 0, 8 + 40, 0)
    path.write_bytes(struct.pack(">II", 0xCAFEBABE, 2) + entry * 2)
    functions, skipped, error = attempt(path)
    assert functions == []
    assert "fat" in error or all("fat" in item.binary for item in skipped)
    assert error or skipped


def test_budgets_name_what_they_cut(library: Path) -> None:
    _, skipped = read(library, Limits(function_bytes=64))
    assert [item.function for item in skipped] == ["pick"]
    assert "over the limit of 64" in skipped[0].reason
    functions, skipped = read(library, Limits(seconds=0))
    assert not functions
    assert "is over with" in skipped[0].reason
    with pytest.raises(FormatError, match="over the limit of 100"):
        read(library, Limits(file_bytes=100))


def test_a_function_of_nothing_but_small_instructions_is_refused(compile_c: Compile) -> None:
    """Each byte of it would take hundreds of bytes of memory."""
    source = (
        r"""__asm__(".globl f\n.type f,@function\nf:\n.fill 3600000,1,0x90\nret\n.size f,.-f");"""
    )
    path = compile_c(source, "-c", name="small.o")
    functions, skipped = read(path)
    assert "f" not in [function.name for function in functions]
    assert [item.function for item in skipped] == ["f"]
    assert "3600001 bytes of code, over the limit of 1048576" in skipped[0].reason


def test_a_program_without_function_starts_is_searched_for_them() -> None:
    functions, skipped = read(NO_STARTS)
    assert [function.address for function in functions] == [0x4000E8, 0x4000FD, 0x400135, 0x400157]
    assert skipped == []


def test_a_huge_function_is_read(compile_c: Compile) -> None:
    """100,000 blocks in one function."""
    source = r"""__asm__(".globl f\n.type f,@function\nf:\n.rept 100000\n test %edi,%edi\n je 1f\n"
      "1:\n.endr\n ret\n.size f,.-f");"""
    start = time.process_time()
    functions, _ = read(compile_c(source, "-c"))
    assert len(functions[0].blocks) == 100_001
    assert len(functions[0].edges) == 100_000
    assert time.process_time() - start < 20


@pytest.mark.parametrize(
    "body",
    [
        "test %edi, %edi; je f",
        "test %edi, %edi; je 1f; jmp *%rax; 1:",
        "jmp 1f; jmp *(%rax,%rbx,8); 1:",
        "je 1f; call f; 1:",
    ],
    ids=["back", "indirect", "table", "calls"],
)
def test_other_functions_of_a_hundred_thousand_blocks(compile_c: Compile, body: str) -> None:
    """Read, or skipped by name when the time is over; never longer than that."""
    lines = [".globl f", ".type f,@function", "f:", ".rept 100000", body, ".endr", "ret"]
    source = f"""__asm__("{NL.join([*lines, ".size f,.-f"])}");"""
    path = compile_c(source, "-c")
    start = time.monotonic()
    functions, skipped = read(path, Limits(seconds=10))
    assert time.monotonic() - start < 25
    assert [function.name for function in functions] + [item.function for item in skipped] == ["f"]
    assert functions or "the time of 10 s is over" in skipped[0].reason


def test_targets_inside_instructions_stay_cheap(compile_c: Compile) -> None:
    """Each jump goes into the middle of an instruction: decoding must not start over each time."""
    source = r"""__asm__(".globl f\n.type f,@function\nf:\n.rept 3000\n je .+7\n"
      " movabs $0x9090909090909090,%rax\n.endr\n ret\n.size f,.-f");"""
    start = time.process_time()
    read(compile_c(source, "-c"))
    assert time.process_time() - start < 20


def test_mutants_neither_crash_nor_hang(library: Path, compile_c: Compile) -> None:
    samples = [library.read_bytes(), compile_c(SWITCH, "-O0", "-c", name="x.o").read_bytes()]
    archive = library.with_name("x.a")
    subprocess.run(["ar", "rc", str(archive), str(library.with_name("x.o"))], check=True)
    samples.append(archive.read_bytes())
    path = library.with_name("mutant")
    for seed in range(400):
        rng = random.Random(seed)
        data = bytearray(rng.choice(samples))
        for _ in range(rng.choice([1, 3, 10, 50])):
            ends = rng.choice([64, 1024, len(data)])
            at = rng.randrange(ends)
            at = rng.choice([at, len(data) - 1 - at]) % len(data)
            data[at] = rng.choice([0, 255, 128, 127, rng.randrange(256)])
        if rng.random() < 0.2:
            del data[rng.randrange(1, len(data)) :]
        path.write_bytes(data)
        start = time.monotonic()
        functions, _, error = attempt(path)
        assert not error or "mutant" in error
        for function in functions:
            count = len(function.blocks)
            assert all(0 <= a < count and 0 <= b < count for a, b in function.edges), seed
        assert time.monotonic() - start < 5, seed


FUZZER = REPOSITORY / "benchmarks" / "fuzz_extract.py"


def fuzz(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZER), "--json", *options]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_short_run_of_the_fuzzer_finds_nothing(tmp_path: Path) -> None:
    """All samples, of every format and processor; the long run is the benchmark's."""
    done = fuzz("--mutants", "300", "--keep", str(tmp_path / "found"))
    result = json.loads(done.stdout)
    assert result["findings"] == []
    assert (done.returncode, result["mutants"]) == (0, 300)
    assert result["read"] > 30
    assert result["refused"] > 30
    assert list((tmp_path / "found").iterdir()) == []


def test_the_fuzzer_makes_a_mutant_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        assert fuzz("--only", "7", "--keep", str(folder), str(NO_STARTS)).returncode == 0
    (one,), (other,) = first.iterdir(), second.iterdir()
    assert one.name == other.name
    assert one.name.startswith("7-")
    assert one.read_bytes() == other.read_bytes()


def _sections(data: bytearray) -> list[tuple[int, tuple[int, ...]]]:
    """Offset and fields of every section header."""
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    positions = [table + size * number for number in range(count)]
    return [(at, SECTION_HEADER.unpack_from(data, at)) for at in positions]


@pytest.mark.parametrize("size", [64, 1000])
def test_a_file_cut_off_is_said_to_be(size: int, library: Path, tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(library.read_bytes()[:size])
    with pytest.raises(FormatError, match="cut is truncated or damaged: its headers point beyond"):
        list(NativeSource(tmp_path / "cut").functions())


def test_a_file_cut_off_ahead_of_its_sections_is_read_with_a_warning(
    library: Path, tmp_path: Path
) -> None:
    data = library.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 40)
    (tmp_path / "cut").write_bytes(data[:table])
    functions, skipped = read(tmp_path / "cut")
    assert {"pick", "also"} <= {function.name for function in functions}
    assert "truncated or damaged: its headers point beyond" in skipped[0].reason
