"""Numbers that are lines of a source: what an assertion or a log passes on as ``__LINE__``.

Whoever adds a line to a source shifts those of everything behind it. Such a number tells two
versions of a file apart, and nothing of the code.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from graphkin.graphs import Graph
from graphkin.graphs.words import KIND_SHIFT, KINDS, word_hash
from graphkin.results.document import EvidenceToken

NUMBERS = 1 << 16
"""Integers whose words are known by their hashes: a library keeps hashes only."""
FIRST_LINE = 24
"""Functions do not begin before: above them are a licence and includes."""
MOST_LINES = 400
"""That a patch adds or takes away."""
SHIFT = 0.1
"""The most lines that a patch adds, as a share of those above; constants that somebody repaired are
farther apart, or next to a power of two."""

_Place = tuple[bytes, tuple[int, ...]]


def line_numbers(left: Graph, right: Graph) -> set[int]:
    """Words of both graphs that are lines: numbers a little apart in blocks that are equal else.

    Only blocks that say a string or an import count, as whatever passes on a line does.
    """
    ours, theirs = _numbers_by_place(left), _numbers_by_place(right)
    words = known_numbers()
    lines: set[int] = set()
    for place in ours.keys() & theirs.keys():
        old, new = ours[place] - theirs[place], theirs[place] - ours[place]
        for before in old:
            for after in new:
                if is_shift(int(words[before].text), int(words[after].text)):
                    lines |= {before, after}
    return lines


@cache
def known_numbers() -> dict[int, EvidenceToken]:
    """Small integers by the hashes of their words."""
    tokens = [EvidenceToken("num", str(number)) for number in range(-NUMBERS // 16, NUMBERS)]
    return {word_hash(token.kind, token.text): token for token in tokens}


def _numbers_by_place(graph: Graph) -> dict[_Place, set[int]]:
    """The numbers that may be lines, by all else that is known of their blocks."""
    places: dict[_Place, set[int]] = defaultdict(set)
    words, tokens = graph.node_words, graph.node_tokens
    if words is None or tokens is None:
        return places
    numbers = known_numbers()
    for node in range(graph.num_nodes):
        own = words.bag(node).tolist()
        if not any(KINDS[word >> KIND_SHIFT] in ("str", "imp") for word in own):
            continue
        operations = tokens.ids[tokens.offsets[node] : tokens.offsets[node + 1]].tobytes()
        for word in own:
            if word in numbers and int(numbers[word].text) >= FIRST_LINE:
                rest = list(own)
                rest.remove(word)
                places[operations, tuple(sorted(rest))].add(word)
    return places


def is_shift(before: int, after: int) -> bool:
    """Whether a line may have become another, for all that the two numbers say."""
    apart = abs(after - before)
    is_size = any(_is_round(number) for number in (before, after))
    return apart <= min(MOST_LINES, SHIFT * before) and not is_size


def _is_round(number: int) -> bool:
    """Whether a number is next to a power of two, as the sizes of buffers are."""
    return any((near & (near - 1)) == 0 for near in (number - 1, number, number + 1))
