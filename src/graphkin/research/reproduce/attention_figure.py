"""The attention figures: what a matcher sees in pairs of which the right answer is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from graphkin.graphs import Graph
from graphkin.graphs.converters.from_networkx import to_networkx
from graphkin.models import AttentionMaps, GraphMatcher
from graphkin.models.saving import SHIPPED
from graphkin.research.reproduce.measure import digest_of
from graphkin.research.reproduce.results import Measurement, Result
from graphkin.research.reproduce.table_layout import (
    ATTENTION_STEPS,
    CHAINS,
    DISTANCE1,
    DISTANCE2,
    ISOMORPHIC,
)
from graphkin.research.tasks.edits import EditTask
from graphkin.results.drawing.attention import plot_attention

UNROLLED = 9
"""Propagation steps; the model was trained with fewer, and shares its parameters."""
CHAIN_NODES = 9
RANDOM = EditTask(nodes=(10, 10), p=(0.3, 0.3), evaluation_size=1)
SEED = 0
SHIPPED_NAME = "edits"
DIGITS = 4


@dataclass(frozen=True, eq=False)
class Case:
    """Two graphs, and which nodes of them belong together."""

    name: str
    left: Graph
    right: Graph
    partners: NDArray[np.bool_]
    """(n1, n2) whether a node of the second graph is where the node of the first went; or where
    one that is symmetric to it went."""


def cases() -> list[Case]:
    """The pairs of the figures."""
    rng = np.random.default_rng(SEED)
    chain = Graph(CHAIN_NODES, [(node, node + 1) for node in range(CHAIN_NODES - 1)])
    graph = RANDOM.evaluation_set("test").pairs[0][0]
    edits = {ISOMORPHIC: 0, DISTANCE1: 1, DISTANCE2: 2}
    return [
        _case(CHAINS, chain, 0, rng),
        *(_case(name, graph, count, rng) for name, count in edits.items()),
    ]


def _case(name: str, graph: Graph, edits: int, rng: Generator) -> Case:
    order = rng.permutation(graph.num_nodes)
    edges = _substituted(graph, edits, rng)
    right = Graph(graph.num_nodes, order[edges])
    partners = _symmetric(graph)[:, np.argsort(order)]
    return Case(name, graph, right, partners)


def _substituted(graph: Graph, edits: int, rng: Generator) -> NDArray[np.int64]:
    """(M, 2) edges, of which some have been replaced by others that the graph does not have."""
    every: NDArray[np.int64] = np.column_stack(np.triu_indices(graph.num_nodes, 1))
    present = {tuple(sorted(edge)) for edge in graph.edges.tolist()}
    is_edge = np.array([tuple(pair) in present for pair in every.tolist()])
    gone, new = (
        rng.choice(np.flatnonzero(is_edge == state), size=edits, replace=False)
        for state in (True, False)
    )
    is_edge[gone], is_edge[new] = False, True
    kept: NDArray[np.int64] = every[is_edge]
    return kept


def _symmetric(graph: Graph) -> NDArray[np.bool_]:
    """(n, n) which nodes a symmetry of the graph takes to which."""
    from networkx.algorithms.isomorphism import GraphMatcher as Isomorphism

    plain = to_networkx(graph)
    symmetric = np.zeros((graph.num_nodes, graph.num_nodes), dtype=np.bool_)
    for symmetry in Isomorphism(plain, plain).isomorphisms_iter():
        symmetric[list(symmetry), list(symmetry.values())] = True
    return symmetric


def measure_attention(
    matcher: GraphMatcher,
    origin: str,
    command: str,
    versions: dict[str, str],
) -> Result:
    """The attention of a matcher in every case, as a result that pictures can be drawn from."""
    documents: list[dict[str, Any]] = []
    cells = []
    for case in cases():
        maps = matcher.explain(case.left, case.right, steps=UNROLLED)
        documents.append(_document(case, maps))
        data = digest_of((case.left, case.right))
        for steps in ATTENTION_STEPS:
            metric, value = f"attention_after_{steps}", _on_partners(case, maps, steps)
            cells.append(Measurement("attention", case.name, "gmn", metric, value, data))
    return Result(
        name="attention",
        group="attention",
        variant="ours",
        seed=0,
        command=command,
        cells=tuple(cells),
        config={"model": matcher.config.to_dict(), "origin": {"weights": origin}},
        versions=versions,
        cases=documents,
    )


def _on_partners(case: Case, maps: AttentionMaps, steps: int) -> float:
    """Mean over all nodes of the attention that they pay to their partners."""
    left_to_right = (maps.left_to_right[steps] * case.partners).sum(axis=1)
    right_to_left = (maps.right_to_left[steps] * case.partners.T).sum(axis=1)
    return float(np.concatenate([left_to_right, right_to_left]).mean())


def find_matcher(run: Path) -> tuple[GraphMatcher, str] | None:
    """A matcher of edit distance that can be unrolled, of a run or the one that ships; its name."""
    shipped = SHIPPED / SHIPPED_NAME / "matcher"
    for folder, origin in ((run / "model", run.name), (shipped, f"shipped model {SHIPPED_NAME}")):
        if folder.is_dir():
            matcher = GraphMatcher.from_pretrained(folder)
            if matcher.config.shared:
                return matcher, origin
    return None


def draw_cases(result: Result, folder: Path, warning: str = "") -> list[Path]:
    """A picture of each case, by the steps of propagation."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for case in result.cases or ():
        left, right = (
            Graph(case[side]["nodes"], case[side]["edges"]) for side in ("left", "right")
        )
        sides = ("left_to_right", "right_to_left")
        to_right, to_left = (
            [np.array(step, dtype=np.float32) for step in case[side]] for side in sides
        )
        files.append(folder / f"attention-{case['name'].replace(' ', '-')}.png")
        maps = AttentionMaps(to_right, to_left, case["score"])
        title = f"{case['name']}: the opacity of a green line is the weight of attention"
        title += f"\n{warning}" if warning else ""
        plot_attention(left, right, maps, files[-1], columns=2, relative=False, title=title)
    return files


def _document(case: Case, maps: AttentionMaps) -> dict[str, Any]:
    sides = {"left": case.left, "right": case.right}
    graphs = {
        side: {"nodes": graph.num_nodes, "edges": graph.edges.tolist()}
        for side, graph in sides.items()
    }
    weights = {
        "left_to_right": [
            np.round(step.astype(float), DIGITS).tolist() for step in maps.left_to_right
        ],
        "right_to_left": [
            np.round(step.astype(float), DIGITS).tolist() for step in maps.right_to_left
        ],
    }
    return {"name": case.name, **graphs, "score": maps.score, **weights}
