"""One function of a binary, by name or by address: ``libx.so:decode``, ``libx.so:0x1234``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from graphkin.binaries.backends.base import FunctionSource, Limits, Wants, extent_of
from graphkin.binaries.backends.choose import Backend, open_source
from graphkin.binaries.containers.unpack import SEPARATOR
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.demangling import containing, shown_name, spelled
from graphkin.binaries.function import MEMBER, Function, Skipped, base_name
from graphkin.binaries.image import Extent
from graphkin.errors import ConfigError, FormatError, NoCodeError

ADDRESS = re.compile(r"0[xX][0-9a-fA-F]+$")
MOST_LISTED = 12
"""Functions that an error names."""
MOST_CLOSE = 5
"""Names that an error proposes."""


class Target(NamedTuple):
    """What a person asks for."""

    path: str
    member: str | None = None
    """Of a static archive, or of a fat file."""
    function: str | None = None
    """A name, or an address in hexadecimal; None for all functions."""
    inside: str | None = None
    """A member of a container, ``inner`` of ``outer!inner``; ``path`` is the container."""

    @property
    def address(self) -> int | None:
        text = self.function
        return int(text, 16) if text is not None and ADDRESS.match(text) else None

    @property
    def binary(self) -> str:
        file = self.path if self.inside is None else f"{self.path}{SEPARATOR}{self.inside}"
        return file if self.member is None else f"{file}({self.member})"


def parse_target(text: str) -> Target:
    """Reads ``BINARY``, ``BINARY:FUNCTION`` or ``BINARY:0xADDRESS``.

    The binary may be ``archive.a(member.o)``, or ``package.deb!usr/bin/x`` for a member of a
    container. Paths and names may hold colons: the longest part that is a file is the path. Where
    none is, the last colon parts path and function. Behind ``!``, it is the first colon;
    :func:`~graphkin.binaries.inputs.find_target` looks whether a member has colons in its name.
    """
    cuts = [len(text), *(at for at in reversed(range(len(text))) if text[at] == ":")]
    for cut in cuts:
        file = _existing(text[:cut])
        if file is not None:
            return _checked(Target(*file, text[cut + 1 :] if cut < len(text) else None), text)
    inside = _inside(text)
    if inside is not None:
        return _checked(inside, text)
    path, colon, function = text.rpartition(":")
    return _checked(Target(path, None, function) if colon else Target(text), text)


def _checked(target: Target, text: str) -> Target:
    if not target.path or target.function == "":
        raise ConfigError(f"{text!r} names no function; write BINARY:FUNCTION or BINARY:0x1234")
    return target


def _inside(text: str) -> Target | None:
    """The target where a part ahead of a ``!`` is a file: the longest such part is the path."""
    for cut in (at for at in reversed(range(len(text))) if text[at] == SEPARATOR):
        path, rest = text[:cut], text[cut + 1 :]
        try:
            if not Path(path).is_file():
                continue
        except (OSError, ValueError):
            continue
        inner, colon, function = rest.partition(":")
        if not inner:
            raise ConfigError(f"{text!r} names no member; write CONTAINER!MEMBER[:FUNCTION]")
        match = MEMBER.match(inner)
        inner, member = (match[1], match[2]) if match else (inner, None)
        return Target(path, member, function if colon else None, inner)
    return None


def with_longer_members(target: Target) -> list[Target]:
    """Other readings of a target inside a container, where colons are part of the member's name;
    the longest name comes first."""
    if target.inside is None or target.function is None:
        return []
    inner = target.binary.removeprefix(target.path + SEPARATOR)
    rest = f"{inner}:{target.function}"
    cuts = [
        len(rest),
        *(at for at in reversed(range(len(inner) + 1, len(rest))) if rest[at] == ":"),
    ]
    targets = []
    for cut in cuts:
        match = MEMBER.match(rest[:cut])
        name, member = (match[1], match[2]) if match else (rest[:cut], None)
        targets.append(Target(target.path, member, rest[cut + 1 :] or None, name))
    return targets


def _existing(path: str) -> tuple[str, str | None] | None:
    """Path and member, where there is such a file."""
    match = MEMBER.match(path)
    for name, member in [(path, None), *([(match[1], match[2])] if match else [])]:
        try:
            if Path(name).exists():
                return name, member
        except (OSError, ValueError):  # too long for a path, or with a zero byte
            continue
    return None


def list_functions(
    target: Target,
    backend: Backend = "auto",
    skipped: list[Skipped] | None = None,
    *,
    coverages: list[Coverage] | None = None,
    with_text: bool = False,
    with_files: bool = False,
    with_evidence: bool = False,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Iterator[Function]:
    """Every function of a target's file, or of the member that it names.

    Args:
        target: the file, and the member.
        backend: what reads the file.
        skipped: is filled with what could not be read.
        coverages: is filled with how much of the code is inside functions.
        with_text: keeps the text of every instruction.
        with_files: tells in which file a function was written, where the backend knows.
        with_evidence: tells what functions say, where the backend knows.
        limits: what the file may cost.

    Raises:
        ConfigError: for a member that is not there.
        FormatError: for a file that cannot be read, or has no functions.
    """
    skipped = [] if skipped is None else skipped
    already = len(skipped)
    source = open_source(
        target.path,
        backend=backend,
        with_text=with_text,
        with_files=with_files,
        with_evidence=with_evidence,
        limits=limits,
        skipped=skipped,
        coverages=coverages,
    )
    is_empty, binaries = True, dict[str, None]()
    for function in source.functions():
        binaries[function.binary] = None
        if _is_inside(function, target):
            is_empty = False
            yield function
    if is_empty and binaries:
        known = ", ".join(shortened([binary.removeprefix(target.path) for binary in binaries]))
        raise ConfigError(
            f"{target.path} has no member {target.member} with functions, but {known}"
        )
    if is_empty:
        raise _unreadable(target, skipped[already:])


def find_function(
    target: Target,
    backend: Backend = "auto",
    *,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Function:
    """The function that a target names, with the text of its instructions and what it says.

    Raises:
        ConfigError: for a name or an address that no function has, or that several have.
        FormatError: for a file that cannot be read.
    """

    def open_file(wants: Wants | None) -> FunctionSource:
        return open_source(
            target.path,
            backend=backend,
            with_text=True,
            with_evidence=True,
            limits=limits,
            wants=wants,
        )

    return choose(target, open_file)


def choose(target: Target, open_file: Callable[[Wants | None], FunctionSource]) -> Function:
    """The one function of a source that matches best.

    A name is looked for among the names, then the aliases, then the names in the source
    (``decode`` finds ``decode.part.0``), then what C++ and Rust call it (``ns::decode(int)``, or
    ``ns::decode``); an address among the starts, then the ranges, then the parts that the compiler
    split off.

    Args:
        target: what to look for.
        open_file: opens a source of the functions that its argument says yes to.
    """
    names: set[str] = set()

    def wants(extent: Extent) -> bool:
        names.update((extent.name, *extent.aliases))
        return _grade(target, extent) is not None

    source = open_file(wants)
    graded: list[tuple[int, Function]] = []
    elsewhere: list[str] = []
    for function in source.functions():
        grade = _grade(target, extent_of(function))
        assert grade is not None, "a source yields what it was asked for"
        if _is_inside(function, target):
            graded.append((grade, function))
        else:
            elsewhere.append(function.binary)
    matches = _best(target, graded)
    if not matches and target.address is not None:
        matches = list(_containing(open_file(None).functions(), target))
    elif not matches and target.function is not None:
        matches = list(_spelled(open_file, target, names))
    if not matches and elsewhere:
        others = ", ".join(shortened(elsewhere))
        raise ConfigError(f"{target.binary} has no function {target.function}, but {others} have")
    if not matches:
        raise _absent(target, names, source.skipped)
    if len(matches) > 1:
        raise _ambiguous(target, matches)
    return matches[0]


def _is_inside(function: Function, target: Target) -> bool:
    """Whether a function is of the member that a target names; always where it names none."""
    return target.member is None or function.binary.endswith(f"({target.member})")


def _grade(target: Target, extent: Extent) -> int | None:
    """How well a function matches: 0 is best, None not at all."""
    address = target.address
    if address is None:
        if extent.name == target.function:
            return 0
        if target.function in extent.aliases:
            return 1
        return 2 if target.function == base_name(extent.name) else None
    if extent.start == address:
        return 0
    # Of ranges that overlap, the one that begins last is the innermost.
    return 1 + address - extent.start if extent.start < address < extent.end else None


def _best(target: Target, graded: list[tuple[int, Function]]) -> list[Function]:
    """The functions with the best grade; by address, the best one of each file of an archive."""
    best: dict[str, int] = {}
    for grade, function in graded:
        binary = function.binary if target.address is not None else ""
        best[binary] = min(grade, best.get(binary, grade))
    return [
        function
        for grade, function in graded
        if grade == best[function.binary if target.address is not None else ""]
    ]


def _containing(functions: Iterator[Function], target: Target) -> Iterator[Function]:
    """The first function with a block at an address: split-off parts lie outside its range."""
    address = target.address
    assert address is not None
    matches = (
        function
        for function in functions
        if _is_inside(function, target)
        and any(block.address <= address < block.address + block.size for block in function.blocks)
    )
    return islice(matches, 1)


def _spelled(
    open_file: Callable[[Wants | None], FunctionSource], target: Target, names: set[str]
) -> Iterator[Function]:
    """The functions whose names the source spells as a target does."""
    assert target.function is not None
    spellings = spelled(target.function, names)
    if spellings:
        source = open_file(lambda extent: not spellings.isdisjoint((extent.name, *extent.aliases)))
        yield from (item for item in source.functions() if _is_inside(item, target))


def _absent(target: Target, names: set[str], skipped: list[Skipped]) -> ConfigError | FormatError:
    for item in skipped:
        if item.function and item.function == target.function:
            return FormatError(str(item))
    if not names:
        return _unreadable(target, skipped)
    listing = f"`graphkin show {target.binary}` lists its functions"
    if target.address is not None:
        message = f"no function of {target.binary} holds the address {target.function}"
        return ConfigError(f"{message}; {listing}")
    assert target.function is not None
    close = get_close_matches(target.function, sorted(names), n=MOST_CLOSE)
    close = close or [shown_name(name) for name in _alike(target.function, names)]
    hint = f"the closest names are {', '.join(close)}" if close else listing
    return ConfigError(f"{target.binary} has no function {target.function}; {hint}")


def _alike(text: str, names: set[str]) -> list[str]:
    """The shortest mangled names that hold the longest word of a text; none without a word."""
    alike = containing(text, names) if text.isprintable() and len(text) > 2 else iter(())
    return sorted(alike, key=lambda name: (len(name), name))[:MOST_CLOSE]


def _unreadable(target: Target, skipped: list[Skipped]) -> FormatError:
    reasons = "; ".join(shortened([str(item) for item in skipped]))
    return nothing_read(skipped)(reasons or f"{target.binary} has no functions")


def nothing_read(skipped: Sequence[Skipped]) -> type[FormatError]:
    """The error for a target without a function, by what was skipped of it."""
    has_code = not skipped or any(item.has_code for item in skipped)
    return FormatError if has_code else NoCodeError


def shortened(items: list[str]) -> list[str]:
    """The first ones, and how many more there are."""
    more = len(items) - MOST_LISTED
    return items[:MOST_LISTED] + ([f"and {more} more"] if more > 0 else [])


def _ambiguous(target: Target, matches: list[Function]) -> ConfigError:
    choices = []
    for function in matches:
        inside = "" if function.binary == target.binary else f"{function.binary}:"
        name = "" if function.name == target.function else shown_name(function.name)
        notes = ", ".join(note for note in (name, function.unit) if note)
        choices.append(f"{inside}0x{function.address:x}" + (f" ({notes})" if notes else ""))
    which = target.function if target.address is None else f"at {target.function}"
    return ConfigError(
        f"{target.binary} has {len(matches)} functions {which}; "
        f"name one by its address: {', '.join(shortened(choices))}"
    )
