"""Files read in a process of their own: the same functions and errors, and limits that hold."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphkin.binaries import Skipped, reading
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.reading import read_function, read_functions
from graphkin.binaries.targets import Target, find_function, list_functions, parse_target
from graphkin.binaries.workers import PRELOADED
from graphkin.errors import ConfigError, FormatError
from tests.binaries import bad_readers
from tests.paths import BINARIES

SAMPLE = Target(str(BINARIES / "show" / "shapes.o"))


def test_functions_are_those_that_this_process_would_read() -> None:
    expected = list(list_functions(SAMPLE))
    assert list(read_functions(SAMPLE)) == expected
    large = [function for function in expected if len(function.blocks) >= 5]
    assert 0 < len(large) < len(expected)
    assert list(read_functions(SAMPLE, min_blocks=5)) == large
    with_text = list(read_functions(SAMPLE, with_text=True))
    assert with_text == list(list_functions(SAMPLE, with_text=True))
    assert with_text[0].blocks[0].instructions


def test_one_function_is_found_as_by_this_process() -> None:
    target = SAMPLE._replace(function="grade")
    assert read_function(target) == find_function(target)


def test_errors_keep_their_class_and_words(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("just some text")
    for path in (tmp_path / "text", tmp_path / "absent"):
        target = parse_target(str(path))
        with pytest.raises(FormatError) as expected:
            list(list_functions(target))
        with pytest.raises(FormatError) as error:
            list(read_functions(target))
        assert str(error.value) == str(expected.value)
    with pytest.raises(ConfigError, match=r"no function absent; .*graphkin show"):
        read_function(SAMPLE._replace(function="absent"))
    with pytest.raises(ConfigError, match=r"no member x\.o"):
        list(read_functions(SAMPLE._replace(member="x.o")))
    with pytest.raises(ConfigError, match="unknown backend 'ghidra'"):
        read_function(SAMPLE._replace(function="grade"), "ghidra")


def test_what_was_skipped_is_told() -> None:
    earlier = Skipped("other", "", "damaged")
    skipped = [earlier]
    limits = Limits(function_bytes=100)
    names = {function.name for function in read_functions(SAMPLE, limits=limits, skipped=skipped)}
    assert names
    assert skipped[0] == earlier
    assert len(skipped) > 1
    assert not names & {item.function for item in skipped}


def test_a_file_that_takes_too_much_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.write_bytes(Path(SAMPLE.path).read_bytes())
    os.truncate(path, 300 << 20)
    with pytest.raises(FormatError, match="huge cannot be read: it takes more than 64 MB"):
        list(read_functions(Target(str(path)), limits=Limits(memory_bytes=64 << 20)))


@pytest.mark.parametrize(
    ("reader", "reason"),
    [
        (bad_readers.crash, "the process that read it crashed with SIGSEGV"),
        (bad_readers.hang, "not finished after 1 s"),
        (bad_readers.eat, "it takes more than 4096 MB of memory"),
    ],
)
def test_a_reader_that_fails_is_a_fault_of_the_file(
    reader: object, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MARGIN_SECONDS", 1.0 - Limits().seconds)
    monkeypatch.setattr(reading, "_list", reader)
    monkeypatch.setattr(reading, "_find", reader)
    with pytest.raises(FormatError, match=f"shapes.o cannot be read: {reason}"):
        list(read_functions(SAMPLE))
    with pytest.raises(FormatError, match=f"shapes.o cannot be read: {reason}"):
        read_function(SAMPLE._replace(function="grade"))


def test_readers_have_what_reads_elf_files_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_find", bad_readers.tell_modules)
    with pytest.raises(FormatError, match=r"loaded: \['capstone'\]"):
        read_function(SAMPLE)


def test_elf_files_are_read_without_lief() -> None:
    code = (
        "import sys; from graphkin.binaries.backends.native import NativeSource; "
        f"source = NativeSource({SAMPLE.path!r}, with_text=True, with_evidence=True); "
        "print(len(list(source.functions())) > 1, 'lief' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_the_process_that_asks_imports_neither() -> None:
    code = (
        "import sys; from graphkin.binaries.reading import *; "
        f"from graphkin.binaries.targets import Target; read_function({SAMPLE!r}._replace("
        "function='grade')); print([n for n in ('lief', 'capstone', 'torch') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_preloaded_exists() -> None:
    for name in PRELOADED:
        assert importlib.util.find_spec(name) is not None
