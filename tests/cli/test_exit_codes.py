"""What a pipeline learns from the end of a command."""

from __future__ import annotations

import inspect

import pytest
import typer

from graphkin import errors
from graphkin.binaries.function import Skipped
from graphkin.cli.exit_codes import MEANINGS, exit_with, is_incomplete


def test_no_error_has_such_a_code() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    taken = {kind.exit_code for kind in kinds if issubclass(kind, errors.GraphkinError)}
    assert not taken & set(MEANINGS)
    assert not {0, 1, 2, 130} & set(MEANINGS)


@pytest.mark.parametrize(
    ("has_hit", "is_partial", "code"), [(True, False, 20), (False, True, 21), (True, True, 22)]
)
def test_codes(has_hit: bool, is_partial: bool, code: int) -> None:
    with pytest.raises(typer.Exit) as ended:
        exit_with(has_hit=has_hit, is_partial=is_partial)
    assert ended.value.exit_code == code


def test_neither_is_a_success() -> None:
    exit_with(has_hit=False, is_partial=False)


def test_what_makes_an_input_incomplete() -> None:
    assert not is_incomplete([])
    assert not is_incomplete([Skipped("lib.so", "odd", "its first bytes are not an instruction")])
    assert is_incomplete([Skipped("lib.so", "odd", "it is absent")], ["other.so", "lib.so:odd"])
    assert is_incomplete([Skipped("lib.a(one.o)", "", "the archive ends inside it")])
    assert not is_incomplete([Skipped("names.lib", "", "it has no code", has_code=False)])
    assert not is_incomplete([Skipped("lib.so", "", "its debug file is another's", is_read=True)])
