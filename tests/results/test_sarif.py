"""SARIF: valid against the schema, and what a dashboard makes alerts of."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote

import pytest
from jsonschema import Draft202012Validator

from graphkin.results.document import (
    EvidenceToken,
    FunctionRef,
    FunctionResult,
    Hit,
    PatchVerdict,
    Repair,
    SearchedFile,
)
from graphkin.results.function import ref_of
from graphkin.results.render import render
from graphkin.results.sarif import MOST_RESULTS, MOST_WORDS, level, sarif
from tests.results.samples import (
    ADLER,
    HEARTBEAT,
    HOSTILE,
    INFLATE,
    QUERY,
    TALKING,
    changed,
    function,
    report,
    result,
    result_named,
)

SCHEMA = json.loads((Path(__file__).parent / "sarif" / "sarif-2.1.0.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)


def log(*results: FunctionResult, root: Path | None = None, **fields: object) -> dict[str, Any]:
    """A run, after validation of its log and a way through JSON."""
    document = sarif(changed(report(*results, library="known.kin"), **fields), root=root)
    text = json.dumps(document, allow_nan=False)
    text.encode()
    VALIDATOR.validate(json.loads(text))
    (run,) = json.loads(text)["runs"]
    assert isinstance(run, dict)
    expect_what_github_takes(run)
    return run


def expect_what_github_takes(run: dict[str, Any]) -> None:
    """What GitHub's page "SARIF support for code scanning" calls required, and its limits."""
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules) <= 25_000
    for rule in rules:
        assert 0 < len(rule["id"]) <= 255
        assert 0 < len(rule["shortDescription"]["text"]) <= 1024
        assert 0 < len(rule["fullDescription"]["text"]) <= 1024
        assert rule["help"]["text"]
        properties = rule["properties"]
        assert len(properties["tags"]) <= 10, "more than 10 are not shown, more than 20 refused"
        assert properties["precision"] in ("very-high", "high", "medium", "low")
        assert ("security-severity" in properties) == ("security" in properties["tags"])
        if "security-severity" in properties:
            assert isinstance(properties["security-severity"], str)
            assert 0 < float(properties["security-severity"]) <= 10
    assert len(run["results"]) <= 25_000
    for actual in run["results"]:
        assert rules[actual["ruleIndex"]]["id"] == actual["ruleId"]
        assert actual["level"] in ("note", "warning", "error")
        assert actual["message"]["text"]
        assert actual["partialFingerprints"]["primaryLocationLineHash"]
        (position,) = actual["locations"]
        assert position["physicalLocation"]["artifactLocation"]["uri"]
        region = position["physicalLocation"]["region"]
        assert region.keys() == {"startLine", "startColumn", "endLine", "endColumn"}
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"], "GitHub refuses all results of another run"


def location(run: dict[str, Any], number: int = 0) -> dict[str, Any]:
    actual = run["results"][number]["locations"][0]
    assert isinstance(actual, dict)
    return actual


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
        "tags": ["security", "vulnerability"],
        "precision": "medium",
        "security-severity": "7.0",
    }
    assert "(https://nvd.nist.gov/vuln/detail/CVE-2014-0160)" in rule["help"]["markdown"]
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
    position = location(run)
    assert position["physicalLocation"]["artifactLocation"]["uri"] == "firmware/lib%20one.so"
    assert position["physicalLocation"]["address"]["absoluteAddress"] == 0x1234
    assert position["logicalLocations"][0]["name"] == "sub_1234"
    assert run["properties"]["library"] == "known.kin"


def test_what_both_say_and_a_note_are_in_the_message_and_with_the_hit() -> None:
    many = tuple(EvidenceToken("str", f"word {n}") for n in range(30))
    (only,) = log(result(TALKING, changed(INFLATE, shared=many, tags=TALKING.tags)))["results"]
    assert only["message"]["text"].endswith(
        'have a partner; both say "heartbeat of %d bytes", 0x9e3779b9, memcpy; '
        "one of 3 equal copies. It is at 0x1234."
    )
    first, second = only["properties"]["hits"]
    assert first["shared"][0] == ["str", "heartbeat of %d bytes"]
    assert first["note"] == "one of 3 equal copies"
    assert len(second["shared"]) == MOST_WORDS
    assert second["note"] is None


def ids(run: dict[str, Any]) -> list[str]:
    return [rule["id"] for rule in run["tool"]["driver"]["rules"]]


def test_functions_without_tags_share_a_rule() -> None:
    unnamed = changed(ADLER, function="sub_77")
    run = log(
        result(INFLATE, ADLER), result(unnamed, query=changed(QUERY, address=1, code_hash="b"))
    )
    assert ids(run) == ["known-function"]
    assert "helpUri" not in run["tool"]["driver"]["rules"][0]
    assert "security-severity" not in run["tool"]["driver"]["rules"][0]["properties"]
    assert [result["level"] for result in run["results"]] == ["warning", "note"]
    assert "rank" not in run["results"][1]


def test_a_tag_is_a_rule() -> None:
    tagged = changed(INFLATE, tags={"package": "zlib", "version": "1.2.8", "severity": "5"})
    run = log(result(tagged, ADLER))
    assert ids(run) == ["package=zlib", "version=1.2.8"]
    assert {rule["properties"]["security-severity"] for rule in run["tool"]["driver"]["rules"]} == {
        "5.0"
    }
    queries = log(result(tagged), options={"where": {"tags": {"package": "*"}}})
    assert ids(queries) == ["package=zlib"]
    assert ids(log(result(HEARTBEAT, tagged))) == ["CVE-2014-0160", *ids(run)]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("7.5", "7.5"),
        ("10", "10.0"),
        ("0.01", "0.1"),
        ("Critical", "9.5"),
        ("low", "2.0"),
        ("0", "7.0"),
        ("11", "7.0"),
        ("nan", "7.0"),
        ("awful", "7.0"),
    ],
)
def test_a_tag_says_how_severe_it_is(said: str, value: str) -> None:
    tagged = changed(HEARTBEAT, tags={"cve": "CVE-2014-0160", "severity": said})
    (rule,) = log(result(tagged))["tool"]["driver"]["rules"]
    assert rule["properties"]["security-severity"] == value
    run = log(result(changed(tagged, tags={"severity": said})))
    assert ids(run) == ["known-function"], "a severity is no tag to be found by"


def test_the_highest_severity_counts() -> None:
    hits = [
        changed(HEARTBEAT, id=number, tags={"cve": "CVE-2014-0160", "severity": said})
        for number, said in enumerate(("3.1", "9.8", "5"))
    ]
    (rule,) = log(result(*hits))["tool"]["driver"]["rules"]
    assert rule["properties"]["security-severity"] == "9.8"


def test_rules_do_not_depend_on_what_was_found() -> None:
    other = changed(HEARTBEAT, function="dtls1_process_heartbeat", binary="other.so", score=-9.0)
    runs = [log(result(HEARTBEAT)), log(result(other, HEARTBEAT)), log(result(HEARTBEAT, INFLATE))]
    first, *others = [run["tool"]["driver"]["rules"] for run in runs]
    assert all(rules == first for rules in others)


def test_what_could_not_be_read_is_noted() -> None:
    files = (SearchedFile(binary="tiny.so", functions=0, small=3),)
    run = log(result(HEARTBEAT), skipped=("odd.so skipped: {0} it is [no](x) ELF",), files=files)
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert [note["message"]["text"] for note in notes] == [
        "odd.so skipped: {{0}} it is [no] (x) ELF",
        "No function of tiny.so was looked up; 3 functions with too few blocks.",
    ]
    assert run["artifacts"][0]["location"]["uri"] == "tiny.so"
    run = log(result(), skipped=tuple(f"{number} skipped: no" for number in range(1000)))
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 101


def many(count: int) -> list[FunctionResult]:
    """Results that do not compress well."""
    random = Random(0)
    hits = [changed(INFLATE, id=n, function=f"{random.getrandbits(128):x}") for n in range(3)]
    results = []
    for n in range(count):
        said = tuple(EvidenceToken("str", f"{random.getrandbits(64):x}") for _ in range(MOST_WORDS))
        code = f"{random.getrandbits(256):x}"
        query = changed(QUERY, function=f"sub_{n:x}", address=n, code_hash=code)
        results.append(result(*(changed(hit, shared=said) for hit in hits), query=query))
    return results


def test_more_results_than_a_dashboard_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most severe stay, in their order."""
    assert MOST_RESULTS == 25_000
    monkeypatch.setattr("graphkin.results.sarif.MOST_RESULTS", 50)
    severe = changed(HEARTBEAT, tags={"cve": "CVE-2014-0160", "severity": "9.9"}, probability=0.51)
    last = result(severe, query=changed(QUERY, address=99_999))
    run = log(*many(60), last)
    assert len(run["results"]) == 50
    assert run["results"][-1]["ruleId"] == "CVE-2014-0160"
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "11 results" in note["message"]["text"]


def test_as_many_results_as_github_takes_fit_into_its_upload() -> None:
    part = render(report(*many(500)), "sarif")
    assert len(gzip.compress(part.encode(), 6)) * MOST_RESULTS / 500 < 10_000_000 / 2


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
    probabilities = (None, 0.0, 0.499, 0.5, 0.899, 0.9, 1.0, float("nan"))
    assert [level(rng) for rng in probabilities] == [
        "note", "note", "note", "warning", "warning", "error", "error", "note",
    ]  # fmt: skip


@pytest.mark.parametrize(("verdict", "expected"), [("fixed", "note"), ("vulnerable", "error")])
def test_a_repaired_function_is_a_note(verdict: Repair, expected: str) -> None:
    repaired = changed(HEARTBEAT, tags={"fixed": "CVE-2014-0160"})
    (actual,) = log(result(repaired))["results"]
    assert actual["level"] == "note", "it is known as repaired, and nothing else was compared"
    patch = PatchVerdict(
        identifier="CVE-2014-0160", verdict=verdict, probability=0.9, vulnerable=QUERY,
        fixed=QUERY, reasons=(),
    )  # fmt: skip
    (actual,) = log(changed(result(repaired), patches=(patch,)))["results"]
    assert actual["level"] == expected
    assert actual["properties"]["patches"][0]["verdict"] == verdict


def test_nothing_found_is_a_valid_run() -> None:
    run = log(result())
    assert run["results"] == []
    assert len(run["artifacts"]) == 1, "the file was scanned"


def fingerprint(query: FunctionRef, hit: Hit = HEARTBEAT) -> dict[str, str]:
    actual = log(result(hit, query=query))["results"][0]["partialFingerprints"]
    assert isinstance(actual, dict)
    return actual


CODE = changed(QUERY, code_hash="c0de")


def test_fingerprints_are_stable_and_distinct() -> None:
    first = fingerprint(CODE)
    stable = [
        fingerprint(changed(CODE, function="sub_9999", address=0x9999)),
        fingerprint(changed(CODE, binary="/elsewhere/build/lib one.so")),
        fingerprint(CODE, changed(HEARTBEAT, id=7, function="other", binary="b", distance=3.0)),
        log(result(INFLATE, HEARTBEAT, query=CODE), library="other.kin")["results"][0][
            "partialFingerprints"
        ],
    ]
    assert all(actual == first for actual in stable)
    others = [
        fingerprint(changed(CODE, code_hash="other")),
        fingerprint(changed(CODE, binary="other.so")),
        fingerprint(CODE, INFLATE),
        fingerprint(changed(CODE, binary="firmware/lib one.so(a.o)")),
    ]
    for key in first:
        assert len({first[key], *(other[key] for other in others)}) == 5


def test_copies_in_a_file_are_numbered_by_address() -> None:
    one, two = (changed(CODE, address=address) for address in (1, 2))
    elsewhere = changed(CODE, binary="other/lib one.so")
    for queries in ((one, two, elsewhere), (elsewhere, two, one)):
        run = log(*(result(HEARTBEAT, query=query) for query in queries))
        ends = {
            (
                location(run, number)["physicalLocation"]["artifactLocation"]["uri"],
                location(run, number)["physicalLocation"]["address"]["absoluteAddress"],
            ): actual["partialFingerprints"]["primaryLocationLineHash"][-2:]
            for number, actual in enumerate(run["results"])
        }
        assert ends == {
            ("firmware/lib%20one.so", 1): ":1",
            ("firmware/lib%20one.so", 2): ":2",
            ("other/lib%20one.so", CODE.address): ":1",
        }


def test_code_is_the_same_wherever_it_lies_and_whatever_it_is_called() -> None:
    code = function(5)
    moved = replace(
        code,
        name="other",
        binary="elsewhere",
        address=0x9000,
        blocks=tuple(block._replace(address=block.address + 0x8000) for block in code.blocks),
    )
    assert ref_of(moved).code_hash == ref_of(code).code_hash
    first, *others = code.blocks
    changes = [
        replace(code, blocks=(first._replace(mnemonics=("nop", "ret")), *others)),
        replace(code, blocks=(first._replace(size=17), *others)),
        replace(code, edges=code.edges[1:]),
    ]
    hashes = {ref_of(item).code_hash for item in (code, *changes)}
    assert len(hashes) == 4


def test_links_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "libx.so.1").write_bytes(b"")
    (tmp_path / "libx.so").symlink_to("libx.so.1")
    run = log(result(ADLER, query=changed(QUERY, binary="libx.so")), root=tmp_path)
    assert location(run)["physicalLocation"]["artifactLocation"]["uri"] == "libx.so.1"


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
    actual = location(run)["physicalLocation"]["artifactLocation"]
    assert actual == {"uri": uri, "uriBaseId": "%SRCROOT%", "index": 0}
    assert run["artifacts"][0]["location"] == actual


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


def test_a_long_tag_makes_a_short_rule() -> None:
    runs = [log(result(changed(INFLATE, tags={"note": "x" * 5000 + end}))) for end in "ab"]
    assert ids(runs[0]) != ids(runs[1])


def test_a_long_name_makes_a_short_message() -> None:
    long = "_ZN" + "x" * 9000
    run = log(result(changed(HEARTBEAT, function=long), query=changed(QUERY, function=long)))
    assert len(run["results"][0]["message"]["text"]) < 1024


def test_a_name_of_cpp_is_shown_as_the_source_spells_it_and_stays_the_identity() -> None:
    name = "_ZN3foo3barEi"
    run = log(result_named(name))
    (logical,) = location(run)["logicalLocations"]
    assert (logical["name"], logical["decoratedName"]) == ("foo::bar(int)", name)
    assert "foo::bar(int) resembles foo::bar(int)" in run["results"][0]["message"]["text"]
    assert "decoratedName" not in location(log(result(HEARTBEAT)))["logicalLocations"][0]


def test_an_entry_without_a_name() -> None:
    run = log(result(changed(ADLER, function="", binary="")))
    assert run["results"][0]["ruleId"] == "known-function"
