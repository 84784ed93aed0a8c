"""A model says which processors it was trained on, and code of others gets a warning."""

from __future__ import annotations

from typing import Any

import pytest

from graphkin.library.models import SearchModel
from graphkin.library.processors import known_processors, processor_warnings, unknown_processors
from tests.library.sample_models import search_model, trained_on


def model_for(**record: Any) -> SearchModel:
    model = search_model(matcher=False)
    model.embedder.trained_on = {**trained_on(), **record}
    return model


def test_the_model_that_ships_was_trained_on_one_processor() -> None:
    assert known_processors(SearchModel.load("functions")) == ("x86-64",)


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


def test_without_a_record_nothing_is_said() -> None:
    assert processor_warnings(search_model(), ["arm"]) == ()
    assert processor_warnings(model_for(), ["arm"]) == ()
