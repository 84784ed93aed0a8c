"""Settings from three places: a TOML file, the options of a command, and ``--set``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphkin.errors import ConfigError, FormatError

Tables = dict[str, dict[str, Any]]


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
    for table, given in options.items():
        merged[table].update({key: value for key, value in given.items() if value is not None})
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
            every = [f"{home}.{one}" for home, keys in known.items() for one in keys]
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
