"""Fingerprints of source code: whether a file is a copy of another project's, renamed or not.

A model that is tested on unseen projects must not have seen copies of them, and projects vendor
each other. Two signs tell a copy: runs of tokens that both texts have, which survive another
layout, other comments and small changes; and names of functions, which survive a rewrite.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphkin._support.files import replacing
from graphkin.errors import FormatError

SUFFIX = re.compile(r"\.(c|h|cc|cpp|cxx|c\+\+|C|hh|hpp|hxx|inc|inl|ipp|y|l|def|in)")
"""Files with code; those of parser generators and templates of headers, too."""
MAX_BYTES = 8_000_000
"""Of a source file; larger ones are tables."""
RUN = 12
"""Tokens in a run."""
DISTINCT = 6
"""Different tokens that a run must have: tables of numbers and empty loops look all alike."""
KEPT_SHARE = 4
"""One run in so many is kept, the same ones in every text."""
LEAST_RUNS = 6
"""Kept runs that a text must have to be judged by them."""
COPIED_RUNS = 0.25
"""Share of a file's runs in one other project from which it counts as a copy."""
COPIED_NAMES = 0.5
"""Share of a file's functions with names of one other project from which it counts as a copy."""
LEAST_NAMES = 3
"""Functions that a file must share to be judged by names."""

COMMENT = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|(\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')", re.S
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\[^\n]|\\\n)*", re.M)
TEXT = re.compile(r"\"(?:\\.|[^\"\\\n])*\"")
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[^\s\w]")
FUNCTION = re.compile(
    r"\b([A-Za-z_]\w*+)\s*+\((?:[^;{}()]++|\([^;{}()]*+\))*+\)(?:[^;{}()=]*+;)*+\s*+\{"
)
WORDS = frozenset({"if", "for", "while", "switch", "return", "sizeof", "catch", "main", "usage"})
"""What looks like a function's name and is not, or says nothing."""


@dataclass(frozen=True)
class Fingerprint:
    """What is known of a text, or of all texts of a project."""

    runs: npt.NDArray[np.uint64]
    """Hashes of the kept runs of tokens, sorted, each once."""
    names: frozenset[str]
    """Functions that are defined there."""

    def save(self, path: Path) -> None:
        names = np.frombuffer(json.dumps(sorted(self.names)).encode(), dtype=np.uint8)
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.savez_compressed(file, runs=self.runs, names=names)

    @classmethod
    def load(cls, path: Path) -> Fingerprint:
        """Reads what :meth:`save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                names = json.loads(arrays["names"].tobytes())
                return cls(arrays["runs"].astype(np.uint64), frozenset(names))
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise FormatError(f"{path} is not a fingerprint: {error}; remove it") from error


@dataclass(frozen=True)
class Copy:
    """A file that is a copy of another project's."""

    project: str
    runs: float
    """Share of its runs of tokens that the project has."""
    names: float
    """Share of its functions whose names the project has."""


def fingerprint(text: str) -> Fingerprint:
    """The fingerprint of C or C++ source code."""
    plain = DIRECTIVE.sub("", COMMENT.sub(lambda match: match[1] or " ", text))
    tokens = TOKEN.findall(plain)
    hashes = {token: _token_hash(token) for token in set(tokens)}
    numbers = np.fromiter((hashes[token] for token in tokens), np.uint64, len(tokens))
    code = TEXT.sub('""', plain)
    names = {name for name in FUNCTION.findall(code) if name not in WORDS}
    return Fingerprint(_runs(numbers), frozenset(names))


def fingerprint_files(paths: Iterable[Path]) -> Fingerprint:
    """One fingerprint of many files."""
    parts = [fingerprint(_read(path)) for path in paths]
    runs = [part.runs for part in parts]
    merged = np.unique(np.concatenate(runs)) if runs else np.empty(0, dtype=np.uint64)
    return Fingerprint(merged, frozenset().union(*(part.names for part in parts)))


def fingerprint_tree(tree: Path) -> Fingerprint:
    """One fingerprint of all source files below a folder."""
    paths = [Path(root, name) for root, _, names in sorted(os.walk(tree)) for name in names]
    sources = [path for path in paths if SUFFIX.fullmatch(path.suffix) and not path.is_symlink()]
    return fingerprint_files(path for path in sources if path.stat().st_size <= MAX_BYTES)


def find_copy(path: Path, projects: Mapping[str, Fingerprint]) -> Copy | None:
    """The project of which a file is a copy, the most alike of them; nothing if it is its own."""
    own = fingerprint(_read(path))
    copies = [
        copy
        for project, known in projects.items()
        if (copy := _compare(own, project, known)) is not None
    ]
    return max(copies, key=lambda copy: (copy.runs, copy.names), default=None)


def _compare(own: Fingerprint, project: str, known: Fingerprint) -> Copy | None:
    shared = len(own.names & known.names)
    names = shared / len(own.names) if own.names else 0.0
    runs = 0.0
    if len(own.runs) and len(known.runs):
        positions = np.searchsorted(known.runs, own.runs).clip(max=len(known.runs) - 1)
        runs = float((known.runs[positions] == own.runs).mean())
    by_runs = runs >= COPIED_RUNS and len(own.runs) >= LEAST_RUNS
    by_names = names >= COPIED_NAMES and shared >= LEAST_NAMES
    return Copy(project, round(runs, 3), round(names, 3)) if by_runs or by_names else None


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def _token_hash(token: str) -> int:
    # All numbers are one: another table of the same form is not another program.
    return zlib.crc32(b"0" if token[0].isdigit() else token.encode("utf-8", "replace"))


def _runs(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    count = len(numbers) - RUN + 1
    if count < 1:
        return np.empty(0, dtype=np.uint64)
    hashes = np.zeros(count, dtype=np.uint64)
    for offset in range(RUN):
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + numbers[offset : offset + count]
    hashes ^= hashes >> np.uint64(31)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(29)
    kept = np.flatnonzero(hashes % np.uint64(KEPT_SHARE) == 0)
    windows = np.sort(numbers[kept[:, None] + np.arange(RUN)], axis=1)
    distinct = 1 + (np.diff(windows, axis=1) != 0).sum(axis=1)
    return np.unique(hashes[kept[distinct >= DISTINCT]])
