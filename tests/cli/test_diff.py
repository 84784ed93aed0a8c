"""``diff`` as a person types it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

import graphkin
from graphkin.binaries.samples.bundled import path
from graphkin.cli.diff import MIN_PROBABILITY
from graphkin.cli.exit_codes import FOUND
from graphkin.library.diff.diff import MIN_PROBABILITY as DEFAULT
from graphkin.results.document import Diff, schema_of
from tests.binaries.compiling import Compile
from tests.command_line import Graphkin

OLD = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct list { struct list *next; int key; char name[24]; };
struct list *find(struct list *l, int key) {
    for (; l; l = l->next) if (l->key == key) return l;
    fprintf(stderr, "no key %d\\n", key);
    return 0;
}
struct list *push(struct list *l, int key, const char *name) {
    struct list *n = malloc(sizeof *n);
    if (!n) abort();
    n->next = l; n->key = key;
    strncpy(n->name, name, sizeof n->name);
    return n;
}
unsigned hash(const char *s) {
    unsigned h = 5381;
    while (*s) { h = h * 33 + (unsigned char)*s++; if (h > 0x7fffffff) h ^= 0xdeadbeef; }
    return h;
}
int parse(const char *text, int *out, int most) {
    int count = 0;
    while (*text && count < most) {
        if (*text == ';') { text++; continue; }
        if (*text < '0' || *text > '9') { puts("bad digit"); return -1; }
        out[count++] = *text++ - '0';
    }
    return count;
}
int total(struct list *l, const char *text) {
    int values[16], count = parse(text, values, 16), sum = 0;
    for (int i = 0; i < count; i++) { struct list *f = find(l, values[i]); if (f) sum += f->key; }
    printf("total %d of %s\\n", sum, text);
    return sum;
}
int retired(int x) { while (x > 100) { x /= 3; printf("%d down\\n", x); } return x; }
"""
CHANGES = {
    "strncpy(n->name, name, sizeof n->name);": "strncpy(n->name, name, sizeof n->name - 1); "
    "n->name[23] = 0;",
    'int retired(int x) { while (x > 100) { x /= 3; printf("%d down\\n", x); } return x; }': (
        "int recent(const char *s) { int n = 0; for (; *s; s++) if (*s == 37) { n += 17; "
        'fputs("per cent", stdout); } return n; }'
    ),
}


@pytest.fixture
def versions(compile_c: Compile) -> tuple[Path, Path]:
    """Two versions of a library by one compiler, the new one stripped."""
    source = OLD
    for before, after in CHANGES.items():
        assert before in source
        source = source.replace(before, after)
    flags = ("-O2", "-shared", "-fPIC")
    old = compile_c(OLD, *flags, name="old.so")
    new = compile_c("int first(int x) { return x ^ 77; }" + source, *flags, name="new.so")
    return old, new


def test_two_versions_of_a_library(run: Graphkin, versions: tuple[Path, Path]) -> None:
    outcome = run("diff", *versions, "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    jsonschema.validate(document, schema_of("diff"))
    diff = Diff.model_validate(document)
    assert diff.is_one_kind_of_build
    verdicts = {pair.left.function: (pair.right.function, pair.verdict) for pair in diff.pairs}
    for name in ("find", "hash", "parse", "total"):
        assert verdicts[name] == (name, "identical")
    assert verdicts["push"] == ("push", "changed")
    changed = next(pair for pair in diff.pairs if pair.left.function == "push")
    assert changed.blocks is not None
    assert changed.blocks.changed or changed.blocks.added
    assert "retired" in {function.function for function in diff.removed}
    assert {"recent", "first"} <= {function.function for function in diff.added}


def test_no_function_is_in_two_pairs(run: Graphkin, versions: tuple[Path, Path]) -> None:
    document = json.loads(run("diff", *versions, "--json", "--min-probability", "0").out)
    for side in ("left", "right"):
        addresses = [pair[side]["address"] for pair in document["pairs"]]
        assert len(set(addresses)) == len(addresses)
        alone = [item["address"] for item in document["removed" if side == "left" else "added"]]
        assert not set(alone) & set(addresses)
        assert len(addresses) + len(alone) == document[side]["functions"]


def test_other_levels_and_a_stripped_file(run: Graphkin, compile_c: Compile) -> None:
    old = compile_c(OLD, "-O0", "-shared", "-fPIC", name="old.so")
    new = compile_c(OLD, "-O2", "-shared", "-fPIC", "-fno-inline", name="new.so")
    listed = json.loads(run("show", new, "--json").out)["functions"]
    names = {item["address"]: item["function"] for item in listed}
    subprocess.run(["strip", str(new)], check=True)
    document = json.loads(run("diff", old, new, "--json").out)
    assert not document["is_one_kind_of_build"]
    pairs = {
        pair["left"]["function"]: names.get(pair["right"]["address"]) for pair in document["pairs"]
    }
    for name in ("find", "push", "hash", "parse", "total", "retired"):
        assert pairs[name] == name


def test_the_table_says_what_changed(run: Graphkin, versions: tuple[Path, Path]) -> None:
    outcome = run("diff", *versions)
    assert outcome.code == 0
    assert "changed" in outcome.out
    assert "push" in outcome.out
    last = outcome.out.strip().splitlines()[-1]
    assert last.endswith("(one kind of build)")
    assert "1 changed" in last
    assert "pairing functions" in outcome.err


def test_rows_for_a_spreadsheet(run: Graphkin, versions: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "diff.csv"
    assert run("diff", *versions, "--format", "csv", "--output", file).out == ""
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    by_name = {row["left_function"] or row["right_function"]: row for row in rows}
    assert by_name["push"]["verdict"] == "changed"
    assert by_name["retired"]["verdict"] == "removed"
    assert by_name["recent"]["verdict"] == "added"
    assert None not in by_name["recent"].values()


def test_exit_code(run: Graphkin, versions: tuple[Path, Path]) -> None:
    old, new = versions
    assert run("diff", old, new, "--exit-code").code == FOUND
    assert run("diff", old, old, "--exit-code").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{old}:hash", "{old}"), "graphkin compare two functions"),
        (("{old}", "missing.so"), "missing.so"),
        (("{old}", "{old}", "--format", "pdf"), "choose one of table, json, csv"),
        (("{old}", "{old}", "--model", "mnemonics"), "such as functions"),
        (("{old}", "{old}", "--json", "--format", "csv"), "ask for different things"),
    ],
)
def test_what_is_refused(
    run: Graphkin, versions: tuple[Path, Path], arguments: tuple[str, ...], message: str
) -> None:
    outcome = run("diff", *(argument.format(old=versions[0]) for argument in arguments))
    assert outcome.code not in (0, 1)
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_from_python(versions: tuple[Path, Path]) -> None:
    steps: list[str] = []
    diff = graphkin.diff(*versions, on_step=steps.append)
    assert diff.count("changed") == 1
    assert len(steps) == 3


def test_identical_code_stays_whatever_is_asked_for(
    run: Graphkin, versions: tuple[Path, Path]
) -> None:
    old, _ = versions
    outcome = run("diff", old, old, "--min-probability", "1", "--exit-code")
    assert outcome.code == 0
    assert "0 removed, 0 added (one kind of build)" in outcome.out


def test_functions_of_other_names_are_no_pairs(run: Graphkin, compile_c: Compile) -> None:
    """Programs that have nothing to do with each other; without names, some look alike."""
    body = "int {}(int *p, int n) {{ int s = 0; while (n--) s += p[n] {} 3; return s; }}"
    left = "\n".join(body.format(f"left_{at}", sign) for at, sign in enumerate("*+-"))
    right = "\n".join(body.format(f"right_{at}", sign) for at, sign in enumerate("&|^"))
    files = [
        compile_c(source, "-O2", "-shared", "-fPIC", name=name)
        for source, name in ((left, "left.so"), (right, "right.so"))
    ]
    document = json.loads(run("diff", *files, "--json").out)
    doubtful = [pair for pair in document["pairs"] if pair["probability"] < 0.9]
    assert not [pair for pair in doubtful if pair["left"]["function"].startswith("left_")]


def test_defaults_agree() -> None:
    """The command line must not import the library for its help."""
    assert MIN_PROBABILITY == DEFAULT


def test_a_page(run: Graphkin, tmp_path: Path) -> None:
    page = tmp_path / "diff.html"
    outcome = run("diff", path("gateway"), path("gateway-fixed"), "--html", page)
    assert outcome.code == 0
    assert "118 identical" in outcome.out
    text = page.read_text(encoding="utf-8")
    assert text == run("diff", path("gateway"), path("gateway-fixed"), "--format", "html").out
    assert "equal instructions" in text
