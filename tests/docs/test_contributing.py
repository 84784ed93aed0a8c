"""CONTRIBUTING draws the rooms as the import contract has them."""

from __future__ import annotations

import re
import tomllib

from tests.paths import REPOSITORY

PACKAGE = REPOSITORY / "src" / "graphkin"


def rooms_of_the_contract() -> list[str]:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (rooms,) = [contract for contract in contracts if contract["name"] == "Rooms"]
    assert rooms["exhaustive"]
    return list(rooms["layers"])


def test_the_rooms_are_those_of_the_contract() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = re.search(r"## Rooms.*?```text\n(.*?)```", text, re.DOTALL)
    assert picture is not None
    drawn = [re.split(r"\s{2,}", line)[0] for line in picture[1].splitlines()]
    assert drawn == rooms_of_the_contract()


def test_every_room_is_there() -> None:
    rooms = {room for layer in rooms_of_the_contract() for room in layer.split(" | ")}
    modules = {path.stem for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    modules |= {path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    assert rooms == modules


def test_what_is_written_here_is_here() -> None:
    """Every path that the table of our own parts names exists."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## What we write ourselves")[2].partition("\n## ")[0]
    paths = re.findall(r"`((?:\w+/)+[\w.]+|_support)`", table)
    assert len(paths) > 8
    assert [path for path in paths if not (PACKAGE / path).exists()] == []
