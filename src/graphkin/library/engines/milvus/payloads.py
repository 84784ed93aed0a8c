"""What a piece of a bundle holds: a graph, or a graph with its signals and its words.

A graph alone is its own bytes, so that pieces from before there was more can be read. Otherwise a
head goes ahead of it: a magic that no graph begins with, the CRC-32 of all that follows, and the
numbers of bytes of the signals and the words, which lie between the head and the graph.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from graphkin.errors import FormatError
from graphkin.graphs.encoding import dump_graph
from graphkin.library.records import Row, word_bytes

MAGIC = b"row1"
HEAD = struct.Struct("<4sI")
LENGTHS = struct.Struct("<II")


class Payload(NamedTuple):
    graph: bytes
    signals: bytes = b""
    words: bytes = b""
    """Of 8 bytes each, little-endian."""


def dump_payload(row: Row) -> bytes:
    """The bytes of a piece for a row."""
    graph, words = dump_graph(row.graph), word_bytes(row.words)
    if not row.signals and not words:
        return graph
    lengths = LENGTHS.pack(len(row.signals), len(words))
    body = b"".join((lengths, row.signals, words, graph))
    return HEAD.pack(MAGIC, zlib.crc32(body)) + body


def load_payload(data: bytes) -> Payload:
    """What :func:`dump_payload` was given.

    Raises:
        FormatError: the piece is damaged.
    """
    if not data.startswith(MAGIC):
        return Payload(data)
    start = HEAD.size + LENGTHS.size
    if len(data) < start or zlib.crc32(data[HEAD.size :]) != HEAD.unpack_from(data)[1]:
        raise FormatError("the signals, words or bytes of a graph are not what was stored")
    signals, words = LENGTHS.unpack_from(data, HEAD.size)
    ends = start + signals, start + signals + words
    return Payload(data[ends[1] :], data[start : ends[0]], data[ends[0] : ends[1]])
