"""Configuration as dataclasses: values checked by type, unknown keys refused by name."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from graphkin._support.settings import build, check_at_least, check_types
from graphkin.errors import ConfigError


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
