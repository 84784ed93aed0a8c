"""What pip installed is what hashes.txt says, and all that is pinned is in it."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.paths import REPOSITORY
from tests.scripts import script

GOOD, OTHER = "0" * 64, "1" * 64
INDEX = "https://index.example/files/"


@pytest.fixture(scope="module")
def hashes() -> ModuleType:
    return script("tools/wheel_hashes.py")


def report(folder: Path, *packages: dict[str, Any]) -> Path:
    """A report as ``pip install --report`` writes it."""
    file = folder / "report.json"
    file.write_text(json.dumps({"version": "1", "install": packages}))
    return file


def installed(name: str, url: str, digest: str | None) -> dict[str, Any]:
    archive = {} if digest is None else {"archive_info": {"hashes": {"sha256": digest}}}
    return {"metadata": {"name": name, "version": "1.0"}, "download_info": {"url": url, **archive}}


def test_every_pin_has_hashes(hashes: ModuleType) -> None:
    known = hashes.known(REPOSITORY / "hashes.txt")
    assert set(known) == {f"{name}=={version}" for name, version in hashes.pins().items()}
    assert all(len(digest) == 64 for digests in known.values() for digest in digests)


def test_other_files_are_named(hashes: ModuleType, tmp_path: Path) -> None:
    known = {"some-package==1.0": {GOOD}}
    packages = [
        installed("Some.Package", f"{INDEX}a.whl", GOOD),
        installed("some_package", f"{INDEX}b.whl", OTHER),
        installed("some-package", f"{INDEX}c.whl", None),
        installed("unknown", f"{INDEX}d.whl", GOOD),
        installed("graphkin", "file:///here", None),
    ]
    assert list(hashes.problems(report(tmp_path, *packages), known)) == [
        f"some-package==1.0: {OTHER}",
        "some-package==1.0: no hash",
        f"unknown==1.0: {GOOD}",
    ]


@pytest.mark.parametrize(
    ("name", "is_wanted"),
    [
        ("a_b-1.0-py3-none-any.whl", True),
        ("a_b-1.0-py2.py3-none-any.whl", True),
        ("a_b-1.0-cp311-cp311-manylinux_2_28_x86_64.whl", True),
        ("a_b-1.0-cp39-abi3-win_amd64.whl", True),
        ("a_b-1.0-1-cp311-cp311-macosx_11_0_arm64.whl", True),
        ("a_b-1.0-cp310-cp310-manylinux_2_28_x86_64.whl", False),
        ("a_b-1.0-cp311-cp311-musllinux_1_2_x86_64.whl", False),
        ("a_b-1.0.1-py3-none-any.whl", False),
        ("a_b-1.0.tar.gz", False),
    ],
)
def test_files_of_a_version(hashes: ModuleType, name: str, is_wanted: bool) -> None:
    assert hashes._is_wanted(name, "1.0") is is_wanted
