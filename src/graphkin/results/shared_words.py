"""What two functions both say, and what only one of them says.

Words are compared as they are: a string, an import or a constant has one form for all processors.
Offsets of fields do not, because they follow the width of a pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from graphkin.binaries.function import pointer_bytes
from graphkin.graphs.words import KINDS
from graphkin.results.document import Comparison, EvidenceToken
from graphkin.results.word_text import Word

MOST_SHARED = 20
"""Words that both say, at most."""
MOST_ALONE = 10
"""Words that only one says, at most: there are always many."""
LEAST_TELLING = 256
"""Smaller constants are in many functions."""

Rarity = Callable[[EvidenceToken], float]
"""How rare a word is; higher is rarer."""


def shared(
    left: Iterable[Word],
    right: Iterable[Word],
    rarity: Rarity | None = None,
    *,
    same_width: bool = False,
    most: int = MOST_SHARED,
) -> tuple[EvidenceToken, ...]:
    """What both say: the rarest first, or by kind, in the order in which the left one says it.

    Example:
        >>> shared([("imp", "free"), ("str", "%s!")], [("str", "%s!"), ("imp", "free")])
        (EvidenceToken(kind='str', text='%s!'), EvidenceToken(kind='imp', text='free'))

    Args:
        left: words of one function.
        right: words of the other.
        rarity: what puts the rarest first. Without it, constants that many functions have are
            left out: small ones, powers of two, and their neighbours below.
        same_width: whether pointers of both are equally wide, so that offsets can be compared.
        most: words to give.
    """
    others = {(kind, text) for kind, text in right}
    return _chosen((word for word in left if word in others), rarity, same_width, most)


class SaidWords(NamedTuple):
    """What two functions say; each list begins with strings."""

    shared: tuple[EvidenceToken, ...]
    only_left: tuple[EvidenceToken, ...]
    only_right: tuple[EvidenceToken, ...]


def said_words(
    left: Iterable[Word],
    right: Iterable[Word],
    rarity: Rarity | None = None,
    *,
    same_width: bool = False,
) -> SaidWords:
    """What both say, and what only one of them says; see :func:`shared`."""
    of_left = dict.fromkeys((kind, text) for kind, text in left)
    of_right = dict.fromkeys((kind, text) for kind, text in right)
    return SaidWords(
        shared(of_left, of_right, rarity, same_width=same_width),
        _chosen((word for word in of_left if word not in of_right), rarity, same_width, MOST_ALONE),
        _chosen((word for word in of_right if word not in of_left), rarity, same_width, MOST_ALONE),
    )


def said_lists(comparison: Comparison) -> list[tuple[str, tuple[EvidenceToken, ...]]]:
    """Titles and words of what two functions say; nothing where that is not known."""
    if comparison.shared is None:
        return []
    lists = (
        ("both say" if comparison.shared else "nothing that both say", comparison.shared),
        ("only the left says", comparison.only_left or ()),
        ("only the right says", comparison.only_right or ()),
    )
    return [(title, words) for title, words in lists if words or words is comparison.shared]


def have_same_width(left: str, right: str) -> bool:
    """Whether pointers of two architectures are equally wide."""
    return pointer_bytes(left) == pointer_bytes(right)


def _chosen(
    words: Iterable[Word], rarity: Rarity | None, same_width: bool, most: int
) -> tuple[EvidenceToken, ...]:
    tokens = [
        EvidenceToken(kind, text)
        for kind, text in dict.fromkeys((kind, text) for kind, text in words)
        if (kind != "off" or same_width) and (rarity is not None or is_telling(kind, text))
    ]
    if rarity is None:
        return tuple(sorted(tokens, key=lambda token: KINDS.index(token.kind))[:most])
    return tuple(sorted(tokens, key=lambda token: (-rarity(token), KINDS.index(token.kind)))[:most])


def is_telling(kind: str, text: str) -> bool:
    """Whether a word says something of a function; constants that many functions have do not."""
    if kind not in ("num", "off"):
        return True
    if not text.isdecimal():
        return False
    value = int(text)
    return value >= LEAST_TELLING and value & (value - 1) != 0 and value & (value + 1) != 0
