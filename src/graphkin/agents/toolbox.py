"""What the tools do. Answers are bounded: an agent reads every letter of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from graphkin.agents.allowed_folders import AllowedFolders
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.function import Function
from graphkin.binaries.reading import read_function, read_functions
from graphkin.binaries.targets import Target
from graphkin.errors import ConfigError
from graphkin.graphs.words import is_large
from graphkin.library.compare import compare_functions
from graphkin.library.diff.diff import MIN_PROBABILITY as PAIR_PROBABILITY
from graphkin.library.diff.diff import diff_document, probable
from graphkin.library.diff.rounds import pair
from graphkin.library.diff.side import side_of
from graphkin.library.library import Library
from graphkin.library.models import search_model
from graphkin.library.processors import hit_processors, processor_warnings
from graphkin.library.records import SearchOptions
from graphkin.library.scan import MIN_BLOCKS, RERANK, TOP, encoded_by_file, look_up, query_of
from graphkin.results.diff_table import changes_text
from graphkin.results.document import FunctionPair, FunctionRef, FunctionResult, Hit
from graphkin.results.function import to_text
from graphkin.results.text import address_text, encodable, printable
from graphkin.results.word_text import words_line
from graphkin.web.limits import ServerLimits

MODEL = "functions"
MOST_LETTERS = 30_000
"""Of the text of a function."""
MOST_ITEMS = 200
"""Of any list."""
MOST_WORDS = 300
"""Letters of what two functions both say."""
MOST_FILES = 500
Verdict = Literal["identical", "same", "changed", "removed", "added"]
Answer = dict[str, Any]


class Toolbox:
    """The tools over some folders, and over a library where there is one.

    One call computes at a time: models and the functions of a file take most of the memory.
    """

    def __init__(
        self,
        folders: AllowedFolders,
        library: Library | None = None,
        limits: ServerLimits = ServerLimits(),  # noqa: B008 (frozen)
    ) -> None:
        self._folders = folders
        self._library = library
        self._server_limits = limits
        self._limits = Limits(
            limits.extraction_seconds, limits.upload_bytes, memory_bytes=limits.extraction_bytes
        )
        self._turn = threading.Lock()

    def list_files(self) -> Answer:
        files, are_all = self._folders.files(MOST_FILES)
        return {"files": [encodable(file) for file in files], "complete": are_all}

    def show(self, target: str, offset: int, limit: int) -> Answer:
        """The functions of a file, or the code of one."""
        parsed = self._folders.target(target)
        if parsed.function is not None:
            function = read_function(parsed, limits=self._limits)
            text = "\n".join(map(printable, to_text(function).split("\n")))
            return {"text": text[:MOST_LETTERS], "complete": len(text) <= MOST_LETTERS}
        functions = [_line(function) for function in self._functions(parsed, with_evidence=False)]
        return {"total": len(functions), "functions": functions[offset : offset + _most(limit)]}

    def compare(self, left: str, right: str) -> Answer:
        with self._turn:
            first, second = self._function(left), self._function(right)
            document = compare_functions(search_model(MODEL), first, second).document
        return {
            "left": _named(document.left),
            "right": _named(document.right),
            "probability": document.probability,
            "note": document.note,
            "score": document.score,
            "distance": document.distance,
            "blocks_matched": document.evidence.matched_share,
            "both_say": words_line(document.shared or (), MOST_WORDS),
            "only_left_says": words_line(document.only_left or (), MOST_WORDS),
            "only_right_says": words_line(document.only_right or (), MOST_WORDS),
            "warnings": document.warnings,
        }

    def search(self, target: str, top: int, min_probability: float) -> Answer:
        with self._turn:
            library = self._opened()
            query = query_of(self._function(target), library.model.vocabulary)
            (result,) = look_up(library, [query], self._options(top, min_probability))
            processors = {query.architecture, *hit_processors([result])}
            warnings = processor_warnings(library.model, processors)
        return _result(result) | {"best_left_out": result.best_left_out, "warnings": warnings}

    def scan(self, target: str, min_probability: float, offset: int, limit: int) -> Answer:
        with self._turn:
            library = self._opened()
            model = library.model
            queries = [
                query_of(function, model.vocabulary)
                for function in self._functions(self._folders.target(target))
            ]
            if model.ranking is not None:
                queries = list(encoded_by_file(model, queries))
            wanted = [
                query
                for query in queries
                if is_large(query.graph, MIN_BLOCKS)
                and query.ref.blocks <= self._server_limits.query_blocks
            ]
            results = list(look_up(library, wanted, self._options(TOP, min_probability)))
        processors = {query.architecture for query in wanted} | hit_processors(results)
        hits = sorted(
            (result for result in results if result.hits),
            key=lambda result: -(result.hits[0].probability or 0.0),
        )
        return {
            "functions": len(queries),
            "looked_up": len(wanted),
            "with_a_hit": len(hits),
            "results": [_result(result) for result in hits[offset : offset + _most(limit)]],
            "warnings": processor_warnings(model, processors),
        }

    def diff(
        self, old: str, new: str, verdicts: Sequence[Verdict], offset: int, limit: int
    ) -> Answer:
        with self._turn:
            model = search_model(MODEL)
            targets = [self._folders.target(name) for name in (old, new)]
            left, right = (
                side_of(model, self._functions(target, with_text=True)) for target in targets
            )
            paired = probable(pair(model, left, right), left, right, PAIR_PROBABILITY)
            names = targets[0].binary, targets[1].binary
            document = diff_document(model, left, right, paired, names=names)
        changed = sorted(document.pairs, key=lambda item: item.similarity or 0.0)
        items: list[Answer] = [_pair(item) for item in changed if item.verdict in verdicts]
        for verdict, functions in (("removed", document.removed), ("added", document.added)):
            if verdict in verdicts:
                items += [{"verdict": verdict, **_named(function)} for function in functions]
        return {
            "one_kind_of_build": document.is_one_kind_of_build,
            "identical": document.count("identical"),
            "same": document.count("same"),
            "changed": document.count("changed"),
            "removed": len(document.removed),
            "added": len(document.added),
            "total": len(items),
            "functions": items[offset : offset + _most(limit)],
            "warnings": document.warnings,
        }

    def library_content(self) -> Answer:
        stats = self._opened().stats()
        counts = ("architectures", "compilers", "builds", "tags", "top_binaries")
        first = {name: dict(list(stats[name].items())[:MOST_ITEMS]) for name in counts}
        return {
            "functions": stats["entries"],
            "binaries": stats["binaries"],
            "model": stats["model"],
            "warnings": processor_warnings(self._opened().model, stats["architectures"]),
            **{name: _encodable(values) for name, values in first.items()},
        }

    def _opened(self) -> Library:
        if self._library is None:
            raise ConfigError(
                "no library is open; whoever started this server can name one with --library"
            )
        return self._library

    def _options(self, top: int, min_probability: float) -> SearchOptions:
        has_matcher = self._opened().model.matcher is not None
        return SearchOptions(_most(top), RERANK if has_matcher else 0, None, min_probability)

    def _function(self, text: str) -> Function:
        target = self._folders.target(text)
        if target.function is None:
            raise ConfigError(f"name one function: {text}:FUNCTION or {text}:0x1234")
        return read_function(target, limits=self._limits)

    def _functions(
        self, target: Target, *, with_text: bool = False, with_evidence: bool = True
    ) -> Iterator[Function]:
        """All functions of a file, within the budgets of the server."""
        if target.function is not None:
            raise ConfigError(f"name a file, not a function of it: {target.binary}")
        most = self._server_limits.diff_functions
        functions = read_functions(
            target, with_text=with_text, with_evidence=with_evidence, limits=self._limits
        )
        for number, function in enumerate(functions):
            if number == most:
                raise ConfigError(f"{target.binary} has more than {most:,} functions; name one")
            yield function


def _most(limit: int) -> int:
    return max(1, min(limit, MOST_ITEMS))


def _named(function: FunctionRef) -> Answer:
    return {
        "function": encodable(function.shown),
        "address": address_text(function.address),
        "blocks": function.blocks,
        "binary": encodable(function.binary),
    }


def _line(function: Function) -> Answer:
    return {
        "function": encodable(function.shown),
        "address": address_text(function.address),
        "blocks": len(function.blocks),
        "bytes": function.size,
    }


def _result(result: FunctionResult) -> Answer:
    return {"query": _named(result.query), "hits": [_hit(hit) for hit in result.hits]}


def _hit(hit: Hit) -> Answer:
    return _named(hit) | {
        "probability": hit.probability,
        "architecture": hit.architecture,
        "build": encodable(hit.build),
        "tags": _encodable(hit.tags),
        "both_say": words_line(hit.shared, MOST_WORDS),
        "note": hit.note,
    }


def _pair(item: FunctionPair) -> Answer:
    answer = {
        "verdict": item.verdict,
        "probability": item.probability,
        "similarity": item.similarity,
        "found_by": item.found_by,
        "what": encodable(changes_text(item)),
    }
    return answer | {"left": _named(item.left), "right": _named(item.right)}


def _encodable(values: Any) -> dict[str, Any]:
    return {
        encodable(str(key)): encodable(value) if isinstance(value, str) else value
        for key, value in values.items()
    }
