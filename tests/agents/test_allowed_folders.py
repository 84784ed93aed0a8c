"""Agents read files inside the folders that a person named, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin.agents.allowed_folders import AllowedFolders
from graphkin.errors import ConfigError


@pytest.fixture
def folders(tmp_path: Path) -> AllowedFolders:
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "deep" / "a.so").write_bytes(b"x")
    (tmp_path / "secret.so").write_bytes(b"x")
    (tmp_path / "inside-too.so").write_bytes(b"x")
    (inside / "link.so").symlink_to(tmp_path / "secret.so")
    (inside / "good.so").symlink_to(inside / "deep" / "a.so")
    return AllowedFolders([inside])


def test_files_inside(folders: AllowedFolders) -> None:
    home = folders.folders[0]
    path = str(home / "deep" / "a.so")
    for text in ("deep/a.so", path, "deep/../deep/a.so", "good.so"):
        assert folders.target(text).path == path
    target = folders.target("deep/a.so:main")
    assert (target.path, target.function) == (path, "main")
    assert folders.target(f"{path}(x.o):0x10").member == "x.o"
    assert folders.files(10) == ([path], True)
    assert folders.files(0) == ([], False)


@pytest.mark.parametrize(
    "text",
    [
        "../secret.so",
        "deep/../../secret.so:main",
        "link.so",
        "link.so:main",
        "../inside-too.so",
        "/etc/passwd",
        "/etc/passwd:root",
        "deep",
        "",
        "a\0b",
        "nothing.so",
    ],
)
def test_what_lies_outside_is_not_there(folders: AllowedFolders, text: str) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        folders.target(text)


def test_folders_must_be_folders(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        AllowedFolders([tmp_path / "absent"])
    with pytest.raises(ConfigError, match="at least one folder"):
        AllowedFolders([])
