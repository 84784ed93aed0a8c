"""The codecs and checksums of the bundled samples: every build agrees with Python."""

from __future__ import annotations

import base64
import binascii
import ctypes
import hashlib
import hmac
import struct
import zlib
from ctypes import c_int, c_size_t, c_uint32, c_uint64

import pytest

from graphkin.binaries import samples
from tests.binaries.samples.sample_library import NOISE, WORDS, Library, runs_samples

pytestmark = runs_samples


@pytest.fixture(scope="module", params=samples.BUILDS)
def library(request: pytest.FixtureRequest) -> Library:
    return Library(request.param)


def test_text_encodings(library: Library) -> None:
    for length in range(12):
        data = NOISE[:length]
        assert library.bytes("base64_encode", data) == base64.b64encode(data)
        assert library.bytes("base64_decode", base64.b64encode(data)) == data
        assert library.bytes("base32_decode", base64.b32encode(data)) == data
        assert library.bytes("hex_decode", binascii.hexlify(data)) == data
        assert library.bytes("quoted_printable_decode", binascii.b2a_qp(data, True)) == data
    assert library.bytes("base64_decode", b"YQ=x") is None
    assert library.bytes("hex_decode", b"abc") is None
    assert library.bytes("base64_encode", NOISE, room=100) is None


def test_checksums(library: Library) -> None:
    crc32, adler32, siphash = library.crc32_update, library.adler32_update, library.siphash24
    crc32.restype = adler32.restype = library.murmur3.restype = c_uint32
    siphash.restype = c_uint64
    for data in (b"", b"a", WORDS, b"\xff" * 20_000):
        assert crc32(c_uint32(0), data, c_size_t(len(data))) == zlib.crc32(data)
        assert adler32(c_uint32(1), data, c_size_t(len(data))) == zlib.adler32(data)
    library.crc16_modbus.restype = ctypes.c_uint16
    assert library.crc16_modbus(b"123456789", c_size_t(9)) == 0x4B37
    assert library.murmur3(b"Hello, world!", c_size_t(13), c_uint32(1234)) == 0xFAF6CDB3
    assert siphash(bytes(range(16)), bytes(range(15)), c_size_t(15)) == 0xA129CA6149BE45E5
    assert library.luhn_valid(b"4539 1488 0343 6467") == 1
    assert library.luhn_valid(b"4539 1488 0343 6468") == 0


def test_hashes_and_ciphers(library: Library) -> None:
    for length in (0, 1, 55, 56, 63, 64, 65, 200):
        data, digest = NOISE[:length], ctypes.create_string_buffer(32)
        state = ctypes.create_string_buffer(256)
        library.sha256_start(state)
        library.sha256_update(state, data, c_size_t(length // 3))
        library.sha256_update(state, data[length // 3 :], c_size_t(length - length // 3))
        library.sha256_finish(state, digest)
        assert digest.raw == hashlib.sha256(data).digest()
        key = NOISE[-100:][: length + 1]
        library.hmac_sha256(key, c_size_t(len(key)), data, c_size_t(length), digest)
        assert digest.raw == hmac.digest(key, data, "sha256")
    text = ctypes.create_string_buffer(b"Plaintext", 9)
    library.rc4_xor(b"Key", c_size_t(3), text, c_size_t(9))
    assert text.raw.hex() == "bbf316e8d940af0ad3"
    # RFC 8439, 2.4.2
    text = ctypes.create_string_buffer(b"Ladies and Gentlemen of the class of '99: If I could", 52)
    nonce = bytes.fromhex("000000000000004a00000000")
    library.chacha20_xor(bytes(range(32)), nonce, c_uint32(1), text, c_size_t(52))
    assert text.raw[:16].hex() == "6e2e359a2568f98041ba0728dd0d6981"
    block = (c_uint32 * 2)(0x41424344, 0x45464748)
    library.xtea_encrypt((c_uint32 * 4)(0x00010203, 0x04050607, 0x08090A0B, 0x0C0D0E0F), block)
    assert list(block) == [0x497DF3D0, 0x72612CB5]
    assert library.pkcs7_unpad(b"abcde\3\3\3", c_size_t(8), c_size_t(8)) == 5
    assert library.pkcs7_unpad(b"abcde\3\2\3", c_size_t(8), c_size_t(8)) == -1


def test_compression(library: Library) -> None:
    for data in (b"", b"a", WORDS, NOISE, bytes(2000)):
        for level in (0, 1, 9):
            packed = zlib.compress(data, level)
            assert library.bytes("zlib_decode", packed) == data
            wrong = packed[:-1] + bytes([packed[-1] ^ 1])
            assert library.bytes("zlib_decode", wrong) is None
        for encode, decode in (
            ("packbits_encode", "packbits_decode"),
            ("lz_compress", "lz_expand"),
            ("cobs_encode", "cobs_decode"),
        ):
            packed = library.bytes(encode, data) or b""
            assert library.bytes(decode, packed) == data
    assert 0 not in (library.bytes("cobs_encode", NOISE) or b"\0")
    # The sample picture of the GIF specification: ten by ten, four colours.
    code = bytes.fromhex("8c2d99872a1cdc33a00275ec95faa8de608c04914c01")
    pixels = library.fill("lzw_decode", code, len(code), c_int(2))
    assert pixels is not None
    assert pixels[:10] == bytes([1, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    assert len(pixels) == 100


def test_media_headers(library: Library) -> None:
    width, height = c_uint32(), c_uint32()
    head = b"IHDR" + struct.pack(">IIBBBBB", 640, 480, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    by = ctypes.byref
    assert library.png_size(png, c_size_t(len(png)), by(width), by(height)) == 0
    assert (width.value, height.value) == (640, 480)
    jpeg = b"\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x0b\x08\0\x20\0\x10\1\1\x11\0"
    assert library.jpeg_size(jpeg, c_size_t(len(jpeg)), by(width), by(height)) == 0
    assert (width.value, height.value) == (16, 32)
    form = (c_uint32 * 5)()
    body = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 2, 44100, 176400, 4, 16)
    wav = b"RIFF\0\0\0\0" + body + b"data" + struct.pack("<I", 4) + b"abcd"
    assert library.wav_parse(wav, c_size_t(len(wav)), form) == 0
    assert list(form) == [44100, 2, 16, 44, 4]
    library.mulaw_decode.restype = ctypes.c_int16
    library.mulaw_encode.restype = ctypes.c_uint8
    assert all(
        library.mulaw_encode(library.mulaw_decode(code)) == code
        for code in range(256)
        if code != 127
    )
    rows = ctypes.create_string_buffer(b"\1\5\1\1\2\1\1\1\4\1\1\1\3\2\2\2", 16)
    assert library.png_unfilter(rows, c_size_t(3), c_size_t(4), c_size_t(1)) == 0
    assert rows.raw == b"\1\5\6\7\2\6\7\x08\4\7\x08\x09\3\5\x08\x0a"
