"""BinExport files, written by Google's protobuf runtime from the functions of compiled C."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphkin.binaries import Block, Function
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.binexport.operands import canonical
from graphkin.binaries.backends.binexport.reader import BinExportSource, is_binexport
from graphkin.binaries.backends.native import NativeSource, load
from graphkin.errors import FormatError
from tests.binaries.compiling import Compile
from tests.binaries.recovery.test_flow import SWITCH

SCHEMA = {
    "Meta": "executable_name:1:string executable_id:2:string architecture_name:3:string",
    "Vertex": "address:1:uint64 type:2:int32 mangled_name:3:string demangled_name:4:string",
    "CallGraph": "vertex:1:*Vertex",
    "Expression": "type:1:int32 symbol:2:string immediate:3:uint64 parent_index:4:int32",
    "Operand": "expression_index:1:*int32",
    "Mnemonic": "name:1:string",
    "Instruction": "address:1:uint64 call_target:2:*uint64 mnemonic_index:3:int32"
    " operand_index:4:*int32 raw_bytes:5:bytes",
    "IndexRange": "begin_index:1:int32 end_index:2:int32",
    "BasicBlock": "instruction_index:1:*IndexRange",
    "Edge": "source_basic_block_index:1:int32 target_basic_block_index:2:int32 type:3:int32",
    "FlowGraph": "basic_block_index:1:*int32 edge:2:*Edge entry_basic_block_index:3:int32",
    "BinExport2": "meta_information:1:Meta expression:2:*Expression operand:3:*Operand"
    " mnemonic:4:*Mnemonic instruction:5:*Instruction basic_block:6:*BasicBlock"
    " flow_graph:7:*FlowGraph call_graph:8:CallGraph string_table:9:*string",
}
"""``name:number:type`` of the fields of google/binexport's binexport2.proto; * is repeated."""
IMPORTED, THUNK, INVALID = 2, 3, 4


def message_class(packed: bool) -> Any:
    """The class that Google's runtime makes of the schema."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    package = f"graphkin_{'packed' if packed else 'plain'}"
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto2"
    )
    for name, text in SCHEMA.items():
        message = file.message_type.add(name=name)
        for entry in text.split():
            field_name, number, kind = entry.split(":")
            repeated, kind = kind.startswith("*"), kind.removeprefix("*")
            field = message.field.add(name=field_name, number=int(number))
            field.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if kind in SCHEMA:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
                if repeated and packed and kind.endswith(("32", "64")):
                    field.options.packed = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.BinExport2"))


class Writer:
    """Writes functions as BinExport's own writer does, with all that it leaves out."""

    def __init__(self, packed: bool = False) -> None:
        self.proto = message_class(packed)()
        self.blocks: dict[int, int] = {}

    def write(self, functions: Sequence[Function], sizes: dict[int, int]) -> Any:
        proto = self.proto
        proto.meta_information.executable_name = "lib.so"
        proto.meta_information.executable_id = functions[0].file_hash.upper()
        proto.meta_information.architecture_name = "x86-64"
        names = Counter(
            name for function in functions for b in function.blocks for name in b.mnemonics
        )
        ranks = {name: rank for rank, (name, _) in enumerate(names.most_common())}
        for name in ranks:
            proto.mnemonic.add(name=name)
        entries = {function.address for function in functions}
        every = {block.address: block for function in functions for block in function.blocks}
        self._code([every[address] for address in sorted(every)], ranks, entries, sizes)
        for function in functions:
            graph = proto.flow_graph.add()
            indices = [self.blocks[block.address] for block in function.blocks]
            graph.entry_basic_block_index = indices[0]
            graph.basic_block_index.extend(sorted(indices))
            for source, target in function.edges:
                graph.edge.add(
                    source_basic_block_index=indices[source],
                    target_basic_block_index=indices[target],
                )
            proto.call_graph.vertex.add(address=function.address, mangled_name=function.name)
        return proto

    def _code(
        self,
        blocks: Sequence[Block],
        ranks: dict[str, int],
        entries: set[int],
        sizes: dict[int, int],
    ) -> None:
        expressions: dict[str, int] = {}
        following = -1
        for block in blocks:
            first = len(self.proto.instruction)
            address = block.address
            for name, text in zip(block.mnemonics, block.instructions or (), strict=True):
                item = self.proto.instruction.add(raw_bytes=bytes(sizes[address]))
                if address != following or address in entries:
                    item.address = address
                if ranks[name]:
                    item.mnemonic_index = ranks[name]
                operands = text.removeprefix(name).strip()
                if operands:
                    if operands not in expressions:
                        expressions[operands] = len(expressions)
                        self.proto.expression.add(type=1, symbol=operands)
                        self.proto.operand.add(expression_index=[expressions[operands]])
                    item.operand_index.append(expressions[operands])
                address = following = address + sizes[address]
            last = len(self.proto.instruction)
            span = self.proto.basic_block.add().instruction_index.add(begin_index=first)
            if last != first + 1:
                span.end_index = last
            self.blocks[block.address] = len(self.proto.basic_block) - 1


def export(path: Path, packed: bool = False) -> tuple[list[Function], Any]:
    """Functions of a file with text, and the message that says the same."""
    functions = [
        replace(function, blocks=tuple(map(_with_marks, function.blocks)))
        for function in NativeSource(path, with_text=True).functions()
    ]
    return functions, Writer(packed).write(functions, instruction_sizes(path, functions))


def _with_marks(block: Block) -> Block:
    """As other programs have it: a word for each instruction, those that harden code too."""
    lines = block.instructions or ()
    if len(lines) == len(block.mnemonics):
        return block
    return block._replace(mnemonics=tuple(line.partition(" ")[0] for line in lines))


def instruction_sizes(path: Path, functions: Sequence[Function]) -> dict[int, int]:
    import capstone

    image = load(path.read_bytes(), "")
    reader = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    return {
        address: size
        for function in functions
        for block in function.blocks
        for address, size, _, _ in reader.disasm_lite(
            image.read(block.address, block.size), block.address
        )
    }


def save(proto: Any, path: Path) -> Path:
    path.write_bytes(proto.SerializeToString())
    return path


def read(path: Path, **options: Any) -> list[Function]:
    return list(BinExportSource(path, **options).functions())


@pytest.fixture
def library(compile_c: Compile) -> Path:
    source = SWITCH + "int also(int a) { return a ? pick(a, 2) : pick(2, a) + 1; }"
    return compile_c(source, "-O2", "-shared", "-fPIC", name="lib.so")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("with_text", [False, True], ids=["bare", "text"])
def test_what_was_written_is_read(
    library: Path, tmp_path: Path, packed: bool, with_text: bool
) -> None:
    functions, proto = export(library, packed)
    path = save(proto, tmp_path / "lib.BinExport")
    assert max(len(function.blocks) for function in functions) > 10
    expected = [
        replace(
            function,
            size=sum(block.size for block in function.blocks),
            blocks=tuple(
                b if with_text else b._replace(instructions=None) for b in function.blocks
            ),
            format="binexport",
            binary=str(path),
            compiler=None,
            aliases=(),
            unit=None,
        )
        for function in functions
    ]
    assert read(path, with_text=with_text) == expected


def test_content_tells_what_it_is(library: Path, tmp_path: Path) -> None:
    data = export(library)[1].SerializeToString()
    assert is_binexport("anything", data[:1000])
    assert is_binexport("x.BinExport", b"")
    for other in (library.read_bytes(), b"\ntext behind an empty line\n", b"\n\n\n\n", b"", b"\n"):
        assert not is_binexport("anything", other[:1000])


def test_kinds_of_functions(library: Path, tmp_path: Path) -> None:
    functions, proto = export(library)
    kinds = dict(
        zip([function.name for function in functions], [IMPORTED, THUNK, INVALID, 1], strict=False)
    )
    for vertex in proto.call_graph.vertex:
        vertex.type = kinds.get(vertex.mangled_name, 0)
        if vertex.mangled_name == "pick":
            vertex.ClearField("mangled_name")
    path = save(proto, tmp_path / "lib.BinExport")
    source = BinExportSource(path)
    recovered = {function.name for function in source.functions()}
    pick = next(function for function in functions if function.name == "pick")
    names = {function.name for function in functions} - {"pick"} | {f"sub_{pick.address:x}"}
    left_out = {name for name, kind in kinds.items() if kind in (IMPORTED, THUNK, INVALID)}
    assert recovered == names - left_out
    assert [item.function for item in source.skipped] == [
        name for name, kind in kinds.items() if kind == INVALID
    ]
    assert "invalid" in source.skipped[0].reason


def test_what_ghidra_writes() -> None:
    theirs = ("JZ", "MOVSD.REP", "ADD.LOCK", "retn", "setnz", "CMOVNC")
    ours = ["je", "rep movsd", "lock add", "ret", "setne", "cmovae"]
    assert [canonical(name) for name in theirs] == ours
    assert [canonical(name) for name in ("b.eq", "MOV", "jmp")] == ["b.eq", "mov", "jmp"]


def test_blocks_without_code_and_edges_without_targets(library: Path, tmp_path: Path) -> None:
    """Both come from Ghidra: a range from -1, and a jump that it could not resolve."""
    functions, proto = export(library)
    empty = len(proto.basic_block)
    proto.basic_block.add().instruction_index.add(begin_index=-1, end_index=-1)
    for graph in proto.flow_graph:
        graph.basic_block_index.append(empty)
        entry = graph.entry_basic_block_index
        graph.edge.add(source_basic_block_index=entry)
        graph.edge.add(source_basic_block_index=entry, target_basic_block_index=empty)
    recovered = read(save(proto, tmp_path / "x.BinExport"))
    assert [(function.name, len(function.blocks), function.edges) for function in recovered] == [
        (function.name, len(function.blocks), function.edges) for function in functions
    ]


def test_a_block_in_several_stretches_and_trees_of_operands(tmp_path: Path) -> None:
    proto = message_class(False)()
    proto.meta_information.architecture_name = "x86-32"
    for name in ("mov", "RETN"):
        proto.mnemonic.add(name=name)
    # mov eax, dword ptr [ebx + 12]: the tree of the second operand as IDA writes it
    proto.expression.add(type=6, symbol="b4")
    proto.expression.add(type=5, symbol="eax", parent_index=0)
    proto.expression.add(type=6, symbol="b4")
    proto.expression.add(type=7, symbol="[", parent_index=2)
    proto.expression.add(type=4, symbol="+", parent_index=3)
    proto.expression.add(type=5, symbol="ebx", parent_index=4)
    proto.expression.add(immediate=12, parent_index=4)
    proto.operand.add(expression_index=[0, 1])
    proto.operand.add(expression_index=[2, 3, 4, 5, 6])
    proto.instruction.add(address=0x10, raw_bytes=b"abc", operand_index=[0, 1])
    proto.instruction.add(address=0x20, raw_bytes=b"x")
    proto.instruction.add(raw_bytes=b"r", mnemonic_index=1)
    block = proto.basic_block.add()
    block.instruction_index.add(begin_index=0)
    block.instruction_index.add(begin_index=2, end_index=3)
    proto.flow_graph.add(entry_basic_block_index=0, basic_block_index=[0])
    (functions,) = read(save(proto, tmp_path / "ida.BinExport"), with_text=True)
    assert (functions.name, functions.architecture) == ("sub_10", "x86")
    text = ("mov eax, dword ptr [ebx + 0xc]", "ret")
    assert functions.blocks == (Block(0x10, 4, ("mov", "ret"), text),)
    assert len(functions.file_hash) == 64


@pytest.mark.parametrize("content", [b"", b"no message at all", b"\n\xff", b"\x0b\x0c", b"\0\0"])
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.BinExport"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"x\.BinExport"):
        read(path)


@pytest.mark.parametrize("field", ["mnemonic", "basic_block", "instruction", "expression"])
def test_indices_into_nothing_are_refused(library: Path, tmp_path: Path, field: str) -> None:
    proto = export(library)[1]
    proto.ClearField(field)
    with pytest.raises(FormatError, match="damaged"):
        read(save(proto, tmp_path / "x.BinExport"), with_text=True)


def test_shared_code_does_not_explode(library: Path, tmp_path: Path) -> None:
    """A block of every instruction many times over, in every function many times over."""
    proto = export(library)[1]
    block = proto.basic_block[0]
    for _ in range(3000):
        block.instruction_index.add(begin_index=0, end_index=len(proto.instruction))
    for graph in proto.flow_graph:
        graph.basic_block_index.extend([0] * 3000)
    path = save(proto, tmp_path / "x.BinExport")
    source = BinExportSource(path, limits=Limits(function_bytes=10_000))
    start = time.process_time()
    assert list(source.functions()) == []
    assert {item.reason.partition(", ")[2] for item in source.skipped} == {
        "over the limit of 10000"
    }
    assert time.process_time() - start < 10


def test_time_is_limited(library: Path, tmp_path: Path) -> None:
    source = BinExportSource(
        save(export(library)[1], tmp_path / "x.BinExport"), limits=Limits(seconds=0)
    )
    assert list(source.functions()) == []
    assert "is over" in source.skipped[0].reason


def test_mutants_neither_crash_nor_hang(library: Path, tmp_path: Path) -> None:
    data = export(library)[1].SerializeToString()
    path = tmp_path / "x.BinExport"
    refused = 0
    for seed in range(300):
        rng = random.Random(seed)
        mutant = bytearray(data)
        for _ in range(rng.choice([1, 3, 10])):
            mutant[rng.randrange(len(mutant))] = rng.choice([0, 127, 128, 255, rng.randrange(256)])
        if rng.random() < 0.2:
            del mutant[rng.randrange(1, len(mutant)) :]
        path.write_bytes(mutant)
        try:
            for function in read(path, with_text=True):
                count = len(function.blocks)
                assert all(0 <= a < count and 0 <= b < count for a, b in function.edges), seed
        except FormatError:
            refused += 1
    assert 0 < refused < 300
