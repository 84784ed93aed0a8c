"""Copies of other projects' code, however they look."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from graphkin.binaries.building.projects.fingerprints import (
    Fingerprint,
    find_copy,
    fingerprint,
    fingerprint_files,
    fingerprint_tree,
)
from graphkin.errors import FormatError

FUNCTION = """
static int {name}_{kind}(struct state *{variable}, const unsigned char *data, size_t length)
{{
    size_t position, total_{kind} = {number};
    if ({variable} == NULL || data == NULL)
        return -{number};
    for (position = 0; position < length; position++) {{
        {variable}->{kind}_count += data[position] ^ {variable}->table_{kind}[position & {number}];
        if ({variable}->{kind}_count > LIMIT_{kind}) /* too much */
            total_{kind} = update_{kind}({variable}, total_{kind}, "{kind} overflows");
    }}
    return finish_{kind}({variable}, total_{kind});
}}
"""
KINDS = ("bits", "words", "frames", "chunks", "blocks", "pages")


def code(name: str, kinds: tuple[str, ...] = KINDS, number: int = 7) -> str:
    parts = [
        FUNCTION.format(name=name, kind=kind, variable="state", number=number) for kind in kinds
    ]
    return "#include <stdio.h>\n" + "".join(parts)


@pytest.fixture
def known(tmp_path: Path) -> dict[str, Fingerprint]:
    return {"zlib": fingerprint(code("inflate")), "other": fingerprint("int other(void) { }")}


def copy_of(text: str, known: dict[str, Fingerprint], tmp_path: Path) -> str | None:
    path = tmp_path / "file.c"
    path.write_text(text)
    original = find_copy(path, known)
    return original and original.project


def test_another_layout_other_comments_numbers_and_function_names(
    known: dict[str, Fingerprint], tmp_path: Path
) -> None:
    text = code("mine", number=12).replace("\n    ", "\n\t // a comment\n").replace(" = ", "=")
    assert copy_of(text, known, tmp_path) == "zlib"


def test_a_rewrite_that_kept_the_names(known: dict[str, Fingerprint], tmp_path: Path) -> None:
    text = "".join(f"void inflate_{kind}(void) {{ run(); }}\n" for kind in KINDS)
    assert copy_of(text, known, tmp_path) == "zlib"


def test_code_of_its_own(known: dict[str, Fingerprint], tmp_path: Path) -> None:
    own = code("mine", ("colours", "shapes", "fonts", "glyphs"))
    assert copy_of(own, known, tmp_path) is None
    # A few lines of another's in much of one's own are no copy.
    kinds = tuple(f"kind{number}" for number in range(20))
    assert copy_of(code("mine", kinds) + code("inflate", KINDS[:1]), known, tmp_path) is None


def test_tables_of_numbers_are_alike_and_no_copies(tmp_path: Path) -> None:
    tables = [f"int {name}[] = {{ {'1, 2, 3, ' * 200} }};" for name in ("first", "second")]
    assert copy_of(tables[1], {"zlib": fingerprint(tables[0])}, tmp_path) is None


def test_names_of_functions() -> None:
    text = """
    #define macro(x) { x }
    int declared(int a);
    static inline char *plain(void (*call)(int), int b) { if (b) { call(b); } while (b) { } }
    old_style(a, b) int a; char *b; { return 0; }
    struct s { int x; }; int value = compute(3);
    int main(void) { return "text(a) {"[0]; }
    """
    assert fingerprint(text).names == {"plain", "old_style"}


def test_code_that_would_keep_a_pattern_busy_for_ever() -> None:
    text = "f(a); " + "b;   \n" * 20_000 + "(((" * 5_000
    start = time.process_time()
    fingerprint(text)
    assert time.process_time() - start < 5


def test_saving(known: dict[str, Fingerprint], tmp_path: Path) -> None:
    path = tmp_path / "folder" / "print.npz"
    known["zlib"].save(path)
    again = Fingerprint.load(path)
    assert again.names == known["zlib"].names
    assert (again.runs == known["zlib"].runs).all()
    path.write_bytes(b"something else")
    with pytest.raises(FormatError, match=re.escape(f"{path} is not a fingerprint")):
        Fingerprint.load(path)


def test_a_tree_is_the_sum_of_its_source_files(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name, prefix in (("a.c", "a"), ("src/b.hpp", "b"), ("notes.txt", "c")):
        (tmp_path / name).write_text(code(prefix))
    names = fingerprint_tree(tmp_path).names
    assert names == {f"{prefix}_{kind}" for prefix in "ab" for kind in KINDS}
    assert fingerprint_files([]).names == frozenset()
