"""Hashes of the packages that the Makefile installs: written once, checked at every installation.

    python tools/wheel_hashes.py write              # hashes.txt, from the index that pip uses
    python tools/wheel_hashes.py check REPORT       # what pip installed, by its own report

pip checks hashes only where every requirement has one, which a package that is installed in place
cannot have. So it installs the versions of ``constraints.txt`` and says in a report what it
downloaded (``pip install --report``). It takes wheels only, whose installation runs nothing of
them, and the Makefile ends before anything else does. A file that lies on this machine was put
there by its owner, and passes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit
from urllib.request import urlopen

from pip._internal.models.index import PyPI

ROOT = Path(__file__).parents[1]
PINS, HASHES = ROOT / "constraints.txt", ROOT / "hashes.txt"
HEADER = """\
# SHA-256 of the wheels of the packages in constraints.txt, as the index lists them.
# python tools/wheel_hashes.py write
"""
PYTHONS = re.compile(r"(?:\d\w*-)?(?:cp31[1-9]-|cp3\d+-abi3-|[\w.]*py3\w*-)")
"""Tags of wheels for the versions of Python that graphkin runs on, as far as a name tells."""
PLATFORMS = re.compile(r"any|manylinux\w*(?:x86_64|aarch64)|macosx|win_amd64|linux_x86_64")
SECONDS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=["write", "check"])
    parser.add_argument("reports", nargs="*", type=Path, metavar="REPORT")
    options = parser.parse_args()
    if options.action == "write":
        HASHES.write_text("".join([HEADER, *_lines(pins())]), encoding="utf-8")
        return
    wrong = [line for report in options.reports for line in problems(report, known(HASHES))]
    if wrong:
        sys.exit("\n".join(["these packages are not what hashes.txt says:", *wrong]))


def pins() -> dict[str, str]:
    """Versions by package."""
    lines = PINS.read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonical(name): version for name, version in pairs}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def known(file: Path) -> dict[str, set[str]]:
    """Hashes by ``package==version``."""
    hashes: dict[str, set[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            package, digest = line.split()[:2]
            hashes.setdefault(package, set()).add(digest)
    return hashes


def problems(report: Path, hashes: dict[str, set[str]]) -> Iterator[str]:
    """A line for each package of pip's report whose file is another."""
    for item in json.loads(report.read_text(encoding="utf-8"))["install"]:
        source = item["download_info"]
        if urlsplit(source["url"]).scheme == "file":
            continue
        own = f"{canonical(item['metadata']['name'])}=={item['metadata']['version']}"
        digest = source.get("archive_info", {}).get("hashes", {}).get("sha256", "no hash")
        if digest not in hashes.get(own, ()):
            yield f"{own}: {digest}"


def _lines(versions: dict[str, str]) -> Iterator[str]:
    index = _index()
    for package, version in versions.items():
        links = _Links()
        with urlopen(f"{index}/{package}/", timeout=SECONDS) as answer:
            links.feed(answer.read().decode())
        files = sorted(name for name in links.hashes if _is_wanted(name, version))
        if not files:
            sys.exit(f"the index has no file of {package} {version}")
        for name in files:
            yield f"{package}=={version} {links.hashes[name]} {name}\n"


def _is_wanted(name: str, version: str) -> bool:
    """Whether a file is of this version, and of use on the machines that we know."""
    _, found, rest = name.partition(f"-{version}-")
    is_wheel = bool(found) and name.endswith(".whl")
    return is_wheel and bool(PYTHONS.match(rest) and PLATFORMS.search(rest))


def _index() -> str:
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    own = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return (own or PyPI.simple_url).rstrip("/")


class _Links(HTMLParser):
    """The files of an index's page on a package, with their hashes."""

    def __init__(self) -> None:
        super().__init__()
        self.hashes: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address, fragment = urldefrag(dict(attrs).get("href") or "")
        name = unquote(address.rpartition("/")[2])
        if tag == "a" and fragment.startswith("sha256="):
            self.hashes[name] = fragment.removeprefix("sha256=")


if __name__ == "__main__":
    main()
