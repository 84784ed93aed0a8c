"""What a binary gives: functions, as basic blocks of mnemonics and the control flow between."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple

from graphkin.binaries.demangling import shown_name
from graphkin.binaries.operations import operation_names
from graphkin.errors import GraphError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graphkin.graphs import Graph, WordBags
    from graphkin.graphs.vocabulary import Vocabulary

CLONE_SUFFIX = re.compile(r"\.(?:part|isra|constprop|cold|lto_priv|llvm)(?:\.\d+)*(?=\.|$)")
"""What gcc and clang append to the name of a function that they cut, cloned or privatised."""
UNNAMED = re.compile(r"(sub|fcn|fun|func|loc)_[0-9a-f]+", re.IGNORECASE)
"""What tools call a function whose name nobody knows."""
MEMBER = re.compile(r"(.+)\(([^()]+)\)$", re.DOTALL)
"""A file, and what it holds: a member of an archive, or a slice of a fat file."""
NARROW = frozenset({"x86", "arm", "mips", "mipsel", "ppc"})
"""Architectures whose pointers have 32 bits."""
EdgeKind = Literal["taken", "not taken", "next", "jump", "case"]
TARGET = re.compile(r"(?:^|[\s,#])(0x[0-9a-f]+)$")
"""An address as the last operand."""


def pointer_bytes(architecture: str) -> int:
    """How wide pointers are."""
    return 4 if architecture in NARROW else 8


def base_name(name: str) -> str:
    """The name in the source: ``decode`` of ``decode.part.0.isra.1``."""
    return CLONE_SUFFIX.sub("", name) or name


def file_path(binary: str) -> str:
    """The file that a binary is, or that it is a member of."""
    member = MEMBER.fullmatch(binary)
    return member[1] if member else binary


def is_unnamed(name: str) -> bool:
    """Whether a name is one that a tool made up, from an address or from nothing."""
    return not name or UNNAMED.fullmatch(name) is not None


EvidenceKind = Literal["str", "imp", "num", "off", "flt", "dat"]
Callee = int | str
"""The address of a function of the same file, or the name of one of another file."""
LINKS = ("call", "tail call", "address")
"""How a function refers to another: by a call, by a jump at its end, or by its address."""


class Token(NamedTuple):
    """One thing that a function says, in a form that all processors and compilers share."""

    kind: EvidenceKind
    """A string, the name of an import, a constant, a field's offset, a constant of floating
    point, or the first bytes of a table."""
    text: str


class Block(NamedTuple):
    """A basic block. A tuple, because a large binary has millions of them."""

    address: int
    size: int
    """Bytes of code."""
    mnemonics: tuple[str, ...]
    """One shared string for each instruction, in order."""
    instructions: tuple[str, ...] | None = None
    """The text of each instruction, where it was asked for."""
    operations: bytes | None = None
    """What the instructions do, in order: numbers of ``OPERATIONS`` in
    :mod:`graphkin.binaries.operations`. None where nobody asked, or the backend cannot
    tell."""
    evidence: tuple[Token, ...] | None = None
    """What the block says, in order; None likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function of a binary. Block 0 is its entry."""

    name: str
    address: int
    size: int
    """Bytes of the function's own range; a part split off by the compiler does not count."""
    blocks: tuple[Block, ...]
    edges: tuple[tuple[int, int], ...]
    """(source, target) indices of blocks, sorted, each pair once."""
    architecture: str
    """``x86-64``, ``x86``, ``aarch64``, ``arm``; ``mips`` and ``mips64`` are big-endian, ``mipsel``
    and ``mips64el`` little-endian; ``riscv64``; ``ppc`` is big-endian, ``ppc64le`` is not."""
    format: str
    """``elf``, ``pe``, ``macho``, or ``raw`` for an image without a header."""
    file_hash: str
    """SHA-256 of the file, in hexadecimal."""
    binary: str
    """Path of the file; a member of an archive is ``path(member)``."""
    compiler: str | None = None
    """What the binary says of its compiler, for example ``GCC: (Debian 12.2.0-14) 12.2.0``."""
    aliases: tuple[str, ...] = ()
    """Other names of the same address."""
    unit: str | None = None
    """The source file that a static function is local to, as the symbol table has it."""
    defined_in: str | None = None
    """The file in which the debug information says that it was written."""
    callees: tuple[Callee, ...] | None = None
    """Functions that it calls or whose address it takes, each once, without itself. None where
    nobody asked, or the backend cannot tell."""
    links: bytes = b""
    """How it refers to each of them, as numbers of ``LINKS``: the first that applies."""

    @property
    def base_name(self) -> str:
        """The name in the source: ``decode`` of ``decode.part.0.isra.1``."""
        return base_name(self.name)

    @property
    def internal_callees(self) -> tuple[int, ...]:
        """Addresses of functions of the same file that it calls."""
        return tuple(callee for callee in self.callees or () if isinstance(callee, int))

    def is_large(self, min_blocks: int) -> bool:
        """Whether it has enough blocks, or says enough, to be known from others."""
        # here, because most functions are large
        from graphkin.graphs.words import MOST_EXCEPTED, is_telling

        if len(self.blocks) >= min_blocks or min_blocks > MOST_EXCEPTED:
            return len(self.blocks) >= min_blocks
        return is_telling(token.kind for block in self.blocks for token in block.evidence or ())

    def code_hash(self) -> str:
        """SHA-256 of the code, wherever it lies: mnemonics and sizes of its blocks, and its edges.

        Neither addresses nor operands count, as they change where other code moves.
        """
        blocks = [(block.size, block.mnemonics) for block in self.blocks]
        return hashlib.sha256(repr((self.architecture, blocks, self.edges)).encode()).hexdigest()

    @property
    def shown(self) -> str:
        """The name for people: C++ and Rust names as their sources spell them."""
        return shown_name(self.name)

    def to_graph(self, vocabulary: Vocabulary) -> Graph:
        """A directed graph with a node for each block, which holds what the vocabulary reads:

        its mnemonics as tokens, or its operations as tokens and its evidence as hashed words.
        """
        import numpy as np  # here, because listing functions needs none of it

        from graphkin.graphs import Graph, TokenBags

        if not self.blocks:
            raise GraphError(f"function {self.name} of {self.binary} has no blocks")
        has_words = vocabulary.reads == "evidence"
        words = self.numbered_words(has_words)
        return Graph(
            len(self.blocks),
            np.array(self.edges, dtype=np.int32).reshape(-1, 2),
            directed=True,
            node_tokens=TokenBags.from_sizes(
                vocabulary.encode(words.names)[words.ids], words.lengths
            ),
            node_words=self.word_bags() if has_words else None,
        )

    def numbered_words(self, has_operations: bool) -> NumberedWords:
        """What the blocks do, as numbers: thousands of functions are read in a second.

        Args:
            has_operations: operations count, and not mnemonics.

        Raises:
            GraphError: as :meth:`operations` does.
        """
        import numpy as np

        if not has_operations:
            number: dict[str, int] = {}
            everything = chain.from_iterable(block.mnemonics for block in self.blocks)
            ids = [number.setdefault(word, len(number)) for word in everything]
            lengths = [len(block.mnemonics) for block in self.blocks]
            return NumberedWords(tuple(number), np.array(ids, dtype=np.int32), lengths)
        blocks = self._operation_bytes()
        joined = b"".join(blocks)
        distinct = bytes(dict.fromkeys(joined))
        numbers = bytes.maketrans(distinct, bytes(range(len(distinct))))
        return NumberedWords(
            operation_names(distinct),
            np.frombuffer(joined.translate(numbers), dtype=np.uint8).astype(np.int32),
            list(map(len, blocks)),
        )

    def operations(self) -> list[tuple[str, ...]]:
        """What each block does, by the names of operations.

        Raises:
            GraphError: where the function was read without, or by a backend that cannot tell.
        """
        return list(map(operation_names, self._operation_bytes()))

    def _operation_bytes(self) -> list[bytes]:
        known = [block.operations for block in self.blocks if block.operations is not None]
        if len(known) < len(self.blocks):
            raise GraphError(
                f"function {self.name} of {self.binary} was read without what it says and "
                f"does; for {self.architecture}, read by this backend, take a library of "
                "another model: graphkin index LIBRARY --model mnemonics FILES"
            )
        return known

    def word_bags(self) -> WordBags:
        """What every block says, as hashed words."""
        import numpy as np

        from graphkin.graphs import WordBags
        from graphkin.graphs.graph import running_offsets
        from graphkin.graphs.words import word_hash

        said = [block.evidence or () for block in self.blocks]
        hashes = [word_hash(token.kind, token.text) for tokens in said for token in tokens]
        offsets = running_offsets(np.array([len(tokens) for tokens in said]))
        return WordBags(np.array(hashes, dtype=np.uint64), offsets)


class NumberedWords(NamedTuple):
    """What the blocks of a function do, in turn."""

    names: tuple[str, ...]
    """Those that occur, each once, as they come."""
    ids: NDArray[np.int32]
    """(M,) positions in ``names``."""
    lengths: list[int]
    """How many each block has."""


class Skipped(NamedTuple):
    """A function, or a file when ``function`` is empty, that could not be read."""

    binary: str
    function: str
    reason: str
    has_code: bool = True
    """False for a file with nothing to read, such as an import library, which is no failure."""
    is_read: bool = False
    """The file was read all the same, and the reason is a remark about it."""

    @property
    def is_loss(self) -> bool:
        """Whether it is a whole file, or a member of one, that should have been read."""
        return not self.function and self.has_code and not self.is_read

    def __str__(self) -> str:
        target = f"{self.binary}:{self.function}" if self.function else self.binary
        reason = self.reason
        if reason.startswith(f"{self.binary} "):
            reason = f"it{reason.removeprefix(self.binary)}"
        return f"{target}: {reason}" if self.is_read else f"{target} skipped: {reason}"


def edge_kinds(function: Function) -> tuple[EdgeKind, ...]:
    """The kind of each edge, in the order of ``function.edges``.

    Of two successors, the one that the last instruction names is where a branch goes when it is
    taken; without the text of instructions, the one that does not follow in memory.
    """
    following: dict[int, list[int]] = {}
    for source, target in function.edges:
        following.setdefault(source, []).append(target)
    kinds: dict[tuple[int, int], EdgeKind] = {}
    for source, targets in following.items():
        if len(targets) == 2:
            named = _taken(function, source, targets)
            for target in targets:
                kinds[source, target] = "taken" if target == named else "not taken"
        elif len(targets) > 2:
            kinds.update({(source, target): "case" for target in targets})
        else:
            kinds[source, targets[0]] = _single(function, source, targets[0])
    return tuple(kinds[edge] for edge in function.edges)


def _taken(function: Function, source: int, targets: list[int]) -> int:
    named = _named_address(function, source)
    for target in targets:
        if function.blocks[target].address == named:
            return target
    first, second = targets
    # Padding may lie between a block and the one that it runs on into.
    end = function.blocks[source].address + function.blocks[source].size
    gaps = [function.blocks[target].address - end for target in targets]
    if gaps[0] >= 0 and (gaps[1] < 0 or gaps[0] < gaps[1]):
        return second
    return first


def _single(function: Function, source: int, target: int) -> EdgeKind:
    if _named_address(function, source) == function.blocks[target].address:
        return "jump"
    end = function.blocks[source].address + function.blocks[source].size
    return "next" if function.blocks[target].address >= end else "jump"


def _named_address(function: Function, source: int) -> int | None:
    instructions = function.blocks[source].instructions
    if not instructions:
        return None
    has_slot = function.architecture.startswith("mips") and len(instructions) > 1
    match = TARGET.search(instructions[-2 if has_slot else -1])
    return int(match[1], 16) if match else None
