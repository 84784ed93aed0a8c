"""Names for the functions of a binary that has few: from another binary, or from a library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.function import Function, Skipped, is_unnamed
from graphkin.binaries.inputs import find_target
from graphkin.binaries.reading import read_functions
from graphkin.errors import ConfigError
from graphkin.graphs.words import is_large
from graphkin.library.diff.rounds import pair
from graphkin.library.diff.side import Side, side_of
from graphkin.library.engines.open import is_library
from graphkin.library.library import Library
from graphkin.library.models import SearchModel, search_model
from graphkin.library.processors import processor_warnings
from graphkin.library.records import SearchOptions
from graphkin.library.scan import MIN_BLOCKS, RERANK, TOP, encode_file, query_of
from graphkin.library.whole_files import look_up_files
from graphkin.results.document import CarriedName, FunctionResult, Hit, Names, Tool
from graphkin.results.function import ref_of

MIN_PROBABILITY = 0.7
"""Of a name: higher than that of a pair, because a wrong name costs more than a missing one."""

OnStep = Callable[[str], None]


class Proposal(NamedTuple):
    """A function of a library that may lend its name."""

    number: int
    """Of the function to name."""
    hit: Hit


def names(
    source: str | Path,
    target: str | Path,
    model: str | Path | SearchModel = "functions",
    *,
    min_probability: float = MIN_PROBABILITY,
    backend: Backend = "auto",
    on_step: OnStep | None = None,
) -> Names:
    """Names for the functions of a binary that have none of their own.

    Example::

        for item in graphkin.names("libssl-with-symbols.so", "firmware.bin").names:
            print(hex(item.target.address), item.name, item.probability)

    Args:
        source: a binary whose functions have names, or a library of such functions.
        target: the binary to name.
        model: a model that ships with graphkin, or a folder; a library has its own.
        min_probability: names that are less probable are left out.
        backend: what reads the files.
        on_step: is told what happens next, for people who wait.

    Raises:
        ConfigError: for a single function, or a file without functions to name or to name by.
        FormatError: for a file that cannot be read.
    """
    step = on_step or (lambda _: None)
    if is_library(source):
        return _from_library(str(source), str(target), min_probability, backend, step)
    loaded = search_model(model)
    skipped: list[Skipped] = []
    step(f"reading {source}")
    known = side_of(loaded, _read(loaded, str(source), backend, skipped, with_text=True))
    step(f"reading {target}")
    unknown = side_of(loaded, _read(loaded, str(target), backend, skipped, with_text=True))
    step("pairing functions")
    carried = carried_names(loaded, known, unknown)
    kept = [item for item in carried if (item.probability or 0.0) >= min_probability]
    files = str(source), str(target)
    return _document(loaded, files, unknown.functions, min_probability, kept, skipped)


def is_named(name: str) -> bool:
    """Whether a function has a name of its own, and not one that a tool made from its address."""
    return not is_unnamed(name)


def carried_names(model: SearchModel, known: Side, unknown: Side) -> list[CarriedName]:
    """What every unnamed function of a binary is called in the other, in the order of the file."""
    carried = []
    for item in sorted(pair(model, known, unknown), key=lambda item: item.column):
        origin, target = known.functions[item.row], unknown.functions[item.column]
        if is_named(origin.name) and not is_named(target.name):
            carried.append(
                CarriedName(
                    target=ref_of(target),
                    name=origin.name,
                    probability=item.probability,
                    origin=ref_of(origin),
                    source_file=origin.defined_in or origin.unit,
                )
            )
    return carried


def _read(
    model: SearchModel,
    name: str,
    backend: Backend,
    skipped: list[Skipped],
    *,
    with_text: bool = False,
) -> Iterator[Function]:
    target = find_target(name)
    if target.function is not None:
        raise ConfigError(
            f"{target.binary}:{target.function} is one function; names are carried over between "
            "whole binaries, and graphkin search looks up one function"
        )
    return read_functions(
        target,
        backend=backend,
        with_text=with_text,
        with_files=True,
        with_evidence=model.vocabulary.reads == "evidence",
        skipped=skipped,
    )


def _from_library(
    source: str, target: str, min_probability: float, backend: Backend, step: OnStep
) -> Names:
    skipped: list[Skipped] = []
    with Library.open(source) as library:
        model = library.model
        if not model.knows_probabilities:
            raise ConfigError(
                f"the model {model.model_id} of {source} knows no probabilities, by which names "
                "are chosen; index the binaries again with the model functions"
            )
        step(f"reading {target}")
        functions = list(_read(model, target, backend, skipped))
        step("looking up functions")
        results = _looked_up(library, functions, min_probability)
        kept = recognised_names(functions, results)
        return _document(model, (source, target), functions, min_probability, kept, skipped)


def _looked_up(
    library: Library, functions: Sequence[Function], min_probability: float
) -> list[tuple[int, FunctionResult]]:
    """The numbers of the functions that have no name, and what a library says of each."""
    model = library.model
    queries = [query_of(function, model.vocabulary) for function in functions]
    if model.ranking is not None:
        queries = encode_file(model, queries)
    asked = [
        number
        for number, function in enumerate(functions)
        if not is_named(function.name) and is_large(queries[number].graph, MIN_BLOCKS)
    ]
    options = SearchOptions(TOP, RERANK, None, min_probability)
    # What is not asked for, because it has a name, is left out of the context as well.
    scanned = look_up_files(library, [queries[number] for number in asked], options)
    return list(zip(asked, scanned.results, strict=True))


def recognised_names(
    functions: Sequence[Function], results: Iterable[tuple[int, FunctionResult]]
) -> list[CarriedName]:
    """The best names that a library has, the most probable first to choose.

    No function of the library names two. Nor do functions of one name from different files, which
    are builds of one source: the less probable is left out.
    """
    proposals = sorted(
        (
            Proposal(number, hit)
            for number, result in results
            for hit in result.hits
            if is_named(hit.function) and hit.probability is not None
        ),
        key=lambda item: (-(item.hit.probability or 0.0), item.number, item.hit.rank),
    )
    taken: set[int] = set()
    files: dict[str, str] = {}
    chosen: dict[int, CarriedName] = {}
    for number, hit in proposals:
        is_free = files.get(hit.function, hit.binary) == hit.binary and hit.id not in taken
        if number in chosen or not is_free:
            continue
        taken.add(hit.id)
        files[hit.function] = hit.binary
        chosen[number] = CarriedName(
            target=ref_of(functions[number]),
            name=hit.function,
            probability=hit.probability,
            origin=hit.to_ref(),
        )
    return [chosen[number] for number in sorted(chosen)]


def _document(
    model: SearchModel,
    names_of_files: tuple[str, str],
    functions: Sequence[Function],
    min_probability: float,
    kept: Sequence[CarriedName],
    skipped: Sequence[Skipped],
) -> Names:
    hashes = {(function.binary, function.file_hash) for function in functions}
    return Names(
        tool=Tool(version=version("graphkin")),
        model=str(model.model_id),
        source=names_of_files[0],
        target=names_of_files[1],
        file_hash=next(iter(hashes))[1] if len(hashes) == 1 else None,
        functions=len(functions),
        named_before=sum(is_named(function.name) for function in functions),
        min_probability=min_probability,
        names=tuple(kept),
        skipped=tuple(map(str, skipped)),
        warnings=processor_warnings(model, (function.architecture for function in functions)),
    )
