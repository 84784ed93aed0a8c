"""A model says which processors it was trained on, and code of others gets a warning."""

from __future__ import annotations

from typing import Any

import pytest

from graphkin.library.models import SearchModel
from graphkin.library.processors import known_processors, processor_warnings, unknown_processors
from graphkin.models.saving import shipped_names
from tests.library.sample_models import search_model, trained_on


def model_for(**record: Any) -> SearchModel:
    model = search_model(matcher=False)
    model.embedder.trained_on = {**trained_on(), **record}
    return model


@pytest.mark.parametrize("name", [name for name in shipped_names() if name != "edits"])
def test_models_of_functions_that_ship_have_a_record(name: str) -> None:
    assert "x86-64" in (known_processors(SearchModel.load(name)) or ())


@pytest.mark.parametrize("record", [{"processors": ["arm"]}, {"task": {"processors": ["arm"]}}])
def test_the_record_is_that_of_the_training_or_of_its_task(record: dict[str, Any]) -> None:
    assert known_processors(model_for(**record)) == ("arm",)


def test_what_a_model_was_not_trained_on() -> None:
    model = model_for(processors=["x86-64", "arm"])
    assert unknown_processors(model, ["arm", "x86-64", "arm"]) == []
    assert unknown_processors(model, ["mips", "arm", "aarch64", "mips", ""]) == ["aarch64", "mips"]
    (warning,) = processor_warnings(model, ["mips", "aarch64", "riscv64"])
    assert "was trained on code for x86-64 and arm, not for aarch64, mips and riscv64:" in warning
    assert processor_warnings(model, ["arm", ""]) == ()


def test_a_model_without_a_record_says_so() -> None:
    for model in (search_model(), model_for()):
        (warning,) = processor_warnings(model, ["mips", "arm", "", "arm"])
        assert "does not say which processors" in warning
        assert "if code for arm and mips was not among them" in warning
        assert processor_warnings(model, [""]) == ()
