"""Every function of some binaries, or one of them, looked up in a library."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.inputs import find_target
from graphkin.binaries.reading import read_function, read_functions
from graphkin.binaries.targets import Target
from graphkin.errors import FormatError, GraphError, GraphkinError
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.graphs.words import is_large, word_hash
from graphkin.library.candidates import EncodedQuery, encode_queries
from graphkin.library.library import Library
from graphkin.library.models import SearchModel
from graphkin.library.records import Filter, SearchOptions
from graphkin.library.signals import NEIGHBOURS, Surroundings
from graphkin.results.document import EvidenceToken, FunctionRef, FunctionResult, SearchedFile
from graphkin.results.function import ref_of, said_by

if TYPE_CHECKING:
    from graphkin._support.progress import Progress
    from graphkin.graphs import Graph

MIN_BLOCKS = 5
"""Functions of a whole file with fewer basic blocks are not looked up: too many are alike."""
MIN_PROBABILITY = 0.5
"""Of a hit, wherever functions are looked up: from here on it is likelier right than wrong."""
RERANK = 20
"""Candidates of each function that the matcher scores again, wherever functions are looked up: as
many as the probabilities were calibrated with."""
TOP = 3
"""Hits of each function of a scan."""
AT_ONCE = 250
"""Functions that go through the stages of a search together."""
LARGEST_READ = 16 << 20
"""Bytes of a file that is read as a whole for one of its functions, to know what is around it."""


class Query(NamedTuple):
    """A function to look up."""

    ref: FunctionRef
    graph: Graph
    architecture: str = ""
    callees: tuple[int, ...] = ()
    """Addresses of functions of the same file that it calls."""
    said: tuple[EvidenceToken, ...] = ()
    """What it says, each once: a library keeps hashes only."""
    encoded: EncodedQuery | None = None
    """Where it was encoded with the other functions of its file."""


def query_of(function: Function, vocabulary: Vocabulary) -> Query:
    """A function that was read, as a query."""
    graph, callees = function.to_graph(vocabulary), function.internal_callees
    return Query(ref_of(function), graph, function.architecture, callees, said_by(function))


def encode_file(model: SearchModel, queries: Sequence[Query]) -> list[Query]:
    """Queries that are all the functions of one file: what calls what counts as well."""
    surroundings = [Surroundings(query.ref.address or 0, query.callees) for query in queries]
    encoded = _encoded(model, queries, surroundings)
    _link_neighbours(encoded, surroundings)
    return [query._replace(encoded=own) for query, own in zip(queries, encoded, strict=True)]


def encode_among(model: SearchModel, query: Query, around: Iterable[Query]) -> Query:
    """A query, encoded with those functions of its file that :func:`around_of` gives."""
    return encode_file(model, [query, *around])[0]


def _link_neighbours(encoded: Sequence[EncodedQuery], places: Sequence[Surroundings]) -> None:
    """Tells each function of those beside it that are large enough to be told from others."""
    in_order = sorted(range(len(places)), key=lambda number: places[number].address)
    large = [at for at in in_order if is_large(encoded[at].graph, MIN_BLOCKS)]
    addresses = [places[at].address for at in large]
    for own, place in zip(encoded, places, strict=True):
        first = bisect_left(addresses, place.address)
        behind = bisect_right(addresses, place.address)
        near = large[max(0, first - NEIGHBOURS) : first] + large[behind : behind + NEIGHBOURS]
        own.beside.extend(encoded[at] for at in near)


def around_of(
    query: Query, functions: Sequence[Surroundings], are_large: Sequence[bool]
) -> list[int]:
    """Which functions of its file a query calls, is called by, or lies beside.

    Args:
        query: one of them.
        functions: all.
        are_large: which of them are large enough to be told from others.
    """
    own = query.ref.address or 0
    related = {
        number
        for number, (address, callees) in enumerate(functions)
        if address in query.callees or own in callees
    }
    in_order = sorted(range(len(functions)), key=lambda number: functions[number].address)
    for near in (in_order, [number for number in in_order if are_large[number]]):
        place = bisect_left(near, own, key=lambda number: functions[number].address)
        related.update(near[max(0, place - NEIGHBOURS) : place + NEIGHBOURS + 1])
    return [number for number in sorted(related) if functions[number].address != own]


def _encoded(
    model: SearchModel, queries: Sequence[Query], surroundings: list[Surroundings] | None = None
) -> list[EncodedQuery]:
    return encode_queries(
        model,
        [query.graph for query in queries],
        [query.architecture for query in queries],
        surroundings,
        [{word_hash(token.kind, token.text): token for token in query.said} for query in queries],
    )


def scan(
    library: Library | str | Path,
    targets: str | Path | Sequence[str | Path],
    *,
    top: int = TOP,
    rerank: int = RERANK,
    min_probability: float = MIN_PROBABILITY,
    where: Filter | None = None,
    min_blocks: int = MIN_BLOCKS,
    backend: Backend = "auto",
    skipped: list[Skipped] | None = None,
    without: Iterable[str] = (),
) -> Iterator[FunctionResult]:
    """Looks up every function of some binaries in a library.

    Example::

        for result in graphkin.scan("library.kin", "firmware.bin"):
            for hit in result.hits:
                print(result.query.function, hit.function, hit.binary, hit.probability)

    Args:
        library: an open library, or where it is; that is opened, and closed at the end.
        targets: binaries, containers, folders, ``BINARY:FUNCTION`` or ``BINARY:0x1234``.
        top: hits of each function.
        rerank: candidates of each function that the matcher scores again; 0 for none.
        min_probability: hits that are less probable are left out.
        where: the part of the library to search.
        min_blocks: functions of a whole file with fewer basic blocks are skipped.
        backend: what reads the files.
        skipped: is filled with what could not be read.
        without: stages that are left out: words, neighbours, ranking, context.

    Raises:
        FormatError: for a file that cannot be read, or a library that is not there.
    """
    from graphkin.library.whole_files import look_up_files  # which looks up by this module

    options = SearchOptions(
        top, rerank, where, min_probability, evidence=rerank > 0, without=frozenset(without)
    )
    names = [targets] if isinstance(targets, str | Path) else targets
    with ExitStack() as stack:
        opened = library
        if not isinstance(opened, Library):
            opened = stack.enter_context(Library.open(opened))
        queries = read_queries(opened, map(str, names), backend, min_blocks, skipped=skipped)
        for _, of_file in groupby(queries, key=lambda query: query.ref.binary):
            yield from look_up_files(opened, list(of_file), options).results


def read_queries(
    library: Library,
    targets: Iterable[str],
    backend: Backend = "auto",
    min_blocks: int = MIN_BLOCKS,
    *,
    skipped: list[Skipped] | None = None,
    files: list[SearchedFile] | None = None,
    coverages: list[Coverage] | None = None,
    on_error: Callable[[GraphkinError], None] | None = None,
) -> Iterator[Query]:
    """The functions of binaries, ready to be looked up, as they are read.

    Args:
        library: whose model decides what of a function counts.
        targets: what a person typed; a named function counts whatever its size.
        backend: what reads the files.
        min_blocks: functions of a whole file with fewer basic blocks are skipped.
        skipped: is filled with what could not be read.
        files: is filled with what could be read.
        coverages: is filled with how much of the code of whole files is inside functions.
        on_error: is told of a target that cannot be read; without it, the error is raised.
    """
    # Reading comes before the model is loaded: a file that is refused need not wait for that.
    vocabulary = library.vocabulary
    if vocabulary is None or vocabulary.reads == "labels":
        vocabulary = library.model.vocabulary  # which says why it cannot read functions
    for text in targets:
        looked_up, small = 0, list[int]()
        try:
            target = find_target(text)
            # What is too small to be looked up tells something of its callers.
            is_file = library.has_ranking and target.function is None
            queries: Iterable[Query]
            if target.function is not None:
                queries = [_read_query(library, vocabulary, target, backend)]
            else:
                functions = read_functions(
                    target,
                    backend=backend,
                    min_blocks=1 if is_file else min_blocks,
                    with_evidence=vocabulary.reads == "evidence",
                    skipped=skipped,
                    on_small=small.append,
                    coverages=coverages,
                )
                queries = _first_made(_queries_of(functions, vocabulary, target, skipped))
            for query in encoded_by_file(library.model, queries) if is_file else queries:
                if is_file and not is_large(query.graph, min_blocks):
                    small.append(1)
                    continue
                looked_up += 1
                yield query
        except GraphkinError as error:
            if on_error is None:
                raise
            on_error(error)
        else:
            if files is not None:
                files.append(
                    SearchedFile(binary=target.binary, functions=looked_up, small=sum(small))
                )


def _queries_of(
    functions: Iterable[Function],
    vocabulary: Vocabulary,
    target: Target,
    skipped: list[Skipped] | None,
) -> Iterator[Query]:
    """Functions as queries; a file among others whose functions cannot be queries is skipped."""
    refused = ""
    for function in functions:
        if function.binary == refused:
            continue
        try:
            query = query_of(function, vocabulary)
        except GraphError as error:
            if function.binary == target.binary:
                raise
            refused = function.binary
            if skipped is not None:
                skipped.append(Skipped(refused, "", str(error)))
            continue
        yield query


def _first_made(queries: Iterator[Query]) -> Iterator[Query]:
    """The same queries; the first is made at once, so that what cannot become one is refused."""
    first = list(islice(queries, 1))
    return chain(first, queries)


def _read_query(
    library: Library, vocabulary: Vocabulary, target: Target, backend: Backend
) -> Query:
    """The function that a target names, with those around it where its file is not huge."""
    function = read_function(target, backend)
    query = query_of(function, vocabulary)
    if not library.has_ranking or Path(target.path).stat().st_size > LARGEST_READ:
        return query
    # Of a file that cannot be read as a whole, the function is all that is known.
    with suppress(FormatError):
        whole = target._replace(function=None)
        others = [
            other
            for other in read_functions(whole, backend=backend, with_evidence=True)
            if other.binary == function.binary
        ]
        places = [Surroundings(other.address, other.internal_callees) for other in others]
        large = [other.is_large(MIN_BLOCKS) for other in others]
        around = (
            query_of(others[number], vocabulary) for number in around_of(query, places, large)
        )
        query = encode_among(library.model, query, around)
    return query


def encoded_by_file(model: SearchModel, queries: Iterable[Query]) -> Iterator[Query]:
    """The functions of each file together, once all of them have been read."""
    for _, own in groupby(queries, key=lambda query: query.ref.binary):
        yield from encode_file(model, list(own))


def look_up(
    library: Library,
    queries: Iterable[Query],
    options: SearchOptions,
    *,
    at_once: int = AT_ONCE,
    progress: Progress | None = None,
) -> Iterator[FunctionResult]:
    """The result of every query, in order, as it is found.

    Args:
        library: what is searched.
        queries: functions; they are read as results are taken.
        options: how it is searched.
        at_once: queries that are searched together: many are faster, few are seen sooner.
        progress: called as ``progress(done, total)``, where the number of queries is known.
    """
    total = len(queries) if isinstance(queries, Sequence) else 0
    remaining, done = iter(queries), 0
    while chunk := list(islice(remaining, at_once)):
        hits = library.hits(_all_encoded(library.model, chunk), options)
        for query, kept in zip(chunk, hits, strict=True):
            yield FunctionResult(
                query=query.ref, hits=kept.hits, best_left_out=kept.best_left_out, kin=kept.kin
            )
            done += 1
            if progress is not None:
                progress(done, max(total, done))


def _all_encoded(model: SearchModel, queries: Sequence[Query]) -> list[EncodedQuery]:
    """What was not encoded with its file is encoded now."""
    alone = [query for query in queries if query.encoded is None]
    made = iter(_encoded(model, alone) if alone else ())
    return [query.encoded or next(made) for query in queries]
