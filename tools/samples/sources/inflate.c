/* SPDX-License-Identifier: Apache-2.0 */
/* Deflate streams, bare and in a zlib wrapper. */
#include "kinmedia.h"

#include <string.h>

struct stream {
    const uint8_t *data;
    size_t length;
    size_t at;
    uint32_t bits;
    int have;
    uint8_t *out;
    size_t room;
    size_t used;
};

struct huffman {
    uint16_t count[16];
    uint16_t symbol[288];
};

static int take_bits(struct stream *s, int count)
{
    while (s->have < count) {
        if (s->at >= s->length)
            return -1;
        s->bits |= (uint32_t)s->data[s->at++] << s->have;
        s->have += 8;
    }
    int value = (int)(s->bits & ((1u << count) - 1));
    s->bits >>= count;
    s->have -= count;
    return value;
}

/* Codes of canonical order from their lengths; -1 when the lengths are no code. */
static int build_huffman(struct huffman *code, const uint8_t *lengths, int symbols)
{
    uint16_t offset[16];
    int left = 1;
    memset(code->count, 0, sizeof code->count);
    for (int i = 0; i < symbols; i++)
        code->count[lengths[i]]++;
    for (int bits = 1; bits < 16; bits++) {
        left = 2 * left - code->count[bits];
        if (left < 0)
            return -1;
    }
    offset[1] = 0;
    for (int bits = 1; bits < 15; bits++)
        offset[bits + 1] = (uint16_t)(offset[bits] + code->count[bits]);
    for (int i = 0; i < symbols; i++)
        if (lengths[i] != 0)
            code->symbol[offset[lengths[i]]++] = (uint16_t)i;
    return 0;
}

static int decode_symbol(struct stream *s, const struct huffman *code)
{
    int value = 0, first = 0, index = 0;
    for (int bits = 1; bits < 16; bits++) {
        int bit = take_bits(s, 1);
        if (bit < 0)
            return -1;
        value |= bit;
        int count = code->count[bits];
        if (value - first < count)
            return code->symbol[index + value - first];
        index += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    return -1;
}

static int inflate_stored(struct stream *s)
{
    s->bits = 0;
    s->have = 0;
    if (s->length - s->at < 4)
        return -1;
    const uint8_t *head = s->data + s->at;
    size_t count = (size_t)head[0] | (size_t)head[1] << 8;
    size_t inverse = (size_t)head[2] | (size_t)head[3] << 8;
    s->at += 4;
    if ((count ^ inverse) != 0xffff || count > s->length - s->at || count > s->room - s->used)
        return -1;
    memcpy(s->out + s->used, s->data + s->at, count);
    s->at += count;
    s->used += count;
    return 0;
}

static int inflate_codes(struct stream *s, const struct huffman *literals,
                         const struct huffman *distances)
{
    static const uint16_t BASE[29] = {3,  4,  5,  6,  7,  8,  9,  10,  11,  13,
                                      15, 17, 19, 23, 27, 31, 35, 43,  51,  59,
                                      67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t EXTRA[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                      2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t FAR[30] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,
                                     33,  49,  65,  97,  129, 193,  257,  385,  513,  769,
                                     1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    for (;;) {
        int symbol = decode_symbol(s, literals);
        if (symbol < 0)
            return -1;
        if (symbol < 256) {
            if (s->used >= s->room)
                return -1;
            s->out[s->used++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 256)
            return 0;
        symbol -= 257;
        if (symbol >= 29)
            return -1;
        int more = take_bits(s, EXTRA[symbol]);
        int slot = decode_symbol(s, distances);
        if (more < 0 || slot < 0 || slot >= 30)
            return -1;
        size_t count = (size_t)BASE[symbol] + (size_t)more;
        int far_more = take_bits(s, slot < 2 ? 0 : slot / 2 - 1);
        size_t distance = (size_t)FAR[slot] + (size_t)far_more;
        if (far_more < 0 || distance > s->used || count > s->room - s->used)
            return -1;
        while (count--) {
            s->out[s->used] = s->out[s->used - distance];
            s->used++;
        }
    }
}

static int inflate_fixed(struct stream *s)
{
    struct huffman literals, distances;
    uint8_t lengths[288];
    for (int i = 0; i < 288; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    build_huffman(&literals, lengths, 288);
    memset(lengths, 5, 30);
    build_huffman(&distances, lengths, 30);
    return inflate_codes(s, &literals, &distances);
}

static int inflate_dynamic(struct stream *s)
{
    static const uint8_t ORDER[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    struct huffman literals, distances;
    uint8_t lengths[320] = {0};
    int literal_count = take_bits(s, 5), distance_count = take_bits(s, 5);
    int code_count = take_bits(s, 4);
    if (literal_count < 0 || distance_count < 0 || code_count < 0)
        return -1;
    literal_count += 257;
    distance_count += 1;
    if (literal_count > 286 || distance_count > 30)
        return -1;
    for (int i = 0; i < code_count + 4; i++) {
        int width = take_bits(s, 3);
        if (width < 0)
            return -1;
        lengths[ORDER[i]] = (uint8_t)width;
    }
    if (build_huffman(&literals, lengths, 19) < 0)
        return -1;
    memset(lengths, 0, 19);
    for (int at = 0; at < literal_count + distance_count;) {
        int symbol = decode_symbol(s, &literals), repeat, value = 0;
        if (symbol < 0)
            return -1;
        if (symbol < 16) {
            lengths[at++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16) {
            if (at == 0)
                return -1;
            value = lengths[at - 1];
            repeat = take_bits(s, 2) + 3;
        } else if (symbol == 17) {
            repeat = take_bits(s, 3) + 3;
        } else {
            repeat = take_bits(s, 7) + 11;
        }
        if (at + repeat > literal_count + distance_count)
            return -1;
        while (repeat-- > 0)
            lengths[at++] = (uint8_t)value;
    }
    if (lengths[256] == 0 || build_huffman(&literals, lengths, literal_count) < 0 ||
        build_huffman(&distances, lengths + literal_count, distance_count) < 0)
        return -1;
    return inflate_codes(s, &literals, &distances);
}

int inflate_raw(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    struct stream s = {data, length, 0, 0, 0, out, room, 0};
    int last, failed;
    do {
        last = take_bits(&s, 1);
        int kind = take_bits(&s, 2);
        if (last < 0 || kind < 0)
            return -1;
        switch (kind) {
        case 0:
            failed = inflate_stored(&s);
            break;
        case 1:
            failed = inflate_fixed(&s);
            break;
        case 2:
            failed = inflate_dynamic(&s);
            break;
        default:
            failed = -1;
            break;
        }
        if (failed)
            return -1;
    } while (!last);
    return (int)s.used;
}

int zlib_decode(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    if (length < 6 || (data[0] & 15) != 8 || data[0] >> 4 > 7)
        return -1;
    if (((unsigned)data[0] << 8 | data[1]) % 31 != 0 || data[1] & 0x20)
        return -1;
    int used = inflate_raw(data + 2, length - 6, out, room);
    if (used < 0)
        return -1;
    const uint8_t *tail = data + length - 4;
    uint32_t expected = (uint32_t)tail[0] << 24 | (uint32_t)tail[1] << 16 |
                        (uint32_t)tail[2] << 8 | tail[3];
    return adler32_update(1, out, (size_t)used) == expected ? used : -1;
}
