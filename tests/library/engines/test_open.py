"""Which engine a path or a URL leads to, and what is shown of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin.errors import ConfigError
from graphkin.library.engines.milvus.engine import MilvusEngine
from graphkin.library.engines.open import engine_of, exists
from graphkin.library.engines.sqlite.engine import SqliteEngine

URL = "milvus://me:secret@db.example/known_code?graphs-folder=/mnt/graphs"


@pytest.mark.parametrize(
    "path",
    ["library.kin", Path("a/library.kin"), "odd://name", "milvus", "milvus:/x", "a milvus://x"],
)
def test_what_has_no_scheme_is_a_file(path: str | Path) -> None:
    assert engine_of(path) is SqliteEngine


def test_a_url_of_milvus() -> None:
    assert engine_of(URL) is MilvusEngine


def test_whether_a_file_is_there(tmp_path: Path) -> None:
    assert not exists(tmp_path / "library.kin")
    (tmp_path / "library.kin").write_bytes(b"anything")
    assert exists(tmp_path / "library.kin")
    with pytest.raises(ConfigError, match="is a folder; a library is a file"):
        exists(tmp_path)


def test_users_of_a_server_see_neither_folders_nor_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert SqliteEngine.shown_name("/srv/private/library.kin") == "library.kin"
    assert MilvusEngine.shown_name(URL) == "milvus://db.example:19530/known_code"
    assert SqliteEngine.uploads_folder("library.kin") == tmp_path / "library.kin.files"
    assert MilvusEngine.uploads_folder(URL) == tmp_path / "db.example-19530-known_code.files"
    inside = MilvusEngine.uploads_folder("milvus://[fe80::1]:99/known_code")
    assert inside.parent == tmp_path
