"""What became of the blocks of a function."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from graphkin.library.diff.diff import diff
from graphkin.library.diff.verdict import block_changes
from graphkin.results.document import BlockChanges
from tests.conftest import Compile

BLOCKS = st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), max_size=12)


def test_blocks_that_were_added_changed_and_moved() -> None:
    assert block_changes([b"a", b"b", b"c"], [b"a", b"x", b"c", b"y"]) == BlockChanges(
        equal=2, changed=((1, 1),), removed=(), added=(3,)
    )
    assert block_changes([b"a", b"b", b"c"], [b"c", b"a", b"b"]).equal == 3
    assert block_changes([b"a", b"b"], [b"a"]).removed == (1,)


@given(BLOCKS, BLOCKS)
def test_every_block_is_counted_once(left: list[bytes], right: list[bytes]) -> None:
    changes = block_changes(left, right)
    assert changes.equal == sum((Counter(left) & Counter(right)).values())
    assert changes.equal + len(changes.changed) + len(changes.removed) == len(left)
    assert changes.equal + len(changes.changed) + len(changes.added) == len(right)
    ours = [row for row, _ in changes.changed] + list(changes.removed)
    theirs = [row for _, row in changes.changed] + list(changes.added)
    assert len(set(ours)) == len(ours)
    assert len(set(theirs)) == len(theirs)


BRANCHY = """
int f%d(int *p, int n) {
  int s = %d;
  for (int i = 0; i < n; i++) { if (p[i] > %d) s += p[i] * 3; else if (p[i] < -%d) s ^= i; }
  return s;
}
"""
ASSERTING = """
void __assert_fail(const char *, const char *, unsigned, const char *);
int asserting(int *p, int n) {
  int s = 0;
  if (!p) __assert_fail("p", "file.c", __LINE__, "asserting");
  for (int i = 0; i < n; i++) { if (p[i] > LIMIT) s += p[i]; else s -= 2; }
  return s;
}
"""


def test_lines_of_assertions_are_no_change(compile_c: Compile) -> None:
    same = "".join(BRANCHY % (n, 1000 + n, 50 * n, 70 * n) for n in range(1, 6))
    flags = ("-O2", "-shared", "-fPIC")
    old = compile_c(60 * "\n" + same + ASSERTING, *flags, "-DLIMIT=4000", name="old.so")
    moved = compile_c(63 * "\n" + same + ASSERTING, *flags, "-DLIMIT=4000", name="moved.so")
    other = compile_c(63 * "\n" + same + ASSERTING, *flags, "-DLIMIT=4003", name="other.so")
    for new, expected in ((moved, "same"), (other, "changed")):
        document = diff(old, new)
        verdicts = {pair.left.function: pair.verdict for pair in document.pairs}
        assert verdicts["asserting"] == expected
        assert verdicts["f1"] == verdicts["f5"] == "identical"


REPORTING = """
__attribute__((noinline)) int report(int *p, int line) { return p[line & 3] += line * 5; }
int first(int *p, int n) { return n > p[1] ? report(p, __LINE__) : p[2] * 3; }
int second(int *p, int n) { return n > p[3] ? p[4] - n : report(p + 1, __LINE__) * n; }
int third(int *p, int n) { return n == p[2] ? report(p + 4, LIMIT) + n : p[5]; }
"""


def test_lines_that_functions_pass_to_each_other_are_no_change(compile_c: Compile) -> None:
    same = "".join(BRANCHY % (n, 1000 + n, 50 * n, 70 * n) for n in range(1, 6))
    flags = ("-O2", "-shared", "-fPIC", "-fno-optimize-sibling-calls")
    old = compile_c(60 * "\n" + same + REPORTING, *flags, "-DLIMIT=4000", name="old.so")
    new = compile_c(63 * "\n" + same + REPORTING, *flags, "-DLIMIT=4005", name="new.so")
    verdicts = {pair.left.function: pair.verdict for pair in diff(old, new).pairs}
    assert verdicts["first"] == verdicts["second"] == "same"
    assert verdicts["third"] == "changed"


ORDERED = """
struct box { %s long width, height; char name[16]; };
__attribute__((noinline)) long area(struct box *b) { return b->width * b->height; }
long ratio(struct box *b, long n) { return n > 0 ? b->width / n : b->height * %s; }
void copy(struct box *to, struct box *from) { %s->width = %s->width + 1; }
"""


def test_other_registers_by_one_compiler_are_a_change(compile_c: Compile) -> None:
    same = "".join(BRANCHY % (n, 1000 + n, 50 * n, 70 * n) for n in range(1, 120))
    flags = ("-O2", "-shared", "-fPIC")
    first = ("", "n", "to", "from")
    old = compile_c(same + ORDERED % first, *flags, name="old.so")
    grown = compile_c(same + ORDERED % ("long id;", *first[1:]), *flags, name="grown.so")
    other = compile_c(same + ORDERED % ("", "n", "from", "to"), *flags, name="other.so")
    for new, expected in ((grown, ("same", "same")), (other, ("identical", "changed"))):
        verdicts = {pair.left.function: pair.verdict for pair in diff(old, new).pairs}
        assert (verdicts["area"], verdicts["copy"]) == expected
