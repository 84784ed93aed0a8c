"""Forms of tokens."""

from __future__ import annotations

import pytest

from graphkin.binaries.evidence import tokens


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (36, "36"),
        (-5, "-5"),
        (0xFFFFFFFB, "-5"),
        (0xFFFFFFFFFFFFFFFB, "-5"),
        (0xEDB88320, "3988292384"),
        (-306674912, "3988292384"),
        (0x5DEECE66D, "25214903917"),
    ],
)
def test_a_constant_has_one_form_whatever_its_width_and_sign(value: int, text: str) -> None:
    assert tokens.number(value) == (("num", text),)


@pytest.mark.parametrize("value", [0, 1, -1, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF])
def test_constants_of_all_functions_say_nothing(value: int) -> None:
    assert tokens.number(value) == ()


def test_an_offset_is_a_distance() -> None:
    assert tokens.offset(-16) == tokens.offset(16) == tokens.offset(0xFFFFFFF0) == (("off", "16"),)
    assert tokens.offset(0) == ()


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("fopen64", "fopen"),
        ("memcpy@GLIBC_2.14", "memcpy"),
        ("__printf_chk", "printf"),
        ("__isoc99_sscanf", "sscanf"),
        ("__stat64_time64", "stat"),
        ("__clock_gettime64", "clock_gettime"),
        ("crc64", "crc64"),
        ("malloc", "malloc"),
        ("__aeabi_uidiv", ""),
        ("__divdi3", ""),
        ("__udivmoddi4", ""),
        ("__stack_chk_fail", ""),
    ],
)
def test_imports_lose_versions_and_variants(name: str, plain: str) -> None:
    assert tokens.import_name(name) == plain


@pytest.mark.parametrize(
    ("letters", "text"),
    [
        ("got %lu of %zu bytes", "got %u of %u bytes"),
        ("two\n  lines\t", "two lines"),
        ("/build/x-1.0/src/main.c", "main.c"),
        ("C:\\work\\main.cpp", "main.cpp"),
        ("and/or", "and/or"),
        ("x" * 300, "x" * 200),
    ],
)
def test_strings_lose_what_builds_change(letters: str, text: str) -> None:
    assert tokens.text_of(letters) == text
