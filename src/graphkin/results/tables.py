"""Results for people at a terminal: plain text, without colours or other control characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap

from rich.cells import cell_len

from graphkin.binaries.function import Function
from graphkin.results.columns import GAP, LEAST_NAME, WIDTH, Column, table_lines
from graphkin.results.components import component_lines
from graphkin.results.document import (
    Comparison,
    Component,
    Evidence,
    FunctionRef,
    FunctionResult,
    Hit,
    SearchedFile,
)
from graphkin.results.grouping import Counts, count, groups
from graphkin.results.patches import short_verdict
from graphkin.results.shared_words import said_lists
from graphkin.results.text import (
    address_text,
    distance_text,
    number_text,
    plural,
    printable,
    share_text,
    shortened,
)
from graphkin.results.word_text import first_word, titled_lines, words_line

LABEL = "label"
"""The tag with the class of a graph."""
INDENT = "     "
FUNCTION, FILE = 3, 2
"""How functions and files share what room there is."""
INSTRUCTIONS = 3
"""Of a block, in the list of matched ones."""
HALF = 44
"""Columns for the instructions of one side."""


def search_table(result: FunctionResult, *, width: int = WIDTH) -> str:
    """What was found for one function or graph: a row for each hit, and its evidence below it.

    ``before`` is the rank by distance alone, ``blocks`` the share of the query's blocks that have
    a partner; of graphs it is ``nodes``, and ``label`` is the class of the hit.
    """
    head = _sentence(result.query, width)
    if not result.hits:
        return f"{head}\n{GAP}nothing found"
    hits = result.hits
    table = table_lines(
        [
            Column("#", [str(hit.rank) for hit in hits], right=True),
            Column("before", [str(hit.rank_by_distance) for hit in hits], right=True),
            *_measures(hits),
            *_names(hits),
        ],
        width,
    )
    lines = [head, *_verdicts(result, width), table[0]]
    for line, hit in zip(table[1:], hits, strict=True):
        lines += [line, *_details(hit, width)]
    return "\n".join(lines)


def hits_tables(results: Iterable[FunctionResult], files: Sequence[SearchedFile] = ()) -> str:
    """:func:`search_table` of each result with hits; a single one is shown without hits, too."""
    everything = list(results)
    if files and not everything:
        return f"{scan_table(everything, files)}\n"
    shown = [result for result in everything if result.hits or len(everything) == 1]
    return "".join(f"{search_table(result)}\n" for result in shown) or "nothing found\n"


def scan_table(
    results: Iterable[FunctionResult],
    files: Sequence[SearchedFile] = (),
    components: Sequence[Component] = (),
    *,
    width: int = WIDTH,
) -> str:
    """One line for each function that has a hit, with its best one, under the tags of that hit.

    Vulnerabilities come first, then other tags, then what has none; the likeliest on top. Then
    come the components of the files, and a last line counts files and functions.
    """
    everything = list(results)
    counts = count(everything, files)
    names_files = len({result.query.binary for result in everything}) > 1
    lines = []
    for group in groups(everything):
        lines += [shortened(group.title, width)]
        rows = _scan_lines(group.results, width - len(GAP), names_files=names_files)
        lines += [GAP + line for line in rows]
        lines += [""]
    if components:
        lines += [*component_lines(components, width=width), ""]
    what = everything[0].query.kind if everything else "function"
    end = _end(counts, what)
    if counts.files == 1:
        binary = files[0].binary if files else everything[0].query.binary
        subject = shortened(binary, max(width - len(end), LEAST_NAME))
    else:
        subject = plural(counts.files, "file")
    return "\n".join([*lines, subject + end])


def _end(counts: Counts, what: str) -> str:
    """What was looked up, and how much of it has a hit."""
    if counts.functions:
        missing = f", none to look up in {plural(counts.without_functions, 'file')}"
        return (
            f": {plural(counts.functions, what)}, {counts.with_a_hit:,} with a hit"
            f"{missing if counts.without_functions else ''}"
        )
    if not counts.small:
        return ": no function was looked up"
    return f": no function was looked up; too few blocks: {plural(counts.small, 'function')}"


def _scan_lines(results: Sequence[FunctionResult], width: int, *, names_files: bool) -> list[str]:
    """The table of a group; which file a function is in, where there are several.

    ``both say`` is the rarest word that the function and the hit share, and how many there are
    beside it.
    """
    queries = [result.query for result in results]
    best = [result.hits[0] for result in results]
    columns = [
        *(column for column in _measures(best) if column.title != "score"),
        Column(queries[0].kind, [query.shown for query in queries], share=FUNCTION),
        Column("address", [address_text(query.address) for query in queries], right=True),
        Column("is like", [hit.shown for hit in best], share=FUNCTION),
        Column("of", [hit.binary for hit in best], share=FILE, are_paths=True),
    ]
    columns = [column for column in columns if column.title != "address" or any(column.cells)]
    if names_files:
        files = [query.binary for query in queries]
        columns.insert(-2, Column("in", files, share=FILE, are_paths=True))
    if any(hit.shared for hit in best):
        columns.append(Column("both say", [first_word(hit.shared) for hit in best], share=FUNCTION))
    head, *rows = table_lines(columns, width)
    lines = [head]
    for row, result in zip(rows, results, strict=True):
        lines += [row, *_note(result.hits[0], width)]
        lines += _verdicts(result, width)
    return lines


def _verdicts(result: FunctionResult, width: int) -> list[str]:
    """Whether it is repaired, and why: whole sentences, on as many lines as they take."""
    lines = []
    for item in result.patches:
        lines.append(INDENT + printable(short_verdict(item)))
        for reason in item.reasons:
            lines += wrap(
                printable(reason),
                width,
                initial_indent=2 * INDENT,
                subsequent_indent=2 * INDENT + GAP,
                break_on_hyphens=False,
            )
    return lines


def _names(hits: Sequence[Hit]) -> list[Column]:
    """What hits are called, and where they are."""
    name = Column(hits[0].kind, [hit.shown for hit in hits], share=FUNCTION)
    files = [hit.binary for hit in hits]
    if hits[0].kind == "graph":
        label = Column(LABEL, [hit.tags.get(LABEL, "") for hit in hits], share=FILE)
        return [name, *([label] if any(label.cells) else []), _file("file", files)]
    address = Column("address", [address_text(hit.address) for hit in hits], right=True)
    return [name, _file("binary", files), address]


def _file(title: str, files: Sequence[str]) -> Column:
    return Column(title, files, share=FILE, are_paths=True)


def _measures(hits: Sequence[Hit]) -> list[Column]:
    """Probability, value, score, distance and blocks matched, where there are any."""
    columns = [
        Column("prob.", [number_text(hit.probability, 3) for hit in hits], right=True),
        Column("value", [number_text(hit.value, 3) for hit in hits], right=True),
        Column("score", [number_text(hit.score, 2) for hit in hits], right=True),
        Column("dist.", [distance_text(hit.distance) for hit in hits], right=True),
        Column(f"{parts_of(hits[0])}s", [_share(hit.evidence) for hit in hits], right=True),
    ]
    return [column for column in columns if any(column.cells)]


def _share(evidence: Evidence | None) -> str:
    return "" if evidence is None else share_text(evidence.matched_share or 0.0)


def _sentence(query: FunctionRef, width: int) -> str:
    location = f" at {address_text(query.address)}" if query.address is not None else ""
    end = f"{location}, {plural(query.blocks, parts_of(query))}"
    room = max(width - len(" of ") - len(end), 2 * LEAST_NAME)
    function = shortened(query.shown, room // 2)
    return f"{function} of {shortened(query.binary, room - cell_len(function))}{end}"


def _details(hit: Hit, width: int) -> list[str]:
    """A note, tags, what both say and the strongest pairs of blocks, as many as fit on a line."""
    lines = _note(hit, width)
    # The class of a graph has a column.
    shown = {key: hit.tags[key] for key in hit.tags if key != LABEL or hit.kind != "graph"}
    if shown:
        tags = "  ".join(f"{key}={value}" for key, value in sorted(shown.items()))
        lines.append(INDENT + shortened(tags, width - len(INDENT)))
    if hit.shared:
        start = f"{INDENT}both say  "
        lines.append(start + words_line(hit.shared, width - len(start)))
    if hit.evidence is not None and hit.evidence.pairs:
        line = f"{INDENT}{parts_of(hit)} pairs"
        for pair in hit.evidence.pairs:
            more = f"  {pair.left}={pair.right} ({pair.weight:.2f})"
            if len(line) + len(more) > width:
                break
            line += more
        lines.append(line)
    return lines


def _note(hit: Hit, width: int) -> list[str]:
    return [INDENT + shortened(hit.note, width - len(INDENT))] if hit.note else []


def parts_of(reference: FunctionRef) -> str:
    """What it consists of: basic blocks, or nodes."""
    return "node" if reference.kind == "graph" else "block"


def comparison_text(comparison: Comparison, left: Function, right: Function) -> str:
    """What the models say, and the strongest pairs of blocks with how they begin."""
    lines = [
        f"{shortened(side.shown, HALF)} of {shortened(side.binary, HALF)} "
        f"at {address_text(side.address)}, {plural(side.blocks, 'block')}"
        for side in (comparison.left, comparison.right)
    ]
    evidence = comparison.evidence
    probability = number_text(comparison.probability, 3) or "not calibrated"
    note = f", {comparison.note}" if comparison.note else ""
    lines += [
        "",
        f"probability of the same function  {probability}{note}",
        f"score of the matcher              {number_text(comparison.score, 3)}",
        f"distance of the codes             {distance_text(comparison.distance)}",
        f"blocks that have a partner        {share_text(evidence.matched_share or 0.0)}",
    ]
    for title, words in said_lists(comparison):
        lines += ["", title, *(GAP + line for line in titled_lines(words, width=WIDTH - len(GAP)))]
    if evidence.pairs:
        lines += ["", "strongest pairs of blocks"]
    for pair in evidence.pairs:
        beginning = _beginning(left, pair.left)
        lines.append(f"  {pair.weight:.2f}  {beginning:<{HALF}}  {_beginning(right, pair.right)}")
    return "\n".join(line.rstrip() for line in lines)


def _beginning(function: Function, number: int) -> str:
    mnemonics = function.blocks[number].mnemonics
    more = " …" if len(mnemonics) > INSTRUCTIONS else ""
    text = f"{number}: {'; '.join(mnemonics[:INSTRUCTIONS])}{more}"
    return shortened(text, HALF)
