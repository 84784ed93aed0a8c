"""Source code: folders, tarballs, and Debian's packages from a repository made on the spot."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from graphkin.binaries.building.debian import as_sources, default_cache, fetch
from graphkin.binaries.building.source_code import open_source
from graphkin.errors import FormatError, MissingDependencyError

CHANGELOG = """tiny (2:{version}-3) unstable; urgency=low

  * Made for a test.

 -- Nobody <nobody@example.org>  Thu, 01 Jan 2026 00:00:00 +0000
"""
CONTROL = """Source: tiny
Maintainer: Nobody <nobody@example.org>

Package: tiny
Architecture: any
Description: made for a test
"""


# --- Folders and tarballs -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("zlib-1.3.1.tar.xz", "1.3.1"),
        ("zlib_1.2.13.dfsg.orig.tar.bz2", "1.2.13.dfsg"),
        ("lib-x86-v2.0.tgz", "2.0"),
        ("sqlite-src-3400100.tar.gz", "3400100"),
        ("code.tar", "local"),
    ],
)
def test_versions_of_tarballs(tmp_path: Path, name: str, version: str) -> None:
    with tarfile.open(tmp_path / name, "w"):
        pass
    assert open_source(tmp_path / name).version == version


def test_hash_of_a_folder_is_that_of_its_content(tmp_path: Path) -> None:
    folder = tmp_path / "code-1.0"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.c").write_text("int a;")
    (folder / "sub" / "b c.c").write_text("int b;")
    (folder / "link").symlink_to("sub")
    first = open_source(folder)
    assert first.version == "1.0"
    assert first.unpack(tmp_path) == folder
    (folder / ".git").mkdir()
    (folder / ".git" / "index").write_text("changes all the time")
    os.utime(folder / "a.c", (0, 0))
    assert open_source(folder).digest == first.digest
    (folder / "link").unlink()
    (folder / "link").symlink_to("a.c")
    relinked = open_source(folder).digest
    assert relinked != first.digest
    (folder / "a.c").rename(folder / "d.c")
    assert open_source(folder).digest not in (first.digest, relinked)


def test_a_tarball_of_several_folders_is_its_own_root(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("src/a.c", "Makefile"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    root = open_source(path).unpack(tmp_path / "work")
    assert sorted(entry.name for entry in root.iterdir()) == ["Makefile", "src"]


def test_a_tarball_cannot_write_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "evil.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("../../evil.txt"), io.BytesIO())
    with pytest.raises(FormatError, match=r"cannot unpack .*evil.tar: .*outside"):
        open_source(path).unpack(tmp_path / "a" / "b")
    assert not (tmp_path / "evil.txt").exists()


def test_absolute_names_and_links_of_a_tarball_stay_inside(tmp_path: Path) -> None:
    path, outside = tmp_path / "evil.tar", tmp_path / "outside"
    outside.mkdir()
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo(f"{outside}/evil.txt"), io.BytesIO())
    root = open_source(path).unpack(tmp_path / "work")
    assert list(outside.iterdir()) == []
    assert [file.name for file in root.rglob("*") if file.is_file()] == ["evil.txt"]
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("link/evil.txt"), io.BytesIO())
    with pytest.raises(FormatError, match=r"cannot unpack .*evil.tar"):
        open_source(path).unpack(tmp_path / "again")
    assert list(outside.iterdir()) == []


def test_what_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"cannot read .*absent: No such file"):
        open_source(tmp_path / "absent")
    text = tmp_path / "text.tar.gz"
    text.write_text("no archive")
    with pytest.raises(FormatError, match=r"cannot unpack .*text.tar.gz: .*; give a folder"):
        open_source(text).unpack(tmp_path)
    (tmp_path / "bad.dsc").write_text("Source: tiny\n")
    with pytest.raises(FormatError, match=r"bad.dsc names no version"):
        open_source(tmp_path / "bad.dsc")


# --- Debian -------------------------------------------------------------------------------


def test_lists_ask_for_sources() -> None:
    fields = "# mirrors\nTypes: deb\nURIs: file:/x\n\nTypes: deb deb-src\nSigned-By: /key.gpg\n"
    turned = "# mirrors\nTypes: deb-src\nURIs: file:/x\n\nTypes: deb-src\nSigned-By: /key.gpg\n"
    assert as_sources(fields, deb822=True) == turned
    lines = "# deb off\ndeb [arch=amd64] file:/x a main\ndeb-src file:/y a\n\ndeb file:/y a\n"
    turned = "deb-src file:/y a\ndeb-src [arch=amd64] file:/x a main\n"
    assert as_sources(lines, deb822=False) == turned


def add_version(repository: Path, version: str) -> None:
    """Puts a source package into a repository, and writes its index."""
    code = repository / "code" / f"tiny-{version}"
    (code / "debian" / "source").mkdir(parents=True)
    (code / "code.c").write_text("int a;\n")
    with tarfile.open(repository / f"tiny_{version}.orig.tar.gz", "w:gz") as archive:
        archive.add(code / "code.c", f"tiny-{version}/code.c")
    (code / "debian" / "control").write_text(CONTROL)
    (code / "debian" / "changelog").write_text(CHANGELOG.format(version=version))
    (code / "debian" / "source" / "format").write_text("3.0 (quilt)\n")
    run = {"cwd": repository, "check": True, "capture_output": True}
    subprocess.run(["dpkg-source", "-b", str(code)], **run)  # type: ignore[call-overload]
    shutil.rmtree(repository / "code")
    index = subprocess.run(["dpkg-scansources", "."], **run)  # type: ignore[call-overload]
    (repository / "Sources").write_bytes(index.stdout)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one package, which apt believes to be the machine's only one."""
    for program in ("apt-get", "dpkg-source", "dpkg-scansources"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = tmp_path / "repository"
    folder.mkdir()
    add_version(folder, "1.5")
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "own.list").write_text(f"deb [trusted=yes] copy:{folder} ./\n")
    settings = tmp_path / "apt.conf"
    settings.write_text(
        f'Dir::Etc::sourcelist "{tmp_path}/absent.list";\nDir::Etc::sourceparts "{parts}";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(settings))
    return folder


def test_debian_source_from_repository_to_code(repository: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    path = fetch("tiny", tmp_path / "my cache", notes.append)
    assert path == tmp_path / "my cache" / "sources" / "tiny_1.5-3.dsc"
    assert notes == [
        "getting the list of Debian's source packages",
        "getting the source of tiny: tiny_1.5-3.dsc",
    ]
    source = open_source(path)
    assert source.version == "1.5"
    work = tmp_path / "work"
    work.mkdir()
    assert (source.unpack(work) / "code.c").read_text() == "int a;\n"


def test_what_is_there_is_not_fetched_again(repository: Path, tmp_path: Path) -> None:
    """Not even looked for, within a day; after that a newer version is found."""
    path = fetch("tiny", tmp_path / "cache")
    add_version(repository, "1.6")
    notes: list[str] = []
    assert fetch("tiny", tmp_path / "cache", notes.append) == path
    assert notes == []
    os.utime(tmp_path / "cache" / "apt" / "fetched", (0, 0))
    assert fetch("tiny", tmp_path / "cache").name == "tiny_1.6-3.dsc"


def test_another_mirror_is_asked_at_once(repository: Path, tmp_path: Path) -> None:
    fetch("tiny", tmp_path / "cache")
    other = tmp_path / "other"
    other.mkdir()
    add_version(other, "1.7")
    (tmp_path / "parts" / "own.list").unlink()
    entry = f"Types: deb\nURIs: copy:{other}\nSuites: ./\nTrusted: yes\n"
    (tmp_path / "parts" / "new.sources").write_text(entry)
    assert fetch("tiny", tmp_path / "cache").name == "tiny_1.7-3.dsc"


def test_without_a_network(repository: Path, tmp_path: Path) -> None:
    """Old indices and files do; with none the error says what else to do."""
    path = fetch("tiny", tmp_path / "cache")
    os.utime(tmp_path / "cache" / "apt" / "fetched", (0, 0))
    shutil.rmtree(repository)
    notes: list[str] = []
    assert fetch("tiny", tmp_path / "cache", notes.append) == path
    assert notes[-1].startswith("using an old list of source packages: ")
    with pytest.raises(FormatError, match=r"cannot get the list of .*; without a network give"):
        fetch("tiny", tmp_path / "other cache")


def test_packages_that_do_not_exist(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"cannot get the source of huge: .*huge"):
        fetch("huge", tmp_path / "cache")


def test_a_download_that_fails(repository: Path, tmp_path: Path) -> None:
    (repository / "tiny_1.5.orig.tar.gz").unlink()
    with pytest.raises(FormatError, match=r"cannot download the source of tiny: \S"):
        fetch("tiny", tmp_path / "cache")


def test_a_new_version_that_the_mirror_lacks(repository: Path, tmp_path: Path) -> None:
    for version in ("1.10", "1.9"):
        add_version(repository, version)
    (repository / "tiny_1.10.orig.tar.gz").unlink()
    notes: list[str] = []
    assert fetch("tiny", tmp_path / "cache", notes.append).name == "tiny_1.9-3.dsc"
    assert notes[-2].endswith("; taking version 2:1.9-3")
    with pytest.raises(FormatError, match="cannot download the source of tiny"):
        fetch("tiny", tmp_path / "cache", version="2:1.10-3")
    assert fetch("tiny", tmp_path / "cache", version="2:1.5-3").name == "tiny_1.5-3.dsc"


def test_a_damaged_source_package(repository: Path, tmp_path: Path) -> None:
    path = fetch("tiny", tmp_path / "cache")
    with open(path.with_name("tiny_1.5.orig.tar.gz"), "r+b") as file:
        file.write(b"damaged")
    with pytest.raises(FormatError, match=r"cannot unpack .*tiny_1.5-3.dsc: \S"):
        open_source(path).unpack(tmp_path)


def test_machines_without_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"apt-get .* not here; .* with --source"):
        fetch("tiny", tmp_path)
    (tmp_path / "x.dsc").write_text("Version: 1.0-1\n")
    with pytest.raises(MissingDependencyError, match="install it with: apt-get install dpkg-dev"):
        open_source(tmp_path / "x.dsc").unpack(tmp_path)


def test_place_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "graphkin"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert default_cache() == Path.home() / ".cache" / "graphkin"
