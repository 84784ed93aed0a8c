"""Graphs as bytes: round trips of every kind, and damage that never passes."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphkin.errors import FormatError
from graphkin.graphs import Graph, TokenBags
from graphkin.graphs.encoding import CHECKSUM, HEAD, dump_graph, load_graph
from tests.graphs.graph_strategies import graphs


@given(graph=graphs(words=None))
def test_what_comes_out_is_what_went_in(graph: Graph) -> None:
    read = load_graph(dump_graph(graph))
    assert read == graph
    assert dump_graph(read) == dump_graph(graph)
    for name, array in graph.arrays().items():
        assert read.arrays()[name].dtype == array.dtype
        assert read.arrays()[name].shape == array.shape
        assert not read.arrays()[name].flags.writeable


@pytest.mark.parametrize("nodes", [256, 257, 2**16, 2**16 + 1, 2**31 - 1])
def test_integers_of_every_width(nodes: int) -> None:
    graph = Graph(nodes, [(0, nodes - 1), (nodes - 1, 0)], edge_types=[nodes - 1, 0])
    assert load_graph(dump_graph(graph)) == graph


def test_a_small_function_takes_a_quarter_of_its_arrays() -> None:
    blocks = 40
    bags = TokenBags(np.arange(200, dtype=np.int32), np.arange(0, 201, 5))
    graph = Graph(blocks, [(i, i + 1) for i in range(blocks - 1)], directed=True, node_tokens=bags)
    assert len(dump_graph(graph)) == HEAD.size + 2 * (blocks - 1) + 200 + blocks


@given(graph=graphs(words=None), data=st.data())
def test_a_changed_byte_is_found(graph: Graph, data: st.DataObject) -> None:
    dumped = bytearray(dump_graph(graph))
    position = data.draw(st.integers(0, len(dumped) - 1))
    dumped[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(FormatError):
        load_graph(bytes(dumped))


@given(graph=graphs(words=None), data=st.data())
def test_bytes_that_are_missing_or_too_many_are_found(graph: Graph, data: st.DataObject) -> None:
    dumped = dump_graph(graph)
    shorter = dumped[: data.draw(st.integers(0, len(dumped) - 1))]
    for damaged in (shorter, dumped + b"\0"):
        with pytest.raises(FormatError):
            load_graph(damaged)


@given(graph=graphs(words=None), data=st.data())
def test_nonsense_with_a_good_checksum_is_a_format_error(graph: Graph, data: st.DataObject) -> None:
    """Only FormatError may come of bytes that someone made on purpose, or a graph."""
    dumped = bytearray(dump_graph(graph))
    position = data.draw(st.integers(2, len(dumped) - 1))
    dumped[position] ^= data.draw(st.integers(1, 255))
    dumped[CHECKSUM] = bytes(4)
    dumped[CHECKSUM] = struct.pack("<I", zlib.crc32(dumped))
    with suppress(FormatError):
        assert isinstance(load_graph(bytes(dumped)), Graph)


def test_another_version_says_so() -> None:
    dumped = bytearray(dump_graph(Graph(1)))
    dumped[1] = 9
    with pytest.raises(FormatError, match="version 9"):
        load_graph(bytes(dumped))


def test_counts_beyond_the_bytes_are_damage() -> None:
    """Whoever made the bytes could make their checksum as well."""
    graph = Graph(2, [(0, 1)], node_features=[[0.5], [1.0]])
    for position in (8, 12, 16):
        data = bytearray(dump_graph(graph))
        data[position : position + 4] = b"\xff" * 4
        data[4:8] = bytes(4)
        data[4:8] = zlib.crc32(data).to_bytes(4, "little")
        with pytest.raises(FormatError, match="the bytes of a graph are damaged"):
            load_graph(bytes(data))
