"""Names of the bundled libraries, carried over to the stripped firmware."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import graphkin
from graphkin.binaries.samples.bundled import FIRMWARE, KNOWN, path, true_names
from graphkin.binaries.targets import parse_target
from graphkin.cli import names as command
from graphkin.errors import ConfigError
from graphkin.library.diff.side import read_side
from graphkin.library.indexing.index import index_paths
from graphkin.library.library import Library
from graphkin.library.models import search_model
from graphkin.library.naming import (
    MIN_PROBABILITY,
    carried_names,
    is_named,
    names,
    recognised_names,
)
from graphkin.results.document import FunctionResult, Hit, Names
from graphkin.results.function import ref_of
from tests.function_samples import function
from tests.results.samples import HEARTBEAT

PROTO = path("gcc-O2/libkinproto.so")
BODY = ([("mov", "ret")], [])


@pytest.fixture(scope="module")
def carried() -> Names:
    return names(PROTO, FIRMWARE)


def right(found: Names) -> list[bool]:
    truth = true_names()
    return [truth.get(item.target.address or 0) == item.name for item in found.names]


def test_names_are_carried_over(carried: Names) -> None:
    assert sum(right(carried)) >= 25
    sure = carried.model_copy(
        update={"names": tuple(item for item in carried.names if (item.probability or 0) >= 0.9)}
    )
    assert len(sure.names) >= 20
    assert sum(right(sure)) >= 0.95 * len(sure.names)


def test_each_name_is_given_once(carried: Names) -> None:
    addresses = [item.target.address for item in carried.names]
    assert addresses == sorted(set(addresses), key=lambda address: address or 0)
    origins = [item.origin.address for item in carried.names]
    assert len(origins) == len(set(origins))
    assert all((item.probability or 0) >= MIN_PROBABILITY for item in carried.names)
    assert all(is_named(item.name) for item in carried.names)


def test_what_a_document_says_of_its_files(carried: Names) -> None:
    assert (carried.source, carried.target) == (str(PROTO), str(FIRMWARE))
    assert carried.functions == len(true_names())
    assert carried.named_before == 0
    assert carried.file_hash is not None


def test_source_files_come_along() -> None:
    """What is local to a file says so in the symbol table."""
    model = search_model("functions")
    known = read_side(model, parse_target(str(PROTO)))
    nameless = [replace(item, name=f"sub_{item.address:x}") for item in known.functions]
    found = carried_names(model, known, replace(known, functions=nameless))
    files = {item.name: item.source_file for item in found}
    assert files["is_token"] == "http.c"
    assert files["url_parse"] is None
    assert all(item.name == item.origin.function for item in found)


def test_names_that_are_not_utf8_keep_their_bytes(tmp_path: Path) -> None:
    """From the file through the pairing to the JSON, where a stray byte is escaped."""
    odd = tmp_path / "odd.so"
    odd.write_bytes(PROTO.read_bytes().replace(b"\0url_parse\0", b"\0url\xffpa\xe9se\0"))
    found = names(odd, FIRMWARE, min_probability=0.1)
    assert "url\udcffpa\udce9se" in {item.name for item in found.names}
    assert "url\\xffpa\\xe9se" in {item["name"] for item in found.to_dict()["names"]}
    file = tmp_path / "library.kin"
    with Library.create(file, "functions") as library:
        index_paths(library, [odd])
        assert "url\udcffpa\udce9se" in {item.entry.function for item in library.engine.scan()}


def test_functions_that_have_names_keep_them() -> None:
    found = names(path("gcc-O2/libkinmedia.so"), path("gcc-O3/libkinmedia.so"))
    assert found.names == ()
    assert found.named_before == found.functions


def test_a_library_names_a_binary(tmp_path: Path) -> None:
    file = tmp_path / "library.kin"
    with Library.create(file, "functions") as library:
        index_paths(library, [str(binary) for binary in KNOWN if binary.parent.name == "gcc-O2"])
    found = graphkin.names(file, FIRMWARE)
    assert found.source == str(file)
    assert len(found.names) >= 25
    assert sum(right(found)) >= 0.9 * len(found.names)
    assert len({item.name for item in found.names}) == len(found.names)
    assert {Path(item.origin.binary).name for item in found.names} >= {"libkinproto.so"}


def hit(number: int, name: str, binary: str, probability: float, rank: int = 1) -> Hit:
    return HEARTBEAT.model_copy(
        update={
            "id": number,
            "function": name,
            "binary": binary,
            "probability": probability,
            "rank": rank,
        }
    )


def test_no_function_of_a_library_names_two() -> None:
    functions = [function(f"sub_{at:x}", BODY, address=at) for at in (0x10, 0x20, 0x30, 0x40)]
    hits = [
        (hit(1, "decode", "a.so", 0.8), hit(2, "encode", "a.so", 0.7, rank=2)),
        (hit(1, "decode", "a.so", 0.9),),
        (hit(3, "decode", "b.so", 0.6),),  # another build of decode
        (hit(4, "decode", "a.so", 0.55), hit(5, "sub_77", "a.so", 0.99)),  # another static one
    ]
    results = [
        (number, FunctionResult(query=ref_of(functions[number]), hits=own))
        for number, own in enumerate(hits)
    ]
    given = {item.target.address: item.name for item in recognised_names(functions, results)}
    assert given == {0x10: "encode", 0x20: "decode", 0x40: "decode"}


def test_a_single_function_is_refused() -> None:
    with pytest.raises(ConfigError, match="is one function"):
        names(f"{PROTO}:is_token", FIRMWARE)


def test_the_command_has_the_same_default() -> None:
    assert command.MIN_PROBABILITY == MIN_PROBABILITY
