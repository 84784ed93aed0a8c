"""``graphkin schema``: what it prints, and that the documentation has it."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from graphkin.results.document import DOCUMENTS
from tests.command_line import Graphkin
from tests.paths import REPOSITORY


def test_all_documents(run: Graphkin) -> None:
    outcome = run("schema")
    assert outcome.code == 0, outcome.err
    schema = json.loads(outcome.out)
    Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == set(DOCUMENTS)


def test_one_document(run: Graphkin) -> None:
    schema = json.loads(run("schema", "comparison").out)
    assert {"left", "right", "evidence"} <= set(schema["properties"])
    outcome = run("schema", "nonsense")
    assert (outcome.code, "choose one of report" in outcome.err) == (12, True)


def test_the_documentation_has_the_same(run: Graphkin) -> None:
    """``graphkin schema > docs/_static/results.schema.json`` brings it up to date."""
    published = (REPOSITORY / "docs" / "_static" / "results.schema.json").read_text()
    assert published == run("schema").out
