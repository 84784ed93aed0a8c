"""Molecules as SMILES, read by RDKit: atoms are nodes, bonds are edges, both with labels.

Files end in ``.smi`` or ``.smiles`` and have a molecule in each line, with a name behind a space
where it has one.
"""

from __future__ import annotations

from typing import Any

from graphkin._support.files import PathLike, read_file
from graphkin.errors import FormatError, GraphError, MissingDependencyError
from graphkin.graphs.converters.named import NamedGraph
from graphkin.graphs.graph import Graph


def from_smiles(text: str, *, hydrogens: bool = False) -> Graph:
    """The graph of one molecule.

    Nodes are labelled by element, with charge where there is one (``N+``); edges by bond:
    ``single``, ``double``, ``triple``, ``aromatic``.

    Args:
        text: SMILES.
        hydrogens: whether hydrogens are nodes as well.

    Raises:
        GraphError: RDKit cannot read it.
        MissingDependencyError: RDKit is not installed.
    """
    chem = _rdkit()
    molecule = chem.MolFromSmiles(text)
    if molecule is None or not molecule.GetNumAtoms():
        raise GraphError(f"{text!r} is not a molecule in SMILES that RDKit can read")
    if hydrogens:
        molecule = chem.AddHs(molecule)
    atoms = [_atom(atom) for atom in molecule.GetAtoms()]
    bonds = list(molecule.GetBonds())
    return Graph(
        len(atoms),
        [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds],
        node_labels=atoms,
        edge_labels=[str(bond.GetBondType()).lower() for bond in bonds],
    )


def read_smiles(path: PathLike) -> list[NamedGraph]:
    """The molecules of a file; one without a name is called by its SMILES."""
    try:
        lines = read_file(path).decode().splitlines()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8 text: {error}; re-encode it") from error
    graphs = []
    for number, line in enumerate(lines, start=1):
        text, _, name = line.strip().partition(" ")
        if not text:
            continue
        try:
            graphs.append(NamedGraph(name.strip() or text, from_smiles(text)))
        except GraphError as error:
            raise FormatError(f"{path}, line {number}: {error}") from error
    return graphs


def _atom(atom: Any) -> str:
    charge = atom.GetFormalCharge()
    sign = "+" if charge > 0 else "-"
    count = str(abs(charge)) if abs(charge) > 1 else ""
    return f"{atom.GetSymbol()}{count}{sign}" if charge else str(atom.GetSymbol())


def _rdkit() -> Any:
    try:
        from rdkit import Chem, RDLogger
    except ImportError as error:
        raise MissingDependencyError(
            "SMILES are read by RDKit, which is not installed; run: pip install "
            "'graphkin[molecules]'"
        ) from error
    # What is wrong is in the error; RDKit would print it as well.
    RDLogger.DisableLog("rdApp.*")
    return Chem
