"""JSON Lines: what they hold, and that any reader takes them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from graphkin.results.document import SearchResult
from graphkin.results.json_lines import to_json_line
from tests.results.samples import ADLER, HEARTBEAT, HOSTILE, QUERY, result_named


def test_every_key() -> None:
    document = json.loads(to_json_line(SearchResult(QUERY, (HEARTBEAT, ADLER))))
    assert document["query"] == {
        "binary": "firmware/lib one.so",
        "function": "sub_1234",
        "address": 0x1234,
        "nodes": 44,
    }
    first, second = document["hits"]
    assert first == {
        "rank": 1,
        "rank_before": 4,
        "binary": "openssl-1.0.1f/clang-14-O3/libssl.so.1.0.0",
        "function": "tls1_process_heartbeat",
        "address": 0xFFFFFFFF81000123,
        "distance": 12.0,
        "score": -1.5,
        "probability": 0.987,
        "nodes": 41,
        "architecture": "x86-64",
        "compiler": "clang 14",
        "build": "clang-14-O3",
        "tags": {"cve": "CVE-2014-0160", "package": "openssl"},
        "evidence": {"matched_share": 0.93, "pairs": [[0, 0, 0.99], [3, 4, 0.75]]},
    }
    assert second["rank"] == 2
    assert [second[key] for key in ("address", "score", "probability", "evidence")] == [None] * 4


def test_a_query_without_hits_has_its_line() -> None:
    assert json.loads(to_json_line(SearchResult(QUERY, ())))["hits"] == []


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_on_one_line_of_valid_text(name: str) -> None:
    line = to_json_line(result_named(name))
    assert line.isascii()
    assert line.isprintable()
    document = json.loads(line)
    json.dumps(document, ensure_ascii=False).encode()  # no lone surrogate came through
    if not any("\ud800" <= letter <= "\udfff" for letter in name):
        assert document["hits"][0]["function"] == name


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_has_no_number_for_is_null(value: float) -> None:
    hit = replace(ADLER, score=value, probability=value, distance=value)
    (found,) = json.loads(to_json_line(SearchResult(QUERY, (hit,))))["hits"]
    assert found["score"] is found["probability"] is found["distance"] is None
