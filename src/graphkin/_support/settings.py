"""Frozen dataclasses as configuration: values checked by type, unknown keys refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from graphkin.errors import ConfigError

Settings = TypeVar("Settings")


def check_types(settings: Any) -> None:
    """Refuses a field whose value is not of its annotated type; for ``__post_init__``."""
    for name, hint in get_type_hints(type(settings)).items():
        _check_value(name, getattr(settings, name), hint)


def check_at_least(settings: Any, least: float, *names: str) -> None:
    """Refuses a field below ``least``, or one that is not a number at all (NaN)."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and not value >= least:
            raise ConfigError(f"{name} must be at least {least}, got {value}")


def build(kind: type[Settings], values: Mapping[str, Any], what: str) -> Settings:
    """An instance from a table of values; ``what`` names the table in errors."""
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise ConfigError(f"unknown {what} option {key!r}; known: {', '.join(known)}")
    return kind(**values)


def _check_value(name: str, value: Any, hint: Any) -> None:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ConfigError(f"{name} must be one of {', '.join(get_args(hint))}; got {value!r}")
        return
    # A list, dict or tuple is checked as such; what is in it is not.
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = tuple(get_origin(part) or part for part in parts)
    accepted = (*kinds, int) if float in kinds else kinds
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in kinds):
        names = " or ".join("none" if kind is NoneType else kind.__name__ for kind in kinds)
        raise ConfigError(f"{name} must be of type {names}, got {value!r}")
