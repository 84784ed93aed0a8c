"""What became of the blocks of a function."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from graphkin.library.diff.verdict import block_changes
from graphkin.results.document import BlockChanges

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
