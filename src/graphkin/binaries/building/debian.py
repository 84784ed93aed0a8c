"""Debian's source packages, got by apt without touching the machine's own settings.

Most machines list binary packages only. A copy of their lists, in which every entry asks for
sources, goes into a cache folder together with the indices that apt gets for it; keys, proxies
and mirrors are those of the machine.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import cmp_to_key
from pathlib import Path

from graphkin._support.files import storing
from graphkin.errors import FormatError, MissingDependencyError

FRESH = 24 * 3600
"""Seconds for which an index is not asked for again."""
FETCHED = "fetched"
"""The empty file whose time tells when the indices were got."""


def default_cache() -> Path:
    """Where downloads are kept: ``graphkin`` in the user's cache folder."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "graphkin"


def fetch(
    package: str,
    cache: Path | None = None,
    note: Callable[[str], None] = lambda text: None,
    version: str = "",
) -> Path:
    """Gets a source package; the path of its ``.dsc`` file.

    Args:
        package: Name of the source package.
        cache: Folder for indices and downloads; what is there is not fetched again.
        note: Is told what takes time, and what went wrong without stopping anything.
        version: Debian's version; by default the newest that can be had.

    Raises:
        MissingDependencyError: without apt.
        FormatError: when there is no such package, or it cannot be downloaded.
    """
    apt = shutil.which("apt-get")
    if apt is None or shutil.which("apt-config") is None:
        raise MissingDependencyError(
            f"apt-get gets Debian's source of {package} and is not here; "
            f"download the source yourself and name it with --source"
        )
    folder = cache or default_cache()
    downloads = folder / "sources"
    base = [apt, *_options(folder / "apt")]
    with storing(f"write to {folder}"):
        downloads.mkdir(parents=True, exist_ok=True)
        _write_lists(folder / "apt")
        _update(base, folder / "apt", note)
    if version:
        return _download(base, folder, package, version, note)
    try:
        return _download(base, folder, package, "", note)
    except DownloadError as error:
        for older in _older_versions(folder / "apt", package, error.version):
            note(f"{error}; taking version {older}")
            with contextlib.suppress(DownloadError):
                return _download(base, folder, package, older, note)
        raise


class DownloadError(FormatError):
    """A source package that apt lists and its mirror does not give, maybe not any more."""

    def __init__(self, message: str, version: str) -> None:
        super().__init__(message)
        self.version = version


def _download(
    base: list[str], folder: Path, package: str, version: str, note: Callable[[str], None]
) -> Path:
    downloads = folder / "sources"
    source = [*base, "source", "--only-source", "-q"]
    requirement = f"{package}={version}" if version else package
    # In another folder than the downloads, because apt is silent about files that are there.
    listed = _run([*source, "--print-uris", requirement], folder / "apt")
    control = re.search(r"^'[^']*' ([^\s/]+\.dsc) ", listed.stdout, re.M)
    if control is None:
        reason = _last_line(listed) or f"apt lists no source of {package}"
        raise FormatError(f"cannot get the source of {package}: {reason}")
    path = downloads / control[1]
    if not path.exists():
        note(f"getting the source of {package}: {path.name}")
    done = _run([*source, "--download-only", requirement], downloads)
    if done.returncode or not path.exists():
        message = f"cannot download the source of {package}: {_last_line(done)}"
        raise DownloadError(message, path.stem.partition("_")[2])
    return path


def _older_versions(folder: Path, package: str, newest: str) -> list[str]:
    """The versions that apt lists below ``newest``, which has no epoch; the newest of them first.

    A mirror may have the index of a new version before its files, or have lost them.
    """
    command = ["apt-cache", *_options(folder), "showsrc", "--only-source", package]
    answer = _run(command, folder).stdout
    versions = set(re.findall(r"^Version: (\S+)$", answer, re.M))
    older = [version for version in versions if version.rpartition(":")[2] != newest]

    def order(left: str, right: str) -> int:
        done = _run(["dpkg", "--compare-versions", left, "gt", right], folder)
        return -1 if done.returncode == 0 else 1

    return sorted(older, key=cmp_to_key(order))


def as_sources(text: str, deb822: bool) -> str:
    """A list of apt's with every entry turned into one for source packages.

    Args:
        text: Content of a file in ``/etc/apt``.
        deb822: Whether it is of the kind with fields, ``.sources``, or with lines, ``.list``.
    """
    if deb822:
        return re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.M | re.I)
    lines = [line.strip() for line in text.splitlines()]
    entries = [f"deb-src{line[3:]}" for line in lines if re.match(r"deb[ \t]", line)]
    sources = [line for line in lines if re.match(r"deb-src[ \t]", line)]
    return "".join(f"{line}\n" for line in dict.fromkeys(sources + entries))


def _options(folder: Path) -> list[str]:
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": folder / "parts",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        # The user that apt gives its downloads to cannot write into a private folder.
        "APT::Sandbox::User": "root",
        "Acquire::Retries": 3,
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def _write_lists(folder: Path) -> None:
    """Copies the machine's lists; indices of other lists count as outdated."""
    parts = folder / "parts"
    for needed in (parts, folder / "lists" / "partial", folder / "cache" / "archives" / "partial"):
        needed.mkdir(parents=True, exist_ok=True)
    lists = {
        f"{number}-{path.name}": as_sources(_read(path), path.suffix == ".sources")
        for number, path in enumerate(_machine_lists())
    }
    if not lists:
        raise FormatError("apt has no lists here that name a mirror; give the code with --source")
    present = {path.name: _read(path) for path in parts.iterdir()}
    if present == lists:
        return
    (folder / FETCHED).unlink(missing_ok=True)
    for name in present.keys() - lists.keys():
        (parts / name).unlink()
    for name, text in lists.items():
        (parts / name).write_text(text, encoding="utf-8")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _machine_lists() -> list[Path]:
    """The files in which the machine's mirrors are named."""
    settings = ["LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d"]
    answer = _run(["apt-config", "shell", *settings], Path("/")).stdout
    folders = dict(re.findall(r"^(\w+)='([^']*)'", answer, re.M))
    parts = Path(folders.get("PARTS", "/etc/apt/sources.list.d"))
    lists = [Path(folders.get("LIST", "/etc/apt/sources.list"))]
    if parts.is_dir():
        lists += sorted(path for path in parts.iterdir() if path.suffix in (".list", ".sources"))
    return [path for path in lists if path.is_file()]


def _update(base: list[str], folder: Path, note: Callable[[str], None]) -> None:
    """Gets the indices, unless they are fresh. Old ones will do when the network does not."""
    fetched = folder / FETCHED
    had_before = fetched.exists()
    if had_before and time.time() - fetched.stat().st_mtime < FRESH:
        return
    note("getting the list of Debian's source packages")
    done = _run([*base, "update", "-q", "--error-on=any"], folder)
    if done.returncode == 0:
        fetched.touch()
    elif had_before:
        note(f"using an old list of source packages: {_last_line(done)}")
    else:
        raise FormatError(
            f"cannot get the list of Debian's source packages: {_last_line(done)}; "
            f"without a network give the code with --source"
        )


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    )


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    """The last error that apt gave."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("E: ")]
    return lines[-1].removeprefix("E: ") if lines else ""
