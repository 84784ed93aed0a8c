"""What graphkin makes of real files: functions, coverage, time and memory, as a table.

    python benchmarks/real_files.py [--only NAME...] [--json] [--downloads FOLDER] [--mirror URI]

The files are those of Debian packages and of wheels, downloaded by name; what was downloaded once
is used again. apt gets a private root for each processor, so the machine's settings stay as they
are; only its mirror is used. A file that cannot be downloaded is left out, and the reason is
printed.

Each file is read as ``package.deb!path`` by a process of its own. ``seconds`` is CPU time from the
unpacked member to the last function; ``memory`` is the peak of that process, where an idle one has
about 100 MB. ``coverage`` is the share of the code inside functions, as every command says it, and
``in blocks`` the share that control flow reaches from their starts: constants between functions
are not, nor what only exceptions lead to. The end of the table names every warning: of too little
coverage, and of what was skipped. The exit code is 1 if a file has too little and nothing was said.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

# The backends are imported by the processes that measure: on Linux, the peak of a process is at
# least the memory of the one that started it.

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
STABLE = "bookworm"
KERNEL = "linux-image-"


class Unavailable(Exception):
    """A file that cannot be had, with the reason."""


@dataclass(frozen=True)
class DebianFile:
    """A file of a Debian package."""

    title: str
    package: str
    architecture: str
    member: str
    """Its path; ``{release}`` is that of a kernel, which is in the name of the package."""
    suite: str = STABLE


@dataclass(frozen=True)
class WheelFile:
    """A file of a wheel."""

    title: str
    requirement: str
    platform: str
    member: str


BUSYBOX = "busybox-static"
LXML = "lxml==5.4.0"
FILES: tuple[DebianFile | WheelFile, ...] = (
    *(
        DebianFile("busybox, static", BUSYBOX, architecture, "bin/busybox")
        for architecture in ("amd64", "i386", "arm64", "armhf", "mipsel", "mips64el")
    ),
    DebianFile("busybox, static", BUSYBOX, "riscv64", "usr/bin/busybox", "trixie"),
    DebianFile("busybox, static", BUSYBOX, "ppc64el", "bin/busybox"),
    DebianFile("busybox", "busybox", "ppc64el", "bin/busybox"),
    DebianFile("busybox", "busybox", "arm64", "bin/busybox"),
    DebianFile("busybox", "busybox", "i386", "bin/busybox"),
    DebianFile("mksh, static with musl", "mksh", "amd64", "usr/lib/x86_64-linux-musl/bin/mksh"),
    DebianFile("age, in Go", "age", "amd64", "usr/bin/age"),
    DebianFile("ripgrep, in Rust", "ripgrep", "amd64", "usr/bin/rg"),
    DebianFile(
        "xfs, a kernel module",
        "linux-image-cloud-amd64",
        "amd64",
        "lib/modules/{release}/kernel/fs/xfs/xfs.ko",
    ),
    DebianFile(
        "libclang-cpp, in C++",
        "libclang-cpp14",
        "amd64",
        "usr/lib/llvm-14/lib/libclang-cpp.so.14",
    ),
    WheelFile("lxml, Windows", LXML, "win_amd64", "lxml/etree.cp311-win_amd64.pyd"),
    WheelFile("lxml, Windows", LXML, "win32", "lxml/etree.cp311-win32.pyd"),
    WheelFile("lxml, macOS", LXML, "macosx_10_9_universal2", "lxml/etree.cpython-311-darwin.so"),
)


@dataclass(frozen=True)
class Measure:
    """What reading one file gave, as the process that read it tells."""

    bytes: int
    functions: int
    coverage: float
    """Share of the code inside functions."""
    in_blocks: float
    """Share of the code inside their blocks."""
    seconds: float
    memory_bytes: int
    tried: list[str]
    """What the functions were looked for by."""
    warnings: list[str]

    @property
    def is_silently_bad(self) -> bool:
        """Whether too little was read and nobody was told."""
        from graphkin.binaries.coverage import BOUND

        return not self.warnings and (self.coverage < BOUND or not self.functions)


@dataclass(frozen=True)
class Row:
    """One line of the table; without a measure, the reason for that."""

    title: str
    package: str
    processor: str
    member: str
    measure: Measure | None = None
    reason: str = ""


@dataclass
class Downloads:
    """Packages and wheels in a folder, each downloaded when it is first asked for."""

    folder: Path
    mirror: str | None = None
    """Debian's; that of the machine if it is not named."""
    _failures: dict[Path, str] = field(default_factory=dict)
    """Roots that apt could not fill, with its reasons."""

    def get(self, file: DebianFile | WheelFile) -> Path:
        """The package of a file.

        Raises:
            Unavailable: when it cannot be downloaded.
        """
        if isinstance(file, WheelFile):
            place = self.folder / "wheels" / file.platform / file.requirement
            present = sorted(place.glob("*.whl"))
            return present[0] if present else self._wheel(file, place)
        place = self.folder / f"{file.suite}-{file.architecture}" / file.package
        present = sorted(place.glob("*.deb"))
        return present[0] if present else self._package(file, place)

    def _wheel(self, file: WheelFile, place: Path) -> Path:
        place.mkdir(parents=True, exist_ok=True)
        target = ["--platform", file.platform, "--python-version", "3.11", "--abi", "cp311"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        _run([*pip, "--only-binary=:all:", *target, "--dest", ".", file.requirement], place)
        return _only(place, "*.whl")

    def _package(self, file: DebianFile, place: Path) -> Path:
        apt = self._apt(file.suite, file.architecture)
        package = file.package
        if package.startswith(KERNEL):
            # It depends on the kernel of the day, and holds nothing else.
            control = _run(["apt-cache", *apt, "show", package], self.folder)
            depends = re.search(rf"^Depends: ({KERNEL}\S+)", control, re.M)
            package = depends[1] if depends else package
        place.mkdir(parents=True, exist_ok=True)
        _run(["apt-get", *apt, "download", "--quiet", package], place)
        return _only(place, "*.deb")

    def _apt(self, suite: str, architecture: str) -> list[str]:
        """Options that give apt a root of its own, with the index of one processor in it."""
        if shutil.which("apt-get") is None:
            raise Unavailable("apt-get is not here")
        root = (self.folder / f"{suite}-{architecture}" / "apt").absolute()
        if root in self._failures:
            raise Unavailable(self._failures[root])
        for needed in (root / "lists" / "partial", root / "cache" / "archives" / "partial"):
            needed.mkdir(parents=True, exist_ok=True)
        mirror = self.mirror or _machine_mirror()
        sources = root / "sources.list"
        sources.write_text(f"deb [signed-by={KEYRING}] {mirror} {suite} main\n", encoding="utf-8")
        settings = {
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": root / "lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": root / "cache",
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            # The user that apt gives its downloads to cannot write into a private folder.
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": 1,
        }
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        if not any((root / "lists").glob("*Packages*")):
            try:
                _run(["apt-get", *options, "update", "--quiet", "--error-on=any"], root)
            except Unavailable as error:
                self._failures[root] = str(error)
                raise
        return options


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", help="read only files with one of these names")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--downloads", type=Path, help="folder for packages (the user's cache)")
    parser.add_argument("--mirror", help="Debian's mirror (the machine's)")
    parser.add_argument("--seconds", type=float, default=600.0, help="time for one file (600)")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(asdict(measure(options.measure, options.seconds))))
        return
    from graphkin.binaries.building.debian import default_cache

    folder = (options.downloads or default_cache() / "real-files").absolute()
    downloads = Downloads(folder, options.mirror)
    rows = []
    for file in FILES:
        row = row_of(file)
        if options.only and _names(row).isdisjoint(options.only):
            continue
        print(f"reading {_words(row)}", file=sys.stderr)
        rows.append(measured(row, file, downloads, options.seconds))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        print("\n".join(markdown(rows)))
    sys.exit(any(row.measure is not None and row.measure.is_silently_bad for row in rows))


def row_of(file: DebianFile | WheelFile) -> Row:
    """The line of a file that was not read yet."""
    if isinstance(file, WheelFile):
        return Row(file.title, file.requirement, file.platform, file.member)
    return Row(file.title, file.package, file.architecture, file.member)


def measured(row: Row, file: DebianFile | WheelFile, downloads: Downloads, seconds: float) -> Row:
    """The same with the numbers of the file, or with the reason for having none."""
    try:
        package = downloads.get(file)
        release = package.name.partition("_")[0].removeprefix(KERNEL)
        label = f"{package}!{file.member.format(release=release)}"
        command = [sys.executable, __file__, "--seconds", str(seconds), "--measure", label]
        answer = _run(command, downloads.folder)
    except Unavailable as error:
        return Row(row.title, row.package, row.processor, row.member, reason=str(error))
    measure = Measure(**json.loads(answer.replace(f"{package.parent}/", "")))
    return Row(row.title, package.name, row.processor, row.member, measure)


def measure(label: str, seconds: float) -> Measure:
    """Reads the file in this process; only the container is unpacked by another."""
    from graphkin.binaries.backends.base import Limits
    from graphkin.binaries.backends.choose import open_source
    from graphkin.binaries.coverage import Coverage
    from graphkin.binaries.inputs import Inputs
    from graphkin.errors import GraphkinError

    limits = Limits(seconds=seconds)
    coverages: list[Coverage] = []
    with Inputs(limits) as inputs:
        files = list(inputs.inputs(inputs.files([label])))
        if len(files) != 1:
            reasons = "; ".join([*map(str, inputs.skipped), *inputs.absent])
            raise SystemExit(f"{label} is not one file: {reasons or f'it is {len(files)}'}")
        file = files[0]
        functions = in_blocks = 0
        refusal = []
        start = time.process_time()
        source = open_source(file.path, limits=limits, coverages=coverages)
        try:
            for function in source.functions():
                functions += 1
                in_blocks += sum(block.size for block in function.blocks)
        except GraphkinError as error:
            refusal = [str(error)]
        used = time.process_time() - start
        size = os.path.getsize(file.path)
    low = [coverage.warning() for coverage in coverages if coverage.is_low]
    skipped = [str(skip) for skip in source.skipped]
    code = sum(coverage.code_bytes for coverage in coverages)
    return Measure(
        bytes=size,
        functions=functions,
        coverage=sum(coverage.recovered_bytes for coverage in coverages) / code if code else 0.0,
        in_blocks=in_blocks / code if code else 0.0,
        seconds=used,
        memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        tried=list(dict.fromkeys(clue for coverage in coverages for clue in coverage.tried)),
        warnings=[file.named(text) for text in (*refusal, *low, *skipped)],
    )


def markdown(rows: list[Row]) -> Iterator[str]:
    """The table, and below it what was warned of and what is missing."""
    yield (
        "| file | processor | size | functions | coverage | in blocks | seconds | memory "
        "| warning |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|---|"
    for row in rows:
        measure = row.measure
        if measure is not None:
            yield (
                f"| {row.title} | {row.processor} | {measure.bytes / 1e6:.1f} MB "
                f"| {measure.functions:,} | {measure.coverage:.1%} | {measure.in_blocks:.1%} "
                f"| {measure.seconds:.1f} | {measure.memory_bytes / 1e6:.0f} MB "
                f"| {'yes' if measure.warnings else 'no'} |"
            )
    for row in rows:
        name = f"{row.title}, {row.processor}"
        for text in row.measure.warnings if row.measure is not None else ():
            yield f"\nWarning for {name}: {text}"
        if row.measure is None:
            yield f"\nLeft out: {name}: {row.reason}"


def _names(row: Row) -> set[str]:
    """What ``--only`` takes for a row: whole names, as ``linux-image`` has nothing of ``age``."""
    return {row.title, row.package, row.processor, *re.findall(r"[\w.+-]+", row.title)}


def _words(row: Row) -> str:
    return f"{row.title} ({row.package}, {row.processor})"


def _machine_mirror() -> str:
    """The mirror that the machine gets Debian's packages from."""
    command = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    sites = _run(command, Path("/")).split()
    if not sites:
        raise Unavailable("apt has no mirror here; name one of Debian's with --mirror")
    return next((site for site in sites if site.rstrip("/").endswith("/debian")), sites[0])


def _only(place: Path, pattern: str) -> Path:
    present = sorted(place.glob(pattern))
    if not present:
        raise Unavailable(f"nothing was downloaded to {place}")
    return present[0]


def _run(command: list[str], folder: Path) -> str:
    """The output of a program; its first error is the reason if it fails."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith(("E: ", "ERROR: "))] or lines[-1:]
        reason = errors[0] if errors else f"exit code {done.returncode}"
        raise Unavailable(f"{Path(command[0]).name} failed: {reason}")
    return done.stdout


if __name__ == "__main__":
    main()
