"""Fits what tells a vulnerable function from its repaired version, on patches that it makes.

    python experiments/fit_patches.py -o FOLDER [--cache FOLDER]

Every function of some C files loses a check, a part of a condition, a call, or has a comparison or
a constant changed, one of these each: that is the vulnerable version, and the file as it is the
repaired one. Both are built as ``patched.py`` builds its pairs. Of each function every build in
turn is judged by the others, by one of them, and by three. Functions that reach a changed one are
left out: what a compiler puts inside another function would change it twice. Prints the constants
of ``graphkin.library.patch_signals`` and ``graphkin.library.patches``, and what the weights reach
on projects that they were not fitted on.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from patched import COMPILERS, FIXED, FLAGS, VULNERABLE
from sklearn.linear_model import LogisticRegression

from graphkin.binaries.building import open_source
from graphkin.binaries.building.debian import fetch
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import parse_target
from graphkin.graphs import Graph
from graphkin.library.models import SearchModel
from graphkin.library.patch_signals import SIGNALS, KnownVersions, VersionPair
from graphkin.library.patches import CLOSENESS, LARGEST, LEAST_SURE
from graphkin.library.records import KnownFunction, Stored

PACKAGES = (
    "bzip2", "cjson", "keyutils", "libdeflate", "libgsm", "libspng", "libvterm", "libyaml", "lmdb",
    "lz4", "mini-httpd", "mujs", "rtmpdump", "tinycdb", "tinyscheme", "udns", "zopfli",
)  # fmt: skip
UNITS, LINES = 4, (200, 6000)
"""The most files of a package, the longest first, and how long they are."""
MOST_BLOCKS = 150
SMALLEST = 5
"""Blocks of a function that is judged."""
KNOWN = (tuple(COMPILERS), ("gcc-O2",), ("gcc-O2", "clang-O2", "aarch64-gcc-O2"))
"""Builds that a library holds."""
SHARES = {"check": 0.4, "clause": 0.2, "compare": 0.15, "call": 0.15, "constant": 0.1}
BODY = re.compile(
    r"^(?!typedef|struct|enum|union|#)[A-Za-z_][^;{}#=]*?\b([A-Za-z_]\w*)\s*\([^;{}]*?\)[^;{}=]*?"
    r"\{\n(.*?)^\}",
    re.M | re.S,
)
CALL = re.compile(
    r"(?<=[;{}]\n)[ \t]+(?!return|sizeof|if|while|for|switch)\w+\s*\([^;{}#]*?\);$", re.M
)
NUMBER = re.compile(r"(?<![\w.\"'])([1-9]\d{0,5}|0x[0-9a-fA-F]{1,6})(?![\w.\"'])")
LEAVES = re.compile(r"\b(return|goto|break|continue)\b")


class Edit(NamedTuple):
    """A change of a text."""

    kind: str
    start: int
    end: int
    text: str


def edits_of(body: str, draw: random.Random) -> Iterator[Edit]:
    """All changes that can be made to a function."""
    for match in re.finditer(r"\bif\s*\(", body):
        opening = match.end() - 1
        closing = _closing(body, opening)
        inner = closing + len(body[closing:]) - len(body[closing:].lstrip())
        braced = body[inner : inner + 1] == "{"
        end = _closing(body, inner) if braced else body.find(";", inner) + 1
        own, rest = body[match.start() : end], body[end:].lstrip()
        if not closing or not end or "#" in own:
            continue
        is_alone = not rest.startswith("else") and not body[: match.start()].rstrip().endswith(
            "else"
        )
        if is_alone and LEAVES.search(own) and own.count("\n") <= 6:
            yield Edit("check", match.start(), end, ";")
        condition = body[opening:closing]
        clauses = [
            at for at in re.finditer(r"\|\||&&", condition) if _depth(condition, at.start()) == 1
        ]
        if clauses and len({at[0] for at in clauses}) == 1:
            kept = condition[: clauses[-1].start()].rstrip()
            yield Edit("clause", opening, closing, f"{kept})")
        for sign in re.finditer(r"(?<![<>\-=])([<>])(=?)(?![<>=])", condition):
            text = sign[1] + ("" if sign[2] else "=")
            yield Edit("compare", opening + sign.start(), opening + sign.end(), text)
    for call in CALL.finditer(body):
        yield Edit("call", call.start(), call.end(), "    ;")
    for number in NUMBER.finditer(body):
        line = body[body.rfind("\n", 0, number.start()) + 1 : number.start()]
        value = int(number[0], 0)
        if value > 1 and not re.search(r"[\"#]|case|/\*|//|^\s*\*", line):
            text = str(draw.choice([value + 1, 2 * value, max(2, value // 2)]))
            yield Edit("constant", number.start(), number.end(), text)


def _depth(text: str, position: int) -> int:
    return text[:position].count("(") - text[:position].count(")")


def _closing(text: str, opening: int) -> int:
    """Behind the bracket that closes the one at a position, or 0."""
    pair = {"(": "()", "{": "{}"}.get(text[opening : opening + 1], "  ")
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] == pair[0]) - (text[position] == pair[1])
        if depth == 0:
            return position + 1
    return 0


def chosen_edits(text: str, draw: random.Random) -> dict[str, Edit]:
    """One change of each function that calls no other that is changed, directly or not."""
    bodies = {match[1]: match for match in BODY.finditer(text)}
    calls = {name: set(re.findall(r"\b(\w+)\s*\(", own[2])) for name, own in bodies.items()}
    chosen: dict[str, Edit] = {}
    for name, own in bodies.items():
        by_kind = defaultdict(list)
        for edit in edits_of(own[2], draw):
            by_kind[edit.kind].append(edit)
        if not by_kind or own[2].count("\n") < SMALLEST:
            continue
        kinds = sorted(by_kind)
        kind = draw.choices(kinds, [SHARES[item] for item in kinds])[0]
        edit, at = draw.choice(by_kind[kind]), own.start(2)
        chosen[name] = Edit(kind, at + edit.start, at + edit.end, edit.text)
    return {
        name: edit for name, edit in chosen.items() if not _reached(name, calls) & chosen.keys()
    }


def _reached(name: str, calls: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        new = calls.get(waiting.pop(), set()) & calls.keys() - reached
        reached |= new
        waiting += new
    return reached - {name}


def changed_text(text: str, edits: dict[str, Edit]) -> str:
    ordered = sorted(edits.values(), key=lambda edit: edit.start)
    starts = [0, *(edit.end for edit in ordered)]
    parts = [
        text[start : edit.start] + edit.text
        for start, edit in zip(starts[:-1], ordered, strict=True)
    ]
    return "".join(parts) + text[starts[-1] :]


def build_all(output: Path, cache: Path | None) -> None:
    """Builds both versions of all files; what is there is not built again."""
    for package in PACKAGES:
        source = output / "sources" / package
        if not source.exists():
            source.mkdir(parents=True)
            open_source(fetch(package, cache)).unpack(source)
        units = [
            path
            for path in source.rglob("*.c")
            if not re.search("test|example|/doc|/debian/|programs/|fuzz|contrib", str(path))
        ]
        lengths = {path: path.read_bytes().count(b"\n") for path in units}
        units = [path for path in units if LINES[0] <= lengths[path] <= LINES[1]]
        built = 0
        for unit in sorted(units, key=lambda path: (-lengths[path], str(path))):
            built += built < UNITS and build(
                unit, source, output / "builds" / f"{package}-{unit.stem}"
            )


def build(unit: Path, source: Path, output: Path) -> bool:
    """Whether all compilers take both versions of a file."""
    if (output / "functions.json").exists():
        return True
    (root,) = (path for path in source.iterdir() if path.is_dir())
    folders = (unit.parent, root, *(root / name for name in ("include", "inc", "src", "lib")))
    flags = ["-DNO_CRYPTO", *(f"-I{folder}" for folder in folders)]
    text = unit.read_text(errors="replace")
    edits = chosen_edits(text, random.Random(unit.name))
    changed = unit.with_name(f"changed_{unit.name}")
    try:
        for name in list(edits):
            changed.write_text(changed_text(text, {name: edits[name]}))
            if not _compiles(["gcc-12", "-fsyntax-only", *flags, *FLAGS, str(changed)]):
                del edits[name]
        changed.write_text(changed_text(text, edits))
        for version, file in ((FIXED, unit), (VULNERABLE, changed)):
            (output / version).mkdir(parents=True, exist_ok=True)
            for name, compiler in COMPILERS.items():
                target = output / version / f"{name}.so"
                if not _compiles([*compiler, *flags, *FLAGS, str(file), "-o", str(target)]):
                    return False
    finally:
        changed.unlink(missing_ok=True)
    (output / "functions.json").write_text(json.dumps(sorted(edits)))
    return bool(edits)


def _compiles(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Example(NamedTuple):
    """One build of one version of a function."""

    project: str
    is_fixed: bool
    weighed: NDArray[np.float64]
    """(4,) what the signals come to."""


def pairs_of(folder: Path, model: SearchModel) -> Iterator[dict[str, VersionPair]]:
    """The changed functions of a file, each in all builds that show the change."""
    wanted = json.loads((folder / "functions.json").read_text())
    vocabulary = model.embedder.vocabulary
    assert vocabulary is not None
    known: dict[tuple[str, str, str], tuple[Stored, Graph]] = {}
    for version in (VULNERABLE, FIXED):
        for build_name in COMPILERS:
            target = parse_target(str(folder / version / f"{build_name}.so"))
            for function in read_functions(target, with_evidence=True):
                if function.name in wanted and function.blocks:
                    graph = function.to_graph(vocabulary)
                    entry = KnownFunction(function.name, architecture=function.architecture)
                    stored = Stored(0, entry, graph.num_nodes, graph.digest())
                    known[function.name, build_name, version] = stored, graph
    for name in wanted:
        pairs = {}
        for build_name in COMPILERS:
            both = [known.get((name, build_name, version)) for version in (VULNERABLE, FIXED)]
            if both[0] and both[1] and both[0][0].graph_hash != both[1][0].graph_hash:
                pairs[build_name] = VersionPair(both[0][0], both[1][0], both[0][1], both[1][1])
        if all(graph.num_nodes <= MOST_BLOCKS for pair in pairs.values() for graph in pair[2:]):
            yield pairs


def examples(project: str, pairs: dict[str, VersionPair], model: SearchModel) -> Iterator[Example]:
    """Each build as the unknown one, against those that a library may hold."""
    assert model.matcher is not None
    for known_builds in KNOWN:
        for build_name, pair in pairs.items():
            others = [pairs[name] for name in known_builds if name in pairs and name != build_name]
            if not others or max(pair.vulnerable.nodes, pair.fixed.nodes) < SMALLEST:
                continue
            known = KnownVersions(model.matcher, others)
            for graph in pair[2:]:
                signals = known.compared([graph], [pair.architecture])
                closeness = signals.closeness[0]
                shares = np.exp((closeness - closeness.max()) / CLOSENESS)
                weighed = shares @ known.weighed(signals) / shares.sum()
                is_fixed = graph is pair.fixed_graph
                yield Example(project, is_fixed, np.clip(weighed, -LARGEST, LARGEST))


def usual(values: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(4,) mean gaps and variances, of (P, 2, P, 4) signals of each function."""
    both = np.concatenate(
        [own[row, :, column][None] for own in values for row, column in _unequal(len(own))]
    )
    gaps, middles = both[:, 1] - both[:, 0], both.mean(axis=1)
    return gaps.mean(axis=0), middles.var(axis=0) + gaps.var(axis=0) / 4


def _unequal(count: int) -> Iterator[tuple[int, int]]:
    return ((row, column) for row in range(count) for column in range(count) if row != column)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    output = options.output.absolute()
    build_all(output, options.cache)
    model = SearchModel.load("functions")
    assert model.matcher is not None
    rows: list[Example] = []
    values = []
    for folder in sorted((output / "builds").iterdir()):
        if (folder / "functions.json").exists():
            for pairs in pairs_of(folder, model):
                if len(pairs) > 1:
                    rows += examples(folder.name.partition("-")[0], pairs, model)
                    values.append(KnownVersions(model.matcher, list(pairs.values())).values)
    gap, variance = usual(values)
    print("USUAL_GAP", gap.round(3).tolist(), "USUAL_VARIANCE", variance.round(3).tolist())
    features = np.array([row.weighed for row in rows])
    is_fixed = np.array([row.is_fixed for row in rows])
    projects = np.array([row.project for row in rows])
    fit = LogisticRegression(C=10, fit_intercept=False).fit(features, is_fixed)
    print("WEIGHTS", dict(zip(SIGNALS, fit.coef_[0].round(3).tolist(), strict=True)))
    probability = np.zeros(len(rows))
    names = sorted(set(projects))
    for number in range(5):
        is_left_out = np.isin(projects, names[number::5])
        own = LogisticRegression(C=10, fit_intercept=False)
        own.fit(features[~is_left_out], is_fixed[~is_left_out])
        probability[is_left_out] = own.predict_proba(features[is_left_out])[:, 1]
    is_sure = np.maximum(probability, 1 - probability) >= LEAST_SURE
    is_right = (probability > 0.5) == is_fixed
    print(
        f"{len(rows)} functions of projects that were left out: "
        f"{np.mean(is_sure & is_right):.3f} right, {np.mean(is_sure & ~is_right):.3f} wrong"
    )


if __name__ == "__main__":
    main()
