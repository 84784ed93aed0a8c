"""Source code: a folder, a tarball or a Debian source package, with a version and a hash."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from graphkin._support.files import PathLike, read_file
from graphkin.errors import FormatError, MissingDependencyError

VERSION = re.compile(r"[-_]v?(\d[A-Za-z0-9.+~]*)")
ENDINGS = re.compile(r"(\.orig)?\.(tar(\.\w+)?|tgz|tbz2?|txz|dsc)$")
UNVERSIONED = "local"


@dataclass(frozen=True)
class Source:
    """Where the code is, and which code it is."""

    path: Path
    """A folder, a tarball or a ``.dsc`` file."""
    version: str
    """The upstream version: ``5.1.9`` of Debian's ``7:5.1.9-0+deb12u1``."""
    digest: str
    """SHA-256 of the file, or of all files of a folder."""

    @property
    def full_version(self) -> str:
        """Debian's version, ``7:5.1.9-0+deb12u1``, where the code is Debian's."""
        if self.path.suffix != ".dsc":
            return self.version
        field = re.search(rb"^Version:[ \t]*(\S+)", read_file(self.path), re.M)
        return field[1].decode() if field else self.version

    def unpack(self, folder: Path) -> Path:
        """The root of the code: in ``folder``, or where it is if it is a folder already."""
        if self.path.is_dir():
            return self.path
        target = folder / "source"
        if self.path.suffix == ".dsc":
            _extract_debian(self.path, target)
            return target
        return _extract_tarball(self.path, target)


def open_source(path: PathLike) -> Source:
    """Reads version and hash of a source.

    Raises:
        FormatError: for what is neither a folder nor a readable file.
    """
    file = Path(path).absolute()
    if file.is_dir():
        return Source(file, _version(file.name), _hash_folder(file))
    content = read_file(file)
    if file.suffix == ".dsc":
        return Source(file, _debian_version(content, file), hashlib.sha256(content).hexdigest())
    version = _version(ENDINGS.sub("", file.name))
    return Source(file, version, hashlib.sha256(content).hexdigest())


def _version(stem: str) -> str:
    versions = VERSION.findall(stem)
    return versions[-1].rstrip(".") if versions else UNVERSIONED


def _debian_version(content: bytes, file: Path) -> str:
    field = re.search(rb"^Version:[ \t]*(?:\d+:)?([A-Za-z0-9.+~-]+)[ \t]*\r?$", content, re.M)
    if field is None:
        raise FormatError(f"{file} names no version; is it a Debian source control file?")
    whole = field[1].decode()
    return whole.rpartition("-")[0] or whole


def _hash_folder(folder: Path) -> str:
    """A hash of the names and contents below a folder; those of version control do not count."""
    digest = hashlib.sha256()
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in sorted(names + links):
            path = Path(root, name)
            inside = path.relative_to(folder)
            link = os.readlink(path).encode() if path.is_symlink() else None
            if link is None and not path.is_file():
                continue  # a socket or a pipe is not source code
            content = hashlib.sha256(read_file(path) if link is None else b"link " + link)
            digest.update(os.fsencode(inside) + b"\0" + content.digest())
    return digest.hexdigest()


def _extract_tarball(path: Path, target: Path) -> Path:
    try:
        with tarfile.open(path) as archive:
            # The filter refuses members that would land outside, devices and the like.
            archive.extractall(target, filter="data")
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        # The lines after the first tell how each way of compression failed.
        reason = str(error).partition("\n")[0].rstrip(":")
        raise FormatError(f"cannot unpack {path}: {reason}; give a folder or a tarball") from error
    inside = list(target.iterdir()) if target.is_dir() else []
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else target


def _extract_debian(path: Path, target: Path) -> None:
    program = shutil.which("dpkg-source")
    if program is None:
        raise MissingDependencyError(
            "dpkg-source unpacks Debian's source packages; install it with: "
            "apt-get install dpkg-dev"
        )
    # It checks the hashes that the .dsc lists. Without the maintainer's key it only warns of the
    # signature: a file that apt got is vouched for by the signed index.
    command = [program, "--extract", str(path), str(target)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd=path.parent)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise FormatError(f"cannot unpack {path}: {said[-1] if said else 'dpkg-source failed'}")
