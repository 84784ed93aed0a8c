"""The result document: what its JSON holds, and that any reader takes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError

from graphkin.binaries import samples
from graphkin.errors import ConfigError
from graphkin.results.document import (
    DOCUMENTS,
    EvidenceToken,
    FunctionResult,
    Report,
    all_schemas,
    schema_of,
)
from graphkin.results.render import FORMATS, render, to_json
from tests.command_line import Graphkin
from tests.results.samples import (
    ADLER,
    HEARTBEAT,
    HOSTILE,
    TALKING,
    changed,
    report,
    result,
    result_named,
)


def test_every_key() -> None:
    document = json.loads(to_json(result(TALKING, ADLER)))
    assert document["query"] == {
        "kind": "function",
        "binary": "firmware/lib one.so",
        "function": "sub_1234",
        "demangled": None,
        "address": "0x1234",
        "blocks": 44,
        "reference": None,
    }
    first, second = document["hits"]
    assert first == {
        "rank": 1,
        "rank_by_distance": 4,
        "id": 1,
        "kind": "function",
        "reference": "library:1",
        "size": 900,
        "binary": "openssl-1.0.1f/clang-14-O3/libssl.so.1.0.0",
        "function": "tls1_process_heartbeat",
        "demangled": None,
        "address": "0xffffffff81000123",
        "distance": 12.0,
        "score": -1.5,
        "probability": 0.987,
        "value": None,
        "blocks": 41,
        "architecture": "x86-64",
        "compiler": "clang 14",
        "build": "clang-14-O3",
        "tags": {"cve": "CVE-2014-0160", "package": "openssl"},
        "evidence": {
            "matched_share": 0.93,
            "pairs": [[0, 0, 0.99], [3, 4, 0.75]],
            "step": 0,
            "equal": False,
        },
        "shared": [
            ["str", "heartbeat of %d bytes"],
            ["num", "2654435769"],
            ["imp", "memcpy"],
        ],
        "spelled_imports": {},
        "note": "one of 3 equal copies",
    }
    assert second["rank"] == 2
    assert [second[key] for key in ("address", "score", "probability", "evidence")] == [None] * 4


def test_a_query_without_hits_has_its_line() -> None:
    assert json.loads(to_json(result()))["hits"] == []


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_on_one_line_of_valid_text(name: str) -> None:
    line = to_json(result_named(name))
    assert line.isascii()
    assert line.isprintable()
    document = json.loads(line)
    json.dumps(document, ensure_ascii=False).encode()  # no lone surrogate came through
    if not any("\ud800" <= letter <= "\udfff" for letter in name):
        assert document["hits"][0]["function"] == name


def test_a_name_of_cpp_is_there_raw_and_demangled() -> None:
    hit = json.loads(to_json(result_named("_ZN3foo3barEi")))["hits"][0]
    assert (hit["function"], hit["demangled"]) == ("_ZN3foo3barEi", "foo::bar(int)")


def test_an_import_of_cpp_is_there_raw_and_spelled() -> None:
    words = (
        EvidenceToken("imp", "Znwm"),
        EvidenceToken("imp", "free"),
        EvidenceToken("str", "ZdlPv"),
    )
    hit = json.loads(to_json(result(changed(ADLER, shared=words))))["hits"][0]
    assert hit["shared"] == [["imp", "Znwm"], ["imp", "free"], ["str", "ZdlPv"]]
    assert hit["spelled_imports"] == {"Znwm": "operator new(unsigned long)"}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_has_no_number_for_is_null(value: float) -> None:
    hit = changed(ADLER, score=value, probability=value, distance=value)
    (document,) = json.loads(to_json(result(hit)))["hits"]
    assert document["score"] is document["probability"] is document["distance"] is None


@pytest.mark.parametrize("name", [*HOSTILE, "_ZN3foo3barEi"])
def test_a_report_fits_its_schema_and_is_read_back(name: str) -> None:
    document = report(result(HEARTBEAT, ADLER), result_named(name), library=name).to_dict()
    Draft202012Validator(schema_of("report")).validate(document)
    again = Report.model_validate(document)
    assert again.to_dict() == document
    assert again.results[0].hits[0].address == HEARTBEAT.address


def test_the_schema_of_all_documents() -> None:
    schema = all_schemas()
    Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == set(DOCUMENTS)
    document = {"result": result(HEARTBEAT).to_dict()}
    Draft202012Validator(schema).validate(document)
    with pytest.raises(ValidationError, match="0x"):
        Draft202012Validator(schema).validate({"result": {**document["result"], "hits": "0x"}})


def test_every_field_is_described() -> None:
    undescribed = [
        f"{document.__name__}.{name}"
        for document in (Report, FunctionResult, type(HEARTBEAT))
        for name, field in document.model_fields.items()
        if not field.description
    ]
    assert set(undescribed) <= {
        "FunctionResult.query", "Hit.architecture", "Hit.compiler", "Hit.evidence",
        "Report.tool",
    }  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders(name: str) -> None:
    text = render(report(result(HEARTBEAT, ADLER), result()), name)
    assert text.endswith("\n")
    assert "tls1_process_heartbeat" in text


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown format 'xml'; choose one of table"):
        render(report(), "xml")


def test_a_list_of_functions_fits_its_schema(run: Graphkin, tmp_path: Path) -> None:
    listed = json.loads(run("show", samples.FIRMWARE, "--json").out)
    Draft202012Validator(schema_of("functions")).validate(listed)
    address = listed["functions"][0]["address"]
    picture = tmp_path / "picture.svg"
    drawn = run("show", f"{samples.FIRMWARE}:{address}", "--json", "--plot", picture)
    Draft202012Validator(schema_of("function")).validate(json.loads(drawn.out))
