"""Where a line may end inside a long name: at its joints, and never in the middle of a word.

C++ names run to hundreds of letters. Browsers would break them anywhere, or nowhere. The page of
``graphkin serve`` has the same rule in ``format.js``.
"""

from __future__ import annotations

import re

WHOLE = 28
"""Letters that are never broken, but between arguments."""
ARGUMENTS = re.compile(r"[^\s<(,]*[\s<(,]+|[^\s<(,]+")
"""Behind a space, a comma, and what opens a list of arguments: there a line may always end."""
JOINTS = (
    re.compile(r"(?:(?!::)[^/\\])*(?:::|[/\\])+|(?:(?!::)[^/\\])+", re.DOTALL),
    re.compile(r"[^_:.=!-]*[_:.=!-]+|[^_:.=!-]+"),
    re.compile(r".", re.DOTALL),
)
"""For what is still longer: scopes and folders, words, and letters."""


def pieces(name: str) -> list[str]:
    """A name in pieces between which a line may end.

    Example:
        >>> pieces("std::map<int, std::string>::operator[](int const&)")
        ['std::map<', 'int, ', 'std::string>::operator[](', 'int ', 'const&)']
    """
    return [piece for part in ARGUMENTS.findall(name) for piece in _divided(part, 0)]


def _divided(part: str, kind: int) -> list[str]:
    if len(part) <= WHOLE:
        return [part]
    joined: list[str] = []
    for item in JOINTS[kind].findall(part):
        if joined and len(joined[-1]) + len(item) <= WHOLE:
            joined[-1] += item
        else:
            joined.append(item)
    return [piece for item in joined for piece in _divided(item, kind + 1)]
