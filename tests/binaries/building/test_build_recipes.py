"""Recipes: what comes with graphkin is sound, and what a user writes is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin.binaries.building import known_recipe, known_recipes, read_recipe
from graphkin.errors import ConfigError, FormatError

GOOD = """
name = "tiny"
about = "for tests"
steps = [["./configure", "{cross}", "--cc={cc}"], ["make", "-j{jobs}", "AR={prefix}ar"]]
cross = ["--host={triplet}", "--machine={machine}"]
[environment]
LEVEL = "-{level}"
[needs]
make = "make"
[outputs]
"libtiny.so" = "lib/*.so"
"""
VALUES = {
    "cc": "gcc-12",
    "level": "O2",
    "jobs": "4",
    "triplet": "aarch64-linux-gnu",
    "machine": "aarch64",
    "prefix": "aarch64-linux-gnu-",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(GOOD)
    return path


def test_placeholders_are_filled_in(file: Path) -> None:
    recipe = read_recipe(file)
    make = ["make", "-j4", "AR=aarch64-linux-gnu-ar"]
    extra = ["--host=aarch64-linux-gnu", "--machine=aarch64"]
    assert recipe.commands(VALUES, cross=True) == [["./configure", *extra, "--cc=gcc-12"], make]
    assert recipe.commands(VALUES, cross=False) == [["./configure", "--cc=gcc-12"], make]
    assert recipe.variables(VALUES) == {"LEVEL": "-O2"}
    assert recipe.source_package == "tiny"


def test_digest_is_of_the_content(file: Path) -> None:
    first = read_recipe(file).digest
    file.write_text("# a comment\n" + GOOD)
    assert read_recipe(file).digest == first
    file.write_text(GOOD.replace("-j{jobs}", "-j1"))
    assert read_recipe(file).digest != first


@pytest.mark.parametrize("name", known_recipes())
def test_recipes_that_come_with_graphkin(name: str) -> None:
    """Each calls the compiler that it is given, and says which programs it needs."""
    recipe = known_recipe(name)
    words = [word for step in recipe.commands(VALUES, cross=True) for word in step]
    assert any("gcc-12" in word for word in (*words, *recipe.variables(VALUES).values()))
    for step in recipe.steps:
        assert step[0].startswith("./") or step[0] in recipe.needs
    assert recipe.about.isascii()
    assert len(recipe.about) < 88


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "tiny"', 'name = "../tiny"', r"name must be letters, .* got '\.\./tiny'"),
        ('name = "tiny"', 'name = "-o"', "name must be letters"),
        ('name = "tiny"', "name = 3", "name must be of type str, got 3"),
        ('name = "tiny"', "", "a recipe needs 'name'"),
        ('about = "for tests"', 'about = "x"\ncolour = "red"', "unknown recipe option 'colour'"),
        ('about = "for tests"', 'about = "x"\ndebian = "a b"', "debian must be letters.* 'a b'"),
        ("{cc}", "{compiler}", "unknown placeholder {compiler} in '--cc={compiler}'; known: cc,"),
        ("-{level}", "-{}", "unknown placeholder {} in '-{}'"),
        ("{triplet}", "{cross}", "unknown placeholder {cross}"),
        ('["make", ', "[5, ", "steps must hold strings, got 5"),
        ('["make", "-j{jobs}", "AR={prefix}ar"]', "[]", r"a step is a list of arguments, got \[\]"),
        ('["make", "-j{jobs}", "AR={prefix}ar"]', '"make all"', "a step is a list of arguments"),
        ('"AR={prefix}ar"', '"a\\u0000b"', "steps holds a zero byte"),
        ('make = "make"', "make = true", "needs must hold strings, got True"),
        ('"libtiny.so" =', '"../libtiny.so" =', "an output's name must be letters"),
        ('"libtiny.so" =', '".hidden" =', "an output's name must be letters"),
        ("lib/*.so", "/etc/passwd", "output libtiny.so must lie in the source, got '/etc/passwd'"),
        ("lib/*.so", "lib/../../x", "output libtiny.so must lie in the source"),
        ('"libtiny.so" = "lib/*.so"', "", "recipe tiny has no outputs"),
        ("[outputs]", "[outputs", "tiny.toml is not valid TOML: "),
    ],
)
def test_bad_recipes(file: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message) as caught:
        read_recipe(file)
    assert str(file) in str(caught.value)


def test_files_that_are_no_recipes(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"cannot read .*absent.toml: No such file"):
        read_recipe(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\0")
    with pytest.raises(ConfigError, match=r"binary.toml is not valid TOML"):
        read_recipe(tmp_path / "binary.toml")
