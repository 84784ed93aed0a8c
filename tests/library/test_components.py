"""Which binaries of a library are inside a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin import Library
from graphkin.binaries import samples
from graphkin.library.components import (
    LibraryComponents,
    LibraryFile,
    component_name,
    find_components,
)
from graphkin.library.indexing.index import index_paths
from graphkin.library.records import BinarySummary, Filter, SearchOptions
from graphkin.library.scan import read_queries
from graphkin.library.whole_files import look_up_files
from graphkin.results.document import FunctionRef, FunctionResult, Kin


def library_file(binary: str, **tags: str) -> LibraryFile:
    counts = {f"{key}={value}": 9 for key, value in tags.items()}
    return LibraryFile(binary, [BinarySummary(binary, binary, "arm", "gcc", "O2", 9, counts)])


KNOWN = LibraryComponents(
    {name: library_file(name) for name in ("a1", "a2", "b")}, {"a1": "A", "a2": "A", "b": "B"}
)


def result(address: int, *own: tuple[str, str, float, float]) -> FunctionResult:
    """With kin of (function, file, probability, distance)."""
    kin = tuple(
        Kin(number, function, file, file, 16 * number, probability, distance)
        for number, (function, file, probability, distance) in enumerate(own)
    )
    query = FunctionRef(function=f"sub_{address:x}", binary="fw", address=address, blocks=9)
    return FunctionResult(query=query, hits=(), kin=kin)


def test_a_component_with_its_builds_and_where_it_lies() -> None:
    results = [
        result(0x30, ("f3", "a2", 0.9, 3), ("f3", "a1", 0.9, 8)),
        result(0x10, ("f1", "a2", 0.9, 2), ("f1", "a1", 0.9, 2)),
        result(0x20),
        result(0x40, ("g1", "b", 0.9, 1)),
        result(0x50, ("g2", "b", 0.9, 1)),
        result(0x60, ("g3", "b", 0.9, 1)),
        result(0x70, ("f4", "a1", 0.8, 1)),
        result(0x80, ("f5", "a2", 0.4, 1)),  # not probable enough to count
    ]
    first, second = find_components(results, KNOWN)
    assert (first.name, first.functions, second.name, second.functions) == ("A", 3, "B", 3)
    assert (first.probability or 0) > 0.95
    assert [(item.start, item.last, item.functions) for item in first.ranges] == [
        (0x10, 0x30, 2),
        (0x70, 0x70, 1),
    ]
    builds = [(item.binary, item.functions, item.nearest) for item in first.builds]
    assert builds == [("a2", 2, 2), ("a1", 3, 2)]


def test_a_function_counts_for_the_component_that_has_most() -> None:
    results = [result(16 * n, (f"g{n}", "b", 0.9, 1)) for n in range(1, 5)]
    results.append(result(0x100, ("md5", "a1", 0.95, 1), ("md5", "b", 0.9, 4)))
    (component,) = find_components(results, KNOWN)
    assert (component.name, component.functions) == ("B", 5)


def test_two_functions_are_not_a_component() -> None:
    results = [result(16 * n, (f"g{n}", "b", 1.0, 1)) for n in range(1, 3)]
    assert find_components(results, KNOWN) == []
    copies = [result(16 * n, ("g", "b", 1.0, 1)) for n in range(1, 9)]
    assert find_components(copies, KNOWN) == []  # one function, however often


@pytest.mark.parametrize(
    ("binaries", "name"),
    [
        (["/lib/libpng16.so.16.39.0", "/old/libpng16.so"], "libpng16"),
        (["/lib/libfoo-1.2.3.so", "/old/libfoo-1.1.so"], "libfoo"),
        (["/p/tiff/x86_64-gcc-O2.so", "/p/tiff/arm-gcc-O2.so"], "tiff"),
        (["/p/tiff/x86_64-gcc-O2.so"], "tiff"),
        (["image.zip!usr/lib/libz.so.1"], "libz"),
        (["/x/libssl.a"], "libssl"),
    ],
)
def test_names(binaries: list[str], name: str) -> None:
    assert component_name([library_file(binary) for binary in binaries]) == name
    tagged = [library_file(binary, component="tagged") for binary in binaries]
    assert component_name(tagged) == "tagged"


def test_the_samples_are_in_the_firmware(tmp_path: Path) -> None:
    builds = ("gcc-O2", "clang-O1")
    files = [
        samples.path(f"{build}/{name}")
        for build in builds
        for name in ("libkinmedia.so", "libkinparse.so")
    ]
    with Library.create(tmp_path / "library.kin") as library:
        index_paths(library, files)
        library.tag(Filter(build="gcc-O2"), {"version": "2"})
        queries = list(read_queries(library, [str(samples.FIRMWARE)]))
        options = SearchOptions(3, 20, min_probability=0.5)
        scanned = look_up_files(library, queries, options)
    assert {item.name for item in scanned.components} == {"libkinmedia", "libkinparse"}
    for component in scanned.components:
        assert {item.build for item in component.builds} == set(builds)
        assert component.builds[0].build == "clang-O1"  # clang made the firmware, too
        assert component.builds[1].version == "2"
        assert sum(item.functions for item in component.ranges) == component.functions
    hits = [hit for result in scanned.results for hit in result.hits]
    assert all((hit.probability or 0) >= 0.5 for hit in hits)
    assert len(scanned.results) == len(queries)
