"""Bytes that come once, from front to back, with a look ahead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from graphkin.errors import FormatError

PIECE = 1 << 20
"""Bytes that are read at once."""
FILL = 1 << 12
"""Bytes that are compared with zeros at once."""


class Stream:
    """Reads from a source that gives up to so many bytes, and none at its end."""

    def __init__(self, source: Callable[[int], bytes], path: Path | None = None) -> None:
        self._source = source
        self._ahead = b""
        self._error: FormatError | None = None
        self._is_raised = False
        self.path = path
        """Where the same bytes lie, if they are a whole file."""
        self.position = 0
        """Bytes that were read."""

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay to be read; fewer at the end, and where damage begins.

        Raises:
            FormatError: where damage begins at once; otherwise :meth:`read` raises it, when what
                came before is read.
        """
        while len(self._ahead) < size:
            try:
                more = self._more(size - len(self._ahead))
            except FormatError:
                if not self._ahead:
                    raise
                self._is_raised = False
                break
            if not more:
                break
            self._ahead += more
        return self._ahead[:size]

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; none at the end only, where ``size`` is above 0."""
        if not size:
            return b""  # which sources may take for "all there is"
        if self._ahead:
            data, self._ahead = self._ahead[:size], self._ahead[size:]
        else:
            data = self._more(size)
        self.position += len(data)
        return data

    def _more(self, size: int) -> bytes:
        """Bytes of the source, which is not asked again where it is damaged."""
        if self._error is None:
            try:
                return self._source(size)
            except FormatError as error:
                self._error = error
        self._is_raised = True
        raise self._error

    def exactly(self, size: int) -> bytes:
        """So many bytes, which must be there; meant for headers."""
        pieces = []
        while size:
            piece = self.read(size)
            if not piece:
                raise FormatError("it ends early")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def skip(self, size: int) -> None:
        """Passes over bytes that must be there."""
        while size:
            piece = self.read(min(size, PIECE))
            if not piece:
                raise FormatError("it ends early")
            size -= len(piece)

    def skip_zeros(self) -> None:
        """Passes over bytes that fill up a block."""
        while (piece := self.peek(FILL)) and not piece.strip(b"\0"):
            self.skip(len(piece))
        self.skip(len(piece) - len(piece.lstrip(b"\0")))

    def drain(self) -> None:
        """Passes over all that is left, so that damage there is found.

        Raises:
            FormatError: for damage that nobody was told of yet.
        """
        while not self._is_raised and self.read(PIECE):
            pass

    def part(self, size: int) -> Part:
        """The next bytes as a stream of its own."""
        return Part(self, size)


class Part(Stream):
    """A part of a stream, which must be read or left before the rest is."""

    def __init__(self, whole: Stream, size: int) -> None:
        super().__init__(self._next)
        self._whole = whole
        self._left = size

    def _next(self, size: int) -> bytes:
        data = self._whole.read(min(size, self._left))
        if not data and self._left:
            raise FormatError("it ends early")
        self._left -= len(data)
        return data

    def leave(self) -> None:
        """Passes over what was not read of it."""
        self._whole.skip(self._left)
        self._left = 0
