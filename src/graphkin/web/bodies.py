"""Results of graphkin as the API's documents: names lose what no JSON reader takes."""

from __future__ import annotations

from typing import Any

from graphkin.binaries.edges import edge_kinds
from graphkin.binaries.function import Function
from graphkin.library.records import Filter, Stored
from graphkin.library.scan import Comparison
from graphkin.results.document import Hit
from graphkin.results.json_lines import finite
from graphkin.results.text import address_text, encodable
from graphkin.web import schema as api
from graphkin.web.reading import UploadedFunction, cut
from graphkin.web.references import Named
from graphkin.web.uploads import Upload


def binary_body(upload: Upload) -> api.Binary:
    facts = upload.facts
    return api.Binary(
        id=upload.id,
        name=upload.name,
        bytes=upload.bytes,
        architecture=facts.architecture,
        format=facts.format,
        compiler=_text(facts.compiler),
        functions=upload.count,
        skipped=facts.skipped,
        skipped_reasons=[encodable(reason) for reason in facts.reasons],
    )


def row_body(number: int, one: UploadedFunction) -> dict[str, Any]:
    """A row of :class:`api.FunctionRow`; there may be many thousands, so they are not checked."""
    return {
        "number": number,
        "name": encodable(one.name),
        "address": f"{one.address:#x}",
        "size": one.size,
        "blocks": one.blocks,
        "edges": one.edges,
        "member": _text(one.member),
        "unit": _text(one.unit),
    }


def function_body(reference: str, function: Function, is_whole: bool) -> api.FunctionBody:
    return api.FunctionBody(
        reference=reference,
        name=encodable(function.name),
        binary=encodable(function.binary),
        address=f"{function.address:#x}",
        size=function.size,
        architecture=function.architecture,
        compiler=_text(function.compiler),
        text="disassembly" if is_whole else "mnemonics",
        blocks=[
            api.BlockBody(
                address=f"{block.address:#x}",
                instructions=[encodable(one) for one in block.instructions or block.mnemonics],
            )
            for block in function.blocks
        ],
        edges=[
            api.EdgeBody(source=source, target=target, kind=kind)
            for (source, target), kind in zip(function.edges, edge_kinds(function), strict=True)
        ],
    )


def query_body(query: Named) -> api.QueryBody:
    return api.QueryBody(
        reference=query.reference,
        function=encodable(query.function),
        binary=encodable(query.binary),
        address=address_text(query.address) or None,
        blocks=query.graph.num_nodes,
    )


def hit_body(hit: Hit, rank: int) -> api.HitBody:
    entry = hit.entry
    return api.HitBody(
        rank=rank,
        rank_before=hit.rank_before,
        probability=finite(hit.probability),
        score=finite(hit.score),
        distance=hit.distance,
        function=cut(encodable(entry.function)),
        binary=encodable(entry.binary),
        address=address_text(entry.address) or None,
        blocks=hit.nodes,
        architecture=encodable(entry.architecture),
        compiler=encodable(entry.compiler),
        build=encodable(entry.build),
        tags=_tags(entry.tags),
        reference=f"library:{hit.id}",
        matched_share=None if hit.evidence is None else finite(hit.evidence.matched_share),
    )


def comparison_body(left: str, right: str, found: Comparison) -> api.ComparisonBody:
    return api.ComparisonBody(
        left=_side_body(left, found.left),
        right=_side_body(right, found.right),
        distance=finite(found.distance),
        score=finite(found.score),
        probability=finite(found.probability),
        matched_share=finite(found.evidence.matched_share),
        pairs=[(pair.left, pair.right, pair.weight) for pair in found.evidence.pairs],
    )


def _side_body(reference: str, function: Function) -> api.SideBody:
    return api.SideBody(
        reference=reference,
        binary=encodable(function.binary),
        function=encodable(function.name),
        address=address_text(function.address),
        blocks=len(function.blocks),
    )


def stored_body(stored: Stored) -> api.LibraryFunction:
    entry = stored.entry
    return api.LibraryFunction(
        reference=f"library:{stored.id}",
        id=stored.id,
        function=cut(encodable(entry.function)),
        binary=encodable(entry.binary),
        address=address_text(entry.address) or None,
        size=entry.size,
        blocks=stored.nodes,
        architecture=encodable(entry.architecture),
        compiler=encodable(entry.compiler),
        build=encodable(entry.build),
        tags=_tags(entry.tags),
    )


def filter_of(where: api.Where) -> Filter:
    """The part of a library that a request asks for; an empty text is no condition."""
    conditions = where.model_dump()
    texts = {name: value or None for name, value in conditions.items() if name in TEXTS}
    return Filter(**{**conditions, **texts})


TEXTS = ("function", "binary", "architecture", "compiler", "build")


def _text(value: str | None) -> str | None:
    return None if value is None else encodable(value)


def _tags(tags: Any) -> dict[str, str]:
    return {encodable(key): encodable(value) for key, value in tags.items()}
