"""The bill of materials names all that graphkin needs, and is what CycloneDX says it must be."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import version
from typing import Any

import pytest

from tests.paths import REPOSITORY
from tests.scripts import script


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    document: dict[str, Any] = script("tools/sbom.py").bill()
    return document


def test_all_that_is_needed(bill: dict[str, Any]) -> None:
    listed = {item["name"]: item["version"] for item in bill["components"]}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for name in ("numpy", "torch", "capstone", "lief"):
        assert any(text.startswith(name) for text in project["dependencies"])
        assert listed[name] == version(name)
    assert listed["pydantic-core"] == version("pydantic-core"), "what is needed by others"
    assert "swagger-ui" in listed, "what lies in the repository"
    assert [item["name"] for item in bill["components"] if not item.get("licenses")] == []
    assert "pytest" not in listed, "what only tests need"
    assert bill["metadata"]["component"]["name"] == "graphkin"


def test_references_are_of_components(bill: dict[str, Any]) -> None:
    known = {item["bom-ref"] for item in bill["components"]}
    known.add(bill["metadata"]["component"]["bom-ref"])
    for item in bill["dependencies"]:
        assert {item["ref"], *item["dependsOn"]} <= known


def test_the_official_schema(bill: dict[str, Any]) -> None:
    schema = pytest.importorskip("cyclonedx.schema", reason="needs cyclonedx-python-lib")
    validation = pytest.importorskip("cyclonedx.validation.json")
    validator = validation.JsonStrictValidator(schema.SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(bill)) is None
