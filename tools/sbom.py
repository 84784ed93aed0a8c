"""A bill of materials of graphkin itself: what an installation runs, as CycloneDX 1.6.

    python tools/sbom.py [-o graphkin.cdx.json]

It lists the packages that are installed here and that graphkin needs without extras, each with its
version, its licence and what it needs in turn, and the code of others that graphkin carries.
"""

from __future__ import annotations

import argparse
import json
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
VENDORED = ROOT / "src/graphkin/web/static/vendor"
VERSION = re.compile(r"\d+(?:\.\d+)+")
LICENCE = re.compile(r"^Licence: (\S+)", re.MULTILINE)
LONGEST_LICENCE = 64
"""Some packages put the whole text where its name belongs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", "-o", type=Path, default=Path("graphkin.cdx.json"))
    options = parser.parse_args()
    options.output.write_text(json.dumps(bill(), indent=1) + "\n", encoding="utf-8")


def bill() -> dict[str, Any]:
    """The document, ready for JSON."""
    needs = installed("graphkin")
    components = {name: _package(distribution(name)) for name in needs}
    subject = components.pop("graphkin")
    carried = [_carried(folder) for folder in sorted(VENDORED.iterdir())]
    references = [item["bom-ref"] for item in carried]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**subject, "type": "application"}},
        "components": [*components.values(), *carried],
        "dependencies": [
            {
                "ref": _reference(name),
                "dependsOn": [_reference(other) for other in others]
                + (references if name == "graphkin" else []),
            }
            for name, others in needs.items()
        ],
    }


def installed(root: str) -> dict[str, list[str]]:
    """What each package needs that is installed, from one package on, without extras."""
    needs: dict[str, list[str]] = {}
    todo = [root]
    while todo:
        name = todo.pop()
        if name in needs:
            continue
        found = sorted({other for other in _required(name) if _is_installed(other)})
        needs[name] = found
        todo += found
    return dict(sorted(needs.items()))


def _required(name: str) -> list[str]:
    requirements = map(Requirement, distribution(name).requires or [])
    wanted = (item for item in requirements if item.marker is None or item.marker.evaluate())
    return [canonicalize_name(item.name) for item in wanted]


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _reference(name: str) -> str:
    return f"pkg:pypi/{name}@{distribution(name).version}"


def _package(package: Distribution) -> dict[str, Any]:
    name = canonicalize_name(package.metadata["Name"])
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _reference(name),
        "name": name,
        "version": package.version,
        "purl": _reference(name),
    }
    fields = package.metadata.json
    names = [name for name in _licences(fields) if len(name) <= LONGEST_LICENCE]
    if fields.get("license_expression"):
        component["licenses"] = [{"expression": fields["license_expression"]}]
    elif names:
        component["licenses"] = [{"license": {"name": names[0]}}]
    return component


def _licences(fields: dict[str, Any]) -> list[str]:
    """What a package says of its licence in words, the most exact first."""
    told = [fields.get("license")]
    classes = (text.split(" :: ") for text in fields.get("classifier", ()))
    told += [parts[-1] for parts in classes if parts[0] == "License"]
    return [name for name in told if name]


def _carried(folder: Path) -> dict[str, Any]:
    """Code of others that lies in the repository; its README says which version and licence."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    version, licence = VERSION.search(text), LICENCE.search(text)
    assert version is not None, f"{folder.name}/README.md says no version"
    assert licence is not None, f"{folder.name}/README.md says no licence"
    reference = f"pkg:npm/{folder.name}@{version[0]}"
    return {
        "type": "library",
        "bom-ref": reference,
        "name": folder.name,
        "version": version[0],
        "purl": reference,
        "licenses": [{"expression": licence[1]}],
    }


if __name__ == "__main__":
    main()
