"""What a patch touched, and what of it can be seen."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.paths import REPOSITORY
from tests.scripts import script

SOURCE = """
#define GREETING %(greeting)s
int puts(const char *);
struct box { int width, height; };
static int busy(const struct box *b) { return b->width == 1 || b->width == 3; }
int commented(int n) { %(comment)s return n * 3; }
int unused(int n) {
#ifdef NEVER
  %(never)s
#endif
  return n * 5;
}
int rewritten(const struct box *b) { if (%(condition)s) return 7; return b->height; }
int repaired(const int *p, int n) { %(check)s return p[n & 15]; }
int greeting(void) { return puts(GREETING); }
int line(int n) { return n == __LINE__ ? puts("line") : 0; }
static inline int helper(int n) { return n * %(factor)s; }
int calling(int n) { return helper(n) + 1; }
int kept(int n) { return n - 9; }
"""
OLD = {
    "greeting": '"hello"',
    "comment": "",
    "never": "return 0;",
    "condition": "b->width == 1 || b->width == 3",
    "check": "",
    "factor": "11",
}
NEW = {
    "greeting": '"welcome"',
    "comment": "/* times\n three */",
    "never": "return 1;",
    "condition": "busy(b)",
    "check": "if (n > 15) return 0;",
    "factor": "13",
}


@pytest.fixture(scope="module")
def truth() -> ModuleType:
    return script("experiments/version_truth.py")


@pytest.fixture
def builds(gcc: str, tmp_path: Path, truth: ModuleType) -> list[object]:
    made = []
    for name, parts in (("old", OLD), ("new", NEW)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "unit.c").write_text(SOURCE % parts)
        command = [gcc, "-O2", "-g", "-save-temps=obj", "-shared", "-fPIC", "unit.c", "-o", "unit"]
        subprocess.run(command, cwd=folder, check=True)
        made.append(truth.Build(folder / "unit", folder))
    return made


def test_what_a_patch_touched(builds: list[object], truth: ModuleType, gcc: str) -> None:
    old, new = builds
    names = old.functions.keys() & new.functions.keys()  # type: ignore[attr-defined]
    touched = {name for name in names if old.texts(name) != new.texts(name)}  # type: ignore[attr-defined]
    assert {"kept", "commented", "unused", "line"} <= names
    assert touched == {"rewritten", "repaired", "greeting", "calling"}
    traceless = {name for name in touched if truth.leaves_no_trace(old, new, name, gcc)}
    assert traceless == {"rewritten"}


def test_the_script_counts_what_a_diff_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "experiments"))
    versions = script("experiments/versions.py")
    said = {"a": "same", "b": "identical", "c": "changed", "d": "removed"}
    assert versions.counted(said, versions.KEPT) == {
        "functions": 4,
        "right": 2,
        "others": {"c": "changed", "d": "removed"},
    }
