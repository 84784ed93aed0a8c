/* SPDX-License-Identifier: Apache-2.0 */
/* GIF: its compression, and the walk over its blocks. */
#include "kinmedia.h"

#define MOST_CODES 4096

struct bit_reader {
    const uint8_t *data;
    size_t length;
    size_t at;
    uint32_t bits;
    int have;
};

static int read_code(struct bit_reader *reader, int width)
{
    while (reader->have < width) {
        if (reader->at >= reader->length)
            return -1;
        reader->bits |= (uint32_t)reader->data[reader->at++] << reader->have;
        reader->have += 8;
    }
    int code = (int)(reader->bits & ((1u << width) - 1));
    reader->bits >>= width;
    reader->have -= width;
    return code;
}

int lzw_decode(const uint8_t *data, size_t length, int minimum_bits, uint8_t *out, size_t room)
{
    static uint16_t prefix[MOST_CODES];
    static uint8_t suffix[MOST_CODES], stack[MOST_CODES];
    struct bit_reader reader = {data, length, 0, 0, 0};
    if (minimum_bits < 2 || minimum_bits > 8)
        return -1;
    int clear = 1 << minimum_bits, end = clear + 1;
    int next = end + 1, width = minimum_bits + 1, previous = -1;
    uint8_t first = 0;
    size_t used = 0;
    for (int i = 0; i < clear; i++)
        suffix[i] = (uint8_t)i;
    for (;;) {
        int code = read_code(&reader, width);
        if (code < 0)
            return -1;
        if (code == end)
            return (int)used;
        if (code == clear) {
            next = end + 1;
            width = minimum_bits + 1;
            previous = -1;
            continue;
        }
        if (code > next || (code == next && previous < 0))
            return -1;
        int walk = code, depth = 0;
        if (code == next) {
            stack[depth++] = first;
            walk = previous;
        }
        while (walk > end) {
            stack[depth++] = suffix[walk];
            walk = prefix[walk];
        }
        first = suffix[walk];
        stack[depth++] = first;
        if ((size_t)depth > room - used)
            return -1;
        while (depth > 0)
            out[used++] = stack[--depth];
        if (previous >= 0 && next < MOST_CODES) {
            prefix[next] = (uint16_t)previous;
            suffix[next++] = first;
            if (next == 1 << width && width < 12)
                width++;
        }
        previous = code;
    }
}

/* Where the chain of sub-blocks that starts at "at" ends; 0 when it does not. */
static size_t skip_blocks(const uint8_t *data, size_t length, size_t at)
{
    while (at < length) {
        if (data[at] == 0)
            return at + 1;
        at += (size_t)data[at] + 1;
    }
    return 0;
}

int gif_frame_count(const uint8_t *data, size_t length)
{
    if (length < 13 || data[0] != 'G' || data[1] != 'I' || data[2] != 'F' || data[3] != '8')
        return -1;
    if ((data[4] != '7' && data[4] != '9') || data[5] != 'a')
        return -1;
    size_t at = 13;
    int frames = 0;
    if (data[10] & 0x80)
        at += (size_t)3 << ((data[10] & 7) + 1);
    while (at < length) {
        uint8_t kind = data[at++];
        if (kind == 0x3b)
            return frames;
        if (kind == 0x21) {
            at = skip_blocks(data, length, at + 1);
        } else if (kind == 0x2c) {
            if (length - at < 10)
                return -1;
            uint8_t flags = data[at + 8];
            at += 9;
            if (flags & 0x80)
                at += (size_t)3 << ((flags & 7) + 1);
            at = skip_blocks(data, length, at + 1);
            frames++;
        } else {
            return -1;
        }
        if (at == 0)
            return -1;
    }
    return -1;
}
