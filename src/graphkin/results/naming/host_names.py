"""Names as other tools take them.

A binary's author chooses its names, and a script that holds them is run. So a script gets letters,
digits and a few signs of a name, each name once; what it was is in the comment, as far as that can
be shown, and exactly in the JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from graphkin.errors import ConfigError
from graphkin.results.document import CarriedName, Names
from graphkin.results.text import address_text, number_text, printable

SIGNS = "_.$@?"
"""Beside letters and digits, what compilers' own names are made of."""
PLAIN_SIGNS = "_."
MOST_LETTERS = 400
"""Of a name; IDA takes 511."""


class HostName(NamedTuple):
    """A name that a script gives."""

    address: int
    name: str
    """Letters, digits and signs of ASCII; no other name of the script is the same."""
    item: CarriedName


def host_names(names: Names, signs: str = SIGNS) -> Iterator[HostName]:
    """The names of a script, each once.

    Raises:
        ConfigError: where the names are for several files.
    """
    binaries = {item.target.binary for item in names.names}
    if len(binaries) > 1:
        raise ConfigError(
            f"{names.target} holds {len(binaries)} binaries that get names, and a script is for "
            "one; name one of them, or take --format csv or json"
        )
    other = re.compile(rf"[^A-Za-z0-9{re.escape(signs)}]")
    used: set[str] = set()
    for item in names.names:
        address = item.target.address
        if address is None:
            continue
        name = other.sub("_", item.name)[:MOST_LETTERS]
        if name in used:
            name = f"{name}_{address:x}"
        used.add(name)
        yield HostName(address, name, item)


def comment(item: CarriedName) -> str:
    """One line: how sure it is, and where the name comes from."""
    parts = [
        f"graphkin: {printable(item.demangled or item.name)}",
        f"probability {number_text(item.probability, 3)}",
        f"from {printable(item.origin.binary)} at {address_text(item.origin.address)}",
    ]
    if item.source_file:
        parts.append(f"written in {printable(item.source_file)}")
    return ", ".join(parts)
