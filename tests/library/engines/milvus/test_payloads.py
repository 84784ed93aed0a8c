"""Pieces of bundles: what was written is read, also from before there were signals."""

from __future__ import annotations

import numpy as np
import pytest

from graphkin.errors import FormatError
from graphkin.graphs.encoding import dump_graph
from graphkin.library.engines.milvus.payloads import Payload, dump_payload, load_payload
from graphkin.library.records import words_of_bytes
from tests.library.engines.contract import SPACES, sample_rows

ROW = sample_rows(SPACES[0], 1)[0]._replace(signals=b"signals", words=np.array([9, 2, 9], "u8"))


def test_a_row_comes_out_as_it_went_in() -> None:
    graph, signals, words = load_payload(dump_payload(ROW))
    assert graph == dump_graph(ROW.graph)
    assert signals == b"signals"
    assert words_of_bytes(words).tolist() == [2, 9]
    for row in (ROW._replace(signals=b""), ROW._replace(words=None)):
        payload = load_payload(dump_payload(row))
        assert payload.graph == graph
        assert bool(payload.signals) != bool(payload.words)


def test_a_graph_alone_is_its_bytes() -> None:
    bare = dump_payload(ROW._replace(signals=b"", words=None))
    assert bare == dump_graph(ROW.graph)
    assert load_payload(bare) == Payload(bare)


def test_damage_is_named() -> None:
    data = dump_payload(ROW)
    for place in range(4, len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1
        with pytest.raises(FormatError, match="not what was stored"):
            load_payload(bytes(damaged))
    for length in range(4, len(data)):
        with pytest.raises(FormatError, match="not what was stored"):
            load_payload(data[:length])
