"""Pictures of functions: files of each format, and what is drawn in them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from graphkin.binaries import Block, Function
from graphkin.binaries.function import Token
from graphkin.errors import ConfigError, StorageError
from graphkin.results.drawing.function import (
    CROWDED_LINES,
    DOT_LIMIT,
    MAX_LETTERS,
    MAX_LINES,
    OUTLINE_LIMIT,
    TEXT_LIMIT,
    box_lines,
    plot_function,
    resolution,
)

MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}


def function(count: int, edges: tuple[tuple[int, int], ...], lines: int = 3) -> Function:
    texts = (*(f"mov r{n}, {n}" for n in range(lines - 1)), "ret")
    names = tuple(text.partition(" ")[0] for text in texts)
    blocks = tuple(Block(0x1000 + 16 * n, 16, names, texts) for n in range(count))
    return Function(
        name="sample",
        address=0x1000,
        size=16 * count,
        blocks=blocks,
        edges=edges,
        architecture="x86-64",
        format="elf",
        file_hash="0",
        binary="x.so",
    )


def chain(count: int) -> Function:
    """A loop around a long row of branches."""
    edges = {(n, n + 1) for n in range(count - 1)} | {(n, n + 2) for n in range(0, count - 2, 3)}
    return function(count, tuple(sorted(edges | {(count - 2, 1)})))


LOOP = function(5, ((0, 1), (1, 2), (1, 3), (2, 4), (3, 1), (3, 4)))


def svg_texts(path: Path) -> list[str]:
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))
    return [text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for text in texts]


@pytest.mark.parametrize("ending", MAGIC)
def test_every_format(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"picture{ending}"
    plot_function(LOOP, path)
    content = path.read_bytes()
    assert content.startswith(MAGIC[ending])
    assert len(content) > 5_000


def test_an_ending_in_capitals(tmp_path: Path) -> None:
    plot_function(LOOP, tmp_path / "picture.PNG")
    assert (tmp_path / "picture.PNG").read_bytes().startswith(MAGIC[".png"])


@pytest.mark.parametrize("ending", MAGIC)
def test_equal_functions_make_equal_files(tmp_path: Path, ending: str) -> None:
    for name in ("one", "two"):
        plot_function(LOOP, tmp_path / f"{name}{ending}")
    assert (tmp_path / f"one{ending}").read_bytes() == (tmp_path / f"two{ending}").read_bytes()


def test_the_picture_shows_lines_and_marks(tmp_path: Path) -> None:
    plot_function(LOOP, tmp_path / "picture.png")
    pixels = (image.imread(tmp_path / "picture.png")[..., :3] * 255).round().astype(int)
    for color in ("009e73", "d55e00", "a0408a", "b7e4c7", "f8c4bd"):
        expected = np.array([int(color[at : at + 2], 16) for at in (0, 2, 4)])
        assert (np.abs(pixels - expected).max(axis=-1) <= 2).sum() > 50, color


def test_every_instruction_and_address_is_written(tmp_path: Path) -> None:
    plot_function(LOOP, tmp_path / "picture.svg")
    texts = svg_texts(tmp_path / "picture.svg")
    assert texts.count("mov") == 2 * 5
    assert texts.count("r1, 1") == 5
    assert {f"{0x1000 + 16 * n:x}" for n in range(5)} <= set(texts)
    assert (texts.count("entry"), texts.count("exit")) == (1, 1)
    assert "sample" in texts
    assert "0x1000 · 80 bytes · 5 blocks · 6 edges · x86-64 elf" in texts
    assert {"branch taken", "not taken", "back"} <= set(texts)
    assert "case" not in texts


def test_the_size_follows_the_layout(tmp_path: Path) -> None:
    sizes = []
    for count in (3, 12):
        plot_function(chain(count), tmp_path / "picture.png")
        sizes.append(image.imread(tmp_path / "picture.png").shape[:2])
    assert sizes[1][0] > 2.5 * sizes[0][0]


def test_long_blocks_keep_their_first_and_last_instructions() -> None:
    texts = (*(f"mov r{n}, {n}" for n in range(38)), "test eax, eax", "jne 0x1000")
    names = tuple(text.split()[0] for text in texts)
    lines = box_lines(Block(0, 1, names, texts), MAX_LINES)
    assert len(lines) == MAX_LINES
    assert lines[0] == ("mov", "r0, 0")
    assert lines[-3:] == [("… 25 more", ""), ("test", "eax, eax"), ("jne", "0x1000")]
    shown = [line for line in lines if "…" not in line.mnemonic]
    assert len(shown) + 25 == len(texts)


@pytest.mark.parametrize("number", [1, MAX_LINES])
def test_short_blocks_are_whole(number: int) -> None:
    lines = box_lines(Block(0, 1, ("nop",) * number), MAX_LINES)
    assert lines == [("nop", "")] * number


def test_long_operands_are_cut() -> None:
    (line,) = box_lines(Block(0, 1, ("x",), ("x " + "y" * 200,)), MAX_LINES)
    assert line.operands == "y" * (MAX_LETTERS - 1) + "…"


def test_what_a_block_says_is_below_its_instructions() -> None:
    said = (Token("str", "ding\n\x1b[2J" + "dong" * 20), Token("imp", "puts"))
    lines = box_lines(Block(0, 1, ("nop",), ("nop",), None, said), MAX_LINES)
    assert [line.mnemonic[:16] for line in lines] == [
        "nop",
        r'; strings "ding\x'[:16],
        "; imports puts",
    ]
    assert all(len(line.mnemonic) <= MAX_LETTERS for line in lines)
    assert all(line.mnemonic.isprintable() for line in lines)


def test_boxes_of_a_crowded_picture_are_shorter(tmp_path: Path) -> None:
    few, many = function(1, (), lines=40), function(80, ((0, 1),), lines=40)
    for sample, expected in ((few, MAX_LINES), (many, CROWDED_LINES)):
        plot_function(sample, tmp_path / "picture.svg")
        hidden = 40 - expected + 1
        assert svg_texts(tmp_path / "picture.svg").count(f"… {hidden} more") == len(sample.blocks)


def test_a_large_function_is_an_outline_with_a_note(tmp_path: Path) -> None:
    plot_function(chain(TEXT_LIMIT + 1), tmp_path / "picture.svg")
    texts = svg_texts(tmp_path / "picture.svg")
    assert "1000 +3" in texts
    assert "mov" not in texts
    assert any("more than 200 blocks: address and +number of instructions" in t for t in texts)


def test_a_huge_function_is_dots_with_a_note(tmp_path: Path) -> None:
    plot_function(chain(OUTLINE_LIMIT + 1), tmp_path / "picture.svg")
    texts = svg_texts(tmp_path / "picture.svg")
    assert "1000 +3" not in texts
    assert any("more than 700 blocks: a dot for each" in text for text in texts)


@pytest.mark.parametrize("size", [(400, 300), (20_000, 20_000), (300, 200_000), (1e6, 50)])
def test_a_picture_never_takes_too_many_pixels(size: tuple[float, float]) -> None:
    pixels = [side / 72 * resolution(*size) for side in size]
    assert max(pixels) <= 30_001
    assert pixels[0] * pixels[1] <= 50.1e6
    assert size != (400, 300) or resolution(*size) == 120


def test_names_with_dollars_and_foreign_letters(tmp_path: Path) -> None:
    odd = replace(LOOP, name="$x_{1}$ <T&> 函数")
    plot_function(odd, tmp_path / "picture.svg")
    assert odd.name in svg_texts(tmp_path / "picture.svg")
    plot_function(odd, tmp_path / "picture.png")


@pytest.mark.parametrize("count", [0, DOT_LIMIT + 1])
def test_numbers_of_blocks_that_no_picture_takes(tmp_path: Path, count: int) -> None:
    with pytest.raises(ConfigError, match=rf"sample has {count} blocks"):
        plot_function(function(count, ()), tmp_path / "picture.png")


@pytest.mark.parametrize("name", ["picture.doc", "picture", "png"])
def test_unknown_endings(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"ends in \.png, \.svg, \.pdf"):
        plot_function(LOOP, tmp_path / name)


def test_a_picture_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*picture\.png"):
        plot_function(LOOP, tmp_path / "file" / "picture.png")
