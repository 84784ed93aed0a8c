"""One vocabulary: whichever command takes an option, it means the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from graphkin.cli.options import with_groups
from tests.scripts import script

GENERATE = script("docs/generate.py")
MEANINGS = GENERATE.meanings()


def test_all_commands_are_walked() -> None:
    assert len(MEANINGS) > 60
    (commands,) = MEANINGS["--threads"].values()
    assert {"train edits", "eval functions", "calibrate meshes", "reproduce"} <= set(commands)
    (filtering,) = MEANINGS["--blocks"]
    assert "library" in filtering.panel
    assert list(MEANINGS["--split"].values()) == [
        ["eval edits", "eval functions", "eval meshes", "eval graphs"]
    ]


@pytest.mark.parametrize("option", MEANINGS)
def test_an_option_has_one_meaning(option: str) -> None:
    """The same help text, type, limits and panel everywhere."""
    assert len(MEANINGS[option]) == 1, MEANINGS[option]


def test_a_group_of_options() -> None:
    """A parameter that is a dataclass becomes its fields, in its place."""

    @dataclass(frozen=True)
    class Group:
        size: Annotated[int, typer.Option(help="Size.")]
        colour: str = "red"

    said = []

    def command(name: str, group: Group, last: bool = False) -> None:
        """Says."""
        said.append((name, group, last))

    command.__annotations__["group"] = Group
    app = typer.Typer()
    app.command()(with_groups(command))
    outcome = CliRunner().invoke(app, ["a", "--size", "3", "--last"], catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    assert said == [("a", Group(3, "red"), True)]
    assert CliRunner().invoke(app, ["a"]).exit_code == 2
