"""``graphkin show``: text, DOT, JSON and pictures of functions, and lists of them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphkin.binaries import reading
from graphkin.binaries.backends.base import Limits
from graphkin.cli.main import main
from tests.binaries import bad_readers
from tests.binaries.containers.making import OBJECT, zip_of
from tests.paths import BINARIES
from tests.web.browser.objects import branching, object_file

SAMPLE = BINARIES / "show" / "shapes.o"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Exit code, stdout and stderr of ``graphkin show ...``."""

    def call(*arguments: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["graphkin", "show", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return call


def assert_refused(outcome: tuple[int, str, str], code: int, *parts: str) -> None:
    """One line on stderr that says why, and nothing else."""
    actual, out, err = outcome
    assert (actual, out) == (code, "")
    assert err.startswith("graphkin: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err


def test_text(show: Run) -> None:
    code, out, err = show(f"{SAMPLE}:grade")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:3] == [
        "grade",
        "  0x10077 · 76 bytes · 9 blocks · 8 edges · x86-64 elf",
        f"  {SAMPLE}",
    ]
    assert lines[lines.index("0x10077:  entry") :][:6] == [
        "0x10077:  entry",
        "    cmp     edi, 5",
        "    ja      0x100bd",
        "    ; constants 6",
        "    -> 0x1007c  not taken",
        "    -> 0x100bd  taken",
    ]
    assert sum(line.endswith("  case") for line in lines) == 6
    assert sum(line.endswith("  exit") for line in lines) == 7


def test_a_folder_with_a_container(show: Run, tmp_path: Path) -> None:
    (tmp_path / "a.o").write_bytes(OBJECT)
    (tmp_path / "b.zip").write_bytes(zip_of({"x/shapes.o": OBJECT, "bad": OBJECT[:300]}))
    code, out, err = show(SAMPLE)
    table = out.rstrip("\n")
    names = f"{tmp_path}/a.o", f"{tmp_path}/b.zip!x/shapes.o"
    code, out, err = show(tmp_path)
    assert (code, out) == (21, f"{names[0]}\n{table}\n\n{names[1]}\n{table}\n")
    said = err.splitlines()
    assert said[-1] == "8 functions: 100% of 408 bytes of code"
    assert said[0].startswith(f"graphkin: {tmp_path}/b.zip!bad skipped: ")
    code, out, err = show(f"{tmp_path}/b.zip!x/shapes.o:grade", "--json")
    document = json.loads(out)
    assert (document["function"], document["binary"]) == ("grade", names[1])
    rows = json.loads(show(tmp_path, "--json")[1])["functions"]
    assert {row["binary"] for row in rows} == set(names)


def test_a_raw_image(show: Run, tmp_path: Path) -> None:
    image = tmp_path / "image.bin"
    image.write_bytes(bytes.fromhex("e80b000000 c3" + "90" * 10 + "31c0 c3"))
    code, out, err = show(image, "--raw", "x86-64@0x1000")
    assert (code, err) == (0, "2 functions: 100% of 9 bytes of code\n")
    assert [line.split()[-1] for line in out.splitlines()[1:]] == ["sub_1000", "sub_1010"]
    # Padding ahead of a function that is called is no function, wherever that lies.
    image.write_bytes(bytes.fromhex("e806000000 c3 9090909090 31c0 c3"))
    code, out, err = show(image, "--raw", "x86-64@0x1000")
    assert [line.split()[-1] for line in out.splitlines()[1:]] == ["sub_1000", "sub_100b"]
    code, out, err = show(f"{image}:0x100c", "--raw", "x86-64@0x1000")
    assert "x86-64 raw" in out
    assert_refused(show(image, "--raw", "vax@0"), 12, "vax@0", "thumb@0x8000000")
    assert_refused(show(image, "--raw", "x86@0", "--backend", "smda"), 12, "--raw", "smda")
    assert_refused(show(tmp_path, "--raw", "x86@0"), 12, "folder")


def test_an_address_inside_finds_the_same(show: Run) -> None:
    assert show(f"{SAMPLE}:0x10080") == show(f"{SAMPLE}:grade")


def test_what_a_block_says_stands_behind_its_instructions(show: Run) -> None:
    target = f"{BINARIES / 'evidence' / 'aarch64.so'}:speaks"
    code, out, err = show(target)
    assert (code, err) == (0, "")
    assert '    ; strings "the quick brown fox"\n    ; imports puts\n' in out
    document = json.loads(show(target, "--json")[1])
    assert document["callees"] == ["puts"]
    said = [token for block in document["blocks"] for token in block["evidence"]]
    assert ["str", "the quick brown fox"] in said
    assert "call" in [name for block in document["blocks"] for name in block["operations"]]


def test_json(show: Run) -> None:
    code, out, err = show(f"{SAMPLE}:find", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["function"], document["address"], document["size"]) == ("find", "0x1000e", 105)
    assert (len(document["blocks"]), len(document["edges"])) == (12, 15)
    assert document["blocks"][0]["instructions"] == ["test edx, edx", "jle 0x10071"]
    assert document["compiler"].startswith("GCC")


def test_dot(show: Run) -> None:
    code, out, err = show(f"{SAMPLE}:find", "--dot")
    assert (code, err) == (0, "")
    assert out.startswith('digraph "find" {')
    assert out.count(" -> ") == 15
    assert r'label="0x1000e:\ltest edx, edx\ljle 0x10071\l"' in out


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plot(show: Run, tmp_path: Path, ending: str) -> None:
    path = tmp_path / "new folder" / f"find.{ending}"
    assert show(f"{SAMPLE}:find", "--plot", path) == (0, f"{path}\n", "")
    assert path.stat().st_size > 5_000
    document = json.loads(show(f"{SAMPLE}:find", "--plot", path, "--json")[1])
    assert (document["function"], document["picture"]) == ("find", str(path))


def test_plot_beside_dot(show: Run, tmp_path: Path) -> None:
    code, out, _ = show(f"{SAMPLE}:find", "--dot", "--plot", tmp_path / "find.svg")
    assert code == 0
    assert out.startswith("digraph")
    assert (tmp_path / "find.svg").exists()


def test_a_binary_alone_lists_its_functions(show: Run) -> None:
    code, out, err = show(SAMPLE)
    assert (code, err) == (0, "4 functions: 100% of 204 bytes of code\n")
    rows = [line.split() for line in out.splitlines()]
    assert rows == [
        ["address", "bytes", "blocks", "edges", "name"],
        ["0x10000", "14", "1", "0", "twice", "(shapes.c)"],
        ["0x1000e", "105", "12", "15", "find"],
        ["0x10077", "76", "9", "8", "grade"],
        ["0x100c3", "9", "1", "0", "apply"],
    ]
    document = json.loads(show(SAMPLE, "--json")[1])
    assert document["binary"] == str(SAMPLE)
    assert [row["function"] for row in document["functions"]] == ["twice", "find", "grade", "apply"]
    (coverage,) = document["coverage"]
    assert (coverage["code_bytes"], coverage["share"], coverage["is_low"]) == (204, 1.0, False)


def test_a_path_with_a_colon(show: Run, tmp_path: Path) -> None:
    path = tmp_path / "a:b.o"
    shutil.copy(SAMPLE, path)
    assert show(f"{path}:apply")[0] == 0
    assert len(show(path)[1].splitlines()) == 5


def archive(path: Path, *members: tuple[str, bytes]) -> Path:
    parts = [b"!<arch>\n"]
    for name, content in members:
        header = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}`\n"
        parts += [header.encode(), content, b"\n" * (len(content) % 2)]
    path.write_bytes(b"".join(parts))
    return path


def test_members_of_an_archive(show: Run, tmp_path: Path) -> None:
    content = SAMPLE.read_bytes()
    path = archive(tmp_path / "x.a", ("one.o", content), ("two.o", content))
    positions = (f"{path}(one.o):0x1000e", f"{path}(two.o):0x1000e")
    assert_refused(show(f"{path}:find"), 12, "2 functions find", *positions)
    assert f"  {path}(two.o)\n" in show(f"{path}(two.o):find")[1]
    assert len(show(path)[1].splitlines()) == 9
    assert len(show(f"{path}(two.o)")[1].splitlines()) == 5
    assert_refused(show(f"{path}(three.o):find"), 12, "three.o", "(one.o)", "(two.o) have")
    assert_refused(show(f"{path}(three.o)"), 12, "no member three.o", "(one.o), (two.o)")


def test_functions_that_were_skipped_are_told_on_stderr(show: Run, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.a", ("one.o", SAMPLE.read_bytes()), ("bad.o", b"no object"))
    code, out, err = show(path)
    assert code == 21
    assert len(out.splitlines()) == 5
    assert "bad.o) skipped" in err


@pytest.mark.parametrize("options", [(), ("--json",), ("--dot",), ("--plot", "x.png")])
def test_a_name_that_is_not_there(show: Run, options: tuple[str, ...]) -> None:
    assert_refused(show(f"{SAMPLE}:fnid", *options), 12, "no function fnid", "find")
    assert_refused(show(f"{SAMPLE}:0x9", *options), 12, "0x9", f"`graphkin show {SAMPLE}`")


def test_files_that_are_no_binaries(show: Run, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("hello")
    (tmp_path / "empty").touch()
    for target in (text, f"{text}:f", f"{text}:0x1"):
        assert_refused(show(target), 11, str(text))
    assert_refused(show(f"{tmp_path / 'empty'}:f"), 11, "empty")
    assert_refused(show(f"{tmp_path}:f"), 12, "is a folder; name one binary")
    assert_refused(show(tmp_path / "absent.so"), 11, "cannot read", "absent.so")
    assert_refused(show(f"{tmp_path / 'absent.so'}:f"), 11, "cannot read", "absent.so")


@pytest.mark.parametrize("function", ["", ":grade"])
@pytest.mark.parametrize(
    ("reader", "reason"),
    [(bad_readers.crash, "crashed with SIGSEGV"), (bad_readers.hang, "not finished after 1 s")],
)
def test_a_file_that_its_reader_does_not_survive(
    show: Run, function: str, reader: object, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MARGIN_SECONDS", 1.0 - Limits().seconds)
    monkeypatch.setattr(reading, "_list", reader)
    monkeypatch.setattr(reading, "_find", reader)
    assert_refused(show(f"{SAMPLE}{function}"), 11, f"{SAMPLE} cannot be read", reason)


def test_options_that_do_not_go_together(show: Run, tmp_path: Path) -> None:
    assert_refused(show(f"{SAMPLE}:find", "--dot", "--json"), 12, "--dot", "--json")
    assert_refused(show(SAMPLE, "--dot"), 12, "--dot", ":FUNCTION")
    assert_refused(show(SAMPLE, "--plot", "x.png"), 12, "--plot", ":FUNCTION")
    assert_refused(show(f"{SAMPLE}:"), 12, "BINARY:FUNCTION")
    assert_refused(show(SAMPLE, "--backend", "ida"), 12, "ida", "auto, native, smda, binexport")
    doc = tmp_path / "x.doc"
    assert_refused(show(f"{SAMPLE}:find", "--plot", doc), 12, "x.doc", ".png")
    assert_refused(show(f"{SAMPLE}:find", "--plot", SAMPLE / "x.png"), 15, "x.png")


def test_names_do_nothing_to_a_terminal(show: Run, tmp_path: Path) -> None:
    """Whoever made a binary chose its names; here one that sets a title and a colour."""
    path = tmp_path / "evil.o"
    path.write_bytes(object_file([("ev\x1b]0;x\x07il\x1b[31m", branching(6))]))
    address = json.loads(show(path, "--json")[1])["functions"][0]["address"]
    for arguments in ((path,), (f"{path}:{address}",), (f"{path}:{address}", "--dot")):
        code, out, _ = show(*arguments)
        assert code == 0
        assert "\x1b" not in out
        assert "\\x1b" in out
