"""Whether a corpus that ``graphkin build --list`` made holds code of projects that are held out.

``build`` leaves out copies by comparing source files. This looks at the results, independently: at
the names in their symbol tables and at the text in their read-only data, against the functions and
the string literals of the held-out projects' sources.

    python experiments/held_out_check.py experiments/projects.toml corpus [--cache FOLDER]

A name or a text that many held-out projects have says nothing about any (``usage``, ``out of
memory``) and is not counted. Printed are, for each project of the corpus, the held-out project with
which it shares most, how many names and texts, which share of its own that is, and examples; the
largest first.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter
from pathlib import Path

from graphkin.binaries.building.debian import default_cache, fetch
from graphkin.binaries.building.projects.cross_compiling import function_names
from graphkin.binaries.building.projects.fingerprints import COMMENT, SUFFIX, fingerprint
from graphkin.binaries.building.projects.package_list import read_package_list
from graphkin.binaries.building.source_code import open_source

LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
SPLIT = re.compile(r"\\.|%[-+ #0-9.*lhzjt]*[a-zA-Z]")
"""Escapes and directives of printf, between which the text is the same in source and result."""
TEXT = re.compile(rb"[\x20-\x7e]{12,}")
MANY = 4
"""Held-out projects; what so many have is not counted. Fewer vendor each other."""
LEAST = 12
"""Characters that a text must have."""


def source_words(name: str, cache: Path) -> dict[str, list[str]]:
    """The functions and the texts of a package's source."""
    control = fetch(name, cache)
    kept = cache / "held-out-words" / f"{control.stem}.json"
    if kept.exists():
        return dict(json.loads(kept.read_text()))
    names: set[str] = set()
    texts: set[str] = set()
    with tempfile.TemporaryDirectory() as work:
        tree = open_source(control).unpack(Path(work))
        for path in tree.rglob("*"):
            if not (path.is_file() and SUFFIX.fullmatch(path.suffix)) or path.is_symlink():
                continue
            text = path.read_bytes().decode("utf-8", "replace")
            names |= fingerprint(text).names
            plain = COMMENT.sub(lambda match: match[1] or " ", text)
            for literal in LITERAL.findall(plain):
                texts.update(part.strip() for part in SPLIT.split(literal))
    words = {"names": sorted(names), "texts": sorted(text for text in texts if len(text) >= LEAST)}
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps(words))
    return words


def result_words(folder: Path) -> dict[str, set[str]]:
    """The functions and the texts of a project's results: of the one with most functions."""
    paths = sorted(folder.glob("*.so"))
    path = max(paths, key=lambda path: len(function_names(path)))
    names = {re.sub(r"\..*", "", name) for name in function_names(path)}
    texts: set[str] = set()
    for text in TEXT.findall(path.read_bytes()):
        texts.update(part.strip() for part in SPLIT.split(text.decode()))
    return {"names": names, "texts": {text for text in texts if len(text) >= LEAST}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("list", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--cache", type=Path, default=default_cache())
    options = parser.parse_args()
    packages = read_package_list(options.list)
    held_out = {name: source_words(name, options.cache) for name in packages.held_out}
    held_out |= {
        name: {"names": functions, "texts": []}
        for name, functions in packages.held_out_names.items()
    }
    own: dict[str, dict[str, set[str]]] = {}
    for kind in ("names", "texts"):
        counts = Counter(word for words in held_out.values() for word in words[kind])
        for name, known in held_out.items():
            own.setdefault(name, {})[kind] = {word for word in known[kind] if counts[word] < MANY}
    rows = []
    for manifest in sorted(options.corpus.glob("*/manifest.json")):
        words = result_words(manifest.parent)
        for kind in ("names", "texts"):
            shared = {name: words[kind] & each[kind] for name, each in own.items()}
            most = max(shared, key=lambda name: len(shared[name]))
            count, total = len(shared[most]), len(words[kind])
            examples = ", ".join(sorted(shared[most], key=len, reverse=True)[:4])
            share = count / total if total else 0.0
            rows.append((share, manifest.parent.name, kind, most, count, total, examples))
    print("share\tproject\tkind\theld out\tshared\tof\texamples")
    for share, project, kind, most, count, total, examples in sorted(rows, reverse=True):
        print(f"{share:.3f}\t{project}\t{kind}\t{most}\t{count}\t{total}\t{examples}")


if __name__ == "__main__":
    main()
