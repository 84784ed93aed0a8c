"""Lists of packages, and what is wrong with some."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin.binaries.building.projects import read_package_list
from graphkin.binaries.building.projects.toolchains import NAME, TRIPLETS
from graphkin.errors import ConfigError
from tests.paths import REPOSITORY

LIST = """
held_out = ["zlib"]

[held_out_names]
libtirpc = ["xdr_bool"]

[configurations]
few = ["x86_64-gcc-O0", "mipsel-gcc-O2"]

[[packages]]
name = "libogg"
configurations = "few"

[[packages]]
name = "tcl8.6"
configurations = ["arm-gcc-O1"]
folder = "unix"
version = "8.6.13+dfsg-2"
source = "code/tcl"
leave_out = ["*/tclTest.c"]
"""


def read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "list.toml"
    path.write_text(text)
    read_package_list(path)


def test_a_list(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text(LIST)
    packages = read_package_list(path)
    assert packages.held_out == ["zlib"]
    assert packages.held_out_names == {"libtirpc": ["xdr_bool"]}
    first, second = packages.packages
    assert (first.name, first.folder) == ("libogg", ".")
    assert first.configurations == ["x86_64-gcc-O0", "mipsel-gcc-O2"]
    assert second.source == str(tmp_path / "code" / "tcl")
    assert (second.folder, second.version) == ("unix", "8.6.13+dfsg-2")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"tcl8.6"', '"libogg"', "libogg is there twice"),
        ('"tcl8.6"', '"zlib"', "zlib is a package to build and held out at once"),
        ('"tcl8.6"', '"../x"', "letters, digits"),
        ('= "few"', '= "many"', "there are no configurations 'many'; known: few"),
        ('"unix"', '"/etc"', "folder of tcl8.6 must lie in its source, got '/etc'"),
        ('folder = "unix"', 'system = "waf"', "system of tcl8.6 must be one of autotools, .*'waf'"),
        ('folder = "unix"', "options = [1]", "options of tcl8.6 must hold strings, got 1"),
        ('folder = "unix"', "foldr = 1", "unknown package option 'foldr'"),
        ('folder = "unix"', "folder = 1", "folder must be of type str"),
        ('["xdr_bool"]', '"xdr"', "held_out_names must be a table of lists"),
        ("held_out", "heldout", "unknown key 'heldout'; known: configurations, packages"),
        ('["zlib"]', '"zlib"', "held_out must be a list of names, got 'zlib'"),
        ('name = "libogg"', "", "a package needs 'name'"),
        ("[[packages]]", "[packages", "is not valid TOML"),
    ],
)
def test_what_a_list_can_get_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in LIST
    with pytest.raises(ConfigError, match=rf"list.toml.*{message}"):
        read(tmp_path, LIST.replace(old, new, 1))


def test_our_own_list_has_at_least_100_projects_and_holds_the_tested_out() -> None:
    """Test, validation and reserved projects, by the names of Debian's source packages."""
    packages = read_package_list(REPOSITORY / "experiments" / "projects.toml")
    assert len(packages.packages) >= 100
    tested = "mbedtls libxml2 opus libevent libarchive tiff pcre2 jansson flac c-ares"
    reserved = (
        "busybox curl dnsmasq dropbear giflib gnutls28 wpa json-c lcms2 libcoap3 libexif libgit2 "
        "libmicrohttpd libmodbus libssh2 libtirpc libusb-1.0 libwebp lighttpd mosquitto nettle "
        "nginx openssl openvpn popt sqlite3 unbound zlib"
    )
    assert set(tested.split()) | set(reserved.split()) <= set(packages.held_out) | set(
        packages.held_out_names
    )
    configurations = {name for each in packages.packages for name in each.configurations}
    matches = [NAME.fullmatch(name) for name in configurations]
    assert {match[1] for match in matches if match} == TRIPLETS.keys() - {"mips", "ppc", "ppc64le"}
    assert {match[4] for match in matches if match} == {"O0", "O1", "O2", "O3"}
    assert all(len(each.configurations) == 8 for each in packages.packages)
