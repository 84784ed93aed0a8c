"""Text of BinExport's instructions: mnemonics as capstone spells them, operands from trees."""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass, field

from graphkin.binaries.backends.binexport.wire import (
    Expression,
    Instruction,
    Operand,
    WireError,
    fields,
    numbers,
    signed,
)

SYMBOL, IMMEDIATE, FLOAT, OPERATOR, REGISTER, SIZE_PREFIX, DEREFERENCE = range(1, 8)
WIDTHS = {"b1": "byte", "b2": "word", "b4": "dword", "b8": "qword", "b16": "xmmword"}
MAX_DEPTH = 32
MAX_PARTS = 64
"""Expressions of one operand; real ones have fewer than ten."""

CONDITIONS = {
    "z": "e",
    "nz": "ne",
    "c": "b",
    "nae": "b",
    "nc": "ae",
    "nb": "ae",
    "na": "be",
    "nbe": "a",
    "nge": "l",
    "nl": "ge",
    "ng": "le",
    "nle": "g",
    "pe": "p",
    "po": "np",
}
"""Other spellings of the conditions of x86 to capstone's."""
SPELLINGS = {
    "retn": "ret",
    **{
        prefix + theirs: prefix + ours
        for prefix in ("j", "set", "cmov")
        for theirs, ours in CONDITIONS.items()
    },
}
PREFIXES = frozenset(["lock", "rep", "repe", "repne"])


def canonical(mnemonic: str) -> str:
    """The mnemonic that capstone prints: ``JZ`` gives ``je``, ``ADD.LOCK`` gives ``lock add``."""
    name = mnemonic.strip().lower()
    stem, _, prefix = name.rpartition(".")
    if stem and prefix in PREFIXES:
        name = f"{prefix} {stem}"
    return sys.intern(SPELLINGS.get(name, name))


@dataclass
class OperandText:
    """Renders operands, which are trees of expressions, on demand."""

    data: bytes
    expressions: array[int] = field(default_factory=lambda: array("Q"))
    """First byte, and the one behind the last, of each expression's message."""
    operands: array[int] = field(default_factory=lambda: array("Q"))
    instructions: array[int] = field(default_factory=lambda: array("Q"))

    def line(self, position: int, mnemonic: str) -> str:
        """The text of one instruction."""
        start, end = self.instructions[2 * position : 2 * position + 2]
        parts = [
            self._operand(signed(index))
            for number, value, behind in fields(self.data, start, end)
            if number == Instruction.OPERANDS
            for index in numbers(self.data, value, behind)
        ]
        return f"{mnemonic} {', '.join(parts)}".rstrip()

    def _operand(self, index: int) -> str:
        start, end = self._range(self.operands, index)
        parts = [
            signed(part)
            for number, value, behind in fields(self.data, start, end)
            if number == Operand.EXPRESSIONS
            for part in numbers(self.data, value, behind)
        ]
        nodes = {part: self._expression(part) for part in parts[:MAX_PARTS]}
        children: dict[int | None, list[int]] = {}
        for part, (_, _, parent) in nodes.items():
            children.setdefault(parent if parent in nodes else None, []).append(part)
        return "".join(_render(root, nodes, children, 0) for root in children.get(None, []))

    def _expression(self, index: int) -> tuple[int, str, int | None]:
        """Type, text and parent."""
        kind, symbol, immediate, parent = IMMEDIATE, "", 0, None
        for number, value, behind in fields(self.data, *self._range(self.expressions, index)):
            if number == Expression.TYPE and behind < 0:
                kind = value
            elif number == Expression.SYMBOL and behind >= 0:
                symbol = self.data[value:behind].decode("utf-8", "replace")
            elif number == Expression.IMMEDIATE and behind < 0:
                immediate = value
            elif number == Expression.PARENT and behind < 0:
                parent = signed(value)
        if kind == IMMEDIATE and not symbol:
            symbol = str(immediate) if immediate < 10 else hex(immediate)
        return kind, symbol, parent

    def _range(self, table: array[int], index: int) -> tuple[int, int]:
        if not 0 <= 2 * index < len(table):
            raise WireError(len(self.data))
        return table[2 * index], table[2 * index + 1]


def _render(
    node: int,
    nodes: dict[int, tuple[int, str, int | None]],
    children: dict[int | None, list[int]],
    depth: int,
) -> str:
    kind, symbol, _ = nodes[node]
    if depth > MAX_DEPTH:
        return symbol
    inner = [_render(child, nodes, children, depth + 1) for child in children.get(node, [])]
    if kind == DEREFERENCE:
        return f"[{''.join(inner)}]"
    if kind == SIZE_PREFIX:
        # Only memory needs its width told; registers have it in their names.
        text = "".join(inner)
        return f"{WIDTHS.get(symbol, symbol)} ptr {text}" if text.startswith("[") else text
    if kind == OPERATOR and len(inner) > 1:
        between = symbol if symbol in "*:" else f" {symbol} "
        return between.join(inner)
    return symbol + "".join(inner)
