"""SARIF: valid against the schema, and what a dashboard makes alerts of."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from jsonschema import Draft202012Validator

from graphkin.results.document import FunctionRef, FunctionResult, Hit
from graphkin.results.sarif import level, sarif
from tests.results.samples import (
    ADLER,
    HEARTBEAT,
    HOSTILE,
    INFLATE,
    QUERY,
    changed,
    report,
    result,
    result_named,
)

SCHEMA = json.loads((Path(__file__).parent / "sarif" / "sarif-2.1.0.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)


def log(*results: FunctionResult, root: Path | None = None) -> dict[str, Any]:
    """A run, after validation of its log and a way through JSON."""
    document = sarif(report(*results, library="known.kin"), root=root)
    text = json.dumps(document, allow_nan=False)
    text.encode()
    VALIDATOR.validate(json.loads(text))
    (run,) = json.loads(text)["runs"]
    assert isinstance(run, dict)
    return run


def location(run: dict[str, Any], number: int = 0) -> dict[str, Any]:
    found = run["results"][number]["locations"][0]
    assert isinstance(found, dict)
    return found


def test_the_schema_refuses_what_is_wrong() -> None:
    document = sarif(report(result(HEARTBEAT)))
    document["runs"][0]["results"][0]["level"] = "fatal"
    assert not VALIDATOR.is_valid(document)


def test_a_vulnerability() -> None:
    run = log(result(HEARTBEAT))
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == "CVE-2014-0160"
    assert rule["helpUri"] == "https://nvd.nist.gov/vuln/detail/CVE-2014-0160"
    assert rule["properties"] == {
        "functions": ["tls1_process_heartbeat"],
        "tags": ["security", "cve=CVE-2014-0160", "package=openssl"],
    }
    (only,) = run["results"]
    assert (only["ruleId"], only["ruleIndex"], only["level"]) == ("CVE-2014-0160", 0, "error")
    assert only["message"]["text"] == (
        "sub_1234 resembles tls1_process_heartbeat of openssl-1.0.1f/clang-14-O3/libssl.so.1.0.0 "
        "(CVE-2014-0160), the same code with probability 0.987; 93% of its blocks have a partner. "
        "It is at 0x1234."
    )
    assert only["rank"] == 98.7
    assert [only["properties"][key] for key in ("probability", "score", "distance")] == [
        0.987, -1.5, 12.0,
    ]  # fmt: skip
    place = location(run)
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "firmware/lib%20one.so"
    assert place["physicalLocation"]["address"]["absoluteAddress"] == 0x1234
    assert place["logicalLocations"][0]["name"] == "sub_1234"
    assert run["properties"]["library"] == "known.kin"


def test_a_function_without_tags() -> None:
    run = log(result(INFLATE, ADLER))
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "function:inflate",
        "function:adler32",
    ]
    assert "helpUri" not in run["tool"]["driver"]["rules"][0]
    assert [result["level"] for result in run["results"]] == ["warning", "note"]
    assert "rank" not in run["results"][1]


def test_hits_about_one_rule_are_one_result() -> None:
    weak = changed(HEARTBEAT, id=9, probability=0.3, binary="b")
    run = log(result(weak, HEARTBEAT))
    (only,) = run["results"]
    assert [hit["probability"] for hit in only["properties"]["hits"]] == [0.987, 0.3]
    assert only["level"] == "error"
    assert len(run["tool"]["driver"]["rules"]) == 1


def test_a_function_with_two_vulnerabilities_breaks_two_rules() -> None:
    run = log(result(changed(HEARTBEAT, tags={"cve": "cve-2020-11111, INTERNAL-7"})))
    assert [result["ruleId"] for result in run["results"]] == ["CVE-2020-11111", "INTERNAL-7"]
    assert ["helpUri" in rule for rule in run["tool"]["driver"]["rules"]] == [True, False]


def test_levels() -> None:
    chances = (None, 0.0, 0.499, 0.5, 0.899, 0.9, 1.0, float("nan"))
    assert [level(chance) for chance in chances] == [
        "note", "note", "note", "warning", "warning", "error", "error", "note",
    ]  # fmt: skip


def test_nothing_found_is_a_valid_run() -> None:
    run = log(result())
    assert run["results"] == []
    assert len(run["artifacts"]) == 1, "the file was scanned"


def fingerprint(query: FunctionRef, hit: Hit = HEARTBEAT) -> dict[str, str]:
    found = log(result(hit, query=query))["results"][0]["partialFingerprints"]
    assert isinstance(found, dict)
    return found


def test_fingerprints_are_stable_and_distinct() -> None:
    first = fingerprint(QUERY)
    moved = fingerprint(changed(QUERY, address=0x9999, blocks=50), changed(HEARTBEAT, distance=3.0))
    assert first == moved
    others = [
        fingerprint(changed(QUERY, function="other")),
        fingerprint(changed(QUERY, binary="other.so")),
        fingerprint(QUERY, INFLATE),
        fingerprint(changed(QUERY, binary="firmware/lib one.so(a.o)")),
    ]
    for key in first:
        assert len({first[key], *(other[key] for other in others)}) == 5


def test_nameless_functions_are_told_apart_by_address() -> None:
    one, two = (changed(QUERY, function="", address=address) for address in (1, 2))
    assert fingerprint(one) != fingerprint(two)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/c#d?e%f.so", "a%20b/c%23d%3Fe%25f.so"),
        ("./x/../lib:1.so", "lib%3A1.so"),
        ("lib.a(one.o)", "lib.a"),
        ("caf\udce9", "caf%E9"),
        ("naïve", "na%C3%AFve"),
    ],
)
def test_relative_locations(tmp_path: Path, path: str, uri: str) -> None:
    run = log(result(ADLER, query=changed(QUERY, binary=path)), root=tmp_path)
    found = location(run)["physicalLocation"]["artifactLocation"]
    assert found == {"uri": uri, "uriBaseId": "%SRCROOT%", "index": 0}
    assert run["artifacts"][0]["location"] == found


def test_locations_in_and_outside_the_root(tmp_path: Path) -> None:
    inside = changed(QUERY, binary=str(tmp_path / "bin" / "tool"))
    outside = changed(QUERY, binary=os.path.join("..", "other tool"))
    run = log(result(ADLER, query=inside), result(ADLER, query=outside), root=tmp_path)
    uris = [
        location(run, number)["physicalLocation"]["artifactLocation"]["uri"] for number in (0, 1)
    ]
    assert uris[0] == "bin/tool"
    assert unquote(uris[1]) == f"file://{tmp_path.parent}/other tool"


def test_members_of_an_archive_share_its_location() -> None:
    queries = [changed(QUERY, binary=f"lib.a({name}.o)") for name in "ab"]
    run = log(*(result(ADLER, query=query) for query in queries))
    assert len(run["artifacts"]) == 1
    names = [location(run, n)["logicalLocations"][0]["fullyQualifiedName"] for n in (0, 1)]
    assert names == ["lib.a(a.o):sub_1234", "lib.a(b.o):sub_1234"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_data(name: str) -> None:
    run = log(result_named(name))
    text = run["results"][0]["message"]["text"]
    assert text.isprintable()
    assert "](" not in text, "a link"
    assert "{0}" not in text.replace("{{", "").replace("}}", ""), "a placeholder"


def test_a_name_of_cpp_is_shown_as_the_source_spells_it_and_stays_the_identity() -> None:
    name = "_ZN3foo3barEi"
    run = log(result_named(name))
    (logical,) = location(run)["logicalLocations"]
    assert (logical["name"], logical["decoratedName"]) == ("foo::bar(int)", name)
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == f"function:{name}"
    assert rule["shortDescription"]["text"] == "A copy of foo::bar(int)."
    assert "foo::bar(int) resembles foo::bar(int)" in run["results"][0]["message"]["text"]
    assert "decoratedName" not in location(log(result(HEARTBEAT)))["logicalLocations"][0]


def test_an_entry_without_a_name() -> None:
    run = log(result(changed(ADLER, function="", binary="")))
    assert run["results"][0]["ruleId"] == "function:unnamed"
