"""A disk after the power was cut: what was flushed is there, of the rest nothing, or anything.

Made from the log of ``disk.c``. Names are kept in order, as file systems with a journal do; of the
bytes of a file only what was written before its last flush is certain to be there.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Change(NamedTuple):
    kind: str
    path: str
    other: str
    at: int
    data: bytes


@dataclass
class _File:
    content: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)

    def apply(self, change: Change) -> None:
        if change.kind == "truncate":
            del self.content[change.at :]
            self.content.extend(bytes(change.at - len(self.content)))
            return
        end = change.at + len(change.data)
        self.content.extend(bytes(max(0, end - len(self.content))))
        self.content[change.at : end] = change.data

    def flush(self) -> None:
        for change in self.pending:
            self.apply(change)
        self.pending.clear()


def read_log(path: Path) -> list[Change]:
    """Every change and flush, in order."""
    changes, log, at = [], path.read_bytes(), 0
    while at < len(log):
        end = log.index(b"\n", at)
        kind, name, other, start, size = log[at:end].decode().split("\t")
        at = end + 1 + int(size)
        changes.append(Change(kind, name, other, int(start), log[end + 1 : at]))
    return changes


def after_power_cut(
    before: Path, root: Path, changes: list[Change], target: Path, chosen: random.Random | None
) -> None:
    """Writes the files as they are after some changes, and no more.

    Args:
        before: the files as they were ahead of the first change.
        root: the folder that the changes were made in.
        changes: those before the cut.
        target: an empty folder.
        chosen: keeps changes that were not flushed at random; None drops them all.
    """
    files = {
        str(root / path.relative_to(before)): _File(bytearray(path.read_bytes()))
        for path in before.rglob("*")
        if path.is_file()
    }
    for change in changes:
        if change.kind in ("write", "truncate"):
            files.setdefault(change.path, _File()).pending.append(change)
        elif change.kind == "flush" and change.path in files:
            files[change.path].flush()
        elif change.kind == "rename" and change.path in files:
            files[change.other] = files.pop(change.path)
        elif change.kind == "unlink":
            files.pop(change.path, None)
    for name, file in files.items():
        if chosen is not None:
            for change in file.pending:
                if chosen.random() < 0.5:
                    file.apply(change)
        path = target / Path(name).relative_to(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
