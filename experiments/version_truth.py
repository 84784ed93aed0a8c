"""Which functions a patch touched, and in which of them that can be seen.

Both versions are built with ``-g -save-temps=obj``: the text of a function is what the preprocessor
left of it, so that comments, code for other systems and line numbers do not count.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile

MARKER = re.compile(r'^# (\d+) "([^"]*)"')
TOKEN = re.compile(
    r"""
    "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
    | \.?\d(?:[eEpP][+-]|[\w.])* | \w+
    | \.\.\. | <<= | >>= | -> | \+\+ | -- | << | >> | && | \|\| | [-+*/%&|^<>=!]=
    | [^\s\w]
    """,
    re.X,
)
LINE = "0"
"""Stands for ``__LINE__``."""
LONGEST_CALL = 20
"""Lines that a call of a macro may span: the preprocessor writes its first line, and expands
``__LINE__`` to its last."""
FLAG = re.compile(r"^-(?:O|f|m|std=)")
LIBRARY_FLAGS = re.compile(r"^-f(?:file|debug|macro)-prefix-map|^-flto")


class Place(NamedTuple):
    """Where a function was written."""

    function: str
    file: str
    line: int


class Span(NamedTuple):
    """The text of a function, and where in the preprocessed unit it is."""

    start: int
    end: int
    text: str
    """Its tokens."""


class Compiled(NamedTuple):
    """A function of a build: of what it was made."""

    unit: str
    """The source file that was compiled."""
    flags: tuple[str, ...]
    """That the code depends on."""
    places: frozenset[Place]
    """The function, and those that the compiler put into it."""


class Unit:
    """A source file as the preprocessor left it."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(errors="replace")

    @cached_property
    def _starts(self) -> dict[tuple[str, int], int]:
        """Where the text of each line of each file starts."""
        starts: dict[tuple[str, int], int] = {}
        file, line, position = "", 0, 0
        for own in self.text.splitlines(keepends=True):
            marker = MARKER.match(own)
            if marker is None:
                starts.setdefault((file, line), position)
                line += 1
            else:
                file, line = Path(marker[2]).name, int(marker[1])
            position += len(own)
        return starts

    def span(self, place: Place) -> Span | None:
        """The definition of a function, if it is in this unit."""
        start = self._starts.get((place.file, place.line))
        if start is None:
            return None
        name = re.compile(rf"\b{re.escape(place.function)}\s*\(").search(self.text, start)
        if name is None:
            return None
        start, line, depth, tokens = name.start(), place.line, 0, []
        position = start
        while position < len(self.text):
            if self.text[position] == "\n":
                line += 1
                marker = MARKER.match(self.text[position + 1 : position + 300])
                if marker is not None:
                    line = int(marker[1]) - 1
                    position = self.text.find("\n", position + 1)
                    continue
            token = TOKEN.match(self.text, position)
            position = token.end() if token else position + 1
            if token is None:
                continue
            is_line = token[0].isdecimal() and line <= int(token[0]) <= line + LONGEST_CALL
            tokens.append(LINE if is_line else token[0])
            depth += (token[0] == "{") - (token[0] == "}")
            if token[0] == "}" and depth == 0:
                return Span(start, position, " ".join(tokens))
            if tokens[-2:] == [")", ";"] and "{" not in tokens:
                return None
        return None


class Build:
    """One version of a library: its functions, and their texts."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.functions = functions_of(library)
        self._paths: dict[str, Path] = {}
        for path in sorted(folder.rglob("*.i")):
            with path.open(errors="replace") as file:
                marker = MARKER.match(file.readline())
            if marker is not None:
                self._paths.setdefault(Path(marker[2]).name, path)
        self._units: dict[str, Unit | None] = {}

    def unit(self, name: str) -> Unit | None:
        """A source file by its name, if the build kept it."""
        if name not in self._units:
            path = self._paths.get(name)
            self._units[name] = None if path is None else Unit(path)
        return self._units[name]

    def spans(self, name: str) -> dict[str, Span]:
        """The text of a function and of what was put into it, by name."""
        compiled = self.functions[name]
        unit = self.unit(compiled.unit)
        if unit is None:
            return {}
        spans = {place.function: unit.span(place) for place in compiled.places}
        return {function: span for function, span in spans.items() if span is not None}

    def texts(self, name: str) -> dict[str, str]:
        """Without where they are."""
        return {function: span.text for function, span in self.spans(name).items()}


def functions_of(path: Path) -> dict[str, Compiled]:
    """The functions of a build, by the names that their authors gave them, if one file has each."""
    found: dict[str, tuple[str, tuple[str, ...], set[Place]]] = {}
    ambiguous: set[str] = set()
    with path.open("rb") as file:
        dwarf = ELFFile(file).get_dwarf_info()
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            top = unit.get_top_DIE()
            source, flags = (
                Path(_text(top, "DW_AT_name")).name,
                _flags(_text(top, "DW_AT_producer")),
            )
            for entry in top.iter_children():
                if entry.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in entry.attributes:
                    origin = _origin(entry)
                    name = _text(origin, "DW_AT_name")
                    own = found.setdefault(name, (source, flags, set()))
                    own[2].update(_place(program, item) for item in (origin, *_inlined(entry)))
                    if own[0] != source:
                        ambiguous.add(name)
    return {
        name: Compiled(source, flags, frozenset(place for place in places if place.line))
        for name, (source, flags, places) in found.items()
        if name not in ambiguous
    }


def _flags(producer: str) -> tuple[str, ...]:
    return tuple(
        flag for flag in producer.split() if FLAG.match(flag) and not LIBRARY_FLAGS.match(flag)
    )


def _origin(entry: Any) -> Any:
    """The entry that has the name and the line."""
    while "DW_AT_abstract_origin" in entry.attributes:
        entry = entry.get_DIE_from_attribute("DW_AT_abstract_origin")
    return entry


def _text(entry: Any, name: str) -> str:
    value = entry.attributes.get(name)
    return "" if value is None else str(value.value.decode())


def _inlined(entry: Any) -> Iterator[Any]:
    for child in entry.iter_children():
        if child.tag == "DW_TAG_inlined_subroutine":
            yield _origin(child)
        yield from _inlined(child)


def _place(program: Any, entry: Any) -> Place:
    own = entry.attributes
    name = _text(entry, "DW_AT_name")
    if "DW_AT_decl_line" not in own or "DW_AT_decl_file" not in own:
        return Place(name, "", 0)
    file = program["file_entry"][own["DW_AT_decl_file"].value - (program["version"] < 5)]
    return Place(name, Path(file.name.decode()).name, own["DW_AT_decl_line"].value)


def leaves_no_trace(old: Build, new: Build, name: str, compiler: str) -> bool:
    """Whether the new source with the old text of a function compiles to the same code.

    Nobody can see such a change in a binary. The old text is put in the place of the new one, and
    that of those functions that the compiler put inside. Where all of these texts are as before,
    the compiler has put others inside, and that is a trace.
    """
    compiled = new.functions[name]
    unit = new.unit(compiled.unit)
    if unit is None:
        return False
    before, after = old.spans(name), new.spans(name)
    spans = sorted((after[own], before[own]) for own in after.keys() & before.keys())
    if all(ours.text == theirs.text for ours, theirs in spans):
        return False
    swapped, kept, position = "", "", 0
    for ours, theirs in spans:
        between = unit.text[position : ours.start]
        swapped += between + theirs.text
        kept += between + ours.text
        position = ours.end
    rest = unit.text[position:]
    codes = [compiled_code(text + rest, name, compiler, compiled.flags) for text in (swapped, kept)]
    return bool(codes[0]) and codes[0] == codes[1]


def compiled_code(text: str, name: str, compiler: str, flags: tuple[str, ...]) -> str:
    """Instructions and relocations of a function of a preprocessed unit; none if it is not there,
    or does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "unit.i", Path(folder) / "unit.o"
        source.write_text(text)
        command = [compiler, *flags, "-w", "-ffunction-sections", "-c", source, "-o", target]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return ""
        listing = subprocess.run(
            ["objdump", "-dr", "--no-show-raw-insn", target],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    own = re.compile(rf"section \.text(?:\.unlikely|\.hot|\.startup)?\.{re.escape(name)}(?:\.|:)")
    sections = re.split(r"(?=^Disassembly of )", listing, flags=re.M)
    return "".join(section for section in sections if own.search(section.partition("\n")[0]))
