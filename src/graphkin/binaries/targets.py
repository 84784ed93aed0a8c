"""One function of a binary, by name or by address: ``libx.so:decode``, ``libx.so:0x1234``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from graphkin.binaries.backends.choose import Backend, open_source
from graphkin.binaries.function import Function, FunctionSource, Skipped, base_name
from graphkin.binaries.image import Extent
from graphkin.errors import ConfigError, FormatError

ADDRESS = re.compile(r"0[xX][0-9a-fA-F]+$")
MEMBER = re.compile(r"(.+)\(([^()]+)\)$", re.DOTALL)
MOST_LISTED = 12
"""Functions that an error names."""

Wanted = Callable[[Extent], bool]


class Target(NamedTuple):
    """What a person asks for."""

    path: str
    member: str | None = None
    """Of a static archive, or of a fat file."""
    function: str | None = None
    """A name, or an address in hexadecimal; None for all functions."""

    @property
    def address(self) -> int | None:
        text = self.function
        return int(text, 16) if text is not None and ADDRESS.match(text) else None

    @property
    def binary(self) -> str:
        return self.path if self.member is None else f"{self.path}({self.member})"


def parse_target(text: str) -> Target:
    """Reads ``BINARY``, ``BINARY:FUNCTION`` or ``BINARY:0xADDRESS``.

    The binary may be ``archive.a(member.o)``. Paths and names may hold colons: the longest part
    that is a file is the path. Where none is, the last colon parts path and function.
    """
    cuts = [len(text), *(at for at in reversed(range(len(text))) if text[at] == ":")]
    for cut in cuts:
        found = _existing(text[:cut])
        if found is not None:
            return _checked(Target(*found, text[cut + 1 :] if cut < len(text) else None), text)
    path, colon, function = text.rpartition(":")
    return _checked(Target(path, None, function) if colon else Target(text), text)


def _checked(target: Target, text: str) -> Target:
    if not target.path or target.function == "":
        raise ConfigError(f"{text!r} names no function; write BINARY:FUNCTION or BINARY:0x1234")
    return target


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
    target: Target, backend: Backend = "auto", skipped: list[Skipped] | None = None
) -> Iterator[Function]:
    """Every function of a target's file, or of the member that it names.

    Args:
        skipped: is filled with what could not be read.

    Raises:
        ConfigError: for a member that is not there.
        FormatError: for a file that cannot be read, or has no functions.
    """
    source = open_source(target.path, backend=backend)
    source.skipped = [] if skipped is None else skipped
    is_empty, places = True, dict[str, None]()
    for function in source.functions():
        places[function.binary] = None
        if _is_inside(function, target):
            is_empty = False
            yield function
    if is_empty and places:
        known = ", ".join(_shortened([place.removeprefix(target.path) for place in places]))
        raise ConfigError(
            f"{target.path} has no member {target.member} with functions, but {known}"
        )
    if is_empty:
        raise _unreadable(target, source.skipped)


def find_function(target: Target, backend: Backend = "auto") -> Function:
    """The function that a target names, with the text of its instructions.

    Raises:
        ConfigError: for a name or an address that no function has, or that several have.
        FormatError: for a file that cannot be read.
    """

    def open_file(wanted: Wanted | None) -> FunctionSource:
        return open_source(target.path, backend=backend, with_text=True, wanted=wanted)

    return choose(target, open_file)


def choose(target: Target, open_file: Callable[[Wanted | None], FunctionSource]) -> Function:
    """The one function of a source that fits best.

    A name is looked for among the names, then the aliases, then the names in the source
    (``decode`` finds ``decode.part.0``); an address among the starts, then the ranges, then the
    parts that the compiler split off.

    Args:
        target: what to look for.
        open_file: opens the source; it may leave out functions that the argument says no to.
    """
    names: set[str] = set()

    def wanted(extent: Extent) -> bool:
        names.update((extent.name, *extent.aliases))
        return _grade(target, extent) is not None

    source = open_file(wanted)
    graded: list[tuple[int, Function]] = []
    elsewhere: list[str] = []
    for function in source.functions():
        end = function.address + function.size
        extent = Extent(function.address, end, function.name, function.aliases)
        names.update((function.name, *function.aliases))
        grade = _grade(target, extent)
        if grade is None:
            continue
        if _is_inside(function, target):
            graded.append((grade, function))
        else:
            elsewhere.append(function.binary)
    found = _best(target, graded)
    if not found and target.address is not None:
        found = list(_containing(open_file(None).functions(), target))
    if not found and elsewhere:
        places = ", ".join(_shortened(elsewhere))
        raise ConfigError(f"{target.binary} has no function {target.function}, but {places} have")
    if not found:
        raise _absent(target, names, source.skipped)
    if len(found) > 1:
        raise _ambiguous(target, found)
    return found[0]


def _is_inside(function: Function, target: Target) -> bool:
    """Whether a function is of the member that a target names; always where it names none."""
    return target.member is None or function.binary.endswith(f"({target.member})")


def _grade(target: Target, extent: Extent) -> int | None:
    """How well a function fits: 0 is best, None not at all."""
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
        place = function.binary if target.address is not None else ""
        best[place] = min(grade, best.get(place, grade))
    return [
        function
        for grade, function in graded
        if grade == best[function.binary if target.address is not None else ""]
    ]


def _containing(functions: Iterator[Function], target: Target) -> Iterator[Function]:
    """The first function with a block at an address: split-off parts lie outside its range."""
    at = target.address
    assert at is not None
    holds = (
        function
        for function in functions
        if _is_inside(function, target)
        and any(block.address <= at < block.address + block.size for block in function.blocks)
    )
    return islice(holds, 1)


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
    close = get_close_matches(target.function, sorted(names), n=5)
    hint = f"the closest names are {', '.join(close)}" if close else listing
    return ConfigError(f"{target.binary} has no function {target.function}; {hint}")


def _unreadable(target: Target, skipped: list[Skipped]) -> FormatError:
    reasons = "; ".join(_shortened([str(item) for item in skipped]))
    return FormatError(reasons or f"{target.binary} has no functions")


def _shortened(items: list[str]) -> list[str]:
    """The first ones, and how many more there are."""
    more = len(items) - MOST_LISTED
    return items[:MOST_LISTED] + ([f"and {more} more"] if more > 0 else [])


def _ambiguous(target: Target, found: list[Function]) -> ConfigError:
    places = []
    for function in found:
        inside = "" if function.binary == target.binary else f"{function.binary}:"
        name = "" if function.name == target.function else function.name
        notes = ", ".join(note for note in (name, function.unit) if note)
        places.append(f"{inside}0x{function.address:x}" + (f" ({notes})" if notes else ""))
    which = target.function if target.address is None else f"at {target.function}"
    return ConfigError(
        f"{target.binary} has {len(found)} functions {which}; "
        f"name one by its address: {', '.join(_shortened(places))}"
    )
