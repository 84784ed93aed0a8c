"""Building a small package, end to end, with the compilers that the machine has."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lief
import psutil
import pytest
import typer

from graphkin.cli.build import register
from graphkin.errors import BuildError, ConfigError, MissingDependencyError, StorageError

CODE = """
#ifdef BROKEN
#error "broken on purpose"
#endif
int twice(int a) { return a > 3 ? a * 2 : a - 1; }
#ifdef __OPTIMIZE__
int optimised(int a) { return a + 1; }
#endif
"""
MAIN = "int twice(int); int main(int n, char **v) { (void)v; return twice(n); }\n"
RECIPE = """
name = "small"
about = "two files"
steps = [
    ["{cc}", "-O3", "-g3", "-shared", "-fPIC", "-o", "libsmall.so.1.0", "code.c"],
    ["ln", "-s", "libsmall.so.1.0", "libsmall.so"],
    ["{cc}", "code.c", "main.c", "-o", "run small"],
    ["sh", "-c", "echo $WORDS; pwd; echo 'flags of the caller:' $CFLAGS"],
]

[environment]
WORDS = "{level} {jobs} {machine} [{prefix}]"

[outputs]
"libsmall.so" = "libsmall.so"
"small" = "run small"
"""


@pytest.fixture(scope="session")
def compilers() -> list[str]:
    names = [name for name in ("gcc", "clang", "clang-14") if shutil.which(name)]
    if not names:
        pytest.skip("neither gcc nor clang is installed")
    return names


@pytest.fixture
def compiler(compilers: list[str]) -> str:
    return compilers[0]


@dataclass(frozen=True)
class Project:
    """A tarball and a recipe."""

    tarball: Path
    recipe: Path

    def arguments(self, output: Path, *more: str) -> list[str]:
        return [
            "--recipe-file",
            str(self.recipe),
            "--source",
            str(self.tarball),
            "-o",
            str(output),
            *more,
        ]

    def rewrite_recipe(self, old: str, new: str) -> None:
        text = self.recipe.read_text()
        assert old in text
        self.recipe.write_text(text.replace(old, new))


def write_tarball(path: Path, files: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"small-1.2/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    tarball, recipe = tmp_path / "small-1.2.tar.gz", tmp_path / "small.toml"
    write_tarball(tarball, {"code.c": CODE, "main.c": MAIN, "a file with spaces.txt": "text"})
    recipe.write_text(RECIPE)
    return Project(tarball, recipe)


@dataclass(frozen=True)
class Printed:
    out: str
    err: str

    @property
    def statuses(self) -> dict[str, str]:
        entries = json.loads(self.out)["configurations"]
        return {entry["configuration"]: entry["status"] for entry in entries}


Build = Callable[..., Printed]


@pytest.fixture
def build(capsys: pytest.CaptureFixture[str]) -> Build:
    """Calls the verb; errors come out as exceptions."""
    app = typer.Typer(pretty_exceptions_enable=False)
    register(app)

    def call(*arguments: str) -> Printed:
        capsys.readouterr()
        app([str(word) for word in arguments], standalone_mode=False)
        captured = capsys.readouterr()
        return Printed(captured.out, captured.err)

    return call


def symbols(path: Path) -> set[str]:
    binary = lief.ELF.parse(str(path))
    assert binary is not None
    return {str(symbol.name) for symbol in binary.symtab_symbols}


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*.so")}


def runs(number: int) -> bool:
    """Whether a process is alive; one that ended and was not asked how is not."""
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# --- The whole path -----------------------------------------------------------------------


def test_every_configuration_is_built(
    build: Build, project: Project, compilers: list[str], tmp_path: Path
) -> None:
    output = tmp_path / "an output folder"
    names = ",".join(compilers)
    printed = build(*project.arguments(output, "--compilers", names, "--levels", "O0,O2", "--json"))
    expected = {f"{name}-{level}" for name in compilers for level in ("O0", "O2")}
    assert printed.statuses == dict.fromkeys(expected, "built")
    for name in expected:
        folder = output / "small-1.2" / name
        assert sorted(path.name for path in folder.iterdir()) == ["libsmall.so", "small"]
        assert not (folder / "libsmall.so").is_symlink()
        done = subprocess.run([folder / "small"])
        assert done.returncode == 0  # twice(1)


def test_the_level_overrides_that_of_the_package(
    build: Build, project: Project, compilers: list[str], tmp_path: Path
) -> None:
    """The recipe's own -O3 and -g3 lose."""
    build(*project.arguments(tmp_path, "--compilers", ",".join(compilers), "--levels", "O0,O1"))
    for name in compilers:
        plain = tmp_path / "small-1.2" / f"{name}-O0" / "libsmall.so"
        assert {"twice"} == symbols(plain) & {"twice", "optimised"}
        assert "optimised" in symbols(plain.parents[1] / f"{name}-O1" / "libsmall.so")
        binary = lief.ELF.parse(str(plain))
        assert binary is not None
        assert binary.has_section(".debug_info")
        assert not binary.has_section(".debug_macro")  # which -g3 would write


def test_progress_tells_configurations_on_stderr(
    build: Build, project: Project, compiler: str, tmp_path: Path
) -> None:
    printed = build(*project.arguments(tmp_path, "--compilers", compiler, "--levels", "O0,O1"))
    assert f"[1/2] {compiler}-O0 ...\n[1/2] {compiler}-O0 built in " in printed.err
    assert f"[2/2] {compiler}-O1 built in " in printed.err
    assert f"{compiler}-O1  built   libsmall.so" in printed.out
    assert printed.out.endswith(f"{tmp_path / 'small-1.2'}\n")


def test_manifest_and_json_tell_hashes_and_sizes(
    build: Build, project: Project, compiler: str, tmp_path: Path
) -> None:
    arguments = project.arguments(tmp_path, "--compilers", compiler, "--json")
    document = json.loads(build(*arguments, "--levels", "O1").out)
    build(*arguments, "--levels", "O2")
    folder = tmp_path / "small-1.2"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["package"], manifest["version"]) == ("small", "1.2")
    assert manifest["source"] == {
        "name": "small-1.2.tar.gz",
        "sha256": hashlib.sha256(project.tarball.read_bytes()).hexdigest(),
    }
    first, second = manifest["configurations"]
    assert (first["configuration"], second["configuration"]) == (f"{compiler}-O1", f"{compiler}-O2")
    assert first["made"]["flags"][:2] == ["-O1", "-g1"]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    assert version.startswith(first["made"]["compiler_version"] + "\n")
    assert document["configurations"][0]["files"] == first["files"]
    for entry in first["files"]:
        content = (folder / first["configuration"] / entry["name"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
        assert entry["size"] == len(content)


def test_log_has_commands_output_and_a_clean_environment(
    build: Build,
    project: Project,
    compiler: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CFLAGS", "-Ounknown")
    build(*project.arguments(tmp_path, "--compilers", compiler, "--levels", "Os", "--jobs", "3"))
    log = (tmp_path / "small-1.2" / f"{compiler}-Os.log").read_text()
    machine = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True).stdout
    assert log.startswith(f"{compiler}-Os: ")
    assert "-Os -g1" in log.splitlines()[0]
    assert f"$ {compiler} code.c main.c -o 'run small'\n" in log
    assert f"\nOs 3 {machine.partition('-')[0]} []\n" in log
    assert log.endswith("flags of the caller:\n")


def test_the_same_bytes_wherever_it_is_built(
    build: Build, project: Project, compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for name in ("first", "second"):
        work = tmp_path / f"work-{name}"
        work.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(work))
        output = tmp_path / name
        build(*project.arguments(output, "--compilers", compiler, "--levels", "O1"))
        assert list(work.iterdir()) == []  # nothing is left behind
        files.append((output / "small-1.2" / f"{compiler}-O1" / "libsmall.so").read_bytes())
    assert files[0] == files[1]
    assert str(tmp_path).encode() not in files[0]
    assert b"/usr/src/small-1.2" in files[0]


def test_a_folder_is_built_and_stays_as_it_was(
    build: Build, project: Project, compiler: str, tmp_path: Path
) -> None:
    folder = tmp_path / "my code"
    folder.mkdir()
    (folder / "code.c").write_text(CODE)
    (folder / "main.c").write_text(MAIN)
    arguments = ["--recipe-file", str(project.recipe), "--source", str(folder), "-o", str(tmp_path)]
    build("small", *arguments, "--compilers", compiler, "--levels", "O1")
    assert (tmp_path / "small-local" / f"{compiler}-O1" / "libsmall.so").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["code.c", "main.c"]


# --- Resuming -----------------------------------------------------------------------------


def test_a_second_run_compiles_nothing(
    build: Build, project: Project, compiler: str, tmp_path: Path
) -> None:
    arguments = project.arguments(tmp_path, "--compilers", compiler, "--levels", "O0,O1", "--json")
    build(*arguments)
    before = times(tmp_path)
    again = build(*arguments)
    assert set(again.statuses.values()) == {"kept"}
    assert times(tmp_path) == before
    assert f"[2/2] {compiler}-O1 is up to date" in again.err


@pytest.mark.parametrize("damage", ["stamp", "file", "foreign stamp", "files"])
def test_what_is_not_whole_is_built_again(
    build: Build, project: Project, compiler: str, tmp_path: Path, damage: str
) -> None:
    arguments = project.arguments(tmp_path, "--compilers", compiler, "--levels", "O0,O1", "--json")
    build(*arguments)
    folder = tmp_path / "small-1.2"
    if damage == "stamp":
        (folder / f"{compiler}-O1.json").unlink()
    elif damage == "file":
        (folder / f"{compiler}-O1" / "small").write_bytes(b"half of it")
    elif damage == "files":
        stamp = json.loads((folder / f"{compiler}-O1.json").read_text())
        (folder / f"{compiler}-O1.json").write_text(json.dumps(stamp | {"files": [{"size": 1}]}))
    else:
        (folder / f"{compiler}-O1.json").write_text("[]")
    (folder / f"{compiler}-O1" / "left over").write_text("from an interrupted run")
    again = build(*arguments)
    assert again.statuses == {f"{compiler}-O0": "kept", f"{compiler}-O1": "built"}
    assert not (folder / f"{compiler}-O1" / "left over").exists()


def test_another_recipe_or_source_is_built_again(
    build: Build, project: Project, compiler: str, tmp_path: Path
) -> None:
    arguments = project.arguments(tmp_path, "--compilers", compiler, "--levels", "O1", "--json")
    build(*arguments)
    project.recipe.write_text("# only a comment\n" + project.recipe.read_text())
    assert set(build(*arguments).statuses.values()) == {"kept"}
    project.rewrite_recipe('"-g3"', '"-DMORE"')
    assert set(build(*arguments).statuses.values()) == {"built"}
    write_tarball(project.tarball, {"code.c": CODE + "int more;", "main.c": MAIN})
    assert set(build(*arguments).statuses.values()) == {"built"}


def test_an_interrupted_configuration_begins_anew(
    build: Build, project: Project, compiler: str, tmp_path: Path
) -> None:
    """Interrupted in its last step: what was built before is kept, and its programs are ended."""
    output, started = tmp_path / "out", tmp_path / "started"
    sleep = f"sleep 60 & echo $! > {started}; wait"
    wait = f"case $WORDS in O1*) if test ! -e {started}; then {sleep}; fi;; esac"
    project.rewrite_recipe("echo $WORDS;", f"{wait};")
    arguments = project.arguments(output, "--compilers", compiler, "--levels", "O0,O1", "--json")
    code = (
        "import sys, typer; from graphkin.cli.build import register\n"
        "app = typer.Typer(); register(app); app(sys.argv[1:])"
    )
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (started.exists() and started.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    assert not runs(int(started.read_text()))
    assert not (output / "small-1.2" / f"{compiler}-O1.json").exists()
    again = build(*arguments)
    assert again.statuses == {f"{compiler}-O0": "kept", f"{compiler}-O1": "built"}


def test_two_processes_do_not_build_in_one_folder(
    build: Build, project: Project, compiler: str, tmp_path: Path
) -> None:
    (tmp_path / "small-1.2").mkdir()
    with open(tmp_path / "small-1.2" / ".lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StorageError, match="another process is building in"):
            build(*project.arguments(tmp_path, "--compilers", compiler))


# --- Failures -----------------------------------------------------------------------------


def test_a_failure_quotes_its_log_and_stops_nothing_else(
    build: Build, project: Project, compiler: str, tmp_path: Path, capsys: Any
) -> None:
    write_tarball(
        project.tarball, {"code.c": CODE.replace("BROKEN", "__OPTIMIZE__"), "main.c": MAIN}
    )
    arguments = project.arguments(tmp_path, "--compilers", compiler, "--json")
    log = tmp_path / "small-1.2" / f"{compiler}-O1.log"
    with pytest.raises(BuildError) as caught:
        build(*arguments, "--levels", "O1,O0")
    assert str(caught.value) == (f"1 of 2 configurations of small failed: {compiler}-O1; see {log}")
    printed = Printed(*capsys.readouterr())
    assert printed.statuses == {f"{compiler}-O1": "failed", f"{compiler}-O0": "built"}
    assert f"{compiler} ended with exit code 1; the end of {log}:" in printed.err
    assert "broken on purpose" in printed.err
    assert "broken on purpose" in log.read_text()
    assert not log.with_suffix("").exists()
    manifest = json.loads((tmp_path / "small-1.2" / "manifest.json").read_text())
    assert [each["configuration"] for each in manifest["configurations"]] == [f"{compiler}-O0"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('= "run small"', '= "run large"', "the build made no file run large"),
        ('= "libsmall.so"', '= "*.c"', "the build made several files *.c: code.c, main.c"),
        ('"sh", "-c"', '"./absent"', "./absent cannot be run: No such file or directory"),
        ('"-g3"', '"-s"', "libsmall.so has no symbol table: the package strips what it builds"),
        ("echo $WORDS;", "kill -9 $$;", "sh ended with signal 9"),
        ("echo $WORDS;", "true > libsmall.so;", "the build made an empty file libsmall.so"),
        ('= "run small"', '= "outside"', "the build made no file outside"),
    ],
)
def test_what_a_recipe_can_get_wrong(
    build: Build,
    project: Project,
    compiler: str,
    tmp_path: Path,
    old: str,
    new: str,
    reason: str,
    capsys: Any,
) -> None:
    project.rewrite_recipe(old, new)
    project.rewrite_recipe("pwd;", "ln -s /bin/sh outside;")
    with pytest.raises(BuildError):
        build(*project.arguments(tmp_path, "--compilers", compiler, "--levels", "O1"))
    assert reason in capsys.readouterr().err


def test_a_program_that_a_recipe_needs(
    build: Build, project: Project, compiler: str, tmp_path: Path
) -> None:
    project.rewrite_recipe("[outputs]", '[needs]\nno-such-program = "some-package"\n\n[outputs]')
    with pytest.raises(MissingDependencyError, match=r"needs no-such-program.* some-package"):
        build(*project.arguments(tmp_path, "--compilers", compiler))


def test_a_missing_compiler_is_told_before_anything_is_built(
    build: Build, project: Project, compiler: str, tmp_path: Path
) -> None:
    names = f"{compiler},aarch64-linux-gnu-gcc-99"
    with pytest.raises(MissingDependencyError, match="apt-get install gcc-99-aarch64-linux-gnu"):
        build(*project.arguments(tmp_path / "out", "--compilers", names))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--levels", "O4"], "a level is one of O0, O1, .*; got 'O4'"),
        (["--levels", ","], "--levels takes names with commas between them, got ','"),
        (["--compilers", ""], "--compilers takes names with commas between them, got ''"),
        (["large"], "is a recipe for 'small', not for 'large'"),
    ],
)
def test_bad_options(
    build: Build, project: Project, tmp_path: Path, arguments: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        build(*arguments, *project.arguments(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_packages_without_a_recipe(build: Build) -> None:
    with pytest.raises(
        ConfigError, match=r"no recipe for '../x', only for busybox, ffmpeg, .*zlib"
    ):
        build("../x")
    with pytest.raises(ConfigError, match="name a package, or a file with --recipe"):
        build()


def test_spaces_in_the_temporary_folder(
    build: Build, project: Project, compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Makefiles break at them; the error says what to do."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "my folder"))
    with pytest.raises(ConfigError, match="my folder'; set TMPDIR to a folder"):
        build(*project.arguments(tmp_path, "--compilers", compiler))


def test_an_output_that_is_a_file(
    build: Build, project: Project, compiler: str, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StorageError, match=r"cannot write to .*taken/small-1.2: Not a directory"):
        build(*project.arguments(tmp_path / "taken", "--compilers", compiler))


def test_list_of_recipes(build: Build) -> None:
    text = build("--recipes").out
    documents = json.loads(build("--recipes", "--json").out)
    assert {"zlib", "sqlite3", "ffmpeg", "busybox"} <= {each["name"] for each in documents}
    assert len(text.splitlines()) == len(documents)
    zstd = next(each for each in documents if each["name"] == "zstd")
    assert zstd["source_package"] == "libzstd"
