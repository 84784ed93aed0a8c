"""Folders and containers, as the commands see them: read by workers, named, and cleaned up."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphkin.binaries.backends.base import Limits
from graphkin.binaries.containers import disk_images
from graphkin.binaries.containers.budget import Budget
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.binaries.extraction import extract, member_build
from graphkin.binaries.function import Skipped
from graphkin.binaries.inputs import ContainerEnd, Input, Inputs, find_target, split_member
from graphkin.binaries.reading import read_function, read_functions
from graphkin.binaries.targets import Target, list_functions, parse_target
from graphkin.errors import ConfigError, FormatError
from tests.binaries.containers.making import (
    FILES,
    OBJECT,
    OTHER,
    ar_of,
    deb_of,
    tar_of,
    zip_of,
)
from tests.command_line import Graphkin

LARGE = gzip.compress(b"\x7fELF") + 60 * gzip.compress(bytes(16 << 20))
"""A compressed file of nearly a gigabyte."""


@pytest.fixture(autouse=True)
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where private folders are made; nothing may be left there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.glob("graphkin-*")) == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a binary, containers, text, a link and a folder below."""
    folder = tmp_path / "tree"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.o").write_bytes(OBJECT)
    (folder / "b.zip").write_bytes(zip_of(FILES))
    (folder / "c.txt").write_text("text")
    (folder / "d").symlink_to(folder / "a.o")
    (folder / "lib.a").write_bytes(ar_of({"shapes.o/": OBJECT}))
    (folder / "sub" / "e.deb").write_bytes(deb_of({"./usr/bin/tool": OTHER}))
    return folder


def test_a_folder_gives_its_binaries_and_those_of_its_containers(tree: Path) -> None:
    with Inputs() as inputs:
        items = list(inputs.inputs_and_ends(inputs.files([tree])))
        for item in items:
            assert isinstance(item, ContainerEnd) or Path(item.path).is_file()
        labels = [item.label for item in items if isinstance(item, Input)]
        ends = [item for item in items if isinstance(item, ContainerEnd)]
    expected = [
        "a.o",
        "b.zip!usr/bin/tool",
        "b.zip!lib/shapes.o",
        "lib.a",
        "sub/e.deb!usr/bin/tool",
    ]
    assert labels == [f"{tree}/{name}" for name in expected]
    assert ends == [ContainerEnd(f"{tree}/{name}", True) for name in ("b.zip", "sub/e.deb")]
    assert inputs.skipped == []


def test_links_that_lead_out_of_a_folder_are_told(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.o").write_bytes(OBJECT)
    (tree / "sub" / "link.o").symlink_to(tmp_path / "outside.o")
    (tree / "dangling.o").symlink_to(tmp_path / "absent")
    with Inputs() as inputs:
        assert tree / "sub" / "link.o" not in inputs.files([tree])
        (told,) = inputs.skipped
    assert (told.binary, told.is_read) == (str(tree), True)
    assert "a symbolic link that leads out of it is not followed" in told.reason


def test_empty_and_thin_files_of_a_folder_are_not_passed_over(tree: Path) -> None:
    for name in ("libx.so.3", "x.dll", "notes.txt", "__init__.py"):
        (tree / name).touch()
    (tree / "thin.a").write_bytes(b"!<thin>\n")
    with Inputs() as inputs:
        names = {file.name for file in inputs.files([tree])}
    assert {"libx.so.3", "x.dll", "thin.a"} <= names
    assert not {"notes.txt", "__init__.py"} & names


def test_members_can_be_named(tree: Path) -> None:
    named = [tree / "b.zip!lib/shapes.o", tree / "b.zip!usr/bin", tree / "b.zip!absent"]
    with Inputs() as inputs:
        items = list(inputs.inputs_and_ends(inputs.files(named)))
    assert [item.label for item in items if isinstance(item, Input)] == [
        f"{tree}/b.zip!usr/bin/tool",
        f"{tree}/b.zip!lib/shapes.o",
    ]
    assert items[-1] == ContainerEnd(f"{tree}/b.zip", False), "a part is not the whole"
    assert "has no member absent" in inputs.skipped[0].reason
    assert split_member(tree / "a.o") == (tree / "a.o", None)


def test_a_container_that_takes_too_long_costs_only_itself(tree: Path) -> None:
    slow = tree / "aa.gz"
    slow.write_bytes(LARGE)
    with Inputs(Limits(seconds=0.0), Budget(free_bytes=1 << 30)) as inputs:
        labels = [item.label for item in inputs.inputs(inputs.files([tree / "a.o", slow]))]
    assert labels == [f"{tree}/a.o"]
    assert inputs.skipped == [Skipped(str(slow), "", "not finished after 0 s")]


@pytest.mark.skipif(disk_images.is_installed(), reason="unblob is installed")
def test_an_image_needs_unblob(tmp_path: Path) -> None:
    image = tmp_path / "root.sqfs"
    image.write_bytes(b"hsqs" + bytes(1000))
    with pytest.raises(FormatError) as caught:
        list(read_functions(parse_target(str(image))))
    assert str(caught.value).startswith(
        f"{image} skipped: it is a squashfs image; graphkin opens it through unblob, which is "
        "not installed: pip install unblob"
    )


@pytest.mark.skipif(not disk_images.is_installed(), reason="unblob is not installed")
def test_an_image_is_opened_by_unblob(tmp_path: Path) -> None:
    """A container at an odd place, which only unblob looks for."""
    image = tmp_path / "firmware.bin"
    image.write_bytes(b"\1\2\3\4" * 1000 + tar_of({"tool": OTHER}))
    with Inputs() as inputs:
        labels = [item.label for item in inputs.inputs(inputs.files([image]))]
    assert any(label.endswith("/tool") for label in labels), inputs.skipped


# --- Reading ------------------------------------------------------------------------------


def test_functions_of_a_container_are_those_of_its_files(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "tool"
    file.write_bytes(OTHER)
    expected = list(list_functions(parse_target(str(file))))
    skipped: list[Skipped] = []
    functions = list(read_functions(parse_target(str(tree / "sub" / "e.deb")), skipped=skipped))
    assert [f.blocks for f in functions] == [f.blocks for f in expected]
    assert {f.binary for f in functions} == {f"{tree}/sub/e.deb!usr/bin/tool"}
    assert {f.file_hash for f in functions} == {expected[0].file_hash}
    everything = {f.binary for f in read_functions(parse_target(str(tree)))}
    assert len(everything) == 5
    assert f"{tree}/lib.a(shapes.o)" in everything


def test_one_function_of_a_member(tree: Path) -> None:
    archive = f"{tree}/b.zip"
    function = read_function(parse_target(f"{archive}!lib/shapes.o:grade"))
    assert (function.name, function.binary) == ("grade", f"{archive}!lib/shapes.o")
    with pytest.raises(ConfigError, match=r"b\.zip!lib/shapes\.o has no function grad; .*grade"):
        read_function(parse_target(f"{archive}!lib/shapes.o:grad"))
    with pytest.raises(ConfigError, match=r"holds 2 binaries; name one: .*!usr/bin/tool:grade"):
        read_function(parse_target(f"{archive}:grade"))
    with pytest.raises(ConfigError, match=r"has no member lib/shape; .* lib/shapes\.o"):
        read_function(parse_target(f"{archive}!lib/shape:grade"))
    with pytest.raises(FormatError, match=r"b\.zip!usr/share/doc/readme is not an ELF"):
        list(read_functions(parse_target(f"{archive}!usr/share/doc/readme")))
    with pytest.raises(ConfigError, match="is a folder; name one binary"):
        read_function(parse_target(f"{tree}:grade"))


def test_a_container_of_one_binary_needs_no_member(tree: Path) -> None:
    path = tree / "shapes.o.zip"
    path.write_bytes(zip_of({"x/shapes.o": OBJECT}))
    assert read_function(parse_target(f"{path}:grade")).binary == f"{path}!x/shapes.o"


def test_a_bad_member_is_skipped_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zip_of({"bad": OTHER[:200], "good": OBJECT}))
    skipped: list[Skipped] = []
    functions = list(read_functions(parse_target(str(path)), skipped=skipped))
    assert {f.binary for f in functions} == {f"{path}!good"}
    assert [item.binary for item in skipped] == [f"{path}!bad"]
    assert "graphkin-" not in skipped[0].reason


def test_nothing_to_read(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zip_of({"readme": b"text"}))
    for target in (path, tmp_path / "temporary"):
        with pytest.raises(FormatError, match="there is no binary in"):
            list(read_functions(parse_target(str(target))))


def test_raw_images_are_not_looked_into(tmp_path: Path) -> None:
    code = bytes.fromhex("e800000000c3") * 10
    path = tmp_path / "x.zip"
    path.write_bytes(zip_of({"image.bin": code, "other": OTHER}))
    member = parse_target(f"{path}!image.bin")
    functions = list(read_functions(member, backend="raw:x86-64@0x1000"))
    assert functions[0].binary == f"{path}!image.bin"
    assert functions[0].address == 0x1000
    # The archive itself is no code, and its members are not asked.
    with pytest.raises(FormatError, match=r"x\.zip skipped: no function was found"):
        list(read_functions(parse_target(str(path)), backend="raw:x86-64@0x1000"))
    with pytest.raises(ConfigError, match="with --raw, name the files"):
        list(read_functions(parse_target(str(tmp_path)), backend="raw:x86-64@0"))


# --- A corpus -----------------------------------------------------------------------------


def test_a_corpus_does_not_depend_on_the_number_of_processes(tree: Path, tmp_path: Path) -> None:
    corpora = []
    seen: list[tuple[int, int]] = []

    def note(done: int, total: int) -> None:
        seen.append((done, total))

    for jobs in (1, 2):
        out = tmp_path / f"corpus{jobs}"
        summary = extract([tree], out, jobs=jobs, min_blocks=1, progress=note)
        assert (summary.files, summary.skipped) == (5, [])
        assert seen[-1] == (5, 5)
        corpora.append(FunctionCorpus.open(out))
    assert corpora[0].binaries == corpora[1].binaries
    assert corpora[0].digest() == corpora[1].digest()
    records = {record.path: record for record in corpora[0].binaries}
    inner = records[f"{tree}/sub/e.deb!usr/bin/tool"]
    assert (inner.library, inner.build) == ("tool", "sub/e.deb!usr/bin")


def test_builds_of_members() -> None:
    assert member_build("gcc", "a/gcc/x.zip", "a/gcc/x.zip!lib.so") == "gcc"
    assert member_build("gcc", "a/gcc/x.zip", "a/gcc/x.zip!lib/lib.so") == "gcc/x.zip!lib"
    assert member_build("here", "x.zip", "x.zip!O2/lib.so") == "here/x.zip!O2"


# --- Cleaning up --------------------------------------------------------------------------


def test_a_reader_that_stops_early_leaves_nothing(tree: Path, private: Path) -> None:
    functions = read_functions(parse_target(str(tree / "b.zip")))
    next(functions)
    assert list(private.iterdir())
    functions.close()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_nothing_is_left_when_a_command_is_terminated(tmp_path: Path, private: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(LARGE)
    command = [sys.executable, "-c", "from graphkin.cli.main import main; main()"]
    command += ["show", str(path)]
    process = subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(private)}, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 60
    while not (is_unpacking := any(private.glob("graphkin-*/*"))):
        if process.poll() is not None or time.monotonic() > end:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert is_unpacking, errors
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert list(private.glob("graphkin-*")) == []


@pytest.mark.parametrize(
    ("text", "inside", "member", "function"),
    [
        ("x:y", "x:y", None, None),
        ("x:y:find", "x:y", None, "find"),
        ("x:z", "x", None, "z"),
        ("x:ns::f(int)", "x", None, "ns::f(int)"),
        ("x", "x", None, None),
        ("d:e/lib.a(one.o):find", "d:e/lib.a", "one.o", "find"),
        ("in.zip!a:b:find", "in.zip!a:b", None, "find"),
        ("absent:find", "absent", None, "find"),
    ],
)
def test_members_with_colons_in_their_names(
    text: str, inside: str, member: str | None, function: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "x.zip"
    files = {"x:y": OBJECT, "x": OBJECT, "d:e/lib.a": ar_of({"one.o/": OBJECT})}
    path.write_bytes(zip_of({**files, "in.zip": zip_of({"a:b": OBJECT})}))
    assert find_target(f"{path}!{text}") == Target(str(path), member, function, inside)


def test_commands_take_members_with_colons(run: Graphkin, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zip_of({"x:y": OBJECT}))
    shown = run("show", f"{path}!x:y")
    assert (shown.code, " find\n" in shown.out) == (0, True)
    assert run("show", f"{path}!x:y:find").code == 0
    refused = run("show", f"{path}!x:z")
    assert (refused.code, "has no member x" in refused.err) == (12, True)
    indexed = run("index", tmp_path / "x.kin", f"{path}!x:y", "--min-blocks", "1")
    assert (indexed.code, " 0 skipped" in indexed.out) == (0, True)
