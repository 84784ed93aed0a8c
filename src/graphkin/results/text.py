"""Names out of binaries as text that is safe to show: they are whatever a file's author chose."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

from rich.cells import cell_len

ELLIPSIS = "…"
NO_DISTANCE = 1e-6
"""Below it, equal vectors differ by rounding alone."""
BYTES = range(0xDC80, 0xDD00)
"""Surrogates that stand for single bytes of names that are not UTF-8."""
UNSEEN = frozenset({"Cc", "Cf", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that steer a terminal, turn the direction of text, or show nothing."""


def encodable(text: str) -> str:
    """Text that every encoding of Unicode takes: a byte that is no UTF-8 is written ``\\xff``."""
    if text.isascii():
        return text
    return "".join(_escaped(letter) if _is_surrogate(letter) else letter for letter in text)


def printable(text: str) -> str:
    """Text on one line that does nothing but show: ``\\x1b`` for the character escape."""
    if text.isprintable():
        return text
    return "".join(
        _escaped(letter)
        if _is_surrogate(letter) or unicodedata.category(letter) in UNSEEN
        else letter
        for letter in text
    )


def _is_surrogate(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff"


def _escaped(letter: str) -> str:
    code = ord(letter)
    if code in BYTES:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shortened(text: str, width: int) -> str:
    """Printable text of at most so many columns; what is too long loses its middle.

    The end keeps more than the start: paths and C++ names differ there.
    """
    text = printable(text)
    if cell_len(text) <= width:
        return text
    room = max(width - 1, 0)
    tail = (room + 1) // 2
    return _first(text, room - tail) + ELLIPSIS + _first(text[::-1], tail)[::-1]


def telling_ends(paths: Sequence[str]) -> list[str]:
    """Paths without the folders that they need not to be told apart; at least one folder stays.

    ``/opt/acme-1.0/lib/libacme.so`` and ``/opt/acme-1.1/lib/libacme.so`` become
    ``…/acme-1.0/lib/libacme.so`` and ``…/acme-1.1/lib/libacme.so``.
    """
    parts = {path: path.split("/") for path in paths}
    depths = dict.fromkeys(parts, 2)
    while True:
        sharing: dict[str, list[str]] = {}
        for path in parts:
            sharing.setdefault("/".join(parts[path][-depths[path] :]), []).append(path)
        unclear = [
            path
            for others in sharing.values()
            if len(others) > 1
            for path in others
            if depths[path] < len(parts[path])
        ]
        if not unclear:
            break
        for path in unclear:
            depths[path] += 1
    ends = {
        path: path if depths[path] >= len(own) else "/".join((ELLIPSIS, *own[-depths[path] :]))
        for path, own in parts.items()
    }
    return [min(path, ends[path], key=len) for path in paths]


def _first(text: str, width: int) -> str:
    """As many letters as fit into so many columns."""
    used = 0
    for position, letter in enumerate(text):
        used += cell_len(letter)
        if used > width:
            return text[:position]
    return text


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Text filled up with spaces; letters may be two columns wide."""
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def plural(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def address_text(address: int | None) -> str:
    return "" if address is None else f"0x{address:x}"


def number_text(value: float | None, digits: int) -> str:
    """A number with so many digits behind the point; nothing where there is none."""
    return "" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def distance_text(distance: float | None) -> str:
    """Bits are whole numbers, lengths are not; nothing where it is not known."""
    if distance is None:
        return ""
    if abs(distance) < NO_DISTANCE:
        return "0"
    return f"{distance:.0f}" if distance == round(distance) else f"{distance:.4g}"


def share_text(share: float) -> str:
    """A share in per cent; 100% only where it is all."""
    return "99%" if 0.99 < share < 1.0 else f"{share:.0%}"
