"""What functions say as text for people: strings in quotes, imports as the source spells them,
constants.

Words are pairs of a kind and a text, as blocks have them in their evidence. Strings are whatever a
file's author chose, so that all of it is made printable and cut to a bounded length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

from graphkin.binaries.demangling import spelled_import
from graphkin.results.text import padded, shortened

Word = tuple[str, str]
"""A kind of :data:`graphkin.graphs.words.KINDS`, and a text."""
TITLES = {
    "strings": ("str",),
    "imports": ("imp",),
    "constants": ("num", "flt"),
    "tables": ("dat",),
    "offsets": ("off",),
}
"""What a list of words is called, by their kinds, in the order in which lists are shown."""
PREFIXES = {"dat": "table ", "off": "offset "}
"""What says of a word which kind it is, where words of all kinds stand in one list."""
MOST_LETTERS = 60
"""Of one word; the middle of a longer one is left out."""
LEAST_HEXADECIMAL = 1 << 16
"""Constants from here on are known by their hexadecimal form."""


def word_text(word: Word) -> str:
    """A word among those of other kinds: ``"%s: no such file"``, ``malloc``, ``0x9e3779b9``."""
    kind, text = word
    return PREFIXES.get(kind, "") + _bare(kind, text)


def words_line(words: Sequence[Word], width: int) -> str:
    """As many words as fit on a line, the first ones, and how many there are beside them."""
    return "".join(packed([word_text(word) for word in words], width, most_lines=1))


def first_word(words: Sequence[Word]) -> str:
    """The first word, and how many follow it: ``"%s: no such file" +3``."""
    if not words:
        return ""
    more = f" +{len(words) - 1}" if len(words) > 1 else ""
    return word_text(words[0]) + more


def titled_words(
    words: Iterable[Word], titles: Iterable[str] = TITLES
) -> Iterator[tuple[str, list[str]]]:
    """The title of each list that has words, and those words as texts, each once."""
    everything = list(dict.fromkeys((kind, text) for kind, text in words))
    for title in titles:
        texts = [_bare(kind, text) for kind, text in everything if kind in TITLES[title]]
        if texts:
            yield title, texts


def titled_lines(
    words: Iterable[Word],
    titles: Iterable[str] = TITLES,
    *,
    width: int = 100,
    most_lines: int = 3,
) -> Iterator[str]:
    """A list of words for each kind, its title in front; what does not fit is counted."""
    column = max(map(len, TITLES)) + 2
    for title, texts in titled_words(words, titles):
        lines = packed(texts, width - column, most_lines)
        for number, line in enumerate(lines):
            yield padded(title if number == 0 else "", column) + line


def packed(texts: Sequence[str], width: int, most_lines: int) -> list[str]:
    """Texts with commas between, on a few lines; the last one counts those that are left out."""
    lines: list[str] = []
    while texts and len(lines) < most_lines:
        whole = ", ".join(texts)
        if cell_len(whole) <= width:
            return [*lines, whole]
        is_last = len(lines) + 1 == most_lines
        line, taken = texts[0], 1
        while taken < len(texts):
            longer = f"{line}, {texts[taken]}"
            if cell_len(longer + _end(len(texts) - taken - 1, is_last)) > width:
                break
            line, taken = longer, taken + 1
        end = _end(len(texts) - taken, is_last)
        lines.append(shortened(line, width - len(end)) + end)
        texts = texts[taken:]
    return lines


def _end(left: int, is_last: bool) -> str:
    """What follows the texts of a line when more of them are left."""
    if not left:
        return ""
    return f" and {left} more" if is_last else ","


def _bare(kind: str, text: str) -> str:
    if kind == "str":
        return f'"{shortened(text, MOST_LETTERS)}"'
    if kind == "num" and text.isdecimal() and int(text) >= LEAST_HEXADECIMAL:
        return f"{int(text):#x}"
    if kind == "imp":
        text = spelled_import(text) or text
    return shortened(text, MOST_LETTERS)
