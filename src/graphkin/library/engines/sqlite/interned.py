"""Strings that many entries share, such as the name of a file: kept once, known by a number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from graphkin.errors import FormatError
from graphkin.library.engines.sqlite.file import SqliteFile

INTERNED = ("binary", "architecture", "compiler", "build", "file_hash", "tags")

WILDCARDS = frozenset("*?[")
# A text is in its table and in an index, which must agree: damage would hit one of them.
NEW_TEXTS = """
SELECT texts.id, texts.kind, texts.value, indexed.id FROM texts LEFT JOIN texts AS indexed
ON indexed.kind = texts.kind AND indexed.value = texts.value WHERE texts.id > ? ORDER BY texts.id
"""


def to_sql(text: str) -> str | bytes:
    """A text as SQLite can keep it: names out of binaries may not be Unicode."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def from_sql(value: object) -> str:
    try:
        return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else _text(value)
    except UnicodeDecodeError as error:
        raise FormatError(f"a text of the library is damaged: {error}") from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise FormatError(f"a text of the library is damaged: it is {value!r}")
    return value


def dump_tags(tags: Mapping[str, str]) -> str:
    return json.dumps(dict(sorted(tags.items())), ensure_ascii=False) if tags else ""


def parse_tags(text: str) -> dict[str, str]:
    try:
        tags = json.loads(text) if text else {}
        if isinstance(tags, dict):
            return tags
    except (ValueError, RecursionError):
        pass
    raise FormatError(f"tags of the library are damaged: {text!r}")


class InternedStrings:
    """The strings of the columns ``INTERNED``, followed as the library grows."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._forget(-1)

    def _forget(self, epoch: int) -> None:
        self._epoch = epoch
        self._last = 0
        self._values: dict[int, str] = {}
        self._numbers: list[dict[str, int]] = [{} for _ in INTERNED]
        self._tags: dict[int, Mapping[str, str]] = {}

    def refresh(self) -> None:
        """Reads what is new; all of it when some may be gone."""
        epoch = self._file.epoch()
        if epoch != self._epoch:
            self._forget(epoch)
        for number, kind, value, indexed in self._file.execute(NEW_TEXTS, (self._last,)):
            if kind not in range(len(INTERNED)):
                raise FormatError(f"text {number} of the library is damaged: its kind is {kind!r}")
            if indexed != number:
                raise FormatError(f"text {number} of the library is damaged: it is {value!r}")
            text = from_sql(value)
            self._last = number
            self._values[number] = text
            self._numbers[kind][text] = number

    def text(self, number: int) -> str:
        """The text of a number that an entry holds."""
        if number not in self._values:
            self.refresh()
        if number not in self._values:
            raise FormatError(f"the library is damaged: an entry holds text {number}, it does not")
        return self._values[number]

    def tags(self, number: int) -> Mapping[str, str]:
        """The tags of a number that an entry holds."""
        if number not in self._tags:
            self._tags[number] = parse_tags(self.text(number))
        return self._tags[number]

    def intern(self, texts: Iterable[tuple[int, str]]) -> dict[tuple[int, str], int]:
        """The numbers of (kind, text), given anew where need be; part of a write.

        What is given anew is not remembered here, because the write may yet fail.
        """
        self.refresh()
        numbers: dict[tuple[int, str], int] = {}
        for kind, text in texts:
            known = self._numbers[kind].get(text)
            if known is None:
                known = self._file.value(
                    "INSERT INTO texts (kind, value) VALUES (?, ?) RETURNING id",
                    (kind, to_sql(text)),
                )
            numbers[kind, text] = known
        return numbers

    def matching(self, column: str, pattern: str) -> list[int]:
        """The numbers of a column's texts that match a pattern."""
        numbers = self._numbers[INTERNED.index(column)]
        if WILDCARDS.isdisjoint(pattern):
            return [numbers[pattern]] if pattern in numbers else []
        return [number for text, number in numbers.items() if fnmatchcase(text, pattern)]

    def tagged(self, tags: Mapping[str, str]) -> list[int]:
        """The numbers of sets of tags in which each of some tags is there, and matches."""
        numbers = []
        for number in self._numbers[INTERNED.index("tags")].values():
            own = self.tags(number)
            if all(tag in own and fnmatchcase(own[tag], tags[tag]) for tag in tags):
                numbers.append(number)
        return numbers
