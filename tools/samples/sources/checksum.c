/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums and hashes that are no secret. */
#include "kinmedia.h"

#define ROTL64(x, n) ((x) << (n) | (x) >> (64 - (n)))

uint32_t crc32_update(uint32_t crc, const uint8_t *data, size_t length)
{
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

uint16_t crc16_modbus(const uint8_t *data, size_t length)
{
    uint16_t crc = 0xffff;
    while (length--) {
        crc ^= *data++;
        for (int bit = 0; bit < 8; bit++) {
            if (crc & 1)
                crc = (uint16_t)(crc >> 1 ^ 0xa001);
            else
                crc >>= 1;
        }
    }
    return crc;
}

uint32_t adler32_update(uint32_t adler, const uint8_t *data, size_t length)
{
    uint32_t low = adler & 0xffff, high = adler >> 16;
    while (length > 0) {
        /* As many bytes as fit before the sums overflow 32 bits. */
        size_t run = length < 5552 ? length : 5552;
        length -= run;
        while (run--) {
            low += *data++;
            high += low;
        }
        low %= 65521;
        high %= 65521;
    }
    return high << 16 | low;
}

uint32_t murmur3(const uint8_t *data, size_t length, uint32_t seed)
{
    uint32_t hash = seed, tail = 0;
    size_t blocks = length / 4;
    for (size_t i = 0; i < blocks; i++) {
        uint32_t k = (uint32_t)data[4 * i] | (uint32_t)data[4 * i + 1] << 8 |
                     (uint32_t)data[4 * i + 2] << 16 | (uint32_t)data[4 * i + 3] << 24;
        k *= 0xcc9e2d51u;
        k = k << 15 | k >> 17;
        hash ^= k * 0x1b873593u;
        hash = (hash << 13 | hash >> 19) * 5 + 0xe6546b64u;
    }
    const uint8_t *rest = data + 4 * blocks;
    switch (length & 3) {
    case 3:
        tail ^= (uint32_t)rest[2] << 16;
        /* fall through */
    case 2:
        tail ^= (uint32_t)rest[1] << 8;
        /* fall through */
    case 1:
        tail = (tail ^ rest[0]) * 0xcc9e2d51u;
        hash ^= (tail << 15 | tail >> 17) * 0x1b873593u;
        break;
    default:
        break;
    }
    hash ^= (uint32_t)length;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

static uint64_t little64(const uint8_t *data)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | data[i];
    return value;
}

static void sip_rounds(uint64_t v[4], int rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[1] = ROTL64(v[1], 13) ^ v[0];
        v[0] = ROTL64(v[0], 32);
        v[2] += v[3];
        v[3] = ROTL64(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = ROTL64(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = ROTL64(v[1], 17) ^ v[2];
        v[2] = ROTL64(v[2], 32);
    }
}

uint64_t siphash24(const uint8_t key[16], const uint8_t *data, size_t length)
{
    uint64_t k0 = little64(key), k1 = little64(key + 8);
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                     k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)length << 56;
    size_t whole = length & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t word = little64(data + i);
        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
    }
    for (size_t i = whole; i < length; i++)
        last |= (uint64_t)data[i] << (8 * (i - whole));
    v[3] ^= last;
    sip_rounds(v, 2);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int luhn_valid(const char *digits)
{
    int sum = 0, count = 0, doubled = 0;
    const char *end = digits;
    while (*end)
        end++;
    while (end > digits) {
        char c = *--end;
        if (c == ' ' || c == '-')
            continue;
        if (c < '0' || c > '9')
            return 0;
        int value = c - '0';
        if (doubled) {
            value *= 2;
            if (value > 9)
                value -= 9;
        }
        sum += value;
        doubled = !doubled;
        count++;
    }
    return count >= 2 && sum % 10 == 0;
}
