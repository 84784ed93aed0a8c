"""A filter as an expression that a Milvus server evaluates, and what is left to check here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from graphkin.errors import ConfigError
from graphkin.library.engines.milvus.client import literal
from graphkin.library.engines.milvus.collection import LISTED, TAG, encoded, tag_text
from graphkin.library.records import TEXT_CONDITIONS, Filter

WILDCARDS = "*?["
MOST_TEXTS = 1_000
"""That match a pattern, above which rows are checked one by one."""
NOTHING = "id in []"
LAST_CHARACTER = 0x10FFFF

Texts = Callable[[str, str], Collection[str]]
"""The texts of a field, or of the tag of a name: ``texts(field, tag)``."""


class Condition(NamedTuple):
    """What a filter asks for."""

    expression: str
    """For the server; empty where everything matches."""
    rest: Filter
    """For each row that the expression lets through."""

    @property
    def fields(self) -> list[str]:
        """What the rest looks at."""
        texts = [name for name in TEXT_CONDITIONS if getattr(self.rest, name) is not None]
        return texts + ([TAG] if self.rest.tags else [])


def condition(where: Filter | None, texts: Texts) -> Condition:
    """Leaves to the server whatever it decides exactly as :meth:`Filter.matches` does."""
    if where is None:
        return Condition("", Filter())
    parts: list[str] = []
    left: dict[str, Any] = {}
    for name in TEXT_CONDITIONS:
        pattern = getattr(where, name)
        if pattern is not None:
            part, decided = _text_part(name, pattern, texts)
            parts += part
            left |= {} if decided else {name: pattern}
    left_tags: dict[str, str] = {}
    for name, pattern in where.tags.items():
        part, decided = _tag_part(name, pattern, texts)
        parts += part
        left_tags |= {} if decided else {name: pattern}
    if where.address is not None:
        # A place is [address, size] in JSON; numbers may be larger than Milvus's integers.
        parts += _begins("place", f"[{where.address}, ")
    if where.min_blocks > 0:
        parts.append(f"nodes >= {where.min_blocks}")
    if where.max_blocks is not None:
        parts.append(f"nodes <= {where.max_blocks}")
    return Condition(" and ".join(parts), Filter(**left, tags=left_tags))


def _text_part(name: str, pattern: str, texts: Texts) -> tuple[list[str], bool]:
    """Expressions for a condition on a text, and whether they decide it."""
    prefix = _prefix(pattern)
    if not _can_be_sent(pattern):
        return [], False
    if prefix == pattern:
        return [f"{name} == {literal(encoded(pattern))}"], True
    narrowed = _begins(name, prefix)
    if not pattern[len(prefix) :].strip("*"):
        return narrowed, True
    if name in LISTED:
        matching = _matching(texts(name, ""), pattern)
        if len(matching) <= MOST_TEXTS:
            some = f"{name} in {_list(map(encoded, matching))}"
            return [some if matching else NOTHING], True
    return narrowed, False


def _tag_part(name: str, pattern: str, texts: Texts) -> tuple[list[str], bool]:
    """Expressions for a condition on a tag, and whether they decide it."""
    if not _can_be_sent(name + pattern):
        return [], False
    if _prefix(pattern) == pattern:
        return [f"array_contains(tags, {literal(tag_text(name, pattern))})"], True
    present = f"array_contains(tags, {literal(tag_text(name))})"
    if not pattern.strip("*"):
        return [present], True
    matching = _matching(texts(TAG, name), pattern)
    if len(matching) > MOST_TEXTS:
        return [present], False
    pairs = [tag_text(name, text) for text in matching]
    some = f"array_contains_any(tags, {_list(pairs)})"
    return [some if pairs else NOTHING], True


def _prefix(pattern: str) -> str:
    """What comes before the first wildcard."""
    return pattern[: next((i for i, sign in enumerate(pattern) if sign in WILDCARDS), None)]


def _begins(name: str, prefix: str) -> list[str]:
    """That a text begins so. LIKE has wildcards of its own, and servers differ in escaping them.

    Milvus compares texts by their bytes in UTF-8, whose order is that of the code points.
    """
    if not prefix:
        return []
    first = encoded(prefix)
    parts = [f"{name} >= {literal(first)}"]
    stem = first.rstrip(chr(LAST_CHARACTER))
    if stem:
        following = chr(ord(stem[-1]) + 1).replace("\ud800", "\ue000")
        parts.append(f"{name} < {literal(stem[:-1] + following)}")
    return parts


def _matching(texts: Collection[str], pattern: str) -> list[str]:
    return sorted(text for text in texts if fnmatchcase(text, pattern))


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(literal, texts))}]"


def _can_be_sent(text: str) -> bool:
    """Whether a text can be sent; nothing in a library equals one that cannot."""
    try:
        encoded(text)
    except ConfigError:
        return False
    return True
