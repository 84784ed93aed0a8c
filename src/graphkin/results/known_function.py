"""What a library knows of a function."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from graphkin.errors import ConfigError


@dataclass(frozen=True)
class KnownFunction:
    """What is known of one graph in a library; all of it may be left out."""

    function: str = ""
    """The name of the function, or of whatever the graph stands for."""
    binary: str = ""
    """The file; a member of an archive is ``path(member)``."""
    address: int | None = None
    size: int | None = None
    """Bytes of code."""
    architecture: str = ""
    compiler: str = ""
    build: str = ""
    """The configuration that made the binary, such as ``gcc-12-O2``."""
    file_hash: str = ""
    """SHA-256 of the file, in hexadecimal."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Whatever a person wants to find it by, such as ``cve=CVE-2014-0160``."""

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> KnownFunction:
        """Checks names and types; an unknown key is refused by name."""
        unknown = sorted(set(values) - {item.name for item in fields(cls)})
        if unknown:
            known = ", ".join(item.name for item in fields(cls))
            raise ConfigError(
                f"metadata has an unknown key {unknown[0]!r}; known are {known}. "
                "Put anything else into tags"
            )
        for name, value in values.items():
            _check(name, value)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def key(self, graph_hash: str) -> bytes:
        """(16 bytes) equal for what counts as the same content: graph, file and place in it.

        Neither the path nor the tags count: a copy of a file under another name adds nothing.
        The member of an archive does: equal functions of two members are at one address.
        """
        member = self.binary[self.binary.rfind("(") :] if self.binary.endswith(")") else ""
        where = self.file_hash + member if self.file_hash else self.binary
        parts = [graph_hash, where, self.function, "" if self.address is None else self.address]
        return hashlib.sha256(json.dumps(parts).encode()).digest()[:16]


def _check(name: str, value: object) -> None:
    if name == "tags":
        if not isinstance(value, Mapping) or not all(
            isinstance(item, str) for pair in value.items() for item in pair
        ):
            raise ConfigError(f"tags must map text to text, got {value!r}")
    elif name in ("address", "size"):
        wrong = isinstance(value, bool) or not isinstance(value, int)
        if value is not None and (wrong or not 0 <= value < 2**64):  # type: ignore[operator]
            raise ConfigError(f"{name} must be a number of 64 bits, or None; got {value!r}")
    elif not isinstance(value, str):
        raise ConfigError(f"{name} must be text, got {value!r}")
