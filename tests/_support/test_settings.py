"""Settings: values checked by type, unknown keys refused, and gathered from three places."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from graphkin._support.settings import build, check_at_least, check_types, gather
from graphkin.errors import ConfigError, FormatError

KNOWN = {
    "model": ["steps", "node_dim", "matching"],
    "train": ["steps", "seed", "learning_rate", "mode"],
    "task": ["seed", "nodes"],
}


@dataclass(frozen=True)
class Oven:
    """One field of each kind that configurations have."""

    trays: int = 2
    degrees: float = 180.0
    fan: bool = False
    name: str = "oven"
    heat: Literal["top", "bottom"] = "top"
    limit: float | None = None
    shelves: list[int] = field(default_factory=list)
    prices: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_types(self)
        check_at_least(self, 1, "trays")
        check_at_least(self, 0, "degrees", "limit")


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"trays": 1, "degrees": 0, "fan": True, "name": "", "heat": "bottom", "limit": 3},
        {"degrees": math.inf, "limit": None},
        {"shelves": [1, 2], "prices": {"new": 5.0}},
    ],
)
def test_right_values_are_taken_as_they_are(values: dict[str, Any]) -> None:
    oven = build(Oven, values, "oven")
    assert all(getattr(oven, key) is value for key, value in values.items())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"trays": 1.0}, "trays must be of type int, got 1.0"),
        ({"trays": True}, "trays must be of type int, got True"),
        ({"trays": "1"}, "trays must be of type int, got '1'"),
        ({"trays": None}, "trays must be of type int, got None"),
        ({"degrees": "hot"}, "degrees must be of type float, got 'hot'"),
        ({"degrees": False}, "degrees must be of type float, got False"),
        ({"fan": 1}, "fan must be of type bool, got 1"),
        ({"name": 5}, "name must be of type str, got 5"),
        ({"heat": "side"}, "heat must be one of top, bottom; got 'side'"),
        ({"heat": ["top"]}, r"heat must be one of top, bottom; got \['top'\]"),
        ({"limit": "x"}, "limit must be of type float or none, got 'x'"),
        ({"shelves": 5}, "shelves must be of type list, got 5"),
        ({"shelves": {}}, "shelves must be of type list, got {}"),
        ({"prices": [1.0]}, r"prices must be of type dict, got \[1.0\]"),
        ({"trays": 0}, "trays must be at least 1, got 0"),
        ({"degrees": -0.5}, "degrees must be at least 0, got -0.5"),
        ({"degrees": math.nan}, "degrees must be at least 0, got nan"),
        ({"limit": -1}, "limit must be at least 0, got -1"),
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$"):
        build(Oven, values, "oven")


def test_an_unknown_key_is_refused_by_name() -> None:
    known = "trays, degrees, fan, name, heat, limit, shelves, prices"
    with pytest.raises(ConfigError, match=f"^unknown oven option 'tray'; known: {known}$"):
        build(Oven, {"trays": 1, "tray": 1}, "oven")


def from_settings(*settings: str) -> dict[str, dict[str, Any]]:
    return gather(KNOWN, None, {}, settings)


def from_file(tmp_path: Path, text: str | bytes) -> dict[str, dict[str, Any]]:
    path = tmp_path / "run.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return gather(KNOWN, path, {}, ())


def test_nothing_given() -> None:
    assert gather(KNOWN, None, {}, ()) == {"model": {}, "train": {}, "task": {}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("1_000", 1000),
        ("1e-3", 1e-3),
        ("0.5", 0.5),
        ("inf", float("inf")),
        ("true", True),
        ("false", False),
        ("[20, 50]", [20, 50]),
        ('"two words"', "two words"),
        ("triplets", "triplets"),
        ("True", "True"),
        (" 5 ", 5),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_types_of_values(text: str, value: Any) -> None:
    actual = from_settings(f"learning_rate={text}")["train"]["learning_rate"]
    assert actual == value
    assert type(actual) is type(value)


def test_a_key_of_one_table_needs_no_table() -> None:
    assert from_settings("node_dim=64", "mode=pairs", "nodes=[5, 6]") == {
        "model": {"node_dim": 64},
        "train": {"mode": "pairs"},
        "task": {"nodes": [5, 6]},
    }


def test_the_last_setting_wins() -> None:
    assert from_settings("train.steps=1", "train.steps=2", "model.steps=3") == {
        "model": {"steps": 3},
        "train": {"steps": 2},
        "task": {},
    }


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("node_dims=1", "unknown option 'node_dims'; known: model.steps, .*, task.nodes"),
        ("model.node_dims=1", "unknown model option 'node_dims'; known: steps, node_dim, matching"),
        ("train.node_dim=1", "unknown train option 'node_dim'"),
        ("modle.node_dim=1", "unknown table 'modle' in --set; known: model, train, task"),
        ("steps=1", "--set steps is ambiguous: say model.steps or train.steps"),
        ("seed=1", "--set seed is ambiguous: say train.seed or task.seed"),
        ("node_dim", "--set takes key=value, got 'node_dim'"),
        ("=5", "unknown option ''"),
        ("model.=5", "unknown model option ''"),
    ],
)
def test_settings_that_are_refused(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_settings(setting)


def test_options_go_over_the_file_and_settings_over_both(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("[model]\nnode_dim = 1\nsteps = 1\n[train]\nsteps = 1\nmode = 'pairs'\n")
    options = {"model": {"steps": 2, "node_dim": None}, "train": {"steps": 2, "seed": None}}
    assert gather(KNOWN, path, options, ["train.steps=3"]) == {
        "model": {"node_dim": 1, "steps": 2},
        "train": {"steps": 3, "mode": "pairs"},
        "task": {},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[training]\nsteps = 1\n", r"unknown table \[training\]; known: model, train, task"),
        ("[train]\nstep = 1\n", "unknown train option 'step'; known: steps, seed"),
        ("train = 5\n", "train must be a table, got 5"),
        ("steps = 5\n", r"unknown table \[steps\]"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_file(tmp_path, text)


@pytest.mark.parametrize("text", ["[train\n", "steps: 5\n", b"\xff\xfe", b"\x00"])
def test_a_file_that_is_no_toml(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(FormatError, match=r"run\.toml is not valid TOML"):
        from_file(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*absent\.toml: No such file"):
        gather(KNOWN, tmp_path / "absent.toml", {}, ())
    with pytest.raises(ConfigError, match=r"cannot read .*: Is a directory"):
        gather(KNOWN, tmp_path, {}, ())
