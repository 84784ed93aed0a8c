"""Molecules as SMILES."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from graphkin.errors import FormatError, GraphError, MissingDependencyError
from graphkin.graphs.converters.graph_files import read_graphs
from graphkin.graphs.converters.smiles import from_smiles

HAS_RDKIT = importlib.util.find_spec("rdkit") is not None
needs_rdkit = pytest.mark.skipif(not HAS_RDKIT, reason="RDKit is not installed")


@needs_rdkit
def test_atoms_and_bonds() -> None:
    nitromethane = from_smiles("C[N+](=O)[O-]")
    assert nitromethane.node_labels == ("C", "N+", "O", "O-")
    assert nitromethane.edge_labels == ("single", "double", "single")
    assert set(from_smiles("c1ccccc1").edge_labels or ()) == {"aromatic"}
    assert from_smiles("[Fe+2]").node_labels == ("Fe2+",)
    assert from_smiles("C", hydrogens=True).num_nodes == 5
    with pytest.raises(GraphError, match="'C1' is not a molecule"):
        from_smiles("C1")


@needs_rdkit
def test_files(tmp_path: Path) -> None:
    file = tmp_path / "molecules.smi"
    file.write_text("CCO ethanol\n\nCC\n")
    graphs = read_graphs(file)
    assert [named.name for named in graphs] == ["ethanol", "CC"]
    assert graphs[0].source == str(file)
    file.write_text("CCO\nC1\n")
    with pytest.raises(FormatError, match="line 2: 'C1' is not a molecule"):
        read_graphs(file)


@pytest.mark.skipif(HAS_RDKIT, reason="RDKit is installed")
def test_without_rdkit(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match=r"graphkin\[molecules\]"):
        from_smiles("C")
