"""Settings: frozen dataclasses whose values are checked, and values gathered from three places.

Those are a TOML file, the options of a command, and ``--set``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from graphkin.errors import ConfigError, FormatError

Settings = TypeVar("Settings")
Tables = dict[str, dict[str, Any]]


def check_types(settings: Any) -> None:
    """Refuses a field whose value is not of its annotated type; for ``__post_init__``.

    A scalar of numpy becomes the number that it is.
    """
    hints = get_type_hints(type(settings))
    for name in (field.name for field in fields(settings)):
        value, hint = getattr(settings, name), hints[name]
        if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
            value = value.item()
            object.__setattr__(settings, name, value)
        _check_value(name, value, hint)


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


def gather(
    known: Mapping[str, Iterable[str]],
    file: Path | None,
    options: Mapping[str, Mapping[str, Any]],
    settings: Iterable[str],
) -> Tables:
    """Merges the three places, the later ones over the earlier.

    Args:
        known: the keys of each table.
        file: a TOML file with these tables, or None.
        options: values of command-line options by table; None values were not given.
        settings: ``table.key=value`` or, where one table alone knows the key, ``key=value``.
    """
    merged: Tables = {table: {} for table in known}
    if file is not None:
        for table, values in _read(file).items():
            if table not in known:
                raise ConfigError(f"{file}: unknown table [{table}]; known: {', '.join(known)}")
            if not isinstance(values, dict):
                raise ConfigError(f"{file}: {table} must be a table, got {values!r}")
            for key in values:
                _check_key(known, table, key)
            merged[table].update(values)
    for table, values in options.items():
        merged[table].update({key: value for key, value in values.items() if value is not None})
    for setting in settings:
        table, key, value = _parse(known, setting)
        merged[table][key] = value
    return merged


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{file} is not valid TOML: {error}") from error


def _check_key(known: Mapping[str, Iterable[str]], table: str, key: str) -> None:
    if key not in known[table]:
        raise ConfigError(f"unknown {table} option {key!r}; known: {', '.join(known[table])}")


def _parse(known: Mapping[str, Iterable[str]], setting: str) -> tuple[str, str, Any]:
    name, equals, text = setting.partition("=")
    if not equals:
        raise ConfigError(f"--set takes key=value, got {setting!r}")
    table, dot, key = name.strip().partition(".")
    if not dot:
        homes = [home for home, keys in known.items() if table in keys]
        if not homes:
            every = [f"{home}.{option}" for home, keys in known.items() for option in keys]
            raise ConfigError(f"unknown option {table!r}; known: {', '.join(every)}")
        if len(homes) > 1:
            both = " or ".join(f"{home}.{table}" for home in homes)
            raise ConfigError(f"--set {table} is ambiguous: say {both}")
        table, key = homes[0], table
    if table not in known:
        raise ConfigError(f"unknown table {table!r} in --set; known: {', '.join(known)}")
    _check_key(known, table, key)
    return table, key, _value(text.strip())


def _value(text: str) -> Any:
    """A TOML value; a bare word stands for itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
