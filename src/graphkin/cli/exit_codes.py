"""Exit codes that are no errors: what a pipeline wants to know of a run that went to its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from graphkin.binaries.function import Skipped

FOUND = 20
UNREADABLE = 21
FOUND_AND_UNREADABLE = 22
MEANINGS = {
    FOUND: "With `--exit-code`: there is a hit, and all input was read.",
    UNREADABLE: "Some input could not be read, or nothing of it could be looked up, or too little "
    "of the code of a file that was searched is inside functions; what could be read was handled "
    "as usual. With `--exit-code`: and there is no hit.",
    FOUND_AND_UNREADABLE: "With `--exit-code`: there is a hit, and some input could not be read.",
}
"""Both at once have a code of their own: a pipeline may tolerate either without the other."""


def exit_with(*, has_hit: bool, is_partial: bool) -> None:
    """Ends the command with the code for what happened; returns where neither did."""
    if has_hit or is_partial:
        both = has_hit and is_partial
        raise typer.Exit(FOUND_AND_UNREADABLE if both else FOUND if has_hit else UNREADABLE)


def is_incomplete(skipped: Iterable[Skipped], named: Iterable[str] = ()) -> bool:
    """Whether a whole input was skipped: a file, a member of an archive, or a function by name.

    Files without code and remarks about files that were read do not count, nor do single functions
    of a file that was read: large binaries have some that nobody can decode, and a code that is
    always set would tell nothing.

    Args:
        skipped: files and functions.
        named: what a person typed.
    """
    inputs = set(named)
    return any(skip.is_loss or f"{skip.binary}:{skip.function}" in inputs for skip in skipped)
