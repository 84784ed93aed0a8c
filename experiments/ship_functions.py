"""Puts trained models of functions into the package, with ranking and card.

    python experiments/ship_functions.py CORPUS --embedder RUN --matcher RUN --projects NAME,... \
        [--output FOLDER] [--results FILE]

The codes are fitted anew to the vectors (``fit_codes.py``), and the ranking on projects that
neither model was trained on (``fit_ranking.py``). Of the words whose rarity the embedder knows,
only the most frequent are kept: the others are nearly as rare as one that nobody has met. With
``--results``, what ``unseen_projects.py --json`` measured with the shipped model, only the card is
written anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fit_codes import with_fitted_codes
from fit_ranking import QUERIES, fit, searches_of
from numpy.typing import NDArray
from unseen_projects import table

from graphkin._support.files import write_atomically
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.graphs.words import kinds_of
from graphkin.library.models import RANKING_FILE, SearchModel
from graphkin.library.ranking import Ranking
from graphkin.models import GraphEmbedder, GraphMatcher
from graphkin.models.saving import CARD_FILE, PARTS, SHIPPED, WEIGHTS_FILE
from graphkin.models.words import WordBag

KNOWN_WORDS = 11_000
BUFFERS = ("hashes", "rarity", "rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", help="what graphkin extract --evidence --min-blocks 1 wrote")
    parser.add_argument("--embedder", type=Path, required=True)
    parser.add_argument("--matcher", type=Path, required=True)
    parser.add_argument("--projects", required=True, help="to fit the ranking on, with commas")
    parser.add_argument("--output", type=Path, default=SHIPPED / "functions")
    parser.add_argument("--results", type=Path, help="write the card with these results, no more")
    options = parser.parse_args()
    projects = tuple(options.projects.split(","))
    corpus = FunctionCorpus.open(options.corpus)
    if options.results is None:
        ship(corpus, options.embedder, options.matcher, projects, options.output)
    results = {} if options.results is None else json.loads(options.results.read_text())
    text = card(options.output, results)
    write_atomically(options.output / CARD_FILE, text.encode())


def ship(
    corpus: FunctionCorpus, embedder: Path, matcher: Path, projects: tuple[str, ...], output: Path
) -> None:
    """Writes embedder, matcher and ranking into a folder."""
    small = with_fewer_words(GraphEmbedder.from_pretrained(embedder), KNOWN_WORDS)
    small = with_fitted_codes(small, str(corpus.path))
    late = GraphMatcher.from_pretrained(matcher)
    processors = sorted({binary.architecture for binary in corpus.binaries})
    for model in (small, late):
        record = model.trained_on or {}
        task = {**record.get("task", {}), "processors": processors}
        model.trained_on = {**record, "task": task}
        model.save_pretrained(output / PARTS[type(model).__name__])
    (output / RANKING_FILE).unlink(missing_ok=True)
    model = SearchModel.load(output)
    searches = searches_of(str(corpus.path), model, projects, QUERIES)
    write_atomically(output / RANKING_FILE, fit(searches).to_json().encode() + b"\n")


def with_fewer_words(embedder: GraphEmbedder, known: int) -> GraphEmbedder:
    """The same embedder, which knows how rare fewer words are: of the most frequent, those of kinds
    that each bag reads."""
    tensors = dict(embedder.state_dict())
    chosen = {bag: _words_read(embedder, bag, known) for bag in ("words", "offsets")}
    size = max(is_read.sum() for _, is_read in chosen.values())
    for bag, (frequent, is_read) in chosen.items():
        # Both bags are of one size: what is left is filled with words that a bag does not read.
        rows = np.sort(np.concatenate([frequent[is_read], frequent[~is_read]])[:size])
        for name in BUFFERS:
            tensors[f"{bag}.{name}"] = tensors[f"{bag}.{name}"][torch.from_numpy(rows)]
    smaller = GraphEmbedder(replace(embedder.config, words_known=int(size)))
    smaller.load_tensors(tensors, "the embedder")
    smaller.vocabulary, smaller.trained_on = embedder.vocabulary, embedder.trained_on
    return smaller.eval()


def _words_read(
    embedder: GraphEmbedder, bag: str, known: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(K,) the rows of the most frequent words of a bag, and whether it reads their kinds."""
    words: WordBag = getattr(embedder, bag)
    rows = words.rarity.argsort(stable=True)[:known].numpy()
    kinds = kinds_of(words.hashes.numpy().view(np.uint64)[rows])
    return rows, words.is_read.numpy()[kinds]


def card(output: Path, results: dict[str, Any]) -> str:
    """The model card of what is in a folder."""
    hashes = {
        part: hashlib.sha256((output / part / WEIGHTS_FILE).read_bytes()).hexdigest()
        for part in PARTS.values()
    }
    embedder = GraphEmbedder.from_pretrained(output / "embedder")
    matcher = GraphMatcher.from_pretrained(output / "matcher")
    about = [model.trained_on or {} for model in (embedder, matcher)]
    steps = [record.get("training", {}).get("steps", 0) for record in about]
    task = about[0].get("task", {})
    held_out = '", "'.join(task.get("validation", ()))
    fitted_on = Ranking.from_json((output / RANKING_FILE).read_bytes()).fitted_on
    projects = fitted_on["projects"]
    scores = table(results) if results else "Not measured yet."
    counts = [cell["queries"] for row in results.values() for cell in row.values()]
    queries = f"{max(counts):,} queries a direction at most. " if counts else ""
    return f"""\
# functions

An embedder, a matcher and a ranking for functions of binaries: control-flow graphs whose nodes are
basic blocks with the operations that they do and with what they say, their strings, imports and
constants. Is this the same function, whatever compiler, level and processor made it?

Trained on code for {", ".join(task.get("processors", ()))}.

## Command

```sh
graphkin build --list experiments/projects.toml -o projects
graphkin extract --evidence --min-blocks 1 projects/* -o projects.graphs
graphkin train projects --corpus projects.graphs --kind gnn --recipe strong --steps {steps[0]} \\
    --set 'task.validation=["{held_out}"]' --output runs/embedder
graphkin train projects --corpus projects.graphs --kind late --recipe strong --steps {steps[1]} \\
    --set 'task.validation=["{held_out}"]' --start-from runs/embedder --output runs/matcher
python experiments/ship_functions.py projects.graphs --embedder runs/embedder \\
    --matcher runs/matcher --projects {",".join(projects)}
```

The last command fits the ranking as well; `experiments/fit_ranking.py` does that alone.

## Seed

0, one run of each.

## Data

{task.get("projects", 0)} projects; SHA-256 of the corpus: `{task.get("corpus", "")}`. The
ranking was fitted on {fitted_on["queries"]:,} queries of {", ".join(projects)}, which were not
trained on; SHA-256 of that corpus: `{fitted_on["corpus"]}`. SHA-256 of the weights:
embedder `{hashes["embedder"]}`,
matcher `{hashes["matcher"]}`.

## Scores

Functions of the test projects in one pool of all of them. {queries}See
`experiments/unseen_projects.py`. "In files" knows callers, callees and neighbours.
{scores}

## Limits

C and a little C++ by gcc 12 and clang 14. It does not take functions of RISC-V and PowerPC, nor
what SMDA and BinExport files tell, because these say nothing of operations. Functions of few blocks
that say nothing are told apart by little; their probabilities say so.
"""


if __name__ == "__main__":
    main()
