"""The bundled samples: what is in them, that they are what their sources say, and what they do."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphkin.binaries import Function, samples
from graphkin.binaries.backends.choose import open_source
from graphkin.errors import ConfigError, MissingDependencyError
from tests.binaries.samples.sample_library import runs_samples
from tests.scripts import script

build = script("tools/samples/build.py")

FIXED_LIBRARY = "gcc-O2/libkinbeat-fixed.so"
FILES = sorted(file for file in samples.ELF.rglob("*") if file.suffix != ".json" and file.is_file())


def functions(file: Path) -> dict[int, Function]:
    return {function.address: function for function in open_source(file).functions()}


def by_name(file: Path, name: str) -> Function:
    return next(function for function in functions(file).values() if function.name == name)


def large(file: Path) -> list[Function]:
    return [function for function in functions(file).values() if len(function.blocks) >= 5]


def test_all_files_together_are_small() -> None:
    assert sum(file.stat().st_size for file in FILES) < 1_000_000


def test_every_file_is_named() -> None:
    assert {*samples.KNOWN, *build.FIRMWARES, *samples.FIXED_LIBRARIES} == set(FILES)
    assert {samples.FIRMWARE, *samples.CROSS_FIRMWARES.values()} < set(build.FIRMWARES)


def test_the_readme_has_the_hash_of_every_file() -> None:
    text = (Path(build.__file__).parent / "README.md").read_text(encoding="utf-8")
    listed = dict(reversed(pair) for pair in re.findall(r"^([0-9a-f]{64})  (.+)$", text, re.M))
    names = {file.relative_to(samples.ELF).as_posix(): file for file in FILES}
    assert listed == {
        name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in names.items()
    }


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(samples.ELF).as_posix())
def test_no_file_tells_where_it_was_made(file: Path) -> None:
    data = file.read_bytes()
    for position in (b"/work", b"/tmp", b"/home", b"/root", b"/usr", b"/var", b".c:"):
        assert position not in data


@pytest.mark.parametrize("name", samples.BUILDS)
def test_a_build_has_many_functions_of_size(name: str) -> None:
    recovered = [f for file in samples.KNOWN if file.parent.name == name for f in large(file)]
    assert len(recovered) >= 100
    assert sum(len(function.blocks) >= 15 for function in recovered) >= 60
    assert all(name.split("-")[0] in function.compiler.lower() for function in recovered)


def test_the_tagged_files_hold_the_vulnerable_function_alone() -> None:
    tagged = [file for file in samples.KNOWN if samples.tags(file)]
    assert len(tagged) == len(samples.BUILDS)
    for file in tagged:
        assert samples.tags(file) == {"cve": "DEMO-2014-0001"}
        assert [function.name for function in large(file)] == [samples.VULNERABLE[1]]


@pytest.mark.parametrize("file", build.FIRMWARES, ids=lambda f: f.name)
def test_a_firmware_is_stripped_and_its_functions_are_found(file: Path) -> None:
    recovered = functions(file)
    assert {function.name for function in recovered.values()} == {f"sub_{a:x}" for a in recovered}
    assert recovered.keys() == samples.true_names(file.name).keys()


@pytest.mark.parametrize("file", build.FIRMWARES, ids=lambda f: f.name)
def test_a_firmware_has_the_vulnerable_function_and_others(file: Path) -> None:
    truth = samples.true_names(file.name)
    recovered = functions(file)
    (address,) = [address for address, name in truth.items() if name == samples.VULNERABLE[1]]
    assert 15 <= len(recovered[address].blocks) <= 40
    known = {f.name for file in samples.KNOWN for f in functions(file).values()}
    size = {truth[address]: len(function.blocks) for address, function in recovered.items()}
    assert sum(name in known and blocks >= 5 for name, blocks in size.items()) >= 30
    assert sum(name not in known and blocks >= 5 for name, blocks in size.items()) >= 20


def test_no_library_is_of_the_firmwares_build() -> None:
    compiler = build.FIRMWARES[samples.FIRMWARE].compiler.split("-")[0]
    assert f"{compiler}-{build.FIRMWARE_LEVEL}" not in samples.BUILDS
    assert compiler in next(iter(functions(samples.FIRMWARE).values())).compiler


def test_no_library_is_for_a_processor_of_the_other_firmwares() -> None:
    known = {function.architecture for file in samples.KNOWN for function in large(file)}
    assert known == {"x86-64"}
    for processor, file in samples.CROSS_FIRMWARES.items():
        assert {f.architecture for f in large(file)} == {processor.lower()}


def test_the_fixed_function_has_another_flow() -> None:
    file, name = samples.VULNERABLE
    before, after = by_name(samples.path(file), name), by_name(samples.path(FIXED_LIBRARY), name)
    assert len(after.blocks) > len(before.blocks)


def test_an_unknown_sample_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"no sample 'gatway'.*gateway.*gcc-O2/libkinbeat\.so"):
        samples.path("gatway")
    for name in ("../__init__.py", str(samples.FIRMWARE), "gcc-O2/../gateway"):
        with pytest.raises(ConfigError, match="no sample"):
            samples.path(name)


class Gateway:
    """A running firmware, for another processor in an emulator."""

    def __init__(self, file: Path, folder: Path, *emulator: str) -> None:
        # A wheel keeps no permission to execute.
        program = folder / file.name
        shutil.copy(file, program)
        program.chmod(0o755)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*emulator, program], stdin=pipe, stdout=pipe)

    def ask(self, kind: str, content: bytes) -> bytes:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(kind.encode() + len(content).to_bytes(2, "big") + content)
        self.process.stdin.flush()
        head = self.process.stdout.read(3)
        return self.process.stdout.read(int.from_bytes(head[1:], "big"))


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[tuple[Gateway, Gateway]]:
    pair = Gateway(samples.FIRMWARE, tmp_path), Gateway(build.FIXED_FIRMWARE, tmp_path)
    yield pair
    for gateway in pair:
        gateway.process.communicate(timeout=10)


def heartbeat(declared: int, payload: bytes) -> bytes:
    return b"\x01" + declared.to_bytes(2, "big") + payload + bytes(16)


@runs_samples
def test_both_firmwares_answer_an_honest_heartbeat(gateways: tuple[Gateway, Gateway]) -> None:
    for gateway in gateways:
        reply = gateway.ask("H", heartbeat(5, b"hello"))
        assert reply[:8] == b"\x02\x00\x05hello"
        assert len(reply) == 3 + 5 + 16


def stolen_password(gateway: Gateway) -> bytes:
    """What a reply to a record that declares more than it has gives away."""
    leaked = gateway.ask("H", heartbeat(600, b"hello"))
    return leaked.partition(b"admin password: ")[2].partition(b"\0")[0]


def login(gateway: Gateway, password: bytes) -> bytes:
    return gateway.ask("T", b"login admin " + base64.b64encode(password))


@runs_samples
def test_a_lying_heartbeat_leaks_the_secret_of_the_vulnerable_firmware_only(
    gateways: tuple[Gateway, Gateway],
) -> None:
    vulnerable, fixed = gateways
    assert stolen_password(fixed) == b""
    password = stolen_password(vulnerable)
    assert password
    assert login(vulnerable, b"guess") == b"refused"
    assert login(vulnerable, password) == b"welcome"


@pytest.mark.parametrize("processor", samples.CROSS_FIRMWARES)
def test_the_firmware_for_another_processor_runs_and_leaks_its_secret(
    processor: str, tmp_path: Path
) -> None:
    emulator = shutil.which(f"qemu-{processor.lower()}")
    if emulator is None:
        pytest.skip(f"qemu-user is not installed: no qemu-{processor.lower()}")
    gateway = Gateway(samples.CROSS_FIRMWARES[processor], tmp_path, emulator)
    assert gateway.ask("H", heartbeat(5, b"hello"))[:8] == b"\x02\x00\x05hello"
    assert login(gateway, stolen_password(gateway)) == b"welcome"
    assert gateway.ask("T", b"set 7 0x2a") == b"register 7 = 42"
    gateway.process.communicate(timeout=10)
    assert gateway.process.returncode == 0


@runs_samples
def test_the_firmware_serves_its_other_protocols(gateways: tuple[Gateway, Gateway]) -> None:
    for gateway in gateways:
        assert gateway.ask("I", b"[alias]\nlevel = 7 # of the tank\n") == b"line 0"
        assert gateway.ask("T", b"alias level") == b"level is register 7"
        assert gateway.ask("T", b"set 7 0x2a") == b"register 7 = 42"
        page = gateway.ask("W", b"GET /a/../register?x=1&n=7 HTTP/1.1\r\nHost: kin\r\n\r\n")
        assert page == b'HTTP/1.1 200 OK\r\n\r\n{"value": 42}'
        topic, payload = b"device/9/command", b'{"id": [1, 2], "command": "wait 1m30s"}'
        body = len(topic).to_bytes(2, "big") + topic + payload
        assert gateway.ask("Q", b"\x30" + bytes([len(body)]) + body) == b"waited 90000 ms"


def require(*programs: str) -> None:
    """Skips a test where these are not the versions that made the samples."""
    try:
        build.check_versions(*programs)
    except MissingDependencyError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", samples.BUILDS)
def test_the_sources_make_the_libraries_byte_for_byte(name: str, tmp_path: Path) -> None:
    require(build.COMPILERS[name.split("-")[0]], "ld")
    made = build.build_libraries(tmp_path, name)
    assert {file.name for file in made} == {f.name for f in FILES if f.parent.name == name}
    for file in made:
        assert file.read_bytes() == samples.path(f"{name}/{file.name}").read_bytes()


@pytest.mark.parametrize("file", build.FIRMWARES, ids=lambda f: f.name)
def test_the_sources_make_a_firmware_byte_for_byte(file: Path, tmp_path: Path) -> None:
    toolchain = build.FIRMWARES[file]
    require(*toolchain)
    names = build.build_firmware(tmp_path / file.name, toolchain.compiler)
    assert (tmp_path / file.name).read_bytes() == file.read_bytes()
    assert names == samples.true_names(file.name)
