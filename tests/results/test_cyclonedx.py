"""Bills of materials, and the components of a scan as text."""

from __future__ import annotations

import json

import pytest

from graphkin.results.components import component_lines
from graphkin.results.cyclonedx import cyclonedx
from graphkin.results.document import (
    AddressRange,
    Component,
    ComponentBuild,
    FunctionRef,
    FunctionResult,
    Hit,
    Report,
    SearchedFile,
    Tool,
)
from graphkin.results.html.scan import scan_page
from graphkin.results.render import render
from graphkin.results.sarif import sarif


def build(binary: str, nearest: int, version: str | None) -> ComponentBuild:
    return ComponentBuild(
        binary=binary, file_hash="ab" * 32, architecture="arm", build="gcc-O2", version=version,
        known=12, functions=7, nearest=nearest,
    )  # fmt: skip


COMPONENT = Component(
    binary="fw.bin",
    name="libfoo",
    probability=0.999,
    functions=7,
    builds=(build("/new/libfoo.so", 7, "1.2"), build("/old/libfoo.so", 3, "1.1")),
    ranges=(
        AddressRange(start=0x100, last=0x180, functions=5),
        AddressRange(start=0x400, last=0x400, functions=1),
        AddressRange(start=0x800, last=0x810, functions=2),
    ),
)
HIT = Hit(
    function="parse", binary="/old/libfoo.so", address=16, blocks=9, id=1, rank=1,
    rank_by_distance=1, distance=3.0, probability=0.9, tags={"cve": "CVE-2014-0160, DEMO-1"},
)  # fmt: skip
REPORT = Report(
    tool=Tool(version="1"),
    library="library.kin",
    model="functions",
    options={},
    results=(
        FunctionResult(
            query=FunctionRef(function="sub_100", binary="fw.bin", address=0x100, blocks=9),
            hits=(HIT,),
        ),
    ),
    files=(SearchedFile(binary="fw.bin", functions=1), SearchedFile(binary="x\udcff", functions=0)),
    components=(COMPONENT,),
)


def test_a_bill_of_materials() -> None:
    document = cyclonedx(REPORT)
    first, second = document["components"]
    assert (first["name"], second["name"]) == ("fw.bin", "x\\xff")
    (inside,) = first["components"]
    assert (inside["name"], inside["version"]) == ("libfoo", "1.2")
    assert inside["evidence"]["identity"][0]["confidence"] == 0.999
    places = inside["evidence"]["occurrences"]
    assert [item["additionalContext"].split("-")[0] for item in places] == [
        "addresses 0x100",
        "addresses 0x400",
        "addresses 0x800",
    ]
    assert not any("offset" in item for item in places), "addresses are no offsets in the file"
    ids = [item["id"] for item in document["vulnerabilities"]]
    assert ids == ["CVE-2014-0160", "DEMO-1"]
    assert document["vulnerabilities"][0]["affects"] == [{"ref": first["bom-ref"]}]
    assert document == cyclonedx(REPORT)


def test_the_official_schema() -> None:
    schema = pytest.importorskip("cyclonedx.schema", reason="needs cyclonedx-python-lib")
    validation = pytest.importorskip("cyclonedx.validation.json")
    validator = validation.JsonStrictValidator(schema.SchemaVersion.V1_6)
    assert validator.validate_str(render(REPORT, "cyclonedx")) is None
    empty = REPORT.model_copy(update={"components": (), "results": (), "files": ()})
    assert validator.validate_str(render(empty, "cyclonedx")) is None
    wrong = {**cyclonedx(REPORT), "components": 1}
    assert validator.validate_str(json.dumps(wrong)) is not None


def test_text_names_the_build_that_fits_best() -> None:
    lines = component_lines([COMPONENT], width=140)
    assert lines[0] == "components"
    assert "1.2 arm gcc-O2: nearest to 7, of 2 builds" in lines[2]
    assert "0x100-0x180, 0x800-0x810 and 1 more range" in lines[2]
    assert component_lines([]) == []
    assert "libfoo" in render(REPORT, "table")


def test_sarif_and_the_page_have_the_components() -> None:
    (run,) = sarif(REPORT)["runs"]
    assert run["properties"]["components"] == [COMPONENT.to_dict()]
    page = scan_page(REPORT)
    assert "<h2>Components</h2>" in page
    assert "libfoo" in page
    assert "<h2>Components</h2>" not in scan_page(REPORT.model_copy(update={"components": ()}))
