"""The parsers and protocols of the bundled samples: every build agrees with Python."""

from __future__ import annotations

import ctypes
import datetime
import ipaddress
import json
import random
import struct
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64

import pytest

from graphkin.binaries import samples
from tests.binaries.samples.sample_library import Library, runs_samples

pytestmark = runs_samples


@pytest.fixture(scope="module", params=samples.BUILDS)
def library(request: pytest.FixtureRequest) -> Library:
    return Library(request.param)


def test_numbers_and_expressions(library: Library) -> None:
    value = c_int64()
    by = ctypes.byref
    for text in ("0", "-12", "0x7f", "0b101", "9223372036854775807", "-9223372036854775808"):
        assert library.parse_integer(text.encode(), 0, by(value)) == 0
        assert value.value == int(text, 0)
    assert library.parse_integer(b"9223372036854775808", 0, by(value)) == -2
    assert library.parse_integer(b"12z", 10, by(value)) == -1
    for text in ("1 + 2 * 3", "-(4 - 10) % 4", "0xff & ~0x0f | 1", "((((7)))) / 2", "!0 + !5"):
        assert library.expression_evaluate(text.encode(), by(value)) == 0
        assert value.value == eval(text.replace("!0", "1").replace("!5", "0").replace("/", "//"))
    for text in ("1 +", "(1", "1 / 0", "2 2", "(" * 100 + "1" + ")" * 100):
        assert library.expression_evaluate(text.encode(), by(value)) == -1
    size, milliseconds = c_uint64(), c_uint32()
    assert library.parse_size(b"1.5 MiB", by(size)) == 0
    assert size.value == 1_572_864
    assert library.parse_duration(b"1h2m3s4ms", by(milliseconds)) == 0
    assert milliseconds.value == 3_723_004
    assert library.parse_fixed(b"-12.345", 2, by(value)) == 0
    assert value.value == -1235
    assert library.fill("format_fixed", c_int64(-5), c_int(2)) == b"-0.05"
    assert library.fill("format_roman", c_int(1994)) == b"MCMXCIV"
    expected = b"|+0042|ff  | abc|%|-7"
    out = ctypes.create_string_buffer(64)
    used = library.kin_print(
        out, c_size_t(64), b"|%+05d|%-4x|%4.3s|%%|%ld", 42, 255, b"abcdef", c_int64(-7)
    )
    assert (used, out.value) == (len(expected), expected)


def test_dates(library: Library) -> None:
    library.seconds_from_time.restype = c_int64
    time, offset = (c_int32 * 6)(), c_int()
    for seconds in (0, -1, 951_782_400, 1_396_915_200, 4_102_444_799, -11_644_473_600):
        library.time_from_seconds(c_int64(seconds), time)
        utc = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
        assert tuple(time) == utc.timetuple()[:6]
        assert library.seconds_from_time(time) == seconds
    text = b"2014-04-07T10:20:30.5+05:30"
    assert library.parse_iso_time(text, time, ctypes.byref(offset)) == 0
    assert (*time, offset.value) == (2014, 4, 7, 10, 20, 30, 330)
    assert library.parse_iso_time(b"2013-02-29", time, ctypes.byref(offset)) == -1
    assert library.parse_http_date(b"Sun, 06 Nov 1994 08:49:37 GMT", time) == 0
    assert tuple(time) == (1994, 11, 6, 8, 49, 37)


def test_patterns_and_unicode(library: Library) -> None:
    for pattern, text, expected in (
        ("*.c", "main.c", 1), ("*.c", "main.h", 0), ("a?c*", "abcd", 1), ("[a-c]x", "bx", 1),
        ("[!a-c]x", "bx", 0), ("a*b*c", "aXXbYYbZc", 1), ("\\*", "*", 1), ("[a", "a", -1),
    ):  # fmt: skip
        assert library.glob_match(pattern.encode(), text.encode()) == expected
    for pattern, text, expected in (
        ("b+c", "aabbbc", 2), ("^a", "ba", -1), ("\\d\\d$", "id 42", 3), ("colou?r", "a color", 2),
        ("x*", "abc", 0),
    ):  # fmt: skip
        assert library.regex_search(pattern.encode(), text.encode()) == expected
    assert library.edit_distance(b"kitten", b"sitting") == 3
    for text in ("plain", "grün", "€uro", "😀 kin"):
        data = text.encode()
        assert library.utf8_validate(data, c_size_t(len(data))) == len(text)
        units = text.encode("utf-16-le")
        assert library.fill("utf16_to_utf8", units, len(units) // 2) == data
    for wrong in (b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82", b"\xff", b"\xf4\x90\x80\x80"):
        assert library.utf8_validate(wrong, c_size_t(len(wrong))) == -1
    assert library.bytes("json_unescape", b"a\\n\\u20ac\\ud83d\\ude00") == "a\n€😀".encode()


def test_json(library: Library) -> None:
    document = {"a": [1, {"x": "y"}], "b": {"c": None}, "number": -1.5e3, "name": 'q"uote'}
    text = json.dumps(document).encode()
    tokens = (c_int32 * 4 * 64)()
    count = library.json_tokenize(text, c_size_t(len(text)), tokens, c_size_t(64))
    position = library.json_find(text, tokens, count, 0, b"number")
    assert text[tokens[position][1] : tokens[position][2]] == b"-1500.0"
    assert library.json_find(text, tokens, count, 0, b"x") == -1
    for wrong in (b'{"a" 1}', b"[1,]", b"[1}", b'"open', b"01", b"nul", b"", b"[[]"):
        assert library.json_tokenize(wrong, c_size_t(len(wrong)), tokens, c_size_t(64)) == -1


def test_words_and_order(library: Library) -> None:
    line = ctypes.create_string_buffer(b"set \"two words\" it\\'s 'a b'c # rest")
    words = (c_char_p * 8)()
    assert library.split_arguments(line, words, 8) == 4
    assert words[:4] == [b"set", b"two words", b"it's", b"a bc"]
    for low, high in ((b"1.9", b"1.10"), (b"1.0-rc2", b"1.0"), (b"2.0a", b"2.0b")):
        assert library.compare_versions(low, high) == -1
        assert library.compare_versions(high, low) == 1
    assert library.compare_natural(b"file9.txt", b"FILE010.txt") == -1
    assert library.compare_natural(b"a10", b"a9") == 1
    row, at = b'a,"b ""c""",,d', c_size_t(0)
    out, fields = ctypes.create_string_buffer(32), []
    while library.csv_field(row, c_size_t(len(row)), ctypes.byref(at), out, c_size_t(32)) >= 0:
        fields.append(out.value)
    assert fields == [b"a", b'b "c"', b"", b"d"]
    numbers = random.Random(2).choices(range(-50, 50), k=300)
    items = (c_int32 * 300)(*numbers)
    library.quick_sort(items, c_size_t(300))
    assert list(items) == sorted(numbers)
    by_value = ctypes.CFUNCTYPE(c_int, c_int32, c_int32)(lambda a, b: (a > b) - (a < b))
    items = (c_int32 * 300)(*numbers)
    library.heap_sort(items, c_size_t(300), by_value)
    assert list(items) == sorted(numbers)
    library.unique_sorted.restype = c_size_t
    kept = library.unique_sorted(items, c_size_t(300))
    assert items[:kept] == sorted(set(numbers))
    assert library.binary_search(items, c_size_t(kept), items[7]) == 7


def test_addresses(library: Library) -> None:
    out, four = ctypes.create_string_buffer(16), c_uint32()
    for text in ("::", "::1", "2001:db8::8:800:200c:417a", "fe80::1:0:0:1", "1:2:3:4:5:6:7:8"):
        address = ipaddress.IPv6Address(text)
        assert library.parse_ipv6(text.encode(), out) == 0
        assert out.raw == address.packed
        assert library.fill("format_ipv6", address.packed) == address.compressed.encode()
    for wrong in (b"1:2:3", b":::", b"1::2::3", b"12345::", b"1:2:3:4:5:6:7:8:9"):
        assert library.parse_ipv6(wrong, out) == -1
    assert library.parse_ipv4(b"10.1.2.3", ctypes.byref(four)) == 0
    assert four.value == int(ipaddress.IPv4Address("10.1.2.3"))
    assert library.parse_ipv4(b"10.1.2.256", ctypes.byref(four)) == -1
    assert library.cidr_contains(b"10.0.0.0/8", c_uint32(four.value)) == 1
    assert library.cidr_contains(b"10.2.0.0/16", c_uint32(four.value)) == 0
    assert library.fill("url_decode", b"a%20b+c", 7) == b"a b c"
    path = ctypes.create_string_buffer(b"/a/./b//../c")
    assert (library.normalize_path(path), path.value) == (4, b"/a/c")
    assert library.normalize_path(ctypes.create_string_buffer(b"/../etc")) == -1


def test_protocols(library: Library) -> None:
    name = library.fill("dns_encode_name", b"www.example.org")
    assert name == b"\3www\7example\3org\0"
    message = bytes(12) + name + b"\4mail\xc0\x10"
    at = 12 + len(name)
    assert library.fill("dns_expand_name", message, len(message), at) == b"mail.example.org"
    loop = bytes(12) + b"\xc0\x0c"
    assert library.fill("dns_expand_name", loop, len(loop), 12) is None
    assert library.bytes("der_oid_text", bytes.fromhex("2a864886f70d")) == b"1.2.840.113549"
    nested = b"\x30\x05\x30\x03\x02\x01\x2a"
    assert library.der_depth(nested, c_size_t(len(nested)), 5) == 3
    assert library.der_depth(nested, c_size_t(len(nested)), 1) == -1
    chunks = b"4\r\nWiki\r\n6\r\npedia \r\n0\r\n\r\n"
    assert library.bytes("http_decode_chunked", chunks) == b"Wikipedia "
    assert library.bytes("slip_decode", b"\xc0a\xdb\xdcb\xdb\xdd\xc0") == b"a\xc0b\xdb"
    for topic_filter, topic, expected in (
        (b"a/+/c", b"a/b/c", 1), (b"a/#", b"a", 1), (b"a/+", b"a/b/c", 0), (b"#", b"$SYS/x", 0),
    ):  # fmt: skip
        assert library.mqtt_topic_matches(topic_filter, topic) == expected
    first, last = c_uint32(), c_uint32()
    by = ctypes.byref
    assert library.http_parse_range(b"bytes=-50", c_uint32(200), by(first), by(last)) == 0
    assert (first.value, last.value) == (150, 199)
    assert library.http_parse_range(b"bytes=200-", c_uint32(200), by(first), by(last)) == -1


def test_records_and_buses(library: Library) -> None:
    value = c_char_p()
    options = b"\0\1\4\xff\xff\xff\0\x0c\3kin\xff"
    length = c_size_t(len(options))
    assert library.tlv_find(options, length, 12, ctypes.byref(value)) == 3
    assert (value.value or b"").startswith(b"kin")
    assert library.tlv_find(options, length, 3, ctypes.byref(value)) == -1
    name = b"kin.example"
    entry = struct.pack(">HBH", len(name) + 3, 0, len(name)) + name
    extensions = struct.pack(">HH", 10, 0) + struct.pack(">HH", 0, len(entry)) + entry
    hello = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0"
    hello += struct.pack(">H", len(extensions)) + extensions
    handshake = b"\1" + len(hello).to_bytes(3, "big") + hello
    record = b"\x16\3\1" + len(handshake).to_bytes(2, "big") + handshake
    assert library.bytes("tls_server_name", record) == name
    assert library.bytes("tls_server_name", record[:-1]) is None

    def framed(body: bytes) -> bytes:
        return body + struct.pack("<H", library.crc16_modbus(body, c_size_t(len(body))))

    library.crc16_modbus.restype = ctypes.c_uint16
    device = ctypes.create_string_buffer(b"\x11", 68)
    for request, reply in (
        (b"\x11\6\0\3\0\x2a", b"\x11\6\0\3\0\x2a"),
        (b"\x11\3\0\2\0\2", b"\x11\3\4\0\0\0\x2a"),
        (b"\x11\5\0\1\xff\0", b"\x11\5\0\1\xff\0"),
        (b"\x11\1\0\0\0\4", b"\x11\1\1\2"),
        (b"\x11\3\0\x1f\0\2", b"\x11\x83\2"),
    ):
        frame = framed(request)
        assert library.fill("modbus_answer", device, frame, len(frame)) == framed(reply)


def test_a_ring_of_bytes(library: Library) -> None:
    class Ring(ctypes.Structure):
        _fields_ = (
            ("data", c_char_p),
            ("size", c_uint32),
            ("head", c_uint32),
            ("tail", c_uint32),
        )

    memory = ctypes.create_string_buffer(16)
    ring = ctypes.byref(Ring(ctypes.cast(memory, c_char_p), 16, 0, 0))
    library.ring_write.restype = library.ring_read.restype = c_size_t
    for _ in range(5):
        assert library.ring_write(ring, b"one\r\ntwo\nth", c_size_t(11)) == 11
        assert library.ring_write(ring, b"ree\nfour", c_size_t(8)) == 4
        assert library.fill("ring_read_line", ring) == b"one"
        assert library.fill("ring_read_line", ring) == b"two"
        assert library.fill("ring_read_line", ring) == b"three"
        assert library.fill("ring_read_line", ring) is None
