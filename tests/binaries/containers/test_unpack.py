"""What comes out of containers of every format, by which names, and what hostile ones can do."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import random
import shutil
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphkin.binaries.containers.budget import Budget
from graphkin.binaries.containers.detect import container_format
from graphkin.binaries.containers.unpack import Absent, Member, clean
from graphkin.binaries.function import Skipped
from tests.binaries.containers.making import (
    CONTAINERS,
    FILES,
    NAMES,
    OBJECT,
    OTHER,
    ar_of,
    contents,
    cpio_of,
    deb_of,
    rpm_of,
    tar_of,
    unpacked,
    zip_of,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "private"


def written(tmp_path: Path, content: bytes, name: str = "container") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("kind", CONTAINERS)
def test_binaries_come_out_of_every_format(kind: str, tmp_path: Path, folder: Path) -> None:
    path = written(tmp_path, CONTAINERS[kind])
    files = contents(path, folder)
    if kind == "ar of tar":
        files = {name.removeprefix("other.tar!"): data for name, data in files.items()}
    assert files == NAMES


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_a_package_of_dpkg(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "x" / "DEBIAN").mkdir(parents=True)
    control = "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: x\n"
    (tmp_path / "x" / "DEBIAN" / "control").write_text(control)
    (tmp_path / "x" / "tool").write_bytes(OBJECT)
    os.symlink("tool", tmp_path / "x" / "link")
    package = tmp_path / "x.deb"
    subprocess.run(["dpkg-deb", "-b", tmp_path / "x", package], check=True, capture_output=True)
    assert contents(package, folder) == {"tool": OBJECT}


@pytest.mark.parametrize(
    ("name", "inner"),
    [("a.so.gz", "a.so"), ("initrd", "content"), ("x.tgz", "x.tar"), ("B.XZ", "content")],
)
def test_a_compressed_file_holds_one(name: str, inner: str, tmp_path: Path, folder: Path) -> None:
    path = written(tmp_path, gzip.compress(OTHER), name)
    if name == "B.XZ":
        inner = "B"  # by its content it is gzip data, whatever its name says
    assert contents(path, folder) == {inner: OTHER}


def test_joined_streams_are_one_content(tmp_path: Path, folder: Path) -> None:
    half = len(OTHER) // 2
    joined = gzip.compress(OTHER[:half]) + gzip.compress(OTHER[half:]) + bytes(512)
    assert contents(written(tmp_path, joined, "x.gz"), folder) == {"x": OTHER}


def test_a_payload_of_an_unknown_format_is_said(tmp_path: Path, folder: Path) -> None:
    path = written(tmp_path, rpm_of(b"LZIQ\1" + bytes(100)))
    reason = "it is an RPM package; its payload begins with b'LZIQ"
    (skipped,) = unpacked(path, folder)
    assert isinstance(skipped, Skipped)
    assert skipped.reason.startswith(reason)


@pytest.mark.parametrize(
    "head",
    [b"]", b"]\0\0\x80\0" + b"text" * 4, b"]\1\2\3\4" + b"\xff" * 8 + bytes(8), b"]" + bytes(40)],
)
def test_a_file_is_not_lzma_by_its_first_letter(head: bytes) -> None:
    assert container_format(head) is None


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
@pytest.mark.parametrize("form", ["bin", "odc", "newc", "crc"])
def test_an_archive_of_cpio(form: str, tmp_path: Path, folder: Path) -> None:
    (tmp_path / "tool").write_bytes(OTHER)
    (tmp_path / "shapes.o").write_bytes(OBJECT)
    command = ["cpio", "--quiet", "-o", "-H", form]
    names = b"shapes.o\ntool\n"
    done = subprocess.run(command, input=names, cwd=tmp_path, capture_output=True, check=True)
    path = written(tmp_path, done.stdout, "x.cpio")
    assert contents(path, folder) == {"shapes.o": OBJECT, "tool": OTHER}


@pytest.mark.parametrize("head", [b"\xc7\x71", b"\xc7\x71" + bytes(50), b"\x71\xc7" + b"ab" * 40])
def test_a_file_is_not_cpio_by_two_bytes(head: bytes) -> None:
    assert container_format(head) is None


def test_archives_behind_an_archive(tmp_path: Path, folder: Path) -> None:
    """The first file system of Linux: one cpio archive, zeros, then a compressed one."""
    image = cpio_of({"first": OBJECT}) + bytes(300) + gzip.compress(cpio_of({"second": OTHER}))
    assert contents(written(tmp_path, image), folder) == {"first": OBJECT, "second": OTHER}


def test_containers_in_containers(tmp_path: Path, folder: Path) -> None:
    inner = deb_of({"./usr/bin/tool": OTHER})
    outer = zip_of({"pool/x.deb": inner, "lib.a": ar_of({"shapes.o/": OBJECT})})
    files = contents(written(tmp_path, gzip.compress(tar_of({"all.zip": outer}))), folder)
    assert list(files) == ["all.zip!pool/x.deb!usr/bin/tool", "all.zip!lib.a"]
    assert files["all.zip!pool/x.deb!usr/bin/tool"] == OTHER
    assert sorted(os.listdir(folder)) == ["1-2", "1-3"], "copies of inner containers are gone"


def test_hashes_are_of_members(tmp_path: Path, folder: Path) -> None:
    (member,) = unpacked(written(tmp_path, zip_of({"x": OTHER})), folder)
    assert isinstance(member, Member)
    assert member.file_hash == hashlib.sha256(OTHER).hexdigest()


def test_two_members_of_one_name(tmp_path: Path, folder: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x#2", OTHER)
        archive.writestr("x", OTHER)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x", OBJECT)
    files = contents(written(tmp_path, out.getvalue()), folder)
    assert files == {"x#2": OTHER, "x": OTHER, "x#3": OBJECT}


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("usr/bin/tool", {"usr/bin/tool"}),
        ("usr/bin", {"usr/bin/tool"}),
        ("usr/share/doc/readme", {"usr/share/doc/readme"}),
        ("x.zip!a", {"x.zip!a"}),
        ("x.zip", {"x.zip!a", "x.zip!b"}),
    ],
)
def test_only_what_is_named(inside: str, expected: set[str], tmp_path: Path, folder: Path) -> None:
    files = {**FILES, "x.zip": zip_of({"a": OTHER, "b": OBJECT})}
    path = written(tmp_path, tar_of(files))
    assert set(contents(path, folder, inside=(inside,))) == expected
    assert len(list(folder.iterdir())) == len(expected)


def test_a_name_that_nothing_has(tmp_path: Path, folder: Path) -> None:
    results = list(unpacked(written(tmp_path, tar_of(FILES)), folder, inside=("usr/bin/tol",)))
    assert results == [Absent("usr/bin/tol", ("usr/bin/tool",))]


# --- Hostile names ------------------------------------------------------------------------


def test_names_never_become_paths(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "private"
    folder.parent.mkdir()
    names = [
        "../../evil",
        "/tmp/../evil",
        "..",
        "a/../../../b",
        "x\0y",
        "\udcff",
        "n\nl",
        "c" * 5000,
    ]
    for make in (tar_of, cpio_of):
        before = sorted(tmp_path.iterdir())
        usable = names if make is tar_of else [n for n in names if n.isascii() and "\0" not in n]
        path = written(tmp_path, make(dict.fromkeys(usable, OTHER)), make.__name__)
        members = [item for item in unpacked(path, folder) if isinstance(item, Member)]
        assert len(members) == len(usable)
        for member in members:
            assert Path(member.path).parent == folder
            assert member.label.encode()
            assert len(member.label) < 1100 + len(str(path))
        assert sorted(tmp_path.iterdir()) == sorted([*before, path])
        shutil.rmtree(folder)


def test_links_and_devices_are_nothing(tmp_path: Path, folder: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"x{kind!r}")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("x")
        info.size = len(OTHER)
        archive.addfile(info, io.BytesIO(OTHER))
    assert contents(written(tmp_path, out.getvalue()), folder) == {"x": OTHER}
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        zipped.writestr(link, b"\x7fELF/etc/passwd")
    assert contents(written(tmp_path, out.getvalue()), folder) == {}
    assert contents(written(tmp_path, cpio_of({"l": b"\x7fELF"}, stat.S_IFLNK)), folder) == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("./a", "a"),
        ("//a/b", "a/b"),
        (".a", ".a"),
        ("././a", "a"),
        ("../a", "../a"),
        ("/", "unnamed"),
    ],
)
def test_names_as_text(name: str, expected: str) -> None:
    assert clean(name) == expected


# --- Budgets ------------------------------------------------------------------------------

ZEROS = bytes(1 << 24)


def reasons(path: Path, folder: Path, budget: Budget) -> list[str]:
    results = list(unpacked(path, folder, budget=budget))
    return [str(item) for item in results if isinstance(item, Skipped)]


@pytest.mark.parametrize("kind", ["gz", "zip", "tar.gz"])
def test_a_bomb_is_given_up(kind: str, tmp_path: Path, folder: Path) -> None:
    bomb = b"\x7fELF" + ZEROS
    made = {
        "gz": lambda: gzip.compress(bomb),
        "zip": lambda: zip_of({"x": bomb}),
        "tar.gz": lambda: gzip.compress(tar_of({"x": bomb})),
    }[kind]()
    path = written(tmp_path, made)
    assert len(made) < 1 << 18
    (reason,) = reasons(path, folder, Budget(free_bytes=1 << 20))
    assert reason == (
        f"{path} skipped: more than 200 bytes unpacked for each byte of the file, which looks like "
        "a bomb; the rest is skipped"
    )
    (reason,) = reasons(path, folder, Budget(total_bytes=1 << 22))
    assert "more than 4,194,304 bytes unpacked; the rest is skipped" in reason
    assert list(folder.iterdir()) == []
    assert reasons(path, folder, Budget()) == []


def test_what_comes_before_a_bound_is_kept(tmp_path: Path, folder: Path) -> None:
    path = written(tmp_path, tar_of({"x": OTHER, **{f"t{n}": b"text" for n in range(20)}}))
    member, skipped = unpacked(path, folder, budget=Budget(members=10))
    assert isinstance(member, Member)
    assert str(skipped) == f"{path} skipped: more than 10 members; the rest is skipped"


def test_a_member_over_the_limit_is_skipped_alone(tmp_path: Path, folder: Path) -> None:
    large = OTHER + ZEROS
    path = written(tmp_path, tar_of({"large": large, "x": OBJECT}))
    skipped, member = unpacked(path, folder, budget=Budget(member_bytes=1 << 20))
    assert isinstance(skipped, Skipped)
    assert skipped.binary == f"{path}!large"
    assert skipped.reason == "it has more than 1,048,576 bytes, the limit of a file"
    assert isinstance(member, Member)
    assert Path(member.path).read_bytes() == OBJECT


def test_layers_have_a_bound(tmp_path: Path, folder: Path) -> None:
    content = OTHER
    for _ in range(20):
        content = zip_of({"x": content})
    path = written(tmp_path, content)
    (reason,) = reasons(path, folder, Budget())
    assert reason == f"{path}{'!x' * 8} skipped: it lies more than 8 layers deep"
    assert list(folder.iterdir()) == []


def test_a_sparse_file_costs_what_it_would_take(tmp_path: Path, folder: Path) -> None:
    """512 GB of nothing in a tar archive of a few kilobytes."""
    info = tarfile.TarInfo("x")
    info.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.map": f"0,4,{1 << 39},4",
        "GNU.sparse.size": str((1 << 39) + 4),
    }
    info.size = 8
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(b"\x7fELFabcd"))
    path = written(tmp_path, out.getvalue())
    (reason,) = reasons(path, folder, Budget(member_bytes=1 << 22))
    assert "the limit of a file" in reason


# --- Damage -------------------------------------------------------------------------------


def test_an_encrypted_member_is_named(tmp_path: Path, folder: Path) -> None:
    content = bytearray(zip_of({"x": OTHER, "y": OBJECT}, zipfile.ZIP_STORED))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    member, skipped = unpacked(written(tmp_path, bytes(content)), folder)
    assert isinstance(member, Member)
    assert str(skipped).endswith("!x skipped: it is encrypted")


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_container_that_ends_early_says_so(kind: str, tmp_path: Path, folder: Path) -> None:
    whole = CONTAINERS[kind].rstrip(b"\0")  # padding may be missing
    for size in (len(whole) // 8, len(whole) // 2, len(whole) - len(whole) // 16):
        results = list(unpacked(written(tmp_path, whole[:size]), folder))
        assert any(isinstance(item, Skipped) for item in results)
        for item in results:
            if isinstance(item, Member):
                assert Path(item.path).read_bytes() in (OTHER, OBJECT)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(sorted(CONTAINERS)), seed=st.integers(0, 2**32), edits=st.integers(1, 8)
)
def test_damaged_containers_do_not_crash(
    kind: str, seed: int, edits: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is changed: members and sentences come out, and nothing is raised."""
    rng = random.Random(seed)
    content = bytearray(CONTAINERS[kind])
    for _ in range(edits):
        # Headers are where damage tells most: they lie at both ends.
        span = rng.choice([64, 512, len(content)])
        at = rng.randrange(min(span, len(content)))
        at = rng.choice([at, len(content) - 1 - at])
        if rng.random() < 0.2:
            del content[at : at + rng.randrange(1, 64)]
        else:
            content[at : at + 4] = rng.choice([b"\xff" * 4, bytes(4), rng.randbytes(4)])
    folder = tmp_path_factory.mktemp("damaged")
    path = written(folder, bytes(content))
    budget = Budget(total_bytes=1 << 24, member_bytes=1 << 22)
    for item in unpacked(path, folder / "private", budget=budget):
        assert isinstance(item, Member | Skipped)
    shutil.rmtree(folder)
